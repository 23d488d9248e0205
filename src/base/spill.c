/* Two threads, each with a buffer, carry transfers piece by piece. Pieces are taken in the order of the queue, and each
 * has its turn on the disk in that order; what is copied is copied outside of the turn. So while one thread writes a
 * piece, the other copies the next one into its buffer:
 *
 *     thread 1   copy 0 │ write 0 │ copy 2 ─┤ write 2 │ ...
 *     thread 2   copy 1 ──────────┤ write 1 │ copy 3 ─┤ write 3
 *
 * and reading is the same with the copy behind. One mutex guards everything but the buffers and the memory of
 * transfers, which belong to whoever took the piece. */
#include "base/spill.h"

#include "base/sizes.h"
#include "base/status.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#define NO_TICKET UINT64_MAX

enum { THREADS = 2, LARGEST_PIECE = 16 << 20, MAX_BUFFER_BYTES = 1 << 30, MAX_QUEUE = 1 << 16 };

/* A transfer in the queue. */
typedef struct transfer {
    char *memory; /* only read if `write` */
    size_t offset, bytes;
    size_t taken, finished; /* bytes: of pieces that a thread has taken; of pieces that are complete */
    bool write;
} transfer;

/* A part of a transfer: what goes to the disk in one call. */
typedef struct piece {
    transfer *owner;
    dv_spill_ticket ticket; /* of its owner */
    char *memory;
    size_t offset, bytes;
    uint64_t turn;
    bool copied; /* by way of the buffer */
} piece;

typedef struct worker {
    dv_spill *spill;
    char *buffer; /* [buffer_bytes] */
    pthread_t thread;
} worker;

struct dv_spill {
    dv_spill_file file;
    size_t buffer_bytes, queue;
    pthread_mutex_t mutex;
    pthread_cond_t work, turned, finished; /* a transfer was submitted; a turn is over; a transfer is finished */
    transfer *transfers;                   /* [queue], that of ticket t at t % queue */
    dv_spill_ticket submitted;             /* the last ticket given out */
    dv_spill_ticket taking;                /* the first one that has pieces left to take */
    uint64_t turns, turn;                  /* turns given out; the one that is on */
    dv_spill_ticket failed;                /* the first one that failed, or NO_TICKET */
    dv_error failure;                      /* and how */
    double waited;
    bool quit;
    size_t thread_count; /* of `workers`, those that run */
    worker workers[THREADS];
};

/* ---- pieces -------------------------------------------------------------------------------- */

static transfer *transfer_of(const dv_spill *spill, dv_spill_ticket ticket) {
    return &spill->transfers[ticket % spill->queue];
}

/* O_DIRECT wants whole blocks, and memory that is aligned. */
static bool must_copy(const dv_spill *spill, const char *memory, size_t bytes) {
    return spill->file.direct && (bytes % DV_SPILL_BLOCK != 0 || (uintptr_t)memory % spill->file.alignment != 0);
}

/* How much of the `left` bytes at `memory` goes to the disk at once. No buffer bounds what is not copied. With the page
 * cache one does: a piece is in it until the call returns, and so no more memory is used than was booked. */
static size_t piece_bytes(const dv_spill *spill, const char *memory, size_t left) {
    size_t blocks = left / DV_SPILL_BLOCK * DV_SPILL_BLOCK;
    if (!spill->file.direct || blocks == 0 || must_copy(spill, memory, blocks))
        return dv_smaller(left, spill->buffer_bytes);
    return dv_smaller(blocks, LARGEST_PIECE);
}

/* Takes the next piece of a transfer that has one left, with the mutex. */
static piece cut_piece(dv_spill *spill, dv_spill_ticket ticket) {
    transfer *owner = transfer_of(spill, ticket);
    char *memory = owner->memory + owner->taken;
    size_t bytes = piece_bytes(spill, memory, owner->bytes - owner->taken);
    piece cut = {.owner = owner,
                 .ticket = ticket,
                 .memory = memory,
                 .offset = owner->offset + owner->taken,
                 .bytes = bytes,
                 .turn = spill->turns++,
                 .copied = must_copy(spill, memory, bytes)};
    owner->taken += bytes;
    return cut;
}

/* Takes the next piece of the queue, with the mutex. Returns whether there is one. `taking` moves on with the last
 * piece of a transfer, before anyone can give its place in the queue to another. */
static bool take_piece(dv_spill *spill, piece *taken) {
    while (spill->taking <= spill->submitted) {
        const transfer *first = transfer_of(spill, spill->taking);
        bool left = first->taken < first->bytes;
        if (left)
            *taken = cut_piece(spill, spill->taking);
        if (first->taken == first->bytes)
            spill->taking++;
        if (left)
            return true;
        pthread_cond_broadcast(&spill->finished); /* a transfer of no bytes */
    }
    return false;
}

/* Waits for the piece's turn. Returns whether it is to go to the disk. */
static bool await_turn(dv_spill *spill, const piece *mine) {
    pthread_mutex_lock(&spill->mutex);
    while (spill->turn != mine->turn)
        pthread_cond_wait(&spill->turned, &spill->mutex);
    bool go = spill->failed == NO_TICKET;
    pthread_mutex_unlock(&spill->mutex);
    return go;
}

/* Turns are in the order of tickets, so that the first failure found is that of the lowest ticket. */
static void end_turn(dv_spill *spill, const piece *mine, dv_status status, const dv_error *error) {
    pthread_mutex_lock(&spill->mutex);
    if (status != DV_OK) {
        spill->failed = mine->ticket;
        spill->failure = *error;
    }
    spill->turn++;
    pthread_cond_broadcast(&spill->turned);
    pthread_mutex_unlock(&spill->mutex);
}

/* Blocks are written whole, with zeros behind the last bytes. */
static void copy_in(char *buffer, const piece *mine) {
    memcpy(buffer, mine->memory, mine->bytes);
    memset(buffer + mine->bytes, 0, dv_spill_room(mine->bytes) - mine->bytes);
}

static void carry_out(dv_spill *spill, char *buffer, const piece *mine) {
    bool write = mine->owner->write;
    char *memory = mine->copied ? buffer : mine->memory;
    size_t bytes = mine->copied ? dv_spill_room(mine->bytes) : mine->bytes;
    dv_status status = DV_OK;
    dv_error error;
    if (write && mine->copied)
        copy_in(buffer, mine);
    bool go = await_turn(spill, mine);
    if (go)
        status = write ? dv_spill_file_write(&spill->file, mine->offset, memory, bytes, &error)
                       : dv_spill_file_read(&spill->file, mine->offset, memory, bytes, &error);
    end_turn(spill, mine, status, &error);
    if (!write && mine->copied && go && status == DV_OK)
        memcpy(mine->memory, buffer, mine->bytes);
}

static void *work(void *argument) {
    worker *self = argument;
    dv_spill *spill = self->spill;
    pthread_mutex_lock(&spill->mutex);
    while (!spill->quit) {
        piece mine;
        if (!take_piece(spill, &mine)) {
            pthread_cond_wait(&spill->work, &spill->mutex);
            continue;
        }
        pthread_mutex_unlock(&spill->mutex);
        carry_out(spill, self->buffer, &mine);
        pthread_mutex_lock(&spill->mutex);
        mine.owner->finished += mine.bytes;
        if (mine.owner->finished == mine.owner->bytes)
            pthread_cond_broadcast(&spill->finished);
    }
    pthread_mutex_unlock(&spill->mutex);
    return NULL;
}

/* ---- submitting and waiting ---------------------------------------------------------------- */

/* With the mutex. What has lost its place in the queue was finished before. */
static bool is_finished(const dv_spill *spill, dv_spill_ticket ticket) {
    if (spill->submitted - ticket >= spill->queue)
        return true;
    const transfer *asked = transfer_of(spill, ticket);
    return ticket < spill->taking && asked->finished == asked->bytes;
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* With the mutex. */
static void wait_for(dv_spill *spill, dv_spill_ticket ticket) {
    if (is_finished(spill, ticket))
        return;
    double begin = seconds_now();
    while (!is_finished(spill, ticket))
        pthread_cond_wait(&spill->finished, &spill->mutex);
    spill->waited += seconds_now() - begin;
}

static dv_status check_transfer(const dv_spill *spill, const transfer *wanted, dv_error *error) {
    if (wanted->memory == NULL && wanted->bytes > 0)
        return dv_fail(error, DV_ERROR_ARGUMENT, "spill: no memory: give some");
    if (wanted->offset % DV_SPILL_BLOCK != 0)
        return dv_fail(error, DV_ERROR_ARGUMENT, "spill: offset %zu: must be a multiple of %d", wanted->offset,
                       DV_SPILL_BLOCK);
    if (wanted->bytes > spill->file.bytes || wanted->offset > spill->file.bytes - wanted->bytes)
        return dv_fail(error, DV_ERROR_ARGUMENT, "spill: %zu bytes at offset %zu: the file has %zu", wanted->bytes,
                       wanted->offset, spill->file.bytes);
    return DV_OK;
}

static dv_status submit(dv_spill *spill, const transfer *wanted, dv_spill_ticket *ticket, dv_error *error) {
    DV_TRY(check_transfer(spill, wanted, error));
    pthread_mutex_lock(&spill->mutex);
    if (spill->submitted >= spill->queue)
        wait_for(spill, spill->submitted + 1 - spill->queue); /* whose place this one takes */
    *ticket = ++spill->submitted;
    *transfer_of(spill, *ticket) = *wanted;
    pthread_cond_broadcast(&spill->work);
    pthread_mutex_unlock(&spill->mutex);
    return DV_OK;
}

dv_status dv_spill_write(dv_spill *spill, size_t offset, const void *memory, size_t bytes, dv_spill_ticket *ticket,
                         dv_error *error) {
    transfer wanted = {.memory = (char *)memory, .offset = offset, .bytes = bytes, .write = true};
    return submit(spill, &wanted, ticket, error);
}

dv_status dv_spill_read(dv_spill *spill, size_t offset, void *memory, size_t bytes, dv_spill_ticket *ticket,
                        dv_error *error) {
    transfer wanted = {.memory = memory, .offset = offset, .bytes = bytes};
    return submit(spill, &wanted, ticket, error);
}

dv_status dv_spill_wait(dv_spill *spill, dv_spill_ticket ticket, dv_error *error) {
    dv_status status = DV_OK;
    pthread_mutex_lock(&spill->mutex);
    if (ticket == 0 || ticket > spill->submitted) {
        status =
            dv_fail(error, DV_ERROR_ARGUMENT, "spill: no transfer has the ticket %llu", (unsigned long long)ticket);
    } else {
        wait_for(spill, ticket);
        if (ticket >= spill->failed)
            status = dv_fail(error, spill->failure.status, "%s", spill->failure.text);
    }
    pthread_mutex_unlock(&spill->mutex);
    return status;
}

double dv_spill_waited_seconds(dv_spill *spill) {
    pthread_mutex_lock(&spill->mutex);
    double waited = spill->waited;
    pthread_mutex_unlock(&spill->mutex);
    return waited;
}

size_t dv_spill_alignment(const dv_spill *spill) {
    return spill->file.alignment;
}

bool dv_spill_direct(const dv_spill *spill) {
    return spill->file.direct;
}

/* ---- beginning and end --------------------------------------------------------------------- */

dv_spill_options dv_spill_options_default(void) {
    return (dv_spill_options){.buffer_bytes = 4 << 20, .queue = 64};
}

/* What lies before the buffers: the spill and its queue. */
static size_t head_bytes(const dv_spill_options *options) {
    return dv_spill_room(sizeof(dv_spill) + options->queue * sizeof(transfer));
}

static dv_status check_options(const dv_spill_options *options, dv_error *error) {
    DV_TRY(dv_check_count("buffer_bytes", options->buffer_bytes, DV_SPILL_BLOCK, MAX_BUFFER_BYTES, error));
    if (options->buffer_bytes % DV_SPILL_BLOCK != 0)
        return dv_fail(error, DV_ERROR_OPTION, "buffer_bytes: %zu: must be a multiple of %d", options->buffer_bytes,
                       DV_SPILL_BLOCK);
    return dv_check_count("queue", options->queue, 1, MAX_QUEUE, error);
}

size_t dv_spill_memory_bytes(const dv_spill_options *options) {
    if (check_options(options, NULL) != DV_OK)
        return 0;
    return head_bytes(options) + THREADS * options->buffer_bytes;
}

/* A spill in the caller's memory, without a file and threads. */
static dv_spill *lay_out(const dv_spill_options *options, void *memory) {
    dv_spill *spill = memory;
    memset(memory, 0, dv_spill_memory_bytes(options)); /* all pages are there before the first step */
    spill->buffer_bytes = options->buffer_bytes;
    spill->queue = options->queue;
    spill->transfers = (transfer *)(spill + 1);
    spill->taking = 1;
    spill->failed = NO_TICKET;
    for (size_t i = 0; i < THREADS; i++)
        spill->workers[i] =
            (worker){.spill = spill, .buffer = (char *)memory + head_bytes(options) + i * options->buffer_bytes};
    pthread_mutex_init(&spill->mutex, NULL);
    pthread_cond_init(&spill->work, NULL);
    pthread_cond_init(&spill->turned, NULL);
    pthread_cond_init(&spill->finished, NULL);
    return spill;
}

/* Signals are for the other threads. */
static dv_status start_threads(dv_spill *spill, dv_error *error) {
    sigset_t all, before;
    int code = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (code == 0 && spill->thread_count < THREADS) {
        worker *next = &spill->workers[spill->thread_count];
        code = pthread_create(&next->thread, NULL, work, next);
        spill->thread_count += code == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code == 0)
        return DV_OK;
    return dv_fail(error, DV_ERROR_MEMORY, "could not start a thread to spill with: %s: free memory, or end processes",
                   strerror(code));
}

dv_status dv_spill_new(const char *folder, size_t bytes, const dv_spill_options *options, void *memory,
                       dv_spill **spill, dv_error *error) {
    DV_TRY(check_options(options, error));
    if (memory == NULL || (uintptr_t)memory % DV_SPILL_BLOCK != 0)
        return dv_fail(error, DV_ERROR_BUFFER, "memory to spill with: none, or not aligned to %d bytes",
                       DV_SPILL_BLOCK);
    dv_spill *made = lay_out(options, memory);
    dv_status status = dv_spill_file_open(&made->file, folder, bytes, &options->file, made->workers[0].buffer,
                                          options->buffer_bytes, error);
    if (status == DV_OK)
        status = start_threads(made, error);
    if (status == DV_OK)
        *spill = made;
    else
        dv_spill_free(made);
    return status;
}

/* Also of one that is half made. */
void dv_spill_free(dv_spill *spill) {
    if (spill == NULL)
        return;
    pthread_mutex_lock(&spill->mutex);
    spill->quit = true;
    pthread_cond_broadcast(&spill->work);
    pthread_mutex_unlock(&spill->mutex);
    for (size_t i = 0; i < spill->thread_count; i++)
        pthread_join(spill->workers[i].thread, NULL);
    pthread_mutex_destroy(&spill->mutex);
    pthread_cond_destroy(&spill->work);
    pthread_cond_destroy(&spill->turned);
    pthread_cond_destroy(&spill->finished);
    dv_spill_file_close(&spill->file);
}
