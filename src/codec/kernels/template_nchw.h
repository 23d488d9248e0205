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
};

/* True if DV_GROUP elements behind channel `channel` belong to the tile too. */
INLINE bool has_room(const dv_tile *tile, size_t channel) {
    return channel + 1 < tile->channels && dv_tile_pixels(tile) >= DV_GROUP;
}

/* `count`, or, if there is room, as many as whole vectors take. */
INLINE size_t whole_vectors(size_t count, bool room) {
    size_t padded = (count + DV_GROUP - 1) / DV_GROUP * DV_GROUP;
    return room && padded <= DV_RUN ? padded : count;
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
    size_t times;         /* rows that are repeated into one */
} stripe;

/* Sets the sizes of a stripe that starts where it says. */
static void stripe_measure(const dv_tile *tile, stripe *now) {
    size_t width = tile->sides[2], edge = tile->edges[1];
    size_t rows_left = least(edge - now->y % edge, tile->sides[1] - now->y);
    now->columns = least(columns_per_run(tile), width - now->x);
    now->rows = now->columns < width ? 1 : least(rows_left, DV_RUN / width);
    now->count = now->rows * now->columns;
    now->times = repetitions(now->columns, now->rows);
    now->block = now->band + now->x / tile->edges[2];
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

/* base[0 .. DV_GROUP) = value, a vector. */
INLINE void fill_vector(float *base, float value) {
    for (size_t j = 0; j < DV_GROUP; j++)
        base[j] = value;
}

/* Writes base[x] = average of x's block + offset for each of `times` rows, and up to DV_GROUP elements
 * beyond the last. */
LOOP void expand_averages(const uint16_t *averages, float offset, size_t edge, size_t width, size_t times,
                          float *base) {
    if (edge >= width) { /* all rows are of one block */
        for (size_t i = 0; i < times * width; i += DV_GROUP)
            fill_vector(base + i, dv_bf16_to_f32(*averages) + offset);
    } else if (edge % DV_GROUP == 0) { /* only the last block of a row can run over: it comes first */
        for (size_t block = (width + edge - 1) / edge; block-- > 0;) {
            float value = dv_bf16_to_f32(averages[block]) + offset;
            for (size_t i = block * edge; i < least((block + 1) * edge, width); i += DV_GROUP)
                for (size_t row = 0; row < times; row++)
                    fill_vector(base + row * width + i, value);
        }
    } else { /* what runs over is overwritten by the next block, or by the next row */
        for (size_t row = 0; row < times; row++)
            for (size_t x = 0; x < width; x += edge)
                for (size_t i = x; i < least(x + edge, width); i += DV_GROUP)
                    fill_vector(base + row * width + i, dv_bf16_to_f32(averages[x / edge]) + offset);
    }
}

/* Adds `rows` rows of `count` columns to the columns. */
static void nchw_add_rows(const dv_tile *tile, const void *src, size_t rows, size_t count, columns *all) {
    size_t width = tile->sides[2];
    if (tile->type == DV_F32) {
        columns_add(all, src, width, rows, count);
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
        columns_add(all, buffer, stride, now, count);
    }
}

/* Blocks whose sums are complete but which are not averaged yet: collected, so that vector code can do
 * many at once. They follow each other as their averages do in the record. */
typedef struct block_list {
    size_t count;
    columns all;              /* sum, minimum, maximum of each */
    float pixels[DV_RUN];     /* of each */
    uint16_t channel[DV_RUN]; /* of each, within the group */
    uint16_t *averages;       /* of the first */
    residue *rest;            /* per channel */
} block_list;

/* Averages the collected blocks, and takes what they leave into account. */
LOOP void block_list_flush(block_list *list) {
    float minimum[DV_RUN], maximum[DV_RUN];
    for (size_t i = 0; i < list->count; i++) {
        float mean = list->all.sum[i] / list->pixels[i];
        bool constant = list->all.minimum[i] == list->all.maximum[i];
        list->averages[i] = dv_bf16_nearest_number(constant ? list->all.maximum[i] : mean);
        float low = dv_bf16_to_f32(list->averages[i]);
        minimum[i] = list->all.minimum[i] - low;
        maximum[i] = list->all.maximum[i] - low;
    }
    for (size_t i = 0; i < list->count; i++) {
        size_t c = list->channel[i];
        list->rest->minimum[c] = smaller(minimum[i], list->rest->minimum[c]);
        list->rest->maximum[c] = larger(maximum[i], list->rest->maximum[c]);
        list->rest->poison[c] += poison_of(list->all.sum[i], list->all.minimum[i], list->all.maximum[i]);
    }
    list->averages += list->count;
    list->count = 0;
}

/* Adds the block made of the `count` columns from `first` on, each of `rows` pixels. */
INLINE void block_list_add(block_list *list, const columns *all, size_t first, size_t count, size_t rows,
                           size_t channel) {
    float sum = 0, minimum = INFINITY, maximum = -INFINITY;
    for (size_t i = first; i < first + count; i++) {
        sum += all->sum[i];
        minimum = smaller(all->minimum[i], minimum);
        maximum = larger(all->maximum[i], maximum);
    }
    size_t at = list->count++;
    list->all.sum[at] = sum;
    list->all.minimum[at] = minimum;
    list->all.maximum[at] = maximum;
    list->pixels[at] = (float)(rows * count);
    list->channel[at] = (uint16_t)channel;
    if (list->count == DV_RUN)
        block_list_flush(list);
}

/* Adds one band of blocks, those of one depth and height, of the channel at `src` to the list. */
LOOP void nchw_add_band(const dv_tile *tile, const void *src, bool room, const size_t block[2], size_t channel,
                        block_list *list) {
    size_t depth = dv_block_length(tile, 0, block[0]), height = dv_block_length(tile, 1, block[1]);
    size_t width = tile->sides[2], edge = tile->edges[2], together = columns_per_run(tile);
    columns all;
    for (size_t x = 0; x < width; x += together) {
        size_t count = least(together, width - x), padded = whole_vectors(count, room), i = 0;
        columns_clear(&all, padded);
        for (size_t z = 0; z < depth; z++) {
            size_t row = (block[0] * tile->edges[0] + z) * tile->sides[1] + block[1] * tile->edges[1];
            nchw_add_rows(tile, element(tile->type, src, row * width + x), height, padded, &all);
        }
        for (; edge == 8 && i + 8 <= count; i += 8)
            block_list_add(list, &all, i, 8, depth * height, channel);
        for (; i < count; i += edge)
            block_list_add(list, &all, i, least(edge, count - i), depth * height, channel);
    }
}

/* Averages of `count` channels from `first` on, and the range of what they leave. */
static void nchw_average(const dv_tile *tile, const void *src, size_t first, size_t count, uint16_t *averages,
                         residue *rest) {
    size_t pixels = dv_tile_pixels(tile), block[2];
    block_list list;
    list.count = 0;
    list.averages = averages + first * dv_tile_blocks(tile);
    list.rest = rest;
    residue_clear(rest, count);
    for (size_t c = 0; c < count; c++)
        for (block[0] = 0; block[0] < tile->blocks[0]; block[0]++)
            for (block[1] = 0; block[1] < tile->blocks[1]; block[1]++)
                nchw_add_band(tile, element(tile->type, src, (first + c) * pixels), has_room(tile, first + c), block, c,
                              &list);
    block_list_flush(&list);
}

/* Quantizes the channel at `src`, whose averages are given. */
static void nchw_quantize(const dv_tile *tile, const char *src, stripe now, bool room, const uint16_t *averages,
                          float offset, float scale, packer *p) {
    float low[DV_RUN + DV_EDGE_MAX], buffer[DV_RUN];
    do {
        expand_averages(averages + now.block, 0, tile->edges[2], now.columns, now.times, low);
        const char *at = element(tile->type, src, now.start);
        prefetch_next(tile, at, now.count * dv_type_bytes(tile->type));
        bool single = now.rows == now.times;
        size_t rows = single ? 1 : now.rows, width = whole_vectors(single ? now.count : now.columns, room && single);
        const float *x = as_f32(tile->type, at, rows * width, buffer);
        quantize_channel(x, rows, width, low, offset, scale, p->fixed + p->fill);
        packer_add(p, now.count);
    } while (stripe_next(tile, &now));
}

static bool nchw_encode(const dv_tile *tile, dv_random key, const void *src, const dv_tile_record *record) {
    size_t pixels = dv_tile_pixels(tile), blocks = dv_tile_blocks(tile);
    size_t group = pixels < DV_GROUP_ELEMENTS ? least(DV_GROUP_ELEMENTS / pixels, DV_RUN) : 1;
    residue rest;
    scales to;
    packer p = {.key = key, .bits = tile->bits, .dst = record->codes};
    const stripe start = stripe_first(tile);
    for (size_t first = 0; first < tile->channels; first += group) {
        size_t count = least(group, tile->channels - first);
        nchw_average(tile, src, first, count, record->averages, &rest);
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
    float base[DV_RUN + DV_EDGE_MAX], buffer[DV_RUN];
    do {
        expand_averages(averages + now.block, minimum, tile->edges[2], now.columns, now.times, base);
        char *at = element_in(tile->type, dst, now.start);
        bool single = now.rows == now.times;
        size_t rows = single ? 1 : now.rows, width = whole_vectors(single ? now.count : now.columns, room && single);
        float *out = tile->type == DV_F32 ? (float *)(void *)at : buffer;
        restore_channel(unpacker_take(u, now.count), rows, width, base, scale, out);
        if (tile->type != DV_F32)
            from_f32(tile->type, buffer, rows * width, at);
    } while (stripe_next(tile, &now));
}

static void nchw_decode(const dv_tile *tile, dv_random key, const dv_tile_record *record, void *dst) {
    size_t pixels = dv_tile_pixels(tile), blocks = dv_tile_blocks(tile);
    float minimum[DV_RUN], scale[DV_RUN];
    decoding_scales(record->minima, record->steps, tile->channels, minimum, scale);
    unpacker u = {.key = key, .bits = tile->bits, .subtractive = tile->subtractive, .src = record->codes};
    u.left = tile->channels * pixels;
    const stripe start = stripe_first(tile);
    for (size_t c = 0; c < tile->channels; c++)
        nchw_restore(tile, &u, start, has_room(tile, c), record->averages + c * blocks, minimum[c], scale[c],
                     element_in(tile->type, dst, c * pixels));
}
