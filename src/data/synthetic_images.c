/* Made-up labelled images: one of five shapes with one of two textures makes ten classes. Where it is, how large,
 * turned how, in which colours, lighter or darker than what is behind, lit from where: all of that is drawn
 * at random and says nothing about the class, and so do the clutter and the noise. So no pixel by itself, nor any
 * weighted sum of pixels, tells much; edges and textures put together do.
 *
 * An image is given by seed, split and index alone. Arithmetic is on f32, with operations that every machine rounds
 * alike, so the bytes are the same everywhere. Coordinates run from -1 to 1 over the image. */
#include "base/option_text.h"
#include "base/random.h"
#include "base/status.h"
#include "data/dataset.h"

#include <math.h>
#include <stdlib.h>

enum {
    SHAPES = 5,
    TEXTURES = 2,
    CLASSES = SHAPES * TEXTURES,
    CLUTTER = 4, /* behind the shape */
    LEAST_SIDE = 8,
    MOST_SIDE = 512,
    COLOURS = DV_DATA_CHANNELS
};

typedef struct synthetic {
    dv_dataset base;
    size_t seed;
} synthetic;

/* A cosine and a sine. */
typedef struct direction {
    float cosine, sine;
} direction;

/* A spot with soft edges; or, narrow along its direction, a streak. */
typedef struct spot {
    float x, y, along, across; /* centre; 1 / extents */
    direction turned;
    float colour[COLOURS], strength;
} spot;

/* All that is random about an image, but the noise. */
typedef struct scene {
    int shape, texture;
    float x, y, size;
    direction turned;                         /* the shape */
    direction grain;                          /* its texture */
    float frequency, phase[2], depth;         /* of the texture: waves per unit, and how strong it is */
    float ground[COLOURS], figure[COLOURS];   /* colours behind and of the shape */
    float slope_x[COLOURS], slope_y[COLOURS]; /* how the ground changes across the image */
    float light_x, light_y;                   /* how the figure does */
    spot clutter[CLUTTER], cover;             /* behind and in front of the shape */
    float noise;
    dv_random key;
} scene;

/* ---- drawing lots -------------------------------------------------------------------------- */

/* Takes numbers off a key's sequence, one after the other. */
typedef struct lots {
    dv_random key;
    uint32_t next;
} lots;

static float draw(lots *from, float low, float high) {
    return low + (high - low) * ((float)(dv_random_word(from->key, from->next++) >> 8) * 0x1p-24f);
}

static float draw_sign(lots *from) {
    return dv_random_word(from->key, from->next++) & 1 ? 1.0f : -1.0f;
}

/* A direction, nearly uniform: an eighth of a turn either way by the tangent of half the angle, then quarter
 * turns. */
static direction draw_direction(lots *from) {
    float half = draw(from, -0.41421356f, 0.41421356f), square = half * half;
    float cosine = (1 - square) / (1 + square), sine = 2 * half / (1 + square);
    if (draw_sign(from) < 0)
        return (direction){cosine * draw_sign(from), sine};
    return (direction){sine, cosine * draw_sign(from)};
}

static void draw_colour(lots *from, float low, float high, float colour[COLOURS]) {
    for (int c = 0; c < COLOURS; c++)
        colour[c] = draw(from, low, high);
}

static spot draw_spot(lots *from, float smallest, float largest) {
    spot made = {.x = draw(from, -1, 1), .y = draw(from, -1, 1), .turned = draw_direction(from)};
    made.along = 1 / draw(from, smallest, largest);
    made.across = 1 / draw(from, smallest, largest);
    made.strength = draw(from, 0.3f, 0.9f);
    draw_colour(from, 0, 1, made.colour);
    return made;
}

/* Ground and figure: each as often the lighter one, and never too alike. */
static void draw_colours(lots *from, scene *made) {
    float sign = draw_sign(from);
    draw_colour(from, 0.35f, 0.65f, made->ground);
    for (int c = 0; c < COLOURS; c++) {
        made->figure[c] = made->ground[c] + sign * draw(from, 0.25f, 0.4f);
        made->slope_x[c] = draw(from, -0.2f, 0.2f);
        made->slope_y[c] = draw(from, -0.2f, 0.2f);
    }
    made->light_x = draw(from, -0.4f, 0.4f);
    made->light_y = draw(from, -0.4f, 0.4f);
}

static scene draw_scene(dv_random key, int label) {
    lots from = {key, 0};
    scene made = {.shape = label % SHAPES, .texture = label / SHAPES, .key = key};
    made.x = draw(&from, -0.35f, 0.35f);
    made.y = draw(&from, -0.35f, 0.35f);
    made.size = draw(&from, 0.45f, 0.8f);
    made.turned = draw_direction(&from);
    made.grain = draw_direction(&from);
    made.frequency = draw(&from, 2.2f, 3.4f);
    made.phase[0] = draw(&from, 0, 1);
    made.phase[1] = draw(&from, 0, 1);
    made.depth = draw(&from, 0.5f, 0.8f);
    draw_colours(&from, &made);
    for (int i = 0; i < CLUTTER; i++)
        made.clutter[i] = draw_spot(&from, 0.1f, 0.6f);
    made.cover = draw_spot(&from, 0.1f, 0.25f);
    made.noise = draw(&from, 0.05f, 0.2f);
    return made;
}

/* ---- shapes: the distance from the edge, negative inside --------------------------------- */

static void disc(const float *restrict u, const float *restrict v, size_t count, float *restrict distance) {
    for (size_t i = 0; i < count; i++)
        distance[i] = sqrtf(u[i] * u[i] + v[i] * v[i]) - 0.8f;
}

static void ring(const float *restrict u, const float *restrict v, size_t count, float *restrict distance) {
    for (size_t i = 0; i < count; i++)
        distance[i] = fabsf(sqrtf(u[i] * u[i] + v[i] * v[i]) - 0.68f) - 0.27f;
}

static float larger(float a, float b) {
    return a > b ? a : b;
}

static float smaller(float a, float b) {
    return a < b ? a : b;
}

static void square(const float *restrict u, const float *restrict v, size_t count, float *restrict distance) {
    for (size_t i = 0; i < count; i++)
        distance[i] = larger(fabsf(u[i]), fabsf(v[i])) - 0.72f;
}

static void triangle(const float *restrict u, const float *restrict v, size_t count, float *restrict distance) {
    for (size_t i = 0; i < count; i++)
        distance[i] = larger(fabsf(u[i]) * 0.8660254f + v[i] * 0.5f, -v[i]) - 0.55f;
}

static void cross(const float *restrict u, const float *restrict v, size_t count, float *restrict distance) {
    for (size_t i = 0; i < count; i++) {
        float a = fabsf(u[i]), b = fabsf(v[i]);
        distance[i] = smaller(larger(a - 0.28f, b - 0.98f), larger(b - 0.28f, a - 0.98f));
    }
}

typedef void (*shape_function)(const float *restrict u, const float *restrict v, size_t count,
                               float *restrict distance);
static const shape_function shapes[SHAPES] = {disc, ring, square, triangle, cross};

/* ---- a row of pixels ----------------------------------------------------------------------- */

/* One row of the image, colour by colour, and room for what it takes to paint it. */
typedef struct row {
    size_t side;
    float pixel; /* its extent, in coordinates */
    float y, x[MOST_SIDE];
    float colour[COLOURS][MOST_SIDE];
    float u[MOST_SIDE], v[MOST_SIDE], cover[MOST_SIDE], tone[MOST_SIDE];
} row;

/* The row's positions as a thing at (x, y), turned and scaled, sees them. */
static void place(row *line, float x, float y, direction turned, float scale_u, float scale_v) {
    float slope_u = turned.cosine * scale_u, start_u = turned.sine * scale_u * (line->y - y);
    float slope_v = -turned.sine * scale_v, start_v = turned.cosine * scale_v * (line->y - y);
    for (size_t i = 0; i < line->side; i++) {
        float along = line->x[i] - x;
        line->u[i] = start_u + slope_u * along;
        line->v[i] = start_v + slope_v * along;
    }
}

static void paint_ground(row *line, const scene *image) {
    for (int c = 0; c < COLOURS; c++) {
        float start = image->ground[c] + image->slope_y[c] * line->y, slope = image->slope_x[c];
        for (size_t i = 0; i < line->side; i++)
            line->colour[c][i] = start + slope * line->x[i];
    }
}

static void paint_spot(row *line, const spot *from) {
    place(line, from->x, from->y, from->turned, from->along, from->across);
    for (size_t i = 0; i < line->side; i++) {
        float inside = larger(1 - line->u[i] * line->u[i] - line->v[i] * line->v[i], 0);
        line->cover[i] = from->strength * smaller(2 * inside, 1);
    }
    for (int c = 0; c < COLOURS; c++)
        for (size_t i = 0; i < line->side; i++)
            line->colour[c][i] += line->cover[i] * (from->colour[c] - line->colour[c][i]);
}

/* A wave of period 1 between -1 and 1, with steep flanks. Not for positions below -64. */
static float wave(float position) {
    float part = position - (float)((int)(position + 64) - 64);
    return smaller(larger(8 * fabsf(part - 0.5f) - 2, -1), 1);
}

/* The texture, -1 to 1: stripes, or a chequerboard. */
static void make_tone(row *line, const scene *image) {
    place(line, image->x, image->y, image->grain, image->frequency, image->frequency);
    for (size_t i = 0; i < line->side; i++)
        line->tone[i] = wave(line->u[i] + image->phase[0]);
    if (image->texture == 1)
        for (size_t i = 0; i < line->side; i++)
            line->tone[i] *= wave(line->v[i] + image->phase[1]);
}

/* How much of each pixel the shape covers. */
static void make_cover(row *line, const scene *image) {
    float scale = 1 / image->size, sharp = image->size / line->pixel;
    place(line, image->x, image->y, image->turned, scale, scale);
    shapes[image->shape](line->u, line->v, line->side, line->cover);
    for (size_t i = 0; i < line->side; i++)
        line->cover[i] = smaller(larger(0.5f - line->cover[i] * sharp, 0), 1);
}

static void paint_shape(row *line, const scene *image) {
    make_tone(line, image);
    make_cover(line, image);
    for (int c = 0; c < COLOURS; c++) {
        float contrast = image->figure[c] - image->ground[c];
        for (size_t i = 0; i < line->side; i++) {
            float light = 1 + image->light_x * line->x[i] + image->light_y * line->y;
            float figure = image->figure[c] * light + image->depth * contrast * (line->tone[i] - 0.5f);
            line->colour[c][i] += line->cover[i] * (figure - line->colour[c][i]);
        }
    }
}

/* Adds noise and writes the row as bytes; each pixel has one word of the sequence, ten bits a colour. */
static void finish_row(const row *line, const scene *image, uint32_t first, uint8_t *dst) {
    float scale = image->noise * 255 * 0x1p-9f, offset = 0.5f - image->noise * 255;
    for (size_t i = 0; i < line->side; i++) {
        uint32_t word = dv_random_word(image->key, first + (uint32_t)i);
        for (int c = 0; c < COLOURS; c++) {
            float noise = (float)(int)(word >> (10 * c) & 1023) * scale + offset;
            float level = line->colour[c][i] * 255 + noise;
            dst[i * COLOURS + (size_t)c] = (uint8_t)(int)smaller(larger(level, 0), 255);
        }
    }
}

static void paint(const scene *image, size_t side, uint8_t *dst) {
    enum { NOISE = 1 << 16 }; /* where in the sequence the noise begins */
    row line = {.side = side, .pixel = 2 / (float)side};
    for (size_t i = 0; i < side; i++)
        line.x[i] = ((float)i + 0.5f) * line.pixel - 1;
    for (size_t i = 0; i < side; i++) {
        line.y = line.x[i];
        paint_ground(&line, image);
        for (int k = 0; k < CLUTTER; k++)
            paint_spot(&line, &image->clutter[k]);
        paint_shape(&line, image);
        paint_spot(&line, &image->cover);
        finish_row(&line, image, NOISE + (uint32_t)(i * side), dst + i * side * COLOURS);
    }
}

/* ---- the data set -------------------------------------------------------------------------- */

static dv_status load(const dv_dataset *dataset, dv_split split, size_t index, uint8_t *image, int32_t *label,
                      dv_error *error) {
    const synthetic *data = (const synthetic *)dataset;
    (void)error;
    *label = (int32_t)(index % CLASSES);
    dv_random key = dv_random_key((const uint64_t[]){data->seed, (uint64_t)split, index}, 3);
    scene made = draw_scene(key, *label);
    paint(&made, dataset->shape.side, image);
    return DV_OK;
}

static dv_status find_label(const dv_dataset *dataset, dv_split split, size_t index, int32_t *label, dv_error *error) {
    (void)dataset;
    (void)split;
    (void)error;
    *label = (int32_t)(index % CLASSES);
    return DV_OK;
}

static void close_synthetic(dv_dataset *dataset) {
    free(dataset);
}

static const dv_option options[] = {
    {"side", "N", "of the images", DV_COUNT_AT(synthetic, base.shape.side, LEAST_SIDE, MOST_SIDE)},
    {"train", "N", "images to train", DV_COUNT_AT(synthetic, base.shape.images[DV_TRAIN], 1, 1e9)},
    {"test", "N", "images to test", DV_COUNT_AT(synthetic, base.shape.images[DV_TEST], 1, 1e9)},
    {"seed", "N", "of the images", DV_COUNT_AT(synthetic, seed, 0, 1e9)},
};

/* By label: the shape, then its texture. */
static char *class_names[CLASSES] = {"striped disc",       "striped ring",   "striped square", "striped triangle",
                                     "striped cross",      "chequered disc", "chequered ring", "chequered square",
                                     "chequered triangle", "chequered cross"};

/* Images are not varied further: each is already another. */
static dv_status open_synthetic(const char *text, const dv_dataset_options *split, dv_dataset **dataset,
                                dv_error *error) {
    (void)split;
    synthetic made = {
        .base = {.kind = &dv_synthetic_images,
                 .shape = {.images = {50000, 10000}, .classes = CLASSES, .side = 32},
                 .usual = {.crop = DV_CROP_NONE},
                 .class_names = class_names,
                 .normalisation = {.mean = {0.5, 0.5, 0.5}, .deviation = {50. / 255, 50. / 255, 50. / 255}}}};
    const dv_option_table table = {options, sizeof options / sizeof *options, &made};
    DV_TRY(dv_option_text_parse("synthetic", text, &table, 1, error));
    synthetic *copy = malloc(sizeof *copy);
    if (copy == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory for a data set: free some");
    *copy = made;
    *dataset = &copy->base;
    return DV_OK;
}

const dv_dataset_kind dv_synthetic_images = {
    .name = "synthetic",
    .usage = "synthetic[:side=32,train=50000,test=10000,seed=0]",
    .help = "made-up images: ten classes of textured shapes with shading, clutter and noise",
    .open = open_synthetic,
    .close = close_synthetic,
    .load = load,
    .label = find_label,
};
