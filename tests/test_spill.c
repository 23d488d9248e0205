/* Transfers between memory and a file: every byte comes back, in order, without an allocation; and what becomes of them
 * on a disk that is slow or fails. */
#define _GNU_SOURCE
#include "allocations.h"
#include "base/spill.h"
#include "check.h"
#include "disk.h"
#include "folder.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

enum { BUFFER = 2 * DV_SPILL_BLOCK, QUEUE = 8, GUARD = 64 };

/* A spill on a disk of the test's, with its memory, which has a guard behind. */
typedef struct fixture {
    disk on;
    dv_spill *spill;
    unsigned char *memory;
    size_t memory_bytes;
} fixture;

static dv_spill_options options_on(const dv_spill_disk *calls, bool page_cache) {
    return (dv_spill_options){
        .buffer_bytes = BUFFER, .queue = QUEUE, .file = {.in_memory = true, .page_cache = page_cache, .disk = calls}};
}

static void fixture_new(fixture *made, void **state, size_t bytes, bool page_cache) {
    dv_spill_disk calls = disk_calls(&made->on);
    dv_spill_options options = options_on(&calls, page_cache);
    made->memory_bytes = dv_spill_memory_bytes(&options);
    made->memory = aligned_alloc(DV_SPILL_BLOCK, made->memory_bytes + DV_SPILL_BLOCK);
    assert_non_null(made->memory);
    memset(made->memory, GUARD_VALUE, made->memory_bytes + DV_SPILL_BLOCK);
    assert_ok(dv_spill_new(*state, bytes, &options, made->memory, &made->spill, &error));
}

static void fixture_free(fixture *made) {
    dv_spill_free(made->spill);
    for (size_t i = 0; i < DV_SPILL_BLOCK; i++)
        assert_int_equal(made->memory[made->memory_bytes + i], GUARD_VALUE);
    free(made->memory);
}

/* Calls that must succeed. */
static dv_spill_ticket write_to(dv_spill *spill, size_t offset, const void *memory, size_t bytes) {
    dv_spill_ticket ticket = 0;
    assert_ok(dv_spill_write(spill, offset, memory, bytes, &ticket, &error));
    return ticket;
}

static dv_spill_ticket read_from(dv_spill *spill, size_t offset, void *memory, size_t bytes) {
    dv_spill_ticket ticket = 0;
    assert_ok(dv_spill_read(spill, offset, memory, bytes, &ticket, &error));
    return ticket;
}

static void wait_for(dv_spill *spill, dv_spill_ticket ticket) {
    assert_ok(dv_spill_wait(spill, ticket, &error));
}

/* Bytes that differ from place to place and from key to key. */
static void fill(unsigned char *memory, size_t bytes, size_t key) {
    for (size_t i = 0; i < bytes; i++)
        memory[i] = (unsigned char)((i + key * 31) * 0x9E3779B1u >> 13);
}

/* ---- round trips --------------------------------------------------------------------------- */

/* One value there and back, at an address `shift` behind an aligned one; what lies around it stays. */
static void check_round_trip(dv_spill *spill, size_t bytes, size_t shift) {
    size_t whole = dv_spill_room(bytes + shift + 2 * GUARD);
    unsigned char *src = aligned_alloc(DV_SPILL_BLOCK, whole), *dst = aligned_alloc(DV_SPILL_BLOCK, whole);
    assert_non_null(src);
    assert_non_null(dst);
    fill(src, whole, bytes + shift);
    memset(dst, GUARD_VALUE, whole);
    dv_spill_ticket written = write_to(spill, DV_SPILL_BLOCK, src + shift, bytes);
    dv_spill_ticket read = read_from(spill, DV_SPILL_BLOCK, dst + shift, bytes);
    wait_for(spill, read);
    wait_for(spill, written);
    if (memcmp(src + shift, dst + shift, bytes) != 0)
        fail_msg("%zu bytes, %zu behind an aligned address: others came back", bytes, shift);
    for (size_t i = 0; i < whole; i++)
        if ((i < shift || i >= shift + bytes) && dst[i] != GUARD_VALUE)
            fail_msg("%zu bytes, %zu behind an aligned address: byte %zu was overwritten", bytes, shift, i);
    free(src);
    free(dst);
}

static void check_round_trips(void **state, bool page_cache) {
    static const size_t sizes[] = {
        0, 1, 7, 511, 512, 4095, 4096, 4097, 8191, 8192, 8192 + 1, 12288, 3 * BUFFER, 3 * BUFFER + 17, 7 * BUFFER - 1};
    static const size_t shifts[] = {0, 1, 64, 512, 4095};
    fixture here = {0};
    fixture_new(&here, state, 8 * BUFFER, page_cache);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t j = 0; j < sizeof shifts / sizeof *shifts; j++)
            check_round_trip(here.spill, sizes[i], shifts[j]);
    fixture_free(&here);
}

static void test_round_trips(void **state) {
    check_round_trips(state, false);
    check_round_trips(state, true);
}

/* The next value starts where dv_spill_room says, and the last one may end with the file. */
static void test_neighbours(void **state) {
    enum { COUNT = 20 };
    static unsigned char values[COUNT][5 * DV_SPILL_BLOCK];
    static unsigned char again[5 * DV_SPILL_BLOCK];
    fixture here = {0};
    size_t offset = 0, bytes[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        bytes[i] = (i * 3001 + 1) % sizeof again;
        fill(values[i], bytes[i], i);
        offset += dv_spill_room(bytes[i]);
    }
    fixture_new(&here, state, offset, false);
    offset = 0;
    for (size_t i = 0; i < COUNT; offset += dv_spill_room(bytes[i++]))
        write_to(here.spill, offset, values[i], bytes[i]);
    for (size_t i = COUNT; i-- > 0;) {
        offset -= dv_spill_room(bytes[i]);
        wait_for(here.spill, read_from(here.spill, offset, again, bytes[i]));
        assert_memory_equal(again, values[i], bytes[i]);
    }
    fixture_free(&here);
}

/* ---- order --------------------------------------------------------------------------------- */

enum { BLOCKS = 12, LARGEST = 5 * DV_SPILL_BLOCK };

/* A transfer under way, and what its memory must hold in the end. */
typedef struct expected {
    unsigned char memory[LARGEST + 1], wanted[LARGEST];
    unsigned char *place; /* in memory */
    size_t bytes;
    dv_spill_ticket ticket;
} expected;

/* Submits a random write of whole blocks or a random read of any bytes. The same happens to `model` at once. */
static void submit_random(dv_spill *spill, uint32_t random, unsigned char *model, expected *one) {
    size_t offset = (random >> 8) % (BLOCKS - 5) * DV_SPILL_BLOCK;
    bool write = random >> 31;
    one->place = one->memory + (random >> 30) % 2;
    one->bytes = write ? (random >> 20) % 6 * DV_SPILL_BLOCK : (random >> 5) % LARGEST;
    if (write) {
        fill(one->place, one->bytes, random);
        memcpy(model + offset, one->place, one->bytes);
    }
    memcpy(one->wanted, model + offset, one->bytes);
    one->ticket =
        write ? write_to(spill, offset, one->place, one->bytes) : read_from(spill, offset, one->place, one->bytes);
}

/* Many under way at a time, against what plain memory does. */
static void check_order(void **state, bool page_cache) {
    static unsigned char model[BLOCKS * DV_SPILL_BLOCK];
    static expected all[QUEUE];
    fixture here = {.on = {.delay = 100000}};
    uint32_t random = 12345;
    fixture_new(&here, state, sizeof model, page_cache);
    memset(model, 0, sizeof model);
    wait_for(here.spill, write_to(here.spill, 0, model, sizeof model));
    for (size_t round = 0; round < 100 / test_scale(); round++) {
        for (size_t i = 0; i < QUEUE; i++)
            submit_random(here.spill, random = random * 1664525u + 1013904223u, model, &all[i]);
        for (size_t i = QUEUE; i-- > 0;) {
            wait_for(here.spill, all[i].ticket);
            assert_memory_equal(all[i].place, all[i].wanted, all[i].bytes);
        }
    }
    fixture_free(&here);
}

static void test_order(void **state) {
    check_order(state, false);
    check_order(state, true);
}

/* The disk sees pieces in the order of the calls, copied or not. */
static void test_order_on_the_disk(void **state) {
    enum { COUNT = 40 };
    static _Alignas(DV_SPILL_BLOCK) unsigned char memory[COUNT][DV_SPILL_BLOCK * 2];
    fixture here = {0};
    fixture_new(&here, state, COUNT * DV_SPILL_BLOCK, false);
    int before = here.on.transfers;
    dv_spill_ticket last = 0;
    for (size_t i = 0; i < COUNT; i++)
        last = i % 3 == 0 ? read_from(here.spill, i * DV_SPILL_BLOCK, memory[i] + i % 2, 4096)
                          : write_to(here.spill, i * DV_SPILL_BLOCK, memory[i] + i % 2, 4096);
    for (size_t i = 0; i < COUNT; i++)
        wait_for(here.spill, last - i);
    assert_int_equal(here.on.transfers, before + COUNT);
    for (int i = 0; i < COUNT; i++) {
        off_t offset = (off_t)i * DV_SPILL_BLOCK;
        assert_int_equal(here.on.log[before + 1 + i], i % 3 == 0 ? offset : -1 - offset);
    }
    fixture_free(&here);
}

/* ---- waiting ------------------------------------------------------------------------------- */

static void test_wait_after_the_fact(void **state) {
    static unsigned char memory[100];
    fixture here = {0};
    fixture_new(&here, state, DV_SPILL_BLOCK, false);
    dv_spill_ticket first = write_to(here.spill, 0, memory, sizeof memory), last = first;
    for (size_t i = 0; i < 5 * QUEUE; i++) {
        last = write_to(here.spill, 0, memory, sizeof memory);
        wait_for(here.spill, last);
    }
    double waited = dv_spill_waited_seconds(here.spill);
    for (dv_spill_ticket ticket = last; ticket >= first; ticket--)
        wait_for(here.spill, ticket);
    assert_true(dv_spill_waited_seconds(here.spill) == waited);
    assert_fails(dv_spill_wait(here.spill, last + 1, &error), DV_ERROR_ARGUMENT, "no transfer has the ticket");
    assert_fails(dv_spill_wait(here.spill, 0, &error), DV_ERROR_ARGUMENT, "no transfer has the ticket 0");
    fixture_free(&here);
}

/* Calls return while the disk has not moved a byte; the test would hang otherwise. */
static void test_calls_return_at_once(void **state) {
    static unsigned char memory[QUEUE][3 * BUFFER];
    fixture here = {0};
    sem_t gate;
    fixture_new(&here, state, 3 * BUFFER, false);
    assert_int_equal(sem_init(&gate, 0, 0), 0);
    dv_spill_ticket last = 0;
    here.on.gate = &gate;
    for (size_t i = 0; i < QUEUE; i++)
        last = write_to(here.spill, 0, memory[i], sizeof memory[i]);
    assert_true(dv_spill_waited_seconds(here.spill) == 0.0);
    for (size_t i = 0; i < 4 * QUEUE * 3; i++)
        sem_post(&gate);
    wait_for(here.spill, last);
    fixture_free(&here);
    sem_destroy(&gate);
}

/* What a slow disk costs is told. Tried again where the machine is so busy that the disk was ready first. */
static void test_slow_disk(void **state) {
    static unsigned char memory[100];
    fixture here = {0};
    fixture_new(&here, state, DV_SPILL_BLOCK, false);
    here.on.delay = 20000000;
    double waited = 0.0;
    for (size_t tries = 0; tries < 20 && waited < 0.015; tries++) {
        wait_for(here.spill, write_to(here.spill, 0, memory, sizeof memory));
        waited = dv_spill_waited_seconds(here.spill);
    }
    assert_true(waited >= 0.015);
    fixture_free(&here);
}

/* A full queue makes the call wait, and counts it. */
static void test_full_queue(void **state) {
    static unsigned char memory[3 * QUEUE][DV_SPILL_BLOCK];
    fixture here = {0};
    fixture_new(&here, state, DV_SPILL_BLOCK, false);
    here.on.delay = 2000000;
    for (size_t i = 0; i < 3 * QUEUE; i++)
        write_to(here.spill, 0, memory[i], DV_SPILL_BLOCK);
    assert_true(dv_spill_waited_seconds(here.spill) > 0.0);
    fixture_free(&here);
}

/* ---- failures ------------------------------------------------------------------------------ */

/* Transfers before the failure succeeded, that one and all later ones did not, and the disk was left alone. */
static void check_failure(void **state, bool write, int code) {
    enum { COUNT = 6, FAILS = 3 };
    static unsigned char memory[COUNT][3 * DV_SPILL_BLOCK];
    char words[128];
    fixture here = {0};
    dv_spill_ticket tickets[COUNT];
    fixture_new(&here, state, COUNT * DV_SPILL_BLOCK, false);
    here.on.code = code;
    here.on.fail_at = here.on.transfers + FAILS + 1;
    for (size_t i = 0; i < COUNT; i++)
        tickets[i] = write ? write_to(here.spill, i * DV_SPILL_BLOCK, memory[i], 4000)
                           : read_from(here.spill, i * DV_SPILL_BLOCK, memory[i], 4000);
    snprintf(words, sizeof words, "could not %s 4096 bytes at offset %d of the spill file in ",
             write ? "write" : "read", FAILS * DV_SPILL_BLOCK);
    if (!dv_spill_direct(here.spill))
        memcpy(strstr(words, "4096"), "4000", 4);
    for (size_t i = COUNT; i-- > FAILS;) {
        assert_fails(dv_spill_wait(here.spill, tickets[i], &error), DV_ERROR_IO, words);
        assert_fails(dv_spill_wait(here.spill, tickets[i], &error), DV_ERROR_IO, strerror(code));
    }
    for (size_t i = 0; i < FAILS; i++)
        wait_for(here.spill, tickets[i]);
    assert_int_equal(here.on.transfers, here.on.fail_at);
    fixture_free(&here);
}

static void test_failing_disk(void **state) {
    check_failure(state, true, EIO);
    check_failure(state, true, ENOSPC);
    check_failure(state, false, EIO);
}

static void test_wrong_transfers(void **state) {
    static unsigned char memory[3 * DV_SPILL_BLOCK];
    fixture here = {0};
    dv_spill_ticket ticket;
    fixture_new(&here, state, 2 * DV_SPILL_BLOCK - 5, false);
    assert_fails(dv_spill_write(here.spill, 100, memory, 1, &ticket, &error), DV_ERROR_ARGUMENT,
                 "offset 100: must be a multiple of 4096");
    assert_fails(dv_spill_write(here.spill, 4096, memory, 4097, &ticket, &error), DV_ERROR_ARGUMENT,
                 "4097 bytes at offset 4096: the file has 8192");
    assert_fails(dv_spill_read(here.spill, 12288, memory, 1, &ticket, &error), DV_ERROR_ARGUMENT, "the file has 8192");
    assert_fails(dv_spill_read(here.spill, 0, memory, SIZE_MAX, &ticket, &error), DV_ERROR_ARGUMENT, "the file has");
    assert_fails(dv_spill_read(here.spill, 0, NULL, 1, &ticket, &error), DV_ERROR_ARGUMENT, "no memory");
    wait_for(here.spill, read_from(here.spill, 8192, NULL, 0));
    fixture_free(&here);
}

static void test_wrong_options(void **state) {
    static _Alignas(DV_SPILL_BLOCK) unsigned char memory[2 * DV_SPILL_BLOCK];
    dv_spill *spill = NULL;
    dv_spill_options options = dv_spill_options_default();
    assert_true(dv_spill_memory_bytes(&options) >= 2 * options.buffer_bytes);
    assert_fails(dv_spill_new(*state, 1, &options, NULL, &spill, &error), DV_ERROR_BUFFER, "none, or not aligned");
    assert_fails(dv_spill_new(*state, 1, &options, memory + 64, &spill, &error), DV_ERROR_BUFFER, "not aligned");
    options.buffer_bytes = 5000;
    assert_int_equal(dv_spill_memory_bytes(&options), 0);
    assert_fails(dv_spill_new(*state, 1, &options, memory, &spill, &error), DV_ERROR_OPTION,
                 "buffer_bytes: 5000: must be a multiple of 4096");
    options.buffer_bytes = 0;
    assert_fails(dv_spill_new(*state, 1, &options, memory, &spill, &error), DV_ERROR_OPTION, "buffer_bytes: 0");
    options = (dv_spill_options){.buffer_bytes = DV_SPILL_BLOCK};
    assert_fails(dv_spill_new(*state, 1, &options, memory, &spill, &error), DV_ERROR_OPTION,
                 "queue: 0: must be from 1 to 65536");
    assert_null(spill);
    dv_spill_free(NULL);
}

static void test_no_folder(void **state) {
    char path[FOLDER_PATH_BYTES];
    dv_spill *spill = NULL;
    dv_spill_options options = options_on(NULL, false);
    void *memory = aligned_alloc(DV_SPILL_BLOCK, dv_spill_memory_bytes(&options));
    assert_non_null(memory);
    assert_fails(dv_spill_new(folder_path(state, "nowhere", path), 1, &options, memory, &spill, &error), DV_ERROR_IO,
                 "nowhere: No such file");
    assert_null(spill);
    free(memory);
}

/* ---- the end ------------------------------------------------------------------------------- */

/* What has not begun is left out: the memory of transfers may go right after. */
static void test_free_in_the_middle(void **state) {
    fixture here = {0};
    unsigned char *memory = calloc(QUEUE, BUFFER);
    assert_non_null(memory);
    fixture_new(&here, state, QUEUE * BUFFER, false);
    here.on.delay = 20000000;
    for (size_t i = 0; i < QUEUE; i++)
        write_to(here.spill, i * BUFFER, memory + i * BUFFER, BUFFER - 1);
    fixture_free(&here);
    free(memory);
    assert_int_equal(folder_count(state, 0), 0);
}

/* A process that spills until it is killed, and says when it has begun. */
static void spill_for_ever(void **state, int begun) {
    static unsigned char memory[BUFFER];
    fixture here = {0};
    fixture_new(&here, state, BUFFER, false);
    for (size_t i = 0;; i++) {
        wait_for(here.spill, write_to(here.spill, 0, memory, sizeof memory));
        if (i == 10)
            (void)!write(begun, "", 1);
    }
}

static void test_killed(void **state) {
    char byte;
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0)
        spill_for_ever(state, ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_int_equal(folder_count(state, 0), 0);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(folder_count(state, 0), 0);
    close(ends[0]);
    close(ends[1]);
}

/* ---- memory -------------------------------------------------------------------------------- */

#if ALLOCATIONS_ARE_COUNTED
static void test_no_allocation(void **state) {
    static unsigned char memory[2][3 * BUFFER + 100];
    fixture here = {0};
    fixture_new(&here, state, 4 * BUFFER, false);
    long before = allocations;
    for (size_t i = 0; i < 5 * QUEUE; i++) {
        write_to(here.spill, 0, memory[0] + i, 3 * BUFFER);
        wait_for(here.spill, read_from(here.spill, 0, memory[1], 3 * BUFFER));
    }
    assert_int_equal(allocations, before);
    fixture_free(&here);
}
#endif

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_new, folder_free)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_round_trips),
        IN_FOLDER(test_neighbours),
        IN_FOLDER(test_order),
        IN_FOLDER(test_order_on_the_disk),
        IN_FOLDER(test_wait_after_the_fact),
        IN_FOLDER(test_calls_return_at_once),
        IN_FOLDER(test_slow_disk),
        IN_FOLDER(test_full_queue),
        IN_FOLDER(test_failing_disk),
        IN_FOLDER(test_wrong_transfers),
        IN_FOLDER(test_wrong_options),
        IN_FOLDER(test_no_folder),
        IN_FOLDER(test_free_in_the_middle),
        IN_FOLDER(test_killed),
#if ALLOCATIONS_ARE_COUNTED
        IN_FOLDER(test_no_allocation),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
