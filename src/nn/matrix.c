/* Passes on matrix tiles (nn/kernels/matrix.h): convolutions of bf16 in one or two dimensions, of any window, where the
 * processor multiplies tiles. Sums are f32, in an order that follows from the shape alone.
 *
 * Forward and backward data are one thing: each row of results (`to`) is a sum over the window's elements of rows that
 * are read (`from`), shifted (nn/matrix_axis.h) and multiplied with weights.
 *
 * Work is cut into bands of rows whose lines fit in a core's second-level cache, of a group of images whose pixels are
 * neighbouring lanes. */
#include "nn/matrix_pass.h"

#include "base/sizes.h"
#include "base/status.h"
#include "nn/parts.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = DV_MATRIX_SIDE, DEPTH = DV_MATRIX_DEPTH, SQUARE = DV_MATRIX_SQUARE };
enum {
    LINES_BYTES = 1 << 20,   /* of a thread's lines: part of a core's cache */
    USUAL_GROUP = 16,        /* images */
    MOST_TAPS = 1024,        /* elements of a window: a list of them is on a thread's stack */
    MOST_CHANNELS = 1 << 16, /* of src: weights of sixteen channels are then within 32 bits of each other */
};

/* ---- lines --------------------------------------------------------------------------------- */

const uint16_t *dv_matrix_row(const dv_matrix_pass *made, const uint16_t *map, size_t image, size_t row,
                              size_t row_elements, size_t rows) {
    return image < made->images ? map + (image * rows + row) * row_elements : NULL;
}

void dv_matrix_lay(const dv_matrix_pass *made, dv_matrix_pixels pixels, const uint16_t *second, bool pairs,
                   dv_matrix_lanes *lanes) {
    if (pairs)
        made->kernels->pair(&pixels, second, lanes);
    else
        made->kernels->spread(&pixels, lanes);
    lanes->data += pixels.count * lanes->stride;
}

/* One phase of a row of `from`: its pixels, with zeros before and behind them. */
static void make_phase(const dv_matrix_pass *made, const uint16_t *row, const uint16_t *second, size_t phase,
                       bool pairs, dv_matrix_lanes lanes) {
    const dv_matrix_axis *x = &made->x;
    size_t before = (size_t)-x->least, room = made->phase / lanes.stride - before;
    size_t met = dv_axis_positions(x, 0) + (size_t)x->most; /* those behind must be zeros, whatever is there */
    size_t count = dv_smaller(dv_divide_up(x->from - dv_smaller(x->from, phase), x->from_phases), met);
    dv_matrix_pixels pixels = {NULL, before, x->from_phases * made->from_channels, made->from_channels};
    dv_matrix_lay(made, pixels, NULL, pairs, &lanes);
    pixels.count = count;
    pixels.data = row ? row + phase * made->from_channels : NULL;
    dv_matrix_lay(made, pixels, second ? second + phase * made->from_channels : NULL, pairs, &lanes);
    pixels.count = room - count;
    pixels.data = NULL;
    dv_matrix_lay(made, pixels, NULL, pairs, &lanes);
}

void dv_matrix_make_line(const dv_matrix_pass *made, const uint16_t *map, size_t group, size_t row, bool pairs,
                         uint16_t *line) {
    size_t each = pairs ? 2 : 1, row_elements = made->x.from * made->from_channels;
    for (size_t i = 0; i < made->group; i += each) {
        size_t image = group * made->group + i;
        const uint16_t *first = dv_matrix_row(made, map, image, row, row_elements, made->y.from);
        const uint16_t *second = dv_matrix_row(made, map, image + 1, row, row_elements, made->y.from);
        for (size_t phase = 0; phase < made->x.from_phases; phase++)
            if (dv_axis_phase_is_met(&made->x, phase))
                make_phase(made, first, second, phase, pairs,
                           (dv_matrix_lanes){.data = line + phase * made->phase + i / each * DEPTH,
                                             .stride = made->group * DEPTH / each,
                                             .block = made->block});
    }
}

void dv_matrix_set_lines(dv_matrix_pass *made, size_t group, size_t band, size_t lane) {
    const dv_matrix_axis *x = &made->x;
    size_t positions = dv_axis_positions(x, 0) + (size_t)(x->most - x->least), last;
    made->group = group;
    made->groups = dv_divide_up(made->images, group);
    made->band = dv_smaller(band, made->y.to);
    made->bands = dv_divide_up(made->y.to, made->band);
    /* Tiles may begin up to SQUARE - 1 lanes before a line's end. */
    made->phase = (positions + dv_divide_up(SQUARE, group)) * group * lane;
    made->line = made->phase * x->from_phases;
    made->from_rows = 0;
    for (size_t begin = 0; begin < made->y.to; begin += made->band) {
        size_t first = dv_axis_rows_met(&made->y, begin, dv_smaller(begin + made->band, made->y.to), &last);
        made->from_rows = dv_larger(made->from_rows, last - first);
    }
}

size_t dv_matrix_lines_bytes(const dv_matrix_pass *made) {
    return (made->from_blocks * made->block + made->part_blocks * made->turned) * sizeof(uint16_t);
}

/* ---- forward and backward data ------------------------------------------------------------- */

/* What one thread computes at a time. */
typedef struct matrix_unit {
    size_t group, begin, end; /* rows of `to` */
    size_t first_row;         /* of `from`, that the lines begin with */
    size_t first, last;       /* channels of `to` */
} matrix_unit;

/* A thread's workspace. */
typedef struct unit_space {
    uint16_t *lines; /* [blocks][from_rows][line] */
    float *sums;     /* [SQUARE][SQUARE] */
} unit_space;

static unit_space unit_carve(const dv_matrix_pass *made, void *workspace, size_t thread, size_t *bytes) {
    unit_space space = {0};
    for (size_t i = 0; i <= thread; i++) {
        space.lines = dv_carve(workspace, bytes, made->from_blocks * made->block * sizeof(uint16_t));
        space.sums = dv_carve(workspace, bytes, SQUARE * SQUARE * sizeof(float));
    }
    return space;
}

/* The elements of the window that a row of `to` meets, for one phase of its positions. */
static size_t find_taps(const dv_matrix_pass *made, const matrix_unit *unit, size_t at, size_t phase,
                        const uint16_t *lines, const uint16_t *weights, dv_matrix_tap *taps) {
    size_t count = 0, tap_elements = made->from_blocks * made->to_blocks * DV_MATRIX_ELEMENTS;
    for (size_t ky = 0; ky < made->y.kernel; ky++) {
        ptrdiff_t row = dv_axis_row(&made->y, at, ky);
        for (size_t kx = 0; row >= 0 && kx < made->x.kernel; kx++) {
            dv_matrix_shift shift = dv_axis_shift(&made->x, phase, kx);
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
static void run_row(const dv_matrix_pass *made, const dv_pass_arrays *arrays, const matrix_unit *unit, size_t at,
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
                               .pixels = dv_axis_positions(&made->x, phase),
                               .pixel_stride = made->x.to_phases * made->to_channels,
                               .images = dv_smaller(made->group, made->images - image),
                               .image_stride = made->y.to * row,
                               .lanes_per_pixel = made->group,
                               .channels = dv_smaller(SQUARE, made->to_channels - channel),
                               .bias = made->pass.kind == DV_PASS_FORWARD ? arrays->bias + channel : NULL};
    size_t columns = target.channels > SIDE ? 2 : 1;
    for (size_t lane = 0; lane < target.pixels * made->group; lane += SQUARE) {
        made->kernels->multiply(&product, lane, columns, space->sums);
        made->kernels->store(space->sums, lane, &target);
    }
}

static void run_unit(const dv_matrix_pass *made, const dv_pass_arrays *arrays, matrix_unit unit,
                     const unit_space *space) {
    const uint16_t *from = made->x.back ? arrays->dst : arrays->src;
    size_t last_row;
    unit.first_row = dv_axis_rows_met(&made->y, unit.begin, unit.end, &last_row);
    for (size_t row = unit.first_row; row < last_row; row++)
        if (dv_axis_is_met(&made->y, unit.begin, unit.end, row))
            dv_matrix_make_line(made, from, unit.group, row, false, space->lines + (row - unit.first_row) * made->line);
    for (size_t channel = unit.first; channel < unit.last; channel += SQUARE)
        for (size_t at = unit.begin; at < unit.end; at++)
            for (size_t phase = 0; phase < made->x.to_phases; phase++)
                run_row(made, arrays, &unit, at, phase, channel, space);
}

static matrix_unit unit_at(const dv_matrix_pass *made, size_t index) {
    size_t part = index % made->parts, band = index / made->parts % made->bands;
    size_t squares = dv_divide_up(made->to_channels, SQUARE);
    return (matrix_unit){.group = index / made->parts / made->bands,
                         .begin = band * made->band,
                         .end = dv_smaller((band + 1) * made->band, made->y.to),
                         .first = squares * part / made->parts * SQUARE,
                         .last = dv_smaller(squares * (part + 1) / made->parts * SQUARE, made->to_channels)};
}

static size_t unit_count(const dv_matrix_pass *made) {
    return made->groups * made->bands * made->parts;
}

/* Threads that have something to do, and a workspace. */
static int unit_threads(const dv_matrix_pass *made) {
    return (int)dv_smaller((size_t)made->pass.threads, unit_count(made));
}

static dv_status run(dv_pass *pass, const dv_pass_arrays *arrays, dv_error *error) {
    const dv_matrix_pass *made = (const dv_matrix_pass *)pass;
    (void)error;
#pragma omp parallel num_threads(unit_threads(made))
    {
        size_t bytes = 0;
        unit_space space = unit_carve(made, arrays->workspace, (size_t)omp_get_thread_num(), &bytes);
        made->kernels->begin();
#pragma omp for schedule(static)
        for (size_t i = 0; i < unit_count(made); i++)
            run_unit(made, arrays, unit_at(made, i), &space);
        made->kernels->end();
    }
    return DV_OK;
}

/* Whether the lines of such groups and bands fit, which are set. */
static bool lines_fit(dv_matrix_pass *made, size_t group, size_t band) {
    dv_matrix_set_lines(made, dv_smaller(group, made->images), band, DEPTH);
    made->block = made->from_rows * made->line;
    return dv_matrix_lines_bytes(made) <= LINES_BYTES;
}

/* Groups of 32 images where all their lines fit, else of 16 and as many rows as fit, else of fewer; fewer rows where
 * threads would have nothing to do. False if a row of one image is much too long. */
static bool set_sizes(dv_matrix_pass *made) {
    size_t threads = (size_t)made->pass.threads, group = USUAL_GROUP;
    made->from_blocks = dv_divide_up(made->from_channels, DEPTH);
    made->to_blocks = dv_divide_up(made->to_channels, SIDE);
    bool fit = lines_fit(made, DV_MATRIX_MOST_GROUP, made->y.to);
    for (size_t band = made->y.to; !fit && band > 0; band /= 2)
        fit = lines_fit(made, group, band);
    for (; !fit && group > 0; group /= 2)
        fit = lines_fit(made, group, 1);
    while (made->groups * made->bands < threads && made->band >= 8)
        (void)lines_fit(made, made->group, dv_divide_up(made->band, 2));
    made->parts =
        dv_smaller(dv_divide_up(threads, made->groups * made->bands), dv_divide_up(made->to_channels, SQUARE));
    made->pass.weights_bytes =
        made->y.kernel * made->x.kernel * made->from_blocks * made->to_blocks * DV_MATRIX_ELEMENTS * sizeof(uint16_t);
    (void)unit_carve(made, NULL, (size_t)unit_threads(made) - 1, &made->pass.workspace_bytes);
    return dv_matrix_lines_bytes(made) <= (size_t)DV_MATRIX_MOST_EXCESS * LINES_BYTES;
}

/* ---- weights ------------------------------------------------------------------------------- */

dv_matrix_plain dv_matrix_plain_at(const dv_matrix_pass *made, size_t from, size_t most_from, size_t to) {
    return (dv_matrix_plain){.from_channels = dv_smaller(most_from, made->from_channels - from),
                             .from_stride = made->from_channel,
                             .to_channels = dv_smaller(SIDE, made->to_channels - to),
                             .to_stride = made->to_channel};
}

/* A block of 32 x 16 channels, of all elements of the window. */
static void pack_block(const dv_matrix_pass *made, const float *plain, size_t from, size_t to, uint16_t *packed) {
    size_t tap_elements = made->from_blocks * made->to_blocks * DV_MATRIX_ELEMENTS;
    dv_matrix_plain block = dv_matrix_plain_at(made, from, DEPTH, to);
    const float *weights = plain + from * made->from_channel + to * made->to_channel;
    uint16_t *tile = packed + (from / DEPTH * made->to_blocks + to / SIDE) * DV_MATRIX_ELEMENTS;
    for (size_t t = 0; t < made->y.kernel * made->x.kernel; t++)
        made->kernels->pack(weights + t, &block, tile + t * tap_elements);
}

static dv_status pack_weights(dv_pass *pass, const float *plain, void *packed, void *workspace, const void **weights,
                              dv_error *error) {
    const dv_matrix_pass *made = (const dv_matrix_pass *)pass;
    (void)workspace, (void)error;
#pragma omp parallel for collapse(2) schedule(static) num_threads(pass->threads)
    for (size_t from = 0; from < made->from_channels; from += DEPTH)
        for (size_t to = 0; to < made->to_channels; to += SIDE)
            pack_block(made, plain, from, to, packed);
    *weights = packed;
    return DV_OK;
}

/* ---- making a pass ------------------------------------------------------------------------- */

const dv_matrix_kernels *dv_matrix_forced;

static const dv_matrix_kernels *kernels_in_use(void) {
    return dv_matrix_forced ? dv_matrix_forced : dv_matrix();
}

static void destroy(dv_pass *pass) {
    free(pass);
}

static const dv_pass_methods methods = {.pack_weights = pack_weights, .run = run, .destroy = destroy};
static const dv_pass_methods gradient_methods = {.run = dv_matrix_gradient_run, .destroy = destroy};

static void set_ends(dv_matrix_pass *made, const dv_convolution_shape *shape) {
    bool back = made->pass.kind == DV_PASS_BACKWARD_DATA, flat = shape->rank == 2;
    int last = flat ? 1 : 0;
    const dv_window row = dv_window_square(1, 1, 0); /* one dimension is a map of one row */
    size_t window = shape->window.kernel[last] * (flat ? shape->window.kernel[0] : 1);
    made->images = shape->images;
    made->y = flat ? dv_axis_of(shape->src_sides[0], shape->dst_sides[0], &shape->window, 0, back)
                   : dv_axis_of(1, 1, &row, 0, back);
    made->x = dv_axis_of(shape->src_sides[last], shape->dst_sides[last], &shape->window, last, back);
    made->from_channels = back ? shape->dst_channels : shape->src_channels;
    made->to_channels = back ? shape->src_channels : shape->dst_channels;
    made->from_channel = back ? shape->src_channels * window : window;
    made->to_channel = back ? window : shape->src_channels * window;
}

/* Sets everything; false if lines are too long. */
static bool pass_init(dv_matrix_pass *made, dv_pass_kind kind, const dv_convolution_shape *shape) {
    bool gradient = kind == DV_PASS_BACKWARD_WEIGHTS;
    *made = (dv_matrix_pass){.kernels = kernels_in_use()};
    made->pass =
        (dv_pass){.methods = gradient ? &gradient_methods : &methods, .kind = kind, .threads = omp_get_max_threads()};
    strncpy(made->pass.kernel, made->kernels->name, sizeof made->pass.kernel - 1);
    set_ends(made, shape);
    return gradient ? dv_matrix_gradient_set_sizes(made) : set_sizes(made);
}

static bool suits(dv_pass_kind kind, const dv_convolution_shape *shape) {
    const dv_window *window = &shape->window;
    size_t taps = window->kernel[0] * (shape->rank == 2 ? window->kernel[1] : 1);
    dv_matrix_pass made;
    return kernels_in_use() && shape->type == DV_BF16 && shape->rank <= 2 && shape->groups == 1 && taps <= MOST_TAPS &&
           shape->src_channels <= MOST_CHANNELS && pass_init(&made, kind, shape);
}

static dv_status pass_new(dv_pass **pass, dv_pass_kind kind, const dv_convolution_shape *shape, const char *name,
                          dv_error *error) {
    dv_matrix_pass *made = malloc(sizeof *made);
    if (!made)
        return dv_fail(error, DV_ERROR_MEMORY, "%s: no memory to prepare it", name);
    (void)pass_init(made, kind, shape);
    *pass = &made->pass;
    return DV_OK;
}

const dv_pass_maker dv_matrix_maker = {.name = "matrix", .suits = suits, .is_expected = suits, .make = pass_new};
