/* Channels in codes whose width follows from the error that the gradients allow (codec/acgc.h). The largest magnitude
 * of each channel in the batch is found first, so that nothing is clipped; so a value is stored as a whole, behind its
 * layer.
 *
 *     step and width of each channel  |  codes of image 0  |  codes of image 1  |  ...
 *
 * Widths change from step to step. All values share the plan's pool: each has some room there, which the method changes
 * between steps; where the widths that it should have need more, every channel loses a bit, and another. */
#include "graph/keep_channels.h"

#include "base/sizes.h"
#include "base/status.h"
#include "codec/acgc.h"
#include "graph/run.h"

#include <math.h>

enum { BITS = 0 /* the codec's option */ };

static const dv_map *map_of(const dv_plan *plan, dv_value value) {
    return &plan->graph->values[value].map;
}

/* Made by a ReLU: no number is below zero. */
static bool is_signed(const dv_plan *plan, dv_value value) {
    int producer = plan->graph->values[value].producer;
    return producer == DV_INPUT || !plan->graph->layers[producer].layer.zero_outside_mask;
}

static size_t aligned(size_t bytes) {
    return (bytes + DV_CHANNELS_UNIT - 1) / DV_CHANNELS_UNIT * DV_CHANNELS_UNIT;
}

/* ---- where it is ----------------------------------------------------------------------------- */

static size_t head_bytes(const dv_map *map) {
    return aligned(map->channels * sizeof(dv_channel_code));
}

size_t dv_channels_bytes(const dv_plan *plan, dv_value value, unsigned width) {
    const dv_map *map = map_of(plan, value);
    size_t pixels = dv_map_image_elements(map) / map->channels;
    return head_bytes(map) + aligned(map->images * map->channels * dv_channel_bytes(pixels, width));
}

unsigned dv_channels_least_width(const dv_plan *plan, dv_value value) {
    return is_signed(plan, value) ? 3 : 2;
}

static size_t planned_bytes(const dv_plan *plan, dv_value value) {
    return dv_channels_bytes(plan, value, (unsigned)plan->method.codec.options[BITS]);
}

static size_t room_of(const dv_plan *plan, dv_value value, const float *state) {
    float said = state[plan->values[value].state_at + DV_CHANNELS_ROOM];
    return said > 0 ? (size_t)said * DV_CHANNELS_UNIT : planned_bytes(plan, value);
}

/* Behind all values before it in the pool. */
static size_t offset_of(const dv_kept *kept) {
    size_t offset = 0;
    for (dv_value v = 0; v < kept->value; v++)
        offset += kept->plan->values[v].keeper == &dv_keep_channels ? room_of(kept->plan, v, kept->state) : 0;
    return offset;
}

/* ---- widths ---------------------------------------------------------------------------------- */

/* The squared error that channel `c` may have, by all who read the value; 0: nothing is known yet. */
static double allowed_error(const dv_kept *kept, const float *numbers, size_t c) {
    double elements = (double)dv_map_elements(&kept->map), norm = (double)numbers[DV_CHANNELS_EACH + c];
    double output = (double)numbers[DV_CHANNELS_OUTPUT], gradient = fmax((double)numbers[DV_CHANNELS_GRADIENT], 1e-16);
    double epsilon = ldexp(1, -kept->plan->method.options[0]);
    double weights = output > 0 ? epsilon * gradient / (2 * elements * fmax(output, 1e-16)) : INFINITY;
    return norm > 0 ? fmin(weights, norm) : output > 0 ? weights : 0;
}

/* In the first step all codes are as wide as was planned. */
static dv_channel_code code_of(const dv_kept *kept, const float *numbers, size_t c, float most, int fewer) {
    bool sign = is_signed(kept->plan, kept->value);
    double error = allowed_error(kept, numbers, c), reach = (double)most + 1e-6;
    int width = kept->plan->method.codec.options[BITS] - (sign ? 1 : 0);
    return dv_acgc_choose(most, error > 0 ? error : pow(ldexp(reach, -width), 2) * 0.99, sign, fewer);
}

/* Leaves the codes of all channels; returns the bytes of a whole batch. */
static size_t choose_codes(const dv_kept *kept, const float *numbers, const float *most, int fewer,
                           dv_channel_code *head) {
    for (size_t c = 0; c < kept->map.channels; c++)
        head[c] = code_of(kept, numbers, c, most[c], fewer);
    return head_bytes(&kept->map) + aligned(kept->map.images * dv_acgc_bytes(&kept->map, head));
}

/* ---- access ---------------------------------------------------------------------------------- */

static const void *image_at(const dv_map *map, const void *all, size_t n) {
    return (const char *)all + n * dv_map_image_elements(map) * dv_type_bytes(map->type);
}

/* Takes bits off all channels until there is room, and tells the method what it would have liked. */
static void fit(const dv_kept *kept, const float *most, dv_channel_code *head) {
    enum { MOST_FEWER = 14 };
    float *numbers = kept->state + kept->plan->values[kept->value].state_at;
    size_t room = room_of(kept->plan, kept->value, kept->state), wanted = choose_codes(kept, numbers, most, 0, head);
    int fewer = 0;
    for (size_t needed = wanted; needed > room && fewer < MOST_FEWER;)
        needed = choose_codes(kept, numbers, most, ++fewer, head);
    size_t units = wanted / DV_CHANNELS_UNIT;
    numbers[DV_CHANNELS_WANTED] = (float)units;
    numbers[DV_CHANNELS_FEWER] = (float)fewer;
}

static dv_status store(const dv_kept *kept, size_t first, size_t count, const void *all, dv_error *error) {
    (void)first; /* 0: it is stored as a whole */
    const dv_map *map = &kept->map;
    uint8_t *place = (uint8_t *)kept->stored + offset_of(kept), *codes = place + head_bytes(map);
    dv_channel_code *head = (dv_channel_code *)(void *)place;
    float *most = kept->state + kept->plan->state_count - 3 * dv_channels_most(kept->plan);
    if (!dv_acgc_measure(map, count, all, most)) {
        const dv_codec_call call = {.codec = &kept->codec, .map = map, .count = count};
        return dv_codec_fail_nonfinite(&call, all, error);
    }
    fit(kept, most, head);
    size_t bytes = dv_acgc_bytes(map, head);
    bool sign = is_signed(kept->plan, kept->value);
#pragma omp parallel for schedule(static)
    for (size_t n = 0; n < count; n++)
        dv_acgc_encode(map, head, sign, image_at(map, all, n), codes + n * bytes);
    return DV_OK;
}

static dv_status load(const dv_kept *kept, size_t first, size_t count, void *buffer, const void **images,
                      dv_error *error) {
    (void)error;
    const dv_map *map = &kept->map;
    const uint8_t *place = (const uint8_t *)kept->packed + offset_of(kept), *codes = place + head_bytes(map);
    const dv_channel_code *head = (const dv_channel_code *)(const void *)place;
    size_t bytes = dv_acgc_bytes(map, head);
    bool sign = is_signed(kept->plan, kept->value);
#pragma omp parallel for schedule(static)
    for (size_t n = first; n < first + count; n++)
        dv_acgc_decode(map, head, sign, codes + n * bytes, (void *)image_at(map, buffer, n - first));
    *images = buffer;
    return DV_OK;
}

double dv_channels_reach(const dv_kept *kept, size_t c) {
    const dv_channel_code *head = (const void *)((const uint8_t *)kept->packed + offset_of(kept));
    int above = is_signed(kept->plan, kept->value) ? 1 : 0;
    return ldexp((double)head[c].step, (int)head[c].width - above);
}

/* ---- planning -------------------------------------------------------------------------------- */

static dv_status book(dv_plan *plan, dv_value value, int made, dv_error *error) {
    (void)error;
    dv_value_plan *v = &plan->values[value];
    size_t bytes = planned_bytes(plan, value);
    v->packed = dv_plan_book_pool(plan, bytes, made, dv_last_read(plan, dv_readers_of(v)));
    v->kept_bytes += bytes;
    return DV_OK;
}

static void fill(const dv_run *run, dv_value value, dv_kept *kept) {
    kept->stored = dv_run_piece(run, run->plan->values[value].packed);
    kept->packed = kept->stored;
}

const dv_keeper dv_keep_channels = {
    .name = "channels",
    .access = {.store = store, .load = load, .whole = true},
    .book = book,
    .fill = fill,
};
