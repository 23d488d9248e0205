/* The part of template.h for maps with channels last: rows of channels.
 *
 * Where averages are not kept, the second pass makes them again when it comes to a block: it has them of as many blocks
 * of a row of blocks as fit into a window, so that most are made twice in all, and no memory is needed for them. */

/* Converts `pixels` pixels, their channels side by side. */
static void load_pixels(const dv_tile *tile, const void *src, size_t pixels, float *buffer) {
    if (tile->channels == tile->pixel_stride) {
        to_f32(tile->type, src, pixels * tile->channels, buffer);
        return;
    }
    for (size_t j = 0; j < pixels; j++)
        to_f32(tile->type, element(tile->type, src, j * tile->pixel_stride), tile->channels,
               buffer + j * tile->channels);
}

/* Whether channels go by pairs, and statistics are in split order. */
INLINE bool is_paired(const dv_tile *tile) {
    return tile->type == DV_BF16 && (tile->channels | tile->pixel_stride) % 2 == 0;
}

/* Adds `pixels` pixels of a row to the columns from `first` on. */
static void nhwc_add_pixels(const dv_tile *tile, const void *src, size_t pixels, columns *all, size_t first) {
    if (tile->type == DV_F32) {
        columns_add(all, first, src, tile->pixel_stride, pixels, tile->channels);
        return;
    }
    if (is_paired(tile)) {
        columns_add_pairs(all, first, src, tile->pixel_stride / 2, pixels, tile->channels / 2);
        return;
    }
    float buffer[DV_GROUP * DV_RUN];
    for (size_t done = 0; done < pixels; done += DV_GROUP) {
        size_t now = least(DV_GROUP, pixels - done);
        load_pixels(tile, element(tile->type, src, done * tile->pixel_stride), now, buffer);
        columns_add(all, first, buffer, tile->channels, now, tile->channels);
    }
}

/* Blocks side by side of a row of blocks, at least one, as many as fit into a run: read together, row by row, so that
 * memory is read in its order. */
typedef struct row_of_blocks {
    size_t at[3];  /* of the first */
    size_t blocks; /* of it */
    columns all;
} row_of_blocks;

/* Adds a row of pixels, of which `src` is the first, to the columns of all blocks. */
static void row_of_blocks_add(const dv_tile *tile, const char *src, row_of_blocks *row) {
    for (size_t b = 0; b < row->blocks; b++) {
        size_t pixels = dv_block_length(tile, 2, row->at[2] + b);
        nhwc_add_pixels(tile, src, pixels, &row->all, b * tile->channels);
        src += pixels * tile->pixel_stride * dv_type_bytes(tile->type);
    }
}

static void row_of_blocks_read(const dv_tile *tile, const void *src, row_of_blocks *row) {
    size_t depth = dv_block_length(tile, 0, row->at[0]), height = dv_block_length(tile, 1, row->at[1]);
    columns_clear(&row->all, row->blocks * tile->channels);
    for (size_t z = 0; z < depth; z++)
        for (size_t y = 0; y < height; y++) {
            size_t line = (row->at[0] * tile->edges[0] + z) * tile->sides[1] + row->at[1] * tile->edges[1] + y;
            size_t pixel = line * tile->sides[2] + row->at[2] * tile->edges[2];
            row_of_blocks_add(tile, element(tile->type, src, pixel * tile->pixel_stride), row);
        }
}

/* The averages of these blocks, `further` elements from one to the next, and what they leave. */
static void row_of_blocks_average(const dv_tile *tile, const void *src, row_of_blocks *row, uint16_t *averages,
                                  size_t further, residue *rest) {
    row_of_blocks_read(tile, src, row);
    size_t area = dv_block_length(tile, 0, row->at[0]) * dv_block_length(tile, 1, row->at[1]);
    uint16_t split[DV_RUN];
    for (size_t b = 0; b < row->blocks; b++, averages += further) {
        float pixels = (float)(area * dv_block_length(tile, 2, row->at[2] + b));
        average_blocks(&row->all, b * tile->channels, tile->channels, pixels, is_paired(tile) ? split : averages, rest);
        if (is_paired(tile))
            interleave(split, tile->channels / 2, averages);
    }
}

/* Averages of all blocks, as far as they are kept, and what they leave. */
static void nhwc_average(const dv_tile *tile, const void *src, uint16_t *averages, residue *rest) {
    uint16_t unkept[DV_RUN];
    uint16_t *to = tile->lfc ? averages : unkept;
    size_t most = DV_RUN / tile->channels, further = tile->lfc ? tile->channels : 0;
    row_of_blocks row;
    residue_clear(rest, tile->channels);
    for (row.at[0] = 0; row.at[0] < tile->blocks[0]; row.at[0]++)
        for (row.at[1] = 0; row.at[1] < tile->blocks[1]; row.at[1]++)
            for (row.at[2] = 0; row.at[2] < tile->blocks[2]; row.at[2] += row.blocks) {
                row.blocks = least(most, tile->blocks[2] - row.at[2]);
                row_of_blocks_average(tile, src, &row, to, further, rest);
                to += row.blocks * further;
            }
}

enum { DV_WINDOW = 32 * DV_RUN };

/* Averages that are not kept, of the blocks from `first` to before `end`. */
typedef struct window {
    size_t first, end;
    uint16_t averages[DV_WINDOW];
} window;

static void window_fill(const dv_tile *tile, const void *src, size_t block, window *seen) {
    size_t across = tile->blocks[2], row = block / across, x = block % across;
    row_of_blocks now = {.at = {row / tile->blocks[1], row % tile->blocks[1], x}};
    residue unused;
    residue_clear(&unused, tile->channels);
    seen->first = block;
    seen->end = block + least(DV_WINDOW / tile->channels, across - x);
    for (uint16_t *to = seen->averages; block < seen->end; block += now.blocks) {
        now.blocks = least(DV_RUN / tile->channels, seen->end - block);
        row_of_blocks_average(tile, src, &now, to, tile->channels, &unused);
        now.at[2] += now.blocks;
        to += now.blocks * tile->channels;
    }
}

/* The averages that the elements of a block are measured against. */
INLINE const uint16_t *nhwc_averages(const dv_tile *tile, const void *src, const dv_tile_record *record, size_t block,
                                     window *seen) {
    if (tile->lfc)
        return record->averages + block * tile->channels;
    if (block < seen->first || block >= seen->end)
        window_fill(tile, src, block, seen);
    return seen->averages + (block - seen->first) * tile->channels;
}

/* A run of pixels in the second pass: a part of a row that lies in one block, or in some that follow each other. With
 * few channels its pixels are repeated into one row of the run, else each pixel is a row. */
typedef struct pixel_run {
    size_t blocks;      /* taken together, of a row of blocks */
    size_t x, y, z;     /* where it starts */
    size_t pixel;       /* the same, in pixels from the tile's first */
    size_t left;        /* pixels of the blocks' row from here on */
    size_t band, block; /* the first block of its row of blocks, and its own */
    size_t pixels;      /* of the run */
    size_t rows, width; /* the same, as rows of elements */
} pixel_run;

/* How many blocks of a row of blocks runs take together: with few channels as many as a run has room for. */
INLINE size_t blocks_together(const dv_tile *tile) {
    size_t most = DV_RUN / tile->channels / tile->edges[2];
    return tile->channels < DV_SHORT && tile->channels == tile->pixel_stride && most > 1 ? most : 1;
}

/* Times that a number of each channel is repeated, for as many pixels as a run may have. */
INLINE size_t run_repetitions(const dv_tile *tile) {
    return repetitions(tile->channels, tile->edges[2] * blocks_together(tile));
}

/* Pixels of a run, from its pixel `done` on, that are in one block, and whose elements are in one row of the run. */
INLINE size_t pixels_alike(const dv_tile *tile, const pixel_run *run, size_t done) {
    return run->rows == 1 ? least(tile->edges[2], run->pixels - done) : run->pixels;
}

/* Sets the sizes of a run that starts where it says. */
INLINE void pixel_run_measure(const dv_tile *tile, pixel_run *now, size_t most) {
    now->pixels = least(now->left, most);
    size_t together = tile->channels < DV_SHORT && tile->channels == tile->pixel_stride ? now->pixels : 1;
    now->rows = together == 1 ? now->pixels : 1;
    now->width = tile->channels * together;
}

static pixel_run pixel_run_first(const dv_tile *tile, size_t most) {
    size_t blocks = blocks_together(tile);
    pixel_run first = {.blocks = blocks, .left = least(blocks * tile->edges[2], tile->sides[2])};
    pixel_run_measure(tile, &first, most);
    return first;
}

/* The first block of the row of blocks that the row after (y, z) is in; `band` is that of the row before. */
static size_t next_band(const dv_tile *tile, size_t band, size_t y, size_t z) {
    if (y < tile->sides[1])
        return y % tile->edges[1] ? band : band + tile->blocks[2];
    bool same_depth = (z + 1) % tile->edges[0] != 0;
    return same_depth ? band - (tile->blocks[1] - 1) * tile->blocks[2] : band + tile->blocks[2];
}

/* Goes to the first pixel of the next row. */
static void pixel_run_next_row(const dv_tile *tile, pixel_run *now) {
    now->x = 0;
    now->y++;
    now->band = next_band(tile, now->band, now->y, now->z);
    now->block = now->band;
    if (now->y == tile->sides[1]) {
        now->y = 0;
        now->z++;
    }
}

/* What is made of the averages of the last run's blocks serves for this one: the same blocks, repeated as often. */
INLINE bool pixel_run_is_alike(const pixel_run *last, const pixel_run *now) {
    return last->pixels != 0 && last->block == now->block && last->width == now->width;
}

/* Moves on to the next run, of at most `most` pixels. False at the end of the tile. */
INLINE bool pixel_run_next(const dv_tile *tile, pixel_run *now, size_t most) {
    now->pixel += now->pixels;
    now->x += now->pixels;
    now->left -= now->pixels;
    if (now->x == tile->sides[2])
        pixel_run_next_row(tile, now);
    else if (now->left == 0)
        now->block += now->blocks;
    if (now->z == tile->sides[0])
        return false;
    if (now->left == 0)
        now->left = least(now->blocks * tile->edges[2], tile->sides[2] - now->x);
    pixel_run_measure(tile, now, most);
    return true;
}

/* The run's elements. Those of the next tile that lie alike are asked for. */
INLINE const char *pixel_run_at(const dv_tile *tile, const void *src, const pixel_run *run) {
    const char *at = element(tile->type, src, run->pixel * tile->pixel_stride);
    if (tile->channels == tile->pixel_stride)
        prefetch_next(tile, at, run->rows * run->width * dv_type_bytes(tile->type));
    else
        for (size_t j = 0; j < run->rows; j++)
            prefetch_next(tile, element(tile->type, at, j * tile->pixel_stride),
                          run->width * dv_type_bytes(tile->type));
    return at;
}

/* The same as f32, and their distance from row to row. */
INLINE const float *pixel_run_load(const dv_tile *tile, const void *src, const pixel_run *run, float *buffer,
                                   size_t *stride) {
    const char *at = element(tile->type, src, run->pixel * tile->pixel_stride);
    *stride = tile->type == DV_F32 ? tile->pixel_stride : run->width;
    if (tile->type == DV_F32)
        return (const float *)(const void *)at;
    load_pixels(tile, at, run->pixels, buffer);
    return buffer;
}

/* The averages of each element of a row of the run. */
static void nhwc_run_averages(const dv_tile *tile, const void *src, const dv_tile_record *record, const pixel_run *run,
                              window *seen, float *low) {
    size_t channels = tile->channels, block = run->block;
    for (size_t done = 0, pixels; done < run->pixels; done += pixels, block++) {
        pixels = pixels_alike(tile, run, done);
        bf16_to_f32(nhwc_averages(tile, src, record, block, seen), channels, low + done * channels);
        repeat(low + done * channels, channels, run->rows == 1 ? pixels : 1);
    }
}

/* The second pass. */
static void nhwc_quantize(const dv_tile *tile, const void *src, const dv_tile_record *record, scales *to, packer *p) {
    size_t channels = tile->channels, times = run_repetitions(tile), stride;
    repeat(to->offset, channels, times);
    repeat(to->scale, channels, times);
    ALIGNED float low[DV_RUN], buffer[DV_RUN];
    window seen;
    seen.first = seen.end = 0;
    const size_t most = DV_RUN / channels;
    pixel_run now = pixel_run_first(tile, most), last = {0};
    do {
        if (!pixel_run_is_alike(&last, &now))
            nhwc_run_averages(tile, src, record, &now, &seen, low);
        last = now;
        const float *x = pixel_run_load(tile, src, &now, buffer, &stride);
        quantize(x, stride, now.rows, now.width, low, to->offset, to->scale, p->fixed + p->fill, tile->next);
        packer_add(p, now.rows * now.width);
    } while (pixel_run_next(tile, &now, most));
}

static void nhwc_run_pairs(const dv_tile *tile, const void *src, const dv_tile_record *record, const pixel_run *run,
                           window *seen, halved *low) {
    size_t half = tile->channels / 2, block = run->block;
    for (size_t done = 0, pixels; done < run->pixels; done += pixels, block++) {
        pixels = pixels_alike(tile, run, done);
        halve_averages(nhwc_averages(tile, src, record, block, seen), half, run->rows == 1 ? pixels : 1, done * half,
                       low);
    }
}

/* The same by pairs. */
static void nhwc_quantize_pairs(const dv_tile *tile, const void *src, const dv_tile_record *record, const scales *to,
                                packer *p) {
    size_t half = tile->channels / 2, times = run_repetitions(tile);
    halved low, offset, scale;
    halve(to->offset, half, times, &offset);
    halve(to->scale, half, times, &scale);
    window seen;
    seen.first = seen.end = 0;
    const size_t most = DV_RUN / tile->channels;
    pixel_run now = pixel_run_first(tile, most), last = {0};
    do {
        if (!pixel_run_is_alike(&last, &now))
            nhwc_run_pairs(tile, src, record, &now, &seen, &low);
        last = now;
        const void *x = pixel_run_at(tile, src, &now);
        quantize_pairs(x, tile->pixel_stride / 2, now.rows, now.width / 2, &low, &offset, &scale,
                       (pair *)(p->fixed + p->fill));
        packer_add(p, now.rows * now.width);
    } while (pixel_run_next(tile, &now, most));
}

/* choose_steps, into the record. */
static bool nhwc_choose_steps(const dv_tile *tile, const residue *rest, const dv_tile_record *record, scales *to) {
    if (!is_paired(tile))
        return choose_steps(rest, tile->channels, tile->bits, record->minima, record->steps, to);
    uint16_t minima[DV_RUN], steps[DV_RUN];
    bool finite = choose_steps(rest, tile->channels, tile->bits, minima, steps, to);
    interleave(minima, tile->channels / 2, record->minima);
    interleave(steps, tile->channels / 2, record->steps);
    return finite;
}

static bool nhwc_encode(const dv_tile *tile, dv_random key, const void *src, const dv_tile_record *record) {
    residue rest;
    scales to;
    nhwc_average(tile, src, record->averages, &rest);
    if (!tile->hfc)
        return residue_is_clean(&rest, tile->channels);
    if (!nhwc_choose_steps(tile, &rest, record, &to))
        return false;
    packer p = {.key = key, .nearest = tile->dither == DV_DITHER_NONE, .bits = tile->bits, .dst = record->codes};
    if (is_paired(tile))
        nhwc_quantize_pairs(tile, src, record, &to, &p);
    else
        nhwc_quantize(tile, src, record, &to, &p);
    packer_finish(&p);
    return true;
}

/* A run's elements, as f32 one behind the other, to where they belong. */
INLINE void pixel_run_store(const dv_tile *tile, const float *values, const pixel_run *run, char *at) {
    size_t rows = run->width == tile->pixel_stride ? 1 : run->rows, width = run->rows * run->width / rows;
    for (size_t j = 0; j < rows; j++)
        from_f32(tile->type, values + j * width, width, element_in(tile->type, at, j * tile->pixel_stride));
}

/* Whether the run, whose elements are one behind the other, fills whole lines of the caches. */
INLINE bool pixel_run_streams(const dv_tile *tile, const pixel_run *run, const char *at) {
    size_t bytes = run->rows * run->width * dv_type_bytes(tile->type);
    return tile->streams && tile->type != DV_F16 && (run->rows == 1 || run->width == tile->pixel_stride) &&
           ((uintptr_t)at | bytes) % 64 == 0;
}

/* The same past the caches. */
INLINE void pixel_run_stream(const dv_tile *tile, const float *levels, const pixel_run *run, const float *base,
                             const float *scale, float *buffer, char *at) {
    if (tile->type == DV_F32)
        restore(levels, run->width, run->rows, run->width, base, scale, buffer);
    else
        restore_bf16(levels, run->width, run->rows, run->width, base, scale, (uint16_t *)(void *)buffer);
    stream_lines(buffer, run->rows * run->width * dv_type_bytes(tile->type), at);
}

/* The other way: the run's levels to elements in `dst`. */
INLINE void pixel_run_restore(const dv_tile *tile, const float *levels, const pixel_run *run, const float *base,
                              const float *scale, float *buffer, void *dst) {
    char *at = element_in(tile->type, dst, run->pixel * tile->pixel_stride);
    if (pixel_run_streams(tile, run, at)) {
        pixel_run_stream(tile, levels, run, base, scale, buffer, at);
        return;
    }
    if (tile->type == DV_F32) {
        restore(levels, tile->pixel_stride, run->rows, run->width, base, scale, (float *)(void *)at);
        return;
    }
    if (tile->type == DV_BF16) {
        restore_bf16(levels, tile->pixel_stride, run->rows, run->width, base, scale, (uint16_t *)(void *)at);
        return;
    }
    restore(levels, run->width, run->rows, run->width, base, scale, buffer);
    pixel_run_store(tile, buffer, run, at);
}

/* base = average + minimum; where averages are not kept they are 0. */
INLINE void add_averages(const uint16_t *averages, const float *minimum, size_t channels, float *base) {
    if (averages == NULL)
        for (size_t i = 0; i < channels; i++)
            base[i] = 0.0f + minimum[i];
    else
        for (size_t i = 0; i < channels; i++)
            base[i] = dv_bf16_to_f32(averages[i]) + minimum[i];
}

/* The value of level 0 of each element of a row of the run. */
static void nhwc_run_bases(const dv_tile *tile, const dv_tile_record *record, const float *minimum,
                           const pixel_run *run, float *base) {
    size_t channels = tile->channels, block = run->block;
    for (size_t done = 0, pixels; done < run->pixels; done += pixels, block++) {
        pixels = pixels_alike(tile, run, done);
        add_averages(tile->lfc ? record->averages + block * channels : NULL, minimum, channels, base + done * channels);
        repeat(base + done * channels, channels, run->rows == 1 ? pixels : 1);
    }
}

static void nhwc_decode(const dv_tile *tile, dv_random key, const dv_tile_record *record, void *dst) {
    ALIGNED float minimum[DV_RUN], scale[DV_RUN], base[DV_RUN], buffer[DV_RUN];
    size_t channels = tile->channels;
    decoding_scales(tile, record, minimum, scale);
    repeat(scale, channels, run_repetitions(tile));
    unpacker u;
    unpacker_begin(&u, tile, key, tile->hfc ? record->codes : NULL);
    const size_t most = DV_RUN / channels;
    pixel_run now = pixel_run_first(tile, most), last = {0};
    do {
        if (!pixel_run_is_alike(&last, &now))
            nhwc_run_bases(tile, record, minimum, &now, base);
        last = now;
        const float *levels = unpacker_take(&u, now.rows * now.width);
        pixel_run_restore(tile, levels, &now, base, scale, buffer, dst);
    } while (pixel_run_next(tile, &now, most));
    if (tile->streams)
        stream_end();
}
