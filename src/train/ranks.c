/* What ranks that train together owe each other: the same options and data before the first step, the same weights from
 * then on. Everything here does nothing for a process that trains alone. */
#include "train/ranks.h"

#include "base/file.h"
#include "base/option.h"
#include "base/status.h"
#include "optimizer/kind.h"

#include <division/options.h>
#include <division/version.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DESCRIPTION_BYTES = 64 * 1024, LINE_BYTES = 90, LARGEST_COPY = 1 << 24 };

size_t dv_options_ranks(const dv_options *options) {
    if (options->world != NULL)
        return dv_world_ranks(options->world);
    return options->ranks > 1 ? options->ranks : 1;
}

size_t dv_options_own_batches(const dv_options *options) {
    size_t own = options->accumulate / dv_options_ranks(options);
    return own > 0 ? own : 1;
}

/* ---- batches of a step ---------------------------------------------------------------------- */

/* What has as many images in a step: as many smaller batches as ranks can share. */
static dv_status refuse_accumulation(const dv_options *options, size_t ranks, dv_error *error) {
    size_t images = options->batch * options->accumulate;
    for (size_t batches = ranks; batches <= images; batches += ranks)
        if (batches >= options->accumulate && images % batches == 0)
            return dv_fail(error, DV_ERROR_OPTION,
                           "accumulate: %zu: %zu ranks can't share so many batches: --batch %zu --accumulate %zu have "
                           "as many images in a step",
                           options->accumulate, ranks, images / batches, batches);
    return dv_fail(error, DV_ERROR_OPTION,
                   "accumulate: %zu: %zu ranks can't share so many batches: give a multiple of %zu, or another number "
                   "of ranks",
                   options->accumulate, ranks, ranks);
}

dv_status dv_share_batches(dv_options *options, dv_error *error) {
    size_t ranks = dv_options_ranks(options);
    if (options->accumulate == 1)
        options->accumulate = ranks;
    return options->accumulate % ranks == 0 ? DV_OK : refuse_accumulation(options, ranks, error);
}

/* ---- the same training ---------------------------------------------------------------------- */

/* Options that may be others on another machine. */
static bool is_own(const dv_option *row) {
    static const char *const names[] = {"threads", "workers", "save-minutes", "timeout", "tune"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(row->name, names[i]) == 0)
            return true;
    return row->this_call;
}

static const char *byte_order(void) {
    const uint16_t one = 1;
    return *(const uint8_t *)&one == 1 ? "little" : "big";
}

/* A line for each thing that has to be the same. */
static void describe(const dv_options *options, const dv_dataset_shape *shape, char text[DESCRIPTION_BYTES]) {
    const dv_option *row;
    size_t used = (size_t)snprintf(text, DESCRIPTION_BYTES,
                                   "version %s\nbyte order %s\nimages %zu to learn from, %zu to test with\n"
                                   "classes of the data %zu\nside of the data's images %zu\n",
                                   dv_version(), byte_order(), shape->images[DV_TRAIN], shape->images[DV_TEST],
                                   shape->classes, shape->side);
    for (size_t i = 0; (row = dv_options_at(i)) != NULL; i++) {
        char value[DV_PATH_BYTES];
        if (is_own(row))
            continue;
        dv_option_get(row, options, value, sizeof value);
        if (used < DESCRIPTION_BYTES)
            used += (size_t)snprintf(text + used, DESCRIPTION_BYTES - used, "--%s %s\n", row->name, value);
    }
}

/* The first line that is another. */
static dv_status compare(const char *own, const char *first, dv_error *error) {
    while (*own != '\0' && *first != '\0') {
        size_t length = strcspn(own, "\n"), other = strcspn(first, "\n");
        if (length != other || memcmp(own, first, length) != 0)
            return dv_fail(error, DV_ERROR_OPTION, "has %.*s, and rank 0 has %.*s: start all ranks alike",
                           length < LINE_BYTES ? (int)length : LINE_BYTES, own,
                           other < LINE_BYTES ? (int)other : LINE_BYTES, first);
        own += length + (own[length] != '\0');
        first += other + (first[other] != '\0');
    }
    return DV_OK;
}

dv_status dv_ranks_compare(const dv_options *options, const dv_dataset_shape *shape, dv_error *error) {
    if (dv_world_alone(options->world))
        return DV_OK;
    char *own = calloc(2, DESCRIPTION_BYTES);
    if (own == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory for a comparison of ranks: free some");
    char *first = own + DESCRIPTION_BYTES;
    describe(options, shape, own);
    memcpy(first, own, DESCRIPTION_BYTES);
    dv_status status = dv_world_broadcast(options->world, first, DESCRIPTION_BYTES, "options", error);
    if (status == DV_OK)
        status = dv_world_agree(options->world, compare(own, first, error), error);
    free(own);
    return status;
}

dv_status dv_ranks_take_options(dv_options *options, dv_error *error) {
    dv_options own = *options;
    DV_TRY(dv_world_broadcast(own.world, options, sizeof *options, "options", error));
    memcpy(options->spill, own.spill, sizeof own.spill);
    options->threads = own.threads;
    options->loading.workers = own.loading.workers;
    options->loading.corrupt = own.loading.corrupt;
    options->loading.context = own.loading.context;
    options->world = own.world;
    return DV_OK;
}

/* ---- rank 0's files -------------------------------------------------------------------------- */

static dv_status write_copy(const void *text, size_t bytes, char copy[DV_RANKS_COPY_BYTES], dv_error *error) {
    snprintf(copy, DV_RANKS_COPY_BYTES, "/tmp/division-XXXXXX");
    int descriptor = mkstemp(copy);
    bool written = descriptor >= 0 && write(descriptor, text, bytes) == (ssize_t)bytes;
    if (descriptor >= 0)
        close(descriptor);
    if (written)
        return DV_OK;
    dv_status status = dv_fail(error, DV_ERROR_IO, "could not write to /tmp: %s: make room there", strerror(errno));
    if (descriptor >= 0)
        unlink(copy);
    copy[0] = '\0';
    return status;
}

/* What rank 0 has read comes to all [bytes] of each rank, and the others write it. */
static dv_status spread(dv_world *world, void *all, size_t bytes, char copy[DV_RANKS_COPY_BYTES], dv_error *error) {
    dv_status status = DV_OK;
    DV_TRY(dv_world_broadcast(world, all, bytes, "a file", error));
    if (dv_world_rank(world) > 0 && bytes > 0)
        status = write_copy(all, bytes, copy, error);
    return dv_world_agree(world, status, error);
}

dv_status dv_ranks_copy_file(dv_world *world, const char *path, char copy[DV_RANKS_COPY_BYTES], dv_error *error) {
    void *text = NULL;
    size_t bytes = 0;
    copy[0] = '\0';
    if (dv_world_alone(world))
        return DV_OK;
    if (path == NULL || dv_file_read(path, LARGEST_COPY, &text, &bytes, NULL) != DV_OK)
        bytes = 0;
    dv_status status = dv_world_broadcast(world, &bytes, sizeof bytes, "a file", error);
    if (status == DV_OK && text == NULL)
        text = malloc(bytes + 1);
    if (status == DV_OK)
        status = dv_world_agree(
            world, text ? DV_OK : dv_fail(error, DV_ERROR_MEMORY, "no memory for a file: free some"), error);
    if (status == DV_OK)
        status = spread(world, text, bytes, copy, error);
    free(text);
    return status;
}

/* ---- the same weights ----------------------------------------------------------------------- */

static dv_status broadcast_floats(dv_world *world, float *data, size_t count, const char *what, dv_error *error) {
    return data != NULL ? dv_world_broadcast(world, data, count * sizeof *data, what, error) : DV_OK;
}

static dv_status broadcast_state(dv_run *run, dv_world *world, dv_error *error) {
    const dv_run_parameter *state = dv_run_method_state(run);
    return state != NULL ? broadcast_floats(world, state->data, state->count, "the method's state", error) : DV_OK;
}

dv_status dv_ranks_begin_alike(dv_run *run, dv_world *world, dv_train_state *state, dv_error *error) {
    const dv_run_parameter *p;
    const dv_optimizer *optimizer = dv_run_optimizer(run);
    size_t slots = optimizer != NULL ? dv_optimizer_slot_count(optimizer) : 0;
    if (dv_world_alone(world))
        return DV_OK;
    DV_TRY(dv_world_broadcast(world, state, sizeof *state, "the state of the training", error));
    for (size_t i = 0; (p = dv_run_parameter_at(run, i)) != NULL; i++) {
        DV_TRY(broadcast_floats(world, p->data, p->count, p->name, error));
        DV_TRY(broadcast_floats(world, p->optimizer, slots * p->count, p->name, error));
        DV_TRY(broadcast_floats(world, p->average, p->count, p->name, error));
    }
    return broadcast_state(run, world, error);
}

dv_status dv_ranks_share_state(dv_run *run, dv_world *world, dv_error *error) {
    return dv_world_alone(world) ? DV_OK : broadcast_state(run, world, error);
}

/* FNV's, over words. */
static uint64_t hash_of(const float *data, size_t count) {
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < count; i++) {
        uint32_t word;
        memcpy(&word, data + i, sizeof word);
        hash = (hash ^ word) * 0x100000001b3;
    }
    return hash;
}

/* Fails on a rank whose weights are not those of rank 0, of which `hashes` are. */
static dv_status compare_weights(const dv_run *run, const uint64_t *hashes, dv_error *error) {
    const dv_run_parameter *p;
    for (size_t i = 0; (p = dv_run_parameter_at(run, i)) != NULL; i++)
        if (hash_of(p->data, p->count) != hashes[i])
            return dv_fail(
                error, DV_ERROR_FORMAT,
                "%.100s is not what it is on rank 0: a fault of memory, network or program: --resume goes on "
                "from the last checkpoint",
                p->name);
    return DV_OK;
}

dv_status dv_ranks_check_weights(const dv_run *run, dv_world *world, dv_error *error) {
    const dv_run_parameter *p;
    size_t count = 0;
    if (dv_world_alone(world))
        return DV_OK;
    while (dv_run_parameter_at(run, count) != NULL)
        count++;
    uint64_t *hashes = calloc(count + 1, sizeof *hashes);
    if (hashes == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory for a comparison of ranks: free some");
    for (size_t i = 0; dv_world_rank(world) == 0 && (p = dv_run_parameter_at(run, i)) != NULL; i++)
        hashes[i] = hash_of(p->data, p->count);
    dv_status status = dv_world_broadcast(world, hashes, count * sizeof *hashes, "hashes of weights", error);
    if (status == DV_OK)
        status = dv_world_agree(world, compare_weights(run, hashes, error), error);
    free(hashes);
    return status;
}

/* ---- waiting -------------------------------------------------------------------------------- */

dv_status dv_ranks_waited(dv_world *world, double seconds, dv_ranks_waiting *waiting, dv_error *error) {
    size_t ranks = dv_world_ranks(world);
    double *all = calloc(ranks, sizeof *all), sum = 0;
    if (all == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory for %zu ranks", ranks);
    dv_status status = dv_world_gather(world, &seconds, sizeof seconds, all, "waiting times", error);
    double least = all[0];
    for (size_t i = 0; i < ranks; i++) {
        sum += all[i];
        least = all[i] < least ? all[i] : least;
    }
    *waiting = (dv_ranks_waiting){.network = least, .others = sum / (double)ranks - least};
    free(all);
    return status;
}
