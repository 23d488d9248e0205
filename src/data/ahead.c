/* Workers and the ring of batches. One mutex guards the ring; images are made outside of it. What is made depends
 * on the batch and the place in it alone, never on who makes it. */
#include "data/ahead.h"

#include "base/status.h"
#include "data/order.h"

#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct dv_ahead {
    dv_ahead_options options;
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
    dv_ahead *ahead;
    dv_maker *maker;
} worker;

/* ---- making -------------------------------------------------------------------------------- */

static size_t image_bytes(const dv_ahead_options *options) {
    return options->loader.side * options->loader.side * DV_PIXEL;
}

size_t dv_ahead_index(const dv_ahead_options *options, uint64_t epoch, size_t batch, size_t place) {
    size_t at = batch * options->loader.batch + place;
    if (!options->loader.shuffle)
        return at;
    dv_order order = dv_order_new(options->loader.seed, epoch, options->images);
    return (size_t)dv_order_at(&order, at);
}

/* Makes one image of a slot. */
static dv_status make(const dv_ahead_options *options, dv_maker *maker, const dv_slot *slot, size_t place,
                      dv_error *error) {
    size_t index = dv_ahead_index(options, slot->epoch, slot->batch, place);
    return dv_maker_make(maker, slot->epoch, index, slot->bytes + place * image_bytes(options), &slot->labels[place],
                         &slot->damage[place], error);
}

/* Of several failures of a batch, the one of its first image is told. */
static void note(dv_slot *slot, size_t place, const dv_error *error) {
    if (slot->error.status != DV_OK && slot->failed < place)
        return;
    slot->failed = place;
    slot->error = *error;
}

/* ---- the ring ------------------------------------------------------------------------------ */

/* Images in a batch. */
static size_t count_images(const dv_ahead_options *options, size_t batch) {
    size_t left = options->images - batch * options->loader.batch;
    return left < options->loader.batch ? left : options->loader.batch;
}

/* Makes a slot ready for a batch. */
static void assign(dv_ahead *ahead, dv_slot *slot, uint64_t epoch, size_t batch) {
    slot->epoch = epoch;
    slot->batch = batch;
    slot->error.status = DV_OK;
    slot->begun = slot->done = 0;
    slot->count = count_images(&ahead->options, batch);
}

/* Gives a free slot the next batch. An order that does not change from epoch to epoch ends with the epoch: then it is
 * a test, and nobody asks for more. */
static void assign_next(dv_ahead *ahead, dv_slot *slot) {
    if (ahead->at_end) {
        *slot = (dv_slot){.bytes = slot->bytes, .labels = slot->labels, .damage = slot->damage, .epoch = UINT64_MAX};
        return;
    }
    assign(ahead, slot, ahead->next_epoch, ahead->next_batch);
    if (++ahead->next_batch < ahead->options.batches)
        return;
    ahead->next_batch = 0;
    ahead->next_epoch++;
    ahead->at_end = !ahead->options.loader.shuffle && !ahead->options.loader.augment;
}

/* Takes back all that is not begun, waits for the rest, and begins anew. */
static void restart(dv_ahead *ahead, uint64_t epoch, size_t batch) {
    for (size_t i = 0; i < ahead->slot_count; i++)
        ahead->slots[i].count = ahead->slots[i].begun;
    for (size_t i = 0; i < ahead->slot_count; i++)
        while (ahead->slots[i].done < ahead->slots[i].count)
            pthread_cond_wait(&ahead->ready, &ahead->mutex);
    ahead->head = 0;
    ahead->next_epoch = epoch;
    ahead->next_batch = batch;
    ahead->at_end = false;
    for (size_t i = 0; i < ahead->slot_count; i++)
        assign_next(ahead, &ahead->slots[i]);
    pthread_cond_broadcast(&ahead->work);
}

/* The slot nearest to the head that has an image left to make, or NULL. */
static dv_slot *find_work(dv_ahead *ahead) {
    for (size_t i = 0; i < ahead->slot_count; i++) {
        dv_slot *slot = &ahead->slots[(ahead->head + i) % ahead->slot_count];
        if (slot->begun < slot->count)
            return slot;
    }
    return NULL;
}

static void *work(void *argument) {
    worker self = *(worker *)argument;
    dv_ahead *ahead = self.ahead;
    free(argument);
    pthread_mutex_lock(&ahead->mutex);
    while (!ahead->quit) {
        dv_error error;
        dv_slot *slot = find_work(ahead);
        if (slot == NULL) {
            pthread_cond_wait(&ahead->work, &ahead->mutex);
            continue;
        }
        size_t place = slot->begun++;
        pthread_mutex_unlock(&ahead->mutex);
        dv_status status = make(&ahead->options, self.maker, slot, place, &error);
        pthread_mutex_lock(&ahead->mutex);
        if (status != DV_OK)
            note(slot, place, &error);
        if (++slot->done == slot->count)
            pthread_cond_signal(&ahead->ready);
    }
    pthread_mutex_unlock(&ahead->mutex);
    return NULL;
}

/* ---- asking -------------------------------------------------------------------------------- */

/* Without workers: the calling thread's team makes the batch now. */
static void make_now(dv_ahead *ahead, dv_slot *slot, uint64_t epoch, size_t batch) {
    assign(ahead, slot, epoch, batch);
#pragma omp parallel for num_threads(ahead->maker_count) schedule(dynamic, 1)
    for (size_t place = 0; place < slot->count; place++) {
        dv_error error;
        dv_maker *maker = &ahead->makers[omp_get_thread_num()];
        if (make(&ahead->options, maker, slot, place, &error) == DV_OK)
            continue;
#pragma omp critical(dv_ahead_failure)
        note(slot, place, &error);
    }
    slot->begun = slot->done = slot->count;
}

const dv_slot *dv_ahead_take(dv_ahead *ahead, uint64_t epoch, size_t batch) {
    if (ahead->thread_count == 0) {
        make_now(ahead, &ahead->slots[0], epoch, batch);
        return &ahead->slots[0];
    }
    pthread_mutex_lock(&ahead->mutex);
    dv_slot *slot = &ahead->slots[ahead->head];
    if (slot->epoch != epoch || slot->batch != batch) {
        restart(ahead, epoch, batch);
        slot = &ahead->slots[ahead->head];
    }
    while (slot->done < slot->count)
        pthread_cond_wait(&ahead->ready, &ahead->mutex);
    pthread_mutex_unlock(&ahead->mutex);
    return slot;
}

void dv_ahead_done(dv_ahead *ahead) {
    if (ahead->thread_count == 0)
        return;
    pthread_mutex_lock(&ahead->mutex);
    assign_next(ahead, &ahead->slots[ahead->head]);
    ahead->head = (ahead->head + 1) % ahead->slot_count;
    pthread_cond_broadcast(&ahead->work);
    pthread_mutex_unlock(&ahead->mutex);
}

/* ---- beginning and end --------------------------------------------------------------------- */

static size_t count_slots(const dv_ahead_options *options) {
    return options->loader.workers > 0 ? options->loader.ahead : 1;
}

static size_t count_makers(const dv_ahead_options *options) {
    return options->loader.workers > 0 ? options->loader.workers : (size_t)omp_get_max_threads();
}

static size_t slot_bytes(const dv_ahead_options *options) {
    return options->loader.batch * (image_bytes(options) + sizeof(int32_t) + sizeof(dv_error));
}

static dv_view_options view_options(const dv_ahead_options *options) {
    return (dv_view_options){.side = options->loader.side,
                             .resize = options->loader.resize,
                             .vary = options->loader.augment != 0,
                             .augmentation = options->loader.augmentation};
}

size_t dv_ahead_bytes(const dv_ahead_options *options) {
    dv_view_options view = view_options(options);
    return count_slots(options) * (sizeof(dv_slot) + slot_bytes(options)) +
           count_makers(options) * (sizeof(dv_maker) + dv_maker_bytes(options->data, &view));
}

static dv_status fail_memory(dv_error *error) {
    return dv_fail(error, DV_ERROR_MEMORY, "no memory for a loader: use a smaller batch, or fewer workers");
}

/* All pages are there before the first step. */
static dv_status make_slot(const dv_ahead_options *options, dv_slot *slot, dv_error *error) {
    size_t batch = options->loader.batch, bytes = batch * image_bytes(options);
    slot->epoch = UINT64_MAX; /* none */
    slot->bytes = malloc(bytes);
    slot->labels = calloc(batch, sizeof *slot->labels);
    slot->damage = calloc(batch, sizeof *slot->damage);
    if (slot->bytes == NULL || slot->labels == NULL || slot->damage == NULL)
        return fail_memory(error);
    memset(slot->bytes, 0, bytes);
    return DV_OK;
}

static dv_status start_worker(dv_ahead *ahead, dv_maker *maker, dv_error *error) {
    worker *argument = malloc(sizeof *argument);
    if (argument == NULL)
        return fail_memory(error);
    *argument = (worker){ahead, maker};
    int code = pthread_create(&ahead->threads[ahead->thread_count], NULL, work, argument);
    if (code != 0) {
        free(argument);
        return dv_fail(error, DV_ERROR_MEMORY, "could not start a worker: %s: use fewer", strerror(code));
    }
    ahead->thread_count++;
    return DV_OK;
}

/* Signals are for the other threads. */
static dv_status start_workers(dv_ahead *ahead, dv_error *error) {
    sigset_t all, before;
    dv_status status = DV_OK;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (size_t i = 0; i < ahead->options.loader.workers && status == DV_OK; i++)
        status = start_worker(ahead, &ahead->makers[i], error);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

static dv_status prepare(dv_ahead *ahead, dv_error *error) {
    const dv_loader_options *loader = &ahead->options.loader;
    dv_view_options view = view_options(&ahead->options);
    ahead->slots = calloc(count_slots(&ahead->options), sizeof *ahead->slots);
    ahead->maker_room = count_makers(&ahead->options); /* what OpenMP says may be another number later */
    ahead->makers = calloc(ahead->maker_room, sizeof *ahead->makers);
    ahead->threads = calloc(loader->workers + 1, sizeof *ahead->threads);
    if (ahead->slots == NULL || ahead->makers == NULL || ahead->threads == NULL)
        return fail_memory(error);
    for (; ahead->slot_count < count_slots(&ahead->options); ahead->slot_count++)
        DV_TRY(make_slot(&ahead->options, &ahead->slots[ahead->slot_count], error));
    for (; ahead->maker_count < ahead->maker_room; ahead->maker_count++)
        DV_TRY(dv_maker_init(&ahead->makers[ahead->maker_count], ahead->options.data, loader->split, &view,
                             loader->seed, error));
    return start_workers(ahead, error);
}

dv_status dv_ahead_new(const dv_ahead_options *options, dv_ahead **ahead, dv_error *error) {
    dv_ahead *made = calloc(1, sizeof *made);
    if (made == NULL)
        return fail_memory(error);
    made->options = *options;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->work, NULL);
    pthread_cond_init(&made->ready, NULL);
    dv_status status = prepare(made, error);
    if (status == DV_OK)
        *ahead = made;
    else
        dv_ahead_free(made);
    return status;
}

static void stop_workers(dv_ahead *ahead) {
    pthread_mutex_lock(&ahead->mutex);
    ahead->quit = true;
    pthread_cond_broadcast(&ahead->work);
    pthread_mutex_unlock(&ahead->mutex);
    for (size_t i = 0; i < ahead->thread_count; i++)
        pthread_join(ahead->threads[i], NULL);
    pthread_mutex_destroy(&ahead->mutex);
    pthread_cond_destroy(&ahead->work);
    pthread_cond_destroy(&ahead->ready);
}

/* Also of one that is half made: what was not made is zero. */
void dv_ahead_free(dv_ahead *ahead) {
    if (ahead == NULL)
        return;
    stop_workers(ahead);
    for (size_t i = 0; ahead->slots != NULL && i < count_slots(&ahead->options); i++) {
        free(ahead->slots[i].bytes);
        free(ahead->slots[i].labels);
        free(ahead->slots[i].damage);
    }
    for (size_t i = 0; ahead->makers != NULL && i < ahead->maker_room; i++)
        dv_maker_destroy(&ahead->makers[i]);
    free(ahead->slots);
    free(ahead->makers);
    free(ahead->threads);
    free(ahead);
}
