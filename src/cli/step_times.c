/* What the operations of a step take on this machine: a few steps are done, and timed. */
#include "step_times.h"

#include "bench.h"
#include "cli.h"
#include "examples.h"

#include <stdlib.h>
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

/* ---- times of several steps ------------------------------------------------------------------ */

int cli_timing_new(const dv_plan *plan, int steps, cli_timing *timing) {
    size_t operations = count_operations(plan);
    double *seconds = calloc((size_t)steps * (operations + 1), sizeof *seconds);
    *timing = (cli_timing){.operations = operations, .steps = steps, .seconds = seconds};
    return seconds != NULL ? CLI_SUCCESS : cli_fail("no memory for times: free some");
}

void cli_timing_free(cli_timing *timing) {
    free(timing->seconds);
    *timing = (cli_timing){0};
}

double *cli_timing_step(const cli_timing *timing, int step) {
    return timing->seconds + (size_t)step * (timing->operations + 1);
}

void cli_timing_medians(cli_timing *timing, const dv_plan *plan, dv_step_times *times) {
    double values[CLI_MOST_TIMED_STEPS];
    for (size_t p = 0; p <= timing->operations; p++) {
        for (int i = 0; i < timing->steps; i++)
            values[i] = cli_timing_step(timing, i)[p];
        timing->seconds[p] = bench_median(values, timing->steps);
    }
    *times = (dv_step_times){
        .plan = plan, .seconds = timing->seconds, .update = timing->seconds[timing->operations], .batches = 1};
}

/* ---- a run that does nothing else ------------------------------------------------------------ */

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

/* The first step finds everything cold, and the second one takes its place. */
static int time_steps(dv_run *run, const cli_examples *examples, const cli_timing *timing) {
    dv_error error;
    uint64_t number = 0;
    for (int i = -1; i < timing->steps; i++, number++) {
        cli_examples_fill(examples, run);
        double *seconds = cli_timing_step(timing, i < 0 ? 0 : i);
        if (time_step(run, number, seconds, timing->operations, &error) != DV_OK)
            return cli_report(&error);
    }
    return CLI_SUCCESS;
}

int cli_step_times(dv_plan *plan, cli_timing *timing, dv_step_times *times) {
    cli_examples examples = {{NULL}};
    dv_error error;
    dv_run *run;
    int code = cli_timing_new(plan, CLI_TIMED_STEPS, timing);
    if (code != CLI_SUCCESS)
        return code;
    if (dv_run_new(plan, 1, &run, &error) != DV_OK)
        return cli_report(&error);
    code = cli_examples_make(run, &examples);
    if (code == CLI_SUCCESS)
        code = time_steps(run, &examples, timing);
    if (code == CLI_SUCCESS)
        cli_timing_medians(timing, plan, times);
    cli_examples_free(&examples);
    dv_run_free(run);
    return code;
}
