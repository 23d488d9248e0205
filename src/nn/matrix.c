/* Passes on matrix tiles (nn/kernels/matrix.h): convolutions of bf16 in one or two dimensions, of any window, where the
 * processor multiplies tiles. Sums are f32, in an order that follows from the shape alone.
 *
 * Forward and backward data are one thing: each row of results (`to`) is a sum over the window's elements of rows that
 * are read (`from`), shifted and multiplied with weights. With a stride, one of the two ends is seen by phases, the
 * remainders of positions by the stride: forward reads every stride-th pixel from some phase on, backward data writes
 * those. Within a phase neighbours stay neighbours, and an element of the window is again a shift.
 *
 * Work is cut into bands of rows whose lines fit in a core's second-level cache, of a group of images whose pixels are
 * neighbouring lanes. */
#include "nn/kernels/matrix.h"
#include "base/status.h"
#include "nn/parts.h"
#include "nn/pass.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = DV_MATRIX_SIDE, DEPTH = DV_MATRIX_DEPTH, SQUARE = DV_MATRIX_SQUARE };
enum {
    LINES_BYTES = 1 << 20, /* of a thread's lines, in forward and backward data: part of a core's cache */
    BAND_BYTES = 6 << 20,  /* of the lines that all threads share, in the gradient of weights */
    BAND_LANES = 4096,     /* of them, at most: then two blocks of channels of both ends fit in a core's cache */
    SUMS_BYTES = 2 << 20,  /* of the sums, likewise: wide layers go through by parts */
    MOST_EXCESS = 8,       /* by this factor lines may be larger if they cannot be made smaller */
    MOST_GROUP = 32,       /* images */
    USUAL_GROUP = 16,
    MOST_ROWS = 256, /* of a gradient's band, and elements of a window: both are lists on a thread's stack */
    MOST_TAPS = 1024,
    MOST_CHANNELS = 1 << 16, /* of src: weights of sixteen channels are then within 32 bits of each other */
};

/* One dimension of the convolution, as the pass sees it. */
typedef struct matrix_axis {
    size_t from, to;               /* lengths */
    size_t from_phases, to_phases; /* the stride, or 1 */
    size_t kernel, dilation;
    ptrdiff_t padding;
    bool back;             /* backward data: the window is turned */
    ptrdiff_t least, most; /* shifts, in positions of a phase */
} matrix_axis;

typedef struct matrix_pass {
    dv_pass pass;
    const dv_matrix_kernels *kernels;
    size_t images;
    size_t from_channels, to_channels;
    matrix_axis y, x;
    size_t from_blocks;   /* of 32 channels; of a gradient: of 16 */
    size_t to_blocks;     /* of 16 channels */
    size_t group, groups; /* images whose pixels are neighbouring lanes, and how many such groups there are */
    size_t band, bands;   /* rows of `to` that are computed together, and how many such bands there are */
    size_t band_groups;   /* of a gradient: groups that are in a band */
    size_t from_rows;     /* that a band takes, at most */
    size_t phase;         /* elements of one phase of a line of one block of channels */
    size_t line;          /* of all phases */
    size_t block;         /* of all lines of a band */
    size_t chunks;        /* of a gradient: of 32 lanes in a row of `to` */
    size_t turned;        /* of a gradient: elements of all turned lines of one block of channels */
    size_t part_blocks;   /* of a gradient: blocks of `to` whose sums are there at a time */
    size_t parts;         /* that the channels of `to` are cut into, for threads that would have nothing to do */
    size_t from_channel, to_channel; /* plain weights: elements from one channel to the next */
} matrix_pass;

static size_t divide_up(size_t a, size_t b) {
    return (a + b - 1) / b;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

/* ---- windows along a side ------------------------------------------------------------------- */

/* Where an element of the window falls: for positions of one phase of `to`, a phase of `from` and a shift. */
typedef struct matrix_shift {
    bool used;
    size_t phase;
    ptrdiff_t shift;
} matrix_shift;

static ptrdiff_t floor_divide(ptrdiff_t a, ptrdiff_t b) {
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

static matrix_shift shift_of(const matrix_axis *axis, size_t phase, size_t element) {
    ptrdiff_t stride = (ptrdiff_t)(axis->from_phases * axis->to_phases);
    ptrdiff_t reach = (ptrdiff_t)(element * axis->dilation) - axis->padding;
    ptrdiff_t distance = axis->back ? (ptrdiff_t)phase - reach : reach;
    ptrdiff_t shift = floor_divide(distance, stride), rest = distance - shift * stride;
    return (matrix_shift){.used = !axis->back || rest == 0, .phase = axis->back ? 0 : (size_t)rest, .shift = shift};
}

/* The row of `from` that row `at` of `to` meets with an element of the window; -1: none. */
static ptrdiff_t row_of(const matrix_axis *axis, size_t at, size_t element) {
    matrix_shift shift = shift_of(axis, at % axis->to_phases, element);
    ptrdiff_t position = (ptrdiff_t)(at / axis->to_phases) + shift.shift;
    ptrdiff_t row = position * (ptrdiff_t)axis->from_phases + (ptrdiff_t)shift.phase;
    return shift.used && row >= 0 && row < (ptrdiff_t)axis->from ? row : -1;
}

/* Positions of a phase of `to`. */
static size_t positions_of(const matrix_axis *axis, size_t phase) {
    return divide_up(axis->to - smaller(axis->to, phase), axis->to_phases);
}

/* The rows of `from`, first .. *last - 1, that hold all that rows begin .. end - 1 of `to` meet; none: both are 0. */
static size_t rows_met(const matrix_axis *axis, size_t begin, size_t end, size_t *last) {
    size_t first = SIZE_MAX;
    *last = 0;
    for (size_t at = begin; at < end; at++)
        for (size_t k = 0; k < axis->kernel; k++) {
            ptrdiff_t row = row_of(axis, at, k);
            if (row < 0)
                continue;
            first = smaller(first, (size_t)row);
            *last = larger(*last, (size_t)row + 1);
        }
    return *last ? first : 0;
}

/* Whether one of the rows begin .. end - 1 of `to` meets a row of `from`. */
static bool is_met(const matrix_axis *axis, size_t begin, size_t end, size_t row) {
    ptrdiff_t stride = (ptrdiff_t)(axis->from_phases * axis->to_phases);
    for (size_t k = 0; k < axis->kernel; k++) {
        ptrdiff_t reach = (ptrdiff_t)(k * axis->dilation) - axis->padding;
        ptrdiff_t at = axis->back ? (ptrdiff_t)row * stride + reach : (ptrdiff_t)row - reach;
        if (!axis->back && (at < 0 || at % stride != 0))
            continue;
        at = axis->back ? at : at / stride;
        if (at >= (ptrdiff_t)begin && at < (ptrdiff_t)end)
            return true;
    }
    return false;
}

static bool phase_is_met(const matrix_axis *axis, size_t phase) {
    for (size_t to = 0; to < axis->to_phases; to++)
        for (size_t k = 0; k < axis->kernel; k++) {
            matrix_shift shift = shift_of(axis, to, k);
            if (shift.used && shift.phase == phase)
                return true;
        }
    return false;
}

static matrix_axis axis_of(size_t src, size_t dst, const dv_window *window, int d, bool back) {
    matrix_axis axis = {.from = back ? dst : src,
                        .to = back ? src : dst,
                        .from_phases = back ? 1 : window->stride[d],
                        .to_phases = back ? window->stride[d] : 1,
                        .kernel = window->kernel[d],
                        .dilation = window->dilation[d],
                        .padding = (ptrdiff_t)window->padding[d],
                        .back = back};
    for (size_t phase = 0; phase < axis.to_phases; phase++)
        for (size_t k = 0; k < axis.kernel; k++) {
            matrix_shift shift = shift_of(&axis, phase, k);
            if (shift.used && shift.shift < axis.least)
                axis.least = shift.shift;
            if (shift.used && shift.shift > axis.most)
                axis.most = shift.shift;
        }
    return axis;
}

/* ---- lines ---------------------------------------------------------------------------------- */

/* Row `row` of an image of a map; NULL, which reads as zeros, if there is no such image. */
static const uint16_t *row_at(const matrix_pass *made, const uint16_t *map, size_t image, size_t row,
                              size_t row_elements, size_t rows) {
    return image < made->images ? map + (image * rows + row) * row_elements : NULL;
}

/* Pixels of one image to lanes of a line, or those of two to a line in pairs; moves on behind them. */
static void lay(const matrix_pass *made, dv_matrix_pixels pixels, const uint16_t *second, bool pairs,
                dv_matrix_lanes *lanes) {
    if (pairs)
        made->kernels->pair(&pixels, second, lanes);
    else
        made->kernels->spread(&pixels, lanes);
    lanes->data += pixels.count * lanes->stride;
}

/* One phase of a row of `from`: its pixels, with zeros before and behind them. */
static void make_phase(const matrix_pass *made, const uint16_t *row, const uint16_t *second, size_t phase, bool pairs,
                       dv_matrix_lanes lanes) {
    const matrix_axis *x = &made->x;
    size_t before = (size_t)-x->least, room = made->phase / lanes.stride - before;
    size_t met = positions_of(x, 0) + (size_t)x->most; /* those behind must be zeros, whatever is there */
    size_t count = smaller(divide_up(x->from - smaller(x->from, phase), x->from_phases), met);
    dv_matrix_pixels pixels = {NULL, before, x->from_phases * made->from_channels, made->from_channels};
    lay(made, pixels, NULL, pairs, &lanes);
    pixels.count = count;
    pixels.data = row ? row + phase * made->from_channels : NULL;
    lay(made, pixels, second ? second + phase * made->from_channels : NULL, pairs, &lanes);
    pixels.count = room - count;
    pixels.data = NULL;
    lay(made, pixels, NULL, pairs, &lanes);
}

/* Makes the line of row `row` of a group's images. */
static void make_line(const matrix_pass *made, const uint16_t *map, size_t group, size_t row, bool pairs,
                      uint16_t *line) {
    size_t each = pairs ? 2 : 1, row_elements = made->x.from * made->from_channels;
    for (size_t i = 0; i < made->group; i += each) {
        size_t image = group * made->group + i;
        const uint16_t *first = row_at(made, map, image, row, row_elements, made->y.from);
        const uint16_t *second = row_at(made, map, image + 1, row, row_elements, made->y.from);
        for (size_t phase = 0; phase < made->x.from_phases; phase++)
            if (phase_is_met(&made->x, phase))
                make_phase(made, first, second, phase, pairs,
                           (dv_matrix_lanes){.data = line + phase * made->phase + i / each * DEPTH,
                                             .stride = made->group * DEPTH / each,
                                             .block = made->block});
    }
}

/* ---- forward and backward data -------------------------------------------------------------- */

/* What one thread computes at a time. */
typedef struct matrix_unit {
    size_t group, begin, end; /* rows of `to` */
    size_t first_row;         /* of `from`, that the lines begin with */
    size_t first, last;       /* channels of `to` */
} matrix_unit;

/* A thread's scratchpad. */
typedef struct unit_space {
    uint16_t *lines; /* [blocks][from_rows][line] */
    float *sums;     /* [SQUARE][SQUARE] */
} unit_space;

static unit_space unit_carve(const matrix_pass *made, void *scratchpad, size_t thread, size_t *bytes) {
    unit_space space = {0};
    for (size_t i = 0; i <= thread; i++) {
        space.lines = dv_carve(scratchpad, bytes, made->from_blocks * made->block * sizeof(uint16_t));
        space.sums = dv_carve(scratchpad, bytes, SQUARE * SQUARE * sizeof(float));
    }
    return space;
}

/* The elements of the window that a row of `to` meets, for one phase of its positions. */
static size_t find_taps(const matrix_pass *made, const matrix_unit *unit, size_t at, size_t phase,
                        const uint16_t *lines, const uint16_t *weights, dv_matrix_tap *taps) {
    size_t count = 0, tap_elements = made->from_blocks * made->to_blocks * DV_MATRIX_ELEMENTS;
    for (size_t ky = 0; ky < made->y.kernel; ky++) {
        ptrdiff_t row = row_of(&made->y, at, ky);
        for (size_t kx = 0; row >= 0 && kx < made->x.kernel; kx++) {
            matrix_shift shift = shift_of(&made->x, phase, kx);
            if (!shift.used)
                continue;
            size_t position = (size_t)(shift.shift - made->x.least);
            taps[count++] = (dv_matrix_tap){
                .line = lines + ((size_t)row - unit->first_row) * made->line + shift.phase * made->phase +
                        position * made->group * DEPTH,
                .weights = weights + (ky * made->x.kernel + kx) * tap_elements,
            };
        }
    }
    return count;
}

/* A row of `to`, one phase, two tiles of channels from `channel` on. */
static void run_row(const matrix_pass *made, const dv_pass_arrays *arrays, const matrix_unit *unit, size_t at,
                    size_t phase, size_t channel, const unit_space *space) {
    dv_matrix_tap taps[MOST_TAPS];
    const uint16_t *weights = (const uint16_t *)arrays->weights + channel / SIDE * DV_MATRIX_ELEMENTS;
    dv_matrix_product product = {.taps = taps,
                                 .tap_count = find_taps(made, unit, at, phase, space->lines, weights, taps),
                                 .blocks = made->from_blocks,
                                 .line_block = made->block,
                                 .weights_block = made->to_blocks * DV_MATRIX_ELEMENTS};
    size_t image = unit->group * made->group, row = made->x.to * made->to_channels;
    uint16_t *to = (uint16_t *)(made->x.back ? arrays->src : arrays->dst);
    dv_matrix_target target = {.data = to + (image * made->y.to + at) * row + phase * made->to_channels + channel,
                               .pixels = positions_of(&made->x, phase),
                               .pixel_stride = made->x.to_phases * made->to_channels,
                               .images = smaller(made->group, made->images - image),
                               .image_stride = made->y.to * row,
                               .lanes_per_pixel = made->group,
                               .channels = smaller(SQUARE, made->to_channels - channel),
                               .bias = made->pass.kind == DV_PASS_FORWARD ? arrays->bias + channel : NULL};
    size_t columns = target.channels > SIDE ? 2 : 1;
    for (size_t lane = 0; lane < target.pixels * made->group; lane += SQUARE) {
        made->kernels->multiply(&product, lane, columns, space->sums);
        made->kernels->store(space->sums, lane, &target);
    }
}

static void run_unit(const matrix_pass *made, const dv_pass_arrays *arrays, matrix_unit unit, const unit_space *space) {
    const uint16_t *from = made->x.back ? arrays->dst : arrays->src;
    size_t last_row;
    unit.first_row = rows_met(&made->y, unit.begin, unit.end, &last_row);
    for (size_t row = unit.first_row; row < last_row; row++)
        if (is_met(&made->y, unit.begin, unit.end, row))
            make_line(made, from, unit.group, row, false, space->lines + (row - unit.first_row) * made->line);
    for (size_t channel = unit.first; channel < unit.last; channel += SQUARE)
        for (size_t at = unit.begin; at < unit.end; at++)
            for (size_t phase = 0; phase < made->x.to_phases; phase++)
                run_row(made, arrays, &unit, at, phase, channel, space);
}

static matrix_unit unit_at(const matrix_pass *made, size_t index) {
    size_t part = index % made->parts, band = index / made->parts % made->bands;
    size_t squares = divide_up(made->to_channels, SQUARE);
    return (matrix_unit){.group = index / made->parts / made->bands,
                         .begin = band * made->band,
                         .end = smaller((band + 1) * made->band, made->y.to),
                         .first = squares * part / made->parts * SQUARE,
                         .last = smaller(squares * (part + 1) / made->parts * SQUARE, made->to_channels)};
}

static size_t unit_count(const matrix_pass *made) {
    return made->groups * made->bands * made->parts;
}

/* Threads that have something to do, and a scratchpad. */
static int unit_threads(const matrix_pass *made) {
    return (int)smaller((size_t)made->pass.threads, unit_count(made));
}

static dv_status run(dv_pass *pass, const dv_pass_arrays *arrays, dv_error *error) {
    const matrix_pass *made = (const matrix_pass *)pass;
    (void)error;
#pragma omp parallel num_threads(unit_threads(made))
    {
        size_t bytes = 0;
        unit_space space = unit_carve(made, arrays->scratchpad, (size_t)omp_get_thread_num(), &bytes);
        made->kernels->begin();
#pragma omp for schedule(static)
        for (size_t i = 0; i < unit_count(made); i++)
            run_unit(made, arrays, unit_at(made, i), &space);
        made->kernels->end();
    }
    return DV_OK;
}

/* ---- weights -------------------------------------------------------------------------------- */

/* What there is of a block of channels. */
static dv_matrix_plain plain_at(const matrix_pass *made, size_t from, size_t most_from, size_t to) {
    return (dv_matrix_plain){.from_channels = smaller(most_from, made->from_channels - from),
                             .from_stride = made->from_channel,
                             .to_channels = smaller(SIDE, made->to_channels - to),
                             .to_stride = made->to_channel};
}

/* A block of 32 x 16 channels, of all elements of the window. */
static void pack_block(const matrix_pass *made, const float *plain, size_t from, size_t to, uint16_t *packed) {
    size_t tap_elements = made->from_blocks * made->to_blocks * DV_MATRIX_ELEMENTS;
    dv_matrix_plain block = plain_at(made, from, DEPTH, to);
    const float *weights = plain + from * made->from_channel + to * made->to_channel;
    uint16_t *tile = packed + (from / DEPTH * made->to_blocks + to / SIDE) * DV_MATRIX_ELEMENTS;
    for (size_t t = 0; t < made->y.kernel * made->x.kernel; t++)
        made->kernels->pack(weights + t, &block, tile + t * tap_elements);
}

static dv_status pack_weights(dv_pass *pass, const float *plain, void *packed, void *scratchpad, const void **weights,
                              dv_error *error) {
    const matrix_pass *made = (const matrix_pass *)pass;
    (void)scratchpad, (void)error;
#pragma omp parallel for collapse(2) schedule(static) num_threads(pass->threads)
    for (size_t from = 0; from < made->from_channels; from += DEPTH)
        for (size_t to = 0; to < made->to_channels; to += SIDE)
            pack_block(made, plain, from, to, packed);
    *weights = packed;
    return DV_OK;
}

/* ---- backward weights ----------------------------------------------------------------------- */

/* The scratchpad, which all threads share. */
typedef struct gradient_space {
    uint16_t *pairs;  /* [from blocks][groups of the band][from_rows][line] */
    uint16_t *turned; /* [blocks of the part][groups of the band][band][chunks] tiles */
    float *sums;      /* [window][blocks of the part][from blocks] tiles */
} gradient_space;

/* Tiles of the sums of a part. */
static size_t sum_tiles(const matrix_pass *made) {
    return made->y.kernel * made->x.kernel * made->part_blocks * made->from_blocks;
}

static gradient_space gradient_carve(const matrix_pass *made, void *scratchpad, size_t *bytes) {
    return (gradient_space){
        .pairs = dv_carve(scratchpad, bytes, made->from_blocks * made->block * sizeof(uint16_t)),
        .turned = dv_carve(scratchpad, bytes, made->part_blocks * made->turned * sizeof(uint16_t)),
        .sums = dv_carve(scratchpad, bytes, sum_tiles(made) * DV_MATRIX_SUMS * sizeof(float)),
    };
}

/* Some rows of some groups, and some blocks of channels of `to`. */
typedef struct gradient_band {
    size_t first_group, groups, begin, end;
    size_t first_block, blocks;
    size_t first_row, last_row; /* of `from` */
} gradient_band;

/* Row `at` of diff_dst of a group's images, as turned tiles. */
static void make_turned(const matrix_pass *made, const uint16_t *map, const gradient_band *band, size_t group,
                        size_t at, uint16_t *tiles) {
    size_t row_elements = made->x.to * made->to_channels, lanes = made->x.to * made->group;
    size_t first = band->first_block * SIDE;
    for (size_t i = 0; i < made->group; i += 2) {
        size_t image = group * made->group + i;
        const uint16_t *row = row_at(made, map, image, at, row_elements, made->y.to);
        const uint16_t *second = row_at(made, map, image + 1, at, row_elements, made->y.to);
        dv_matrix_pixels pixels = {.data = row ? row + first : NULL,
                                   .count = made->x.to,
                                   .stride = made->to_channels,
                                   .channels = smaller(band->blocks * SIDE, made->to_channels - first)};
        dv_matrix_lanes to = {tiles + i * SIDE, made->group * SIDE, made->turned};
        lay(made, pixels, second ? second + first : NULL, true, &to);
    }
    for (size_t block = 0; block < band->blocks; block++) {
        uint16_t *begin = tiles + block * made->turned, *end = begin + made->chunks * DV_MATRIX_ELEMENTS;
        memset(begin + lanes * SIDE, 0, (size_t)(end - begin - (ptrdiff_t)(lanes * SIDE)) * sizeof *begin);
        made->kernels->turn(begin, made->chunks);
    }
}

/* The threads of a team make the lines of a band. */
static void make_band(const matrix_pass *made, const dv_pass_arrays *arrays, const gradient_band *band,
                      const gradient_space *space) {
    size_t from_rows = band->last_row - band->first_row, rows = band->end - band->begin;
    if (band->first_block > 0 && made->bands == 1 && made->band_groups == made->groups)
        from_rows = 0; /* src's lines are those of the part before */
#pragma omp for collapse(2) schedule(static) nowait
    for (size_t g = 0; g < band->groups; g++)
        for (size_t row = 0; row < from_rows; row++)
            if (is_met(&made->y, band->begin, band->end, band->first_row + row))
                make_line(made, arrays->src, band->first_group + g, band->first_row + row, true,
                          space->pairs + (g * made->from_rows + row) * made->line);
#pragma omp for collapse(2) schedule(static)
    for (size_t g = 0; g < band->groups; g++)
        for (size_t row = 0; row < rows; row++)
            make_turned(made, arrays->dst, band, band->first_group + g, band->begin + row,
                        space->turned + (g * made->band + row) * made->chunks * DV_MATRIX_ELEMENTS);
}

/* Adds a band's products to two by two tiles of one element of the window. `to` is counted from the part's begin. */
static void add_products(const matrix_pass *made, const gradient_band *band, size_t ky, size_t kx, size_t to,
                         size_t from, const gradient_space *space) {
    dv_matrix_meeting meetings[MOST_ROWS];
    size_t count = 0, block[2] = {made->turned, made->block};
    matrix_shift shift = shift_of(&made->x, 0, kx);
    size_t position = shift.phase * made->phase + (size_t)(shift.shift - made->x.least) * made->group * SIDE;
    for (size_t g = 0; g < band->groups; g++)
        for (size_t at = band->begin; at < band->end; at++) {
            ptrdiff_t row = row_of(&made->y, at, ky);
            if (row < 0)
                continue;
            size_t line = g * made->from_rows + (size_t)row - band->first_row, tile = g * made->band + at - band->begin;
            meetings[count++] = (dv_matrix_meeting){
                .turned = space->turned + to * made->turned + tile * made->chunks * DV_MATRIX_ELEMENTS,
                .pairs = space->pairs + from * made->block + line * made->line + position,
            };
        }
    size_t sums = ((ky * made->x.kernel + kx) * made->part_blocks + to) * made->from_blocks + from;
    made->kernels->multiply_add(meetings, count, made->chunks, block, smaller(2, band->blocks - to),
                                smaller(2, made->from_blocks - from), space->sums + sums * DV_MATRIX_SUMS,
                                made->from_blocks * DV_MATRIX_SUMS);
}

static void add_band(const matrix_pass *made, const dv_pass_arrays *arrays, gradient_band band,
                     const gradient_space *space) {
    band.first_row = rows_met(&made->y, band.begin, band.end, &band.last_row);
    make_band(made, arrays, &band, space);
#pragma omp for collapse(4) schedule(static)
    for (size_t to = 0; to < band.blocks; to += 2)
        for (size_t from = 0; from < made->from_blocks; from += 2)
            for (size_t ky = 0; ky < made->y.kernel; ky++)
                for (size_t kx = 0; kx < made->x.kernel; kx++)
                    add_products(made, &band, ky, kx, to, from, space);
}

/* Adds the sums of a block of 16 x 16 channels to the plain gradient. `part` is the part's first channel of `to`. */
static void add_sums(const matrix_pass *made, size_t part, size_t from, size_t to, const float *sums, float *plain) {
    dv_matrix_plain block = plain_at(made, from, SIDE, part + to);
    float *gradient = plain + from * made->from_channel + (part + to) * made->to_channel;
    size_t tile = to / SIDE * made->from_blocks + from / SIDE, tap_tiles = made->part_blocks * made->from_blocks;
    for (size_t t = 0; t < made->y.kernel * made->x.kernel; t++)
        made->kernels->add(sums + (t * tap_tiles + tile) * DV_MATRIX_SUMS, &block, gradient + t);
}

/* A part of the gradient: from nothing through all bands to the plain one. The threads of a team go together. */
static void add_part(const matrix_pass *made, const dv_pass_arrays *arrays, size_t first_block,
                     const gradient_space *space) {
    size_t blocks = smaller(made->part_blocks, made->to_blocks - first_block);
#pragma omp for schedule(static)
    for (size_t i = 0; i < sum_tiles(made); i++)
        memset(space->sums + i * DV_MATRIX_SUMS, 0, DV_MATRIX_SUMS * sizeof(float));
    for (size_t group = 0; group < made->groups; group += made->band_groups)
        for (size_t begin = 0; begin < made->y.to; begin += made->band)
            add_band(made, arrays,
                     (gradient_band){.first_group = group,
                                     .groups = smaller(made->band_groups, made->groups - group),
                                     .begin = begin,
                                     .end = smaller(begin + made->band, made->y.to),
                                     .first_block = first_block,
                                     .blocks = blocks},
                     space);
#pragma omp for collapse(2) schedule(static)
    for (size_t to = 0; to < blocks * SIDE; to += SIDE)
        for (size_t from = 0; from < made->from_channels; from += SIDE)
            add_sums(made, first_block * SIDE, from, to, space->sums, arrays->gradient);
}

static dv_status run_gradient(dv_pass *pass, const dv_pass_arrays *arrays, dv_error *error) {
    const matrix_pass *made = (const matrix_pass *)pass;
    size_t bytes = 0;
    gradient_space space = gradient_carve(made, arrays->scratchpad, &bytes);
    (void)error;
#pragma omp parallel num_threads(pass->threads)
    {
        made->kernels->begin();
        for (size_t block = 0; block < made->to_blocks; block += made->part_blocks)
            add_part(made, arrays, block, &space);
        made->kernels->end();
    }
    return DV_OK;
}

/* ---- making a pass -------------------------------------------------------------------------- */

const dv_matrix_kernels *dv_matrix_forced;

static const dv_matrix_kernels *kernels_in_use(void) {
    return dv_matrix_forced ? dv_matrix_forced : dv_matrix();
}

static void destroy(dv_pass *pass) {
    free(pass);
}

static const dv_pass_methods methods = {.pack_weights = pack_weights, .run = run, .destroy = destroy};
static const dv_pass_methods gradient_methods = {.run = run_gradient, .destroy = destroy};

static void set_ends(matrix_pass *made, const dv_convolution_shape *shape) {
    bool back = made->pass.kind == DV_PASS_BACKWARD_DATA, flat = shape->rank == 2;
    int last = flat ? 1 : 0;
    const dv_window row = dv_window_square(1, 1, 0); /* one dimension is a map of one row */
    size_t window = shape->window.kernel[last] * (flat ? shape->window.kernel[0] : 1);
    made->images = shape->images;
    made->y = flat ? axis_of(shape->src_sides[0], shape->dst_sides[0], &shape->window, 0, back)
                   : axis_of(1, 1, &row, 0, back);
    made->x = axis_of(shape->src_sides[last], shape->dst_sides[last], &shape->window, last, back);
    made->from_channels = back ? shape->dst_channels : shape->src_channels;
    made->to_channels = back ? shape->src_channels : shape->dst_channels;
    made->from_channel = back ? shape->src_channels * window : window;
    made->to_channel = back ? window : shape->src_channels * window;
}

/* The elements of lines, for a group of `group` images and bands of `band` rows. */
static void set_lines(matrix_pass *made, size_t group, size_t band, size_t lane) {
    const matrix_axis *x = &made->x;
    size_t positions = positions_of(x, 0) + (size_t)(x->most - x->least), last;
    made->group = group;
    made->groups = divide_up(made->images, group);
    made->band = smaller(band, made->y.to);
    made->bands = divide_up(made->y.to, made->band);
    /* Tiles may begin up to SQUARE - 1 lanes before a line's end. */
    made->phase = (positions + divide_up(SQUARE, group)) * group * lane;
    made->line = made->phase * x->from_phases;
    made->from_rows = 0;
    for (size_t begin = 0; begin < made->y.to; begin += made->band) {
        size_t first = rows_met(&made->y, begin, smaller(begin + made->band, made->y.to), &last);
        made->from_rows = larger(made->from_rows, last - first);
    }
}

static size_t lines_bytes(const matrix_pass *made) {
    return (made->from_blocks * made->block + made->part_blocks * made->turned) * sizeof(uint16_t);
}

/* Whether the lines of such groups and bands fit, which are set. */
static bool lines_fit(matrix_pass *made, size_t group, size_t band) {
    set_lines(made, smaller(group, made->images), band, DEPTH);
    made->block = made->from_rows * made->line;
    return lines_bytes(made) <= LINES_BYTES;
}

/* Groups of 32 images where all their lines fit, else of 16 and as many rows as fit, else of fewer; fewer rows where
 * threads would have nothing to do. False if a row of one image is much too long. */
static bool set_sizes(matrix_pass *made) {
    size_t threads = (size_t)made->pass.threads, group = USUAL_GROUP;
    made->from_blocks = divide_up(made->from_channels, DEPTH);
    made->to_blocks = divide_up(made->to_channels, SIDE);
    bool fit = lines_fit(made, MOST_GROUP, made->y.to);
    for (size_t band = made->y.to; !fit && band > 0; band /= 2)
        fit = lines_fit(made, group, band);
    for (; !fit && group > 0; group /= 2)
        fit = lines_fit(made, group, 1);
    while (made->groups * made->bands < threads && made->band >= 8)
        (void)lines_fit(made, made->group, divide_up(made->band, 2));
    made->parts = smaller(divide_up(threads, made->groups * made->bands), divide_up(made->to_channels, SQUARE));
    made->pass.weights_bytes =
        made->y.kernel * made->x.kernel * made->from_blocks * made->to_blocks * DV_MATRIX_ELEMENTS * sizeof(uint16_t);
    (void)unit_carve(made, NULL, (size_t)unit_threads(made) - 1, &made->pass.scratchpad_bytes);
    return lines_bytes(made) <= (size_t)MOST_EXCESS * LINES_BYTES;
}

/* Whether the lines of bands of so many rows fit, which are set: rows of one group, or all rows of several. */
static bool band_fits(matrix_pass *made, size_t group, size_t rows) {
    made->chunks = divide_up(made->x.to * group, DEPTH);
    set_lines(made, group, rows, SIDE);
    made->band_groups = smaller(larger(rows / made->y.to, 1), made->groups);
    made->block = made->band_groups * made->from_rows * made->line;
    made->turned = made->band_groups * made->band * made->chunks * DV_MATRIX_ELEMENTS;
    return lines_bytes(made) <= BAND_BYTES;
}

/* Groups of up to 32 images, an even number, and as many rows as fit; fewer images if one row does not. False if
 * that is much too long. */
static bool set_gradient_sizes(matrix_pass *made) {
    size_t group = smaller(MOST_GROUP, divide_up(made->images, 2) * 2);
    size_t rows = BAND_LANES / (divide_up(made->x.to * group, DEPTH) * DEPTH);
    bool fit = false;
    made->from_blocks = divide_up(made->from_channels, SIDE);
    made->to_blocks = divide_up(made->to_channels, SIDE);
    made->part_blocks = 2;
    size_t two = sum_tiles(made) * DV_MATRIX_SUMS * sizeof(float);
    made->part_blocks = smaller(larger(SUMS_BYTES / two, 1) * 2, made->to_blocks);
    for (rows = smaller(larger(rows, 1), MOST_ROWS); !fit && rows > 0; rows /= 2)
        fit = band_fits(made, group, rows);
    for (; !fit && group > 1; group = group / 4 * 2)
        fit = band_fits(made, group, 1);
    (void)gradient_carve(made, NULL, &made->pass.scratchpad_bytes);
    return lines_bytes(made) <= (size_t)MOST_EXCESS * BAND_BYTES;
}

/* Sets everything; false if lines are too long. */
static bool pass_init(matrix_pass *made, dv_pass_kind kind, const dv_convolution_shape *shape) {
    bool gradient = kind == DV_PASS_BACKWARD_WEIGHTS;
    *made = (matrix_pass){.kernels = kernels_in_use()};
    made->pass =
        (dv_pass){.methods = gradient ? &gradient_methods : &methods, .kind = kind, .threads = omp_get_max_threads()};
    strncpy(made->pass.kernel, made->kernels->name, sizeof made->pass.kernel - 1);
    set_ends(made, shape);
    return gradient ? set_gradient_sizes(made) : set_sizes(made);
}

bool dv_matrix_suits(dv_pass_kind kind, const dv_convolution_shape *shape) {
    const dv_window *window = &shape->window;
    size_t taps = window->kernel[0] * (shape->rank == 2 ? window->kernel[1] : 1);
    matrix_pass made;
    return kernels_in_use() && shape->type == DV_BF16 && shape->rank <= 2 && shape->groups == 1 && taps <= MOST_TAPS &&
           shape->src_channels <= MOST_CHANNELS && pass_init(&made, kind, shape);
}

dv_status dv_matrix_pass_new(dv_pass **pass, dv_pass_kind kind, const dv_convolution_shape *shape, const char *name,
                             dv_error *error) {
    matrix_pass *made = malloc(sizeof *made);
    if (!made)
        return dv_fail(error, DV_ERROR_MEMORY, "%s: no memory to prepare it", name);
    (void)pass_init(made, kind, shape);
    *pass = &made->pass;
    return DV_OK;
}
