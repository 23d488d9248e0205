/* The part of template.h for maps with channels first: rows of pixels instead of rows of channels.
 *
 * A channel is small enough to stay in a cache between the passes, so both go channel by channel,
 * or, where maps are tiny, by groups of channels, so that their steps are chosen by vector code. */

/* Elements of a group: few enough for the L2 cache. */
enum { DV_GROUP_ELEMENTS = 32768, DV_EDGE_MAX = 64 };

/* Columns that are handled together: the whole row, or as many whole blocks as fit in a run. */
INLINE size_t columns_per_run(const dv_tile *tile) {
    size_t edge = tile->edges[2];
    return tile->sides[2] <= DV_RUN ? tile->sides[2] : DV_RUN / edge * edge;
}

/* A part of a channel in the second pass: whole rows, or a piece of one, that lie in the same
 * blocks. Contiguous in memory, at most DV_RUN elements. */
typedef struct stripe {
    size_t start;         /* its first element, counted from the channel's first */
    size_t block;         /* its first block */
    size_t rows, columns; /* of pixels */
    size_t x, y, z;       /* where it starts */
    size_t band;          /* the first block of its row of blocks */
} stripe;

/* The row of blocks that the row after (y, z) is in, where `band` is that of the row before. */
INLINE size_t next_band(const dv_tile *tile, size_t band, size_t y, size_t z) {
    if (y < tile->sides[1])
        return y % tile->edges[1] ? band : band + tile->blocks[2];
    bool same_depth = (z + 1) % tile->edges[0] != 0;
    return same_depth ? band - (tile->blocks[1] - 1) * tile->blocks[2] : band + tile->blocks[2];
}

/* Moves on to the next stripe; the first if `rows` is 0. False at the end of the channel. */
INLINE bool stripe_next(const dv_tile *tile, stripe *now) {
    size_t width = tile->sides[2], height = tile->sides[1], edge = tile->edges[1];
    now->start += now->rows * now->columns;
    now->x += now->columns;
    if (now->x == width) {
        now->x = 0;
        now->y += now->rows;
        now->band = next_band(tile, now->band, now->y, now->z);
    }
    if (now->y == height) {
        now->y = 0;
        now->z++;
    }
    if (now->z == tile->sides[0])
        return false;
    now->columns = least(columns_per_run(tile), width - now->x);
    size_t rows_left = least(edge - now->y % edge, height - now->y);
    now->rows = now->columns < width ? 1 : least(rows_left, DV_RUN / width);
    now->block = now->band + now->x / tile->edges[2];
    return true;
}

/* Writes base[x] = average of x's block + offset for a row of a stripe, `times` times. May write
 * DV_EDGE_MAX further. */
INLINE void expand_averages(const uint16_t *averages, float offset, size_t edge, size_t columns_, size_t times,
                            float *base) {
    for (size_t x = 0; x < columns_; x += edge) {
        float value = dv_bf16_to_f32(*averages++) + offset;
        for (size_t j = 0; edge == 8 && j < 8; j++)
            base[x + j] = value;
        for (size_t j = 0; edge != 8 && j < edge; j++)
            base[x + j] = value;
    }
    repeat(base, columns_, times);
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

/* The average of one block whose columns are complete, and what it leaves in channel `channel`. */
INLINE uint16_t average_columns(const columns *all, size_t first, size_t count, size_t rows, residue *rest,
                                size_t channel) {
    float sum = 0, minimum = INFINITY, maximum = -INFINITY;
    for (size_t i = first; i < first + count; i++) {
        sum += all->sum[i];
        minimum = smaller(all->minimum[i], minimum);
        maximum = larger(all->maximum[i], maximum);
    }
    float mean = sum / (float)(rows * count);
    uint16_t average = dv_bf16_nearest_number(minimum == maximum ? maximum : mean);
    float low = dv_bf16_to_f32(average);
    rest->minimum[channel] = smaller(minimum - low, rest->minimum[channel]);
    rest->maximum[channel] = larger(maximum - low, rest->maximum[channel]);
    rest->poison[channel] += sum * 0.0f;
    return average;
}

/* Columns to add so that `count` are wanted: whole vectors, if there is something behind the row to
 * read (`room`); what the extra columns collect is not used. */
INLINE size_t whole_vectors(size_t count, bool room) {
    size_t padded = (count + DV_GROUP - 1) / DV_GROUP * DV_GROUP;
    return room && padded <= DV_RUN ? padded : count;
}

/* True if a few elements behind channel `channel` can be read: another channel follows. */
INLINE bool has_room(const dv_tile *tile, size_t channel) {
    return channel + 1 < tile->channels && dv_tile_pixels(tile) >= DV_GROUP;
}

/* Averages of one band of blocks (those of one depth and height) of the channel at `src`. */
static void nchw_average_band(const dv_tile *tile, const void *src, bool room, size_t band, uint16_t *averages,
                              residue *rest, size_t channel) {
    size_t block_z = band / tile->blocks[1], block_y = band % tile->blocks[1];
    size_t depth = dv_block_length(tile, 0, block_z), height = dv_block_length(tile, 1, block_y);
    size_t width = tile->sides[2], edge = tile->edges[2], together = columns_per_run(tile);
    columns all;
    for (size_t x = 0; x < width; x += together) {
        size_t count = least(together, width - x), padded = whole_vectors(count, room);
        columns_clear(&all, padded);
        for (size_t z = 0; z < depth; z++) {
            size_t row = (block_z * tile->edges[0] + z) * tile->sides[1] + block_y * tile->edges[1];
            nchw_add_rows(tile, element(tile->type, src, row * width + x), height, padded, &all);
        }
        for (size_t i = 0; i < count; i += edge)
            *averages++ = average_columns(&all, i, least(edge, count - i), depth * height, rest, channel);
    }
}

static bool nchw_encode(const dv_tile *tile, dv_random key, const void *src, const dv_tile_record *record) {
    size_t pixels = dv_tile_pixels(tile), blocks = dv_tile_blocks(tile);
    size_t bands = tile->blocks[0] * tile->blocks[1];
    size_t group = pixels < DV_GROUP_ELEMENTS ? least(DV_GROUP_ELEMENTS / pixels, DV_RUN) : 1;
    float low[DV_RUN + DV_EDGE_MAX], buffer[DV_RUN];
    residue rest;
    scales to;
    packer p = {.key = key, .bits = tile->bits, .dst = record->codes};
    for (size_t first = 0; first < tile->channels; first += group) {
        size_t count = least(group, tile->channels - first);
        residue_clear(&rest, count);
        for (size_t c = 0; c < count; c++)
            for (size_t band = 0; band < bands; band++)
                nchw_average_band(tile, element(tile->type, src, (first + c) * pixels), has_room(tile, first + c), band,
                                  record->averages + (first + c) * blocks + band * tile->blocks[2], &rest, c);
        if (!choose_steps(&rest, count, tile->bits, record->minima + first, record->steps + first, &to))
            return false;
        for (size_t c = 0; c < count; c++)
            for (stripe now = {0}; stripe_next(tile, &now);) {
                size_t times = repetitions(now.columns, now.rows);
                expand_averages(record->averages + (first + c) * blocks + now.block, 0, tile->edges[2], now.columns,
                                times, low);
                const char *at = element(tile->type, src, (first + c) * pixels + now.start);
                prefetch_next(tile, at, now.rows * now.columns * dv_type_bytes(tile->type));
                quantize_channel(as_f32(tile->type, at, now.rows * now.columns, buffer), now.rows / times,
                                 now.columns * times, low, to.minimum[c], to.inverse[c], p.fixed + p.fill);
                packer_add(&p, now.rows * now.columns);
            }
    }
    packer_finish(&p);
    return true;
}

static void nchw_decode(const dv_tile *tile, dv_random key, const dv_tile_record *record, void *dst) {
    size_t pixels = dv_tile_pixels(tile), blocks = dv_tile_blocks(tile);
    float minimum[DV_RUN], scale[DV_RUN], base[DV_RUN + DV_EDGE_MAX], buffer[DV_RUN];
    decoding_scales(record->minima, record->steps, tile->channels, minimum, scale);
    unpacker u = {.key = key, .bits = tile->bits, .subtractive = tile->subtractive, .src = record->codes};
    u.left = tile->channels * pixels;
    for (size_t c = 0; c < tile->channels; c++)
        for (stripe now = {0}; stripe_next(tile, &now);) {
            size_t run = now.columns * now.rows;
            size_t times = repetitions(now.columns, now.rows), width = now.columns * times;
            expand_averages(record->averages + c * blocks + now.block, minimum[c], tile->edges[2], now.columns, times,
                            base);
            char *at = element_in(tile->type, dst, c * pixels + now.start);
            float *out = tile->type == DV_F32 ? (float *)(void *)at : buffer;
            const float *levels = unpacker_take(&u, run);
            restore_channel(levels, now.rows / times, width, base, scale[c], out);
            if (tile->type != DV_F32)
                from_f32(tile->type, buffer, run, at);
        }
}
