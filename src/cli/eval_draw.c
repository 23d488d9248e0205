/* Pictures of what a test found: the matrix of classes, and a sheet of the worst mistakes.
 *
 *     title
 *     what rows and columns are
 *                c
 *                a  d
 *                t  o
 *                   g
 *       cat 90 % [] []       a cell is the darker, the more of its row it has:
 *       dog 80 % [] []       blue where that is right, red where it is wrong */
#include "eval.h"

#include "cli.h"
#include "sheet.h"

#include <division/tools/text.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MARGIN = 24,
    MATRIX_SIDE = 960, /* pixels, about */
    LEAST_CELL = 2,
    MOST_CELL = 56,
    LABELLED = 10, /* the least cell that has names beside it */
    LARGE = 20,    /* ... in large letters */
    MOST_NAME = 24,
    TITLE_ZOOM = 2,
    TITLE_BYTES = 256,
    TILE = 264
};

static const dv_colour right = {33, 102, 172}, wrong = {197, 56, 40};

/* ---- the matrix ---------------------------------------------------------------------------- */

typedef struct matrix_layout {
    size_t cell, zoom;  /* of a class; of names, 0: there are none */
    size_t left, top;   /* of the cells */
    size_t side;        /* of all cells */
    size_t name, share; /* widths of the names and of the shares beside them */
} matrix_layout;

static size_t longest_name(const eval_findings *found) {
    char text[CLI_CLASS_TEXT];
    size_t most = 1;
    for (size_t i = 0; i < found->tally.classes; i++) {
        size_t length = dv_text_characters(cli_class_text(eval_class_name(found, i), i, text));
        most = length > most ? length : most;
    }
    return most < MOST_NAME ? most : MOST_NAME;
}

static matrix_layout lay_out(const eval_findings *found) {
    size_t classes = found->tally.classes, cell = MATRIX_SIDE / classes;
    matrix_layout l = {.cell = cell < LEAST_CELL ? LEAST_CELL : cell > MOST_CELL ? MOST_CELL : cell};
    l.zoom = l.cell >= LARGE ? 2 : l.cell >= LABELLED ? 1 : 0;
    l.name = longest_name(found) * DV_TEXT_WIDTH * l.zoom;
    l.share = 6 * DV_TEXT_WIDTH * l.zoom;
    l.side = classes * l.cell;
    l.left = MARGIN + l.name + l.share + (l.zoom > 0 ? MARGIN / 2 : 0);
    l.top = MARGIN + 2 * (DV_TEXT_HEIGHT + 4) * TITLE_ZOOM + l.name + MARGIN / 2;
    return l;
}

static uint8_t mix(uint8_t from, uint8_t to, double part) {
    return (uint8_t)((double)from + ((double)to - (double)from) * part + 0.5);
}

/* From paper to the colour; small shares are to be seen too. */
static dv_colour shade(dv_colour colour, double share) {
    double part = sqrt(share);
    return (dv_colour){mix(sheet_paper.red, colour.red, part), mix(sheet_paper.green, colour.green, part),
                       mix(sheet_paper.blue, colour.blue, part)};
}

/* The count in the middle of its cell, where it fits. */
static void draw_count(dv_picture *picture, const matrix_layout *l, size_t x, size_t y, uint32_t count, double share) {
    char text[24];
    size_t length = (size_t)snprintf(text, sizeof text, "%u", count), zoom = 2;
    while (zoom > 0 && length * DV_TEXT_WIDTH * zoom + 2 > l->cell)
        zoom--;
    if (count == 0 || zoom == 0 || l->cell < LABELLED)
        return;
    dv_picture_text(picture, x + (l->cell - (length * DV_TEXT_WIDTH - 1) * zoom) / 2,
                    y + (l->cell - (DV_TEXT_HEIGHT - 2) * zoom) / 2, text, zoom, share > 0.25 ? DV_WHITE : sheet_ink);
}

static void draw_row(dv_picture *picture, const eval_findings *found, const matrix_layout *l, size_t label) {
    const eval_tally *t = &found->tally;
    size_t gap = l->cell >= LABELLED ? 1 : 0, y = l->top + label * l->cell;
    for (size_t k = 0; k < t->classes; k++) {
        uint32_t count = t->matrix[label * t->classes + k];
        double share = t->images[label] > 0 ? (double)count / (double)t->images[label] : 0;
        size_t x = l->left + k * l->cell;
        dv_colour colour = count > 0 ? shade(k == label ? right : wrong, share) : DV_WHITE;
        dv_picture_fill(picture, x, y, l->cell - gap, l->cell - gap, colour);
        draw_count(picture, l, x, y, count, share);
    }
}

static void draw_names(dv_picture *picture, const eval_findings *found, const matrix_layout *l, size_t label) {
    const eval_tally *t = &found->tally;
    char text[CLI_CLASS_TEXT], share[16] = "";
    size_t off = (l->cell - (DV_TEXT_HEIGHT - 2) * l->zoom) / 2, y = l->top + label * l->cell + off;
    cli_class_text(eval_class_name(found, label), label, text);
    size_t width = dv_text_characters(dv_text_cut(text, MOST_NAME)) * DV_TEXT_WIDTH * l->zoom;
    dv_picture_text(picture, MARGIN + l->name - width, y, text, l->zoom, sheet_ink);
    dv_picture_text_up(picture, l->left + label * l->cell + off, l->top - MARGIN / 4, text, l->zoom, sheet_ink);
    if (t->images[label] > 0)
        snprintf(share, sizeof share, "%3.0f %%", 100.0 * (double)t->correct[label] / (double)t->images[label]);
    dv_picture_text(picture, l->left - MARGIN / 4 - 5 * DV_TEXT_WIDTH * l->zoom, y, share, l->zoom, right);
}

static void draw_titles(dv_picture *picture, const eval_findings *found) {
    char text[TITLE_BYTES];
    size_t width = picture->width - 2 * MARGIN, line = (DV_TEXT_HEIGHT + 4) * TITLE_ZOOM;
    snprintf(text, sizeof text, "%s: %.2f %% of %zu images right", found->model, found->result.top1,
             found->result.images);
    sheet_text(picture, MARGIN, MARGIN, width, dv_printable(text), TITLE_ZOOM, sheet_ink);
    sheet_text(picture, MARGIN, MARGIN + line, width, "rows: what they are; columns: what they were taken for",
               TITLE_ZOOM, right);
}

dv_status eval_draw_matrix(const eval_findings *found, const char *path, dv_error *error) {
    enum { LEAST_WIDTH = 560 };
    dv_picture picture;
    if (found->tally.matrix == NULL)
        return cli_error(error, DV_ERROR_UNSUPPORTED, "--confusion-png: %zu classes are too many for a matrix",
                         found->tally.classes);
    matrix_layout l = lay_out(found);
    size_t width = l.left + l.side + MARGIN;
    dv_status status = dv_picture_new(&picture, width > LEAST_WIDTH ? width : LEAST_WIDTH, l.top + l.side + MARGIN,
                                      sheet_paper, error);
    if (status != DV_OK)
        return status;
    draw_titles(&picture, found);
    for (size_t label = 0; label < found->tally.classes; label++) {
        draw_row(&picture, found, &l, label);
        if (l.zoom > 0)
            draw_names(&picture, found, &l, label);
    }
    status = dv_picture_write(&picture, path, error);
    dv_picture_free(&picture);
    return status;
}

/* ---- the worst ----------------------------------------------------------------------------- */

static dv_status draw_mistake(const eval_findings *found, sheet *to, size_t place, uint8_t *pixels, dv_error *error) {
    const eval_mistake *m = &found->tally.mistakes[place];
    char name[TITLE_BYTES] = "", own[CLI_CLASS_TEXT], taken[CLI_CLASS_TEXT];
    int32_t label;
    dv_status status = dv_dataset_load(found->dataset, found->split, m->index, pixels, &label, error);
    if (status != DV_OK && status != DV_ERROR_FORMAT)
        return status;
    if (status == DV_ERROR_FORMAT) /* corrupt: another was tested in its place */
        memset(pixels, 128, to->layout.side * to->layout.side * 3);
    (void)dv_dataset_image_name(found->dataset, found->split, m->index, name, sizeof name, NULL);
    const char *slash = strrchr(dv_printable(name), '/');
    sheet_card card = {.pixels = pixels, .caption = slash != NULL ? slash + 1 : name};
    card.bars[card.bar_count++] =
        (sheet_bar){cli_class_text(eval_class_name(found, m->label), m->label, own), (double)m->truth, sheet_right};
    card.bars[card.bar_count++] = (sheet_bar){cli_class_text(eval_class_name(found, m->predicted), m->predicted, taken),
                                              (double)m->probability, sheet_wrong};
    sheet_draw(to, place, &card);
    return DV_OK;
}

static dv_status draw_all(const eval_findings *found, sheet *to, dv_error *error) {
    uint8_t *pixels = malloc(to->layout.side * to->layout.side * 3);
    dv_status status = DV_OK;
    if (pixels == NULL)
        return cli_error(error, DV_ERROR_MEMORY, "no memory for an image: free some");
    for (size_t i = 0; i < to->layout.images && status == DV_OK; i++)
        status = draw_mistake(found, to, i, pixels, error);
    free(pixels);
    return status;
}

dv_status eval_draw_worst(const eval_findings *found, size_t most, const char *path, dv_error *error) {
    size_t count = found->tally.mistake_count;
    const sheet_layout layout = {.images = count < most ? count : most,
                                 .side = dv_dataset_describe(found->dataset).side,
                                 .tile = TILE,
                                 .bars = 2,
                                 .text_zoom = 2};
    sheet made;
    if (count == 0) {
        cli_fail("%s was not made: there are no mistakes", path);
        return DV_OK;
    }
    dv_status status = sheet_new(&layout, &made, error);
    if (status == DV_OK)
        status = draw_all(found, &made, error);
    if (status == DV_OK)
        status = dv_picture_write(&made.picture, path, error);
    sheet_free(&made);
    return status;
}
