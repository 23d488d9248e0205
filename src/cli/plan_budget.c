/* division plan --memory and --frontier: what a memory budget comes to. */
#include "plan.h"

#include "cli.h"
#include "live.h"
#include "options.h"

#include <division/tools/json.h>

#include <stdio.h>
#include <string.h>

/* The data of the options, or NULL where there is none: then images are made up. */
static dv_dataset *open_data(const dv_options *options) {
    dv_dataset *data = NULL;
    if (options->data[0] != '\0' && dv_dataset_open_with(options->data, &options->split, &data, NULL) != DV_OK)
        return NULL;
    return data;
}

static const char *images_text(int made_up) {
    return made_up ? "made up, because no data is named" : "of the data";
}

/* ---- one budget ---------------------------------------------------------------------------- */

int plan_choose(dv_options *options, int elsewhere, dv_chosen *chosen) {
    dv_error error;
    size_t memory;
    dv_status status = elsewhere ? DV_OK : dv_options_memory(options, &memory, &error);
    dv_dataset *data = open_data(options);
    cli_live line = cli_live_choosing(0);
    if (status == DV_OK)
        status = dv_options_choose(options, data, chosen, &error);
    cli_live_wipe(&line);
    dv_dataset_close(data);
    return status == DV_OK ? CLI_CONTINUE : cli_report(&error);
}

void plan_print_chosen(const dv_options *options, const dv_chosen *c) {
    char memory[CLI_BYTES_TEXT], planned[CLI_BYTES_TEXT], beside[CLI_BYTES_TEXT], all[CLI_BYTES_TEXT];
    printf("\n");
    cli_line("memory", "%s, of which at most %s: %s planned, %s beside", cli_bytes_text((double)c->memory, memory),
             cli_bytes_text((double)(c->planned + c->beside), all), cli_bytes_text((double)c->planned, planned),
             cli_bytes_text((double)c->beside, beside));
    cli_line("none", "%s planned", cli_bytes_text((double)c->none_planned, planned));
    cli_line("noise", "%.3g of the batch's variance, predicted; published division: %.3g", c->noise, c->division_noise);
    cli_line("time", "%.3g s a step, predicted: %.2f of that of none", c->seconds, c->seconds / c->none_seconds);
    cli_line("images", "%s", images_text(options->data[0] == '\0'));
    if (options->batch_auto)
        cli_line("batch", "%zu images, %zu batches a step", options->batch, options->accumulate);
    cli_line("method", "%s", options->method);
}

void plan_chosen_json(const dv_chosen *c, dv_json *json) {
    dv_json_unsigned(json, "memory_bytes", c->memory);
    dv_json_unsigned(json, "beside_bytes", c->beside);
    dv_json_number(json, "noise", c->noise);
    dv_json_number(json, "division_noise", c->division_noise);
    dv_json_number(json, "seconds", c->seconds);
    dv_json_number(json, "none_seconds", c->none_seconds);
    dv_json_unsigned(json, "none_planned_bytes", c->none_planned);
}

/* ---- the curve ----------------------------------------------------------------------------- */

/* "exact 12, recomputed 16, ...": how many values each way has. */
static const char *ways_text(const char *method, char *text, size_t bytes) {
    static const struct {
        char letter;
        const char *name;
    } ways[] = {{'x', "exact"},  {'r', "recomputed"}, {'h', "8 bits"},   {'d', "4 bits"},
                {'b', "2 bits"}, {'a', "1 bit"},      {'w', "lean 255"}, {'n', "lean 15"},
                {'m', "lean 7"}, {'l', "lean 3"},     {'p', "replayed"}, {'s', "spilled"}};
    const char *letters = strchr(method, ':');
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; letters != NULL && i < sizeof ways / sizeof *ways; i++) {
        int count = 0;
        for (const char *at = letters; *at != '\0'; at++)
            count += *at == ways[i].letter;
        if (count > 0 && length < bytes)
            length +=
                (size_t)snprintf(text + length, bytes - length, "%s%d %s", length > 0 ? ", " : "", count, ways[i].name);
    }
    return text;
}

static void print_point(const dv_budget_point *p, size_t beside, double none) {
    char all[CLI_BYTES_TEXT], planned[CLI_BYTES_TEXT], ways[256];
    printf("%10s %10s %10.3g %6.3f  %s\n", cli_bytes_text((double)dv_memory_needed(p->planned, beside), all),
           cli_bytes_text((double)p->planned, planned), p->noise, p->seconds / none,
           ways_text(p->method, ways, sizeof ways));
}

static void print_curve(const dv_budget *budget, size_t beside, const dv_dataset *data) {
    const dv_budget_point *p;
    double none = dv_budget_none(budget)->seconds;
    printf("%10s %10s %10s %6s  %s\n", "memory", "planned", "noise", "time", "values");
    for (size_t i = 0; (p = dv_budget_point_at(budget, i)) != NULL; i++)
        print_point(p, beside, none);
    printf("\n");
    cli_line("division", "noise %.3g, time %.3f", dv_budget_division(budget)->noise,
             dv_budget_division(budget)->seconds / none);
    cli_line("images", "%s", images_text(data == NULL));
}

static void point_json(const char *name, const dv_budget_point *p, size_t beside, dv_json *json) {
    dv_json_object(json, name);
    dv_json_unsigned(json, "memory_bytes", dv_memory_needed(p->planned, beside));
    dv_json_unsigned(json, "planned_bytes", p->planned);
    dv_json_number(json, "noise", p->noise);
    dv_json_number(json, "seconds", p->seconds);
    dv_json_text(json, "method", p->method);
    dv_json_end(json);
}

static void curve_json(const dv_options *options, const dv_budget *budget, size_t beside, const dv_dataset *data) {
    const dv_budget_point *p;
    dv_json json;
    dv_json_to_file(&json, stdout);
    dv_json_object(&json, NULL);
    dv_json_text(&json, "model", options->model);
    dv_json_unsigned(&json, "batch", options->batch);
    dv_json_text(&json, "precision", dv_type_name((dv_type)options->precision));
    dv_json_text(&json, "prefer", options->prefer == DV_PREFER_NOISE ? "noise" : "time");
    dv_json_text(&json, "images", images_text(data == NULL));
    dv_json_array(&json, "frontier");
    for (size_t i = 0; (p = dv_budget_point_at(budget, i)) != NULL; i++)
        point_json(NULL, p, beside, &json);
    dv_json_end(&json);
    point_json("none", dv_budget_none(budget), beside, &json);
    point_json("division", dv_budget_division(budget), beside, &json);
    dv_json_end(&json);
    (void)dv_json_finish(&json, NULL); /* cli_finish tells */
}

int plan_frontier(const dv_options *options, int as_json) {
    dv_budget *budget;
    size_t beside;
    dv_error error;
    dv_dataset *data = open_data(options);
    cli_live line = cli_live_choosing(0);
    dv_status status = dv_options_budget(options, data, &budget, &beside, &error);
    cli_live_wipe(&line);
    if (status == DV_OK) {
        if (as_json)
            curve_json(options, budget, beside, data);
        else
            print_curve(budget, beside, data);
        dv_budget_free(budget);
    }
    dv_dataset_close(data);
    return status == DV_OK ? cli_finish() : cli_report(&error);
}
