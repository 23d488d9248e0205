/* The input x of a batch norm with a ReLU behind it, as the codec `lean` has it: the mask of the norm's output is one
 * state of the code. The norm stores it, in its forward, when it has made that output. From the code come x, for the
 * norm's own backward, and the mask; and from both the output, which the norm recomputes. */
#include "base/status.h"
#include "codec/lean.h"
#include "codec/map.h"
#include "graph/plan.h"
#include "graph/run.h"

static dv_status store_gated(const dv_kept *kept, size_t first, size_t count, const void *images, const void *gate,
                             dv_error *error) {
    return dv_lean_encode(&kept->codec, &kept->map, &kept->noise, first, count, images, gate, kept->stored,
                          kept->packed_bytes, error);
}

/* Nothing of it is zero outside of the mask, which is another value's. */
static dv_status load(const dv_kept *kept, size_t first, size_t count, void *buffer, const void **images,
                      dv_error *error) {
    *images = buffer;
    return dv_codec_decode_images(&kept->codec, &kept->map, &kept->noise, first, count, kept->packed,
                                  kept->packed_bytes, buffer, error);
}

/* Of the norm's output. */
static dv_status load_mask(const dv_kept *kept, size_t first, size_t count, uint8_t *buffer, const uint8_t **mask,
                           dv_error *error) {
    *mask = buffer;
    return dv_codec_decode_mask(&kept->codec, &kept->map, first, count, kept->packed, kept->packed_bytes, buffer,
                                dv_mask_stride(&kept->map), error);
}

const dv_keeper dv_keep_lean = {
    .name = "lean",
    .access = {.store_gated = store_gated,
               .load = load,
               .load_normalized = dv_packed_load_normalized,
               .load_mask = load_mask},
    .book = dv_packed_book,
    .form = dv_packed_form,
    .fill = dv_packed_fill,
};

/* ---- which values ---------------------------------------------------------------------------- */

/* Layer `i` reads the value in backward, for its own gradients or to recompute its output. */
static bool reads(const dv_plan *plan, int i, dv_value value) {
    const dv_keeper *keeper = plan->values[plan->graph->layers[i].output].keeper;
    return dv_plan_reads(plan, i, value) || (keeper && keeper->recomputes);
}

int dv_plan_gate(const dv_plan *plan, dv_value value) {
    const dv_graph_value *v = &plan->graph->values[value];
    int norm = -1;
    for (int i = v->producer + 1; i <= v->last_user; i++) {
        const dv_graph_layer *node = &plan->graph->layers[i];
        int times = dv_times_taken(node, value);
        if (times == 0 || !reads(plan, i, value))
            continue;
        if (norm >= 0 || times > 1 || node->inputs[0] != value || !node->layer.kind->stores_input ||
            !node->layer.zero_outside_mask)
            return -1;
        norm = i;
    }
    return norm;
}

/* By its own code; what a ReLU made has its own mask inside: what is outside of it comes back as the mean of zeros,
 * and needs no samples. */
static void keep_alone(dv_plan *plan, dv_value value) {
    int producer = plan->graph->values[value].producer;
    bool cut_off = producer != DV_INPUT && plan->graph->layers[producer].layer.zero_outside_mask;
    if (!cut_off)
        plan->values[value].codec.options[DV_LEAN_MASK] = DV_LEAN_MASK_OFF;
    plan->values[value].codec.options[DV_LEAN_SAMPLE] = 0;
    dv_plan_keep(plan, value, &dv_keep_packed);
}

/* Samples take a bias away and put noise in its place, which is the larger the fewer of them a channel has in a batch:
 * from so many on it is a small part of what the code itself has. */
enum { LEAST_SAMPLES = 128 };

static bool samples_suffice(const dv_codec *codec, const dv_map *map) {
    size_t stretch = (size_t)codec->options[DV_LEAN_SAMPLE];
    return stretch > 0 && map->images * ((dv_map_pixels(map) + stretch - 1) / stretch) >= LEAST_SAMPLES;
}

void dv_plan_keep_lean(dv_plan *plan, dv_value value) {
    int norm = dv_lean_has_mask(&plan->values[value].codec) ? dv_plan_gate(plan, value) : -1;
    if (norm < 0) {
        keep_alone(plan, value);
        return;
    }
    if (!samples_suffice(&plan->values[value].codec, &plan->graph->values[value].map))
        plan->values[value].codec.options[DV_LEAN_SAMPLE] = 0;
    plan->values[value].stored_by = norm;
    dv_plan_keep(plan, value, &dv_keep_lean);
    dv_plan_mask_in(plan, plan->graph->layers[norm].output, value);
}
