/* Other methods as choices: what is chosen is never worse than one of them that fits. */
#include "budget/pool.h"

#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>

/* The letter of a keeper; `packed` for all that pack. */
static char letter_of(const dv_value_plan *v, char packed) {
    if (!v->keeper)
        return DV_UNREAD;
    if (v->keeper == &dv_keep_packed || v->keeper == &dv_keep_lean)
        return packed;
    for (size_t i = 0; dv_candidate_at(i); i++)
        if (dv_candidate_at(i)->keeper == v->keeper)
            return dv_candidate_at(i)->letter;
    return DV_EXACT;
}

static void write_letters(const dv_plan *plan, char packed, char *letters) {
    size_t count = plan->graph->layer_count + 1;
    for (size_t i = 0; i < count; i++)
        letters[i] = letter_of(&plan->values[dv_value_of_letter(plan->graph, i)], packed);
    letters[count] = '\0';
    if (letters[0] == packed && packed != DV_EXACT)
        letters[0] = 'h'; /* images have 8 bits with `division` and `lean` */
}

dv_status dv_letters_of_method(const dv_pool *pool, const char *method, char packed, char *letters, dv_error *error) {
    dv_plan_options told = *pool->options;
    dv_plan *plan;
    told.method = method;
    DV_TRY(dv_plan_new(pool->graph, &told, &plan, error));
    write_letters(plan, packed, letters);
    dv_plan_free(plan);
    return DV_OK;
}

/* `checkpoint`, and all between it and `none`: the first few segments run again, and the rest is exact. */
static dv_status add_checkpoint(dv_pool *pool, const char *method, char *letters, dv_error *error) {
    dv_plan_options told = *pool->options;
    dv_plan *plan;
    told.method = method;
    DV_TRY(dv_plan_new(pool->graph, &told, &plan, error));
    write_letters(plan, DV_EXACT, letters);
    dv_status status = dv_pool_add(pool, letters, NULL, error);
    for (size_t s = plan->segment_count; status == DV_OK && s-- > 1;) {
        for (int i = plan->segments[s].first; i <= plan->segments[s].last; i++)
            letters[i + 1] = letters[i + 1] == DV_REPLAYED ? DV_EXACT : letters[i + 1];
        status = dv_pool_add(pool, letters, NULL, error);
    }
    dv_plan_free(plan);
    return status;
}

static dv_status add_all(dv_pool *pool, char *letters, dv_error *error) {
    static const struct {
        const char *method;
        char packed;
    } methods[] = {{"none", DV_EXACT},
                   {"division", 'h'},
                   {"division", 'd'},
                   {"division", 'b'},
                   {"division", 'a'},
                   {"division:recompute=norms", 'h'},
                   {"division:recompute=norms", 'd'},
                   {"division:recompute=norms", 'b'},
                   {"lean", 'n'},
                   {"lean", 'm'},
                   {"lean", 'l'}};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        DV_TRY(dv_letters_of_method(pool, methods[i].method, methods[i].packed, letters, error));
        DV_TRY(dv_pool_add(pool, letters, NULL, error));
    }
    if (pool->spill) {
        DV_TRY(dv_letters_of_method(pool, "swap", DV_EXACT, letters, error));
        DV_TRY(dv_pool_add(pool, letters, NULL, error));
    }
    DV_TRY(add_checkpoint(pool, "checkpoint", letters, error));
    for (int segments = 2; segments <= 16; segments *= 2) {
        char method[32];
        snprintf(method, sizeof method, "checkpoint:segments=%d", segments);
        DV_TRY(add_checkpoint(pool, method, letters, error));
    }
    return DV_OK;
}

dv_status dv_pool_add_methods(dv_pool *pool, dv_error *error) {
    char *letters = calloc(pool->sites.count + 1, 1);
    if (!letters)
        return dv_fail(error, DV_ERROR_MEMORY, "budget: no memory");
    dv_status status = add_all(pool, letters, error);
    free(letters);
    return status;
}
