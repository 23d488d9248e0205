/* Candidates: the ways of keeping a value that method `mixed` can choose among, one for each value. A letter stands for
 * each in the method's text. A new way of keeping values is a row of the table in candidate.c. */
#ifndef DV_GRAPH_CANDIDATE_H
#define DV_GRAPH_CANDIDATE_H

#include "graph/plan.h"

typedef struct dv_candidate {
    char letter;
    int bits;                /* of its codes; 0: nothing is lost */
    const char *name;        /* for people: "4 bits" */
    const dv_keeper *keeper; /* of the numbers */
    const char *codec;       /* that packs them; NULL: none does */
    int levels;              /* of lean codes; 0: of others */

    /* Whether a value of this plan, whose readers are known, can be kept so. NULL: any can. */
    bool (*can)(const dv_plan *plan, dv_value value);

    /* Gives a value its keeper. NULL: as dv_plan_keep does. */
    void (*keep)(dv_plan *plan, dv_value value);
} dv_candidate;

/* In the order from the fastest to the one that keeps least, NULL past the last. */
const dv_candidate *dv_candidate_at(size_t index);

/* The candidate of a letter, or NULL. */
const dv_candidate *dv_candidate_of(char letter);

/* The letters that mean something of their own here. A value that nobody reads has DV_UNREAD. */
enum { DV_UNREAD = '-', DV_EXACT = 'x', DV_RECOMPUTED = 'r', DV_REPLAYED = 'p', DV_SPILLED = 's' };

/* Whether a value can be kept as the candidate says. */
bool dv_candidate_can(const dv_candidate *candidate, const dv_plan *plan, dv_value value);

/* The values in the order of a text of letters: the images, then the outputs of layers. */
static inline dv_value dv_value_of_letter(const dv_graph *graph, size_t index) {
    return index == 0 ? graph->input : graph->layers[index - 1].output;
}

#endif
