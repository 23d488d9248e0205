/* Activation bytes by method, for each network and batch, and how many times less than with none. */
#include "report/bars.h"
#include "report/figure.h"
#include <division/tools/report.h>

#include <math.h>
#include <stdio.h>

/* Papers count in these. */
#define GIBIBYTE 1073741824.0

static size_t panels(const dv_report_data *data) {
    return dv_line_grounds(data, DV_BENCH_MEMORY);
}

static void fill_bar(const dv_bench_line *line, dv_bar *bar) {
    char bytes[DV_UNIT_TEXT], ratio[DV_UNIT_TEXT], peak[DV_UNIT_TEXT], planned[DV_UNIT_TEXT];
    bar->number = line->activation_bytes;
    bar->published = dv_published_bytes(line->model, line->batch, line->method);
    dv_unit_text(DV_UNIT_BYTES, line->activation_bytes, bytes);
    dv_unit_text(DV_UNIT_TIMES, line->activation_ratio, ratio);
    snprintf(bar->words, sizeof bar->words, "%s, %s", bytes, ratio);
    snprintf(bar->hint, sizeof bar->hint, "%s of activations, %s less than none, %s planned in all, peak %s", bytes,
             ratio, dv_unit_text(DV_UNIT_BYTES, line->planned_bytes, planned),
             line->measured > 0 ? dv_unit_text(DV_UNIT_BYTES, line->peak_bytes, peak) : "not measured");
}

static void draw(const dv_report_data *data, size_t panel, dv_drawing *drawing) {
    const dv_bar_chart chart = {.caption = "activation bytes, and how many times less than with none",
                                .unit = DV_UNIT_BYTES,
                                .from_zero = true,
                                .reference = NAN};
    dv_draw_line_bars(data, dv_line_ground_at(data, DV_BENCH_MEMORY, panel), &chart, fill_bar, drawing);
}

static void tabulate(const dv_report_data *data, dv_table *table) {
    dv_line_columns(table);
    dv_table_column(table, "activations", DV_UNIT_BYTES);
    dv_table_column(table, "less than none", DV_UNIT_TIMES);
    dv_table_column(table, "activations, GiB", DV_UNIT_NONE);
    dv_table_column(table, "published, GiB", DV_UNIT_NONE);
    dv_table_column(table, "planned in all", DV_UNIT_BYTES);
    dv_table_column(table, "peak, measured", DV_UNIT_BYTES);
    for (const dv_bench_line *line = data->lines; line < dv_lines_end(data); line++) {
        if (line->kind != DV_BENCH_MEMORY)
            continue;
        dv_line_cells(line, table);
        dv_table_number(table, line->activation_bytes);
        dv_table_number(table, line->activation_ratio);
        dv_table_number(table, line->activation_bytes / GIBIBYTE);
        dv_table_number(table, dv_published_bytes(line->model, line->batch, line->method) / GIBIBYTE);
        dv_table_number(table, line->planned_bytes);
        dv_table_number(table, line->measured > 0 ? line->peak_bytes : NAN);
    }
}

const dv_figure dv_figure_memory = {
    .name = "memory",
    .title = "Memory by method",
    .about =
        "Activation bytes: all that is kept when the forward pass ends. The table has what the plan takes in all, and "
        "the most memory that was resident where it was measured.",
    .command =
        "division bench memory --model resnet50 --batch 64 --methods none,division,checkpoint --json > memory.jsonl",
    .open = true,
    .panels = panels,
    .draw = draw,
    .tabulate = tabulate,
};
