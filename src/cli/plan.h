/* The parts of `division plan`. */
#ifndef DV_CLI_PLAN_H
#define DV_CLI_PLAN_H

#include <division/graph.h>
#include <division/tools/json.h>

/* Prints the schedule of a plan: for people, or as entries of an open JSON object. */
void cli_print_schedule(const dv_plan *plan);
void cli_schedule_json(const dv_plan *plan, dv_json *json);

#endif
