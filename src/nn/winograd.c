/* Passes by Winograd's algorithm: 3x3 convolutions with stride 1 in a quarter of the multiplications
 * (nn/kernels/winograd.h says how). Tiles go through in chunks: their points, the products, the results.
 *
 * Results stand in rounding for a little: errors are about three times those of the direct sum, which oneDNN
 * computes. */
#include "nn/kernels/winograd.h"
#include "base/status.h"
#include "nn/parts.h"
#include "nn/pass.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { KERNEL = 3, TILE = DV_WINOGRAD_TILE, REACH = DV_WINOGRAD_REACH, POINTS = DV_WINOGRAD_POINTS };
enum { ROWS = DV_WINOGRAD_ROWS, PANEL = DV_WINOGRAD_PANEL };

/* One end of the convolution. */
typedef struct winograd_map {
    size_t channels;
    ptrdiff_t height, width;
} winograd_map;

typedef struct winograd_pass {
    dv_pass pass;
    const dv_winograd_kernels *kernels;
    winograd_map from, to;          /* what is read, and what is tiled: the results, or the gradient of the results */
    ptrdiff_t padding_y, padding_x; /* of `from` */
    dv_winograd_weights layout;
    size_t tiles_y, tiles_x, tiles; /* of an image, of all */
    size_t chunk;                   /* tiles that go through together, whole rows of the products */
    size_t from_stride, to_stride;  /* floats from one point to the next, in a chunk's points */
} winograd_pass;

static size_t round_up(size_t count, size_t unit) {
    return (count + unit - 1) / unit * unit;
}

/* ---- what it is good for -------------------------------------------------------------------- */

bool dv_winograd_suits(const dv_convolution_shape *shape) {
    const dv_window *window = &shape->window;
    if (!dv_winograd() || shape->type != DV_F32 || shape->rank != 2 || shape->groups != 1 ||
        shape->src_channels % PANEL || shape->dst_channels % PANEL)
        return false;
    size_t computed = 1, wanted = 1;
    for (int d = 0; d < 2; d++) {
        if (window->kernel[d] != KERNEL || window->stride[d] != 1 || window->dilation[d] != 1 ||
            window->padding[d] >= KERNEL)
            return false;
        computed *= round_up(shape->dst_sides[d], TILE);
        wanted *= shape->dst_sides[d];
    }
    /* Half of the tiles' results unused, or weights that are transformed for a handful of tiles: no gain. */
    return wanted * 2 >= computed && shape->images * computed >= 24 * TILE * TILE;
}

/* ---- tiles ---------------------------------------------------------------------------------- */

/* Where a tile begins in a map; with padding, before it. */
typedef struct tile_place {
    size_t image;
    ptrdiff_t y, x;
} tile_place;

static tile_place place_of(const winograd_pass *made, size_t tile) {
    size_t row = tile / made->tiles_x;
    return (tile_place){.image = row / made->tiles_y,
                        .y = (ptrdiff_t)(row % made->tiles_y) * TILE,
                        .x = (ptrdiff_t)(tile % made->tiles_x) * TILE};
}

static bool is_inside(const winograd_map *map, tile_place place, ptrdiff_t side) {
    return place.y >= 0 && place.x >= 0 && place.y + side <= map->height && place.x + side <= map->width;
}

/* The pixels y, x of image `image`. */
static size_t offset_of(const winograd_map *map, size_t image, ptrdiff_t y, ptrdiff_t x) {
    return (image * (size_t)(map->height * map->width) + (size_t)(y * map->width + x)) * map->channels;
}

/* The part of a line of `side` pixels from x on that lies in 0 .. width - 1, as pixels of the line. */
static ptrdiff_t line_begin(ptrdiff_t x) {
    return x < 0 ? -x : 0;
}

static ptrdiff_t line_end(ptrdiff_t x, ptrdiff_t side, ptrdiff_t width) {
    return width - x < side ? width - x : side;
}

/* The side x side pixels of a tile that reaches over the map's edge, with zeros where the map has none. */
static void copy_tile(const winograd_map *map, const float *data, tile_place place, ptrdiff_t side, float *tile) {
    ptrdiff_t begin = line_begin(place.x), end = line_end(place.x, side, map->width);
    memset(tile, 0, (size_t)(side * side) * map->channels * sizeof(float));
    for (ptrdiff_t i = line_begin(place.y); i < line_end(place.y, side, map->height) && begin < end; i++)
        memcpy(tile + (size_t)(i * side + begin) * map->channels,
               data + offset_of(map, place.image, place.y + i, place.x + begin),
               (size_t)(end - begin) * map->channels * sizeof(float));
}

/* What of such a tile lies in the map, into the map. */
static void copy_back(const winograd_map *map, const float *tile, tile_place place, ptrdiff_t side, float *data) {
    ptrdiff_t end = line_end(place.x, side, map->width);
    for (ptrdiff_t i = 0; i < line_end(place.y, side, map->height); i++)
        memcpy(data + offset_of(map, place.image, place.y + i, place.x), tile + (size_t)(i * side) * map->channels,
               (size_t)end * map->channels * sizeof(float));
}

/* Pixels of a tile where they are, or their copy with its edge filled. */
typedef struct tile_pixels {
    const float *data;
    size_t row; /* floats from one line to the next */
} tile_pixels;

static tile_pixels find_pixels(const winograd_map *map, const float *data, tile_place place, ptrdiff_t side,
                               float *copy) {
    if (is_inside(map, place, side))
        return (tile_pixels){data + offset_of(map, place.image, place.y, place.x), (size_t)map->width * map->channels};
    copy_tile(map, data, place, side, copy);
    return (tile_pixels){copy, (size_t)side * map->channels};
}

/* The points of what a tile takes. */
static void input_points(const winograd_pass *made, const float *data, size_t tile, float *copy, float *points) {
    tile_place place = place_of(made, tile);
    place.y -= made->padding_y, place.x -= made->padding_x;
    tile_pixels pixels = find_pixels(&made->from, data, place, REACH, copy);
    made->kernels->input(pixels.data, pixels.row, made->from.channels, points, made->from_stride);
}

/* Room for the copy of a tile of either end. */
static size_t copy_floats(const winograd_pass *made) {
    size_t channels = made->from.channels > made->to.channels ? made->from.channels : made->to.channels;
    return REACH * REACH * channels;
}

/* ---- forward and backward data -------------------------------------------------------------- */

/* A thread's part of the scratchpad. */
typedef struct chunk_space {
    float *from, *to; /* points of a chunk */
    float *copy;      /* of a tile */
} chunk_space;

/* Carves a thread's part from `scratchpad`; with NULL only *bytes grows. */
static chunk_space chunk_carve(const winograd_pass *made, void *scratchpad, size_t *bytes) {
    return (chunk_space){
        .from = dv_carve(scratchpad, bytes, POINTS * made->from_stride * sizeof(float)),
        .to = dv_carve(scratchpad, bytes, POINTS * made->to_stride * sizeof(float)),
        .copy = dv_carve(scratchpad, bytes, copy_floats(made) * sizeof(float)),
    };
}

static void output_pixels(const winograd_pass *made, const float *points, const float *bias, size_t tile, float *copy,
                          float *to) {
    const winograd_map *map = &made->to;
    tile_place place = place_of(made, tile);
    bool inside = is_inside(map, place, TILE);
    float *pixels = inside ? to + offset_of(map, place.image, place.y, place.x) : copy;
    made->kernels->output(points, made->to_stride, map->channels, bias, pixels,
                          (inside ? (size_t)map->width : TILE) * map->channels);
    if (!inside)
        copy_back(map, copy, place, TILE, to);
}

static void run_chunk(const winograd_pass *made, const float *from, const float *weights, const float *bias, float *to,
                      size_t first, const chunk_space *space) {
    const dv_winograd_kernels *kernels = made->kernels;
    size_t depth = made->from.channels, width = made->to.channels;
    size_t count = made->tiles - first < made->chunk ? made->tiles - first : made->chunk;
    for (size_t t = 0; t < count; t++)
        input_points(made, from, first + t, space->copy, space->from + t * depth);
    for (size_t p = 0; p < POINTS; p++)
        for (size_t column = 0; column < width; column += PANEL)
            kernels->multiply(space->from + p * made->from_stride, count, depth, weights + (p * width + column) * depth,
                              space->to + p * made->to_stride + column, width);
    for (size_t t = 0; t < count; t++)
        output_pixels(made, space->to + t * width, bias, first + t, space->copy, to);
}

static dv_status run(dv_pass *pass, const dv_pass_arrays *arrays, dv_error *error) {
    const winograd_pass *made = (const winograd_pass *)pass;
    bool back = pass->kind == DV_PASS_BACKWARD_DATA;
    const float *from = back ? arrays->dst : arrays->src, *weights = arrays->weights;
    const float *bias = pass->kind == DV_PASS_FORWARD ? arrays->bias : NULL;
    float *to = (float *)(back ? arrays->src : arrays->dst);
    (void)error;
#pragma omp parallel num_threads(pass->threads)
    {
        size_t part = pass->scratchpad_bytes / (size_t)pass->threads, bytes = 0;
        chunk_space space = chunk_carve(made, (char *)arrays->scratchpad + part * omp_get_thread_num(), &bytes);
#pragma omp for schedule(static)
        for (size_t first = 0; first < made->tiles; first += made->chunk)
            run_chunk(made, from, weights, bias, to, first, &space);
    }
    return DV_OK;
}

static dv_status pack_weights(dv_pass *pass, const float *plain, void *packed, void *scratchpad, const void **weights,
                              dv_error *error) {
    const winograd_pass *made = (const winograd_pass *)pass;
    const dv_winograd_weights *layout = &made->layout;
    size_t depth = made->from.channels, width = made->to.channels;
    (void)scratchpad, (void)error;
#pragma omp parallel for collapse(2) schedule(static) num_threads(pass->threads)
    for (size_t column = 0; column < width; column += PANEL)
        for (size_t d = 0; d < depth; d++)
            made->kernels->weights(plain + column * layout->column_stride + d * layout->row_stride, layout,
                                   (float *)packed + column * depth + d * PANEL, depth * width);
    *weights = packed;
    return DV_OK;
}

/* ---- backward weights ----------------------------------------------------------------------- */

/* The scratchpad. */
typedef struct gradient_space {
    float *from;   /* points [POINTS][tiles][channels] of a chunk */
    float *to;     /* points [POINTS][panels][tiles][PANEL] of its gradients */
    float *copies; /* of a tile, for each thread */
} gradient_space;

static gradient_space gradient_carve(const winograd_pass *made, void *scratchpad, size_t *bytes) {
    return (gradient_space){
        .from = dv_carve(scratchpad, bytes, POINTS * made->from_stride * sizeof(float)),
        .to = dv_carve(scratchpad, bytes, POINTS * made->to_stride * sizeof(float)),
        .copies = dv_carve(scratchpad, bytes, (size_t)made->pass.threads * copy_floats(made) * sizeof(float)),
    };
}

static void gradient_points(const winograd_pass *made, const float *data, size_t tile, float *copy, float *points) {
    tile_pixels pixels = find_pixels(&made->to, data, place_of(made, tile), TILE, copy);
    made->kernels->gradient(pixels.data, pixels.row, made->to.channels, points, made->to_stride, made->chunk * PANEL);
}

/* The threads of a team go together through a chunk: first over its tiles, then over the products. */
static void run_chunk_together(const winograd_pass *made, const dv_pass_arrays *arrays, float *weights, size_t first,
                               const gradient_space *space) {
    size_t depth = made->from.channels, width = made->to.channels;
    size_t count = made->tiles - first < made->chunk ? made->tiles - first : made->chunk;
    float *copy = space->copies + (size_t)omp_get_thread_num() * copy_floats(made);
#pragma omp for schedule(static)
    for (size_t t = 0; t < count; t++) {
        input_points(made, arrays->src, first + t, copy, space->from + t * depth);
        gradient_points(made, arrays->dst, first + t, copy, space->to + t * PANEL);
    }
#pragma omp for collapse(2) schedule(static)
    for (size_t p = 0; p < POINTS; p++)
        for (size_t column = 0; column < width; column += PANEL)
            made->kernels->multiply_add(space->from + p * made->from_stride, depth, count,
                                        space->to + p * made->to_stride + column * made->chunk,
                                        weights + (p * width + column) * depth);
}

static dv_status run_weights(dv_pass *pass, const dv_pass_arrays *arrays, dv_error *error) {
    const winograd_pass *made = (const winograd_pass *)pass;
    float *weights = (float *)arrays->weights;
    size_t bytes = 0, square = made->from.channels * made->to.channels;
    gradient_space space = gradient_carve(made, arrays->scratchpad, &bytes);
    (void)error;
#pragma omp parallel num_threads(pass->threads)
    {
#pragma omp for schedule(static)
        for (size_t p = 0; p < POINTS; p++)
            memset(weights + p * square, 0, square * sizeof(float));
        for (size_t first = 0; first < made->tiles; first += made->chunk)
            run_chunk_together(made, arrays, weights, first, &space);
    }
    return DV_OK;
}

static dv_status add_weights(dv_pass *pass, const void *packed, float *plain, void *scratchpad, dv_error *error) {
    const winograd_pass *made = (const winograd_pass *)pass;
    const dv_winograd_weights *layout = &made->layout;
    size_t depth = made->from.channels, width = made->to.channels;
    (void)scratchpad, (void)error;
#pragma omp parallel for collapse(2) schedule(static) num_threads(pass->threads)
    for (size_t column = 0; column < width; column += PANEL)
        for (size_t d = 0; d < depth; d++)
            made->kernels->add_weights((const float *)packed + column * depth + d * PANEL, depth * width, layout,
                                       plain + column * layout->column_stride + d * layout->row_stride);
    return DV_OK;
}

/* ---- making a pass -------------------------------------------------------------------------- */

static void destroy(dv_pass *pass) {
    free(pass);
}

static const dv_pass_methods with_weights = {.pack_weights = pack_weights, .run = run, .destroy = destroy};
static const dv_pass_methods of_weights = {.add_weights = add_weights, .run = run_weights, .destroy = destroy};

static winograd_map map_of(size_t channels, const size_t *sides) {
    return (winograd_map){channels, (ptrdiff_t)sides[0], (ptrdiff_t)sides[1]};
}

static void set_ends(winograd_pass *made, const dv_convolution_shape *shape) {
    bool back = made->pass.kind == DV_PASS_BACKWARD_DATA;
    const size_t *padding = shape->window.padding;
    size_t square = KERNEL * KERNEL, row = shape->src_channels * square;
    made->from = map_of(shape->src_channels, shape->src_sides);
    made->to = map_of(shape->dst_channels, shape->dst_sides);
    made->padding_y = (ptrdiff_t)padding[0], made->padding_x = (ptrdiff_t)padding[1];
    made->layout = (dv_winograd_weights){.column_stride = row, .row_stride = square};
    if (!back)
        return;
    winograd_map from = made->from;
    made->from = made->to, made->to = from;
    made->padding_y = KERNEL - 1 - made->padding_y, made->padding_x = KERNEL - 1 - made->padding_x;
    made->layout = (dv_winograd_weights){.column_stride = square, .row_stride = row, .turned = true};
}

/* Tiles whose points fit in a core's cache; more where the weights' do not fit in the shared one, so that they are
 * read less often; fewer where there is not a chunk for each thread. */
static size_t choose_chunk(const winograd_pass *made) {
    size_t tile_bytes = POINTS * (made->from.channels + made->to.channels) * sizeof(float);
    size_t weights_bytes = POINTS * made->from.channels * made->to.channels * sizeof(float);
    size_t least = weights_bytes > 4 << 20 ? 96 : 24, chunk = (256 << 10) / tile_bytes / ROWS * ROWS;
    if (chunk < least)
        chunk = least;
    size_t share = made->tiles;
    if (made->pass.kind != DV_PASS_BACKWARD_WEIGHTS)
        share = (made->tiles + (size_t)made->pass.threads - 1) / (size_t)made->pass.threads;
    else
        chunk = chunk < 96 ? 96 : chunk;
    return chunk < share ? chunk : round_up(share, ROWS);
}

dv_status dv_winograd_pass_new(dv_pass **pass, dv_pass_kind kind, const dv_convolution_shape *shape, const char *name,
                               dv_error *error) {
    winograd_pass *made = calloc(1, sizeof *made);
    if (!made)
        return dv_fail(error, DV_ERROR_MEMORY, "%s: no memory to prepare it", name);
    bool gradient = kind == DV_PASS_BACKWARD_WEIGHTS;
    made->pass = (dv_pass){.methods = gradient ? &of_weights : &with_weights,
                           .kind = kind,
                           .threads = omp_get_max_threads(),
                           .kernel = "winograd:fma"};
    made->kernels = dv_winograd();
    set_ends(made, shape);
    made->tiles_y = ((size_t)made->to.height + TILE - 1) / TILE;
    made->tiles_x = ((size_t)made->to.width + TILE - 1) / TILE;
    made->tiles = shape->images * made->tiles_y * made->tiles_x;
    made->chunk = choose_chunk(made);
    /* A line more, so that a tile's points do not all fall on the same few sets of the cache. */
    made->from_stride = made->chunk * made->from.channels + 16;
    made->to_stride = made->chunk * made->to.channels + 16;

    made->pass.weights_bytes = POINTS * made->from.channels * made->to.channels * sizeof(float);
    if (gradient) {
        (void)gradient_carve(made, NULL, &made->pass.scratchpad_bytes);
    } else {
        (void)chunk_carve(made, NULL, &made->pass.scratchpad_bytes);
        made->pass.scratchpad_bytes *= (size_t)made->pass.threads;
    }
    *pass = &made->pass;
    return DV_OK;
}
