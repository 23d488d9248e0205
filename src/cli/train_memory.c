/* What to do when a training does not fit: plans of what would, made without touching the memory they plan. */
#include "train.h"

#include "cli.h"

#include <division/models.h>

#include <stdio.h>
#include <string.h>

size_t train_side(const train_settings *settings, const dv_dataset_shape *shape) {
    return settings->side > 0 ? (size_t)settings->side : shape->side;
}

dv_loader_options train_loader_options(const train_settings *settings, const dv_dataset *data) {
    dv_dataset_shape shape = dv_dataset_describe(data);
    return (dv_loader_options){.side = train_side(settings, &shape),
                               .resize = settings->options.loading.resize,
                               .augmentation = settings->options.loading.augmentation};
}

dv_status train_make_plan(const train_settings *settings, const dv_dataset_shape *shape, const char *method,
                          size_t batch, dv_graph **graph, dv_plan **plan, dv_error *error) {
    size_t classes = settings->classes > 0 ? (size_t)settings->classes : shape->classes;
    dv_plan_options options = dv_plan_options_default();
    options.method = method;
    options.spill = settings->spill;
    options.optimizer_slots = dv_sgd_slots(&settings->options.sgd);
    options.average = settings->options.average > 0;
    dv_status status = dv_model_build(settings->model, settings->precision != 0 ? DV_BF16 : DV_F32, batch, classes,
                                      train_side(settings, shape), graph, error);
    if (status != DV_OK)
        return status;
    status = dv_plan_new(*graph, &options, plan, error);
    if (status != DV_OK) {
        dv_graph_free(*graph);
        *graph = NULL;
    }
    return status;
}

/* Bytes that a plan takes, and what brings its images, or 0 if there is none. */
static size_t planned_bytes(const train_settings *settings, const dv_dataset *data, const char *method, size_t batch) {
    dv_dataset_shape shape = dv_dataset_describe(data);
    dv_graph *graph;
    dv_plan *plan;
    if (train_make_plan(settings, &shape, method, batch, &graph, &plan, NULL) != DV_OK)
        return 0;
    const dv_map *images = &dv_plan_row_at(plan, 0)->output;
    size_t bytes = dv_plan_totals(plan).planned + dv_loading_bytes(&settings->options.loading, images, data);
    dv_plan_free(plan);
    dv_graph_free(graph);
    return bytes;
}

/* Halves the batch, beginning with `batch` itself, until the plan fits. Returns it, or 0 if not even one image
 * does; `bytes` is what it takes. */
static size_t batch_that_fits(const train_settings *settings, const dv_dataset *data, const char *method, size_t batch,
                              size_t *bytes) {
    size_t available = dv_memory_available();
    for (; batch > 0; batch /= 2) {
        *bytes = planned_bytes(settings, data, method, batch);
        if (*bytes > 0 && *bytes <= available)
            return batch;
    }
    return 0;
}

void train_explain_memory(const train_settings *settings, const dv_dataset *data) {
    static const char smallest[] = "division";
    size_t whole = (size_t)settings->batch, bytes, other_bytes;
    char text[CLI_BYTES_TEXT];
    size_t batch = batch_that_fits(settings, data, settings->method, whole / 2, &bytes);
    size_t other = strncmp(settings->method, smallest, strlen(smallest)) != 0
                       ? batch_that_fits(settings, data, smallest, whole, &other_bytes)
                       : 0;
    if (other > batch && other == whole)
        cli_fail("this would fit: --method %s, which takes %s", smallest, cli_bytes_text((double)other_bytes, text));
    else if (other > batch)
        cli_fail("this would fit: --method %s --batch %zu, which takes %s", smallest, other,
                 cli_bytes_text((double)other_bytes, text));
    if (batch > 0)
        cli_fail("this would fit: --batch %zu, which takes %s (--accumulate makes up for the size)", batch,
                 cli_bytes_text((double)bytes, text));
    if (batch == 0 && other == 0)
        cli_fail("not even one image at a time would fit: use a smaller model or smaller images");
}
