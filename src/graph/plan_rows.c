/* What a plan tells: a row for each value, and bytes by purpose. */
#include "graph/plan.h"

#include <stdio.h>

/* "packed + mask", "exact, spilled". */
static const char *keeper_text(const dv_value_plan *v, char text[DV_KEEPER_TEXT_BYTES]) {
    bool mask = v->mask != DV_NO_PIECE;
    const char *numbers = v->keeper ? v->keeper->name : mask ? "" : "-";
    snprintf(text, DV_KEEPER_TEXT_BYTES, "%s%s%s%s%s", v->behind ? v->behind->name : "", v->behind ? ", " : "", numbers,
             *numbers && mask ? " + " : "", mask ? dv_keep_mask.name : "");
    return text;
}

/* Of a layer's parameters, the bytes of those that are not trained. */
static size_t frozen_bytes(const dv_plan *plan, size_t i) {
    const dv_layer *layer = &plan->graph->layers[i].layer;
    size_t bytes = 0;
    for (size_t k = 0; k < layer->parameter_count && !plan->options.inference; k++)
        bytes += plan->layers[i].trained >> k & 1 ? 0 : layer->parameters[k].count * sizeof(float);
    return bytes;
}

/* What is kept of a value, by whom it is made. */
static dv_plan_row row_of(const dv_plan *plan, size_t row, dv_value value, const char *layer, const char *kind,
                          size_t saved) {
    const dv_map *map = &plan->graph->values[value].map;
    const dv_value_plan *v = &plan->values[value];
    return (dv_plan_row){
        .layer = layer,
        .kind = kind,
        .output = *map,
        .keeper = keeper_text(v, plan->keeper_texts[row]),
        .kept_bytes = v->kept_bytes,
        .saved_bytes = saved,
        .bits_per_element = 8.0 * (double)v->kept_bytes / (double)dv_map_elements(map),
    };
}

void dv_plan_fill_rows(dv_plan *plan) {
    const dv_graph *graph = plan->graph;
    plan->rows[0] = row_of(plan, 0, graph->input, "input", "images", 0);
    for (size_t i = 0; i < graph->layer_count; i++) {
        const dv_graph_layer *node = &graph->layers[i];
        bool kept = plan->layers[i].backward && plan->layers[i].replay_at < 0;
        size_t saved = kept ? dv_plan_saved_bytes(plan, (int)i) : 0;
        plan->rows[i + 1] = row_of(plan, i + 1, node->output, node->layer.name, node->layer.kind->name, saved);
        plan->rows[i + 1].frozen_bytes = frozen_bytes(plan, i);
    }
    dv_plan_summary *t = &plan->totals;
    for (size_t i = 1; i <= graph->layer_count; i++)
        t->frozen += plan->rows[i].frozen_bytes;
    for (size_t i = 0; i <= graph->layer_count; i++)
        t->activations += plan->rows[i].kept_bytes + plan->rows[i].saved_bytes;
    t->spilled = plan->file_bytes;
    t->workspace = t->planned - t->activations - t->parameters - t->gradients - t->optimizer - t->buffers;
}

dv_plan_summary dv_plan_totals(const dv_plan *plan) {
    return plan->totals;
}

const dv_plan_row *dv_plan_row_at(const dv_plan *plan, size_t index) {
    return index <= plan->graph->layer_count ? &plan->rows[index] : NULL;
}
