/* What the operations of a step take on this machine. */
#ifndef DV_CLI_STEP_TIMES_H
#define DV_CLI_STEP_TIMES_H

#include <division/tools/scaling.h>

enum { CLI_TIMED_STEPS = 3 };

/* Trains a run of a plan for one process for a step that finds everything cold and CLI_TIMED_STEPS that count. `times`
 * gets the median of each operation over these. Its array is the caller's to free(), also after a failure. Exit codes.
 */
int cli_step_times(dv_plan *plan, dv_step_times *times);

#endif
