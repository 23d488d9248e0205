/* Reports: one page with pictures of what trainings, benchmarks and plans said.
 *
 *     dv_report *report;
 *     dv_report_new(&report, &error);
 *     dv_report_add(report, "runs/resnet20-division-1", &error);
 *     dv_report_add(report, "memory.jsonl", &error);
 *     dv_report_page(report, "ResNet-20", "page.html", &error);
 *     dv_report_free(report);
 *
 * The same inputs in the same order give the same bytes. Files are written whole or not at all. */
#ifndef DIVISION_TOOLS_REPORT_H
#define DIVISION_TOOLS_REPORT_H

#include <division/status.h>
#include <division/tools/tool.h>
#include <division/training.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dv_report dv_report;

/* An empty report; dv_report_free releases it. */
DV_TOOL dv_status dv_report_new(dv_report **report, dv_error *error);
DV_TOOL void dv_report_free(dv_report *report);

/* Adds the folder of a run (folder.h), or a file of JSON lines as `division bench` and `division plan` print them.
 * After a failure the report is of no use any more. */
DV_TOOL dv_status dv_report_add(dv_report *report, const char *path, dv_error *error);

/* What is to be said of the inputs, as that the last line of one was cut off, or NULL past the last. The text is the
 * report's, until something is added. */
DV_TOOL const char *dv_report_note_at(const dv_report *report, size_t index);

/* Writes the page, one HTML file that needs no other. */
DV_TOOL dv_status dv_report_page(dv_report *report, const char *title, const char *path, dv_error *error);

/* Writes each figure whose data is there as NAME.svg, and its numbers as NAME.csv. The folder is made if it is not
 * there. */
DV_TOOL dv_status dv_report_figures(dv_report *report, const char *folder, dv_error *error);

/* Writes an event file of TensorBoard for each run, in a folder inside of `folder` that is called as the run: loss,
 * accuracy in percent, learning rate, images per second and peak bytes of each epoch, by steps. The log's file says
 * when the last epoch ended. */
DV_TOOL dv_status dv_report_tensorboard(dv_report *report, const char *folder, dv_error *error);

/* Writes what a search for a learning rate found: losses against rates as an SVG file, all numbers as a JSON object. */
DV_TOOL dv_status dv_report_rates_svg(const dv_rate_point *points, const dv_rate_found *found, const char *title,
                                      const char *path, dv_error *error);
DV_TOOL dv_status dv_report_rates_json(const dv_rate_point *points, const dv_rate_found *found, const char *path,
                                       dv_error *error);

/* Figures that were published, to stand beside ours: from the papers of DIVISION, ActNN, BLPA and AC-GC, as DIVISION's
 * authors report them. Methods are meant as they are by default here.
 *
 * Top-1 in percent on the test images, of one seed and its best epoch; NaN if there is none. `data` is a data set as in
 * "cifar10:DIR". */
DV_TOOL double dv_published_accuracy(const char *model, const char *data, const char *method);

/* Bytes of activations of a batch; NaN if there are none. The papers give them in GiB. */
DV_TOOL double dv_published_bytes(const char *model, double batch, const char *method);

#ifdef __cplusplus
}
#endif

#endif
