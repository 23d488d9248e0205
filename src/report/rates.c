/* What a search for a learning rate found, as a drawing and as JSON. */
#include "base/file.h"
#include "base/status.h"
#include "report/axis.h"
#include "report/page.h"

#include <division/tools/json.h>
#include <division/tools/report.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEIGHT = 250, POINT_BYTES = 128, FRONT_BYTES = 512 };

/* ---- the drawing ---------------------------------------------------------------------------- */

/* Losses from the lowest to about the first: how far up they go at the end says nothing. */
static dv_field field_of(const dv_rate_point *points, size_t count) {
    dv_range rates = DV_RANGE_EMPTY, losses = DV_RANGE_EMPTY;
    for (size_t i = 0; i < count; i++) {
        dv_range_add(&rates, points[i].rate);
        if (points[i].smoothed <= 1.5 * points[0].smoothed)
            dv_range_add(&losses, points[i].smoothed);
    }
    return (dv_field){.x = dv_axis_logarithmic(rates, DV_UNIT_NONE), .y = dv_axis_linear(losses, DV_UNIT_NONE, 5)};
}

/* One of the two curves, where it is inside of the field. */
static void draw_curve(dv_drawing *drawing, const dv_field *field, const dv_rate_point *points, size_t count,
                       bool smoothed) {
    char look[DV_LOOK_BYTES];
    dv_path path = dv_path_begin(drawing, smoothed ? dv_series_look(0, "line", look) : "reference line");
    for (size_t i = 0; i < count; i++) {
        double loss = smoothed ? points[i].smoothed : points[i].loss;
        if (loss >= field->y.low && loss <= field->y.high)
            dv_path_point(&path, dv_axis_at(&field->x, points[i].rate), dv_axis_at(&field->y, loss));
        else
            dv_path_lift(&path);
    }
    dv_path_end(&path, smoothed ? "loss, smoothed" : "loss of each step");
}

static void draw_suggestion(dv_drawing *drawing, const dv_field *field, double rate) {
    char words[DV_UNIT_TEXT], label[DV_UNIT_TEXT + sizeof "suggested: "];
    if (isnan(rate) || rate < field->x.low)
        return;
    double x = dv_axis_at(&field->x, rate);
    dv_draw_line(drawing, x, field->top, x, field->bottom, "reference");
    snprintf(label, sizeof label, "suggested: %s", dv_digits_text(rate, 2, words));
    dv_draw_words(drawing, (dv_words){.x = x + 4, .y = field->top + DV_LETTERS, .look = "small"}, label);
}

dv_status dv_report_rates_svg(const dv_rate_point *points, const dv_rate_found *found, const char *title,
                              const char *path, dv_error *error) {
    dv_drawing drawing = {0};
    dv_text body = {0}, text = {0};
    DV_NEED(points);
    DV_NEED(found);
    DV_NEED(title);
    DV_NEED(path);
    dv_field field = field_of(points, found->points);
    drawing.height =
        dv_draw_field(&drawing, &field, title, HEIGHT, "loss, smoothed; dashed: of each step", "learning rate") + 4;
    draw_curve(&drawing, &field, points, found->points, false);
    draw_curve(&drawing, &field, points, found->points, true);
    draw_suggestion(&drawing, &field, found->suggested);
    int height = (int)ceil(drawing.height);
    dv_draw_finish(&drawing, &(dv_svg){.inside = true}, &body);
    dv_svg_file(title, DV_PANEL_WIDTH, height, &body, &text);
    dv_status status = dv_text_replace(&text, path, error);
    dv_text_free(&body);
    dv_text_free(&text);
    return status;
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void put_points(dv_json *json, const dv_rate_point *points, size_t count) {
    dv_json_array(json, "points");
    for (size_t i = 0; i < count; i++) {
        dv_json_object(json, NULL);
        dv_json_number(json, "rate", points[i].rate);
        dv_json_number(json, "loss", points[i].loss);
        dv_json_number(json, "smoothed", points[i].smoothed);
        dv_json_end(json);
    }
    dv_json_end(json);
}

dv_status dv_report_rates_json(const dv_rate_point *points, const dv_rate_found *found, const char *path,
                               dv_error *error) {
    DV_NEED(points);
    DV_NEED(found);
    DV_NEED(path);
    size_t bytes = FRONT_BYTES + found->points * POINT_BYTES;
    char *text = malloc(bytes);
    dv_json json;
    if (text == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to write %s: free some", dv_file_shown(path));
    dv_json_to_buffer(&json, text, bytes - 1);
    dv_json_object(&json, NULL);
    dv_json_number(&json, "suggested", found->suggested);
    dv_json_number(&json, "lowest", found->lowest);
    dv_json_boolean(&json, "at_end", found->at_end);
    put_points(&json, points, found->points);
    dv_json_end(&json);
    dv_status status = dv_json_finish(&json, error);
    if (status == DV_OK)
        status = dv_file_replace(path, strcat(text, "\n"), strlen(text), error);
    free(text);
    return status;
}
