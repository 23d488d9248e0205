/* The optimizer of a training: its text, from the options that have one word each. */
#include "base/status.h"
#include "optimizer/kind.h"
#include "train/loop.h"
#include "train/ranks.h"

#include <division/options.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The optimizer that --momentum and --nesterov are of. */
#define SGD "sgd"

static bool is_sgd(const dv_options *options, size_t name) {
    return name == strlen(SGD) && strncmp(options->optimizer, SGD, name) == 0;
}

static dv_status check_words(const dv_options *options, bool sgd, dv_error *error) {
    if (!sgd && (options->momentum != strtod(DV_DEFAULT_MOMENTUM, NULL) || options->nesterov))
        return dv_fail(error, DV_ERROR_OPTION, "%s is sgd's alone: leave it out, or give it with the optimizer: %.40s",
                       options->nesterov ? "nesterov" : "momentum", options->optimizer);
    return DV_OK;
}

/* "sgd:decay=5e-4,momentum=0.9,nesterov=0" and what stands behind the colon, which goes over it. */
static dv_status write_text(const dv_options *options, char text[DV_OPTIMIZER_TEXT_BYTES], dv_error *error) {
    size_t name = strcspn(options->optimizer, ":");
    bool sgd = is_sgd(options, name);
    char words[100] = "";
    DV_TRY(check_words(options, sgd, error));
    if (sgd)
        snprintf(words, sizeof words, ",momentum=%.17g,nesterov=%d", options->momentum, options->nesterov != 0);
    const char *own = options->optimizer[name] == ':' ? options->optimizer + name + 1 : NULL;
    int length = snprintf(text, DV_OPTIMIZER_TEXT_BYTES, "%.*s:decay=%.17g%s%s%s", (int)name, options->optimizer,
                          options->weight_decay, words, own != NULL ? "," : "", own != NULL ? own : "");
    if (length < 0 || length >= DV_OPTIMIZER_TEXT_BYTES)
        return dv_fail(error, DV_ERROR_OPTION, "optimizer: a text of %zu characters: give a shorter one",
                       strlen(options->optimizer));
    return DV_OK;
}

static dv_status read_optimizer(const dv_options *options, dv_optimizer *optimizer, dv_error *error) {
    char text[DV_OPTIMIZER_TEXT_BYTES];
    DV_TRY(write_text(options, text, error));
    return dv_optimizer_parse(text, optimizer, error);
}

dv_status dv_check_optimizer(const dv_options *options, dv_error *error) {
    dv_optimizer optimizer;
    return read_optimizer(options, &optimizer, error);
}

dv_status dv_check_planned(const dv_run *run, const dv_options *options, dv_error *error) {
    const dv_optimizer *planned = dv_run_optimizer(run);
    dv_optimizer wanted;
    DV_TRY(read_optimizer(options, &wanted, error));
    if (planned == NULL || !dv_optimizer_same(planned, &wanted))
        return dv_fail(error, DV_ERROR_ARGUMENT,
                       "train: the plan has %s optimizer: make it with what dv_options_for_plan says",
                       planned == NULL ? "no" : "another");
    if (dv_run_gradients(run) == DV_GRADIENTS_TRANSIENT && dv_options_own_batches(options) > 1)
        return dv_fail(error, DV_ERROR_ARGUMENT,
                       "train: gradients are to be accumulated, but are planned to be transient: plan to keep them");
    return DV_OK;
}

/* A text, or NULL where there is none. */
static const char *given(const char *text) {
    return text[0] != '\0' ? text : NULL;
}

dv_status dv_options_for_plan(const dv_options *options, char text[DV_OPTIMIZER_TEXT_BYTES], dv_plan_options *plan,
                              dv_error *error) {
    DV_NEED(options);
    DV_NEED(text);
    DV_NEED(plan);
    DV_TRY(dv_check_optimizer(options, error));
    DV_TRY(write_text(options, text, error));
    *plan = dv_plan_options_default();
    plan->method = options->method;
    plan->spill = given(options->spill);
    plan->freeze = given(options->freeze);
    plan->optimizer = text;
    plan->groups = given(options->groups);
    plan->clip = options->clip;
    plan->average = options->average > 0;
    plan->ranks = dv_options_ranks(options);
    plan->reduce = (dv_reduce)options->reduce;
    plan->sync_norm = options->sync_norm;
    plan->gradients =
        dv_options_own_batches(options) > 1 || options->clip > 0 ? DV_GRADIENTS_KEPT : DV_GRADIENTS_TRANSIENT;
    return DV_OK;
}
