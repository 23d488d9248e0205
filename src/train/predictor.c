/* A predictor from a checkpoint to a run with its weights. */
#include "train/predictor.h"

#include "base/status.h"

#include <division/models.h>

#include <stdlib.h>

dv_predictor_options dv_predictor_options_default(void) {
    return (dv_predictor_options){.batch = 1};
}

/* ---- beginning and end --------------------------------------------------------------------- */

static dv_status make_run(dv_predictor *p, dv_error *error) {
    dv_plan_options options = dv_plan_options_default();
    options.method = "none";
    options.inference = 1;
    DV_TRY(dv_model_build(p->model, p->precision, p->batch, p->classes, p->side, &p->graph, error));
    DV_TRY(dv_plan_new(p->graph, &options, &p->plan, error));
    return dv_run_new(p->plan, 0, &p->run, error);
}

static dv_status fill(dv_predictor *p, const dv_checkpoint *checkpoint, const dv_predictor_options *options,
                      dv_error *error) {
    dv_checkpoint_choice choice = {.averages = dv_checkpoint_has_averages(checkpoint)};
    DV_TRY(dv_predictor_resolve(p, checkpoint, options, error));
    DV_TRY(make_run(p, error));
    DV_TRY(dv_checkpoint_load(checkpoint, &choice, p->run, options->difference, options->context, error));
    return options->network_only ? DV_OK : dv_predictor_images_new(p, error);
}

dv_status dv_predictor_new(const dv_checkpoint *checkpoint, const dv_predictor_options *options,
                           dv_predictor **predictor, dv_error *error) {
    const dv_predictor_options defaults = dv_predictor_options_default();
    DV_NEED(checkpoint);
    DV_NEED(predictor);
    dv_predictor *made = calloc(1, sizeof *made);
    if (made == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory for a predictor: free some");
    dv_status status = fill(made, checkpoint, options != NULL ? options : &defaults, error);
    if (status == DV_OK)
        *predictor = made;
    else
        dv_predictor_close(made);
    return status;
}

dv_status dv_predictor_open(const char *path, const dv_predictor_options *options, dv_predictor **predictor,
                            dv_error *error) {
    dv_checkpoint *checkpoint;
    DV_NEED(path);
    DV_NEED(predictor);
    DV_TRY(dv_checkpoint_open_weights(path, &checkpoint, error));
    dv_status status = dv_predictor_new(checkpoint, options, predictor, error);
    dv_checkpoint_close(checkpoint);
    return status;
}

void dv_predictor_close(dv_predictor *predictor) {
    if (predictor == NULL)
        return;
    dv_predictor_images_free(predictor);
    dv_run_free(predictor->run);
    dv_plan_free(predictor->plan);
    dv_graph_free(predictor->graph);
    free(predictor->class_names);
    free(predictor);
}

/* ---- what it is of ------------------------------------------------------------------------- */

dv_predictor_description dv_predictor_describe(const dv_predictor *p) {
    return (dv_predictor_description){.path = p->path,
                                      .model = p->model,
                                      .precision = p->precision,
                                      .batch = p->batch,
                                      .classes = p->classes,
                                      .side = p->side,
                                      .resize = p->resize,
                                      .normalisation = p->normalisation,
                                      .planned_bytes = dv_plan_totals(p->plan).planned + dv_predictor_image_bytes(p)};
}

const char *dv_predictor_class_name(const dv_predictor *predictor, size_t label) {
    return predictor->class_names != NULL && label < predictor->classes ? predictor->class_names[label] : NULL;
}

dv_run *dv_predictor_run(dv_predictor *predictor) {
    return predictor->run;
}
