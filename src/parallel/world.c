/* Waiting, agreeing, and the thread that moves transfers along. */
#include "parallel/world.h"

#include "base/clock.h"
#include "base/status.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    HOST_BYTES = 64,
    NAMES_BYTES = 160,            /* of those who are waited for */
    MOST_BYTES = 1 << 30,         /* of one broadcast */
    EAGER = 100,                  /* times that a wait looks again at once */
    NANOSECONDS_ASLEEP = 50000,   /* of a wait, between looks */
    NANOSECONDS_BETWEEN = 200000, /* of the thread */
};

struct dv_world {
    const dv_engine *engine;
    void *context; /* the engine's */
    size_t rank, ranks;
    double timeout, waited;
    bool agreed;
    char (*hosts)[HOST_BYTES]; /* [ranks] */
    bool moving;               /* there is a thread */
    pthread_t mover;
    pthread_mutex_t mutex; /* of the engine's calls and of what follows */
    pthread_cond_t work;
    bool quit;
    dv_pending *first; /* of those under way */
};

static void sleep_for(long nanoseconds) {
    nanosleep(&(struct timespec){.tv_nsec = nanoseconds}, NULL);
}

/* ---- transfers under way --------------------------------------------------------------------- */

static void add(dv_world *world, dv_pending *pending) {
    pending->under_way = true;
    pending->next = world->first;
    world->first = pending;
    pthread_cond_signal(&world->work);
}

static void take_out(dv_world *world, dv_pending *pending) {
    dv_pending **at = &world->first;
    while (*at != NULL && *at != pending)
        at = &(*at)->next;
    if (*at != NULL)
        *at = pending->next;
    pending->under_way = false;
}

/* Tests one; the engine moves all along with it. What fails is found by who waits for it. */
static int look(dv_world *world, dv_pending *pending, char *text) {
    int ended = 0, code = 0;
    if (pending->under_way)
        code = world->engine->test(world->context, &pending->request, &ended, text);
    if (code == 0 && ended)
        take_out(world, pending);
    return code;
}

static void *move_along(void *argument) {
    dv_world *world = argument;
    char text[DV_ENGINE_TEXT_BYTES];
    pthread_mutex_lock(&world->mutex);
    while (!world->quit) {
        if (world->first == NULL) {
            pthread_cond_wait(&world->work, &world->mutex);
            continue;
        }
        int code = look(world, world->first, text);
        pthread_mutex_unlock(&world->mutex);
        sleep_for(code == 0 ? NANOSECONDS_BETWEEN : 100 * NANOSECONDS_BETWEEN);
        pthread_mutex_lock(&world->mutex);
    }
    pthread_mutex_unlock(&world->mutex);
    return NULL;
}

/* Signals are for the other threads. */
static dv_status start_mover(dv_world *world, dv_error *error) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&world->mover, NULL, move_along, world);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    world->moving = code == 0;
    return code == 0 ? DV_OK : dv_fail(error, DV_ERROR_MEMORY, "could not start a thread: %s", strerror(code));
}

static void stop_mover(dv_world *world) {
    pthread_mutex_lock(&world->mutex);
    world->quit = true;
    pthread_cond_signal(&world->work);
    pthread_mutex_unlock(&world->mutex);
    if (world->moving)
        pthread_join(world->mover, NULL);
    world->moving = false;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* "rank 1 (a), rank 3 (b)": those who have not answered. */
static void write_missing(const dv_world *world, const unsigned char *present, char names[NAMES_BYTES]) {
    size_t used = 0;
    names[0] = '\0';
    for (size_t i = 0; i < world->ranks && used < NAMES_BYTES; i++)
        if (!present[i])
            used += (size_t)snprintf(names + used, NAMES_BYTES - used, "%srank %zu (%s)", used > 0 ? ", " : "", i,
                                     dv_world_host(world, i));
}

static dv_status lose_patience(dv_world *world, const char *what, dv_error *error) {
    char names[NAMES_BYTES] = "", text[DV_ENGINE_TEXT_BYTES];
    unsigned char *present = calloc(world->ranks, 1);
    pthread_mutex_lock(&world->mutex);
    if (present != NULL && world->engine->call_roll(world->context, present, text) == 0)
        write_missing(world, present, names);
    pthread_mutex_unlock(&world->mutex);
    free(present);
    return dv_fail(error, DV_ERROR_IO,
                   "waited %g s for %s, for %s: see what became of it, or give more time (--timeout); --resume goes on "
                   "from the last checkpoint",
                   world->timeout, names[0] != '\0' ? names : "another rank, which waits for something else", what);
}

static dv_status fail_of_engine(const char *text, const char *what, dv_error *error) {
    return dv_fail(error, DV_ERROR_IO, "%s: %.150s: --resume goes on from the last checkpoint", what, text);
}

dv_status dv_world_wait(dv_world *world, dv_pending *pending, const char *what, dv_error *error) {
    char text[DV_ENGINE_TEXT_BYTES] = "";
    double begun = dv_now();
    for (long looks = 0;; looks++) {
        pthread_mutex_lock(&world->mutex);
        int code = look(world, pending, text);
        bool ended = !pending->under_way;
        pthread_mutex_unlock(&world->mutex);
        if (code != 0)
            return fail_of_engine(text, what, error);
        if (ended)
            break;
        if (dv_now() - begun > world->timeout)
            return lose_patience(world, what, error);
        if (looks < EAGER)
            sched_yield();
        else
            sleep_for(NANOSECONDS_ASLEEP);
    }
    world->waited += dv_now() - begun;
    return DV_OK;
}

void dv_world_forget(dv_world *world, dv_pending *pending) {
    if (world == NULL || !pending->under_way)
        return;
    pthread_mutex_lock(&world->mutex);
    take_out(world, pending);
    pthread_mutex_unlock(&world->mutex);
}

/* ---- transfers ------------------------------------------------------------------------------- */

bool dv_world_alone(const dv_world *world) {
    return world == NULL || world->ranks == 1;
}

dv_status dv_world_start_sum(dv_world *world, dv_sum_type type, void *data, size_t count, dv_pending *pending,
                             dv_error *error) {
    char text[DV_ENGINE_TEXT_BYTES] = "";
    if (dv_world_alone(world))
        return DV_OK;
    pthread_mutex_lock(&world->mutex);
    int code = world->engine->sum(world->context, type, data, count, &pending->request, text);
    if (code == 0)
        add(world, pending);
    pthread_mutex_unlock(&world->mutex);
    return code == 0 ? DV_OK : fail_of_engine(text, "a sum over ranks", error);
}

dv_status dv_world_sum(dv_world *world, dv_sum_type type, void *data, size_t count, const char *what, dv_error *error) {
    dv_pending pending = {.under_way = false};
    if (dv_world_alone(world))
        return DV_OK;
    DV_TRY(dv_world_start_sum(world, type, data, count, &pending, error));
    return dv_world_wait(world, &pending, what, error);
}

static dv_status broadcast_part(dv_world *world, void *data, size_t bytes, const char *what, dv_error *error) {
    dv_pending pending = {.under_way = false};
    char text[DV_ENGINE_TEXT_BYTES] = "";
    pthread_mutex_lock(&world->mutex);
    int code = world->engine->broadcast(world->context, data, bytes, &pending.request, text);
    if (code == 0)
        add(world, &pending);
    pthread_mutex_unlock(&world->mutex);
    return code == 0 ? dv_world_wait(world, &pending, what, error) : fail_of_engine(text, what, error);
}

dv_status dv_world_broadcast(dv_world *world, void *data, size_t bytes, const char *what, dv_error *error) {
    for (size_t done = 0; !dv_world_alone(world) && done < bytes; done += MOST_BYTES) {
        size_t part = bytes - done < MOST_BYTES ? bytes - done : MOST_BYTES;
        DV_TRY(broadcast_part(world, (char *)data + done, part, what, error));
    }
    return DV_OK;
}

dv_status dv_world_gather(dv_world *world, const void *own, size_t bytes, void *all, const char *what,
                          dv_error *error) {
    dv_pending pending = {.under_way = false};
    char text[DV_ENGINE_TEXT_BYTES] = "";
    if (dv_world_alone(world)) {
        memcpy(all, own, bytes);
        return DV_OK;
    }
    pthread_mutex_lock(&world->mutex);
    int code = world->engine->gather(world->context, own, bytes, all, &pending.request, text);
    if (code == 0)
        add(world, &pending);
    pthread_mutex_unlock(&world->mutex);
    return code == 0 ? dv_world_wait(world, &pending, what, error) : fail_of_engine(text, what, error);
}

/* ---- agreement ------------------------------------------------------------------------------- */

/* The first error among [ranks], with the rank in front. */
static dv_status tell_first(dv_world *world, const dv_error *all, dv_error *error) {
    for (size_t i = 0; i < world->ranks; i++)
        if (all[i].status != DV_OK) {
            world->agreed = true;
            return dv_fail(error, all[i].status, "rank %zu (%s): %s", i, dv_world_host(world, i), all[i].text);
        }
    return DV_OK;
}

dv_status dv_world_agree(dv_world *world, dv_status status, dv_error *error) {
    dv_error own = {.status = DV_OK};
    if (dv_world_alone(world))
        return status;
    if (status != DV_OK && error != NULL)
        own = *error;
    own.status = status;
    dv_error *all = calloc(world->ranks, sizeof *all);
    if (all == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory for %zu ranks", world->ranks);
    dv_status gathered = dv_world_gather(world, &own, sizeof own, all, "agreement", error);
    if (gathered == DV_OK)
        gathered = tell_first(world, all, error);
    free(all);
    return gathered;
}

int dv_world_agreed(const dv_world *world) {
    return world != NULL && world->agreed;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static void release(dv_world *world) {
    pthread_mutex_destroy(&world->mutex);
    pthread_cond_destroy(&world->work);
    free(world->hosts);
    free(world);
}

static dv_status gather_hosts(dv_world *world, dv_error *error) {
    char own[HOST_BYTES] = "";
    world->hosts = calloc(world->ranks, sizeof *world->hosts);
    if (world->hosts == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory for %zu ranks", world->ranks);
    (void)gethostname(own, sizeof own - 1);
    return dv_world_gather(world, own, sizeof own, world->hosts, "the names of machines", error);
}

dv_status dv_world_new(const dv_engine *engine, void *argument, double timeout, dv_world **world, dv_error *error) {
    char text[DV_ENGINE_TEXT_BYTES] = "";
    dv_world *made = calloc(1, sizeof *made);
    if (made == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory for a world: free some");
    made->engine = engine;
    made->timeout = timeout;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->work, NULL);
    if (engine->open(argument, &made->context, &made->rank, &made->ranks, text) != 0) {
        release(made);
        return dv_fail(error, DV_ERROR_IO, "%s", text);
    }
    dv_status status = start_mover(made, error);
    if (status == DV_OK)
        status = gather_hosts(made, error);
    made->waited = 0;
    if (status == DV_OK)
        *world = made;
    else
        dv_world_close(made);
    return status;
}

dv_status dv_world_open(double timeout, dv_world **world, dv_error *error) {
    const dv_engine *engine;
    void *library;
    DV_NEED(world);
    DV_TRY(dv_engine_load(&engine, &library, error));
    DV_TRY(dv_world_new(engine, NULL, timeout, world, error)); /* the plugin stays open: MPI ends once in a process */
    return DV_OK;
}

void dv_world_close(dv_world *world) {
    if (world == NULL)
        return;
    stop_mover(world);
    world->engine->close(world->context);
    release(world);
}

void dv_world_abort(dv_world *world, int code) {
    if (world == NULL)
        return;
    if (!world->agreed) {
        stop_mover(world);
        world->engine->abort(world->context, code);
    }
    dv_world_close(world);
}

/* ---- what it is ------------------------------------------------------------------------------ */

size_t dv_world_rank(const dv_world *world) {
    return world != NULL ? world->rank : 0;
}

size_t dv_world_ranks(const dv_world *world) {
    return world != NULL ? world->ranks : 1;
}

const char *dv_world_engine(const dv_world *world) {
    return world != NULL ? world->engine->library() : "";
}

double dv_world_waited_seconds(const dv_world *world) {
    return world != NULL ? world->waited : 0;
}

const char *dv_world_host(const dv_world *world, size_t rank) {
    return world->hosts != NULL && rank < world->ranks ? world->hosts[rank] : "?";
}
