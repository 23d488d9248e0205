/* Groups of 256 elements in a few bits, each image with a number of bits of its own (codec/actnn.h). All images are
 * measured first, then share out the bits of the value by their ranges, then are packed. So it is stored as a whole,
 * behind its layer.
 *
 *     minimum and range of all groups, image after image  |  codes of image 0  |  codes of image 1  |  ...
 *
 * The bytes of values that are read by norms alone are their own. Those of the others may have more bits in one step
 * and fewer in the next; they share the plan's pool, one behind the other, and only its bytes are fixed. */
#include "graph/keep_groups.h"

#include "base/float16.h"
#include "base/status.h"
#include "codec/actnn.h"
#include "codec/code_tiles.h"
#include "graph/run.h"
#include "graph/share_bits.h"

enum { BITS = 0 /* the codec's option */, ALIGNMENT = 64 };

static size_t aligned(size_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static int preset_bits(const dv_plan *plan) {
    return plan->method.codec.options[BITS];
}

static const dv_map *map_of(const dv_plan *plan, dv_value value) {
    return &plan->graph->values[value].map;
}

static size_t heads_bytes(const dv_map *map) {
    return aligned(map->images * dv_actnn_groups(map) * sizeof(dv_group));
}

/* ---- where it is ----------------------------------------------------------------------------- */

static bool in_pool(const dv_plan *plan, dv_value value) {
    const dv_value_plan *v = &plan->values[value];
    return v->keeper == &dv_keep_groups && dv_groups_weighs(plan, value);
}

/* The bits of all images that a value may have in this step. */
static size_t bits_allowed(const dv_plan *plan, dv_value value, const float *state) {
    float said = state[plan->values[value].state_at + DV_GROUPS_BITS];
    return said > 0 ? (size_t)said : plan->graph->batch * (size_t)preset_bits(plan);
}

static size_t bytes_with(const dv_map *map, size_t bits) {
    return heads_bytes(map) + aligned(dv_codes_bytes(map, 1) * bits);
}

/* Behind all values before it in the pool. */
static size_t offset_of(const dv_kept *kept) {
    const dv_plan *plan = kept->plan;
    size_t offset = 0;
    for (dv_value v = 0; in_pool(plan, kept->value) && v < kept->value; v++)
        offset += in_pool(plan, v) ? bytes_with(map_of(plan, v), bits_allowed(plan, v, kept->state)) : 0;
    return offset;
}

/* ---- sharing out bits ------------------------------------------------------------------------- */

static float *numbers_of(const dv_kept *kept) {
    return kept->state + kept->plan->values[kept->value].state_at;
}

/* Of `count` images, which may have as many bits as their part of the batch. In the first step nothing is known of the
 * gradients, and all have the same. */
static void share_among_images(const dv_kept *kept, size_t count) {
    float *numbers = numbers_of(kept);
    size_t batch = kept->map.images, allowed = bits_allowed(kept->plan, kept->value, kept->state) * count / batch;
    const dv_bits_items images = {
        .count = count, .cost = numbers + DV_GROUPS_EACH + batch, .bits = numbers + DV_GROUPS_EACH};
    bool equal = dv_groups_weighs(kept->plan, kept->value) && numbers[DV_GROUPS_GRADIENT] == 0;
    numbers[DV_GROUPS_IMAGES] = (float)count;
    for (size_t n = 0; equal && n < count; n++)
        images.bits[n] = (float)preset_bits(kept->plan);
    if (!equal)
        dv_share_bits(&images, (double)allowed);
}

/* ---- access ---------------------------------------------------------------------------------- */

static float squared_ranges(const dv_group *groups, size_t count) {
    double sum = 0;
    for (size_t g = 0; g < count; g++) {
        double range = (double)dv_bf16_to_f32(groups[g].range);
        sum += range * range;
    }
    return (float)sum;
}

/* Where the codes of an image begin, behind those of the images before it. */
static size_t codes_before(const dv_kept *kept, size_t image) {
    const float *bits = numbers_of(kept) + DV_GROUPS_EACH;
    size_t before = 0;
    for (size_t n = 0; n < image; n++)
        before += (size_t)bits[n];
    return before * dv_codes_bytes(&kept->map, 1);
}

static const void *image_at(const dv_map *map, const void *all, size_t n) {
    return (const char *)all + n * dv_map_image_elements(map) * dv_type_bytes(map->type);
}

static dv_status fail_nonfinite(const dv_kept *kept, size_t count, const void *all, dv_error *error) {
    const dv_codec_call call = {.codec = &kept->codec, .map = &kept->map, .count = count};
    return dv_codec_fail_nonfinite(&call, all, error);
}

static dv_status store(const dv_kept *kept, size_t first, size_t count, const void *all, dv_error *error) {
    (void)first; /* 0: it is stored as a whole */
    const dv_map *map = &kept->map;
    size_t groups = dv_actnn_groups(map);
    uint8_t *place = (uint8_t *)kept->stored + offset_of(kept), *codes = place + heads_bytes(map);
    dv_group *heads = (dv_group *)(void *)place;
    float *bits = numbers_of(kept) + DV_GROUPS_EACH, *ranges = bits + map->images;
    int finite = 1;
#pragma omp parallel for schedule(static) reduction(&& : finite)
    for (size_t n = 0; n < count; n++) {
        finite = dv_actnn_measure(map, image_at(map, all, n), heads + n * groups) && finite;
        ranges[n] = squared_ranges(heads + n * groups, groups);
    }
    if (!finite)
        return fail_nonfinite(kept, count, all, error);
    share_among_images(kept, count);
#pragma omp parallel for schedule(static)
    for (size_t n = 0; n < count; n++)
        dv_actnn_encode(map, (int)bits[n], &kept->noise, n, image_at(map, all, n), heads + n * groups,
                        codes + codes_before(kept, n));
    return DV_OK;
}

static dv_status load(const dv_kept *kept, size_t first, size_t count, void *buffer, const void **found,
                      dv_error *error) {
    (void)error;
    const dv_map *map = &kept->map;
    size_t groups = dv_actnn_groups(map);
    const uint8_t *place = (const uint8_t *)kept->packed + offset_of(kept), *codes = place + heads_bytes(map);
    const dv_group *heads = (const dv_group *)(const void *)place;
    const float *bits = numbers_of(kept) + DV_GROUPS_EACH;
#pragma omp parallel for schedule(static)
    for (size_t n = first; n < first + count; n++)
        dv_actnn_decode(map, (int)bits[n], heads + n * groups, codes + codes_before(kept, n),
                        (void *)image_at(map, buffer, n - first));
    *found = buffer;
    return DV_OK;
}

/* ---- planning -------------------------------------------------------------------------------- */

static dv_status book(dv_plan *plan, dv_value value, int made, dv_error *error) {
    (void)error;
    dv_value_plan *v = &plan->values[value];
    const dv_map *map = map_of(plan, value);
    size_t bytes = bytes_with(map, map->images * (size_t)preset_bits(plan));
    int last = v->written_at >= 0 ? v->written_at : dv_last_read(plan, dv_readers_of(v));
    bytes += in_pool(plan, value) ? ALIGNMENT : 0; /* a value that has other bits may be rounded up */
    v->packed = (in_pool(plan, value) ? dv_plan_book_pool : dv_plan_book)(plan, bytes, made, last);
    v->kept_bytes += bytes;
    return DV_OK;
}

const dv_keeper dv_keep_groups = {
    .name = "groups",
    .access = {.store = store, .load = load, .whole = true},
    .book = book,
    .form = dv_packed_form,
    .fill = dv_packed_fill,
};
