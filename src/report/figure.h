/* Figures: what a report shows. A new one is a file with its functions and a line in the table of figure.c.
 *
 * A figure has panels, drawings of DV_PANEL_WIDTH each: one per network, say. It reads the data and nothing else. */
#ifndef DV_REPORT_FIGURE_H
#define DV_REPORT_FIGURE_H

#include "report/data.h"
#include "report/draw.h"
#include "report/table.h"

typedef struct dv_figure {
    const char *name; /* of its files and of its place in the page */
    const char *title;
    const char *about;                            /* how to read it */
    const char *command;                          /* what makes its data */
    bool open;                                    /* its table is part of what it shows, not folded away */
    size_t (*panels)(const dv_report_data *data); /* how many: 0 where its data is not there */
    void (*draw)(const dv_report_data *data, size_t panel, dv_drawing *drawing);
    void (*tabulate)(const dv_report_data *data, dv_table *table);
} dv_figure;

/* The figures in their order, or NULL past the last. */
const dv_figure *dv_figure_at(size_t index);

extern const dv_figure dv_figure_accuracy_curves, dv_figure_loss_curves, dv_figure_accuracy, dv_figure_memory,
    dv_figure_throughput, dv_figure_scaling, dv_figure_plan, dv_figure_schedule, dv_figure_noise, dv_figure_radar;

/* ---- grounds: networks and data that methods are compared on --------------------------------- */

enum { DV_GROUND_TEXT = 768 };

/* The run group g is the first of its network and data; `dv_group_same_ground` says that two are of one. */
bool dv_group_is_first(const dv_report_data *data, size_t g);
bool dv_group_same_ground(const dv_report_data *data, size_t g, size_t other);

/* The groups that are first, counted, and the n-th of them. */
size_t dv_ground_count(const dv_report_data *data);
size_t dv_ground_at(const dv_report_data *data, size_t n);

/* "resnet20 on cifar10". Returns `text`. */
const char *dv_ground_text(const dv_report_data *data, size_t g, char text[DV_GROUND_TEXT]);

/* The series of a group: its method's, or one of its own where another group of its ground has that. */
size_t dv_group_series(const dv_report_data *data, size_t g);

/* Lines of one benchmark are compared where network, batch, type and data are the same: how often they are not, a line
 * of the n-th ground, and "resnet50, batch 64, f32". */
size_t dv_line_grounds(const dv_report_data *data, dv_bench_kind kind);
const dv_bench_line *dv_line_ground_at(const dv_report_data *data, dv_bench_kind kind, size_t n);
const char *dv_line_ground_text(const dv_bench_line *line, char text[DV_GROUND_TEXT]);

/* Draws bars for the lines of a ground. `fill` makes a bar of a line; its name and series are there already. `chart`
 * says the rest, but for bars and title. */
struct dv_bar;
struct dv_bar_chart;
void dv_draw_line_bars(const dv_report_data *data, const dv_bench_line *ground, const struct dv_bar_chart *chart,
                       void (*fill)(const dv_bench_line *line, struct dv_bar *bar), dv_drawing *drawing);

/* The first columns of tables of benchmarks: method, network, batch, type. */
void dv_line_columns(dv_table *table);
void dv_line_cells(const dv_bench_line *line, dv_table *table);

#endif
