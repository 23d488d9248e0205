/* The instruction set: names, what there is here, and what DV_ISA does. The choice is made once in a
 * process, so each case asks in a process of its own. */
#include "base/cpu.h"

#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

typedef struct answer {
    dv_status status;
    dv_isa picked, current;
    dv_error error;
} answer;

/* What a fresh process with this DV_ISA (none if NULL) picks. */
static answer ask(const char *wish) {
    int ends[2], status;
    answer got = {0};
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (wish)
            setenv("DV_ISA", wish, 1);
        else
            unsetenv("DV_ISA");
        got.status = dv_isa_picked(&got.picked, &got.error);
        got.current = dv_isa_current();
        _exit(write(ends[1], &got, sizeof got) == sizeof got ? 0 : 1);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &got, sizeof got), sizeof got);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return got;
}

static dv_isa fastest_available(void) {
    dv_isa fastest = DV_ISA_SCALAR;
    for (int isa = 0; isa < DV_ISA_COUNT; isa++)
        if (dv_isa_available((dv_isa)isa))
            fastest = (dv_isa)isa;
    return fastest;
}

static void names_are_those_of_the_manual(void **state) {
    (void)state;
    static const char *const names[DV_ISA_COUNT] = {"scalar", "sse2", "neon", "avx2", "avx512", "amx"};
    for (int isa = 0; isa < DV_ISA_COUNT; isa++)
        assert_string_equal(dv_isa_name((dv_isa)isa), names[isa]);
    assert_string_equal(dv_isa_name(DV_ISA_COUNT), "unknown");
    assert_string_equal(dv_isa_name((dv_isa)-1), "unknown");
}

static void each_processor_family_has_its_own(void **state) {
    (void)state;
    assert_true(dv_isa_available(DV_ISA_SCALAR));
    assert_false(dv_isa_available(DV_ISA_COUNT));
    assert_false(dv_isa_available((dv_isa)-1));
#if defined(__x86_64__)
    assert_true(dv_isa_available(DV_ISA_SSE2));
    assert_false(dv_isa_available(DV_ISA_NEON));
    if (dv_isa_available(DV_ISA_AVX512))
        assert_true(dv_isa_available(DV_ISA_AVX2));
    if (dv_isa_available(DV_ISA_AMX))
        assert_true(dv_isa_available(DV_ISA_AVX512));
#elif defined(__aarch64__)
    assert_true(dv_isa_available(DV_ISA_NEON));
    assert_false(dv_isa_available(DV_ISA_SSE2));
    assert_false(dv_isa_available(DV_ISA_AVX2));
    assert_false(dv_isa_available(DV_ISA_AVX512));
    assert_false(dv_isa_available(DV_ISA_AMX));
#endif
}

static void the_fastest_is_picked(void **state) {
    (void)state;
    static const char *const none[] = {NULL, ""};
    for (int i = 0; i < 2; i++) {
        answer got = ask(none[i]);
        assert_int_equal(got.status, DV_OK);
        assert_int_equal(got.picked, fastest_available());
        assert_int_equal(got.current, got.picked);
    }
}

static void the_environment_forces_one(void **state) {
    (void)state;
    for (int isa = 0; isa < DV_ISA_COUNT; isa++) {
        answer got = ask(dv_isa_name((dv_isa)isa));
        assert_int_equal(got.current, got.picked);
        if (dv_isa_available((dv_isa)isa)) {
            assert_int_equal(got.status, DV_OK);
            assert_int_equal(got.picked, isa);
        } else {
            assert_int_equal(got.status, DV_ERROR_OPTION);
            assert_non_null(strstr(got.error.text, dv_isa_name((dv_isa)isa)));
            assert_non_null(strstr(got.error.text, "does not have it"));
            assert_int_equal(got.picked, fastest_available());
        }
    }
}

static void an_unknown_wish_is_an_error_and_ignored(void **state) {
    (void)state;
    static const char *const wishes[] = {"avx", "AVX2", "avx2 ", "unknown"};
    for (int i = 0; i < 4; i++) {
        answer got = ask(wishes[i]);
        assert_int_equal(got.status, DV_ERROR_OPTION);
        assert_non_null(strstr(got.error.text, wishes[i]));
        assert_non_null(strstr(got.error.text, "use scalar"));
        assert_int_equal(got.picked, fastest_available());
    }
}

static void tests_can_force_one(void **state) {
    (void)state;
    dv_isa picked;
    assert_fails(dv_isa_picked(NULL, &error), DV_ERROR_ARGUMENT, "NULL");
    unsetenv("DV_ISA");
    dv_isa_force(DV_ISA_SCALAR);
    assert_int_equal(dv_isa_current(), DV_ISA_SCALAR);
    assert_ok(dv_isa_picked(&picked, &error));
    assert_int_equal(picked, DV_ISA_SCALAR);
    dv_isa_force(fastest_available());
    assert_int_equal(dv_isa_current(), fastest_available());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_those_of_the_manual),
        cmocka_unit_test(each_processor_family_has_its_own),
        cmocka_unit_test(the_fastest_is_picked),
        cmocka_unit_test(the_environment_forces_one),
        cmocka_unit_test(an_unknown_wish_is_an_error_and_ignored),
        cmocka_unit_test(tests_can_force_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
