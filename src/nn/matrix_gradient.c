/* The gradient of weights on matrix tiles. All threads lay out a band of rows of both ends; then each adds its products
 * to tiles of sums that are its own, in an order that follows from the shape alone. */
#include "nn/matrix_pass.h"

#include "base/sizes.h"
#include "nn/parts.h"

#include <string.h>

enum { SIDE = DV_MATRIX_SIDE, DEPTH = DV_MATRIX_DEPTH };
enum {
    BAND_BYTES = 6 << 20, /* of the lines that all threads share */
    BAND_LANES = 4096,    /* of them, at most: then two blocks of channels of both ends fit in a core's cache */
    SUMS_BYTES = 2 << 20, /* of the sums, likewise: wide layers go through by parts */
    MOST_ROWS = 256,      /* of a band: a list of them is on a thread's stack */
};

/* The workspace, which all threads share. */
typedef struct gradient_space {
    uint16_t *pairs;  /* [from blocks][groups of the band][from_rows][line] */
    uint16_t *turned; /* [blocks of the part][groups of the band][band][chunks] tiles */
    float *sums;      /* [window][blocks of the part][from blocks] tiles */
} gradient_space;

/* Tiles of the sums of a part. */
static size_t sum_tiles(const dv_matrix_pass *made) {
    return made->y.kernel * made->x.kernel * made->part_blocks * made->from_blocks;
}

static gradient_space gradient_carve(const dv_matrix_pass *made, void *workspace, size_t *bytes) {
    return (gradient_space){
        .pairs = dv_carve(workspace, bytes, made->from_blocks * made->block * sizeof(uint16_t)),
        .turned = dv_carve(workspace, bytes, made->part_blocks * made->turned * sizeof(uint16_t)),
        .sums = dv_carve(workspace, bytes, sum_tiles(made) * DV_MATRIX_SUMS * sizeof(float)),
    };
}

/* Some rows of some groups, and some blocks of channels of `to`. */
typedef struct gradient_band {
    size_t first_group, groups, begin, end;
    size_t first_block, blocks;
    size_t first_row, last_row; /* of `from` */
} gradient_band;

/* Row `at` of diff_dst of a group's images, as turned tiles. */
static void make_turned(const dv_matrix_pass *made, const uint16_t *map, const gradient_band *band, size_t group,
                        size_t at, uint16_t *tiles) {
    size_t row_elements = made->x.to * made->to_channels, lanes = made->x.to * made->group;
    size_t first = band->first_block * SIDE;
    for (size_t i = 0; i < made->group; i += 2) {
        size_t image = group * made->group + i;
        const uint16_t *row = dv_matrix_row(made, map, image, at, row_elements, made->y.to);
        const uint16_t *second = dv_matrix_row(made, map, image + 1, at, row_elements, made->y.to);
        dv_matrix_pixels pixels = {.data = row ? row + first : NULL,
                                   .count = made->x.to,
                                   .stride = made->to_channels,
                                   .channels = dv_smaller(band->blocks * SIDE, made->to_channels - first)};
        dv_matrix_lanes to = {tiles + i * SIDE, made->group * SIDE, made->turned};
        dv_matrix_lay(made, pixels, second ? second + first : NULL, true, &to);
    }
    for (size_t block = 0; block < band->blocks; block++) {
        uint16_t *begin = tiles + block * made->turned, *end = begin + made->chunks * DV_MATRIX_ELEMENTS;
        memset(begin + lanes * SIDE, 0, (size_t)(end - begin - (ptrdiff_t)(lanes * SIDE)) * sizeof *begin);
        made->kernels->turn(begin, made->chunks);
    }
}

/* The threads of a team make the lines of a band. */
static void make_band(const dv_matrix_pass *made, const dv_pass_arrays *arrays, const gradient_band *band,
                      const gradient_space *space) {
    size_t from_rows = band->last_row - band->first_row, rows = band->end - band->begin;
    if (band->first_block > 0 && made->bands == 1 && made->band_groups == made->groups)
        from_rows = 0; /* src's lines are those of the part before */
#pragma omp for collapse(2) schedule(static) nowait
    for (size_t g = 0; g < band->groups; g++)
        for (size_t row = 0; row < from_rows; row++)
            if (dv_axis_is_met(&made->y, band->begin, band->end, band->first_row + row))
                dv_matrix_make_line(made, arrays->src, band->first_group + g, band->first_row + row, true,
                                    space->pairs + (g * made->from_rows + row) * made->line);
#pragma omp for collapse(2) schedule(static)
    for (size_t g = 0; g < band->groups; g++)
        for (size_t row = 0; row < rows; row++)
            make_turned(made, arrays->dst, band, band->first_group + g, band->begin + row,
                        space->turned + (g * made->band + row) * made->chunks * DV_MATRIX_ELEMENTS);
}

/* Adds a band's products to two by two tiles of one element of the window. `to` is counted from the part's begin. */
static void add_products(const dv_matrix_pass *made, const gradient_band *band, size_t ky, size_t kx, size_t to,
                         size_t from, const gradient_space *space) {
    dv_matrix_meeting meetings[MOST_ROWS];
    size_t count = 0, block[2] = {made->turned, made->block};
    dv_matrix_shift shift = dv_axis_shift(&made->x, 0, kx);
    size_t position = shift.phase * made->phase + (size_t)(shift.shift - made->x.least) * made->group * SIDE;
    for (size_t g = 0; g < band->groups; g++)
        for (size_t at = band->begin; at < band->end; at++) {
            ptrdiff_t row = dv_axis_row(&made->y, at, ky);
            if (row < 0)
                continue;
            size_t line = g * made->from_rows + (size_t)row - band->first_row, tile = g * made->band + at - band->begin;
            meetings[count++] = (dv_matrix_meeting){
                .turned = space->turned + to * made->turned + tile * made->chunks * DV_MATRIX_ELEMENTS,
                .pairs = space->pairs + from * made->block + line * made->line + position,
            };
        }
    size_t sums = ((ky * made->x.kernel + kx) * made->part_blocks + to) * made->from_blocks + from;
    made->kernels->multiply_add(meetings, count, made->chunks, block, dv_smaller(2, band->blocks - to),
                                dv_smaller(2, made->from_blocks - from), space->sums + sums * DV_MATRIX_SUMS,
                                made->from_blocks * DV_MATRIX_SUMS);
}

static void add_band(const dv_matrix_pass *made, const dv_pass_arrays *arrays, gradient_band band,
                     const gradient_space *space) {
    band.first_row = dv_axis_rows_met(&made->y, band.begin, band.end, &band.last_row);
    make_band(made, arrays, &band, space);
#pragma omp for collapse(4) schedule(static)
    for (size_t to = 0; to < band.blocks; to += 2)
        for (size_t from = 0; from < made->from_blocks; from += 2)
            for (size_t ky = 0; ky < made->y.kernel; ky++)
                for (size_t kx = 0; kx < made->x.kernel; kx++)
                    add_products(made, &band, ky, kx, to, from, space);
}

/* Adds the sums of a block of 16 x 16 channels to the plain gradient. `part` is the part's first channel of `to`. */
static void add_sums(const dv_matrix_pass *made, size_t part, size_t from, size_t to, const float *sums, float *plain) {
    dv_matrix_plain block = dv_matrix_plain_at(made, from, SIDE, part + to);
    float *gradient = plain + from * made->from_channel + (part + to) * made->to_channel;
    size_t tile = to / SIDE * made->from_blocks + from / SIDE, tap_tiles = made->part_blocks * made->from_blocks;
    for (size_t t = 0; t < made->y.kernel * made->x.kernel; t++)
        made->kernels->add(sums + (t * tap_tiles + tile) * DV_MATRIX_SUMS, &block, gradient + t);
}

/* A part of the gradient: from nothing through all bands to the plain one. The threads of a team go together. */
static void add_part(const dv_matrix_pass *made, const dv_pass_arrays *arrays, size_t first_block,
                     const gradient_space *space) {
    size_t blocks = dv_smaller(made->part_blocks, made->to_blocks - first_block);
#pragma omp for schedule(static)
    for (size_t i = 0; i < sum_tiles(made); i++)
        memset(space->sums + i * DV_MATRIX_SUMS, 0, DV_MATRIX_SUMS * sizeof(float));
    for (size_t group = 0; group < made->groups; group += made->band_groups)
        for (size_t begin = 0; begin < made->y.to; begin += made->band)
            add_band(made, arrays,
                     (gradient_band){.first_group = group,
                                     .groups = dv_smaller(made->band_groups, made->groups - group),
                                     .begin = begin,
                                     .end = dv_smaller(begin + made->band, made->y.to),
                                     .first_block = first_block,
                                     .blocks = blocks},
                     space);
#pragma omp for collapse(2) schedule(static)
    for (size_t to = 0; to < blocks * SIDE; to += SIDE)
        for (size_t from = 0; from < made->from_channels; from += SIDE)
            add_sums(made, first_block * SIDE, from, to, space->sums, arrays->gradient);
}

dv_status dv_matrix_gradient_run(dv_pass *pass, const dv_pass_arrays *arrays, dv_error *error) {
    const dv_matrix_pass *made = (const dv_matrix_pass *)pass;
    size_t bytes = 0;
    gradient_space space = gradient_carve(made, arrays->workspace, &bytes);
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

/* ---- sizes --------------------------------------------------------------------------------- */

/* Whether the lines of bands of so many rows fit, which are set: rows of one group, or all rows of several. */
static bool band_fits(dv_matrix_pass *made, size_t group, size_t rows) {
    made->chunks = dv_divide_up(made->x.to * group, DEPTH);
    dv_matrix_set_lines(made, group, rows, SIDE);
    made->band_groups = dv_smaller(dv_larger(rows / made->y.to, 1), made->groups);
    made->block = made->band_groups * made->from_rows * made->line;
    made->turned = made->band_groups * made->band * made->chunks * DV_MATRIX_ELEMENTS;
    return dv_matrix_lines_bytes(made) <= BAND_BYTES;
}

/* Groups of up to 32 images, an even number, and as many rows as fit; fewer images if one row does not. False if
 * that is much too long. */
bool dv_matrix_gradient_set_sizes(dv_matrix_pass *made) {
    size_t group = dv_smaller(DV_MATRIX_MOST_GROUP, dv_divide_up(made->images, 2) * 2);
    size_t rows = BAND_LANES / (dv_divide_up(made->x.to * group, DEPTH) * DEPTH);
    bool fit = false;
    made->from_blocks = dv_divide_up(made->from_channels, SIDE);
    made->to_blocks = dv_divide_up(made->to_channels, SIDE);
    made->part_blocks = 2;
    size_t two = sum_tiles(made) * DV_MATRIX_SUMS * sizeof(float);
    made->part_blocks = dv_smaller(dv_larger(SUMS_BYTES / two, 1) * 2, made->to_blocks);
    for (rows = dv_smaller(dv_larger(rows, 1), MOST_ROWS); !fit && rows > 0; rows /= 2)
        fit = band_fits(made, group, rows);
    for (; !fit && group > 1; group = group / 4 * 2)
        fit = band_fits(made, group, 1);
    (void)gradient_carve(made, NULL, &made->pass.workspace_bytes);
    return dv_matrix_lines_bytes(made) <= (size_t)DV_MATRIX_MOST_EXCESS * BAND_BYTES;
}
