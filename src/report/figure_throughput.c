/* Images per second by method, and by those of none. */
#include "report/bars.h"
#include "report/figure.h"

#include <math.h>
#include <stdlib.h>

/* The two panels of each ground. */
static const struct {
    size_t offset;
    dv_unit unit;
    const char *caption;
    double reference;
} sides[] = {{offsetof(dv_bench_line, images_per_second), DV_UNIT_SPEED, "images per second of training", NAN},
             {offsetof(dv_bench_line, relative), DV_UNIT_TIMES, "images per second, relative to none", 1}};

enum { SIDES = sizeof sides / sizeof *sides };

static size_t panels(const dv_report_data *data) {
    return SIDES * dv_line_grounds(data, DV_BENCH_THROUGHPUT);
}

static void draw(const dv_report_data *data, size_t panel, dv_drawing *drawing) {
    const dv_bench_line *ground = dv_line_ground_at(data, DV_BENCH_THROUGHPUT, panel / SIDES);
    char title[DV_GROUND_TEXT];
    size_t count = 0, side = panel % SIDES;
    dv_bar *bars = dv_bars_new(drawing, data->line_count);
    for (const dv_bench_line *line = data->lines; bars != NULL && line < data->lines + data->line_count; line++) {
        if (!dv_line_same_ground(ground, line))
            continue;
        bars[count].name = line->method;
        bars[count].series = dv_report_series(data, line->method);
        bars[count++].number = *(const double *)((const char *)line + sides[side].offset);
    }
    dv_draw_bars(drawing, &(dv_bar_chart){.title = dv_line_ground_text(ground, title),
                                          .caption = sides[side].caption,
                                          .unit = sides[side].unit,
                                          .from_zero = true,
                                          .reference = sides[side].reference,
                                          .bars = bars,
                                          .count = count});
    free(bars);
}

static void tabulate(const dv_report_data *data, dv_table *table) {
    dv_table_column(table, "method", DV_UNIT_NONE);
    dv_table_column(table, "network", DV_UNIT_NONE);
    dv_table_column(table, "batch", DV_UNIT_COUNT);
    dv_table_column(table, "type", DV_UNIT_NONE);
    dv_table_column(table, "images per second", DV_UNIT_SPEED);
    dv_table_column(table, "relative to none", DV_UNIT_TIMES);
    for (const dv_bench_line *line = data->lines; line < data->lines + data->line_count; line++) {
        if (line->kind != DV_BENCH_THROUGHPUT)
            continue;
        dv_table_words(table, line->method);
        dv_table_words(table, line->model);
        dv_table_number(table, line->batch);
        dv_table_words(table, line->precision);
        dv_table_number(table, line->images_per_second);
        dv_table_number(table, line->relative);
    }
}

const dv_figure dv_figure_throughput = {
    .name = "throughput",
    .title = "Throughput by method",
    .about = "Images per second of whole training steps, medians over rounds in which the methods took turns, and "
             "relative to "
             "none in the same rounds.",
    .command = "division bench throughput --model resnet50 --batch 32 --methods none,division,checkpoint --json > "
               "throughput.jsonl",
    .panels = panels,
    .draw = draw,
    .tabulate = tabulate,
};
