/* What to do when a training does not fit: plans of what would, made without touching the memory they plan. */
#include "train.h"

#include "cli.h"

#include <division/models.h>

#include <stdio.h>
#include <string.h>

/* Bytes that a plan takes, and what brings its images, or 0 if there is none. */
static size_t planned_bytes(const dv_options *options, const dv_dataset *data) {
    dv_dataset_shape shape = dv_dataset_describe(data);
    dv_graph *graph;
    dv_plan *plan;
    if (dv_options_plan(options, &shape, &graph, &plan, NULL) != DV_OK)
        return 0;
    const dv_map *images = &dv_plan_row_at(plan, 0)->output;
    size_t bytes = dv_plan_totals(plan).planned + dv_loading_bytes(&options->loading, images, data);
    dv_plan_free(plan);
    dv_graph_free(graph);
    return bytes;
}

/* Halves the batch, beginning with `batch` itself, until the plan fits. Returns it, or 0 if not even one image
 * does; `bytes` is what it takes. */
static size_t batch_that_fits(dv_options options, const dv_dataset *data, size_t batch, size_t *bytes) {
    size_t available = dv_memory_available();
    for (options.batch = batch; options.batch > 0; options.batch /= 2) {
        *bytes = planned_bytes(&options, data);
        if (*bytes > 0 && *bytes <= available)
            return options.batch;
    }
    return 0;
}

static void explain(const dv_options *options, const dv_dataset *data) {
    static const char smallest[] = "division";
    size_t whole = options->batch, other = 0, bytes, other_bytes;
    char text[CLI_BYTES_TEXT];
    size_t batch = batch_that_fits(*options, data, whole / 2, &bytes);
    if (strncmp(options->method, smallest, strlen(smallest)) != 0) {
        dv_options changed = *options;
        (void)dv_options_set(&changed, "method", smallest, NULL);
        other = batch_that_fits(changed, data, whole, &other_bytes);
    }
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

void train_explain_memory(const dv_options *options) {
    dv_dataset *data;
    if (dv_dataset_open(options->data, &data, NULL) != DV_OK)
        return;
    if (planned_bytes(options, data) > 0)
        explain(options, data);
    dv_dataset_close(data);
}
