/* division plan: what a training will take, layer by layer, before it starts. */
#include "plan.h"
#include "cli.h"
#include "options.h"
#include "recipe.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { DETAILS_BYTES = 4096 };

static const char USUAL_LATENCY[] = "50us";

typedef struct plan_settings {
    dv_options options;     /* of the training */
    dv_dataset_shape shape; /* of its data; zeros: the model's own side and classes */
    int elsewhere, operations, frontier, json;
    int fitted;                      /* the batch to the data */
    dv_chosen chosen;                /* by --memory; zeros: nothing was */
    const char *bandwidth, *latency; /* of the network between machines; NULL: nothing is predicted */
} plan_settings;

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

/* `crowded` is what no placement can be below; `whole` is of the plan in which nothing is frozen; `available` is
 * SIZE_MAX if it does not matter. */
static void print_totals(const dv_plan_summary *t, size_t crowded, const dv_plan_summary *whole, size_t available) {
    char text[CLI_BYTES_TEXT];
    if (t->frozen > 0)
        print_frozen(t, whole);
    cli_line("parameters", "%s", cli_bytes_text((double)t->parameters, text));
    cli_line("gradients", "%s", cli_bytes_text((double)t->gradients, text));
    cli_line("optimizer", "%s", cli_bytes_text((double)t->optimizer, text));
    cli_line("statistics", "%s", cli_bytes_text((double)t->buffers, text));
    cli_line("activations", "%s", cli_bytes_text((double)t->activations, text));
    cli_line("workspace", "%s", cli_bytes_text((double)t->workspace, text));
    cli_line("planned", "%s", cli_bytes_text((double)t->planned, text));
    cli_line("lower bound", "%s", cli_bytes_text((double)crowded, text));
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
    dv_json_text(&json, "model", chosen->options.model);
    dv_json_unsigned(&json, "batch", chosen->options.batch);
    dv_json_text(&json, "method", chosen->options.method);
    dv_json_text(&json, "precision", dv_type_name((dv_type)chosen->options.precision));
    dv_json_text(&json, "freeze", chosen->options.freeze);
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
    dv_json_unsigned(&json, "lower_bound_bytes", cli_plan_crowded(plan));
    dv_json_unsigned(&json, "spilled_bytes", t.spilled);
    dv_json_unsigned(&json, "activation_bytes_if_not_frozen", whole->activations);
    dv_json_unsigned(&json, "planned_bytes_if_not_frozen", whole->planned);
    if (available != SIZE_MAX)
        dv_json_unsigned(&json, "available_bytes", available);
    if (chosen->chosen.memory > 0)
        plan_chosen_json(&chosen->chosen, &json);
    if (chosen->operations)
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
        (chosen->operations ? cli_print_schedule : print_rows)(plan);
        printf("\n");
        if (chosen->fitted)
            cli_line("batch", "%zu: the data has %zu images (--batch)", chosen->options.batch,
                     chosen->shape.images[DV_TRAIN]);
        print_totals(&totals, cli_plan_crowded(plan), whole, available);
        if (chosen->chosen.memory > 0)
            plan_print_chosen(&chosen->options, &chosen->chosen);
    }
    return check_fit(totals.planned, available);
}

/* What a plan with these options takes. */
static dv_status measure(const dv_options *options, const dv_dataset_shape *shape, dv_plan_summary *totals,
                         dv_error *error) {
    dv_graph *graph;
    dv_plan *plan;
    dv_status status = dv_options_plan(options, shape, &graph, &plan, error);
    if (status != DV_OK)
        return status;
    *totals = dv_plan_totals(plan);
    dv_plan_free(plan);
    dv_graph_free(graph);
    return DV_OK;
}

/* Prints the plan, next to what it would take if nothing were frozen. */
static int make_and_print(const plan_settings *chosen) {
    dv_options trained = chosen->options;
    dv_plan_summary whole;
    dv_graph *graph;
    dv_plan *plan;
    dv_error error;
    if (dv_options_plan(&chosen->options, &chosen->shape, &graph, &plan, &error) != DV_OK)
        return cli_report(&error);
    whole = dv_plan_totals(plan);
    trained.freeze[0] = '\0';
    dv_status status = chosen->options.freeze[0] != '\0' ? measure(&trained, &chosen->shape, &whole, &error) : DV_OK;
    int code = status == DV_OK ? print_plan(plan, &whole, chosen) : cli_report(&error);
    dv_plan_free(plan);
    dv_graph_free(graph);
    return code;
}

/* ---- the call ------------------------------------------------------------------------------ */

static int parse(plan_settings *c, int argc, char **argv, cli_operands *operands) {
    static const cli_section sections[] = {{"Methods", dv_method_name_at, dv_method_help_at},
                                           {"Data sets", dv_dataset_usage_at, dv_dataset_help_at},
                                           {"Optimizers", dv_optimizer_name_at, dv_optimizer_help_at},
                                           {0}};
    const dv_option own[] = {
        {"elsewhere", NULL, "for another machine: what is available here does not matter", CLI_FLAG(&c->elsewhere)},
        {"ranks", "N", "for so many processes that train together: gradients lie in buckets",
         CLI_COUNT(&c->options.ranks, 1, 65536)},
        {"bandwidth", "RATE",
         "predict a step of 1 to 1,024 machines that send so much each, as 10Gb/s: a few steps are timed here",
         CLI_TEXT(&c->bandwidth)},
        {"latency", "TIME", "... whose messages take so long, as 50us", CLI_TEXT(&c->latency)},
        {"frontier", NULL, "what every budget comes to, from the least memory to the most, instead of layers",
         CLI_FLAG(&c->frontier)},
        {"operations", NULL, "a step operation by operation, instead of layers", CLI_FLAG(&c->operations)},
        {CLI_JSON, NULL, "print one JSON object", CLI_FLAG(&c->json)},
        CLI_OPTIONS_END,
    };
    dv_option table[CLI_MOST_TRAINING_OPTIONS + sizeof own / sizeof *own];
    char details[DETAILS_BYTES];
    const cli_usage usage = {
        .command = "plan",
        .operands = "[RECIPE]",
        .summary = "Prints what training a network takes: what each layer keeps for the backward pass, how\n"
                   "and in how many bytes, then the memory in all. Nothing is run, but for a few steps with\n"
                   "--memory, --frontier and --bandwidth. Ends with 1 if it is more than is available.\n"
                   "Recipes and options are those of 'division train'; where no data is\n"
                   "named, side and classes are the model's own.\n",
        .details = details,
        .options = table,
        .maximum_operands = 1};
    memcpy(table + cli_training_options(&c->options, NULL, table), own, sizeof own);
    cli_describe(sections, details, sizeof details);
    return cli_parse(&usage, argc, argv, operands);
}

/* The defaults of a plan without recipe and data: a network as people know it. */
static plan_settings usual(void) {
    plan_settings made = {.options = dv_options_default(), .latency = USUAL_LATENCY};
    (void)dv_options_set(&made.options, "model", "resnet50", NULL);
    (void)dv_options_set(&made.options, "batch", "32", NULL);
    made.options.data[0] = '\0';
    return made;
}

/* Takes side and classes from the data, if there is some, and a batch that it has. A plan can be made before the data
 * is there. */
static int look_at_data(plan_settings *c) {
    dv_dataset *data;
    dv_error error;
    if (c->options.data[0] == '\0')
        return CLI_CONTINUE;
    if (dv_dataset_open_with(c->options.data, &c->options.split, &data, &error) != DV_OK) {
        cli_fail("%s; the plan has the side and the classes of --side and --classes, or the model's own", error.text);
        return CLI_CONTINUE;
    }
    c->shape = dv_dataset_describe(data);
    dv_dataset_close(data);
    size_t batch = c->options.batch;
    if (dv_options_fit_batch(&c->options, &c->shape, &error) != DV_OK)
        return cli_report(&error);
    c->fitted = c->options.batch != batch;
    return CLI_CONTINUE;
}

/* Reads the recipe, if there is one, and the command line over it, with the defaults of a training. */
static int read_training(plan_settings *c, const cli_operands *operands, int argc, char **argv) {
    *c = (plan_settings){.options = dv_options_default(), .latency = USUAL_LATENCY};
    int code = operands->count > 0 ? cli_read_recipe(operands->at[0], &c->options) : CLI_CONTINUE;
    return code == CLI_CONTINUE ? parse(c, argc, argv, NULL) : code;
}

int cli_plan(int argc, char **argv) {
    static plan_settings c;
    cli_operands operands;
    c = usual();
    int code = parse(&c, argc, argv, &operands);
    if (code == CLI_CONTINUE && (operands.count > 0 || c.options.data[0] != '\0'))
        code = read_training(&c, &operands, argc, argv);
    if (code == CLI_CONTINUE)
        code = look_at_data(&c);
    if (code != CLI_CONTINUE)
        return code;
    if (c.bandwidth != NULL)
        return cli_plan_scaling(&c.options, &c.shape, &(cli_plan_network){c.bandwidth, c.latency, c.json});
    if (c.frontier)
        return plan_frontier(&c.options, c.json);
    if (c.options.memory[0] != '\0')
        code = plan_choose(&c.options, c.elsewhere, &c.chosen);
    return code == CLI_CONTINUE ? make_and_print(&c) : code;
}
