/* Made-up maps. A map is a sum of value noise at several scales, the finer the weaker as in natural images,
 * and of a few shapes with hard edges; a bias and a ReLU follow.
 *
 * All arithmetic is on integers, 16 bits after the point, so that compilers and machines can't differ by a
 * rounding. The one conversion at the end is exact. */
#include <division/synthetic.h>

#include "base/random.h"
#include "base/status.h"

enum {
    POINT = 16,       /* bits after the point */
    ONE = 1 << POINT, /* 1.0 */
    OCTAVES = 5,
    SHAPES = 4,
    AXES = DV_MAX_RANK,
    SMALLEST_EXTENT = 32 /* maps smaller than this are a piece of one this large */
};

/* A position: depth, height and width, in fixed point. */
typedef struct point {
    int64_t at[AXES];
} point;

/* A ball, or with `flat` the half of space on one side of a plane. */
typedef struct shape {
    point centre;
    int64_t radius;
    int64_t normal[AXES];
    int flat;
} shape;

/* What all channels of an image see. */
typedef struct scene {
    dv_random key;
    int64_t extent; /* the longest side */
    shape shapes[SHAPES];
} scene;

/* How one channel sees it. */
typedef struct view {
    dv_random key;
    int64_t weights[SHAPES];
    int64_t shared, own; /* weights of the image's and of the channel's noise */
    int64_t bias;
    int64_t cosine, sine; /* the direction its noise is stretched along */
} view;

/* Sixteenths of a half turn: cosine and sine, in fixed point. */
static const int32_t directions[16][2] = {
    {65536, 0},      {64277, 12785},  {60547, 25080},  {54491, 36410},  {46341, 46341},  {36410, 54491},
    {25080, 60547},  {12785, 64277},  {0, 65536},      {-12785, 64277}, {-25080, 60547}, {-36410, 54491},
    {-46341, 46341}, {-54491, 36410}, {-60547, 25080}, {-64277, 12785},
};

static int64_t multiply(int64_t a, int64_t b) {
    return a * b >> POINT;
}

/* The word at `position` of the key's sequence, as a number in [low, high). */
static int64_t draw(dv_random key, uint32_t position, int64_t low, int64_t high) {
    return low + (int64_t)((uint64_t)(high - low) * dv_random_word(key, position) >> 32);
}

/* ---- noise --------------------------------------------------------------------------------- */

/* The noise at a corner of the lattice, in [-1, 1). */
static int64_t corner(dv_random key, const int64_t cell[AXES], unsigned which) {
    uint32_t position = 0;
    for (int i = 0; i < AXES; i++)
        position = position * 0x9e3779b1u + (uint32_t)(cell[i] + (which >> i & 1));
    return (int64_t)(dv_random_word(key, position) >> (31 - POINT)) - ONE;
}

/* 3t^2 - 2t^3: 0 at 0, 1 at 1, and flat at both. */
static int64_t smooth(int64_t t) {
    return multiply(multiply(t, t), 3 * ONE - 2 * t);
}

/* Noise on a lattice of edge 1, smooth between its corners. */
static int64_t value_noise(dv_random key, const point *position) {
    int64_t cell[AXES], part[AXES], sum = 0;
    for (int i = 0; i < AXES; i++) {
        cell[i] = position->at[i] >> POINT;
        part[i] = smooth(position->at[i] & (ONE - 1));
    }
    for (unsigned which = 0; which < 1u << AXES; which++) {
        int64_t weight = ONE;
        for (int i = 0; i < AXES; i++)
            weight = multiply(weight, which >> i & 1 ? part[i] : ONE - part[i]);
        if (weight != 0)
            sum += multiply(weight, corner(key, cell, which));
    }
    return sum;
}

/* Noise of several octaves: each has half the wavelength and half the amplitude of the one before. The longest
 * wavelength is 1; the result lies in (-2, 2). */
static int64_t octaves(dv_random key, const point *position) {
    int64_t sum = 0;
    for (int i = 0; i < OCTAVES; i++) {
        point finer;
        for (int axis = 0; axis < AXES; axis++) /* shifted, so that the lattices do not meet in the corner */
            finer.at[axis] = position->at[axis] * (1 << i) + i * (ONE / 3);
        sum += value_noise((dv_random){key.low + (uint32_t)i * 0x85ebca6bu, key.high}, &finer) >> i;
    }
    return sum;
}

/* ---- images and channels ------------------------------------------------------------------- */

/* Draws a shape in the last `rank` of the axes; the others have but one coordinate, 0. */
static shape make_shape(dv_random key, uint32_t first, int rank) {
    shape result = {.flat = (int)draw(key, first, 0, 4) == 0};
    const int32_t *direction = directions[draw(key, first + 1, 0, 16)];
    result.normal[0] = draw(key, first + 2, -ONE / 2, ONE / 2);
    result.normal[1] = direction[0];
    result.normal[2] = direction[1];
    result.radius = draw(key, first + 3, ONE / 8, ONE / 3);
    for (uint32_t i = AXES - (uint32_t)rank; i < AXES; i++)
        result.centre.at[i] = draw(key, first + 4 + i, ONE / 8, ONE - ONE / 8);
    return result;
}

static scene make_scene(const dv_map *map, uint64_t seed, size_t image) {
    scene result = {.key = dv_random_key((const uint64_t[]){seed, image}, 2), .extent = SMALLEST_EXTENT};
    for (int i = 0; i < map->rank; i++)
        if ((int64_t)map->sides[i] > result.extent)
            result.extent = (int64_t)map->sides[i];
    for (uint32_t i = 0; i < SHAPES; i++)
        result.shapes[i] = make_shape(result.key, i * 8, map->rank);
    return result;
}

static view make_view(uint64_t seed, size_t image, size_t channel) {
    /* The channel sees every image alike; only its noise differs. */
    dv_random key = dv_random_key((const uint64_t[]){seed, channel, 1}, 3);
    const int32_t *direction = directions[draw(key, 0, 0, 16)];
    view result = {.key = dv_random_key((const uint64_t[]){seed, channel, image, 2}, 4),
                   .shared = draw(key, 1, ONE / 2, 2 * ONE),
                   .own = draw(key, 2, ONE / 4, ONE),
                   .bias = draw(key, 3, -ONE / 4, ONE + ONE / 4),
                   .cosine = direction[0],
                   .sine = direction[1]};
    for (uint32_t i = 0; i < SHAPES; i++)
        result.weights[i] = draw(key, 4 + i, -ONE, ONE + ONE / 2);
    return result;
}

static int inside(const shape *form, const point *position) {
    int64_t along = 0, square = 0;
    for (int i = 0; i < AXES; i++) {
        int64_t distance = position->at[i] - form->centre.at[i];
        along += multiply(distance, form->normal[i]);
        square += multiply(distance, distance);
    }
    return form->flat ? along > 0 : square < multiply(form->radius, form->radius);
}

/* Turns a position in the plane of the last two axes and shortens it along the channel's direction, so that noise
 * taken there is stretched along it. */
static point stretch(const view *channel, const point *position) {
    int64_t y = position->at[1], x = position->at[2];
    int64_t along = multiply(x, channel->cosine) + multiply(y, channel->sine);
    int64_t across = multiply(y, channel->cosine) - multiply(x, channel->sine);
    return (point){{position->at[0] * 3, across * 5, along * 2}};
}

/* The element of a channel at a position; the longest side has length 1. */
static float element(const scene *image, const view *channel, const point *position) {
    point coarse = {{position->at[0] * 3, position->at[1] * 3, position->at[2] * 3}};
    point stretched = stretch(channel, position);
    int64_t sum = channel->bias;
    sum += multiply(channel->shared, octaves(image->key, &coarse));
    sum += multiply(channel->own, octaves(channel->key, &stretched));
    for (int i = 0; i < SHAPES; i++)
        if (inside(&image->shapes[i], position))
            sum += channel->weights[i];
    return sum > 0 ? (float)sum / (float)ONE : 0.0f;
}

/* ---- maps ---------------------------------------------------------------------------------- */

/* The position of the spatial index `index`, as a part of the scene. */
static point position_of(const dv_map *map, const scene *image, size_t index) {
    point result = {{0}};
    for (int i = map->rank - 1; i >= 0; i--) {
        int64_t coordinate = (int64_t)(index % map->sides[i]);
        result.at[i + AXES - map->rank] = coordinate * ONE / image->extent;
        index /= map->sides[i];
    }
    return result;
}

/* Fills one channel of one image: `area` elements, `stride` apart. */
static void fill_channel(const dv_map *map, const scene *image, const view *channel, size_t area, size_t stride,
                         float *dst) {
    for (size_t i = 0; i < area; i++) {
        point position = position_of(map, image, i);
        dst[i * stride] = element(image, channel, &position);
    }
}

dv_status dv_synthetic_map(const dv_map *map, uint64_t seed, float *dst, dv_error *error) {
    DV_TRY(dv_map_check(map, error));
    if (dst == NULL)
        return dv_fail(error, DV_ERROR_ARGUMENT, "dv_synthetic_map: nowhere to write: give a buffer");
    size_t count = dv_map_image_elements(map), area = count / map->channels;
    int first = map->layout == DV_NCHW;
    for (size_t n = 0; n < map->images; n++) {
        scene image = make_scene(map, seed, n);
        for (size_t c = 0; c < map->channels; c++) {
            view channel = make_view(seed, n, c);
            fill_channel(map, &image, &channel, area, first ? 1 : map->channels,
                         dst + n * count + c * (first ? area : 1));
        }
    }
    return DV_OK;
}
