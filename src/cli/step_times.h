/* What the operations of a step take on this machine. */
#ifndef DV_CLI_STEP_TIMES_H
#define DV_CLI_STEP_TIMES_H

#include <division/tools/scaling.h>

enum { CLI_TIMED_STEPS = 3, CLI_MOST_TIMED_STEPS = 101 };

/* Times of some steps, of which each operation's median is told. */
typedef struct cli_timing {
    size_t operations;
    int steps;
    double *seconds; /* [steps][operations + 1]: the last is of an update that is a call of its own */
} cli_timing;

/* Room for the times of steps of a plan. Exit codes; cli_timing_free takes what failed, too. */
int cli_timing_new(const dv_plan *plan, int steps, cli_timing *timing);
void cli_timing_free(cli_timing *timing);

/* Where a step's times go: what dv_run_time_operations takes. Until the timing is freed. */
double *cli_timing_step(const cli_timing *timing, int step);

/* The medians. `times` points into the timing, whose first step they take the place of. */
void cli_timing_medians(cli_timing *timing, const dv_plan *plan, dv_step_times *times);

/* Trains a run of a plan for one process for a step that finds everything cold and CLI_TIMED_STEPS that count, and
 * takes the medians of these. `times` points into the timing, which is the caller's to free, also after a failure. Exit
 * codes. */
int cli_step_times(dv_plan *plan, cli_timing *timing, dv_step_times *times);

#endif
