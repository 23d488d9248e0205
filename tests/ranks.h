/* Ranks that are threads of one process: an engine for tests, which so need neither MPI nor a launcher. */
#ifndef DV_TESTS_RANKS_H
#define DV_TESTS_RANKS_H

#include "base/float16.h"
#include "parallel/world.h"

#include <division/threads.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_RANKS = 8, MEETINGS = 4096 };

typedef enum transfer_kind { TRANSFER_SUM, TRANSFER_BROADCAST, TRANSFER_GATHER } transfer_kind;

/* One transfer: it is done when all ranks have come to it. */
typedef struct meeting {
    transfer_kind kind;
    dv_sum_type type;
    size_t count; /* of elements, or bytes */
    size_t arrived, left;
    void *data[MOST_RANKS];
    const void *own[MOST_RANKS];
} meeting;

/* What the threads share. */
typedef struct ranks_shared {
    pthread_mutex_t mutex;
    size_t ranks;
    meeting meetings[MEETINGS];
    unsigned char impatient[MOST_RANKS];
} ranks_shared;

/* One rank's: its number, and how many transfers it has begun. */
typedef struct ranks_self {
    ranks_shared *shared;
    size_t rank;
    uint64_t begun;
} ranks_self;

static const char *ranks_library(void) {
    return "threads";
}

static int ranks_open(void *argument, void **context, size_t *rank, size_t *ranks, char *text) {
    const ranks_self *self = argument;
    (void)text;
    *context = argument;
    *rank = self->rank;
    *ranks = self->shared->ranks;
    return 0;
}

static double ranks_element(dv_sum_type type, const void *data, size_t i) {
    if (type == DV_SUM_F64)
        return ((const double *)data)[i];
    return (double)(type == DV_SUM_F32 ? ((const float *)data)[i] : dv_bf16_to_f32(((const uint16_t *)data)[i]));
}

static void ranks_set_element(dv_sum_type type, void *data, size_t i, double value) {
    if (type == DV_SUM_F64)
        ((double *)data)[i] = value;
    else if (type == DV_SUM_F32)
        ((float *)data)[i] = (float)value;
    else
        ((uint16_t *)data)[i] = dv_bf16_nearest((float)value);
}

static void ranks_add_up(const meeting *m, size_t ranks) {
    for (size_t i = 0; i < m->count; i++) {
        double sum = 0;
        for (size_t r = 0; r < ranks; r++)
            sum += ranks_element(m->type, m->data[r], i);
        for (size_t r = 0; r < ranks; r++)
            ranks_set_element(m->type, m->data[r], i, sum);
    }
}

static void ranks_complete(const meeting *m, size_t ranks) {
    if (m->kind == TRANSFER_SUM)
        ranks_add_up(m, ranks);
    for (size_t r = 0; r < ranks; r++) {
        if (m->kind == TRANSFER_BROADCAST && r > 0)
            memcpy(m->data[r], m->data[0], m->count);
        for (size_t from = 0; m->kind == TRANSFER_GATHER && from < ranks; from++)
            memcpy((char *)m->data[r] + from * m->count, m->own[from], m->count);
    }
}

static int ranks_arrive(ranks_self *self, transfer_kind kind, dv_sum_type type, const void *own, void *data,
                        size_t count, dv_request *request) {
    ranks_shared *shared = self->shared;
    meeting *m = &shared->meetings[self->begun % MEETINGS];
    pthread_mutex_lock(&shared->mutex);
    m->kind = kind;
    m->type = type;
    m->count = count;
    m->own[self->rank] = own;
    m->data[self->rank] = data;
    if (++m->arrived == shared->ranks)
        ranks_complete(m, shared->ranks);
    pthread_mutex_unlock(&shared->mutex);
    request->words[0] = self->begun++;
    return 0;
}

static int ranks_sum(void *context, dv_sum_type type, void *data, size_t count, dv_request *request, char *text) {
    (void)text;
    return ranks_arrive(context, TRANSFER_SUM, type, NULL, data, count, request);
}

static int ranks_broadcast(void *context, void *data, size_t bytes, dv_request *request, char *text) {
    (void)text;
    return ranks_arrive(context, TRANSFER_BROADCAST, DV_SUM_F32, NULL, data, bytes, request);
}

static int ranks_gather(void *context, const void *own, size_t bytes, void *all, dv_request *request, char *text) {
    (void)text;
    return ranks_arrive(context, TRANSFER_GATHER, DV_SUM_F32, own, all, bytes, request);
}

static int ranks_test(void *context, dv_request *request, int *ended, char *text) {
    ranks_shared *shared = ((ranks_self *)context)->shared;
    meeting *m = &shared->meetings[request->words[0] % MEETINGS];
    (void)text;
    pthread_mutex_lock(&shared->mutex);
    *ended = m->arrived == shared->ranks;
    if (*ended && ++m->left == shared->ranks)
        *m = (meeting){.arrived = 0};
    pthread_mutex_unlock(&shared->mutex);
    return 0;
}

static int ranks_call_roll(void *context, unsigned char *present, char *text) {
    const ranks_self *self = context;
    (void)text;
    pthread_mutex_lock(&self->shared->mutex);
    self->shared->impatient[self->rank] = 1;
    pthread_mutex_unlock(&self->shared->mutex);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    pthread_mutex_lock(&self->shared->mutex);
    memcpy(present, self->shared->impatient, self->shared->ranks);
    pthread_mutex_unlock(&self->shared->mutex);
    return 0;
}

static void ranks_abort(void *context, int code) {
    (void)context;
    (void)code;
}

static void ranks_close(void *context) {
    (void)context;
}

static const dv_engine ranks_engine = {DV_ENGINE_VERSION, ranks_library, ranks_open,      ranks_sum,   ranks_broadcast,
                                       ranks_gather,      ranks_test,    ranks_call_roll, ranks_abort, ranks_close};

/* What a rank does, with its world. */
typedef struct ranks_task {
    ranks_self self;
    double timeout;
    void (*call)(dv_world *world, void *argument);
    void *argument;
} ranks_task;

static void *ranks_run(void *argument) {
    ranks_task *task = argument;
    dv_world *world = NULL;
    (void)dv_set_threads(1, NULL); /* each has one: there are enough of them */
    if (dv_world_new(&ranks_engine, &task->self, task->timeout, &world, NULL) != DV_OK)
        abort();
    task->call(world, task->argument);
    dv_world_close(world);
    return NULL;
}

/* Calls `call` in `ranks` threads at once, each with its own world and its own of arguments [ranks], `bytes` each. */
static void on_ranks(size_t ranks, double timeout, void (*call)(dv_world *, void *), void *arguments, size_t bytes) {
    ranks_shared *shared = calloc(1, sizeof *shared);
    ranks_task tasks[MOST_RANKS];
    pthread_t threads[MOST_RANKS];
    if (shared == NULL)
        abort();
    pthread_mutex_init(&shared->mutex, NULL);
    shared->ranks = ranks;
    for (size_t r = 0; r < ranks; r++) {
        tasks[r] = (ranks_task){{shared, r, 0}, timeout, call, (char *)arguments + r * bytes};
        if (pthread_create(&threads[r], NULL, ranks_run, &tasks[r]) != 0)
            abort();
    }
    for (size_t r = 0; r < ranks; r++)
        pthread_join(threads[r], NULL);
    pthread_mutex_destroy(&shared->mutex);
    free(shared);
}

#endif
