/* division plan --operations: a step operation by operation, with what each of them touches. */
#include "cli.h"
#include "plan.h"

#include <stdbool.h>
#include <stdio.h>

/* The operation during which most is alive, the first of equals. */
static size_t peak_of(const dv_plan *plan) {
    size_t peak = 0;
    for (size_t i = 0; dv_plan_operation_at(plan, i); i++)
        if (dv_plan_operation_at(plan, i)->alive_bytes > dv_plan_operation_at(plan, peak)->alive_bytes)
            peak = i;
    return peak;
}

size_t cli_plan_crowded(const dv_plan *plan) {
    const dv_plan_operation *operation = dv_plan_operation_at(plan, peak_of(plan));
    return operation ? operation->alive_bytes : 0;
}

/* ---- for people ------------------------------------------------------------------------------ */

/* Of "forward conv1" and "output of conv1", which are cut there. */
enum { WHAT_COLUMNS = 60 };

/* Whether the operation has touched the same piece under another name, before its index-th. */
static bool is_in_place(const dv_plan *plan, size_t at, size_t index) {
    size_t piece = dv_plan_touched_at(plan, at, index)->piece;
    for (size_t i = 0; i < index; i++)
        if (dv_plan_touched_at(plan, at, i)->piece == piece)
            return true;
    return false;
}

static void print_touched(const dv_plan *plan, size_t at, size_t index) {
    const dv_plan_touched *touched = dv_plan_touched_at(plan, at, index);
    char what[WHAT_COLUMNS + 1], bytes[CLI_BYTES_TEXT];
    snprintf(what, sizeof what, "    %s of %s", touched->role, touched->owner);
    printf("%6s  %-*s %10s\n", "", WHAT_COLUMNS, what,
           is_in_place(plan, at, index) ? "in place" : cli_bytes_text((double)touched->bytes, bytes));
}

static void print_operation(const dv_plan *plan, size_t at, size_t peak) {
    const dv_plan_operation *operation = dv_plan_operation_at(plan, at);
    char what[WHAT_COLUMNS + 1], alive[CLI_BYTES_TEXT];
    snprintf(what, sizeof what, "%s %s", operation->kind, operation->subject);
    printf("%6zu  %-*s %10s %10s%s\n", at, WHAT_COLUMNS, what, "",
           cli_bytes_text((double)operation->alive_bytes, alive), at == peak ? "  peak" : "");
    for (size_t i = 0; i < operation->touched_count; i++)
        print_touched(plan, at, i);
}

void cli_print_schedule(const dv_plan *plan) {
    size_t peak = peak_of(plan);
    printf("at: position in the step; bytes: of the piece, in place: it is one of those above;\n"
           "alive: bytes of all pieces in use meanwhile, of which peak is the most\n\n");
    printf("%6s  %-*s %10s %10s\n", "at", WHAT_COLUMNS, "operation and its layer or value, pieces it touches", "bytes",
           "alive");
    for (size_t i = 0; dv_plan_operation_at(plan, i); i++)
        print_operation(plan, i, peak);
}

/* ---- for programs ---------------------------------------------------------------------------- */

static void touched_json(const dv_plan_touched *touched, dv_json *json) {
    dv_json_object(json, NULL);
    dv_json_text(json, "role", touched->role);
    dv_json_text(json, "owner", touched->owner);
    dv_json_unsigned(json, "bytes", touched->bytes);
    dv_json_unsigned(json, "piece", touched->piece);
    dv_json_end(json);
}

static void operation_json(const dv_plan *plan, size_t at, dv_json *json) {
    const dv_plan_operation *operation = dv_plan_operation_at(plan, at);
    dv_json_object(json, NULL);
    dv_json_unsigned(json, "at", at);
    dv_json_text(json, "operation", operation->kind);
    dv_json_text(json, "subject", operation->subject);
    dv_json_unsigned(json, "alive_bytes", operation->alive_bytes);
    dv_json_array(json, "touches");
    for (size_t i = 0; i < operation->touched_count; i++)
        touched_json(dv_plan_touched_at(plan, at, i), json);
    dv_json_end(json);
    dv_json_end(json);
}

void cli_schedule_json(const dv_plan *plan, dv_json *json) {
    size_t peak = peak_of(plan);
    dv_json_unsigned(json, "peak_at", peak);
    dv_json_unsigned(json, "peak_bytes", dv_plan_operation_at(plan, peak)->alive_bytes);
    dv_json_array(json, "schedule");
    for (size_t i = 0; dv_plan_operation_at(plan, i); i++)
        operation_json(plan, i, json);
    dv_json_end(json);
}
