/* What division/threads.h promises to a child of a program that uses the library. Each case forks twice: the first
 * process must not have used the library, nor anything that leaves threads behind. A child that hangs is ended by its
 * alarm. */
#include "check.h"

#include <division/models.h>
#include <division/threads.h>
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCH = 4, SECONDS = 120 };

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DV_THREAD_SANITIZER
#endif
#endif

/* Ends this process, which is no test of cmocka's any more, if something is wrong. */
static void need(int truth) {
    if (!truth)
        _exit(1);
}

static dv_run *new_run(void) {
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
    const dv_plan_options options = {.method = "division"};
    need(dv_model_build("resnet20", DV_F32, BATCH, 10, 32, &graph, NULL) == DV_OK);
    need(dv_plan_new(graph, &options, &plan, NULL) == DV_OK);
    need(dv_run_new(plan, 1, &run, NULL) == DV_OK);
    dv_plan_free(plan);
    dv_graph_free(graph);
    return run;
}

static void step(dv_run *run) {
    size_t count = dv_map_elements(dv_run_input_map(run));
    dv_step_result result;
    for (size_t i = 0; i < count; i++)
        ((float *)dv_run_input(run))[i] = (float)(i % 17) / 17;
    memset(dv_run_labels(run), 0, BATCH * sizeof(int32_t));
    need(dv_run_train(run, &(dv_step){.batch = 1}, &result, NULL) == DV_OK);
}

/* Runs `body` in a child; true if that ends well. */
static int ends_well(void (*body)(void)) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(SECONDS);
        body();
        _exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void train_anew(void) {
    (void)dv_set_threads(2, NULL);
    step(new_run());
}

static void train_anew_with_one_thread(void) {
    need(dv_set_threads(1, NULL) == DV_OK);
    step(new_run());
}

static dv_run *of_the_parent;

static void train_on(void) {
    step(of_the_parent);
}

/* ---- the cases ----------------------------------------------------------------------------- */

static void parent_forks_first(void) {
    need(ends_well(train_anew));
    train_anew();
}

static void parent_pauses_openmp(void) {
    need(dv_set_threads(2, NULL) == DV_OK);
    of_the_parent = new_run();
    step(of_the_parent);
    need(omp_pause_resource_all(omp_pause_soft) == 0);
    need(ends_well(train_on));
    need(
        ends_well(train_anew)); /* the parent has not gone on: it need not pause again, and with LLVM's OpenMP cannot */
    step(of_the_parent);
}

static void child_uses_one_thread(void) {
    train_anew();
    need(ends_well(train_anew_with_one_thread));
    train_anew();
}

static void a_child_of_a_program_that_forks_first(void **state) {
    (void)state;
    assert_true(ends_well(parent_forks_first));
}

static void a_child_behind_a_pause(void **state) {
    (void)state;
    assert_true(ends_well(parent_pauses_openmp));
}

static void a_child_with_one_thread(void **state) {
    (void)state;
    assert_true(ends_well(child_uses_one_thread));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_of_a_program_that_forks_first),
        cmocka_unit_test(a_child_behind_a_pause),
        cmocka_unit_test(a_child_with_one_thread),
    };
#if defined(DV_THREAD_SANITIZER)
    puts("left out: the thread sanitizer does not go on after a fork with threads");
    (void)tests;
    return 0;
#else
    return cmocka_run_group_tests(tests, NULL, NULL);
#endif
}
