/* Choices, and what they come to. */
#include "budget/pool.h"

#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Seconds of the layers that run again. */
static double replay_seconds(const dv_pool *pool, const dv_plan *plan) {
    double seconds = 0;
    for (size_t i = 0; i < plan->operation_count; i++)
        if (plan->operations[i].kind == DV_REPLAY)
            seconds += pool->profile->forward[plan->operations[i].index];
    return seconds;
}

/* Images of this graph by those of the steps that were timed. */
static double scale_of(const dv_pool *pool) {
    return (double)pool->graph->batch / (double)pool->profile->images;
}

double dv_pool_none_seconds(const dv_pool *pool) {
    return scale_of(pool) * pool->profile->images_seconds + pool->profile->update_seconds;
}

static dv_status append(dv_pool *pool, const dv_pool_choice *choice, dv_error *error) {
    if (pool->count == pool->capacity) {
        size_t more = pool->capacity ? 2 * pool->capacity : 64;
        dv_pool_choice *moved = realloc(pool->choices, more * sizeof *moved);
        if (!moved)
            return dv_fail(error, DV_ERROR_MEMORY, "budget: no memory");
        pool->choices = moved;
        pool->capacity = more;
    }
    pool->choices[pool->count++] = *choice;
    return DV_OK;
}

static dv_status evaluate(dv_pool *pool, const char *letters, const dv_plan *plan, dv_pool_choice *choice) {
    choice->planned = dv_plan_totals(plan).planned;
    choice->noise = dv_predict_noise(pool->profile, &pool->sites, letters);
    choice->seconds = dv_pool_none_seconds(pool) +
                      dv_predict_more_seconds(pool->profile, &pool->sites, letters, pool->loads) +
                      scale_of(pool) * replay_seconds(pool, plan);
    return DV_OK;
}

dv_status dv_pool_add(dv_pool *pool, const char *letters, dv_plan **plan, dv_error *error) {
    dv_plan_options told = *pool->options;
    dv_plan *made = NULL;
    dv_pool_choice choice = {.method = malloc(strlen(letters) + sizeof "mixed:")};
    if (!choice.method)
        return dv_fail(error, DV_ERROR_MEMORY, "budget: no memory");
    sprintf(choice.method, "mixed:%s", letters);
    told.method = choice.method;
    dv_status status = dv_plan_new(pool->graph, &told, &made, error);
    if (status == DV_OK)
        status = evaluate(pool, letters, made, &choice);
    if (status == DV_OK)
        status = append(pool, &choice, error);
    if (status != DV_OK)
        free(choice.method);
    if (status == DV_OK && plan)
        *plan = made;
    else
        dv_plan_free(made);
    return status;
}

/* ---- what candidates keep ---------------------------------------------------------------------- */

static size_t kept_bytes(const dv_pool *pool, size_t index, const dv_candidate *candidate) {
    const dv_site *site = &pool->sites.at[index];
    size_t mask = site->recomputable ? site->elements / 8 : 0, bytes = 0;
    dv_codec codec;
    if (candidate->letter == DV_EXACT)
        return site->bytes;
    if (candidate->codec && dv_codec_parse(candidate->codec, &codec, NULL) == DV_OK)
        (void)dv_codec_packed_bytes(&codec, &pool->graph->values[dv_value_of_letter(pool->graph, index)].map, &bytes,
                                    NULL);
    if (candidate->keeper == &dv_keep_lean && site->taker_count == 1 && bytes > site->elements / 8)
        bytes -= site->elements / 8; /* the mask of what is made of it lies in the code */
    return bytes + mask;
}

static bool may(const dv_pool *pool, const dv_plan *none, size_t index, const dv_candidate *candidate) {
    if (candidate->letter == DV_REPLAYED || (candidate->letter == DV_SPILLED && !pool->spill))
        return false;
    return dv_candidate_can(candidate, none, dv_value_of_letter(none->graph, index));
}

static dv_status make_tables(dv_pool *pool, const dv_plan *none, dv_error *error) {
    DV_TRY(dv_sites_make(none, &pool->sites, error));
    pool->loads = calloc(pool->sites.count, sizeof *pool->loads);
    pool->kept_bytes = calloc(pool->sites.count * DV_PROFILE_MOST_CANDIDATES, sizeof *pool->kept_bytes);
    pool->can = calloc(pool->sites.count * DV_PROFILE_MOST_CANDIDATES, sizeof *pool->can);
    if (!pool->loads || !pool->kept_bytes || !pool->can)
        return dv_fail(error, DV_ERROR_MEMORY, "budget: no memory");
    for (size_t i = 0; i < pool->sites.count; i++)
        for (size_t c = 0; dv_candidate_at(c); c++) {
            pool->kept_bytes[i * DV_PROFILE_MOST_CANDIDATES + c] = kept_bytes(pool, i, dv_candidate_at(c));
            pool->can[i * DV_PROFILE_MOST_CANDIDATES + c] = may(pool, none, i, dv_candidate_at(c));
        }
    return DV_OK;
}

dv_status dv_pool_begin(dv_pool *pool, dv_error *error) {
    dv_plan_options told = *pool->options;
    dv_plan *none;
    told.method = "none";
    DV_TRY(dv_plan_new(pool->graph, &told, &none, error));
    dv_status status = make_tables(pool, none, error);
    dv_plan_free(none);
    return status;
}

void dv_pool_end(dv_pool *pool) {
    for (size_t i = 0; i < pool->count; i++)
        free(pool->choices[i].method);
    free(pool->choices);
    free(pool->loads);
    free(pool->kept_bytes);
    free(pool->can);
    dv_sites_free(&pool->sites);
}
