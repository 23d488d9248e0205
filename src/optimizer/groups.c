/* Reading groups, and finding that of a parameter. */
#include "optimizer/groups.h"

#include "base/glob.h"
#include "base/option_text.h"
#include "base/status.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The class of parameters of rank 1. */
#define VECTORS "vectors"

enum { MOST_GROUPS = 64 };

static const dv_option options[] = {
    {"decay", "D", "instead of the optimizer's", DV_NUMBER_AT(dv_parameter_group, decay, 0, 1)},
    {"rate", "F", "factor of the learning rate", DV_NUMBER_AT(dv_parameter_group, rate, 0, 1000)},
};

typedef struct entry {
    const char *glob; /* in the text */
    dv_parameter_group group;
    bool matched;
} entry;

struct dv_groups {
    char *text; /* cut into pieces */
    size_t count;
    entry entries[MOST_GROUPS];
};

/* Reads "GLOB:NAME=VALUE,...". */
static dv_status read_group(char *text, entry *made, dv_error *error) {
    char *colon = strrchr(text, ':');
    if (colon == NULL || colon == text)
        return dv_fail(error, DV_ERROR_OPTION,
                       "groups: \"%.60s\": must be a glob of names, a colon and what changes: fc:rate=10", text);
    *colon = '\0';
    *made = (entry){.glob = text, .group = {.decay = NAN, .rate = 1}};
    const dv_option_table table = {options, sizeof options / sizeof *options, &made->group};
    return dv_option_text_parse("groups", colon + 1, &table, 1, error);
}

static dv_status read_groups(dv_groups *groups, dv_error *error) {
    for (char *rest = groups->text, *next; rest != NULL; rest = next) {
        next = strchr(rest, ';');
        if (next != NULL)
            *next++ = '\0';
        if (groups->count == MOST_GROUPS)
            return dv_fail(error, DV_ERROR_OPTION, "groups: more than %d: use globs that match more", MOST_GROUPS);
        DV_TRY(read_group(rest, &groups->entries[groups->count], error));
        groups->count++;
    }
    return DV_OK;
}

dv_status dv_groups_new(const char *text, dv_groups **groups, dv_error *error) {
    dv_groups *made = calloc(1, sizeof *made);
    bool given = text != NULL && *text != '\0';
    if (made == NULL || (given && (made->text = strdup(text)) == NULL)) {
        free(made);
        return dv_fail(error, DV_ERROR_MEMORY, "groups: no memory");
    }
    dv_status status = given ? read_groups(made, error) : DV_OK;
    if (status == DV_OK)
        *groups = made;
    else
        dv_groups_free(made);
    return status;
}

void dv_groups_free(dv_groups *groups) {
    if (groups == NULL)
        return;
    free(groups->text);
    free(groups);
}

static bool matches(const entry *e, char *name, int rank) {
    return strcmp(e->glob, VECTORS) == 0 ? rank == 1 : dv_glob_names(e->glob, name);
}

/* All that match are marked, also those that come too late. */
dv_parameter_group dv_groups_find(dv_groups *groups, char *name, int rank) {
    const entry *first = NULL;
    for (size_t i = 0; i < groups->count; i++) {
        entry *e = &groups->entries[i];
        if (!matches(e, name, rank))
            continue;
        e->matched = true;
        first = first != NULL ? first : e;
    }
    return first != NULL ? first->group : (dv_parameter_group){.decay = NAN, .rate = 1};
}

dv_status dv_groups_check(const dv_groups *groups, dv_error *error) {
    for (size_t i = 0; i < groups->count; i++)
        if (!groups->entries[i].matched)
            return dv_fail(error, DV_ERROR_OPTION,
                           "groups: \"%.60s\" matches no parameter: give a glob of names as \"layer1.0.bn1.weight\" "
                           "(`division plan` lists the layers), or " VECTORS,
                           groups->entries[i].glob);
    return DV_OK;
}
