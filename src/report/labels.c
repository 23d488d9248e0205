/* Where labels go: places around the point are tried, near ones first, until one is free. */
#include "report/labels.h"

#include <math.h>
#include <stdlib.h>

enum { HEIGHT = 14, RADIUS = 6, FURTHEST = 12 };

typedef struct box {
    double left, top, right, bottom;
} box;

/* What is taken already: points, and labels that have their place. */
typedef struct taken {
    box *boxes;
    size_t count;
} taken;

static bool overlap(const box *a, const box *b) {
    return a->left < b->right && b->left < a->right && a->top < b->bottom && b->top < a->bottom;
}

static bool is_free(const taken *all, const dv_field *field, const box *place) {
    if (place->left < field->left || place->right > field->right || place->top < field->top ||
        place->bottom > field->bottom)
        return false;
    for (size_t i = 0; i < all->count; i++)
        if (overlap(place, &all->boxes[i]))
            return false;
    return true;
}

/* The place number `side` at a distance of so many lines: to the right, to the left, centred; above or below. */
static box place_at(const dv_label *label, double width, int side, int lines) {
    const double lefts[] = {label->x + RADIUS + 3, label->x - RADIUS - 3 - width, label->x - width / 2};
    double shift = (side % 2 == 0 ? -1 : 1) * lines * HEIGHT;
    double middle = label->y + shift;
    return (box){lefts[side / 2], middle - HEIGHT / 2.0, lefts[side / 2] + width, middle + HEIGHT / 2.0};
}

static bool find_place(const taken *all, const dv_field *field, const dv_label *label, double width, box *place) {
    for (int lines = 0; lines <= FURTHEST; lines++)
        for (int side = 0; side < 6; side++) {
            *place = place_at(label, width, side, lines);
            if (is_free(all, field, place))
                return true;
        }
    return false;
}

static bool is_beside(const dv_label *label, const box *place) {
    return place->top < label->y && place->bottom > label->y;
}

static void draw_label(dv_drawing *drawing, const dv_label *label, const box *place, double room) {
    double y = (place->top + place->bottom) / 2;
    double near = fmin(fmax(label->x, place->left), place->right);
    if (!is_beside(label, place))
        dv_draw_line(drawing, label->x, label->y, near, y < label->y ? place->bottom : place->top, "leader");
    dv_draw_words(drawing, (dv_words){.x = place->left, .y = place->bottom - 3, .look = "small halo", .room = room},
                  label->words);
}

size_t dv_draw_labels(dv_drawing *drawing, const dv_field *field, const dv_label *labels, size_t count) {
    taken all = {.boxes = calloc(2 * count + 1, sizeof *all.boxes)};
    size_t apart = 0;
    double room = (field->right - field->left) * 0.72;
    drawing->body.failed |= all.boxes == NULL;
    for (size_t i = 0; all.boxes != NULL && i < count; i++)
        all.boxes[all.count++] =
            (box){labels[i].x - RADIUS, labels[i].y - RADIUS, labels[i].x + RADIUS, labels[i].y + RADIUS};
    for (size_t i = 0; all.boxes != NULL && i < count; i++) {
        box place;
        double width = fmin(dv_words_width(labels[i].words, DV_SMALL_LETTERS), room);
        if (find_place(&all, field, &labels[i], width, &place)) {
            draw_label(drawing, &labels[i], &place, room);
            all.boxes[all.count++] = place;
            apart += !is_beside(&labels[i], &place);
        } else {
            apart++;
        }
    }
    free(all.boxes);
    return apart;
}
