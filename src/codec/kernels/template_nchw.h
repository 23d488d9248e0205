/* The part of template.h for maps with channels first: rows of pixels instead of rows of channels.
 *
 * A channel is small enough to stay in a cache between the passes, so both go channel by channel,
 * or, where maps are tiny, by groups of channels, so that their steps are chosen by vector code.
 *
 * Tiny maps are also why loops here run on to whole vectors: the elements behind a row, or behind a
 * channel, are those of the next, so they can be read for nothing, and written if they are written
 * again later. Only a tile's last channel has nothing behind it. */

enum {
    DV_GROUP_ELEMENTS = 32768, /* of a group of channels: few enough for the L2 cache */
    DV_EDGE_MAX = 64,          /* of a block */
    DV_LIST = 64,              /* blocks that are averaged together */
};

/* True if 2 DV_GROUP elements behind channel `channel` belong to the tile too. */
INLINE bool has_room(const dv_tile *tile, size_t channel) {
    return channel + 1 < tile->channels && dv_tile_pixels(tile) >= 2 * DV_GROUP;
}

/* `count`, or, if there is room, as many as whole vectors of `lanes_` take. */
INLINE size_t whole_vectors(size_t count, size_t lanes_, bool room) {
    return room ? (count + lanes_ - 1) / lanes_ * lanes_ : count;
}

/* Columns that are handled together: the whole row, or as many whole blocks as fit in a run. */
INLINE size_t columns_per_run(const dv_tile *tile) {
    size_t edge = tile->edges[2];
    return tile->sides[2] <= DV_RUN ? tile->sides[2] : DV_RUN / edge * edge;
}

/* A part of a channel in the second pass: whole rows, or a piece of one, that lie in the same
 * blocks. Contiguous in memory, at most DV_RUN elements. */
typedef struct stripe {
    size_t x, y, z;       /* where it starts */
    size_t start;         /* the same, in elements from the channel's first */
    size_t band, block;   /* the first block of its row of blocks, and its own first */
    size_t rows, columns; /* of pixels */
    size_t count;         /* of elements */
    size_t width, edge;   /* of rows and blocks to work on: those of the map, but where rows are of one block, all
                           * of them are one row */
} stripe;

/* Sets the sizes of a stripe that starts where it says. */
static void stripe_measure(const dv_tile *tile, stripe *now) {
    size_t width = tile->sides[2], edge = tile->edges[1];
    size_t rows_left = least(edge - now->y % edge, tile->sides[1] - now->y);
    now->columns = least(columns_per_run(tile), width - now->x);
    now->rows = now->columns < width ? 1 : least(rows_left, DV_RUN / width);
    now->count = now->rows * now->columns;
    now->block = now->band + now->x / tile->edges[2];
    now->width = tile->blocks[2] == 1 ? now->count : now->columns;
    now->edge = tile->blocks[2] == 1 ? now->count : tile->edges[2];
}

static stripe stripe_first(const dv_tile *tile) {
    stripe first = {0};
    stripe_measure(tile, &first);
    return first;
}

static void stripe_advance(const dv_tile *tile, stripe *now) {
    now->x += now->columns;
    if (now->x == tile->sides[2]) {
        now->x = 0;
        now->y += now->rows;
        now->band = next_band(tile, now->band, now->y, now->z);
    }
    if (now->y == tile->sides[1]) {
        now->y = 0;
        now->z++;
    }
    stripe_measure(tile, now);
}

/* Moves on to the next stripe. False at the end of the channel. */
INLINE bool stripe_next(const dv_tile *tile, stripe *now) {
    now->start += now->count;
    if (now->start == dv_tile_pixels(tile))
        return false;
    stripe_advance(tile, now);
    return true;
}

/* DV_GROUP floats that the compiler keeps in vector registers, at any address. */
typedef float lanes __attribute__((vector_size(4 * DV_GROUP), aligned(4), may_alias));

INLINE void fill_vector(float *base, float value) {
    *(lanes *)base = (lanes){value, value, value, value, value, value, value, value};
}

/* Writes base[x] = average of x's block + offset for a row of `width` columns. What runs over the end of a block
 * is overwritten by the next; the last may run over by up to DV_GROUP. */
LOOP void expand_averages(const uint16_t *averages, float offset, size_t edge, size_t width, float *base) {
    for (size_t x = 0; x < width; x += edge) {
        float value = dv_bf16_to_f32(*averages++) + offset;
        for (size_t i = x; i < least(x + edge, width); i += DV_GROUP)
            fill_vector(base + i, value);
    }
}

/* Rows of a channel to fixed point. They follow each other `stride` apart, but `width` of each are done: as many,
 * or as many more as whole vectors take, which the next row overwrites. Those may be of another block or
 * channel, and any number. */
LOOP ANY_NUMBER void quantize_channel(const float *restrict x, size_t rows, size_t stride, size_t width,
                                      const float *restrict low, float offset, float scale, uint16_t *restrict fixed) {
    for (size_t j = 0; j < rows; j++, x += stride, fixed += stride)
        UNROLL for (size_t i = 0; i < width; i++) {
            fixed[i] = (uint16_t)(int32_t)((x[i] - low[i] - offset) * scale);
        }
}

/* Rows of levels to elements of a channel, likewise. */
LOOP void restore_channel(const float *restrict levels, size_t rows, size_t stride, size_t width,
                          const float *restrict base, float scale, float *restrict out) {
    for (size_t j = 0; j < rows; j++, levels += stride, out += stride)
        UNROLL for (size_t i = 0; i < width; i++) {
            out[i] = base[i] + scale * levels[i];
        }
}

/* Adds `rows` rows of `count` columns to the columns. */
static void nchw_add_rows(const dv_tile *tile, const void *src, size_t rows, size_t count, columns *all) {
    size_t width = tile->sides[2];
    if (tile->type == DV_F32) {
        columns_add(all, 0, src, width, rows, count);
        return;
    }
    float buffer[DV_GROUP * DV_RUN];
    size_t stride = least(width, count);
    for (size_t done = 0; done < rows; done += DV_GROUP) {
        size_t now = least(DV_GROUP, rows - done);
        if (stride == width)
            to_f32(tile->type, element(tile->type, src, done * width), (now - 1) * width + count, buffer);
        else
            for (size_t j = 0; j < now; j++)
                to_f32(tile->type, element(tile->type, src, (done + j) * width), count, buffer + j * stride);
        columns_add(all, 0, buffer, stride, now, count);
    }
}

/* Blocks whose columns are complete but not added up yet: collected, so that vector code can do many at once.
 * They follow each other as their averages do in the record. Each has DV_GROUP columns, the last of which may be
 * empty: sum 0, minimum infinite, maximum minus infinite. */
typedef struct block_list {
    size_t count;
    float sum[DV_LIST][DV_GROUP], minimum[DV_LIST][DV_GROUP], maximum[DV_LIST][DV_GROUP];
    float pixels[DV_LIST];     /* of each */
    uint16_t channel[DV_LIST]; /* of each, within the group */
    uint16_t *averages;        /* of the first */
    bool unkept;               /* averages are not: each time they go to the same place */
    residue *rest;             /* per channel */
} block_list;

/* Turns DV_GROUP rows of as many numbers into columns. Rows follow each other `stride` and `out_stride` apart. */
INLINE void transpose(const float *rows, size_t stride, float *out, size_t out_stride) {
    lanes a[DV_GROUP], b[DV_GROUP];
    for (size_t i = 0; i < DV_GROUP; i += 2) { /* pairs of rows */
        lanes x = *(const lanes *)(rows + i * stride), y = *(const lanes *)(rows + (i + 1) * stride);
        a[i] = __builtin_shufflevector(x, y, 0, 8, 1, 9, 4, 12, 5, 13);
        a[i + 1] = __builtin_shufflevector(x, y, 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (size_t i = 0; i < DV_GROUP; i += 4) /* fours */
        for (size_t j = 0; j < 2; j++) {
            b[i + 2 * j] = __builtin_shufflevector(a[i + j], a[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            b[i + 2 * j + 1] = __builtin_shufflevector(a[i + j], a[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (size_t i = 0; i < 4; i++) { /* halves */
        *(lanes *)(out + i * out_stride) = __builtin_shufflevector(b[i], b[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        *(lanes *)(out + (i + 4) * out_stride) = __builtin_shufflevector(b[i], b[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

/* Adds up the columns of DV_GROUP blocks, from left to right. */
INLINE void add_columns(const block_list *list, size_t first, float *restrict sum, float *restrict minimum,
                        float *restrict maximum) {
    float sums[DV_GROUP][DV_GROUP], minima[DV_GROUP][DV_GROUP], maxima[DV_GROUP][DV_GROUP];
    transpose(list->sum[first], DV_GROUP, sums[0], DV_GROUP); /* of blocks' columns, [i] are the i-th of each */
    transpose(list->minimum[first], DV_GROUP, minima[0], DV_GROUP);
    transpose(list->maximum[first], DV_GROUP, maxima[0], DV_GROUP);
    for (size_t j = 0; j < DV_GROUP; j++) {
        float total = 0, low = INFINITY, high = -INFINITY;
        for (size_t i = 0; i < DV_GROUP; i++) {
            total += sums[i][j];
            low = smaller(minima[i][j], low);
            high = larger(maxima[i][j], high);
        }
        sum[j] = total;
        minimum[j] = low;
        maximum[j] = high;
    }
}

/* Averages the collected blocks, and takes what they leave into account. */
LOOP void block_list_flush(block_list *list) {
    float sum[DV_LIST], minimum[DV_LIST], maximum[DV_LIST], poison[DV_LIST];
    for (size_t i = 0; i < list->count; i += DV_GROUP)
        add_columns(list, i, sum + i, minimum + i, maximum + i);
    for (size_t i = 0; i < list->count; i++) {
        float mean = sum[i] / list->pixels[i];
        list->averages[i] = dv_bf16_nearest_number(minimum[i] == maximum[i] ? maximum[i] : mean);
        float low = dv_bf16_to_f32(list->averages[i]);
        poison[i] = poison_of(sum[i], minimum[i], maximum[i]);
        minimum[i] -= low;
        maximum[i] -= low;
    }
    for (size_t i = 0; i < list->count;) { /* channel by channel, in registers */
        size_t c = list->channel[i];
        float low = list->rest->minimum[c], high = list->rest->maximum[c], bad = list->rest->poison[c];
        for (; i < list->count && list->channel[i] == c; i++) {
            low = smaller(minimum[i], low);
            high = larger(maximum[i], high);
            bad += poison[i];
        }
        list->rest->minimum[c] = low;
        list->rest->maximum[c] = high;
        list->rest->poison[c] = bad;
    }
    list->averages += list->unkept ? 0 : list->count;
    list->count = 0;
}

/* Puts a block of more than DV_GROUP columns, added up, into the first column of entry `at`. */
static void fold_columns(block_list *list, size_t at, const columns *all, size_t first, size_t count) {
    fill_vector(list->sum[at], 0);
    fill_vector(list->minimum[at], INFINITY);
    fill_vector(list->maximum[at], -INFINITY);
    for (size_t i = first; i < first + count; i++) {
        list->sum[at][0] += all->sum[i];
        list->minimum[at][0] = smaller(all->minimum[i], list->minimum[at][0]);
        list->maximum[at][0] = larger(all->maximum[i], list->maximum[at][0]);
    }
}

/* Adds the block made of the `count` columns from `first` on, each of `rows` pixels. */
INLINE void block_list_add(block_list *list, const columns *all, size_t first, size_t count, size_t rows,
                           size_t channel) {
    size_t at = list->count++;
    if (count <= DV_GROUP) {
        *(lanes *)list->sum[at] = *(const lanes *)&all->sum[first];
        *(lanes *)list->minimum[at] = *(const lanes *)&all->minimum[first];
        *(lanes *)list->maximum[at] = *(const lanes *)&all->maximum[first];
        for (size_t i = count; i < DV_GROUP; i++) {
            list->sum[at][i] = 0;
            list->minimum[at][i] = INFINITY;
            list->maximum[at][i] = -INFINITY;
        }
    } else {
        fold_columns(list, at, all, first, count);
    }
    list->pixels[at] = (float)(rows * count);
    list->channel[at] = (uint16_t)channel;
    if (list->count == DV_LIST)
        block_list_flush(list);
}

/* Adds blocks of one depth and height of the channel at `src` to the list: those of `count` columns from `x` on. */
INLINE void nchw_add_blocks(const dv_tile *tile, const void *src, bool room, const size_t block[2], size_t x,
                            size_t count, size_t channel, block_list *list) {
    size_t depth = dv_block_length(tile, 0, block[0]), height = dv_block_length(tile, 1, block[1]);
    size_t edge = tile->edges[2], padded = whole_vectors(count, DV_GROUP, room), i = 0;
    columns all;
    columns_clear(&all, padded);
    for (size_t z = 0; z < depth; z++) {
        size_t row = (block[0] * tile->edges[0] + z) * tile->sides[1] + block[1] * tile->edges[1];
        nchw_add_rows(tile, element(tile->type, src, row * tile->sides[2] + x), height, padded, &all);
    }
    for (; edge == 8 && i + 8 <= count; i += 8)
        block_list_add(list, &all, i, 8, depth * height, channel);
    for (; i < count; i += edge)
        block_list_add(list, &all, i, least(edge, count - i), depth * height, channel);
}

/* Adds one band of blocks, those of one depth and height. */
LOOP void nchw_add_band(const dv_tile *tile, const void *src, bool room, const size_t block[2], size_t channel,
                        block_list *list) {
    size_t width = tile->sides[2], together = columns_per_run(tile);
    for (size_t x = 0; x < width; x += together)
        nchw_add_blocks(tile, src, room, block, x, least(together, width - x), channel, list);
}

/* Averages of `count` channels from `first` on, as far as they are kept, and the range of what they leave. */
static void nchw_average(const dv_tile *tile, const void *src, size_t first, size_t count, uint16_t *averages,
                         residue *rest) {
    size_t pixels = dv_tile_pixels(tile), block[2];
    uint16_t unkept[DV_LIST];
    block_list list;
    list.count = 0;
    list.unkept = !tile->lfc;
    list.averages = tile->lfc ? averages + first * dv_tile_blocks(tile) : unkept;
    list.rest = rest;
    residue_clear(rest, count);
    for (size_t c = 0; c < count; c++)
        for (block[0] = 0; block[0] < tile->blocks[0]; block[0]++)
            for (block[1] = 0; block[1] < tile->blocks[1]; block[1]++)
                nchw_add_band(tile, element(tile->type, src, (first + c) * pixels), has_room(tile, first + c), block, c,
                              &list);
    block_list_flush(&list);
}

/* Averages that are not kept: of the blocks of a stripe of the channel at `src`, made again. */
LOOP void stripe_average(const dv_tile *tile, const void *src, bool room, const stripe *now, uint16_t *averages) {
    const size_t block[2] = {now->z / tile->edges[0], now->y / tile->edges[1]};
    residue unused;
    block_list list;
    list.count = 0;
    list.unkept = false;
    list.averages = averages;
    list.rest = &unused;
    residue_clear(&unused, 1);
    nchw_add_blocks(tile, src, room, block, now->x, now->columns, 0, &list);
    block_list_flush(&list);
}

/* Quantizes the channel at `src`, whose averages are given if they are kept. */
static void nchw_quantize(const dv_tile *tile, const char *src, stripe now, bool room, const uint16_t *averages,
                          float offset, float scale, packer *p) {
    float low[DV_RUN + DV_EDGE_MAX], buffer[DV_RUN + 2 * DV_GROUP];
    uint16_t made[DV_RUN];
    size_t made_of = SIZE_MAX; /* the first block that they are of */
    do {
        const char *at = element(tile->type, src, now.start);
        size_t width = whole_vectors(now.width, 2 * DV_GROUP, room);
        if (!tile->lfc && now.block != made_of)
            stripe_average(tile, src, room, &now, made);
        made_of = now.block;
        expand_averages(tile->lfc ? averages + now.block : made, 0, now.edge, now.width, low);
        prefetch_next(tile, at, now.count * dv_type_bytes(tile->type));
        const float *x = as_f32(tile->type, at, now.count + width - now.width, buffer);
        quantize_channel(x, now.count / now.width, now.width, width, low, offset, scale, p->fixed + p->fill);
        packer_add(p, now.count);
    } while (stripe_next(tile, &now));
}

static bool nchw_encode(const dv_tile *tile, dv_random key, const void *src, const dv_tile_record *record) {
    size_t pixels = dv_tile_pixels(tile), blocks = dv_tile_blocks(tile);
    size_t group = pixels < DV_GROUP_ELEMENTS ? least(DV_GROUP_ELEMENTS / pixels, DV_RUN) : 1;
    residue rest;
    scales to;
    packer p = {.key = key, .nearest = tile->dither == DV_DITHER_NONE, .bits = tile->bits, .dst = record->codes};
    const stripe start = stripe_first(tile);
    for (size_t first = 0; first < tile->channels; first += group) {
        size_t count = least(group, tile->channels - first);
        nchw_average(tile, src, first, count, record->averages, &rest);
        if (!tile->hfc && !residue_is_clean(&rest, count))
            return false;
        if (!tile->hfc)
            continue;
        if (!choose_steps(&rest, count, tile->bits, record->minima + first, record->steps + first, &to))
            return false;
        for (size_t c = 0; c < count; c++)
            nchw_quantize(tile, element(tile->type, src, (first + c) * pixels), start, has_room(tile, first + c),
                          record->averages + (first + c) * blocks, to.offset[c], to.scale[c], &p);
    }
    packer_finish(&p);
    return true;
}

/* The other way: the channel at `dst` from its averages and the levels that come next. */
static void nchw_restore(const dv_tile *tile, unpacker *u, stripe now, bool room, const uint16_t *averages,
                         float minimum, float scale, char *dst) {
    static const uint16_t none = 0; /* where averages are not kept */
    float base[DV_RUN + DV_EDGE_MAX], buffer[DV_RUN + 2 * DV_GROUP];
    do {
        char *at = element_in(tile->type, dst, now.start);
        float *out = tile->type == DV_F32 ? (float *)(void *)at : buffer;
        size_t width = whole_vectors(now.width, DV_GROUP, room);
        const float *levels = unpacker_take(u, now.count);
        expand_averages(tile->lfc ? averages + now.block : &none, minimum, tile->lfc ? now.edge : now.width, now.width,
                        base);
        restore_channel(levels, now.count / now.width, now.width, width, base, scale, out);
        if (tile->type != DV_F32)
            from_f32(tile->type, buffer, now.count, at);
    } while (stripe_next(tile, &now));
}

static void nchw_decode(const dv_tile *tile, dv_random key, const dv_tile_record *record, void *dst) {
    size_t pixels = dv_tile_pixels(tile), blocks = dv_tile_blocks(tile);
    float minimum[DV_RUN], scale[DV_RUN];
    decoding_scales(tile, record, minimum, scale);
    unpacker u;
    unpacker_begin(&u, tile, key, tile->hfc ? record->codes : NULL);
    const stripe start = stripe_first(tile);
    for (size_t c = 0; c < tile->channels; c++)
        nchw_restore(tile, &u, start, has_room(tile, c), record->averages + c * blocks, minimum[c], scale[c],
                     element_in(tile->type, dst, c * pixels));
}
