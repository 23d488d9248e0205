/* What a report is made of, as it was read: folders of runs, lines of benchmarks, plans. Figures read it and change
 * nothing. Numbers that a file has as null, or does not have, are NaN. */
#ifndef DV_REPORT_DATA_H
#define DV_REPORT_DATA_H

#include "report/record.h"

#include <division/status.h>
#include <stdbool.h>
#include <stddef.h>

/* Names in benchmarks and plans, and the longest value of a setting. */
enum { DV_NAME_TEXT = 256, DV_SETTING_TEXT = 4096 };

/* A line of a log. */
typedef struct dv_log_line {
    double epoch, steps, train_loss, train_top1, test_loss, test_top1;
    double images_per_second, peak_bytes, activation_bytes, seconds, learning_rate;
} dv_log_line;

/* The number of a line at an offset, as tables of what is drawn have it. */
static inline double dv_log_number(const dv_log_line *line, size_t offset) {
    const void *number = (const char *)line + offset;
    return *(const double *)number;
}

/* A setting of config.json as text: numbers as written, null as "null". */
typedef struct dv_run_setting {
    char *key, *value; /* owned */
} dv_run_setting;

typedef struct dv_run_folder {
    char *path; /* owned, as it was given */
    char *name; /* owned, the last part of the path */
    dv_run_setting *settings;
    size_t setting_count;
    dv_log_line *log; /* at least one, epochs grow */
    size_t epochs;
    double best_top1; /* of all tests */
    double ended;     /* when the log was written last, in seconds since 1970 */
    size_t group;     /* into dv_report_data.groups */
} dv_run_folder;

/* Runs that differ in their seed alone. */
typedef struct dv_run_group {
    size_t first, runs;       /* the first of them, and how many there are */
    char label[DV_NAME_TEXT]; /* the method, and what else tells it from other groups of the same network and data */
} dv_run_group;

typedef enum dv_bench_kind { DV_BENCH_MEMORY, DV_BENCH_THROUGHPUT, DV_BENCH_GRADIENT } dv_bench_kind;

/* A line of a benchmark. */
typedef struct dv_bench_line {
    dv_bench_kind kind;
    char model[DV_NAME_TEXT], data[DV_NAME_TEXT], method[DV_NAME_TEXT], precision[DV_NAME_TEXT];
    char parameter[DV_NAME_TEXT]; /* of bench gradient: empty for all of them together */
    double batch, activation_bytes, planned_bytes, peak_bytes, activation_ratio, measured;
    double images_per_second, relative;
    double variance_ratio, mean_ratio, batch_noise, method_noise;
    double bandwidth, latency; /* of a prediction */
} dv_bench_line;

typedef struct dv_plan_layer {
    char layer[DV_NAME_TEXT], kind[DV_NAME_TEXT], output[DV_NAME_TEXT], kept[DV_NAME_TEXT];
    double kept_bytes, saved_bytes, bits_per_element;
} dv_plan_layer;

typedef struct dv_plan_step {
    char operation[DV_NAME_TEXT], subject[DV_NAME_TEXT];
    double alive_bytes;
} dv_plan_step;

/* What `division plan --json` printed. */
typedef struct dv_plan_text {
    char model[DV_NAME_TEXT], method[DV_NAME_TEXT], precision[DV_NAME_TEXT];
    double batch, activation_bytes, planned_bytes;
    dv_plan_layer *layers;
    size_t layer_count;
    dv_plan_step *schedule; /* NULL: it was printed without --operations */
    size_t schedule_count;
} dv_plan_text;

/* One number of ranks in a prediction. */
typedef struct dv_scaling_row {
    double ranks, step_seconds, transfer_seconds, waiting_seconds, images_per_second, efficiency;
} dv_scaling_row;

/* What `division plan --bandwidth --json` printed: a network of machines. */
typedef struct dv_scaling_text {
    char model[DV_NAME_TEXT], method[DV_NAME_TEXT], precision[DV_NAME_TEXT];
    double batch, bandwidth, latency; /* bytes a second, seconds */
    dv_scaling_row *rows;             /* owned */
    size_t row_count;
} dv_scaling_text;

typedef struct dv_report_data {
    dv_run_folder *runs;
    size_t run_count;
    dv_run_group *groups;
    size_t group_count;
    dv_bench_line *lines;
    size_t line_count;
    dv_plan_text *plans;
    size_t plan_count;
    dv_scaling_text *scalings;
    size_t scaling_count;
    char **inputs; /* paths as they were given */
    size_t input_count;
    char **notes; /* what is to be said of the inputs */
    size_t note_count;
    char **methods; /* in the order in which they appeared: their places are their series; the first is none */
    size_t method_count;
} dv_report_data;

/* Ends of arrays, for loops; arrays of nothing are NULL. */
static inline const dv_run_folder *dv_runs_end(const dv_report_data *data) {
    return data->run_count > 0 ? data->runs + data->run_count : data->runs;
}

static inline const dv_bench_line *dv_lines_end(const dv_report_data *data) {
    return data->line_count > 0 ? data->lines + data->line_count : data->lines;
}

static inline const dv_plan_text *dv_plans_end(const dv_report_data *data) {
    return data->plan_count > 0 ? data->plans + data->plan_count : data->plans;
}

void dv_report_data_free(dv_report_data *data);

/* Reads a folder of a run or a file of JSON lines and adds it. After a failure the data can only be freed. */
dv_status dv_report_read(dv_report_data *data, const char *path, dv_error *error);
dv_status dv_report_read_folder(dv_report_data *data, const char *path, dv_error *error);

/* The same of texts in memory, the caller's: a file of lines, and a run with its options and its log. `ended` is when
 * the log was written last. */
dv_status dv_report_read_lines(dv_report_data *data, const dv_record_text *file, dv_error *error);
dv_status dv_report_read_run(dv_report_data *data, const char *path, const dv_record_text *config,
                             const dv_record_text *log, double ended, dv_error *error);

/* Puts the runs into groups; once, when all are there. */
dv_status dv_report_group(dv_report_data *data, dv_error *error);

/* The value of a setting of a run, or "" if it has none. */
const char *dv_run_setting_of(const dv_run_folder *run, const char *key);

/* Whether two runs train the same network on the same kind of data, "cifar10" of "cifar10:DIR". */
bool dv_run_same_ground(const dv_run_folder *a, const dv_run_folder *b);

/* Whether two lines are of the same benchmark, of the same network with the same batch, type and data. */
bool dv_line_same_ground(const dv_bench_line *a, const dv_bench_line *b);

/* The last test of a run: its accuracy, or NaN if there was none. */
double dv_run_last_top1(const dv_run_folder *run);

/* The series of a method: its colour, dashes and mark, the same in all figures. */
size_t dv_report_series(const dv_report_data *data, const char *method);

/* ---- for readers --------------------------------------------------------------------------- */

/* Makes room for one more behind `count` things of `bytes`: `*array` may move. The new one is zeros. Returns it, or
 * NULL if there is no memory. */
void *dv_report_more(void *array, size_t count, size_t bytes);

dv_status dv_report_no_memory(dv_error *error);

/* Remembers a copy of a text. */
dv_status dv_report_note(dv_report_data *data, dv_error *error, const char *format, ...) DV_PRINTF(3, 4);
dv_status dv_report_method(dv_report_data *data, const char *method, dv_error *error);

#endif
