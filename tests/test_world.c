/* Worlds: sums, broadcasts, agreement, and what those say who wait in vain. */
#include "ranks.h"

#include "check.h"

#include <stdio.h>

enum { RANKS = 4, COUNT = 1000 };

/* What a rank found. */
typedef struct found {
    float f32[COUNT];
    double f64[3];
    uint16_t bf16[COUNT];
    char text[32];
    dv_error error;
    dv_status status;
} found;

static void add_up(dv_world *world, void *argument) {
    found *f = argument;
    float rank = (float)dv_world_rank(world);
    dv_pending first = {.under_way = false}, second = {.under_way = false};
    for (int i = 0; i < COUNT; i++) {
        f->f32[i] = (float)i + rank;
        f->bf16[i] = dv_bf16_nearest(rank + 1);
    }
    for (int i = 0; i < 3; i++)
        f->f64[i] = (double)rank * 0.1;
    f->status = dv_world_start_sum(world, DV_SUM_F32, f->f32, COUNT, &first, &f->error);
    f->status |= dv_world_start_sum(world, DV_SUM_BF16, f->bf16, COUNT, &second, &f->error);
    f->status |= dv_world_sum(world, DV_SUM_F64, f->f64, 3, "f64", &f->error);
    f->status |= dv_world_wait(world, &second, "bf16", &f->error);
    f->status |= dv_world_wait(world, &first, "f32", &f->error);
    f->status |= dv_world_wait(world, &first, "what has ended", &f->error);
}

static void test_sums(void **state) {
    (void)state;
    static found all[RANKS];
    on_ranks(RANKS, 20, add_up, all, sizeof *all);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(all[r].status, DV_OK);
        for (int i = 0; i < COUNT; i++) {
            assert_true(all[r].f32[i] == (float)(4 * i + 6));
            assert_true(dv_bf16_to_f32(all[r].bf16[i]) == 10);
        }
        assert_true(all[r].f64[2] == all[0].f64[2]);
        assert_true(all[r].f64[0] > 0.599 && all[r].f64[0] < 0.601);
    }
}

static void broadcast(dv_world *world, void *argument) {
    found *f = argument;
    snprintf(f->text, sizeof f->text, "of rank %zu", dv_world_rank(world));
    f->status = dv_world_broadcast(world, f->text, sizeof f->text, "a text", &f->error);
    assert_string_equal(dv_world_engine(world), "threads");
    assert_int_equal(dv_world_ranks(world), RANKS);
}

static void test_broadcast(void **state) {
    (void)state;
    static found all[RANKS];
    on_ranks(RANKS, 20, broadcast, all, sizeof *all);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(all[r].status, DV_OK);
        assert_string_equal(all[r].text, "of rank 0");
    }
}

/* Ranks 2 and 3 have failed: all speak of 2. */
static void agree(dv_world *world, void *argument) {
    found *f = argument;
    assert_int_equal(dv_world_agree(world, DV_OK, &f->error), DV_OK);
    assert_false(dv_world_agreed(world));
    f->status = DV_OK;
    if (dv_world_rank(world) >= 2) {
        f->status = f->error.status = DV_ERROR_FORMAT;
        snprintf(f->error.text, sizeof f->error.text, "fault %zu", dv_world_rank(world));
    }
    f->status = dv_world_agree(world, f->status, &f->error);
    assert_true(dv_world_agreed(world));
}

static void test_agreement(void **state) {
    (void)state;
    static found all[RANKS];
    on_ranks(RANKS, 20, agree, all, sizeof *all);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(all[r].status, DV_ERROR_FORMAT);
        assert_true(strncmp(all[r].error.text, "rank 2 (", 8) == 0);
        assert_true(strstr(all[r].error.text, "): fault 2") != NULL);
    }
}

/* Rank 1 does not come. */
static void wait_in_vain(dv_world *world, void *argument) {
    found *f = argument;
    if (dv_world_rank(world) == 1)
        return;
    f->status = dv_world_sum(world, DV_SUM_F64, f->f64, 3, "the gradients of fc", &f->error);
}

static void test_timeout(void **state) {
    (void)state;
    static found all[RANKS];
    on_ranks(RANKS, 0.3, wait_in_vain, all, sizeof *all);
    for (int r = 0; r < RANKS; r++) {
        if (r == 1)
            continue;
        assert_int_equal(all[r].status, DV_ERROR_IO);
        assert_true(strncmp(all[r].error.text, "waited 0.3 s for rank 1 (", 25) == 0);
        assert_true(strstr(all[r].error.text, "for the gradients of fc: ") != NULL);
        assert_true(strstr(all[r].error.text, "rank 2") == NULL);
    }
}

/* Without a world all of it is nothing. */
static void test_alone(void **state) {
    (void)state;
    double one = 1;
    assert_int_equal(dv_world_ranks(NULL), 1);
    assert_int_equal(dv_world_rank(NULL), 0);
    assert_int_equal(dv_world_sum(NULL, DV_SUM_F64, &one, 1, "one", NULL), DV_OK);
    assert_int_equal(dv_world_broadcast(NULL, &one, sizeof one, "one", NULL), DV_OK);
    assert_int_equal(dv_world_agree(NULL, DV_ERROR_IO, NULL), DV_ERROR_IO);
    assert_true(one == 1);
    assert_true(dv_world_waited_seconds(NULL) == 0);
}

/* A plugin that is not there is an error that says what to install. */
static void test_no_plugin(void **state) {
    (void)state;
    char name[DV_ENGINE_NAME_BYTES];
    dv_error error;
    setenv("DV_MPI_PLUGIN", "./no-such-plugin.so", 1);
    assert_int_equal(dv_engine_name(name, &error), DV_ERROR_UNSUPPORTED);
    assert_true(strstr(error.text, "no-such-plugin.so") != NULL);
    assert_true(strstr(error.text, "scripts/setup mpi") != NULL);
    unsetenv("DV_MPI_PLUGIN");
}

static void test_launched(void **state) {
    (void)state;
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    assert_false(dv_world_launched());
    setenv("PMI_RANK", "0", 1);
    assert_true(dv_world_launched());
    unsetenv("PMI_RANK");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),     cmocka_unit_test(test_broadcast), cmocka_unit_test(test_agreement),
        cmocka_unit_test(test_timeout),  cmocka_unit_test(test_alone),     cmocka_unit_test(test_no_plugin),
        cmocka_unit_test(test_launched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
