/* Whose the pieces of a plan are, by tables of the fields that name them. */
#include "graph/guard.h"
#include "graph/plan.h"

typedef struct role {
    const char *name;
    size_t field, count; /* where in the struct its pieces are, and how many */
    bool given;
} role;

#define ROLE(text, type, member, outside)                                                                          \
    {                                                                                                              \
        .name = (text), .field = offsetof(type, member), .count = sizeof(((const type *)0)->member) / sizeof(int), \
        .given = (outside),                                                                                        \
    }

static const role value_roles[] = {
    ROLE("output", dv_value_plan, data, false),
    ROLE("packed output", dv_value_plan, packed, false),
    ROLE("mask", dv_value_plan, mask, false),
    ROLE("output again", dv_value_plan, again, false),
    ROLE("recompute workspace", dv_value_plan, recompute_workspace, false),
    ROLE("output's gradient", dv_value_plan, diff, false),
};

static const role layer_roles[] = {
    ROLE("saved bytes", dv_layer_plan, saved, false),
    ROLE("forward workspace", dv_layer_plan, forward_workspace, false),
    ROLE("saved bytes again", dv_layer_plan, saved_again, false),
    ROLE("replay workspace", dv_layer_plan, replay_workspace, false),
    ROLE("backward workspace", dv_layer_plan, backward_workspace, false),
    ROLE("coefficients of the input's gradient", dv_layer_plan, diff_state, false),
    ROLE("parameters", dv_layer_plan, data, true),
    ROLE("parameters' gradient", dv_layer_plan, gradient, true),
    ROLE("gradients that travel", dv_layer_plan, wire, false),
    ROLE("optimizer", dv_layer_plan, optimizer, true),
    ROLE("average", dv_layer_plan, average, true),
    ROLE("statistics", dv_layer_plan, buffers, true),
    ROLE("statistics' average", dv_layer_plan, buffer_average, true),
};

static const role plan_roles[] = {
    ROLE("labels", dv_plan, targets, true),
    ROLE("transfers", dv_plan, spill_memory, true),
    ROLE("method's state", dv_plan, state, true),
    ROLE("second labels", dv_plan, second_labels, true),
    ROLE("label weights", dv_plan, label_weights, true),
    ROLE("statistics that travel", dv_plan, statistics, false),
    ROLE("loss's workspace", dv_plan, loss_workspace, false),
};

/* Names the pieces in the fields of one struct. */
static void name_pieces(const void *of, const role *roles, size_t count, const dv_layer *layer, bool given,
                        dv_owner *owners) {
    for (size_t r = 0; r < count; r++) {
        const int *pieces = (const int *)((const char *)of + roles[r].field);
        for (size_t k = 0; k < roles[r].count; k++) {
            if (pieces[k] == DV_NO_PIECE)
                continue;
            dv_owner *owner = &owners[pieces[k]];
            if (!owner->role)
                *owner = (dv_owner){.role = roles[r].name, .layer = layer};
            owner->given = owner->given || given || roles[r].given;
        }
    }
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The role of the first field of a struct that has the piece. */
static const char *role_of(const void *of, const role *roles, size_t count, int piece) {
    for (size_t r = 0; r < count; r++) {
        const int *pieces = (const int *)((const char *)of + roles[r].field);
        for (size_t k = 0; k < roles[r].count; k++)
            if (pieces[k] == piece)
                return roles[r].name;
    }
    return NULL;
}

const char *dv_value_role(const dv_value_plan *value, int piece) {
    return role_of(value, value_roles, COUNT(value_roles), piece);
}

const char *dv_layer_role(const dv_layer_plan *layer, int piece) {
    return role_of(layer, layer_roles, COUNT(layer_roles), piece);
}

const char *dv_plan_role(const dv_plan *plan, int piece) {
    return role_of(plan, plan_roles, COUNT(plan_roles), piece);
}

/* The value's own memory comes from outside if it is the images'; what is kept of it does not. */
static void name_value(const dv_plan *plan, dv_value value, dv_owner *owners) {
    int producer = plan->graph->values[value].producer;
    const dv_layer *layer = producer == DV_INPUT ? NULL : &plan->graph->layers[producer].layer;
    name_pieces(&plan->values[value], value_roles, 1, layer, value == plan->graph->input, owners);
    name_pieces(&plan->values[value], value_roles + 1, COUNT(value_roles) - 1, layer, false, owners);
}

/* Gradients that are transient are made in each step. */
static void disown_gradients(const dv_layer_plan *layer, dv_owner *owners) {
    for (size_t k = 0; layer->update_at >= 0 && k < DV_LAYER_MAX_PARAMETERS; k++)
        if (layer->gradient[k] != DV_NO_PIECE)
            owners[layer->gradient[k]].given = false;
}

void dv_plan_owners(const dv_plan *plan, dv_owner *owners) {
    for (size_t i = 0; i < plan->piece_count; i++)
        owners[i] = (dv_owner){0};
    for (size_t v = 0; v < plan->graph->value_count; v++)
        name_value(plan, (dv_value)v, owners);
    for (size_t i = 0; i < plan->graph->layer_count; i++) {
        name_pieces(&plan->layers[i], layer_roles, COUNT(layer_roles), &plan->graph->layers[i].layer, false, owners);
        disown_gradients(&plan->layers[i], owners);
    }
    name_pieces(plan, plan_roles, COUNT(plan_roles), NULL, false, owners);
}
