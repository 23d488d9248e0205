/* The table of figures, and what several of them ask the data. */
#include "report/figure.h"

#include "report/bars.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const dv_figure *const figures[] = {
    &dv_figure_radar,   &dv_figure_accuracy, &dv_figure_memory,   &dv_figure_throughput,      &dv_figure_noise,
    &dv_figure_scaling, &dv_figure_plan,     &dv_figure_schedule, &dv_figure_accuracy_curves, &dv_figure_loss_curves,
};

const dv_figure *dv_figure_at(size_t index) {
    return index < sizeof figures / sizeof *figures ? figures[index] : NULL;
}

/* ---- grounds ------------------------------------------------------------------------------- */

static const dv_run_folder *first_run(const dv_report_data *data, size_t g) {
    return &data->runs[data->groups[g].first];
}

bool dv_group_same_ground(const dv_report_data *data, size_t g, size_t other) {
    return dv_run_same_ground(first_run(data, g), first_run(data, other));
}

bool dv_group_is_first(const dv_report_data *data, size_t g) {
    for (size_t other = 0; other < g; other++)
        if (dv_group_same_ground(data, g, other))
            return false;
    return true;
}

size_t dv_ground_count(const dv_report_data *data) {
    size_t count = 0;
    for (size_t g = 0; g < data->group_count; g++)
        count += dv_group_is_first(data, g);
    return count;
}

size_t dv_ground_at(const dv_report_data *data, size_t n) {
    for (size_t g = 0; g < data->group_count; g++)
        if (dv_group_is_first(data, g) && n-- == 0)
            return g;
    return 0;
}

const char *dv_ground_text(const dv_report_data *data, size_t g, char text[DV_GROUND_TEXT]) {
    const dv_run_folder *run = first_run(data, g);
    const char *kind = dv_run_setting_of(run, "data");
    snprintf(text, DV_GROUND_TEXT, "%.200s on %.*s", dv_run_setting_of(run, "model"), (int)strcspn(kind, ":"), kind);
    return text;
}

size_t dv_group_series(const dv_report_data *data, size_t g) {
    const char *method = dv_run_setting_of(first_run(data, g), "method");
    for (size_t other = 0; other < g; other++)
        if (dv_group_same_ground(data, g, other) &&
            strcmp(method, dv_run_setting_of(first_run(data, other), "method")) == 0)
            return data->method_count + g;
    return dv_report_series(data, method);
}

/* ---- grounds of benchmarks ----------------------------------------------------------------- */

/* Lines on single parameters are for those who read them. */
static bool is_first_line(const dv_report_data *data, size_t index, dv_bench_kind kind) {
    const dv_bench_line *line = &data->lines[index];
    if (line->kind != kind || line->parameter[0] != '\0')
        return false;
    for (size_t i = 0; i < index; i++)
        if (dv_line_same_ground(line, &data->lines[i]))
            return false;
    return true;
}

size_t dv_line_grounds(const dv_report_data *data, dv_bench_kind kind) {
    size_t count = 0;
    for (size_t i = 0; i < data->line_count; i++)
        count += is_first_line(data, i, kind);
    return count;
}

const dv_bench_line *dv_line_ground_at(const dv_report_data *data, dv_bench_kind kind, size_t n) {
    for (size_t i = 0; i < data->line_count; i++)
        if (is_first_line(data, i, kind) && n-- == 0)
            return &data->lines[i];
    return NULL;
}

const char *dv_line_ground_text(const dv_bench_line *line, char text[DV_GROUND_TEXT]) {
    snprintf(text, DV_GROUND_TEXT, "%.200s, batch %.0f%s%.24s", line->model, line->batch,
             line->precision[0] != '\0' ? ", " : "", line->precision);
    return text;
}

void dv_draw_line_bars(const dv_report_data *data, const dv_bench_line *ground, const dv_bar_chart *chart,
                       void (*fill)(const dv_bench_line *line, dv_bar *bar), dv_drawing *drawing) {
    char title[DV_GROUND_TEXT];
    dv_bar_chart drawn = *chart;
    drawn.title = dv_line_ground_text(ground, title);
    drawn.bars = dv_bars_new(drawing, data->line_count);
    for (const dv_bench_line *line = data->lines; drawn.bars != NULL && line < dv_lines_end(data); line++) {
        if (!dv_line_same_ground(ground, line))
            continue;
        dv_bar *bar = &drawn.bars[drawn.count++];
        bar->name = line->method;
        bar->series = dv_report_series(data, line->method);
        fill(line, bar);
    }
    dv_draw_bars(drawing, &drawn);
    free(drawn.bars);
}

void dv_line_columns(dv_table *table) {
    dv_table_column(table, "method", DV_UNIT_NONE);
    dv_table_column(table, "network", DV_UNIT_NONE);
    dv_table_column(table, "batch", DV_UNIT_COUNT);
    dv_table_column(table, "type", DV_UNIT_NONE);
}

void dv_line_cells(const dv_bench_line *line, dv_table *table) {
    dv_table_words(table, line->method);
    dv_table_words(table, line->model);
    dv_table_number(table, line->batch);
    dv_table_words(table, line->precision);
}
