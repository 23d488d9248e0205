/* What the operations of a step take on this machine: a few steps are done, and timed. */
#include "step_times.h"

#include "bench.h"
#include "cli.h"
#include "examples.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static size_t count_operations(const dv_plan *plan) {
    size_t count = 0;
    while (dv_plan_operation_at(plan, count) != NULL)
        count++;
    return count;
}

/* A step whose operations go to seconds [count] and whose update, if it is a call of its own, goes behind them. */
static dv_status time_step(dv_run *run, uint64_t number, double *seconds, size_t count, dv_error *error) {
    const dv_step step = {.batch = number, .rate = 0.01, .update = number};
    dv_step_result result;
    dv_status status = dv_run_time_operations(run, seconds, error);
    if (status == DV_OK)
        status = dv_run_train(run, &step, &result, error);
    double begun = now();
    if (status == DV_OK && dv_run_gradients(run) == DV_GRADIENTS_KEPT) {
        status = dv_run_update(run, 0.01, number, error);
        seconds[count] = now() - begun;
    }
    return status;
}

static int time_steps(dv_run *run, const cli_examples *examples, double *steps[1 + CLI_TIMED_STEPS], size_t count) {
    dv_error error;
    for (uint64_t i = 0; i <= CLI_TIMED_STEPS; i++) {
        cli_examples_fill(examples, run);
        if (time_step(run, i, steps[i], count, &error) != DV_OK)
            return cli_report(&error);
    }
    return CLI_SUCCESS;
}

/* The first step is not counted. */
static void take_medians(double *const steps[1 + CLI_TIMED_STEPS], size_t count, double *medians) {
    for (size_t p = 0; p < count; p++) {
        double values[CLI_TIMED_STEPS];
        for (int i = 0; i < CLI_TIMED_STEPS; i++)
            values[i] = steps[1 + i][p];
        medians[p] = bench_median(values, CLI_TIMED_STEPS);
    }
}

/* steps [0] becomes the medians. */
static int measure(dv_run *run, double *steps[1 + CLI_TIMED_STEPS], size_t count) {
    cli_examples examples = {{NULL}};
    int code = cli_examples_make(run, &examples);
    if (code == CLI_SUCCESS)
        code = time_steps(run, &examples, steps, count);
    if (code == CLI_SUCCESS)
        take_medians(steps, count + 1, steps[0]);
    cli_examples_free(&examples);
    return code;
}

int cli_step_times(dv_plan *plan, dv_step_times *times) {
    size_t count = count_operations(plan);
    double *memory = calloc((1 + CLI_TIMED_STEPS) * (count + 1), sizeof *memory), *steps[1 + CLI_TIMED_STEPS];
    dv_error error;
    dv_run *run;
    *times = (dv_step_times){.plan = plan, .seconds = memory, .batches = 1};
    if (memory == NULL)
        return cli_fail("no memory for times: free some");
    for (size_t i = 0; i <= CLI_TIMED_STEPS; i++)
        steps[i] = memory + i * (count + 1);
    if (dv_run_new(plan, 1, &run, &error) != DV_OK)
        return cli_report(&error);
    int code = measure(run, steps, count);
    times->update = memory[count];
    dv_run_free(run);
    return code;
}
