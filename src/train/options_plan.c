/* From options to a network and the plan of its training. */
#include <division/models.h>
#include <division/options.h>

#include "base/sizes.h"
#include "base/status.h"
#include "train/ranks.h"

/* A batch for data of fewer images than a batch: the power of two that makes four steps of them or more. */
static size_t small_batch(size_t images) {
    size_t batch = 2;
    while (batch * 2 <= images / 4)
        batch *= 2;
    return dv_smaller(batch, images);
}

static void make_batch_smaller(dv_options *options, size_t batch) {
    const dv_options usual = dv_options_default();
    if (!options->rate_given && options->schedule.rate == usual.schedule.rate)
        options->schedule.rate *= (double)batch / (double)options->batch;
    options->batch = batch;
}

dv_status dv_options_fit_batch(dv_options *options, const dv_dataset_shape *shape, dv_error *error) {
    DV_NEED(options);
    DV_NEED(shape);
    size_t images = shape->images[DV_TRAIN] / dv_options_ranks(options), fitting = small_batch(images);
    if (options->batch <= images)
        return DV_OK;
    if (options->batch_given || options->batch != dv_options_default().batch)
        return dv_fail(error, DV_ERROR_OPTION,
                       "--batch: %zu: the data has %zu images: give at most as many; %zu would do", options->batch,
                       images, fitting);
    make_batch_smaller(options, fitting);
    return DV_OK;
}

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
    if (options->batch_auto && options->memory[0] == '\0')
        return dv_fail(error, DV_ERROR_OPTION,
                       "--batch: auto: chosen by --memory: give that too, or a number of images");
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
