/* division models: the networks there are, with their sizes. */
#include "cli.h"
#include "options.h"

#include <division/graph.h>
#include <division/models.h>
#include <division/tools/json.h>
#include <stdio.h>

/* What one image costs, and how many parameters there are. */
typedef struct sizes {
    size_t parameters;
    double none, division; /* activation bytes per image */
} sizes;

static dv_status activations(dv_graph *graph, const char *method, size_t batch, double *bytes, size_t *parameters,
                             dv_error *error) {
    dv_plan_options options = dv_plan_options_default();
    dv_plan *plan;
    options.method = method;
    dv_status status = dv_plan_new(graph, &options, &plan, error);
    if (status != DV_OK)
        return status;
    *bytes = (double)dv_plan_totals(plan).activations / (double)batch;
    *parameters = dv_plan_totals(plan).parameters / sizeof(float);
    dv_plan_free(plan);
    return DV_OK;
}

static dv_status measure(const dv_model *model, sizes *out, dv_error *error) {
    enum { BATCH = 4 };
    dv_graph *graph;
    dv_status status = dv_model_build(model->name, DV_F32, BATCH, 0, 0, &graph, error);
    if (status != DV_OK)
        return status;
    status = activations(graph, "none", BATCH, &out->none, &out->parameters, error);
    if (status == DV_OK)
        status = activations(graph, "division", BATCH, &out->division, &out->parameters, error);
    dv_graph_free(graph);
    return status;
}

static void print_json(const dv_model *model, const sizes *s) {
    dv_json json;
    dv_json_to_file(&json, stdout);
    dv_json_object(&json, NULL);
    dv_json_text(&json, "model", model->name);
    dv_json_unsigned(&json, "side", model->side);
    dv_json_unsigned(&json, "classes", model->classes);
    dv_json_unsigned(&json, "parameters", s->parameters);
    dv_json_number(&json, "activation_bytes_per_image", s->none);
    dv_json_number(&json, "activation_bytes_per_image_division", s->division);
    dv_json_end(&json);
    (void)dv_json_finish(&json, NULL); /* cli_finish tells */
}

static void print_row(const dv_model *model, const sizes *s) {
    char exact[CLI_BYTES_TEXT], packed[CLI_BYTES_TEXT];
    printf("%-16s %4zu %7zu %12zu %12s %12s   %s\n", model->name, model->side, model->classes, s->parameters,
           cli_bytes_text(s->none, exact), cli_bytes_text(s->division, packed), model->help);
    fflush(stdout);
}

int cli_models(int argc, char **argv) {
    int json = 0;
    const dv_option options[] = {
        {"json", NULL, "print one JSON object per model", CLI_FLAG(&json)},
        CLI_OPTIONS_END,
    };
    const cli_usage usage = {
        .command = "models",
        .summary = "Lists the networks, with parameters and, in f32, the activation bytes per image that\n"
                   "training keeps exactly (none) and packed (division).\n",
        .options = options};
    int code = cli_parse(&usage, argc, argv, NULL);
    if (code != CLI_CONTINUE)
        return code;
    if (!json)
        printf("%-16s %4s %7s %12s %12s %12s\n", "model", "side", "classes", "parameters", "none", "division");
    for (size_t i = 0; dv_model_at(i); i++) {
        sizes s = {0};
        dv_error error;
        if (measure(dv_model_at(i), &s, &error) != DV_OK)
            return cli_report(&error);
        if (json)
            print_json(dv_model_at(i), &s);
        else
            print_row(dv_model_at(i), &s);
    }
    return cli_finish();
}
