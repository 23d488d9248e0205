/* Groups of parameters from text (division/optimizer.h): which decay and rate a parameter has. */
#ifndef DV_OPTIMIZER_GROUPS_H
#define DV_OPTIMIZER_GROUPS_H

#include <division/optimizer.h>

/* What a group changes. */
typedef struct dv_parameter_group {
    double decay; /* NaN: the optimizer's */
    double rate;  /* a factor of the learning rate */
} dv_parameter_group;

typedef struct dv_groups dv_groups;

/* NULL or empty text is no groups. */
dv_status dv_groups_new(const char *text, dv_groups **groups, dv_error *error);
void dv_groups_free(dv_groups *groups);

/* The group of a parameter: the first that names it, or one that changes nothing. Writes to `name` meanwhile. */
dv_parameter_group dv_groups_find(dv_groups *groups, char *name, int rank);

/* Fails if a group has matched no parameter that was asked for. */
dv_status dv_groups_check(const dv_groups *groups, dv_error *error);

#endif
