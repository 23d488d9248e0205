/* Which parameters are trained: all but those that dv_plan_options.freeze names
 * (base/glob.h says how). */
#include "graph/plan.h"

#include "base/glob.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* "layer1.0.conv1.weight". NULL if there is no memory. */
static char *name_of(const dv_layer *layer, size_t parameter) {
    const char *last = layer->parameters[parameter].name;
    size_t length = strlen(layer->name);
    char *name = malloc(length + strlen(last) + 2);
    if (name) {
        memcpy(name, layer->name, length);
        name[length] = '.';
        strcpy(name + length + 1, last);
    }
    return name;
}

/* Parameters of a plan that are trained. */
static size_t count_trained(const dv_plan *plan) {
    size_t count = 0;
    for (size_t i = 0; i < plan->graph->layer_count; i++)
        for (size_t k = 0; k < plan->graph->layers[i].layer.parameter_count; k++)
            count += plan->layers[i].trained >> k & 1;
    return count;
}

/* The last layer that has parameters, or NULL. */
static const dv_layer *last_layer(const dv_graph *graph) {
    const dv_layer *last = NULL;
    for (size_t i = 0; i < graph->layer_count; i++)
        if (graph->layers[i].layer.parameter_count > 0)
            last = &graph->layers[i].layer;
    return last;
}

static dv_status fail_unmatched(const dv_plan *plan, const char *glob, dv_error *error) {
    const dv_layer *like = last_layer(plan->graph);
    if (!like)
        return dv_fail(error, DV_ERROR_OPTION, "freeze: the network has no parameters: leave it out");
    return dv_fail(
        error, DV_ERROR_OPTION,
        "freeze: '%.40s' names no parameter: give names like %.60s or %.60s.%s, or globs of them ('*' is any "
        "text)",
        glob, like->name, like->name, like->parameters[0].name);
}

/* Freezes what one glob names. */
static dv_status freeze(dv_plan *plan, const char *glob, dv_error *error) {
    bool matched = false;
    for (size_t i = 0; i < plan->graph->layer_count; i++) {
        const dv_layer *layer = &plan->graph->layers[i].layer;
        for (size_t k = 0; k < layer->parameter_count; k++) {
            char *name = name_of(layer, k);
            if (!name)
                return dv_fail(error, DV_ERROR_MEMORY, "plan: no memory");
            if (dv_glob_names(glob, name)) {
                plan->layers[i].trained &= ~(1u << k);
                matched = true;
            }
            free(name);
        }
    }
    return matched ? DV_OK : fail_unmatched(plan, glob, error);
}

/* Cuts the next glob off a list, without the spaces around it. NULL behind the last. */
static char *next_glob(char **rest) {
    static const char spaces[] = " \t";
    char *glob = *rest;
    if (!glob)
        return NULL;
    glob += strspn(glob, spaces);
    size_t length = strcspn(glob, ",");
    *rest = glob[length] == ',' ? glob + length + 1 : NULL;
    while (length > 0 && strchr(spaces, glob[length - 1]))
        length--;
    glob[length] = '\0';
    return glob;
}

static dv_status freeze_list(dv_plan *plan, char *list, dv_error *error) {
    const char *glob;
    while ((glob = next_glob(&list)) != NULL) {
        if (*glob == '\0')
            return dv_fail(error, DV_ERROR_OPTION, "freeze: '%.60s' has an empty place: give names with commas between",
                           plan->freeze);
        DV_TRY(freeze(plan, glob, error));
    }
    if (count_trained(plan) > 0)
        return DV_OK;
    return dv_fail(error, DV_ERROR_OPTION,
                   "freeze: '%.60s' are all parameters: nothing is left to train: leave some out, %.60s for example",
                   plan->freeze, last_layer(plan->graph)->name);
}

dv_status dv_plan_freeze(dv_plan *plan, dv_error *error) {
    for (size_t i = 0; i < plan->graph->layer_count && !plan->options.inference; i++)
        plan->layers[i].trained = (1u << plan->graph->layers[i].layer.parameter_count) - 1;
    if (*plan->freeze == '\0' || plan->options.inference)
        return DV_OK;
    char *list = strdup(plan->freeze);
    if (!list)
        return dv_fail(error, DV_ERROR_MEMORY, "plan: no memory");
    dv_status status = freeze_list(plan, list, error);
    free(list);
    return status;
}
