/* The parts of `division plan`. */
#ifndef DV_CLI_PLAN_H
#define DV_CLI_PLAN_H

#include <division/graph.h>
#include <division/options.h>
#include <division/tools/json.h>

/* Prints the schedule of a plan: for people, or as entries of an open JSON object. */
void cli_print_schedule(const dv_plan *plan);
void cli_schedule_json(const dv_plan *plan, dv_json *json);

/* The most bytes that are in use at one moment: no placement of the same pieces takes less. */
size_t cli_plan_crowded(const dv_plan *plan);

/* The network between machines, as the command line has it. */
typedef struct cli_plan_network {
    const char *bandwidth, *latency; /* NULL for bandwidth: none */
    int as_json;
} cli_plan_network;

/* Trains a few steps and prints what a step takes on so many machines. Exit codes. */
int cli_plan_scaling(const dv_options *options, const dv_dataset_shape *shape, const cli_plan_network *network);

/* plan_budget.c: chooses the method by --memory, and prints what was chosen. Returns CLI_CONTINUE or an exit code. */
int plan_choose(dv_options *options, int elsewhere, dv_chosen *chosen);
void plan_print_chosen(const dv_options *options, const dv_chosen *chosen);
void plan_chosen_json(const dv_chosen *chosen, dv_json *json);

/* Prints what every budget comes to. An exit code. */
int plan_frontier(const dv_options *options, int as_json);

#endif
