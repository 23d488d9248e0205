/* What all tests share: cmocka, calls that must succeed, memory that catches writes past its end. */
#ifndef DV_TESTS_CHECK_H
#define DV_TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <division/status.h>
#include <cmocka.h>

/* Fails the test with the library's own message if the call does not succeed. The call is to be
 * given `&error`. */
#define assert_ok(call)                            \
    do {                                           \
        dv_error error = {0};                      \
        if ((call) != DV_OK)                       \
            fail_msg("%s: %s", #call, error.text); \
    } while (0)

/* Fails the test unless the call fails with `status` and a message that contains `words`. */
#define assert_fails(call, expected, words)                                                                            \
    do {                                                                                                               \
        dv_error error = {0};                                                                                          \
        dv_status got = (call);                                                                                        \
        if (got != (expected) || !strstr(error.text, words))                                                           \
            fail_msg("%s: status %d \"%s\", expected %d \"%s\"", #call, (int)got, error.text, (int)(expected), words); \
    } while (0)

/* Leaves the rest of the test out, and says why: `make test` lists it at the end. */
#define leave_out(...)               \
    do {                             \
        print_message("left out: "); \
        print_message(__VA_ARGS__);  \
        print_message("\n");         \
        skip();                      \
    } while (0)

/* A function that does harm on purpose. */
#ifdef __SANITIZE_ADDRESS__
#define NOT_SANITIZED __attribute__((no_sanitize_address))
#else
#define NOT_SANITIZED
#endif

/* By how much long tests are to be shortened: the environment's DV_TEST_SCALE, set where an emulator or a
 * sanitizer makes them slow, else 1. */
static inline size_t test_scale(void) {
    const char *text = getenv("DV_TEST_SCALE");
    long scale = text ? strtol(text, NULL, 10) : 1;
    return scale > 1 ? (size_t)scale : 1;
}

enum {
    GUARD_BYTES = 256,
    GUARD_VALUE = 0xFF
}; /* NaN in every type: who uses it without having written it is found out */

/* `bytes` of memory aligned to 64, with a guard behind that guarded_free checks. */
static inline void *guarded_new(size_t bytes) {
    size_t whole = (bytes + GUARD_BYTES + 63) / 64 * 64;
    unsigned char *memory = aligned_alloc(64, whole);
    assert_non_null(memory);
    memset(memory, GUARD_VALUE, whole);
    return memory;
}

static inline void guarded_free(void *memory, size_t bytes) {
    for (size_t i = 0; i < GUARD_BYTES; i++)
        assert_int_equal(((unsigned char *)memory)[bytes + i], GUARD_VALUE);
    free(memory);
}

#endif
