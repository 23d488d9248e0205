/* Drawing cards. Text comes from files: what the font does not have is drawn as a box. */
#include "sheet.h"

#include <division/tools/text.h>

#include <stdio.h>
#include <string.h>

enum { GAP = 12, MOST_COLUMNS = 6, TEXT_BYTES = 256, PERCENT_BYTES = 16, MARGIN = 3 };

const dv_colour sheet_paper = {250, 250, 248}, sheet_ink = {32, 36, 44}, sheet_pale = {226, 229, 234},
                sheet_plain = {158, 190, 226}, sheet_right = {150, 206, 160}, sheet_wrong = {240, 170, 150};

/* ---- layout -------------------------------------------------------------------------------- */

static size_t line_height(const sheet_layout *layout) {
    return DV_TEXT_HEIGHT * layout->text_zoom + 2 * MARGIN;
}

static size_t square_columns(size_t images) {
    size_t columns = 1;
    while (columns * columns < images && columns < MOST_COLUMNS)
        columns++;
    return columns;
}

dv_status sheet_new(const sheet_layout *layout, sheet *made, dv_error *error) {
    *made = (sheet){.layout = *layout};
    sheet_layout *l = &made->layout;
    l->columns = l->columns > 0 ? l->columns : square_columns(l->images);
    made->zoom = l->side < l->tile ? (l->tile + l->side - 1) / l->side : 1;
    made->width = l->side * made->zoom + GAP;
    made->height = made->width + (1 + l->bars) * line_height(l);
    size_t rows = (l->images + l->columns - 1) / l->columns;
    return dv_picture_new(&made->picture, GAP + l->columns * made->width, GAP + rows * made->height, sheet_paper,
                          error);
}

void sheet_free(sheet *made) {
    dv_picture_free(&made->picture);
}

/* ---- text ---------------------------------------------------------------------------------- */

void sheet_text(dv_picture *picture, size_t x, size_t y, size_t width, const char *text, size_t zoom,
                dv_colour colour) {
    char shown[TEXT_BYTES];
    snprintf(shown, sizeof shown, "%s", text);
    size_t length = dv_text_characters(shown), height = DV_TEXT_HEIGHT * zoom;
    while (zoom > 1 && length * DV_TEXT_WIDTH * zoom > width)
        zoom--;
    size_t fits = width / (DV_TEXT_WIDTH * zoom);
    if (fits >= 2)
        dv_picture_text(picture, x, y + (height - DV_TEXT_HEIGHT * zoom) / 2, dv_text_cut(shown, fits), zoom, colour);
}

/* ---- cards --------------------------------------------------------------------------------- */

static void draw_bar(sheet *to, size_t x, size_t y, const sheet_bar *bar) {
    size_t zoom = to->layout.text_zoom, width = to->width - GAP, height = line_height(&to->layout);
    double share = bar->share > 0 ? bar->share < 1 ? bar->share : 1 : 0;
    char percent[PERCENT_BYTES];
    snprintf(percent, sizeof percent, share > 0 && share < 0.005 ? "<1 %%" : "%.0f %%", 100 * share);
    size_t taken = strlen(percent) * DV_TEXT_WIDTH * zoom + MARGIN, most = 5 * DV_TEXT_WIDTH * zoom + MARGIN;
    dv_picture_fill(&to->picture, x, y, width, height - 2, sheet_pale);
    dv_picture_fill(&to->picture, x, y, (size_t)(share * (double)width + 0.5), height - 2, bar->colour);
    sheet_text(&to->picture, x + MARGIN, y + MARGIN, width - most - 2 * MARGIN, bar->name, zoom, sheet_ink);
    dv_picture_text(&to->picture, x + width - taken, y + MARGIN, percent, zoom, sheet_ink);
}

void sheet_draw(sheet *to, size_t index, const sheet_card *card) {
    const sheet_layout *l = &to->layout;
    size_t x = GAP + index % l->columns * to->width, y = GAP + index / l->columns * to->height;
    dv_picture_draw_image(&to->picture, x, y, (const dv_colour *)(const void *)card->pixels, l->side, l->side,
                          to->zoom);
    y += to->width - GAP + MARGIN;
    sheet_text(&to->picture, x, y, to->width - GAP, card->caption, l->text_zoom, sheet_ink);
    y += line_height(l) - MARGIN;
    for (size_t i = 0; i < card->bar_count; i++, y += line_height(l))
        draw_bar(to, x, y, &card->bars[i]);
}
