/* Reads what benchmarks and plans print with --json: an object per line. A line says by its fields what it is. */
#include "base/file.h"
#include "base/status.h"
#include "report/data.h"
#include "report/method_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_BYTES = 128 };

static const dv_record_field line_fields[] = {
    DV_RECORD_TEXT(dv_bench_line, model),
    DV_RECORD_TEXT(dv_bench_line, data),
    DV_RECORD_TEXT(dv_bench_line, method),
    DV_RECORD_TEXT(dv_bench_line, precision),
    DV_RECORD_TEXT(dv_bench_line, parameter),
    DV_RECORD_NUMBER(dv_bench_line, batch),
    DV_RECORD_NUMBER(dv_bench_line, activation_bytes),
    DV_RECORD_NUMBER(dv_bench_line, planned_bytes),
    DV_RECORD_NUMBER(dv_bench_line, peak_bytes),
    DV_RECORD_NUMBER(dv_bench_line, activation_ratio),
    DV_RECORD_NUMBER(dv_bench_line, measured),
    DV_RECORD_NUMBER(dv_bench_line, images_per_second),
    DV_RECORD_NUMBER(dv_bench_line, relative),
    DV_RECORD_NUMBER(dv_bench_line, variance_ratio),
    DV_RECORD_NUMBER(dv_bench_line, mean_ratio),
    DV_RECORD_NUMBER(dv_bench_line, batch_noise),
    DV_RECORD_NUMBER(dv_bench_line, method_noise),
    DV_RECORD_NUMBER(dv_bench_line, bandwidth),
    DV_RECORD_NUMBER(dv_bench_line, latency),
    DV_RECORD_END,
};

static const dv_record_field layer_fields[] = {
    DV_RECORD_TEXT(dv_plan_layer, layer),
    DV_RECORD_TEXT(dv_plan_layer, kind),
    DV_RECORD_TEXT(dv_plan_layer, output),
    DV_RECORD_TEXT(dv_plan_layer, kept),
    DV_RECORD_NUMBER(dv_plan_layer, kept_bytes),
    DV_RECORD_NUMBER(dv_plan_layer, saved_bytes),
    DV_RECORD_NUMBER(dv_plan_layer, bits_per_element),
    DV_RECORD_END,
};

static const dv_record_field step_fields[] = {
    DV_RECORD_TEXT(dv_plan_step, operation),
    DV_RECORD_TEXT(dv_plan_step, subject),
    DV_RECORD_NUMBER(dv_plan_step, alive_bytes),
    DV_RECORD_END,
};

static const dv_record_field row_fields[] = {
    DV_RECORD_NUMBER(dv_scaling_row, ranks),
    DV_RECORD_NUMBER(dv_scaling_row, step_seconds),
    DV_RECORD_NUMBER(dv_scaling_row, transfer_seconds),
    DV_RECORD_NUMBER(dv_scaling_row, waiting_seconds),
    DV_RECORD_NUMBER(dv_scaling_row, images_per_second),
    DV_RECORD_NUMBER(dv_scaling_row, efficiency),
    DV_RECORD_END,
};

/* A line as it is read: a benchmark's, or with arrays a plan or a prediction. */
typedef struct object {
    dv_bench_line line;
    dv_plan_text plan;       /* its two arrays alone */
    dv_scaling_text scaling; /* its array alone */
} object;

/* ---- arrays of a plan ---------------------------------------------------------------------- */

/* Reads an array of records of `bytes` each. */
static dv_status read_array(dv_json_cursor *json, const dv_record_field *fields, size_t bytes, void *array,
                            size_t *count, dv_error *error) {
    for (dv_json_enter(json, '['); dv_json_next(json, ']');) {
        void *added = dv_report_more(array, *count, bytes);
        if (added == NULL)
            return dv_report_no_memory(error);
        if (dv_record_read(json, fields, added))
            (*count)++;
    }
    return DV_OK;
}

static dv_status read_field(object *of, dv_json_cursor *json, const char *key, dv_error *error) {
    dv_plan_text *plan = &of->plan;
    if (strcmp(key, "layers") == 0)
        return read_array(json, layer_fields, sizeof *plan->layers, &plan->layers, &plan->layer_count, error);
    if (strcmp(key, "schedule") == 0)
        return read_array(json, step_fields, sizeof *plan->schedule, &plan->schedule, &plan->schedule_count, error);
    if (strcmp(key, "scaling") == 0)
        return read_array(json, row_fields, sizeof *of->scaling.rows, &of->scaling.rows, &of->scaling.row_count, error);
    dv_record_read_field(json, key, line_fields, &of->line);
    return DV_OK;
}

static dv_status read_object(object *of, dv_json_cursor *json, dv_error *error) {
    char key[KEY_BYTES];
    dv_record_clear(line_fields, &of->line);
    for (dv_json_enter(json, '{'); dv_json_next(json, '}');)
        if (dv_json_read_key(json, key, sizeof key))
            DV_TRY(read_field(of, json, key, error));
    dv_method_shorten(of->line.method);
    dv_json_ended(json); /* who reads the lines asks for the problem */
    return DV_OK;
}

/* ---- what a line is ------------------------------------------------------------------------ */

/* Finds the kind of a benchmark's line by the figure that it alone has. */
static bool find_kind(dv_bench_line *line) {
    const double figures[] = {[DV_BENCH_MEMORY] = line->activation_ratio,
                              [DV_BENCH_THROUGHPUT] = line->images_per_second,
                              [DV_BENCH_GRADIENT] = line->variance_ratio};
    for (line->kind = DV_BENCH_MEMORY; line->kind <= DV_BENCH_GRADIENT; line->kind++)
        if (!isnan(figures[line->kind]))
            return line->model[0] != '\0' && line->method[0] != '\0';
    return false;
}

/* A benchmark that was repeated counts as it was last. */
static dv_bench_line *place_of(dv_report_data *data, const dv_bench_line *line) {
    for (size_t i = 0; i < data->line_count; i++) {
        dv_bench_line *other = &data->lines[i];
        if (dv_line_same_ground(line, other) && strcmp(line->method, other->method) == 0 &&
            strcmp(line->parameter, other->parameter) == 0)
            return other;
    }
    dv_bench_line *added = dv_report_more(&data->lines, data->line_count, sizeof *added);
    data->line_count += added != NULL;
    return added;
}

static dv_status add_line(dv_report_data *data, object *of, dv_error *error) {
    if (!find_kind(&of->line))
        return dv_fail(error, DV_ERROR_FORMAT,
                       "nothing that a report shows: give what 'division bench memory', 'throughput' or 'gradient', or "
                       "'division plan' prints with --json");
    dv_bench_line *place = place_of(data, &of->line);
    if (place == NULL)
        return dv_report_no_memory(error);
    *place = of->line;
    return dv_report_method(data, of->line.method, error);
}

static dv_status add_plan(dv_report_data *data, object *of, dv_error *error) {
    dv_plan_text *added = dv_report_more(&data->plans, data->plan_count, sizeof *added);
    if (added == NULL)
        return dv_report_no_memory(error);
    *added = of->plan;
    of->plan = (dv_plan_text){0};
    memcpy(added->model, of->line.model, sizeof added->model);
    memcpy(added->method, of->line.method, sizeof added->method);
    memcpy(added->precision, of->line.precision, sizeof added->precision);
    added->batch = of->line.batch;
    added->activation_bytes = of->line.activation_bytes;
    added->planned_bytes = of->line.planned_bytes;
    data->plan_count++;
    return dv_report_method(data, added->method, error);
}

/* Rows must have what is drawn on axes with logarithms. */
static bool can_be_drawn(const dv_scaling_text *scaling) {
    for (size_t i = 0; i < scaling->row_count; i++)
        if (!(scaling->rows[i].ranks >= 1) || !(scaling->rows[i].images_per_second > 0))
            return false;
    return true;
}

static dv_status add_scaling(dv_report_data *data, object *of, dv_error *error) {
    if (!can_be_drawn(&of->scaling) || of->line.model[0] == '\0' || !(of->line.bandwidth > 0))
        return dv_fail(error, DV_ERROR_FORMAT,
                       "a prediction without model, bandwidth, ranks or images per second: give what 'division plan "
                       "--bandwidth' prints with --json");
    dv_scaling_text *added = dv_report_more(&data->scalings, data->scaling_count, sizeof *added);
    if (added == NULL)
        return dv_report_no_memory(error);
    *added = of->scaling;
    of->scaling = (dv_scaling_text){0};
    memcpy(added->model, of->line.model, sizeof added->model);
    memcpy(added->method, of->line.method, sizeof added->method);
    memcpy(added->precision, of->line.precision, sizeof added->precision);
    added->batch = of->line.batch;
    added->bandwidth = of->line.bandwidth;
    added->latency = of->line.latency;
    data->scaling_count++;
    return DV_OK;
}

static dv_status add(dv_report_data *data, object *of, dv_error *error) {
    if (of->plan.layer_count > 0)
        return add_plan(data, of, error);
    return (of->scaling.row_count > 0 ? add_scaling : add_line)(data, of, error);
}

/* A file that is being read. */
typedef struct lines_of {
    dv_report_data *data;
    size_t lines;
} lines_of;

static dv_status read_line(void *context, dv_json_cursor *json, dv_error *error) {
    lines_of *file = context;
    object of = {0};
    file->lines++;
    dv_status status = read_object(&of, json, error);
    if (status == DV_OK && json->problem == NULL)
        status = add(file->data, &of, error);
    free(of.scaling.rows);
    free(of.plan.layers);
    free(of.plan.schedule);
    return status;
}

dv_status dv_report_read_lines(dv_report_data *data, const dv_record_text *text, dv_error *error) {
    lines_of file = {data, 0};
    bool cut;
    DV_TRY(dv_record_lines(text, read_line, &file, &cut, error));
    if (file.lines == 0)
        return dv_fail(
            error, DV_ERROR_FORMAT,
            "%.80s is empty: give the folder of a run, or what 'division bench' or 'division plan' prints with --json",
            dv_file_shown(text->path));
    if (!cut)
        return DV_OK;
    return dv_report_note(data, error, "%.80s: the last line is cut off, as by a kill: those before it are shown",
                          dv_file_shown(text->path));
}
