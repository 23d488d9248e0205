/* division predict: the classes of images by the weights of a run or of a file, as a table, JSON, CSV and a sheet. */
#include "cli.h"
#include "image_list.h"
#include "options.h"
#include "sheet.h"
#include "train.h"

#include <division/predictor.h>
#include <division/threads.h>
#include <division/tools/json.h>
#include <division/tools/text.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_TOP = 1000,
    IMAGE_WIDTH = 38,
    CLASS_WIDTH = 28,
    TILE = 264,
    MOST_INPUT = 1 << 28 /* bytes of an image from standard input */
};

static const char *const precisions[] = {"auto", "f32", "bf16", NULL};

typedef struct settings {
    const char *path, **operands;
    int operand_count, top, json, csv, verbose, threads, precision;
    const char *png;
    dv_predictor_options options;
    int batch, classes, side, resize;
} settings;

/* A class that an image was found to be of. */
typedef struct found_class {
    size_t label;
    const char *name; /* NULL: it has none */
    double probability;
} found_class;

typedef struct prediction {
    const settings *chosen;
    image_list list;
    dv_predictor *predictor;
    const char **batch; /* [batch]: the paths of those that were read into it */
    size_t in_batch, printed, failed;
    size_t *labels; /* [top] */
    found_class *classes;
    size_t top;
    sheet sheet;
} prediction;

/* ---- output -------------------------------------------------------------------------------- */

/* Rows of 78 characters; the name of an image that does not fit has a line of its own. */
static void print_text(const prediction *p, const char *image) {
    char name[TRAIN_PATH_BYTES], class[CLI_CLASS_TEXT];
    snprintf(name, sizeof name, "%s", image);
    dv_printable(name);
    if (p->printed == 0)
        printf("%-*s  %-*s  %s\n", IMAGE_WIDTH, "image", CLASS_WIDTH, "class", "probab.");
    if (dv_text_characters(name) > IMAGE_WIDTH) {
        printf("%s\n", name);
        name[0] = '\0';
    }
    for (size_t i = 0; i < p->top; i++) {
        dv_text_cut(cli_class_text(p->classes[i].name, p->classes[i].label, class), CLASS_WIDTH);
        printf("%-*s  %-*s  %5.1f %%\n", cli_width(name, IMAGE_WIDTH), name, cli_width(class, CLASS_WIDTH), class,
               100 * p->classes[i].probability);
        name[0] = '\0'; /* once */
    }
}

static void print_json(const prediction *p, const char *image) {
    dv_json json;
    dv_json_to_file(&json, stdout);
    dv_json_object(&json, NULL);
    dv_json_text(&json, "image", image);
    dv_json_array(&json, "top");
    for (size_t i = 0; i < p->top; i++) {
        dv_json_object(&json, NULL);
        dv_json_unsigned(&json, "label", p->classes[i].label);
        dv_json_text(&json, "class", p->classes[i].name);
        dv_json_number(&json, "probability", p->classes[i].probability);
        dv_json_end(&json);
    }
    dv_json_end(&json);
    dv_json_end(&json);
    dv_json_finish(&json, NULL); /* cli_finish says what could not be written */
}

static void print_csv(const prediction *p, const char *image) {
    if (p->printed == 0)
        printf("image,rank,label,class,probability\n");
    for (size_t i = 0; i < p->top; i++) {
        cli_csv_field(stdout, image);
        printf(",%zu,%zu,", i + 1, p->classes[i].label);
        cli_csv_field(stdout, p->classes[i].name != NULL ? p->classes[i].name : "");
        printf(",%.6g\n", p->classes[i].probability);
    }
}

static void draw(prediction *p, size_t place, const char *image) {
    sheet_card card = {.pixels = dv_predictor_pixels(p->predictor, place)};
    char caption[CLI_CLASS_TEXT], names[SHEET_MOST_BARS][CLI_CLASS_TEXT];
    const char *slash = strrchr(image, '/');
    if (p->chosen->png == NULL || p->printed >= p->sheet.layout.images)
        return;
    snprintf(caption, sizeof caption, "%s", slash != NULL && slash[1] != '\0' ? slash + 1 : image);
    card.caption = dv_printable(caption);
    card.bar_count = p->sheet.layout.bars;
    for (size_t i = 0; i < card.bar_count; i++)
        card.bars[i] = (sheet_bar){cli_class_text(p->classes[i].name, p->classes[i].label, names[i]),
                                   p->classes[i].probability, sheet_plain};
    sheet_draw(&p->sheet, p->printed, &card);
}

static void print_one(prediction *p, size_t place) {
    const float *probabilities = dv_predictor_probabilities(p->predictor, place);
    const char *image = p->batch[place];
    (void)dv_top_labels(probabilities, dv_predictor_describe(p->predictor).classes, p->labels, p->top);
    for (size_t i = 0; i < p->top; i++)
        p->classes[i] = (found_class){p->labels[i], dv_predictor_class_name(p->predictor, p->labels[i]),
                                      (double)probabilities[p->labels[i]]};
    (p->chosen->json ? print_json : p->chosen->csv ? print_csv : print_text)(p, image);
    draw(p, place, image);
    p->printed++;
}

/* ---- predicting ---------------------------------------------------------------------------- */

static dv_status predict_batch(prediction *p, dv_error *error) {
    if (p->in_batch == 0)
        return DV_OK;
    dv_status status = dv_predictor_predict(p->predictor, p->in_batch, error);
    for (size_t place = 0; place < p->in_batch && status == DV_OK; place++)
        print_one(p, place);
    p->in_batch = 0;
    fflush(stdout); /* for those who wait at the other end of a pipe */
    return status;
}

/* The bytes of standard input; the caller's to free(). */
static dv_status read_input(char **bytes, size_t *count, dv_error *error) {
    size_t room = 1 << 16, got;
    *bytes = malloc(room);
    *count = 0;
    while (*bytes != NULL && (got = fread(*bytes + *count, 1, room - *count, stdin)) > 0) {
        *count += got;
        if (*count < room)
            continue;
        room *= 2;
        char *grown = room <= MOST_INPUT ? realloc(*bytes, room) : NULL;
        if (grown == NULL)
            free(*bytes);
        *bytes = grown;
    }
    if (*bytes != NULL)
        return DV_OK;
    return cli_error(error, DV_ERROR_MEMORY, "-: an image of more than %zu bytes: give a smaller one", *count);
}

static dv_status read_stdin(prediction *p, dv_error *error) {
    char *bytes;
    size_t count;
    dv_error inner;
    dv_status status = read_input(&bytes, &count, error);
    if (status != DV_OK)
        return status;
    status = dv_predictor_read_bytes(p->predictor, p->in_batch, bytes, count, &inner);
    free(bytes);
    return status == DV_OK ? status : cli_error(error, status, "-: %.180s", inner.text);
}

/* What is wrong with one image is told, and the others go on. */
static void tell_unreadable(prediction *p, const char *path, const dv_error *error) {
    dv_json json;
    p->failed++;
    cli_fail("%s", error->text);
    if (!p->chosen->json)
        return;
    dv_json_to_file(&json, stdout);
    dv_json_object(&json, NULL);
    dv_json_text(&json, "image", path);
    dv_json_text(&json, "error", error->text);
    dv_json_end(&json);
    dv_json_finish(&json, NULL);
}

static dv_status add_image(prediction *p, const char *path, dv_error *error) {
    dv_error inner;
    dv_status status =
        strcmp(path, "-") == 0 ? read_stdin(p, &inner) : dv_predictor_read(p->predictor, p->in_batch, path, &inner);
    if (status == DV_ERROR_ARGUMENT || status == DV_ERROR_MEMORY) {
        *error = inner;
        return status;
    }
    if (status != DV_OK)
        tell_unreadable(p, path, &inner);
    else
        p->batch[p->in_batch++] = path;
    return p->in_batch == dv_predictor_describe(p->predictor).batch ? predict_batch(p, error) : DV_OK;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static void print_verbose(const prediction *p) {
    dv_predictor_description d = dv_predictor_describe(p->predictor);
    char bytes[CLI_BYTES_TEXT], normalisation[DV_NORMALISATION_BYTES] = "";
    (void)dv_image_normalisation_format(&d.normalisation, normalisation, NULL);
    fprintf(stderr, "weights %s\nmodel %s, %zu classes, %s\n", d.path, d.model, d.classes, dv_type_name(d.precision));
    fprintf(stderr, "images resized to %zu, %zu x %zu of the middle, normalised by %s\n", d.resize, d.side, d.side,
            normalisation);
    fprintf(stderr, "planned %s for batches of %zu\n", cli_bytes_text((double)d.planned_bytes, bytes), d.batch);
}

static dv_status begin_sheet(prediction *p, dv_error *error) {
    const sheet_layout layout = {.images = p->list.count < SHEET_MOST_IMAGES ? p->list.count : SHEET_MOST_IMAGES,
                                 .side = dv_predictor_describe(p->predictor).side,
                                 .tile = TILE,
                                 .bars = p->top < SHEET_MOST_BARS ? p->top : SHEET_MOST_BARS,
                                 .text_zoom = 2};
    return p->chosen->png != NULL ? sheet_new(&layout, &p->sheet, error) : DV_OK;
}

static dv_status end_sheet(prediction *p, dv_error *error) {
    if (p->chosen->png == NULL || p->printed == 0)
        return DV_OK;
    if (p->printed > p->sheet.layout.images)
        cli_fail("%s has the first %zu of %zu images: a sheet has no room for more", p->chosen->png,
                 p->sheet.layout.images, p->printed);
    return dv_picture_write(&p->sheet.picture, p->chosen->png, error);
}

static dv_status begin(prediction *p, dv_error *error) {
    const settings *chosen = p->chosen;
    dv_status status = DV_OK;
    for (int i = 0; i < chosen->operand_count && status == DV_OK; i++)
        status = image_list_add(&p->list, chosen->operands[i], error);
    if (status == DV_OK)
        status = dv_predictor_open(chosen->path, &chosen->options, &p->predictor, error);
    if (status != DV_OK)
        return status;
    dv_predictor_description d = dv_predictor_describe(p->predictor);
    p->top = (size_t)chosen->top < d.classes ? (size_t)chosen->top : d.classes;
    p->batch = calloc(d.batch, sizeof *p->batch);
    p->labels = calloc(p->top, sizeof *p->labels);
    p->classes = calloc(p->top, sizeof *p->classes);
    if (p->batch == NULL || p->labels == NULL || p->classes == NULL)
        return cli_error(error, DV_ERROR_MEMORY, "no memory for %zu images: use a smaller batch", d.batch);
    if (chosen->verbose)
        print_verbose(p);
    return begin_sheet(p, error);
}

static dv_status predict(prediction *p, dv_error *error) {
    dv_status status = begin(p, error);
    for (size_t i = 0; i < p->list.count && status == DV_OK; i++)
        status = add_image(p, p->list.paths[i], error);
    if (status == DV_OK)
        status = predict_batch(p, error);
    return status == DV_OK ? end_sheet(p, error) : status;
}

static void release(prediction *p) {
    sheet_free(&p->sheet);
    free(p->batch);
    free(p->labels);
    free(p->classes);
    dv_predictor_close(p->predictor);
    image_list_free(&p->list);
}

static int run(const settings *chosen) {
    prediction p = {.chosen = chosen};
    dv_error error;
    char peak[CLI_BYTES_TEXT];
    dv_status status = predict(&p, &error);
    int code = status == DV_OK ? cli_finish() : cli_report(&error);
    if (status == DV_OK && chosen->verbose)
        fprintf(stderr, "peak %s\n", cli_bytes_text((double)dv_memory_peak(), peak));
    if (status == DV_OK && p.failed > 0)
        code = cli_fail("%zu of %zu images could not be read", p.failed, p.list.count);
    release(&p);
    return code;
}

/* ---- the command --------------------------------------------------------------------------- */

/* What options of the predictor were given. */
static void fill_options(settings *chosen) {
    chosen->options.precision = chosen->precision > 0 ? precisions[chosen->precision] : NULL;
    chosen->options.batch = (size_t)chosen->batch;
    chosen->options.classes = (size_t)chosen->classes;
    chosen->options.side = (size_t)chosen->side;
    chosen->options.resize = (size_t)chosen->resize;
    chosen->options.difference = train_tell_difference;
}

static int parse_and_run(int argc, char **argv, const char **operands) {
    settings chosen = {.top = 5, .batch = 32, .options = dv_predictor_options_default()};
    int differences = 0;
    const dv_option options[] = {
        {"top", "K", "classes to print of each image, the most probable first", CLI_INTEGER(&chosen.top, 1, MOST_TOP)},
        {"json", NULL, "print a line of JSON for each image", CLI_FLAG(&chosen.json)},
        {"csv", NULL, "print CSV", CLI_FLAG(&chosen.csv)},
        {"png", "FILE", "draw a sheet of the images with their classes there", CLI_TEXT(&chosen.png)},
        cli_integer_option("batch", "images at once", &chosen.batch),
        cli_text_option("model", "the network; if not given, what the file says", &chosen.options.model),
        cli_integer_option("classes", "outputs of the network; 0 for what the file says", &chosen.classes),
        cli_integer_option("side", "of the images; 0 for what the file says", &chosen.side),
        cli_integer_option("resize", "shorter side before the middle is taken; 0 for what the file says",
                           &chosen.resize),
        cli_text_option("normalise", "means and deviations of the images; if not given, what the file says",
                        &chosen.options.normalise),
        {"names", "FILE", "of the classes, one in each line; if not given, what the weights' file says",
         CLI_TEXT(&chosen.options.names)},
        {"precision", NULL, "of activations; auto: as trained", CLI_WORD(&chosen.precision, precisions)},
        cli_integer_option("threads", NULL, &chosen.threads),
        {"verbose", NULL, "say to stderr what network it is and what memory it takes", CLI_FLAG(&chosen.verbose)},
        CLI_OPTIONS_END,
    };
    const cli_usage usage = {
        .command = "predict",
        .operands = "RUN|FILE IMAGE|FOLDER...",
        .summary =
            "Prints the most probable classes of images, by the weights of a run (its best ones) or of a file. Of\n"
            "folders all images are taken, those of folders inside too; - is an image from standard input. Images are\n"
            "prepared as the training's tests did it. Those that cannot be read are told, and the exit code is 1.\n",
        .options = options,
        .minimum_operands = 2,
        .maximum_operands = INT_MAX,
        .all_operands = operands};
    cli_operands first;
    int code = cli_parse(&usage, argc, argv, &first);
    if (code != CLI_CONTINUE)
        return code;
    if (chosen.json && chosen.csv)
        return cli_wrong_call("predict: --json and --csv: give one of them");
    chosen.path = operands[0];
    chosen.operands = operands + 1;
    chosen.operand_count = first.count - 1;
    fill_options(&chosen);
    chosen.options.context = &differences;
    (void)dv_set_threads(chosen.threads, NULL); /* its bounds are the option's */
    return run(&chosen);
}

int cli_predict(int argc, char **argv) {
    const char **operands = calloc((size_t)argc + 1, sizeof *operands);
    if (operands == NULL)
        return cli_fail("no memory for the arguments: give fewer");
    int code = parse_and_run(argc, argv, operands);
    free(operands);
    return code;
}
