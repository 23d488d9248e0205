/* division codec: packs and unpacks one map, and says what it costs in bytes and in precision. */
#include "codec.h"

#include "cli.h"
#include "options.h"

#include <division/synthetic.h>
#include <division/tools/json.h>
#include <division/tools/npy.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_BLOCK = 8 };

/* What the command line says. */
typedef struct settings {
    const char *file, *method, *out, *png;
    uint64_t seed;
    int layout, threads, json;
} settings;

/* Allocates `bytes`, aligned as the codecs want it; the caller's to free(). */
static dv_status allocate(size_t bytes, void **memory, dv_error *error) {
    size_t rest = bytes % DV_PACKED_ALIGNMENT;
    *memory = aligned_alloc(DV_PACKED_ALIGNMENT, bytes + (rest > 0 ? DV_PACKED_ALIGNMENT - rest : 0));
    return *memory != NULL ? DV_OK : cli_error(error, DV_ERROR_MEMORY, "no memory for the map: give a smaller one");
}

static dv_status allocate_floats(const dv_map *map, float **memory, dv_error *error) {
    void *bytes = NULL;
    dv_status status = allocate(dv_map_elements(map) * sizeof(float), &bytes, error);
    *memory = bytes;
    return status;
}

/* ---- the map ------------------------------------------------------------------------------- */

/* Describes axes in the order of the layout as a map: [images, channels, sides...] or
 * [images, sides..., channels]. */
static dv_status map_from_axes(const size_t *axes, int rank, dv_type type, dv_layout layout, dv_map *map,
                               dv_error *error) {
    if (rank < 2 || rank > 2 + DV_MAX_RANK)
        return cli_error(error, DV_ERROR_UNSUPPORTED,
                         "the array has %d axes: reshape it to [images, channels] and up to %d sides (--layout nhwc: "
                         "[images, sides..., channels])",
                         rank, DV_MAX_RANK);
    *map = (dv_map){.type = type, .layout = layout, .images = axes[0], .rank = rank - 2};
    map->channels = layout == DV_NCHW ? axes[1] : axes[rank - 1];
    for (int i = 0; i < map->rank; i++)
        map->sides[i] = axes[i + (layout == DV_NCHW ? 2 : 1)];
    return dv_map_check(map, error);
}

/* The opposite. Returns the number of axes. */
static int axes_from_map(const dv_map *map, size_t axes[2 + DV_MAX_RANK]) {
    int rank = 0;
    axes[rank++] = map->images;
    if (map->layout == DV_NCHW)
        axes[rank++] = map->channels;
    for (int i = 0; i < map->rank; i++)
        axes[rank++] = map->sides[i];
    if (map->layout == DV_NHWC)
        axes[rank++] = map->channels;
    return rank;
}

/* Reads "4x64x56x56": images, channels, sides, whatever the layout. Returns the number of axes, or 0 if it is
 * not one. */
static int parse_axes(const char *text, size_t axes[2 + DV_MAX_RANK]) {
    int rank = 0;
    for (;;) {
        char *end;
        if (*text < '0' || *text > '9' || rank == 2 + DV_MAX_RANK)
            return 0;
        unsigned long long length = strtoull(text, &end, 10);
        if (length < 1 || length > UINT32_MAX)
            return 0;
        axes[rank++] = (size_t)length;
        if (*end == '\0')
            return rank;
        if (*end != 'x')
            return 0;
        text = end + 1;
    }
}

/* Makes a synthetic map of the shape that follows the colon of the file's name. */
static dv_status make_synthetic(const settings *chosen, codec_trial *trial, dv_error *error) {
    const char *shape = strchr(chosen->file, ':');
    size_t axes[2 + DV_MAX_RANK];
    int rank = parse_axes(shape != NULL ? shape + 1 : "4x64x56x56", axes);
    if (rank < 2)
        return cli_error(error, DV_ERROR_OPTION,
                         "synthetic: its shape is not one: give synthetic:NxCxHxW, with 0 to 3 sides");
    dv_status status = map_from_axes(axes, rank, DV_F32, DV_NCHW, &trial->map, error);
    if (status != DV_OK)
        return status;
    trial->map.layout = (dv_layout)chosen->layout;
    status = allocate(dv_map_bytes(&trial->map), &trial->src, error);
    return status == DV_OK ? dv_synthetic_map(&trial->map, chosen->seed, trial->src, error) : status;
}

static dv_status read_map(const settings *chosen, codec_trial *trial, dv_error *error) {
    dv_npy array;
    dv_status status = dv_npy_read(chosen->file, &array, error);
    if (status != DV_OK)
        return status;
    trial->src = array.data; /* owned by the trial from here on */
    return map_from_axes(array.shape, array.rank, array.type, (dv_layout)chosen->layout, &trial->map, error);
}

static dv_status load(const settings *chosen, codec_trial *trial, dv_error *error) {
    static const char word[] = "synthetic";
    size_t length = strlen(word);
    int made_up = strncmp(chosen->file, word, length) == 0 && strchr(":", chosen->file[length]) != NULL;
    return made_up ? make_synthetic(chosen, trial, error) : read_map(chosen, trial, error);
}

/* ---- through the codec --------------------------------------------------------------------- */

/* The block edge that the method's text asks for, found as the option `block` of its codec; codecs without one
 * are shown with the default. */
static size_t block_edge(const codec_trial *trial) {
    char text[CLI_CODEC_TEXT];
    dv_codec_format(&trial->codec, text, sizeof text);
    text[strcspn(text, ":")] = '\0';
    for (size_t codec = 0; dv_codec_name_at(codec) != NULL; codec++) {
        if (strcmp(dv_codec_name_at(codec), text) != 0)
            continue;
        const dv_option *option;
        for (size_t i = 0; (option = dv_codec_option_at(codec, i)) != NULL; i++)
            if (strcmp(option->name, "block") == 0)
                return (size_t)trial->codec.options[i];
    }
    return DEFAULT_BLOCK;
}

/* Packs src and unpacks it into dst. */
static dv_status pack_and_unpack(codec_trial *trial, const dv_noise *noise, dv_error *error) {
    void *packed = NULL;
    dv_status status = dv_codec_packed_bytes(&trial->codec, &trial->map, &trial->packed_bytes, error);
    if (status == DV_OK)
        status = allocate(trial->packed_bytes, &packed, error);
    if (status == DV_OK)
        status = allocate(dv_map_bytes(&trial->map), &trial->dst, error);
    if (status == DV_OK)
        status = dv_codec_encode(&trial->codec, &trial->map, noise, trial->src, packed, trial->packed_bytes, error);
    if (status == DV_OK)
        status = dv_codec_decode(&trial->codec, &trial->map, noise, packed, trial->packed_bytes, trial->dst, error);
    free(packed);
    return status;
}

/* Makes the f32 copies that are measured and drawn. */
static dv_status make_copies(codec_trial *trial, dv_error *error) {
    dv_status status = allocate_floats(&trial->map, &trial->input, error);
    if (status == DV_OK)
        status = allocate_floats(&trial->map, &trial->low, error);
    if (status == DV_OK)
        status = allocate_floats(&trial->map, &trial->decoded, error);
    if (status != DV_OK)
        return status;
    dv_convert_to_f32(trial->map.type, trial->src, dv_map_elements(&trial->map), trial->input);
    dv_convert_to_f32(trial->map.type, trial->dst, dv_map_elements(&trial->map), trial->decoded);
    return dv_map_low_frequency(&trial->map, block_edge(trial), trial->src, trial->low, error);
}

void cli_codec_measure_element(const codec_trial *trial, size_t index, codec_measure *measure) {
    double input = trial->input[index], low = trial->low[index];
    double error = trial->decoded[index] - input;
    measure->signal += input * input;
    measure->low += low * low;
    measure->noise += error * error;
    measure->largest = fmax(measure->largest, fabs(error));
}

double cli_codec_snr(const codec_measure *measure) {
    return 10 * log10(measure->signal / measure->noise);
}

double cli_codec_bits(const codec_trial *trial) {
    return 8.0 * (double)trial->packed_bytes / (double)dv_map_elements(&trial->map);
}

/* ---- results ------------------------------------------------------------------------------- */

const char *cli_codec_describe(const dv_map *map, char text[CLI_CODEC_TEXT]) {
    size_t axes[2 + DV_MAX_RANK], used = 0;
    int rank = axes_from_map(map, axes);
    for (int i = 0; i < rank; i++) /* five of twenty digits at most */
        used += (size_t)snprintf(text + used, CLI_CODEC_TEXT - used, "%s%zu", i > 0 ? " x " : "", axes[i]);
    snprintf(text + used, CLI_CODEC_TEXT - used, ", %s, %s", dv_type_name(map->type), dv_layout_name(map->layout));
    return text;
}

/* Root of the mean square error. */
static double root_mean_square(const codec_trial *trial, const codec_measure *measure) {
    return sqrt(measure->noise / (double)dv_map_elements(&trial->map));
}

static void print_table(const codec_trial *trial, const codec_measure *measure) {
    char method[CLI_CODEC_TEXT], map[CLI_CODEC_TEXT];
    size_t bytes = dv_map_bytes(&trial->map);
    dv_codec_format(&trial->codec, method, sizeof method);
    cli_line("map", "%s", cli_codec_describe(&trial->map, map));
    cli_line("method", "%s", method);
    cli_line("elements", "%zu", dv_map_elements(&trial->map));
    cli_line("input bytes", "%zu", bytes);
    cli_line("packed bytes", "%zu", trial->packed_bytes);
    cli_line("ratio", "%.2f", (double)bytes / (double)trial->packed_bytes);
    cli_line("bits per element", "%.3f", cli_codec_bits(trial));
    cli_line("RMSE", "%.4g", root_mean_square(trial, measure));
    cli_line("largest error", "%.4g", measure->largest);
    if (measure->noise > 0)
        cli_line("SNR", "%.2f dB", cli_codec_snr(measure));
    else
        cli_line("SNR", "no error");
    if (measure->signal > 0)
        cli_line("energy in the LFC", "%.2f %%", 100 * measure->low / measure->signal);
}

static void print_json(const codec_trial *trial, const codec_measure *measure) {
    dv_json json;
    size_t bytes = dv_map_bytes(&trial->map);
    dv_json_to_file(&json, stdout);
    dv_json_object(&json, NULL);
    dv_json_unsigned(&json, "elements", dv_map_elements(&trial->map));
    dv_json_unsigned(&json, "input_bytes", bytes);
    dv_json_unsigned(&json, "packed_bytes", trial->packed_bytes);
    dv_json_number(&json, "ratio", (double)bytes / (double)trial->packed_bytes);
    dv_json_number(&json, "bits_per_element", cli_codec_bits(trial));
    dv_json_number(&json, "rmse", root_mean_square(trial, measure));
    dv_json_number(&json, "max_error", measure->largest);
    dv_json_number(&json, "snr_db", cli_codec_snr(measure));
    dv_json_number(&json, "lfc_energy", measure->low / measure->signal);
    dv_json_end(&json);
    dv_json_finish(&json, NULL); /* cli_finish tells of failed output */
}

static dv_status write_decoded(const codec_trial *trial, const char *path, dv_error *error) {
    dv_npy array = {.type = trial->map.type, .data = trial->dst, .bytes = dv_map_bytes(&trial->map)};
    array.rank = axes_from_map(&trial->map, array.shape);
    return dv_npy_write(path, &array, error);
}

/* ---- the command --------------------------------------------------------------------------- */

/* Everything between reading the options and printing. */
static dv_status try_codec(const settings *chosen, codec_trial *trial, codec_measure *measure, dv_error *error) {
    dv_noise noise = {.seed = chosen->seed};
    dv_status status = dv_codec_parse(chosen->method, &trial->codec, error);
    trial->codec.threads = chosen->threads;
    if (status == DV_OK)
        status = load(chosen, trial, error);
    if (status == DV_OK)
        status = pack_and_unpack(trial, &noise, error);
    if (status == DV_OK)
        status = make_copies(trial, error);
    if (status != DV_OK)
        return status;
    for (size_t i = 0; i < dv_map_elements(&trial->map); i++)
        cli_codec_measure_element(trial, i, measure);
    if (chosen->out != NULL)
        status = write_decoded(trial, chosen->out, error);
    if (status == DV_OK && chosen->png != NULL)
        status = cli_codec_draw(trial, measure, chosen->png, error);
    return status;
}

static int try_and_print(const settings *chosen) {
    codec_trial trial = {.packed_bytes = 0};
    codec_measure measure = {0};
    dv_error error;
    dv_status status = try_codec(chosen, &trial, &measure, &error);
    if (status == DV_OK && chosen->json)
        print_json(&trial, &measure);
    else if (status == DV_OK)
        print_table(&trial, &measure);
    free(trial.src);
    free(trial.dst);
    free(trial.input);
    free(trial.low);
    free(trial.decoded);
    return status == DV_OK ? cli_finish() : cli_report(&error);
}

/* Appends the codecs and their options to the help. */
static void describe_codecs(char *text, size_t bytes) {
    const dv_option *option;
    size_t used = (size_t)snprintf(text, bytes, "Codecs, for --method NAME or NAME:OPTION=VALUE,...:\n");
    for (size_t codec = 0; dv_codec_name_at(codec) != NULL && used < bytes; codec++) {
        used += (size_t)snprintf(text + used, bytes - used, "  %-12s %s\n", dv_codec_name_at(codec),
                                 dv_codec_help_at(codec));
        for (size_t i = 0; (option = dv_codec_option_at(codec, i)) != NULL && used < bytes; i++)
            used += (size_t)snprintf(text + used, bytes - used, "    %-10s %s\n", option->name, option->help);
    }
}

int cli_codec(int argc, char **argv) {
    settings chosen = {.method = "division"};
    const char *const layouts[] = {dv_layout_name(DV_NCHW), dv_layout_name(DV_NHWC), NULL};
    char details[2048];
    const dv_option options[] = {
        {"method", "CODEC", "how to pack", CLI_TEXT(&chosen.method)},
        {"layout", NULL, "order of the array's axes", CLI_WORD(&chosen.layout, layouts)},
        {"seed", "N", "of the random numbers", CLI_UNSIGNED(&chosen.seed)},
        {"threads", "N", "threads to use; 0 for as many as OpenMP uses",
         CLI_INTEGER(&chosen.threads, 0, DV_MAX_THREADS)},
        {"out", "FILE.npy", "write the decoded array", CLI_TEXT(&chosen.out)},
        {"png", "FILE.png", "draw input, LFC, HFC and decoded map", CLI_TEXT(&chosen.png)},
        {"json", NULL, "print one JSON object; what is infinite or undefined is null", CLI_FLAG(&chosen.json)},
        CLI_OPTIONS_END,
    };
    const cli_usage usage = {
        .command = "codec",
        .operands = "FILE.npy|synthetic[:NxCxHxW]",
        .summary =
            "Packs and unpacks a map and prints what it costs. FILE.npy is a NumPy array [N, C, ...] of f32 or f16\n"
            "with 0 to 3 sides (--layout nhwc: [N, ..., C]); 'synthetic' makes one up, 4x64x56x56 if not said.\n",
        .details = details,
        .options = options,
        .minimum_operands = 1,
        .maximum_operands = 1};
    cli_operands operands;
    describe_codecs(details, sizeof details);
    int code = cli_parse(&usage, argc, argv, &operands);
    if (code != CLI_CONTINUE)
        return code;
    chosen.file = operands.at[0];
    return try_and_print(&chosen);
}
