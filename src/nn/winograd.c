/* Passes by Winograd's algorithm: 3x3 convolutions with stride 1 in a quarter of the multiplications, with stride 2 in
 * little more than half of them (nn/kernels/winograd.h says how). Rounding errors are a few times those of the direct
 * sum.
 *
 * Groups of channels go through one after the other, as convolutions of their own.
 *
 * Tiles go through in chunks that fit in a cache: their points, the products, the results. The points of the weights
 * are four times as many as the weights: they are found at each run, of as many channels at a time as fit in
 * WEIGHTS_BYTES, so that a wide layer does not need four times its weights. */
#include "nn/kernels/winograd.h"
#include "base/cpu.h"
#include "base/sizes.h"
#include "base/status.h"
#include "nn/parts.h"
#include "nn/pass.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNEL = 3, TILE = 4, ROWS = DV_WINOGRAD_ROWS, PANEL = DV_WINOGRAD_PANEL };
enum { SIDE = DV_WINOGRAD_SIDE, WEIGHTS_POINTS = SIDE * SIDE };
enum { WEIGHTS_BYTES = 10 << 20, CHUNK_BYTES = 256 << 10, MOST_CHUNK_BYTES = 4 << 20, PARTS_BYTES = 5 << 20 };
enum { FEW_TILES = 24, MANY_TILES = 96, MOST_PARTS = 4 };

/* One end of the convolution. */
typedef struct winograd_map {
    size_t channels, all_channels; /* of a group; of all */
    ptrdiff_t height, width;
} winograd_map;

typedef struct winograd_pass {
    dv_pass pass;
    const dv_winograd_kernels *kernels;
    const dv_winograd_form *form;
    dv_type type; /* of both maps */
    size_t groups;
    size_t points;                  /* of a tile */
    winograd_map from, to;          /* what is read, and what is tiled: the results, or the gradient of the results */
    ptrdiff_t padding_y, padding_x; /* of `from` */
    dv_winograd_weights layout;
    size_t tiles_y, tiles_x, tiles; /* of an image, of all */
    size_t chunk;                   /* tiles that go through together, whole rows of the products */
    size_t parts, part_tiles;       /* of a gradient: they have sums of their own; tiles of a part */
    size_t block;                   /* channels of `to` that go through together, whole panels */
    size_t depth;                   /* rows of a panel of weights: the channels of `from`, an even number */
    size_t from_row;                /* floats of a tile at a point: these channels, whole panels */
    size_t from_stride, to_stride;  /* floats from one point to the next, in a chunk's points */
    size_t weights_stride;          /* in a block's */
} winograd_pass;

static size_t round_up(size_t count, size_t unit) {
    return dv_divide_up(count, unit) * unit;
}

/* ---- what it is good for -------------------------------------------------------------------- */

/* Groups with channels for a panel. With fewer, it would multiply zeros most of the time. */
static bool has_groups_for_panels(const dv_convolution_shape *shape) {
    return shape->groups == 1 || dv_smaller(shape->src_channels, shape->dst_channels) / shape->groups >= PANEL;
}

static bool suits(dv_pass_kind kind, const dv_convolution_shape *shape) {
    (void)kind;
    const dv_window *window = &shape->window;
    if (!dv_winograd() || shape->rank != 2 || !has_groups_for_panels(shape))
        return false;
    for (int d = 0; d < 2; d++) {
        if (window->kernel[d] != KERNEL || window->dilation[d] != 1 || window->stride[d] != window->stride[0])
            return false;
        if (window->stride[d] == 1 ? window->padding[d] >= KERNEL : window->stride[d] != 2 || window->padding[d] != 1)
            return false;
    }
    return true;
}

/* Whether it is faster than the direct sum, unless half of the tiles' results are unused, or the weights are
 * transformed for a handful of tiles; of one group, with whole panels: others are for a measurement. Of f32 with AVX2;
 * with AVX-512 that depends on the processor, and NEON was not measured. Of bf16 everywhere: dot products of bf16 are
 * at best twice as fast as sums of f32, and on many processors no faster. */
static bool is_expected(dv_pass_kind kind, const dv_convolution_shape *shape) {
    if ((shape->type == DV_F32 && dv_isa_current() != DV_ISA_AVX2) || !suits(kind, shape) || shape->groups != 1 ||
        shape->src_channels % PANEL || shape->dst_channels % PANEL)
        return false;
    size_t computed = 1, wanted = 1;
    for (int d = 0; d < 2; d++) {
        computed *= round_up(shape->dst_sides[d], TILE);
        wanted *= shape->dst_sides[d];
    }
    return wanted * 2 >= computed && shape->images * computed >= 24 * TILE * TILE;
}

/* ---- tiles ---------------------------------------------------------------------------------- */

/* Where a tile begins in a map; with padding, before it. */
typedef struct tile_place {
    size_t image;
    ptrdiff_t y, x;
} tile_place;

/* In a map where tiles begin every `step` pixels. */
static tile_place place_of(const winograd_pass *made, size_t tile, int step) {
    size_t row = tile / made->tiles_x;
    return (tile_place){.image = row / made->tiles_y,
                        .y = (ptrdiff_t)(row % made->tiles_y) * step,
                        .x = (ptrdiff_t)(tile % made->tiles_x) * step};
}

/* The part of `side` lines from `first` on that a map with `length` of them has. */
static int part_begin(ptrdiff_t first) {
    return first < 0 ? (int)-first : 0;
}

static int part_end(ptrdiff_t first, int side, ptrdiff_t length) {
    return length - first < side ? (int)(length - first) : side;
}

/* Channels from `channel` on of side x side pixels of a map. Before the map's begin, their address is found by
 * arithmetic on integers and not used. */
static dv_winograd_pixels pixels_of(const winograd_map *map, dv_type type, const void *data, tile_place place, int side,
                                    size_t channel) {
    ptrdiff_t pixel = (ptrdiff_t)place.image * map->height * map->width + place.y * map->width + place.x;
    ptrdiff_t offset = pixel * (ptrdiff_t)map->all_channels + (ptrdiff_t)channel;
    return (dv_winograd_pixels){.data = (void *)((intptr_t)data + offset * (ptrdiff_t)dv_type_bytes(type)),
                                .type = type,
                                .row = (size_t)map->width * map->all_channels,
                                .pixel = map->all_channels,
                                .top = part_begin(place.y),
                                .bottom = part_end(place.y, side, map->height),
                                .left = part_begin(place.x),
                                .right = part_end(place.x, side, map->width)};
}

/* The points of what a tile takes of a group. */
static void input_points(const winograd_pass *made, const void *data, size_t group, size_t tile, float *points) {
    tile_place place = place_of(made, tile, made->form->step);
    place.y -= made->padding_y, place.x -= made->padding_x;
    dv_winograd_pixels pixels =
        pixels_of(&made->from, made->type, data, place, made->form->reach, group * made->from.channels);
    made->form->input(&pixels, made->from.channels, points, made->from_stride);
}

/* The part of what is tiled that is a tile's, from channel `channel` on. */
static dv_winograd_pixels tile_of(const winograd_pass *made, const void *data, size_t tile, size_t channel) {
    int side = made->form->tile;
    return pixels_of(&made->to, made->type, data, place_of(made, tile, side), side, channel);
}

/* The point of the weights that a tile's point is multiplied with. */
static size_t weights_point(const dv_winograd_form *form, size_t point) {
    size_t side = (size_t)form->side;
    return (size_t)form->weights_point[point / side] * SIDE + (size_t)form->weights_point[point % side];
}

/* ---- forward and backward data -------------------------------------------------------------- */

/* Some of the channels of a group of `to`: a block, or what is left of them. */
typedef struct channel_block {
    size_t group, first, count;
} channel_block;

static channel_block block_at(const winograd_pass *made, size_t group, size_t first) {
    return (channel_block){group, first, dv_smaller(made->block, made->to.channels - first)};
}

/* Its first channel among those of all groups. */
static size_t channel_of(const winograd_pass *made, channel_block block) {
    return block.group * made->to.channels + block.first;
}

/* Channels of a block that a panel has. */
static size_t columns_at(channel_block block, size_t column) {
    return dv_smaller(PANEL, block.count - column);
}

/* Where a block's plain weights are, of its channel `column` and of channel `d` of `from`. */
static size_t weights_at(const winograd_pass *made, channel_block block, size_t column, size_t d) {
    size_t group = made->from.channels * made->to.channels * KERNEL * KERNEL;
    return block.group * group + (block.first + column) * made->layout.column_stride + d * made->layout.row_stride;
}

static size_t tiles_from(const winograd_pass *made, size_t first) {
    return dv_smaller(made->chunk, made->tiles - first);
}

/* The workspace: one array that all threads share, and the others of one thread. */
typedef struct chunk_space {
    float *weights;   /* points [WEIGHTS_POINTS][panels][depth][PANEL] of a block */
    float *from, *to; /* points [points][tiles][channels] of a chunk */
} chunk_space;

/* Carves it; with workspace NULL it only counts its bytes. */
static chunk_space chunk_carve(const winograd_pass *made, void *workspace, size_t thread, size_t *bytes) {
    chunk_space space = {.weights = dv_carve(workspace, bytes, WEIGHTS_POINTS * made->weights_stride * sizeof(float))};
    for (size_t i = 0; i <= thread; i++) {
        space.from = dv_carve(workspace, bytes, made->points * made->from_stride * sizeof(float));
        space.to = dv_carve(workspace, bytes, made->points * made->to_stride * sizeof(float));
    }
    return space;
}

static void run_chunk(const winograd_pass *made, const void *from, const float *bias, void *to, size_t first,
                      channel_block block, const chunk_space *space) {
    size_t count = tiles_from(made, first);
    for (size_t t = 0; t < count; t++)
        input_points(made, from, block.group, first + t, space->from + t * made->from_row);
    for (size_t p = 0; p < made->points; p++) {
        const float *weights = space->weights + weights_point(made->form, p) * made->weights_stride;
        for (size_t column = 0; column < block.count; column += PANEL)
            made->kernels->multiply(space->from + p * made->from_stride, made->from_row, count, made->from.channels,
                                    weights + column * made->depth, space->to + p * made->to_stride + column,
                                    made->block);
    }
    size_t channel = channel_of(made, block);
    for (size_t t = 0; t < count; t++) {
        dv_winograd_pixels pixels = tile_of(made, to, first + t, channel);
        made->form->output(space->to + t * made->block, made->to_stride, block.count, bias ? bias + channel : NULL,
                           &pixels);
    }
}

/* The threads of a team go together through a block: first over its weights, then over the tiles. */
static void run_block(const winograd_pass *made, const dv_pass_arrays *arrays, channel_block block,
                      const chunk_space *space) {
    bool back = made->pass.kind == DV_PASS_BACKWARD_DATA;
    const void *from = back ? arrays->dst : arrays->src;
    const float *plain = arrays->weights;
    const float *bias = made->pass.kind == DV_PASS_FORWARD ? arrays->bias : NULL;
    void *to = (void *)(back ? arrays->src : arrays->dst);
    size_t depth = made->from.channels;
#pragma omp for collapse(2) schedule(static)
    for (size_t column = 0; column < block.count; column += PANEL)
        for (size_t d = 0; d < depth; d++)
            made->form->weights(plain + weights_at(made, block, column, d), &made->layout, columns_at(block, column),
                                space->weights + column * made->depth + d * PANEL, made->weights_stride);
#pragma omp for schedule(static)
    for (size_t first = 0; first < made->tiles; first += made->chunk)
        run_chunk(made, from, bias, to, first, block, space);
}

static dv_status run(dv_pass *pass, const dv_pass_arrays *arrays, dv_error *error) {
    const winograd_pass *made = (const winograd_pass *)pass;
    (void)error;
#pragma omp parallel num_threads(pass->threads)
    {
        size_t bytes = 0;
        chunk_space space = chunk_carve(made, arrays->workspace, (size_t)omp_get_thread_num(), &bytes);
        for (size_t group = 0; group < made->groups; group++)
            for (size_t first = 0; first < made->to.channels; first += made->block)
                run_block(made, arrays, block_at(made, group, first), &space);
    }
    return DV_OK;
}

static dv_status pack_weights(dv_pass *pass, const float *plain, void *packed, void *workspace, const void **weights,
                              dv_error *error) {
    (void)pass, (void)packed, (void)workspace, (void)error;
    *weights = plain;
    return DV_OK;
}

/* ---- backward weights ----------------------------------------------------------------------- */

/* The workspace. Each part of the tiles has sums of its own, so that threads which take parts hand each other nothing:
 * handing a chunk's points from one core's cache to the other's at each chunk took as long as the products. How many
 * parts there are is for the shape to say, so that the sums' order and their bits are the same for any number of
 * threads. Where threads are more than parts, or there is one, all of them go through each part together. */
typedef struct gradient_space {
    float *weights; /* points [parts][WEIGHTS_POINTS][panels][depth][PANEL] of a block's gradient */
    float *from;    /* points [points][tiles][channels] of a chunk */
    float *to;      /* points [points][panels][tiles][PANEL] of a chunk's gradients */
} gradient_space;

static bool by_parts(const winograd_pass *made) {
    return made->parts > 1 && made->parts >= (size_t)made->pass.threads;
}

static size_t part_floats(const winograd_pass *made) {
    return WEIGHTS_POINTS * made->weights_stride;
}

/* Carves it, with the chunk's arrays of one thread, or of all together. */
static gradient_space gradient_carve(const winograd_pass *made, void *workspace, size_t thread, size_t *bytes) {
    gradient_space space = {.weights = dv_carve(workspace, bytes, made->parts * part_floats(made) * sizeof(float))};
    for (size_t i = 0; i <= (by_parts(made) ? thread : 0); i++) {
        space.from = dv_carve(workspace, bytes, made->points * made->from_stride * sizeof(float));
        space.to = dv_carve(workspace, bytes, made->points * made->to_stride * sizeof(float));
    }
    return space;
}

/* Tile `first + t` to the points of a chunk. */
static void add_tile(const winograd_pass *made, const dv_pass_arrays *arrays, size_t first, size_t t,
                     channel_block block, const gradient_space *space) {
    input_points(made, arrays->src, block.group, first + t, space->from + t * made->from_row);
    dv_winograd_pixels pixels = tile_of(made, arrays->dst, first + t, channel_of(made, block));
    made->form->gradient(&pixels, block.count, space->to + t * PANEL, made->to_stride, made->chunk * PANEL);
}

/* Adds a chunk's products to one point of a panel of the gradient: one product, or several that share it. */
static void add_products(const winograd_pass *made, size_t point, size_t column, size_t count,
                         const gradient_space *space, float *weights) {
    for (size_t p = 0; p < made->points; p++)
        if (weights_point(made->form, p) == point)
            made->kernels->multiply_add(space->from + p * made->from_stride, made->from_row, made->depth, count,
                                        space->to + p * made->to_stride + column * made->chunk,
                                        weights + point * made->weights_stride + column * made->depth);
}

/* One thread goes through a chunk. */
static void add_chunk_alone(const winograd_pass *made, const dv_pass_arrays *arrays, size_t first, size_t count,
                            channel_block block, const gradient_space *space, float *weights) {
    for (size_t t = 0; t < count; t++)
        add_tile(made, arrays, first, t, block, space);
    for (size_t point = 0; point < WEIGHTS_POINTS; point++)
        for (size_t column = 0; column < block.count; column += PANEL)
            add_products(made, point, column, count, space, weights);
}

/* The threads of a team go together through a chunk: first over its tiles, then over the products. */
static void add_chunk(const winograd_pass *made, const dv_pass_arrays *arrays, size_t first, size_t count,
                      channel_block block, const gradient_space *space, float *weights) {
#pragma omp for schedule(static)
    for (size_t t = 0; t < count; t++)
        add_tile(made, arrays, first, t, block, space);
#pragma omp for collapse(2) schedule(dynamic, 1) /* the last point may have more products than all others */
    for (size_t i = 0; i < WEIGHTS_POINTS; i++)
        for (size_t column = 0; column < block.count; column += PANEL)
            add_products(made, WEIGHTS_POINTS - 1 - i, column, count, space, weights);
}

/* A thread of its own, or all of them, go through the chunks of a part. */
static void add_part(const winograd_pass *made, const dv_pass_arrays *arrays, size_t part, channel_block block,
                     const gradient_space *space, bool alone) {
    float *weights = space->weights + part * part_floats(made);
    size_t first = part * made->part_tiles, end = dv_smaller(first + made->part_tiles, made->tiles);
    for (; first < end; first += made->chunk)
        (alone ? add_chunk_alone : add_chunk)(made, arrays, first, dv_smaller(made->chunk, end - first), block, space,
                                              weights);
}

static void add_parts(const winograd_pass *made, const dv_pass_arrays *arrays, channel_block block,
                      const gradient_space *space) {
    if (by_parts(made)) {
#pragma omp for schedule(static)
        for (size_t part = 0; part < made->parts; part++)
            add_part(made, arrays, part, block, space, true);
    } else {
        for (size_t part = 0; part < made->parts; part++)
            add_part(made, arrays, part, block, space, false);
    }
}

/* The sums of all parts at a point, in those of the first. */
static void sum_parts(const winograd_pass *made, size_t point, float *weights) {
    float *sum = weights + point * made->weights_stride;
    for (size_t part = 1; part < made->parts; part++)
        for (size_t i = 0; i < made->weights_stride; i++)
            sum[i] += sum[part * part_floats(made) + i];
}

/* A block of the gradient: from nothing through all chunks to the plain one. */
static void add_block(const winograd_pass *made, const dv_pass_arrays *arrays, channel_block block,
                      const gradient_space *space) {
    size_t depth = made->from.channels;
#pragma omp for schedule(static)
    for (size_t i = 0; i < made->parts * WEIGHTS_POINTS; i++)
        memset(space->weights + i * made->weights_stride, 0, made->weights_stride * sizeof(float));
    add_parts(made, arrays, block, space);
#pragma omp for schedule(static)
    for (size_t point = 0; point < WEIGHTS_POINTS; point++)
        sum_parts(made, point, space->weights);
#pragma omp for collapse(2) schedule(static)
    for (size_t column = 0; column < block.count; column += PANEL)
        for (size_t d = 0; d < depth; d++)
            made->form->add_weights(space->weights + column * made->depth + d * PANEL, made->weights_stride,
                                    &made->layout, columns_at(block, column),
                                    arrays->gradient + weights_at(made, block, column, d));
}

static dv_status run_gradient(dv_pass *pass, const dv_pass_arrays *arrays, dv_error *error) {
    const winograd_pass *made = (const winograd_pass *)pass;
    (void)error;
#pragma omp parallel num_threads(pass->threads)
    {
        size_t bytes = 0;
        gradient_space space = gradient_carve(made, arrays->workspace, (size_t)omp_get_thread_num(), &bytes);
        for (size_t group = 0; group < made->groups; group++)
            for (size_t first = 0; first < made->to.channels; first += made->block)
                add_block(made, arrays, block_at(made, group, first), &space);
    }
    return DV_OK;
}

/* ---- making a pass -------------------------------------------------------------------------- */

static void destroy(dv_pass *pass) {
    free(pass);
}

static const dv_pass_methods methods = {.pack_weights = pack_weights, .run = run, .destroy = destroy};
static const dv_pass_methods gradient_methods = {.run = run_gradient, .destroy = destroy};

static winograd_map map_of(size_t channels, size_t groups, const size_t *sides) {
    return (winograd_map){channels / groups, channels, (ptrdiff_t)sides[0], (ptrdiff_t)sides[1]};
}

static void set_ends(winograd_pass *made, const dv_convolution_shape *shape) {
    const size_t *padding = shape->window.padding;
    made->from = map_of(shape->src_channels, shape->groups, shape->src_sides);
    made->to = map_of(shape->dst_channels, shape->groups, shape->dst_sides);
    size_t square = KERNEL * KERNEL, row = made->from.channels * square;
    made->padding_y = (ptrdiff_t)padding[0], made->padding_x = (ptrdiff_t)padding[1];
    made->layout = (dv_winograd_weights){.column_stride = row, .row_stride = square};
    if (made->pass.kind != DV_PASS_BACKWARD_DATA)
        return;
    winograd_map from = made->from;
    made->from = made->to, made->to = from;
    if (shape->window.stride[0] == 1)
        made->padding_y = KERNEL - 1 - made->padding_y, made->padding_x = KERNEL - 1 - made->padding_x;
    else
        made->padding_y = made->padding_x = 0; /* a tile of 8 begins on the first of the 5 that it takes */
    made->layout = (dv_winograd_weights){.column_stride = square, .row_stride = row, .turned = true};
}

static const dv_winograd_form *choose_form(const dv_winograd_kernels *kernels, dv_pass_kind kind, size_t stride) {
    if (stride == 1)
        return &kernels->plain;
    return kind == DV_PASS_BACKWARD_DATA ? kernels->strided_back : kernels->strided;
}

/* Channels whose weights' points fit in WEIGHTS_BYTES. */
static size_t choose_block(const winograd_pass *made) {
    size_t fitting = WEIGHTS_BYTES / (WEIGHTS_POINTS * made->depth * sizeof(float)) / PANEL * PANEL;
    return dv_smaller(fitting ? fitting : PANEL, round_up(made->to.channels, PANEL));
}

/* The most tiles that are worth their memory, of which each thread may have a chunk. */
static size_t most_tiles(const winograd_pass *made, size_t tile_bytes) {
    bool gradient = made->pass.kind == DV_PASS_BACKWARD_WEIGHTS;
    size_t least = gradient ? 2 * FEW_TILES : FEW_TILES, sharers = gradient ? 1 : (size_t)made->pass.threads;
    size_t share = round_up(dv_divide_up(made->tiles, sharers), ROWS);
    return dv_smaller(share, dv_larger(MOST_CHUNK_BYTES / tile_bytes / ROWS * ROWS, least));
}

/* Tiles whose points fit in a core's cache. More where the weights' points do not, so that they are read less often:
 * of a gradient they are written as well. Fewer where there would not be a chunk for each thread. */
static size_t choose_chunk(const winograd_pass *made) {
    bool gradient = made->pass.kind == DV_PASS_BACKWARD_WEIGHTS;
    size_t tile_bytes = made->points * (made->from_row + made->block) * sizeof(float);
    size_t weights_bytes = WEIGHTS_POINTS * made->weights_stride * sizeof(float);
    size_t least = gradient || weights_bytes > 4 << 20 ? MANY_TILES : FEW_TILES;
    size_t chunk = CHUNK_BYTES / tile_bytes / ROWS * ROWS;
    return dv_smaller(dv_larger(chunk, least), most_tiles(made, tile_bytes));
}

/* Parts of a gradient's tiles, as many as take little workspace: alike, and of about a chunk at least. */
static void set_parts(winograd_pass *made) {
    size_t fitting = PARTS_BYTES / (part_floats(made) * sizeof(float)), chunks = made->tiles / made->chunk;
    size_t most = dv_smaller(dv_smaller(fitting, MOST_PARTS), chunks);
    made->part_tiles = round_up(dv_divide_up(made->tiles, most ? most : 1), ROWS);
    made->parts = dv_divide_up(made->tiles, made->part_tiles);
}

/* How the work is cut, and the workspace that this takes. */
static void set_sizes(winograd_pass *made, const dv_convolution_shape *shape) {
    size_t side = (size_t)made->form->tile;
    made->tiles_y = dv_divide_up((size_t)made->to.height, side);
    made->tiles_x = dv_divide_up((size_t)made->to.width, side);
    made->tiles = shape->images * made->tiles_y * made->tiles_x;
    made->depth = round_up(made->from.channels, 2);
    made->from_row = round_up(made->from.channels, PANEL);
    made->block = choose_block(made);
    made->weights_stride = made->depth * made->block;
    made->chunk = choose_chunk(made);
    /* A line more, so that a tile's points do not all fall on the same few sets of the cache. */
    made->from_stride = made->chunk * made->from_row + 16;
    made->to_stride = made->chunk * made->block + 16;
    size_t last_thread = (size_t)made->pass.threads - 1;
    if (made->pass.kind == DV_PASS_BACKWARD_WEIGHTS) {
        set_parts(made);
        (void)gradient_carve(made, NULL, last_thread, &made->pass.workspace_bytes);
    } else {
        (void)chunk_carve(made, NULL, last_thread, &made->pass.workspace_bytes);
    }
}

static dv_status pass_new(dv_pass **pass, dv_pass_kind kind, const dv_convolution_shape *shape, const char *name,
                          dv_error *error) {
    winograd_pass *made = calloc(1, sizeof *made);
    if (!made)
        return dv_fail(error, DV_ERROR_MEMORY, "%s: no memory to prepare it", name);
    made->pass = (dv_pass){.methods = kind == DV_PASS_BACKWARD_WEIGHTS ? &gradient_methods : &methods,
                           .kind = kind,
                           .threads = omp_get_max_threads()};
    made->kernels = dv_winograd();
    made->type = shape->type;
    made->groups = shape->groups;
    snprintf(made->pass.kernel, sizeof made->pass.kernel, "winograd:%s", made->kernels->name);
    made->form = choose_form(made->kernels, kind, (size_t)shape->window.stride[0]);
    made->points = (size_t)made->form->side * (size_t)made->form->side;
    set_ends(made, shape);
    set_sizes(made, shape);
    *pass = &made->pass;
    return DV_OK;
}

const dv_pass_maker dv_winograd_maker = {
    .name = "winograd", .suits = suits, .is_expected = is_expected, .make = pass_new};
