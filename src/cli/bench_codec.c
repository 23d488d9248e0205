/* division bench codec: how fast maps of real networks are packed and unpacked, next to memcpy.
 *
 * Encode, decode and memcpy take turns on the same bytes, round after round, and each figure is the
 * median of the rounds: on a shared machine only ratios of one call mean anything. A case goes through
 * at least BENCH_BYTES before it meets the same memory again, so that caches do not help a small map. */
#include "cli.h"
#include "options.h"

#include <division/codec.h>
#include <division/info.h>
#include <division/synthetic.h>
#include <division/threads.h>
#include <division/tools/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { BENCH_BYTES = 96 << 20, BENCH_IMAGES = 32, BENCH_MAX_ROUNDS = 101, PAGE_BYTES = 2 << 20 };

/* The maps that a network keeps: the distinct inputs of its convolutions and batch norms. */
typedef struct network_map {
    const char *network;
    size_t channels, side;
} network_map;

static const network_map maps[] = {
    {"resnet50", 64, 112},  {"resnet50", 64, 56},  {"resnet50", 256, 56}, {"resnet50", 128, 56},
    {"resnet50", 128, 28},  {"resnet50", 512, 28}, {"resnet50", 256, 28}, {"resnet50", 256, 14},
    {"resnet50", 1024, 14}, {"resnet50", 512, 14}, {"resnet50", 512, 7},  {"resnet50", 2048, 7},
    {"resnet18", 64, 32},   {"resnet18", 128, 16}, {"resnet18", 256, 8},  {"resnet18", 512, 4},
};

enum { MAP_COUNT = sizeof maps / sizeof *maps };

/* What one case measured. */
typedef struct result {
    dv_map map;
    const char *network;
    double encode, decode, copy; /* GB/s of unpacked bytes */
    double encode_vs, decode_vs; /* the same against memcpy, from medians of each round's ratio */
    double ratio;
} result;

/* The memory of a case: `copies` maps and their packed forms. */
typedef struct buffers {
    size_t copies, map_bytes, packed_bytes;
    char *src, *dst, *packed;
} buffers;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* In large pages where the system has them, as the memory of a training is. Pages are touched before anything is timed.
 */
static void *aligned_new(size_t bytes) {
    void *memory = aligned_alloc(PAGE_BYTES, (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES);
    if (!memory)
        return NULL;
    (void)madvise(memory, bytes, MADV_HUGEPAGE);
    return memset(memory, 1, bytes);
}

static void buffers_free(buffers *b) {
    free(b->src);
    free(b->dst);
    free(b->packed);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

/* ---- values -------------------------------------------------------------------------------- */

/* Rounds f32 to the 16-bit types by dropping bits: good enough to have something to pack. */
static uint16_t half_of(dv_type type, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (type == DV_BF16)
        return (uint16_t)(bits >> 16);
    int exponent = (int)(bits >> 23 & 0xff) - 127 + 15;
    return exponent <= 0 ? 0 : (uint16_t)((bits >> 16 & 0x8000) | (unsigned)exponent << 10 | (bits >> 13 & 0x3ff));
}

/* Fills the copies: one synthetic image, repeated. */
static int fill(buffers *b, const dv_map *map) {
    dv_map one = *map;
    one.images = 1;
    size_t count = dv_map_elements(&one), bytes = dv_map_bytes(&one);
    float *values = malloc(count * sizeof *values);
    dv_error error;
    if (!values)
        return cli_fail("no memory for %zu elements: close something, or use fewer", count);
    one.type = DV_F32;
    if (dv_synthetic_map(&one, 1, values, &error) != DV_OK) {
        free(values);
        return cli_report(&error);
    }
    for (size_t i = 0; i < count; i++)
        if (map->type == DV_F32)
            ((float *)(void *)b->src)[i] = values[i];
        else
            ((uint16_t *)(void *)b->src)[i] = half_of(map->type, values[i]);
    for (size_t n = 1; n < map->images * b->copies; n++)
        memcpy(b->src + n * bytes, b->src, bytes);
    free(values);
    return CLI_SUCCESS;
}

/* ---- one case ------------------------------------------------------------------------------ */

static int buffers_new(buffers *b, const dv_codec *codec, const dv_map *map) {
    dv_error error;
    *b = (buffers){.map_bytes = dv_map_bytes(map)};
    b->copies = (BENCH_BYTES + b->map_bytes - 1) / b->map_bytes;
    if (dv_codec_packed_bytes(codec, map, &b->packed_bytes, &error) != DV_OK)
        return cli_report(&error);
    b->src = aligned_new(b->copies * b->map_bytes);
    b->dst = aligned_new(b->copies * b->map_bytes);
    b->packed = aligned_new(b->copies * b->packed_bytes);
    if (!b->src || !b->dst || !b->packed) {
        buffers_free(b);
        (void)cli_fail("no memory for the benchmark: it takes about 250 MB");
        return CLI_FAILURE;
    }
    int code = fill(b, map);
    if (code != CLI_SUCCESS)
        buffers_free(b);
    return code;
}

/* Seconds of each of the three, over all copies. */
static dv_status measure_round(const dv_codec *codec, const dv_map *map, const buffers *b, double took[3],
                               dv_error *error) {
    dv_noise noise = {.seed = 1};
    dv_status status = DV_OK;
    double start = seconds();
    for (size_t i = 0; i < b->copies && status == DV_OK; i++)
        status = dv_codec_encode(codec, map, &noise, b->src + i * b->map_bytes, b->packed + i * b->packed_bytes,
                                 b->packed_bytes, error);
    double encoded = seconds();
    for (size_t i = 0; i < b->copies && status == DV_OK; i++)
        status = dv_codec_decode(codec, map, &noise, b->packed + i * b->packed_bytes, b->packed_bytes,
                                 b->dst + i * b->map_bytes, error);
    double decoded = seconds();
    size_t total = b->copies * b->map_bytes, piece = (total / (size_t)codec->threads + 63) / 64 * 64;
#pragma omp parallel for num_threads(codec->threads) schedule(static)
    for (size_t at = 0; at < total; at += piece)
        memcpy(b->dst + at, b->src + at, total - at < piece ? total - at : piece);
    took[0] = encoded - start;
    took[1] = decoded - encoded;
    took[2] = seconds() - decoded;
    return status;
}

static int measure_case(const dv_codec *codec, int rounds, result *out) {
    buffers b;
    dv_error error;
    double took[3], each[5][BENCH_MAX_ROUNDS];
    int code = buffers_new(&b, codec, &out->map);
    if (code != CLI_SUCCESS)
        return code;
    for (int round = -1; round < rounds; round++) { /* the first is not counted */
        if (measure_round(codec, &out->map, &b, took, &error) != DV_OK) {
            buffers_free(&b);
            return cli_report(&error);
        }
        for (int i = 0; i < 3 && round >= 0; i++)
            each[i][round] = (double)(b.copies * b.map_bytes) / took[i] * 1e-9;
        for (int i = 0; i < 2 && round >= 0; i++)
            each[3 + i][round] = took[2] / took[i];
    }
    out->encode = median(each[0], rounds);
    out->decode = median(each[1], rounds);
    out->copy = median(each[2], rounds);
    out->encode_vs = median(each[3], rounds);
    out->decode_vs = median(each[4], rounds);
    out->ratio = (double)b.map_bytes / (double)b.packed_bytes;
    buffers_free(&b);
    return CLI_SUCCESS;
}

/* ---- printing ------------------------------------------------------------------------------ */

static const char *isa_name(void) {
    dv_isa isa;
    (void)dv_isa_picked(&isa, NULL);
    return dv_isa_name(isa);
}

static void print_json(const result *r, int threads) {
    dv_json json;
    dv_json_to_file(&json, stdout);
    dv_json_object(&json, NULL);
    dv_json_array(&json, "shape"); /* images, channels, sides, whatever the layout */
    dv_json_unsigned(&json, NULL, r->map.images);
    dv_json_unsigned(&json, NULL, r->map.channels);
    for (int d = 0; d < r->map.rank; d++)
        dv_json_unsigned(&json, NULL, r->map.sides[d]);
    dv_json_end(&json);
    dv_json_text(&json, "network", r->network);
    dv_json_text(&json, "dtype", dv_type_name(r->map.type));
    dv_json_text(&json, "layout", dv_layout_name(r->map.layout));
    dv_json_text(&json, "isa", isa_name());
    dv_json_integer(&json, "threads", threads);
    dv_json_number(&json, "encode_gbps", r->encode);
    dv_json_number(&json, "decode_gbps", r->decode);
    dv_json_number(&json, "memcpy_gbps", r->copy);
    dv_json_number(&json, "ratio", r->ratio);
    dv_json_end(&json);
    (void)dv_json_finish(&json, NULL); /* cli_finish tells */
    fflush(stdout);
}

static void print_row(const result *r) {
    char map[32];
    snprintf(map, sizeof map, "%zux%zux%zu", r->map.channels, r->map.sides[0], r->map.sides[1]);
    printf("%-9s %12s %-4s %-6s%7.2f %7.2f %7.2f   %5.2f %5.2f   %6.2f\n", r->network, map, dv_type_name(r->map.type),
           dv_layout_name(r->map.layout), r->encode, r->decode, r->copy, r->encode_vs, r->decode_vs, r->ratio);
    fflush(stdout);
}

/* Geometric means over the cases of one network, type and layout. */
typedef struct means {
    double encode, decode;                   /* against memcpy */
    double encode_elements, decode_elements; /* G elements/s */
    int count;
} means;

static means geometric_means(const result *results, int count, const char *network, dv_type type, dv_layout layout) {
    means m = {0};
    for (int i = 0; i < count; i++) {
        const result *r = &results[i];
        if (strcmp(r->network, network) != 0 || r->map.type != type || r->map.layout != layout)
            continue;
        m.encode += log(r->encode_vs);
        m.decode += log(r->decode_vs);
        m.encode_elements += log(r->encode / (double)dv_type_bytes(type));
        m.decode_elements += log(r->decode / (double)dv_type_bytes(type));
        m.count++;
    }
    double n = m.count ? m.count : 1;
    return (means){exp(m.encode / n), exp(m.decode / n), exp(m.encode_elements / n), exp(m.decode_elements / n),
                   m.count};
}

static void print_summary_json(const result *results, int count) {
    dv_json json;
    means last = geometric_means(results, count, "resnet50", DV_F32, DV_NHWC);
    means first = geometric_means(results, count, "resnet50", DV_F32, DV_NCHW);
    means half = geometric_means(results, count, "resnet50", DV_BF16, DV_NHWC);
    dv_json_to_file(&json, stdout);
    dv_json_object(&json, NULL);
    dv_json_number(&json, "geomean_encode_vs_memcpy", last.count ? last.encode : NAN);
    dv_json_number(&json, "geomean_decode_vs_memcpy", last.count ? last.decode : NAN);
    dv_json_number(&json, "geomean_encode_vs_memcpy_nchw", first.count ? first.encode : NAN);
    dv_json_number(&json, "geomean_decode_vs_memcpy_nchw", first.count ? first.decode : NAN);
    int both = last.count && half.count;
    dv_json_number(&json, "bf16_elements_vs_f32_encode", both ? half.encode_elements / last.encode_elements : NAN);
    dv_json_number(&json, "bf16_elements_vs_f32_decode", both ? half.decode_elements / last.decode_elements : NAN);
    dv_json_end(&json);
    (void)dv_json_finish(&json, NULL);
}

static void print_summary(const result *results, int count) {
    printf("\nGeometric means over the ResNet-50 maps:\n%-11s %10s %10s   %12s %12s\n", "", "encode", "decode",
           "encode", "decode");
    printf("%-11s %10s %10s   %12s %12s\n", "", "/memcpy", "/memcpy", "Gelements/s", "Gelements/s");
    for (int type = 0; type < DV_TYPE_COUNT; type++)
        for (int layout = DV_LAYOUT_COUNT - 1; layout >= 0; layout--) {
            means m = geometric_means(results, count, "resnet50", (dv_type)type, (dv_layout)layout);
            if (m.count)
                printf("%-4s %-6s %10.2f %10.2f   %12.2f %12.2f\n", dv_type_name((dv_type)type),
                       dv_layout_name((dv_layout)layout), m.encode, m.decode, m.encode_elements, m.decode_elements);
        }
}

/* ---- the command --------------------------------------------------------------------------- */

static int measure_all(const dv_codec *codec, int rounds, int only_type, int only_layout, int json) {
    static result results[MAP_COUNT * DV_TYPE_COUNT * DV_LAYOUT_COUNT];
    int count = 0;
    for (int type = 0; type < DV_TYPE_COUNT; type++)
        for (int layout = DV_LAYOUT_COUNT - 1; layout >= 0; layout--)
            for (size_t i = 0; i < MAP_COUNT; i++) {
                if ((only_type && only_type - 1 != type) || (only_layout && only_layout - 1 != layout))
                    continue;
                result *r = &results[count++];
                r->network = maps[i].network;
                r->map = (dv_map){.type = (dv_type)type,
                                  .layout = (dv_layout)layout,
                                  .images = BENCH_IMAGES,
                                  .channels = maps[i].channels,
                                  .rank = 2,
                                  .sides = {maps[i].side, maps[i].side}};
                int code = measure_case(codec, rounds, r);
                if (code != CLI_SUCCESS)
                    return code;
                if (json)
                    print_json(r, codec->threads);
                else
                    print_row(r);
            }
    if (json)
        print_summary_json(results, count);
    else
        print_summary(results, count);
    return cli_finish();
}

int cli_bench_codec(int argc, char **argv) {
    static const char *const types[] = {"all", "f32", "bf16", "f16", NULL};
    static const char *const layouts[] = {"all", "nchw", "nhwc", NULL};
    const char *method = "division";
    int threads = 0, rounds = 7, type = 0, layout = 0, json = 0;
    const dv_option options[] = {
        {"method", "CODEC", "the codec to measure", CLI_TEXT(&method)},
        {"type", "TYPE", "only this type of elements", CLI_WORD(&type, types)},
        {"layout", "LAYOUT", "only this layout", CLI_WORD(&layout, layouts)},
        {"rounds", "N", "rounds per case", CLI_INTEGER(&rounds, 1, BENCH_MAX_ROUNDS)},
        {"threads", "N", "threads to use; 0 for as many as OpenMP uses", CLI_INTEGER(&threads, 0, DV_MAX_THREADS)},
        {"json", NULL, "print one JSON object per case, then one with the geometric means", CLI_FLAG(&json)},
        CLI_OPTIONS_END,
    };
    const cli_usage usage = {.command = "bench codec",
                             .summary =
                                 "Packs and unpacks the maps of ResNet-50 at 224 and ResNet-18 at 32, 32 images each,\n"
                                 "in turns with memcpy of the same bytes. Speeds are GB/s of unpacked bytes.\n",
                             .options = options};
    int code = cli_parse(&usage, argc, argv, NULL);
    if (code != CLI_CONTINUE)
        return code;
    dv_codec codec;
    dv_error error;
    if (dv_codec_parse(method, &codec, &error) != DV_OK)
        return cli_report(&error);
    codec.threads = threads ? threads : dv_threads();
    if (!json)
        printf("%s, %s, %d threads; GB/s of unpacked bytes, median of %d rounds\n\n%-9s %12s %-4s %-6s%7s %7s %7s   "
               "%5s %5s   %6s\n",
               method, isa_name(), codec.threads, rounds, "network", "map", "type", "layout", "encode", "decode",
               "memcpy", "e/m", "d/m", "ratio");
    return measure_all(&codec, rounds, type, layout, json);
}
