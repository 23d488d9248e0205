/* Images per second by method, and by those of none. */
#include "report/bars.h"
#include "report/figure.h"

#include <math.h>

static void fill_speed(const dv_bench_line *line, dv_bar *bar) {
    bar->number = line->images_per_second;
}

static void fill_relative(const dv_bench_line *line, dv_bar *bar) {
    bar->number = line->relative;
}

/* The two panels of each ground. */
static const struct {
    dv_bar_chart chart;
    void (*fill)(const dv_bench_line *line, dv_bar *bar);
} sides[] = {
    {{.caption = "images per second of training", .unit = DV_UNIT_SPEED, .from_zero = true, .reference = NAN},
     fill_speed},
    {{.caption = "images per second, relative to none", .unit = DV_UNIT_TIMES, .from_zero = true, .reference = 1},
     fill_relative},
};

enum { SIDES = sizeof sides / sizeof *sides };

static size_t panels(const dv_report_data *data) {
    return SIDES * dv_line_grounds(data, DV_BENCH_THROUGHPUT);
}

static void draw(const dv_report_data *data, size_t panel, dv_drawing *drawing) {
    const dv_bench_line *ground = dv_line_ground_at(data, DV_BENCH_THROUGHPUT, panel / SIDES);
    dv_draw_line_bars(data, ground, &sides[panel % SIDES].chart, sides[panel % SIDES].fill, drawing);
}

static void tabulate(const dv_report_data *data, dv_table *table) {
    dv_line_columns(table);
    dv_table_column(table, "images per second", DV_UNIT_SPEED);
    dv_table_column(table, "relative to none", DV_UNIT_TIMES);
    for (const dv_bench_line *line = data->lines; line < dv_lines_end(data); line++) {
        if (line->kind != DV_BENCH_THROUGHPUT)
            continue;
        dv_line_cells(line, table);
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
