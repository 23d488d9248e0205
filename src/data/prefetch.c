/* Workers and the ring of batches. One mutex guards the ring; images are made outside of it. What is made depends
 * on the batch and the place in it alone, never on who makes it. */
#include "data/prefetch.h"

#include "base/status.h"
#include "data/order.h"

#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct dv_prefetch {
    dv_prefetch_options options;
    size_t slot_count, head;
    dv_slot *slots; /* [slot_count] */
    size_t maker_count, maker_room;
    dv_maker *makers; /* [maker_room], one for each thread; maker_count of them are made */
    size_t thread_count;
    pthread_t *threads; /* [workers] */
    pthread_mutex_t mutex;
    pthread_cond_t work, ready; /* there is something to make; a batch is complete */
    bool quit;
    uint64_t next_epoch; /* the batch that comes after those of the ring */
    size_t next_batch;
    bool at_end; /* there is none */
};

/* A worker's argument. */
typedef struct worker {
    dv_prefetch *prefetch;
    dv_maker *maker;
} worker;

/* ---- making -------------------------------------------------------------------------------- */

static size_t image_bytes(const dv_prefetch_options *options) {
    return options->loader.side * options->loader.side * DV_PIXEL;
}

/* A full batch is shared in pieces of one size, the last one as evenly as it can be. */
dv_share dv_prefetch_share(const dv_prefetch_options *options, size_t batch) {
    size_t ranks = options->loader.ranks, rank = options->loader.rank, whole = options->loader.batch * ranks;
    size_t left = options->images - batch * whole, there = left < whole ? left : whole;
    size_t first = there * rank / ranks;
    return (dv_share){batch * whole + first, there * (rank + 1) / ranks - first};
}

size_t dv_prefetch_index(const dv_prefetch_options *options, uint64_t epoch, size_t batch, size_t place) {
    size_t at = dv_prefetch_share(options, batch).first + place;
    if (!options->loader.shuffle)
        return at;
    dv_order order = dv_order_new(options->loader.seed, epoch, options->images);
    return (size_t)dv_order_at(&order, at);
}

/* Makes one image of a slot. */
static dv_status make(const dv_prefetch_options *options, dv_maker *maker, const dv_slot *slot, size_t place,
                      dv_error *error) {
    size_t index = dv_prefetch_index(options, slot->epoch, slot->batch, place);
    return dv_maker_make(maker, slot->epoch, index, slot->bytes + place * image_bytes(options), &slot->labels[place],
                         &slot->shown[place], &slot->damage[place], error);
}

/* Of several failures of a batch, the one of its first image is told. */
static void note(dv_slot *slot, size_t place, const dv_error *error) {
    if (slot->error.status != DV_OK && slot->failed < place)
        return;
    slot->failed = place;
    slot->error = *error;
}

/* ---- the ring ------------------------------------------------------------------------------ */

/* Makes a slot ready for a batch. */
static void assign(dv_prefetch *prefetch, dv_slot *slot, uint64_t epoch, size_t batch) {
    slot->epoch = epoch;
    slot->batch = batch;
    slot->error.status = DV_OK;
    slot->begun = slot->done = 0;
    slot->count = dv_prefetch_share(&prefetch->options, batch).count;
}

/* Gives a free slot the next batch. An order that does not change from epoch to epoch ends with the epoch: then it is
 * a test, and nobody asks for more. */
static void assign_next(dv_prefetch *prefetch, dv_slot *slot) {
    if (prefetch->at_end) {
        *slot = (dv_slot){.bytes = slot->bytes,
                          .labels = slot->labels,
                          .shown = slot->shown,
                          .damage = slot->damage,
                          .epoch = UINT64_MAX};
        return;
    }
    assign(prefetch, slot, prefetch->next_epoch, prefetch->next_batch);
    if (++prefetch->next_batch < prefetch->options.batches)
        return;
    prefetch->next_batch = 0;
    prefetch->next_epoch++;
    prefetch->at_end = !prefetch->options.loader.shuffle && !prefetch->options.loader.augment;
}

/* Takes back all that is not begun, waits for the rest, and begins anew. */
static void restart(dv_prefetch *prefetch, uint64_t epoch, size_t batch) {
    for (size_t i = 0; i < prefetch->slot_count; i++)
        prefetch->slots[i].count = prefetch->slots[i].begun;
    for (size_t i = 0; i < prefetch->slot_count; i++)
        while (prefetch->slots[i].done < prefetch->slots[i].count)
            pthread_cond_wait(&prefetch->ready, &prefetch->mutex);
    prefetch->head = 0;
    prefetch->next_epoch = epoch;
    prefetch->next_batch = batch;
    prefetch->at_end = false;
    for (size_t i = 0; i < prefetch->slot_count; i++)
        assign_next(prefetch, &prefetch->slots[i]);
    pthread_cond_broadcast(&prefetch->work);
}

/* The slot nearest to the head that has an image left to make, or NULL. */
static dv_slot *find_work(dv_prefetch *prefetch) {
    for (size_t i = 0; i < prefetch->slot_count; i++) {
        dv_slot *slot = &prefetch->slots[(prefetch->head + i) % prefetch->slot_count];
        if (slot->begun < slot->count)
            return slot;
    }
    return NULL;
}

static void *work(void *argument) {
    worker self = *(worker *)argument;
    dv_prefetch *prefetch = self.prefetch;
    free(argument);
    pthread_mutex_lock(&prefetch->mutex);
    while (!prefetch->quit) {
        dv_error error;
        dv_slot *slot = find_work(prefetch);
        if (slot == NULL) {
            pthread_cond_wait(&prefetch->work, &prefetch->mutex);
            continue;
        }
        size_t place = slot->begun++;
        pthread_mutex_unlock(&prefetch->mutex);
        dv_status status = make(&prefetch->options, self.maker, slot, place, &error);
        pthread_mutex_lock(&prefetch->mutex);
        if (status != DV_OK)
            note(slot, place, &error);
        if (++slot->done == slot->count)
            pthread_cond_signal(&prefetch->ready);
    }
    pthread_mutex_unlock(&prefetch->mutex);
    return NULL;
}

/* ---- asking -------------------------------------------------------------------------------- */

/* Without workers: the calling thread's team makes the batch now. */
static void make_now(dv_prefetch *prefetch, dv_slot *slot, uint64_t epoch, size_t batch) {
    assign(prefetch, slot, epoch, batch);
#pragma omp parallel for num_threads(prefetch->maker_count) schedule(dynamic, 1)
    for (size_t place = 0; place < slot->count; place++) {
        dv_error error;
        dv_maker *maker = &prefetch->makers[omp_get_thread_num()];
        if (make(&prefetch->options, maker, slot, place, &error) == DV_OK)
            continue;
#pragma omp critical(dv_prefetch_failure)
        note(slot, place, &error);
    }
    slot->begun = slot->done = slot->count;
}

const dv_slot *dv_prefetch_take(dv_prefetch *prefetch, uint64_t epoch, size_t batch) {
    if (prefetch->thread_count == 0) {
        make_now(prefetch, &prefetch->slots[0], epoch, batch);
        return &prefetch->slots[0];
    }
    pthread_mutex_lock(&prefetch->mutex);
    dv_slot *slot = &prefetch->slots[prefetch->head];
    if (slot->epoch != epoch || slot->batch != batch) {
        restart(prefetch, epoch, batch);
        slot = &prefetch->slots[prefetch->head];
    }
    while (slot->done < slot->count)
        pthread_cond_wait(&prefetch->ready, &prefetch->mutex);
    pthread_mutex_unlock(&prefetch->mutex);
    return slot;
}

void dv_prefetch_done(dv_prefetch *prefetch) {
    if (prefetch->thread_count == 0)
        return;
    pthread_mutex_lock(&prefetch->mutex);
    assign_next(prefetch, &prefetch->slots[prefetch->head]);
    prefetch->head = (prefetch->head + 1) % prefetch->slot_count;
    pthread_cond_broadcast(&prefetch->work);
    pthread_mutex_unlock(&prefetch->mutex);
}

/* ---- beginning and end --------------------------------------------------------------------- */

static size_t count_slots(const dv_prefetch_options *options) {
    return options->loader.workers > 0 ? options->loader.prefetch : 1;
}

static size_t count_makers(const dv_prefetch_options *options) {
    return options->loader.workers > 0 ? options->loader.workers : (size_t)omp_get_max_threads();
}

static size_t slot_bytes(const dv_prefetch_options *options) {
    return options->loader.batch * (image_bytes(options) + sizeof(int32_t) + sizeof(size_t) + sizeof(dv_error));
}

static dv_view_options view_options(const dv_prefetch_options *options) {
    return (dv_view_options){.side = options->loader.side,
                             .resize = options->loader.resize,
                             .vary = options->loader.augment != 0,
                             .augmentation = options->loader.augmentation};
}

size_t dv_prefetch_bytes(const dv_prefetch_options *options) {
    dv_view_options view = view_options(options);
    return count_slots(options) * (sizeof(dv_slot) + slot_bytes(options)) +
           count_makers(options) * (sizeof(dv_maker) + dv_maker_bytes(options->data, &view));
}

static dv_status fail_memory(dv_error *error) {
    return dv_fail(error, DV_ERROR_MEMORY, "no memory for a loader: use a smaller batch, or fewer workers");
}

/* All pages are there before the first step. */
static dv_status make_slot(const dv_prefetch_options *options, dv_slot *slot, dv_error *error) {
    size_t batch = options->loader.batch, bytes = batch * image_bytes(options);
    slot->epoch = UINT64_MAX; /* none */
    slot->bytes = malloc(bytes);
    slot->labels = calloc(batch, sizeof *slot->labels);
    slot->shown = calloc(batch, sizeof *slot->shown);
    slot->damage = calloc(batch, sizeof *slot->damage);
    if (slot->bytes == NULL || slot->labels == NULL || slot->shown == NULL || slot->damage == NULL)
        return fail_memory(error);
    memset(slot->bytes, 0, bytes);
    return DV_OK;
}

static dv_status start_worker(dv_prefetch *prefetch, dv_maker *maker, dv_error *error) {
    worker *argument = malloc(sizeof *argument);
    if (argument == NULL)
        return fail_memory(error);
    *argument = (worker){prefetch, maker};
    int code = pthread_create(&prefetch->threads[prefetch->thread_count], NULL, work, argument);
    if (code != 0) {
        free(argument);
        return dv_fail(error, DV_ERROR_MEMORY, "could not start a worker: %s: use fewer", strerror(code));
    }
    prefetch->thread_count++;
    return DV_OK;
}

/* Signals are for the other threads. */
static dv_status start_workers(dv_prefetch *prefetch, dv_error *error) {
    sigset_t all, before;
    dv_status status = DV_OK;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (size_t i = 0; i < prefetch->options.loader.workers && status == DV_OK; i++)
        status = start_worker(prefetch, &prefetch->makers[i], error);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

static dv_status prepare(dv_prefetch *prefetch, dv_error *error) {
    const dv_loader_options *loader = &prefetch->options.loader;
    dv_view_options view = view_options(&prefetch->options);
    prefetch->slots = calloc(count_slots(&prefetch->options), sizeof *prefetch->slots);
    prefetch->maker_room = count_makers(&prefetch->options); /* what OpenMP says may be another number later */
    prefetch->makers = calloc(prefetch->maker_room, sizeof *prefetch->makers);
    prefetch->threads = calloc(loader->workers + 1, sizeof *prefetch->threads);
    if (prefetch->slots == NULL || prefetch->makers == NULL || prefetch->threads == NULL)
        return fail_memory(error);
    for (; prefetch->slot_count < count_slots(&prefetch->options); prefetch->slot_count++)
        DV_TRY(make_slot(&prefetch->options, &prefetch->slots[prefetch->slot_count], error));
    for (; prefetch->maker_count < prefetch->maker_room; prefetch->maker_count++)
        DV_TRY(dv_maker_init(&prefetch->makers[prefetch->maker_count], prefetch->options.data, loader->split, &view,
                             loader->seed, error));
    return start_workers(prefetch, error);
}

dv_status dv_prefetch_new(const dv_prefetch_options *options, dv_prefetch **prefetch, dv_error *error) {
    dv_prefetch *made = calloc(1, sizeof *made);
    if (made == NULL)
        return fail_memory(error);
    made->options = *options;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->work, NULL);
    pthread_cond_init(&made->ready, NULL);
    dv_status status = prepare(made, error);
    if (status == DV_OK)
        *prefetch = made;
    else
        dv_prefetch_free(made);
    return status;
}

static void stop_workers(dv_prefetch *prefetch) {
    pthread_mutex_lock(&prefetch->mutex);
    prefetch->quit = true;
    pthread_cond_broadcast(&prefetch->work);
    pthread_mutex_unlock(&prefetch->mutex);
    for (size_t i = 0; i < prefetch->thread_count; i++)
        pthread_join(prefetch->threads[i], NULL);
    pthread_mutex_destroy(&prefetch->mutex);
    pthread_cond_destroy(&prefetch->work);
    pthread_cond_destroy(&prefetch->ready);
}

/* Also of one that is half made: what was not made is zero. */
void dv_prefetch_free(dv_prefetch *prefetch) {
    if (prefetch == NULL)
        return;
    stop_workers(prefetch);
    for (size_t i = 0; prefetch->slots != NULL && i < count_slots(&prefetch->options); i++) {
        free(prefetch->slots[i].bytes);
        free(prefetch->slots[i].labels);
        free(prefetch->slots[i].shown);
        free(prefetch->slots[i].damage);
    }
    for (size_t i = 0; prefetch->makers != NULL && i < prefetch->maker_room; i++)
        dv_maker_destroy(&prefetch->makers[i]);
    free(prefetch->slots);
    free(prefetch->makers);
    free(prefetch->threads);
    free(prefetch);
}
