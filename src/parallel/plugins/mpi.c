/* The engine of MPI: division-mpi.so, built where MPI is installed, for the one that it is built with.
 *
 * Only non-blocking calls: who waits, and for how long, is for the world to say. MPI's failures come back as codes. */
#include "base/float16.h"
#include "parallel/engine.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* What ranks say when the roll is called. */
enum { ROLL_TAG = 1, ROLL_SECONDS = 3, ABORT_SECONDS = 10 };

typedef struct context {
    MPI_Comm everyone;
    MPI_Op add_bf16;
    int rank, ranks;
    MPI_Request *heard; /* [ranks]: from each of the others, that it has lost patience */
    MPI_Request *said;  /* [ranks]: to each of them */
    int word;
} context;

/* 0, or why it failed. */
static int check(int code, const char *what, char *text) {
    char why[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code == MPI_SUCCESS)
        return 0;
    if (MPI_Error_string(code, why, &length) != MPI_SUCCESS)
        snprintf(why, sizeof why, "code %d", code);
    snprintf(text, DV_ENGINE_TEXT_BYTES, "MPI: %s: %.120s", what, why);
    return 1;
}

/* "Open MPI v4.1.4": the first words of what it says. */
static const char *library(void) {
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    if (text[0] == '\0' && MPI_Get_library_version(text, &length) != MPI_SUCCESS)
        snprintf(text, sizeof text, "MPI");
    text[strcspn(text, ",\n")] = '\0';
    for (char *c = text; *c != '\0'; c++)
        if (*c == '\t')
            *c = ' ';
    return text;
}

/* ---- opening and closing --------------------------------------------------------------------- */

/* The sum of two bf16 numbers, rounded to nearest. */
static void add_bf16(void *in, void *inout, int *count, MPI_Datatype *type) {
    const uint16_t *x = in;
    uint16_t *y = inout;
    (void)type;
    for (int i = 0; i < *count; i++)
        y[i] = dv_bf16_nearest(dv_bf16_to_f32(x[i]) + dv_bf16_to_f32(y[i]));
}

/* Open MPI would send whole buckets up and down a tree of ranks where sums are in place; by halves every rank sends
 * each byte about twice, however many there are. Who has set it otherwise has a reason. */
static void choose_sums(void) {
    (void)setenv("OMPI_MCA_coll_libnbc_iallreduce_algorithm", "3", 0); /* 3: Rabenseifner's; others do not know it */
}

static int start_mpi(char *text) {
    int begun, provided;
    choose_sums();
    MPI_Initialized(&begun);
    if (begun)
        MPI_Query_thread(&provided);
    else if (check(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided), "could not start", text) != 0)
        return 1;
    if (provided >= MPI_THREAD_SERIALIZED)
        return 0;
    snprintf(text, DV_ENGINE_TEXT_BYTES, "this MPI was built without threads: install one with MPI_THREAD_SERIALIZED");
    return 1;
}

static int join(context *c, char *text) {
    if (check(MPI_Comm_dup(MPI_COMM_WORLD, &c->everyone), "could not join the others", text) != 0)
        return 1;
    MPI_Comm_set_errhandler(c->everyone, MPI_ERRORS_RETURN);
    MPI_Comm_rank(c->everyone, &c->rank);
    MPI_Comm_size(c->everyone, &c->ranks);
    c->heard = calloc((size_t)c->ranks, sizeof *c->heard);
    c->said = calloc((size_t)c->ranks, sizeof *c->said);
    if (c->heard == NULL || c->said == NULL) {
        snprintf(text, DV_ENGINE_TEXT_BYTES, "no memory for %d ranks", c->ranks);
        return 1;
    }
    for (int i = 0; i < c->ranks; i++)
        c->heard[i] = c->said[i] = MPI_REQUEST_NULL;
    return check(MPI_Op_create(add_bf16, 1, &c->add_bf16), "could not make a sum", text);
}

static void release(context *c) {
    free(c->heard);
    free(c->said);
    free(c);
}

static int open_world(void *argument, void **made, size_t *rank, size_t *ranks, char *text) {
    (void)argument;
    context *c = calloc(1, sizeof *c);
    if (c == NULL) {
        snprintf(text, DV_ENGINE_TEXT_BYTES, "no memory");
        return 1;
    }
    if (start_mpi(text) != 0 || join(c, text) != 0) {
        release(c);
        return 1;
    }
    *made = c;
    *rank = (size_t)c->rank;
    *ranks = (size_t)c->ranks;
    return 0;
}

static void close_world(void *of) {
    context *c = of;
    MPI_Op_free(&c->add_bf16);
    MPI_Comm_free(&c->everyone);
    release(c);
    MPI_Finalize();
}

/* MPI tells the launcher and waits for its answer, for ever where a link is cut: then the alarm ends this process. */
static void abort_world(void *of, int code) {
    const context *c = of;
    alarm(ABORT_SECONDS);
    MPI_Abort(c->everyone, code);
}

/* ---- transfers ------------------------------------------------------------------------------- */

_Static_assert(sizeof(MPI_Request) <= sizeof(dv_request), "a request of MPI fits");

static int keep(int code, MPI_Request begun, const char *what, dv_request *request, char *text) {
    memcpy(request, &begun, sizeof begun);
    return check(code, what, text);
}

static int sum(void *of, dv_sum_type type, void *data, size_t count, dv_request *request, char *text) {
    const context *c = of;
    MPI_Datatype types[DV_SUM_TYPES];
    types[DV_SUM_F32] = MPI_FLOAT;
    types[DV_SUM_BF16] = MPI_UINT16_T;
    types[DV_SUM_F64] = MPI_DOUBLE;
    MPI_Request begun;
    int code = MPI_Iallreduce(MPI_IN_PLACE, data, (int)count, types[type], type == DV_SUM_BF16 ? c->add_bf16 : MPI_SUM,
                              c->everyone, &begun);
    return keep(code, begun, "could not begin a sum", request, text);
}

static int broadcast(void *of, void *data, size_t bytes, dv_request *request, char *text) {
    const context *c = of;
    MPI_Request begun;
    int code = MPI_Ibcast(data, (int)bytes, MPI_BYTE, 0, c->everyone, &begun);
    return keep(code, begun, "could not begin a broadcast", request, text);
}

static int gather(void *of, const void *own, size_t bytes, void *all, dv_request *request, char *text) {
    const context *c = of;
    MPI_Request begun;
    int code = MPI_Iallgather(own, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, c->everyone, &begun);
    return keep(code, begun, "could not begin to gather", request, text);
}

static int test(void *of, dv_request *request, int *ended, char *text) {
    (void)of;
    MPI_Request under_way;
    memcpy(&under_way, request, sizeof under_way);
    int code = MPI_Test(&under_way, ended, MPI_STATUS_IGNORE);
    return keep(code, under_way, "a transfer failed", request, text);
}

/* ---- the roll -------------------------------------------------------------------------------- */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Whoever has not answered when the time is over is not there: what was begun for it is left. */
static int call_roll(void *of, unsigned char *present, char *text) {
    context *c = of;
    (void)text;
    for (int i = 0; i < c->ranks; i++) {
        present[i] = i == c->rank;
        if (i == c->rank)
            continue;
        MPI_Irecv(&c->word, 0, MPI_INT, i, ROLL_TAG, c->everyone, &c->heard[i]);
        MPI_Isend(&c->word, 0, MPI_INT, i, ROLL_TAG, c->everyone, &c->said[i]);
    }
    for (double end = now() + ROLL_SECONDS; now() < end;) {
        for (int i = 0; i < c->ranks; i++) {
            int heard = 0, said;
            if (present[i])
                continue;
            present[i] = MPI_Test(&c->heard[i], &heard, MPI_STATUS_IGNORE) == MPI_SUCCESS && heard;
            MPI_Test(&c->said[i], &said, MPI_STATUS_IGNORE);
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return 0;
}

__attribute__((visibility("default"))) extern const dv_engine dv_engine_table;

const dv_engine dv_engine_table = {
    .version = DV_ENGINE_VERSION,
    .library = library,
    .open = open_world,
    .sum = sum,
    .broadcast = broadcast,
    .gather = gather,
    .test = test,
    .call_roll = call_roll,
    .abort = abort_world,
    .close = close_world,
};
