/* Axes and fields. */
#include "report/axis.h"

#include <math.h>

void dv_range_add(dv_range *range, double number) {
    if (!isfinite(number))
        return;
    range->low = fmin(range->low, number);
    range->high = fmax(range->high, number);
}

bool dv_range_is_empty(const dv_range *range) {
    return range->low > range->high;
}

/* ---- marks --------------------------------------------------------------------------------- */

/* 1, 2 or 5 times a power of ten: the least that is not below `step`. */
static double round_step(double step) {
    double power = pow(10, floor(log10(step)));
    double part = step / power * (1 - 1e-9);
    return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

/* A range of more than one number, which arithmetic can be done with. */
static dv_range widened(dv_range range) {
    if (dv_range_is_empty(&range))
        return (dv_range){0, 1};
    double least = fmax(fabs(range.high) * 1e-6, 1e-12);
    if (range.high - range.low >= least)
        return range;
    double around = range.high != 0 ? fabs(range.high) * 0.1 : 1;
    return (dv_range){range.low - (range.low >= 0 && range.low < around ? range.low : around), range.high + around};
}

static void add_marks(dv_axis *axis) {
    double first = ceil(axis->low / axis->step - 1e-9);
    for (; axis->mark_count < DV_MOST_MARKS; axis->mark_count++) {
        double mark = (first + (double)axis->mark_count) * axis->step;
        if (mark > axis->high + axis->step * 1e-6)
            break;
        axis->marks[axis->mark_count] = mark;
    }
}

static dv_axis with_steps(dv_range range, dv_unit unit, int wanted) {
    range = widened(range);
    double step = round_step((range.high - range.low) / wanted);
    if (unit == DV_UNIT_COUNT && step < 1)
        step = 1;
    return (dv_axis){.low = range.low, .high = range.high, .unit = unit, .step = step};
}

dv_axis dv_axis_linear(dv_range range, dv_unit unit, int wanted) {
    dv_axis axis = with_steps(range, unit, wanted);
    axis.low = floor(axis.low / axis.step + 1e-9) * axis.step;
    axis.high = ceil(axis.high / axis.step - 1e-9) * axis.step;
    add_marks(&axis);
    return axis;
}

dv_axis dv_axis_tight(dv_range range, dv_unit unit, int wanted) {
    dv_axis axis = with_steps(range, unit, wanted);
    add_marks(&axis);
    return axis;
}

dv_axis dv_axis_logarithmic(dv_range range, dv_unit unit) {
    static const double steps[] = {1, 2, 5};
    if (dv_range_is_empty(&range) || range.low <= 0)
        range = (dv_range){1, 10};
    dv_axis axis = {.low = range.low / 1.3, .high = range.high * 1.3, .unit = unit, .logarithmic = true};
    int many = axis.high / axis.low > 1000; /* powers of ten alone */
    int first = (int)floor(log10(axis.low)), last = (int)ceil(log10(axis.high));
    for (int power = first; power <= last; power++)
        for (int i = 0; i < (many ? 1 : 3); i++) {
            double mark = steps[i] * pow(10, power);
            if (mark >= axis.low && mark <= axis.high && axis.mark_count < DV_MOST_MARKS)
                axis.marks[axis.mark_count++] = mark;
        }
    return axis;
}

double dv_axis_at(const dv_axis *axis, double number) {
    double share = axis->logarithmic ? log(number / axis->low) / log(axis->high / axis->low)
                                     : (number - axis->low) / (axis->high - axis->low);
    return axis->from + (axis->to - axis->from) * share;
}

const char *dv_axis_mark_text(const dv_axis *axis, size_t mark, char text[DV_UNIT_TEXT]) {
    if (axis->logarithmic)
        return dv_mark_text(axis->unit, axis->marks[mark], axis->marks[mark], axis->marks[mark], text);
    return dv_mark_text(axis->unit, axis->marks[mark], axis->step, fmax(fabs(axis->low), fabs(axis->high)), text);
}

/* ---- fields -------------------------------------------------------------------------------- */

enum { CAPTION = 20, MARK_ROOM = 20, GAP = 6 };

static double widest_mark(const dv_axis *axis) {
    double widest = 0;
    char text[DV_UNIT_TEXT];
    for (size_t i = 0; i < axis->mark_count; i++)
        widest = fmax(widest, dv_words_width(dv_axis_mark_text(axis, i, text), DV_SMALL_LETTERS));
    return widest;
}

static void draw_left_axis(dv_drawing *drawing, const dv_field *field) {
    char text[DV_UNIT_TEXT];
    for (size_t i = 0; i < field->y.mark_count; i++) {
        double y = dv_axis_at(&field->y, field->y.marks[i]);
        dv_draw_line(drawing, field->left, y, field->right, y, "grid");
        dv_draw_words(drawing, (dv_words){.x = field->left - GAP, .y = y + 4, .at = DV_END, .look = "small quiet"},
                      dv_axis_mark_text(&field->y, i, text));
    }
}

/* Marks whose words would touch those before are left out. */
static void draw_lower_axis(dv_drawing *drawing, const dv_field *field, double y) {
    double free_from = -1e9;
    char text[DV_UNIT_TEXT];
    dv_draw_line(drawing, field->left, y, field->right, y, "axis");
    for (size_t i = 0; i < field->x.mark_count; i++) {
        double x = dv_axis_at(&field->x, field->x.marks[i]);
        double half = dv_words_width(dv_axis_mark_text(&field->x, i, text), DV_SMALL_LETTERS) / 2;
        if (x - half < free_from || x + half > DV_PANEL_WIDTH)
            continue;
        free_from = x + half + GAP;
        dv_draw_line(drawing, x, y, x, y + 4, "axis");
        dv_draw_words(drawing, (dv_words){.x = x, .y = y + 16, .at = DV_MIDDLE, .look = "small quiet"}, text);
    }
}

/* Gives a field its pixels, with room for the marks at its left. */
static void place_field(dv_field *field, double height) {
    field->top = DV_HEADING_HEIGHT + CAPTION + GAP + 4;
    field->bottom = field->top + height;
    field->left = DV_EDGE + widest_mark(&field->y) + GAP;
    field->right = DV_PANEL_WIDTH - DV_EDGE - 10;
    field->x.from = field->left;
    field->x.to = field->right;
    field->y.from = field->bottom;
    field->y.to = field->top;
}

double dv_draw_field_above(dv_drawing *drawing, dv_field *field, const char *title, double height, double lane,
                           const char *y_words, const char *x_words) {
    const double room = DV_PANEL_WIDTH - 2 * DV_EDGE;
    place_field(field, height);
    double axis = field->bottom + lane;
    dv_draw_heading(drawing, title);
    dv_draw_words(drawing, (dv_words){.x = DV_EDGE, .y = DV_HEADING_HEIGHT + 14, .look = "small quiet", .room = room},
                  y_words);
    draw_left_axis(drawing, field);
    draw_lower_axis(drawing, field, axis);
    dv_draw_words(drawing,
                  (dv_words){.x = field->right, .y = axis + MARK_ROOM + 12, .at = DV_END, .look = "small quiet"},
                  x_words);
    return axis + MARK_ROOM + CAPTION;
}

double dv_draw_field(dv_drawing *drawing, dv_field *field, const char *title, double height, const char *y_words,
                     const char *x_words) {
    return dv_draw_field_above(drawing, field, title, height, 0, y_words, x_words);
}
