/* The calls of a step, each a part of the schedule:
 *
 *     operations     forward, write, written ...     loss     read, replay, backward ...
 *     dv_run_forward |-----------------------------|
 *     dv_run_predict |-----------------------------|           with running statistics; nothing is stored
 *     dv_run_loss                                  |------|
 *     dv_run_backward                                     |------------------------------|
 *
 * Between them a run is in a phase, which says what may be called next. The caller then has the logits, and from the
 * loss on their gradient: pieces that are alive at these positions anyway. */
#include "base/float16.h"
#include "base/sizes.h"
#include "base/status.h"
#include "graph/run.h"

#include <math.h>

/* ---- phases ---------------------------------------------------------------------------------- */

typedef enum call {
    CALL_FORWARD,
    CALL_PREDICT,
    CALL_LOSS,
    CALL_BACKWARD,
    CALL_SET_IMAGES,
    CALL_COUNT,
} call;

static const char UNDER_WAY[] = "a step is under way: end it with dv_run_backward, or give it up with dv_run_abandon";

/* Why a call cannot be made in a phase, and what to call first; NULL: it can. */
static const char *const refused[CALL_COUNT][DV_PHASE_COUNT] = {
    [CALL_FORWARD] = {[DV_FORWARDED] = UNDER_WAY, [DV_LOSS_TAKEN] = UNDER_WAY},
    [CALL_PREDICT] = {[DV_FORWARDED] = UNDER_WAY, [DV_LOSS_TAKEN] = UNDER_WAY},
    [CALL_LOSS] = {[DV_AT_REST] = "there are no logits: call dv_run_forward or dv_run_predict before dv_run_loss"},
    [CALL_BACKWARD] = {[DV_AT_REST] = "no step is under way: call dv_run_forward before dv_run_backward",
                       [DV_PREDICTED] = "a prediction has no backward: call dv_run_forward instead of dv_run_predict",
                       [DV_FORWARDED] = "the gradient of the logits is not there: call dv_run_loss before "
                                        "dv_run_backward, or write it to dv_run_logits_gradient"},
    [CALL_SET_IMAGES] = {[DV_FORWARDED] = UNDER_WAY, [DV_LOSS_TAKEN] = UNDER_WAY},
};

static dv_status check_phase(const dv_run *run, call wanted, dv_error *error) {
    const char *why = refused[wanted][run->phase];
    return why ? dv_fail(error, DV_ERROR_ARGUMENT, "run: %s", why) : DV_OK;
}

/* What a call ends with: the next phase, in which the caller has what is alive at position `at`. A call that failed
 * leaves nothing, and in training spoils the run. */
static dv_status enter(dv_run *run, dv_status status, dv_phase next, int at) {
    run->phase = status == DV_OK ? next : DV_AT_REST;
    run->failed = run->failed || (status != DV_OK && run->now.training);
    if (run->phase == DV_AT_REST)
        dv_guard_rest(run->guard);
    else
        dv_guard_pause(run->guard, at);
    if (run->phase == DV_PREDICTED)
        dv_guard_open(run->guard, (size_t)run->plan->values[run->plan->graph->input].data);
    return status;
}

/* The caller begins the next batch: logits that were predicted are gone. */
static void forget_prediction(dv_run *run) {
    if (run->phase == DV_PREDICTED)
        (void)enter(run, DV_OK, DV_AT_REST, 0);
}

/* ---- the batch ------------------------------------------------------------------------------- */

dv_status dv_run_set_images(dv_run *run, size_t images, dv_error *error) {
    DV_NEED(run);
    DV_TRY(check_phase(run, CALL_SET_IMAGES, error));
    DV_TRY(dv_check_count("images", images, 1, run->plan->graph->batch, error));
    forget_prediction(run);
    run->images = images;
    return DV_OK;
}

void *dv_run_input(dv_run *run) {
    forget_prediction(run);
    return dv_run_piece(run, run->plan->values[run->plan->graph->input].data);
}

/* ---- the logits ------------------------------------------------------------------------------ */

const dv_map *dv_run_logits_map(const dv_run *run) {
    return run ? &run->plan->graph->values[run->plan->graph->logits].map : NULL;
}

const void *dv_run_logits(const dv_run *run) {
    if (!run || run->phase == DV_AT_REST)
        return NULL;
    return dv_run_piece(run, run->plan->values[run->plan->graph->logits].data);
}

void *dv_run_logits_gradient(dv_run *run) {
    if (!run || (run->phase != DV_FORWARDED && run->phase != DV_LOSS_TAKEN))
        return NULL;
    (void)enter(run, DV_OK, DV_LOSS_TAKEN, run->plan->loss_at);
    run->now.given = true;
    return dv_run_piece(run, run->plan->values[run->plan->graph->logits].diff);
}

static bool is_finite(dv_type type, const void *elements, size_t index) {
    return isfinite(type == DV_F32 ? ((const float *)elements)[index]
                                   : dv_bf16_to_f32(((const uint16_t *)elements)[index]));
}

/* A gradient from outside: what is wrong with it is found before it is everywhere. */
static dv_status check_given(const dv_run *run, dv_error *error) {
    const dv_map *map = dv_run_logits_map(run);
    const void *gradient = dv_run_piece(run, run->plan->values[run->plan->graph->logits].diff);
    size_t each = dv_map_image_elements(map);
    for (size_t i = 0; run->now.given && i < run->images * each; i++)
        if (!is_finite(map->type, gradient, i))
            return dv_fail(
                error, DV_ERROR_NONFINITE,
                "run: the gradient that was given for the logits of image %zu is not finite: write all of it, "
                "or give up the step with dv_run_abandon",
                i / each);
    return DV_OK;
}

/* ---- steps of training ----------------------------------------------------------------------- */

dv_status dv_run_forward(dv_run *run, const dv_step *step, dv_error *error) {
    DV_NEED(run);
    DV_NEED(step);
    DV_TRY(check_phase(run, CALL_FORWARD, error));
    if (run->plan->options.inference)
        return dv_fail(error, DV_ERROR_ARGUMENT, "run: planned for inference, asked to train");
    if (run->failed)
        return dv_fail(error, DV_ERROR_ARGUMENT,
                       "run: an earlier step failed half-way: make a new run, and load a checkpoint");
    DV_TRY(dv_run_check_joined(run, error));
    forget_prediction(run);
    run->now = (dv_under_way){.told = *step, .training = true};
    if (step->scale == 0)
        run->now.told.scale = 1;
    return enter(run, dv_run_operations(run, 0, run->plan->loss_at, error), DV_FORWARDED, run->plan->loss_at - 1);
}

dv_status dv_run_loss(dv_run *run, dv_step_result *result, dv_error *error) {
    DV_NEED(run);
    DV_NEED(result);
    DV_TRY(check_phase(run, CALL_LOSS, error));
    int at = run->plan->loss_at;
    dv_status status = dv_run_operations(run, at, at + 1, error);
    if (status == DV_OK)
        *result = run->result;
    return enter(run, status, run->now.training ? DV_LOSS_TAKEN : DV_PREDICTED, at);
}

dv_status dv_run_backward(dv_run *run, dv_error *error) {
    DV_NEED(run);
    DV_TRY(check_phase(run, CALL_BACKWARD, error));
    DV_TRY(check_given(run, error));
    const dv_plan *plan = run->plan;
    dv_status status = dv_run_share_statistics(run, error);
    if (status == DV_OK)
        status = dv_run_operations(run, plan->loss_at + 1, (int)plan->operation_count, error);
    if (status == DV_OK)
        status = dv_run_end_reductions(run, error);
    if (status == DV_OK && !run->now.told.more && run->state.data && plan->method.kind->adapt)
        plan->method.kind->adapt(plan, run->now.told.batch, run->state.data);
    return enter(run, status, DV_AT_REST, 0);
}

void dv_run_abandon(dv_run *run) {
    if (run)
        (void)enter(run, DV_OK, DV_AT_REST, 0);
}

dv_status dv_run_train(dv_run *run, const dv_step *step, dv_step_result *result, dv_error *error) {
    DV_NEED(result);
    DV_TRY(dv_run_forward(run, step, error));
    DV_TRY(dv_run_loss(run, result, error));
    return dv_run_backward(run, error);
}

int dv_run_failed(const dv_run *run) {
    return run && run->failed;
}

double dv_run_waited_seconds(const dv_run *run) {
    return run && run->spill ? dv_spill_waited_seconds(run->spill) : 0;
}

/* ---- prediction ------------------------------------------------------------------------------ */

dv_status dv_run_predict(dv_run *run, dv_error *error) {
    DV_NEED(run);
    DV_TRY(check_phase(run, CALL_PREDICT, error));
    forget_prediction(run);
    run->now = (dv_under_way){.told.scale = 1};
    return enter(run, dv_run_operations(run, 0, run->plan->loss_at, error), DV_PREDICTED, run->plan->loss_at - 1);
}

dv_status dv_run_evaluate(dv_run *run, dv_step_result *result, dv_error *error) {
    DV_NEED(result);
    DV_TRY(dv_run_predict(run, error));
    return dv_run_loss(run, result, error);
}
