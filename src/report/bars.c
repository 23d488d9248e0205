/* Horizontal bars. */
#include "report/bars.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOP = DV_HEADING_HEIGHT + 24, ROW = 38, THICKNESS = 14, BELOW = 24, GAP = 6 };

dv_bar *dv_bars_new(dv_drawing *drawing, size_t count) {
    dv_bar *bars = calloc(count > 0 ? count : 1, sizeof *bars);
    drawing->body.failed |= bars == NULL;
    for (size_t i = 0; bars != NULL && i < count; i++) {
        bars[i].spread = DV_RANGE_EMPTY;
        bars[i].published = NAN;
    }
    return bars;
}

static const char *words_of(const dv_bar_chart *chart, const dv_bar *bar, char text[DV_UNIT_TEXT]) {
    return bar->words[0] != '\0' ? bar->words : dv_unit_text(chart->unit, bar->number, text);
}

static dv_axis axis_of(const dv_bar_chart *chart) {
    dv_range range = DV_RANGE_EMPTY;
    double widest = 0;
    char text[DV_UNIT_TEXT];
    for (size_t i = 0; i < chart->count; i++) {
        const dv_bar *bar = &chart->bars[i];
        dv_range_add(&range, bar->number);
        dv_range_add(&range, bar->published);
        if (!dv_range_is_empty(&bar->spread)) {
            dv_range_add(&range, bar->spread.low);
            dv_range_add(&range, bar->spread.high);
        }
        widest = fmax(widest, dv_words_width(words_of(chart, bar, text), DV_LETTERS));
    }
    dv_range_add(&range, chart->reference);
    if (chart->from_zero)
        dv_range_add(&range, 0);
    else /* so that the least bar is seen to be one */
        range.low -= (range.high - range.low) * 0.5;
    dv_axis axis = dv_axis_linear(range, chart->unit, 4);
    axis.from = DV_EDGE;
    axis.to = DV_PANEL_WIDTH - DV_EDGE - widest - 2 * GAP;
    return axis;
}

static void draw_scale(dv_drawing *drawing, const dv_bar_chart *chart, const dv_axis *axis, double bottom) {
    char text[DV_UNIT_TEXT];
    double free_from = 0;
    for (size_t i = 0; i < axis->mark_count; i++) {
        double x = dv_axis_at(axis, axis->marks[i]);
        double width = dv_words_width(dv_axis_mark_text(axis, i, text), DV_SMALL_LETTERS);
        double start = fmax(x - width / 2, DV_EDGE / 2.0);
        dv_draw_line(drawing, x, TOP - GAP, x, bottom, "grid");
        if (start < free_from)
            continue;
        dv_draw_words(drawing, (dv_words){.x = start, .y = bottom + 14, .look = "small quiet"}, text);
        free_from = start + width + GAP;
    }
    if (!isnan(chart->reference))
        dv_draw_line(drawing, dv_axis_at(axis, chart->reference), TOP - GAP, dv_axis_at(axis, chart->reference), bottom,
                     "reference");
}

/* A line from the least to the most, with ends. */
static void draw_spread(dv_drawing *drawing, const dv_bar *bar, const dv_axis *axis, double y) {
    if (!(bar->spread.high > bar->spread.low))
        return;
    double low = dv_axis_at(axis, bar->spread.low), high = dv_axis_at(axis, bar->spread.high);
    dv_draw_line(drawing, low, y, high, y, "whisker");
    dv_draw_line(drawing, low, y - 4, low, y + 4, "whisker");
    dv_draw_line(drawing, high, y - 4, high, y + 4, "whisker");
}

static void draw_diamond(dv_drawing *drawing, double x, double y, const char *hint) {
    dv_path path = dv_path_begin(drawing, "published");
    dv_path_point(&path, x - 5, y);
    dv_path_point(&path, x, y - 5);
    dv_path_point(&path, x + 5, y);
    dv_path_point(&path, x, y + 5);
    dv_path_close(&path);
    dv_path_end(&path, hint);
}

static void draw_published(dv_drawing *drawing, const dv_bar_chart *chart, const dv_bar *bar, const dv_axis *axis,
                           double y) {
    char hint[2 * DV_BAR_WORDS], text[DV_UNIT_TEXT];
    if (isnan(bar->published))
        return;
    snprintf(hint, sizeof hint, "%s, published: %s", bar->name, dv_unit_text(chart->unit, bar->published, text));
    draw_diamond(drawing, dv_axis_at(axis, bar->published), y, hint);
}

/* What diamonds are, where there are some. Returns where the panel ends. */
static double explain_diamonds(dv_drawing *drawing, const dv_bar_chart *chart, double top) {
    for (size_t i = 0; i < chart->count; i++) {
        if (isnan(chart->bars[i].published))
            continue;
        draw_diamond(drawing, DV_EDGE + 5, top + 6, NULL);
        dv_draw_words(drawing, (dv_words){.x = DV_EDGE + 16, .y = top + 10, .look = "small quiet"}, "as published");
        return top + 18;
    }
    return top;
}

static void draw_bar(dv_drawing *drawing, const dv_bar_chart *chart, const dv_bar *bar, const dv_axis *axis,
                     double top) {
    char text[DV_UNIT_TEXT], look[DV_LOOK_BYTES], hint[2 * DV_BAR_WORDS];
    double end = dv_axis_at(axis, bar->number), y = top + 18;
    double behind = fmax(end, isnan(bar->published) ? end : dv_axis_at(axis, bar->published) + GAP);
    if (!dv_range_is_empty(&bar->spread))
        behind = fmax(behind, dv_axis_at(axis, bar->spread.high));
    snprintf(hint, sizeof hint, "%s: %s", bar->name, bar->hint[0] != '\0' ? bar->hint : words_of(chart, bar, text));
    dv_draw_words(drawing,
                  (dv_words){.x = DV_EDGE, .y = top + 12, .look = "halo", .room = DV_PANEL_WIDTH - 2 * DV_EDGE},
                  bar->name);
    dv_draw_box(drawing, axis->from, y, end - axis->from, THICKNESS, dv_series_look(bar->series, "bar", look), hint);
    draw_spread(drawing, bar, axis, y + THICKNESS / 2.0);
    draw_published(drawing, chart, bar, axis, y + THICKNESS / 2.0);
    dv_draw_words(drawing, (dv_words){.x = behind + GAP, .y = y + 12, .look = "strong halo"},
                  words_of(chart, bar, text));
}

void dv_draw_bars(dv_drawing *drawing, const dv_bar_chart *chart) {
    dv_axis axis = axis_of(chart);
    double bottom = TOP + (double)chart->count * ROW + GAP;
    dv_draw_heading(drawing, chart->title);
    dv_draw_words(
        drawing,
        (dv_words){
            .x = DV_EDGE, .y = DV_HEADING_HEIGHT + 14, .look = "small quiet", .room = DV_PANEL_WIDTH - 2 * DV_EDGE},
        chart->caption);
    draw_scale(drawing, chart, &axis, bottom);
    for (size_t i = 0; i < chart->count; i++)
        if (!isnan(chart->bars[i].number))
            draw_bar(drawing, chart, &chart->bars[i], &axis, TOP + (double)i * ROW);
    drawing->height = explain_diamonds(drawing, chart, bottom + BELOW);
}
