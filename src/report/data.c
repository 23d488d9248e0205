/* What was read, and groups of runs. */
#include "report/data.h"

#include "base/file.h"
#include "base/status.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LARGEST_FILE = 1 << 28 };

dv_status dv_report_no_memory(dv_error *error) {
    return dv_fail(error, DV_ERROR_MEMORY, "no memory for what is to be reported: close other programs");
}

/* Room is a power of two, so that the number of things says how much there is. */
void *dv_report_more(void *array, size_t count, size_t bytes) {
    char **pointer = array;
    if ((count & (count - 1)) == 0) {
        char *moved = realloc(*pointer, (count > 0 ? 2 * count : 1) * bytes);
        if (moved == NULL)
            return NULL;
        *pointer = moved;
    }
    return memset(*pointer + count * bytes, 0, bytes);
}

static void free_run(dv_run_folder *run) {
    for (size_t i = 0; i < run->setting_count; i++) {
        free(run->settings[i].key);
        free(run->settings[i].value);
    }
    free(run->settings);
    free(run->log);
    free(run->path);
    free(run->name);
}

static void free_texts(char **texts, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(texts[i]);
    free(texts);
}

void dv_report_data_free(dv_report_data *data) {
    for (size_t i = 0; i < data->run_count; i++)
        free_run(&data->runs[i]);
    for (size_t i = 0; i < data->plan_count; i++) {
        free(data->plans[i].layers);
        free(data->plans[i].schedule);
    }
    for (size_t i = 0; i < data->scaling_count; i++)
        free(data->scalings[i].rows);
    free(data->scalings);
    free(data->runs);
    free(data->groups);
    free(data->lines);
    free(data->plans);
    free_texts(data->inputs, data->input_count);
    free_texts(data->notes, data->note_count);
    free_texts(data->methods, data->method_count);
    *data = (dv_report_data){0};
}

/* Adds a copy of a text to a list. */
static dv_status add_text(char ***list, size_t *count, const char *text, dv_error *error) {
    char **added = dv_report_more(list, *count, sizeof **list);
    if (added == NULL || (*added = strdup(text)) == NULL)
        return dv_report_no_memory(error);
    (*count)++;
    return DV_OK;
}

dv_status dv_report_note(dv_report_data *data, dv_error *error, const char *format, ...) {
    char text[DV_ERROR_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return add_text(&data->notes, &data->note_count, dv_printable(text), error);
}

dv_status dv_report_method(dv_report_data *data, const char *method, dv_error *error) {
    if (data->method_count == 0)
        DV_TRY(add_text(&data->methods, &data->method_count, "none", error));
    for (size_t i = 0; i < data->method_count; i++)
        if (strcmp(data->methods[i], method) == 0)
            return DV_OK;
    return add_text(&data->methods, &data->method_count, method, error);
}

size_t dv_report_series(const dv_report_data *data, const char *method) {
    for (size_t i = 0; i < data->method_count; i++)
        if (strcmp(data->methods[i], method) == 0)
            return i;
    return 0;
}

static dv_status read_file(dv_report_data *data, const char *path, dv_error *error) {
    void *text;
    size_t bytes;
    DV_TRY(dv_file_read(path, LARGEST_FILE, &text, &bytes, error));
    dv_status status = dv_report_read_lines(data, &(dv_record_text){path, text, bytes}, error);
    free(text);
    return status;
}

dv_status dv_report_read(dv_report_data *data, const char *path, dv_error *error) {
    struct stat status;
    bool is_folder = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    DV_TRY((is_folder ? dv_report_read_folder : read_file)(data, path, error));
    return add_text(&data->inputs, &data->input_count, path, error);
}

/* ---- runs ---------------------------------------------------------------------------------- */

const char *dv_run_setting_of(const dv_run_folder *run, const char *key) {
    for (size_t i = 0; i < run->setting_count; i++)
        if (strcmp(run->settings[i].key, key) == 0)
            return run->settings[i].value;
    return "";
}

bool dv_line_same_ground(const dv_bench_line *a, const dv_bench_line *b) {
    return a->kind == b->kind && strcmp(a->model, b->model) == 0 && strcmp(a->precision, b->precision) == 0 &&
           strcmp(a->data, b->data) == 0 && a->batch == b->batch;
}

double dv_run_last_top1(const dv_run_folder *run) {
    double last = NAN;
    for (size_t i = 0; i < run->epochs; i++)
        if (!isnan(run->log[i].test_top1))
            last = run->log[i].test_top1;
    return last;
}

/* Settings that do not make another training of it. */
static bool is_circumstance(const char *key) {
    static const char *const keys[] = {"seed", "threads", "workers", "save-minutes", "data", "spill-folder"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

/* True if a setting of `a` is missing in `b` or another there. A version of the program that did not have it yet is no
 * difference. */
static bool differs_in(const dv_run_folder *a, const dv_run_folder *b, size_t setting) {
    const char *key = a->settings[setting].key, *other = dv_run_setting_of(b, key);
    return !is_circumstance(key) && other[0] != '\0' && strcmp(a->settings[setting].value, other) != 0;
}

bool dv_run_same_ground(const dv_run_folder *a, const dv_run_folder *b) {
    const char *one = dv_run_setting_of(a, "data"), *other = dv_run_setting_of(b, "data");
    size_t length = strcspn(one, ":");
    return length == strcspn(other, ":") && memcmp(one, other, length) == 0 &&
           strcmp(dv_run_setting_of(a, "model"), dv_run_setting_of(b, "model")) == 0;
}

static bool is_same_training(const dv_run_folder *a, const dv_run_folder *b) {
    for (size_t i = 0; i < a->setting_count; i++)
        if (differs_in(a, b, i))
            return false;
    return dv_run_same_ground(a, b);
}

/* Appends ", key value" of a setting. */
static void name_setting(const dv_run_setting *setting, char label[DV_NAME_TEXT]) {
    size_t used = strlen(label);
    snprintf(label + used, DV_NAME_TEXT - used, ", %s %s", setting->key, setting->value);
}

/* The method and, where another group has the same on the same ground, the settings in which the two differ. */
static void name_group(const dv_report_data *data, dv_run_group *group) {
    const dv_run_folder *run = &data->runs[group->first];
    const char *method = dv_run_setting_of(run, "method");
    snprintf(group->label, sizeof group->label, "%s", method);
    for (size_t s = 0; s < run->setting_count; s++) {
        bool differs = false;
        for (size_t g = 0; g < data->group_count; g++) {
            const dv_run_folder *other = &data->runs[data->groups[g].first];
            differs |= dv_run_same_ground(run, other) && strcmp(method, dv_run_setting_of(other, "method")) == 0 &&
                       differs_in(run, other, s);
        }
        if (differs)
            name_setting(&run->settings[s], group->label);
    }
}

static size_t find_group(const dv_report_data *data, const dv_run_folder *run) {
    for (size_t g = 0; g < data->group_count; g++)
        if (is_same_training(&data->runs[data->groups[g].first], run))
            return g;
    return data->group_count;
}

dv_status dv_report_group(dv_report_data *data, dv_error *error) {
    free(data->groups);
    data->groups = NULL;
    data->group_count = 0;
    for (size_t i = 0; i < data->run_count; i++) {
        size_t g = data->runs[i].group = find_group(data, &data->runs[i]);
        if (g == data->group_count) {
            dv_run_group *added = dv_report_more(&data->groups, data->group_count, sizeof *added);
            if (added == NULL)
                return dv_report_no_memory(error);
            added->first = i;
            data->group_count++;
        }
        data->groups[g].runs++;
    }
    for (size_t g = 0; g < data->group_count; g++)
        name_group(data, &data->groups[g]);
    return DV_OK;
}
