/* From options to a network and the plan of its training. */
#include <division/models.h>
#include <division/options.h>

#include "base/status.h"

/* Of what options and data say, the first that says anything; 0 is the model's own. */
static size_t first_of(size_t option, size_t data) {
    return option > 0 ? option : data;
}

dv_status dv_options_plan(const dv_options *options, const dv_dataset_shape *shape, dv_graph **graph, dv_plan **plan,
                          dv_error *error) {
    const dv_dataset_shape none = {.classes = 0};
    DV_NEED(options);
    DV_NEED(graph);
    DV_NEED(plan);
    shape = shape != NULL ? shape : &none;
    dv_plan_options told;
    char optimizer[DV_OPTIMIZER_TEXT_BYTES];
    DV_TRY(dv_options_for_plan(options, optimizer, &told, error));
    const dv_model_options model = {.type = (dv_type)options->precision,
                                    .batch = options->batch,
                                    .classes = first_of(options->classes, shape->classes),
                                    .side = first_of(options->side, shape->side),
                                    .initialisation = (dv_model_initialisation)options->init_weights};
    DV_TRY(dv_model_build_with(options->model, &model, graph, error));
    dv_status status = dv_plan_new(*graph, &told, plan, error);
    if (status != DV_OK) {
        dv_graph_free(*graph);
        *graph = NULL;
    }
    return status;
}
