/* division plan: what a training will take, layer by layer, before it starts. */
#include "plan.h"
#include "cli.h"
#include "options.h"

#include <division/models.h>
#include <stdint.h>
#include <stdio.h>

typedef struct plan_settings {
    const char *model, *method, *freeze;
    int batch, classes, side, precision, elsewhere, schedule, json;
} plan_settings;

static const char *const precisions[] = {"f32", "bf16", NULL};

/* "64x56x56". */
static const char *shape_text(const dv_map *map, char *text, size_t bytes) {
    int length = snprintf(text, bytes, "%zu", map->channels);
    for (int d = 0; d < map->rank; d++)
        length += snprintf(text + length, bytes - (size_t)length, "x%zu", map->sides[d]);
    return text;
}

static void print_rows(const dv_plan *plan) {
    char shape[64], bytes[CLI_BYTES_TEXT], saved[CLI_BYTES_TEXT];
    printf("%-24s %-24s %-14s %-17s %10s %6s %10s\n", "layer", "kind", "output", "kept", "bytes", "bits", "saved");
    for (size_t i = 0; dv_plan_row_at(plan, i); i++) {
        const dv_plan_row *row = dv_plan_row_at(plan, i);
        printf("%-24s %-24s %-14s %-17s %10s %6.2f %10s%s\n", row->layer, row->kind,
               shape_text(&row->output, shape, sizeof shape), row->keeper,
               cli_bytes_text((double)row->kept_bytes, bytes), row->bits_per_element,
               cli_bytes_text((double)row->saved_bytes, saved), row->frozen_bytes > 0 ? "  frozen" : "");
    }
}

/* What is frozen, and what a step would keep and take if nothing were. */
static void print_frozen(const dv_plan_summary *t, const dv_plan_summary *whole) {
    char activations[CLI_BYTES_TEXT], planned[CLI_BYTES_TEXT];
    cli_line("frozen", "%zu of %zu parameters; without: %s activations, %s planned", t->frozen / sizeof(float),
             t->parameters / sizeof(float), cli_bytes_text((double)whole->activations, activations),
             cli_bytes_text((double)whole->planned, planned));
}

/* `whole` is of the plan in which nothing is frozen; `available` is SIZE_MAX if it does not matter. */
static void print_totals(const dv_plan_summary *t, const dv_plan_summary *whole, size_t available) {
    char text[CLI_BYTES_TEXT];
    printf("\n");
    if (t->frozen > 0)
        print_frozen(t, whole);
    cli_line("parameters", "%s", cli_bytes_text((double)t->parameters, text));
    cli_line("gradients", "%s", cli_bytes_text((double)t->gradients, text));
    cli_line("optimizer", "%s", cli_bytes_text((double)t->optimizer, text));
    cli_line("statistics", "%s", cli_bytes_text((double)t->buffers, text));
    cli_line("activations", "%s", cli_bytes_text((double)t->activations, text));
    cli_line("workspace", "%s", cli_bytes_text((double)t->workspace, text));
    cli_line("planned", "%s", cli_bytes_text((double)t->planned, text));
    if (t->spilled > 0)
        cli_line("in a file", "%s", cli_bytes_text((double)t->spilled, text));
    if (available != SIZE_MAX)
        cli_line("available", "%s", cli_bytes_text((double)available, text));
}

static void print_json(const dv_plan *plan, const plan_settings *chosen, const dv_plan_summary *whole,
                       size_t available) {
    dv_plan_summary t = dv_plan_totals(plan);
    dv_json json;
    dv_json_to_file(&json, stdout);
    dv_json_object(&json, NULL);
    dv_json_text(&json, "model", chosen->model);
    dv_json_integer(&json, "batch", chosen->batch);
    dv_json_text(&json, "method", chosen->method);
    dv_json_text(&json, "precision", precisions[chosen->precision]);
    dv_json_text(&json, "freeze", chosen->freeze != NULL ? chosen->freeze : "");
    dv_json_array(&json, "layers");
    for (size_t i = 0; dv_plan_row_at(plan, i); i++) {
        const dv_plan_row *row = dv_plan_row_at(plan, i);
        char shape[64];
        dv_json_object(&json, NULL);
        dv_json_text(&json, "layer", row->layer);
        dv_json_text(&json, "kind", row->kind);
        dv_json_text(&json, "output", shape_text(&row->output, shape, sizeof shape));
        dv_json_text(&json, "kept", row->keeper);
        dv_json_unsigned(&json, "kept_bytes", row->kept_bytes);
        dv_json_number(&json, "bits_per_element", row->bits_per_element);
        dv_json_unsigned(&json, "saved_bytes", row->saved_bytes);
        dv_json_unsigned(&json, "frozen_bytes", row->frozen_bytes);
        dv_json_end(&json);
    }
    dv_json_end(&json);
    dv_json_unsigned(&json, "parameter_bytes", t.parameters);
    dv_json_unsigned(&json, "frozen_bytes", t.frozen);
    dv_json_unsigned(&json, "gradient_bytes", t.gradients);
    dv_json_unsigned(&json, "optimizer_bytes", t.optimizer);
    dv_json_unsigned(&json, "statistics_bytes", t.buffers);
    dv_json_unsigned(&json, "activation_bytes", t.activations);
    dv_json_unsigned(&json, "workspace_bytes", t.workspace);
    dv_json_unsigned(&json, "planned_bytes", t.planned);
    dv_json_unsigned(&json, "spilled_bytes", t.spilled);
    dv_json_unsigned(&json, "activation_bytes_if_not_frozen", whole->activations);
    dv_json_unsigned(&json, "planned_bytes_if_not_frozen", whole->planned);
    if (available != SIZE_MAX)
        dv_json_unsigned(&json, "available_bytes", available);
    if (chosen->schedule)
        cli_schedule_json(plan, &json);
    dv_json_end(&json);
    (void)dv_json_finish(&json, NULL); /* cli_finish tells */
}

/* Says so if the plan takes more than there is. */
static int check_fit(size_t planned, size_t available) {
    char need[CLI_BYTES_TEXT], have[CLI_BYTES_TEXT];
    if (planned <= available)
        return cli_finish();
    return cli_fail("it does not fit: %s planned, %s available: use a smaller batch or a method that keeps less, or "
                    "--elsewhere to plan for another machine",
                    cli_bytes_text((double)planned, need), cli_bytes_text((double)available, have));
}

static int print_plan(const dv_plan *plan, const dv_plan_summary *whole, const plan_settings *chosen) {
    dv_plan_summary totals = dv_plan_totals(plan);
    size_t available = chosen->elsewhere ? SIZE_MAX : dv_memory_available();
    if (chosen->json) {
        print_json(plan, chosen, whole, available);
    } else {
        (chosen->schedule ? cli_print_schedule : print_rows)(plan);
        print_totals(&totals, whole, available);
    }
    return check_fit(totals.planned, available);
}

/* The plan, and what another of the same graph takes in which nothing is frozen. */
static dv_status make_plans(dv_graph *graph, const plan_settings *chosen, dv_plan **plan, dv_plan_summary *whole,
                            dv_error *error) {
    dv_plan_options options = dv_plan_options_default();
    options.method = chosen->method;
    dv_status status = dv_plan_new(graph, &options, plan, error);
    if (status != DV_OK)
        return status;
    *whole = dv_plan_totals(*plan);
    if (chosen->freeze == NULL)
        return DV_OK;
    dv_plan_free(*plan);
    options.freeze = chosen->freeze;
    return dv_plan_new(graph, &options, plan, error);
}

static int make_and_print(const plan_settings *chosen) {
    dv_plan_summary whole;
    dv_graph *graph;
    dv_plan *plan;
    dv_error error;
    if (dv_model_build(chosen->model, chosen->precision ? DV_BF16 : DV_F32, (size_t)chosen->batch,
                       (size_t)chosen->classes, (size_t)chosen->side, &graph, &error) != DV_OK)
        return cli_report(&error);
    dv_status status = make_plans(graph, chosen, &plan, &whole, &error);
    int code = status == DV_OK ? print_plan(plan, &whole, chosen) : cli_report(&error);
    if (status == DV_OK)
        dv_plan_free(plan);
    dv_graph_free(graph);
    return code;
}

int cli_plan(int argc, char **argv) {
    plan_settings c = {.model = "resnet50", .method = "division", .batch = 32};
    const dv_option options[] = {
        {"model", "MODEL", "the network: see 'division models'", CLI_TEXT(&c.model)},
        {"batch", "N", "images per step", CLI_INTEGER(&c.batch, 1, 1 << 20)},
        {"method", "METHOD", "how values are kept: none, division[:block=8,bits=2,...]", CLI_TEXT(&c.method)},
        {"freeze", "GLOBS", "layers or parameters that are not trained: conv1,bn1,'layer[12]'", CLI_TEXT(&c.freeze)},
        {"precision", "TYPE", "of values: f32 or bf16", CLI_WORD(&c.precision, precisions)},
        {"classes", "N", "classes, 0 for the model's own", CLI_INTEGER(&c.classes, 0, 1 << 20)},
        {"side", "N", "side of the images, 0 for the model's own", CLI_INTEGER(&c.side, 0, 8192)},
        {"elsewhere", NULL, "for another machine: what is available here does not matter", CLI_FLAG(&c.elsewhere)},
        {"schedule", NULL, "a step operation by operation, instead of layers", CLI_FLAG(&c.schedule)},
        {"json", NULL, "print one JSON object", CLI_FLAG(&c.json)},
        CLI_OPTIONS_END,
    };
    const cli_usage usage = {
        .command = "plan",
        .summary = "Prints what training a network takes: what each layer keeps for the backward pass, how\n"
                   "and in how many bytes, then the memory in all. Nothing is run. Ends with 1 if it is more\n"
                   "than is available.\n",
        .options = options};
    int code = cli_parse(&usage, argc, argv, NULL);
    return code == CLI_CONTINUE ? make_and_print(&c) : code;
}
