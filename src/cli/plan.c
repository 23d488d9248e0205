/* division plan: what a training will take, layer by layer, before it starts. */
#include "cli.h"
#include "options.h"

#include <division/graph.h>
#include <division/json.h>
#include <division/models.h>
#include <stdio.h>

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
        printf("%-24s %-24s %-14s %-17s %10s %6.2f %10s\n", row->layer, row->kind,
               shape_text(&row->output, shape, sizeof shape), row->keeper,
               cli_bytes_text((double)row->kept_bytes, bytes), row->bits_per_element,
               cli_bytes_text((double)row->saved_bytes, saved));
    }
}

static void print_totals(const dv_plan_summary *t) {
    char text[CLI_BYTES_TEXT];
    printf("\n");
    cli_line("parameters", "%s", cli_bytes_text((double)t->parameters, text));
    cli_line("gradients", "%s", cli_bytes_text((double)t->gradients, text));
    cli_line("optimizer", "%s", cli_bytes_text((double)t->optimizer, text));
    cli_line("statistics", "%s", cli_bytes_text((double)t->buffers, text));
    cli_line("activations", "%s", cli_bytes_text((double)t->activations, text));
    cli_line("workspace", "%s", cli_bytes_text((double)t->workspace, text));
    cli_line("planned", "%s", cli_bytes_text((double)t->planned, text));
    cli_line("available", "%s", cli_bytes_text((double)dv_memory_available(), text));
}

static void print_json(const dv_plan *plan, const char *model, size_t batch, const char *method,
                       const char *precision) {
    dv_plan_summary t = dv_plan_totals(plan);
    dv_json json;
    dv_json_to_file(&json, stdout);
    dv_json_object(&json, NULL);
    dv_json_text(&json, "model", model);
    dv_json_unsigned(&json, "batch", batch);
    dv_json_text(&json, "method", method);
    dv_json_text(&json, "precision", precision);
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
        dv_json_end(&json);
    }
    dv_json_end(&json);
    dv_json_unsigned(&json, "parameter_bytes", t.parameters);
    dv_json_unsigned(&json, "gradient_bytes", t.gradients);
    dv_json_unsigned(&json, "optimizer_bytes", t.optimizer);
    dv_json_unsigned(&json, "statistics_bytes", t.buffers);
    dv_json_unsigned(&json, "activation_bytes", t.activations);
    dv_json_unsigned(&json, "workspace_bytes", t.workspace);
    dv_json_unsigned(&json, "planned_bytes", t.planned);
    dv_json_end(&json);
    (void)dv_json_finish(&json, NULL); /* cli_finish tells */
}

int cli_plan(int argc, char **argv) {
    static const char *const precisions[] = {"f32", "bf16", NULL};
    const char *model = "resnet50", *method = "division";
    int batch = 32, classes = 0, side = 0, precision = 0, json = 0;
    const cli_option options[] = {
        {"model", "MODEL", "the network: see 'division models'", CLI_TEXT(&model)},
        {"batch", "N", "images per step", CLI_INTEGER(&batch, 1, 1 << 20)},
        {"method", "METHOD", "how values are kept: none, division[:block=8,bits=2,...]", CLI_TEXT(&method)},
        {"precision", "TYPE", "of values: f32 or bf16", CLI_WORD(&precision, precisions)},
        {"classes", "N", "classes, 0 for the model's own", CLI_INTEGER(&classes, 0, 1 << 20)},
        {"side", "N", "side of the images, 0 for the model's own", CLI_INTEGER(&side, 0, 8192)},
        {"json", NULL, "print one JSON object", CLI_FLAG(&json)},
        CLI_OPTIONS_END,
    };
    const cli_usage usage = {
        .command = "plan",
        .summary = "Prints what training a network takes: what each layer keeps for the backward pass, how\n"
                   "and in how many bytes, then the memory in all. Nothing is run.\n",
        .options = options};
    int code = cli_parse(&usage, argc, argv, NULL);
    if (code != CLI_CONTINUE)
        return code;
    dv_plan_options plan_options = dv_plan_options_default();
    plan_options.method = method;
    dv_graph *graph;
    dv_plan *plan;
    dv_error error;
    dv_type type = precision ? DV_BF16 : DV_F32;
    if (dv_model_build(model, type, (size_t)batch, (size_t)classes, (size_t)side, &graph, &error) != DV_OK)
        return cli_report(&error);
    if (dv_plan_new(graph, &plan_options, &plan, &error) != DV_OK) {
        dv_graph_free(graph);
        return cli_report(&error);
    }
    if (json) {
        print_json(plan, model, (size_t)batch, method, precisions[precision]);
    } else {
        dv_plan_summary totals = dv_plan_totals(plan);
        print_rows(plan);
        print_totals(&totals);
    }
    dv_plan_free(plan);
    dv_graph_free(graph);
    return cli_finish();
}
