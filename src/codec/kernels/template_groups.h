/* The part of template.h for groups of 256 elements, which follow each other channel by channel: in a map with channels
 * last they are columns, of one channel or of several.
 *
 *     pixels  |  channel 0  channel 1  channel 2         P pixels; channel c begins with element c P
 *        0    |      |          :          :             its groups end where c P + p is a multiple of 256
 *       64    |      |          :          |
 *      ...    |      :          |          |
 *
 * With g = gcd(P, 256), groups begin at pixels that are multiples of g only. So a tile is cut into runs of g pixels;
 * all channels are handled together in a run, and between two runs those whose groups end there get the next. Of run r
 * these are the channels c with c P/g + r = 0 mod 256/g: every so many-th from one on that follows from the one before.
 */

typedef struct group_runs {
    size_t pixels;     /* of a run: g */
    size_t phases;     /* 256 / g: of so many channels one begins a group in a run */
    size_t back;       /* how far the first such channel goes back from run to run */
    size_t run, first; /* now */
} group_runs;

static group_runs group_runs_begin(size_t pixels) {
    group_runs r = {.pixels = least(pixels & (~pixels + 1), DV_CHUNK)};
    r.phases = DV_CHUNK / r.pixels;
    size_t odd = pixels / r.pixels % r.phases;
    while (r.phases > 1 && r.back * odd % r.phases != 1)
        r.back++;
    return r;
}

INLINE void group_runs_next(group_runs *r) {
    r->run++;
    r->first = (r->first + r->phases - r->back) % r->phases;
}

/* The group that channel `channel` is in at the beginning of a run. */
INLINE size_t group_at(const dv_code_tile *tile, const group_runs *r, size_t channel) {
    return (channel * tile->pixels + r->run * r->pixels) / DV_CHUNK;
}

/* ---- minimum and range --------------------------------------------------------------------- */

/* Lowest and highest of each channel since its group began; behind the last channel those of further pixels. */
typedef struct group_ranges {
    extended low, high;
} group_ranges;

static void ranges_clear(group_ranges *all) {
    for (size_t i = 0; i < DV_TILE_CHANNELS + DV_CHUNK; i++) {
        all->low.at[i] = INFINITY;
        all->high.at[i] = -INFINITY;
    }
}

/* Adds `rows` rows, `stride` apart; returns whether all of it can be packed. `rows` is a constant. */
INLINE uint32_t ranges_add_rows(const float *restrict x, size_t stride, size_t rows, size_t width, float *restrict low,
                                float *restrict high) {
    uint32_t bad = 0;
    for (size_t i = 0; i < width; i++) {
        float least_ = low[i], most = high[i];
        for (size_t j = 0; j < rows; j++) {
            float value = x[j * stride + i];
            least_ = smaller(value, least_);
            most = larger(value, most);
            bad |= !(dv_bits_float(dv_float_bits(value) & 0x7fffffff) < DV_VALUE_LIMIT);
        }
        low[i] = least_;
        high[i] = most;
    }
    return bad;
}

LOOP uint32_t ranges_add(const float *x, size_t stride, size_t rows, size_t width, float *low, float *high) {
    uint32_t bad = 0;
    for (; rows >= 4; rows -= 4, x += 4 * stride)
        bad |= ranges_add_rows(x, stride, 4, width, low, high);
    for (; rows > 0; rows--, x += stride)
        bad |= ranges_add_rows(x, stride, 1, width, low, high);
    return bad;
}

/* Takes what has been found of a channel into its group. `range` holds the maximum for now. */
static void ranges_flush(const dv_code_tile *tile, group_ranges *all, size_t channel, dv_group *group) {
    float low = INFINITY, high = -INFINITY;
    for (size_t i = channel; i < tile->channels + DV_CHUNK; i += tile->channels) {
        low = smaller(all->low.at[i], low);
        high = larger(all->high.at[i], high);
        all->low.at[i] = INFINITY;
        all->high.at[i] = -INFINITY;
    }
    if (low < dv_bf16_to_f32(group->minimum))
        group->minimum = dv_bf16_down(low + 0.0f);
    if (high > dv_bf16_to_f32(group->range))
        group->range = dv_bf16_up(high + 0.0f);
}

/* A run of pixels: as rows of the tile, or with few channels as rows of several pixels. */
static uint32_t ranges_add_run(const dv_code_tile *tile, const void *src, size_t pixel, size_t pixels,
                               group_ranges *all) {
    float buffer[DV_TILE_CHANNELS];
    size_t width = tile->channels,
           together = tile->channels == tile->pixel_stride ? least(pixels, DV_CHUNK / width) : 1;
    uint32_t bad = 0;
    together = together ? together : 1;
    size_t rows = pixels / together, rest = pixels - rows * together;
    const char *from = element(tile->type, src, pixel * tile->pixel_stride);
    if (tile->type == DV_F32)
        bad |= ranges_add((const float *)(const void *)from, together * tile->pixel_stride, rows, together * width,
                          all->low.at, all->high.at);
    for (size_t j = 0; tile->type != DV_F32 && j < rows; j++) {
        to_f32(tile->type, element(tile->type, from, j * together * tile->pixel_stride), together * width, buffer);
        bad |= ranges_add(buffer, 0, 1, together * width, all->low.at, all->high.at);
    }
    if (rest) {
        const float *x =
            as_f32(tile->type, element(tile->type, from, rows * together * tile->pixel_stride), rest * width, buffer);
        bad |= ranges_add(x, 0, 1, rest * width, all->low.at, all->high.at);
    }
    return bad;
}

static uint32_t measure_columns(const dv_code_tile *tile, const void *src, dv_group *groups) {
    group_ranges all;
    uint32_t bad = 0;
    ranges_clear(&all);
    group_runs r = group_runs_begin(tile->pixels);
    for (size_t pixel = 0; pixel < tile->pixels; pixel += r.pixels) {
        for (size_t c = r.first; r.run > 0 && c < tile->channels; c += r.phases)
            ranges_flush(tile, &all, c, &groups[group_at(tile, &r, c) - 1]);
        bad |= ranges_add_run(tile, src, pixel, r.pixels, &all);
        group_runs_next(&r);
    }
    for (size_t c = 0; c < tile->channels; c++)
        ranges_flush(tile, &all, c, &groups[((c + 1) * tile->pixels - 1) / DV_CHUNK]);
    return bad;
}

/* Channels first: groups lie one behind the other. */
static uint32_t measure_chunks(const dv_code_tile *tile, const void *src, dv_group *groups) {
    const dv_code_tile one = {.channels = 1};
    size_t total = tile->channels * tile->pixels;
    float buffer[DV_CHUNK];
    group_ranges all;
    uint32_t bad = 0;
    ranges_clear(&all);
    for (size_t at = 0; at < total; at += DV_CHUNK, groups++) {
        size_t count = least(DV_CHUNK, total - at);
        const float *x = as_f32(tile->type, element(tile->type, src, at), count, buffer);
        bad |= ranges_add(x, 0, 1, count, all.low.at, all.high.at);
        ranges_flush(&one, &all, 0, groups);
    }
    return bad;
}

static bool groups_measure(const dv_code_tile *tile, const void *src, dv_group *groups) {
    size_t count = dv_tile_groups(tile);
    for (size_t g = 0; g < count; g++)
        groups[g] = (dv_group){0x7f80, 0xff80}; /* infinity and its negative */
    if (tile->channels * tile->pixels % DV_CHUNK)
        groups[count - 1] = (dv_group){0, 0};
    uint32_t bad = (tile->layout == DV_NHWC ? measure_columns : measure_chunks)(tile, src, groups);
    for (size_t g = 0; g < count; g++)
        groups[g].range = dv_bf16_up(dv_bf16_to_f32(groups[g].range) - dv_bf16_to_f32(groups[g].minimum));
    return !bad;
}

/* ---- codes --------------------------------------------------------------------------------- */

/* What the elements of each channel are coded with at the moment. */
typedef struct group_scales {
    extended first, second; /* offset and scale; to decode: minimum and step */
} group_scales;

INLINE void scales_set(const dv_code_tile *tile, const dv_group *group, bool decode, size_t channel, group_scales *to) {
    float minimum = dv_bf16_to_f32(group->minimum);
    float step = dv_group_step(dv_bf16_to_f32(group->range), tile->bits);
    float scale = dv_fixed_scale(step, tile->bits);
    extended_set(&to->first, tile->channels, channel, decode ? minimum : dv_fixed_offset(minimum, scale));
    extended_set(&to->second, tile->channels, channel, decode ? step : scale);
}

/* Goes through a tile by pieces of one chunk and one run, with the scales that its channels have there. */
typedef struct group_walk {
    const dv_code_tile *tile;
    const dv_group *groups;
    bool decode;
    group_runs r;
    size_t end; /* of the run, in codes */
    group_scales by;
} group_walk;

/* To the run that begins with code `at`. */
static void walk_enter(group_walk *w, size_t at) {
    const dv_code_tile *tile = w->tile;
    size_t total = tile->channels * tile->pixels;
    if (tile->layout == DV_NCHW) {
        const dv_code_tile one = {.channels = DV_CHUNK, .bits = tile->bits};
        for (size_t i = 0; i < DV_CHUNK; i++)
            scales_set(&one, &w->groups[at / DV_CHUNK], w->decode, i, &w->by);
        w->end = least(at + DV_CHUNK, total);
        return;
    }
    if (at == 0)
        w->r = group_runs_begin(tile->pixels);
    else
        group_runs_next(&w->r);
    for (size_t c = at ? w->r.first : 0; c < tile->channels; c += at ? w->r.phases : 1)
        scales_set(tile, &w->groups[group_at(tile, &w->r, c)], w->decode, c, &w->by);
    w->end = at + w->r.pixels * tile->channels;
}

INLINE code_piece walk_piece(group_walk *w, size_t at, const float **first, const float **second) {
    if (at == w->end || at == 0)
        walk_enter(w, at);
    code_piece p = {.at = at, .place = at, .count = w->end - at};
    size_t skip = 0;
    if (w->tile->layout == DV_NHWC) {
        p = piece_from(w->tile, at, w->end);
        skip = p.channel;
    }
    *first = w->by.first.at + skip;
    *second = w->by.second.at + skip;
    return p;
}

LOOP void quantize_groups(const float *restrict x, size_t count, const float *restrict offset,
                          const float *restrict scale, uint16_t *restrict fixed) {
    UNROLL for (size_t i = 0; i < count; i++) fixed[i] = (uint16_t)(int32_t)((x[i] - offset[i]) * scale[i]);
}

LOOP uint8_t *round_chunk(dv_random key, uint32_t chunk, uint16_t *fixed, size_t count, int bits, uint8_t *dst) {
    chunk_random random;
    dither_chunk(key, chunk, &random);
    for (size_t i = 0; i < DV_CHUNK; i++)
        fixed[i] = round_at_random(fixed[i], random.halves[i], bits);
    for (size_t i = count; i < DV_CHUNK; i++)
        fixed[i] = 0;
    return pack_codes(fixed, bits, dst);
}

static void groups_encode(const dv_code_tile *tile, dv_random key, const dv_group *groups, const void *src,
                          uint8_t *dst) {
    group_walk w = {.tile = tile, .groups = groups};
    float buffer[DV_CHUNK];
    uint16_t fixed[DV_CHUNK] = {0};
    size_t total = tile->channels * tile->pixels;
    code_piece p;
    for (size_t at = 0; at < total; at += p.count) {
        const float *offset, *scale;
        p = walk_piece(&w, at, &offset, &scale);
        quantize_groups(piece_load(tile, src, &p, buffer), p.count, offset, scale, fixed + at % DV_CHUNK);
        size_t filled = at % DV_CHUNK + p.count;
        if (filled == DV_CHUNK || at + p.count == total)
            dst = round_chunk(key, (uint32_t)(at / DV_CHUNK), fixed, filled, tile->bits, dst);
    }
}

static void groups_decode(const dv_code_tile *tile, const dv_group *groups, const uint8_t *src, void *dst) {
    group_walk w = {.tile = tile, .groups = groups, .decode = true};
    float levels[DV_CHUNK], buffer[DV_CHUNK];
    size_t total = tile->channels * tile->pixels;
    code_piece p;
    for (size_t at = 0; at < total; at += p.count) {
        const float *minimum, *step;
        p = walk_piece(&w, at, &minimum, &step);
        if (at % DV_CHUNK == 0)
            src = unpack_codes(src, tile->bits, levels);
        float *out = piece_out(tile, dst, &p, buffer);
        restore(levels + at % DV_CHUNK, p.count, 1, p.count, minimum, step, out);
        piece_store(tile, out, &p, dst);
    }
}
