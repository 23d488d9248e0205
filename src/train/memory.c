/* A training within so many bytes: from the option to the method that it chooses.
 *
 *     memory = program and libraries + loaders + a reserve + the plan
 *
 * All but the plan is known before it is chosen: what is resident when the network is built, what loaders will take.
 * The probe is a plan too, of a few images, and is given back before the training's memory is mapped. */
#include "train/memory.h"

#include "base/sizes.h"
#include "base/status.h"
#include "base/system_memory.h"
#include "train/loaders.h"

#include <division/checkpoint.h>
#include <division/options.h>

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* ---- bytes ------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    double bytes; /* 0: of a hundred parts of what is free */
} units[] = {{"", 1},         {"B", 1},        {"kB", 1e3},     {"MB", 1e6},     {"GB", 1e9}, {"TB", 1e12},
             {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"%", 0}};

/* What this process can have in all: what is free, and what it has. */
static size_t most_bytes(void) {
    return dv_memory_available() + dv_system_memory_resident("");
}

static double unit_bytes(const char *name) {
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcasecmp(units[i].name, name) == 0)
            return units[i].bytes > 0 ? units[i].bytes : (double)most_bytes() / 100;
    return NAN;
}

dv_status dv_memory_read(const char *text, size_t *bytes, dv_error *error) {
    char *end;
    if (strcmp(text, "auto") == 0) {
        *bytes = most_bytes();
        return DV_OK;
    }
    double number = strtod(text, &end);
    bool plain = text[0] >= '0' && text[0] <= '9';
    double found = end != text ? number * unit_bytes(end) : NAN;
    bool share = end[0] == '%';
    if (!plain || !(found >= 1) || found >= 0x1p60 || (share && number > 100))
        return dv_fail(error, DV_ERROR_OPTION,
                       "%.40s: must be bytes as 600MB or 1.5GiB, a part of what is free as 50%%, or auto", text);
    *bytes = (size_t)found;
    return DV_OK;
}

dv_status dv_options_memory(const dv_options *options, size_t *bytes, dv_error *error) {
    DV_NEED(options);
    DV_NEED(bytes);
    DV_TRY(dv_memory_read(options->memory, bytes, error));
    size_t most = most_bytes();
    if (*bytes > most)
        return dv_fail(error, DV_ERROR_OPTION,
                       "--memory: %s: there are %.1f MB here: give at most so many, or auto for what is free",
                       options->memory, (double)most * 1e-6);
    return DV_OK;
}

/* ---- the probe --------------------------------------------------------------------------------- */

/* Images of a probe: fewer of large ones. Statistics of a norm's batch want a few. So many times as many are looked at
 * once more. */
enum {
    LARGE_SIDE = 112,
    LARGE_IMAGES = 4,
    SMALL_IMAGES = 16,
    FEWEST_IMAGES = 2,
    MORE_IMAGES = 4,
    PROBE_BATCHES = 12,
    FEWEST_BATCHES = 2
};

/* Where a probe's images and weights come from. */
typedef struct source {
    const dv_options *options;
    const dv_dataset *data;
    dv_loader *loader;
} source;

static dv_status fill(void *context, size_t batch, dv_run *run, dv_error *error) {
    source *from = context;
    size_t images;
    if (from->loader == NULL) {
        const dv_map *map = dv_run_input_map(run);
        dv_loader_options how = dv_options_loader(from->options, from->data);
        how.split = DV_TRAIN;
        how.type = map->type;
        how.batch = map->images;
        how.side = map->sides[0];
        how.seed = from->options->seed;
        how.shuffle = how.augment = how.drop_last = 1;
        DV_TRY(dv_loader_new(from->data, &how, &from->loader, error));
    }
    return dv_loader_fill(from->loader, 0, batch, dv_run_input(run), dv_run_labels(run), &images, error);
}

static dv_status prepare(void *context, dv_run *run, dv_error *error) {
    const dv_options *options = ((const source *)context)->options;
    const char *except = options->init_except;
    dv_checkpoint *checkpoint;
    if (options->init[0] == '\0')
        return dv_check_input(run, error);
    DV_TRY(dv_check_input(run, error));
    DV_TRY(dv_checkpoint_open(options->init, &checkpoint, error));
    dv_checkpoint_choice choice = {.averages = dv_checkpoint_has_averages(checkpoint),
                                   .except = except[0] != '\0' ? except : NULL};
    dv_status status = dv_checkpoint_load(checkpoint, &choice, run, NULL, NULL, error);
    dv_checkpoint_close(checkpoint);
    return status;
}

/* What is done with a graph of so many images: a profile is made, or is given what a larger batch adds to it. */
static dv_status take_steps(dv_graph *graph, const dv_plan_options *told, const dv_probe *probe, size_t most,
                            dv_profile **profile, dv_error *error) {
    return *profile ? dv_profile_add_larger(*profile, graph, told, probe, most, error)
                    : dv_profile_new(graph, told, probe, most, profile, error);
}

static dv_status probe_with(const dv_options *options, const dv_dataset_shape *network, const dv_dataset *data,
                            size_t images, size_t most, dv_profile **profile, dv_error *error) {
    dv_options small = *options;
    char optimizer[DV_OPTIMIZER_TEXT_BYTES];
    dv_plan_options told;
    dv_graph *graph;
    dv_plan *plan;
    source from = {.options = options, .data = data};
    size_t batches =
        dv_smaller(PROBE_BATCHES, dv_larger(dv_dataset_describe(data).images[DV_TRAIN] / images, FEWEST_BATCHES));
    const dv_probe probe = {batches, options->seed, prepare, fill, &from};
    small.batch = images;
    (void)dv_options_set(&small, "method", "none", NULL);
    DV_TRY(dv_options_for_plan(&small, optimizer, &told, error));
    DV_TRY(dv_options_plan(&small, network, &graph, &plan, error));
    dv_plan_free(plan);
    dv_status status = take_steps(graph, &told, &probe, most, profile, error);
    dv_graph_free(graph);
    dv_loader_free(from.loader);
    (void)malloc_trim(0); /* so that it is not counted as the program's */
    return status;
}

/* The same, in what this process may still take of `most` bytes; 0: any number. */
static dv_status probe_within(const dv_options *options, const dv_dataset_shape *network, const dv_dataset *data,
                              size_t images, size_t most, dv_profile **profile, dv_error *error) {
    size_t resident = dv_system_memory_resident("");
    size_t left = most == 0 ? 0 : most > resident ? most - resident : 1;
    return probe_with(options, network, data, images, left, profile, error);
}

/* More images where they fit: as many as the training's, or a few times those of the probe. */
static dv_status probe_larger(const dv_options *options, const dv_dataset_shape *network, const dv_dataset *data,
                              size_t images, size_t most, dv_profile **profile, dv_error *error) {
    size_t larger = dv_smaller(options->batch, images * MORE_IMAGES);
    larger = dv_smaller(larger, dv_dataset_describe(data).images[DV_TRAIN] / FEWEST_BATCHES);
    dv_status status = DV_ERROR_MEMORY;
    for (; status == DV_ERROR_MEMORY && larger > images; larger /= 2)
        status = probe_within(options, network, data, larger, most, profile, error);
    return status == DV_ERROR_MEMORY ? DV_OK : status;
}

/* With fewer images where it does not fit. */
static dv_status probe(const dv_options *options, const dv_dataset_shape *network, const dv_dataset *data, size_t side,
                       size_t most, dv_profile **profile, dv_error *error) {
    size_t images = dv_smaller(options->batch, side >= LARGE_SIDE ? LARGE_IMAGES : SMALL_IMAGES);
    size_t fewest = dv_larger(dv_smaller(FEWEST_IMAGES, options->batch), 1);
    dv_status status = DV_ERROR_MEMORY;
    *profile = NULL;
    for (; status == DV_ERROR_MEMORY && images >= fewest; images /= 2) {
        status = probe_within(options, network, data, images, most, profile, error);
        if (status == DV_OK)
            return probe_larger(options, network, data, images, most, profile, error);
    }
    return status;
}

/* ---- the curve --------------------------------------------------------------------------------- */

/* The reserve. */
enum { RESERVE = 12000000, RESERVE_PART = 100 };

size_t dv_memory_needed(size_t planned, size_t beside) {
    return planned + beside + RESERVE + planned / RESERVE_PART;
}

/* Images that nobody has to have. */
static dv_status open_made_up(size_t side, dv_dataset **data, dv_error *error) {
    char text[DV_NAME_BYTES];
    snprintf(text, sizeof text, "synthetic:side=%zu,train=128,test=64", dv_smaller(side, 512));
    return dv_dataset_open(text, data, error);
}

/* Writes it to the file that it is to be kept in. */
static dv_status keep_profile(const dv_options *options, const dv_graph *graph, dv_profile *profile, dv_error *error) {
    if (options->profile[0] == '\0')
        return DV_OK;
    dv_status status = dv_profile_write(profile, graph, options->profile, error);
    if (status != DV_OK)
        dv_profile_free(profile);
    return status;
}

/* Probes with the data, or with made-up images. What does not even have room for a probe is planned without one: then
 * nothing is known but bytes. */
static dv_status measure_profile(const dv_options *options, const dv_dataset_shape *network, const dv_dataset *data,
                                 dv_graph *graph, const dv_map *input, dv_profile **profile, dv_error *error) {
    size_t most = 0;
    dv_dataset *made_up = NULL;
    if (options->memory[0] != '\0')
        DV_TRY(dv_memory_read(options->memory, &most, error));
    if (data == NULL)
        DV_TRY(open_made_up(input->sides[0], &made_up, error));
    dv_status status = probe(options, network, data ? data : made_up, input->sides[0], most, profile, error);
    dv_dataset_close(made_up);
    if (status == DV_OK)
        return keep_profile(options, graph, *profile, error);
    return status == DV_ERROR_MEMORY ? dv_profile_flat(graph, profile, error) : status;
}

/* From the file, if there is one. */
static dv_status find_profile(const dv_options *options, const dv_dataset_shape *network, const dv_dataset *data,
                              dv_graph *graph, const dv_map *input, dv_profile **profile, dv_error *error) {
    if (options->profile[0] != '\0' && access(options->profile, F_OK) == 0)
        return dv_profile_read(graph, options->profile, profile, error);
    return measure_profile(options, network, data, graph, input, profile, error);
}

static dv_status make_curve(const dv_options *options, const dv_dataset *data, dv_budget **budget, size_t *beside,
                            dv_error *error) {
    const dv_budget_limits limits = {options->noise > 0 ? options->noise : -1, (dv_prefer)options->prefer,
                                     options->spill[0] != '\0'};
    dv_dataset_shape network = {.classes = 0};
    char optimizer[DV_OPTIMIZER_TEXT_BYTES];
    dv_options plain = *options;
    dv_plan_options told;
    dv_profile *profile;
    dv_graph *graph;
    dv_plan *plan;
    if (data != NULL)
        network = dv_dataset_describe(data);
    (void)dv_options_set(&plain, "method", "none", NULL);
    DV_TRY(dv_options_for_plan(&plain, optimizer, &told, error));
    DV_TRY(dv_options_plan(&plain, &network, &graph, &plan, error));
    const dv_map *input = &dv_plan_row_at(plan, 0)->output;
    dv_status status = find_profile(options, &network, data, graph, input, &profile, error);
    *beside = dv_system_memory_resident("") + (data ? dv_loading_bytes(&options->loading, input, data) : 0);
    dv_plan_free(plan);
    if (status == DV_OK) {
        status = dv_budget_new(graph, &told, profile, &limits, budget, error);
        dv_profile_free(profile);
    }
    dv_graph_free(graph);
    return status;
}

dv_status dv_options_budget(const dv_options *options, const dv_dataset *data, dv_budget **budget, size_t *beside,
                            dv_error *error) {
    DV_NEED(options);
    DV_NEED(budget);
    DV_NEED(beside);
    if (dv_world_ranks(options->world) > 1 || options->ranks > 1)
        return dv_fail(error, DV_ERROR_OPTION,
                       "--memory: for one process alone: choose with 'division plan --memory', and give all ranks that "
                       "method");
    return make_curve(options, data, budget, beside, error);
}

/* ---- the choice -------------------------------------------------------------------------------- */

static dv_status take(dv_options *options, const dv_budget *budget, const dv_budget_point *point, dv_chosen *chosen,
                      dv_error *error) {
    chosen->planned = point->planned;
    chosen->noise = point->noise;
    chosen->seconds = point->seconds;
    chosen->none_planned = dv_budget_none(budget)->planned;
    chosen->none_seconds = dv_budget_none(budget)->seconds;
    chosen->division_noise = dv_budget_division(budget)->noise;
    return dv_options_set(options, "method", point->method, error);
}

/* Something is known of noise. */
static bool is_probed(const dv_budget *budget) {
    return dv_budget_division(budget)->noise > 0;
}

/* The best point whose plan, with all beside it, fits. */
static const dv_budget_point *best_within(const dv_budget *budget, size_t memory, size_t beside) {
    const dv_budget_point *best = NULL, *point;
    for (size_t i = 0; (point = dv_budget_point_at(budget, i)) != NULL; i++)
        best = dv_memory_needed(point->planned, beside) <= memory ? point : best;
    return best;
}

/* The least that would do. Where not even a probe had room, noise is not known, and it is the least of any. */
static dv_status fail_too_little(const dv_options *options, const dv_budget *budget, size_t beside, dv_error *error) {
    size_t least = dv_memory_needed(dv_budget_point_at(budget, 0)->planned, beside);
    if (!is_probed(budget))
        return dv_fail(error, DV_ERROR_OPTION,
                       "--memory: %s: too little even to look at the network: %zu bytes (%.1f MB) or more will do",
                       options->memory, least, (double)least * 1e-6);
    return dv_fail(error, DV_ERROR_OPTION,
                   "--memory: %s: too little: %zu bytes (%.1f MB) would do, or smaller batches, or more --noise",
                   options->memory, least, (double)least * 1e-6);
}

/* Chooses for the batch as it is. `fits` says whether anything does: if nothing, the error says what would. */
static dv_status choose_with_batch(dv_options *options, const dv_dataset *data, size_t memory, dv_chosen *chosen,
                                   bool *fits, dv_error *error) {
    dv_budget *budget;
    size_t beside;
    DV_TRY(dv_options_budget(options, data, &budget, &beside, error));
    const dv_budget_point *best = is_probed(budget) ? best_within(budget, memory, beside) : NULL;
    dv_status status;
    *fits = best != NULL;
    if (*fits) {
        *chosen = (dv_chosen){.memory = memory, .beside = dv_memory_needed(best->planned, beside) - best->planned};
        status = take(options, budget, best, chosen, error);
    } else {
        status = fail_too_little(options, budget, beside, error);
    }
    dv_budget_free(budget);
    return status;
}

/* The next smaller batch, by the smallest number that divides this one; false if norms would see a single image. */
static bool make_batch_smaller(dv_options *options) {
    enum { FEWEST = 2 };
    size_t parts = 2;
    while (parts <= options->batch && options->batch % parts != 0)
        parts++;
    if (options->batch / parts < FEWEST)
        return false;
    options->batch /= parts;
    options->accumulate *= parts;
    return true;
}

dv_status dv_options_choose(dv_options *options, const dv_dataset *data, dv_chosen *chosen, dv_error *error) {
    DV_NEED(options);
    DV_NEED(chosen);
    size_t memory;
    bool fits = false;
    DV_TRY(dv_memory_read(options->memory, &memory, error));
    dv_options made = *options;
    dv_status status = choose_with_batch(&made, data, memory, chosen, &fits, error);
    while (status == DV_ERROR_OPTION && !fits && options->batch_auto && make_batch_smaller(&made))
        status = choose_with_batch(&made, data, memory, chosen, &fits, error);
    if (status == DV_OK)
        *options = made;
    return status;
}
