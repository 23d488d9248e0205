/* The picture of `division codec --png`: for each of a few channels of the first image a row of four panels,
 * input, LFC, HFC and decoded map. Panels are flat: of a map with three sides the middle slice is drawn, one
 * with a single side as a strip. Input, LFC and decoded map of a row share one grey scale. */
#include "codec.h"

#include "cli.h"

#include <division/tools/picture.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS = 3,           /* channels that are drawn, at most */
    COLUMNS = 4,        /* panels of a channel */
    PANEL_WIDTH = 288,  /* pixels, about */
    PANEL_HEIGHT = 576, /* at most, about */
    STRIP_HEIGHT = 48,  /* of a map with one side */
    MARGIN = 32,
    GAP = 24,
    TEXT_ZOOM = 2,
    LINE = 24,
    CAPTION_BYTES = 96
};

static const dv_colour paper = {250, 250, 248}, ink = {32, 36, 44}, pale = {118, 124, 134}, frame = {196, 200, 206};

/* Where the elements of a channel's panel are in the arrays, and how large they are drawn. */
typedef struct cli_plane {
    size_t first;              /* of channel 0 */
    size_t channel_stride;     /* to the next channel */
    size_t stride_x, stride_y; /* to the next element that is drawn */
    size_t width, height;      /* elements that are drawn */
    size_t zoom_x, zoom_y;
} cli_plane;

typedef struct cli_sheet {
    const codec_trial *trial;
    cli_plane plane;
    dv_picture picture;
    float *values; /* of one panel: [plane.height][plane.width]; owned */
    size_t channels[ROWS];
    size_t rows;
} cli_sheet;

static size_t round_up_divide(size_t a, size_t b) {
    return (a + b - 1) / b;
}

/* ---- what is drawn ------------------------------------------------------------------------- */

/* Finds the panel's elements. Of sides longer than a panel has pixels, every second or third is drawn. */
static cli_plane find_plane(const dv_map *map) {
    size_t width = map->sides[map->rank - 1], height = map->rank > 1 ? map->sides[map->rank - 2] : 1;
    size_t area = dv_map_image_elements(map) / map->channels;
    size_t step = round_up_divide(width, PANEL_WIDTH), tall = round_up_divide(height, PANEL_HEIGHT);
    if (tall > step)
        step = tall;
    int first = map->layout == DV_NCHW;
    size_t unit = first ? 1 : map->channels;
    cli_plane found = {.first = map->rank == 3 ? map->sides[0] / 2 * width * height * unit : 0,
                       .channel_stride = first ? area : 1,
                       .stride_x = step * unit,
                       .stride_y = step * width * unit,
                       .width = round_up_divide(width, step),
                       .height = round_up_divide(height, step)};
    found.zoom_x = PANEL_WIDTH / found.width;
    while (found.zoom_x > 1 && found.zoom_x * found.height > PANEL_HEIGHT)
        found.zoom_x--;
    found.zoom_y = map->rank == 1 ? STRIP_HEIGHT : found.zoom_x;
    return found;
}

/* The index of element (x, y) of a channel's panel in the arrays. */
static size_t index_of(const cli_plane *plane, size_t channel, size_t x, size_t y) {
    return plane->first + channel * plane->channel_stride + y * plane->stride_y + x * plane->stride_x;
}

/* How much a channel's panel varies. */
static double variance(const cli_sheet *sheet, size_t channel) {
    double sum = 0, squares = 0, count = (double)(sheet->plane.width * sheet->plane.height);
    for (size_t y = 0; y < sheet->plane.height; y++) {
        for (size_t x = 0; x < sheet->plane.width; x++) {
            double value = sheet->trial->input[index_of(&sheet->plane, channel, x, y)];
            sum += value;
            squares += value * value;
        }
    }
    return squares / count - sum / count * (sum / count);
}

/* Picks the channels that vary most: they have the most to show. */
static void pick_channels(cli_sheet *sheet) {
    double best[ROWS];
    for (size_t channel = 0; channel < sheet->trial->map.channels; channel++) {
        double own = variance(sheet, channel);
        size_t place = sheet->rows;
        for (; place > 0 && best[place - 1] < own; place--) {
            if (place == ROWS)
                continue;
            best[place] = best[place - 1];
            sheet->channels[place] = sheet->channels[place - 1];
        }
        if (place == ROWS)
            continue;
        best[place] = own;
        sheet->channels[place] = channel;
        sheet->rows += sheet->rows < ROWS;
    }
}

/* ---- panels -------------------------------------------------------------------------------- */

typedef enum cli_panel { PANEL_INPUT, PANEL_LOW, PANEL_HIGH, PANEL_DECODED } cli_panel;

static float panel_value(const codec_trial *trial, cli_panel panel, size_t index) {
    switch (panel) {
    case PANEL_LOW:
        return trial->low[index];
    case PANEL_HIGH:
        return trial->input[index] - trial->low[index];
    case PANEL_DECODED:
        return trial->decoded[index];
    default:
        return trial->input[index];
    }
}

/* Copies a panel's numbers into sheet->values, and finds their bounds. */
static void gather(cli_sheet *sheet, cli_panel panel, size_t channel, float *low, float *high) {
    *low = INFINITY;
    *high = -INFINITY;
    for (size_t y = 0; y < sheet->plane.height; y++) {
        for (size_t x = 0; x < sheet->plane.width; x++) {
            float value = panel_value(sheet->trial, panel, index_of(&sheet->plane, channel, x, y));
            sheet->values[y * sheet->plane.width + x] = value;
            *low = fminf(*low, value);
            *high = fmaxf(*high, value);
        }
    }
}

static size_t column_x(const cli_sheet *sheet, int column) {
    size_t width = sheet->plane.width * sheet->plane.zoom_x;
    return MARGIN + (size_t)column * ((width > PANEL_WIDTH ? width : PANEL_WIDTH) + GAP);
}

static size_t row_height(const cli_sheet *sheet) {
    return sheet->plane.height * sheet->plane.zoom_y + LINE + GAP;
}

static size_t row_y(const cli_sheet *sheet, size_t row) {
    return MARGIN + 5 * LINE + row * row_height(sheet);
}

/* Draws sheet->values, framed. */
static void draw_panel(cli_sheet *sheet, size_t x, size_t y, dv_scale scale, float low, float high) {
    const cli_plane *plane = &sheet->plane;
    dv_picture_map map = {.values = sheet->values,
                          .width = plane->width,
                          .height = plane->height,
                          .stride_x = 1,
                          .stride_y = plane->width,
                          .zoom_x = plane->zoom_x,
                          .zoom_y = plane->zoom_y,
                          .low = low,
                          .high = high,
                          .scale = scale};
    dv_picture_fill(&sheet->picture, x - 1, y - 1, plane->width * plane->zoom_x + 2, plane->height * plane->zoom_y + 2,
                    frame);
    dv_picture_draw_map(&sheet->picture, x, y, &map);
}

static void draw_text(cli_sheet *sheet, size_t x, size_t y, const char *text, dv_colour colour) {
    dv_picture_text(&sheet->picture, x, y, text, TEXT_ZOOM, colour);
}

/* What is written below a panel. */
static void caption(const cli_sheet *sheet, cli_panel panel, size_t channel, float low, float high,
                    char text[CAPTION_BYTES]) {
    codec_measure measure = {0};
    for (size_t y = 0; y < sheet->plane.height; y++)
        for (size_t x = 0; x < sheet->plane.width; x++)
            cli_codec_measure_element(sheet->trial, index_of(&sheet->plane, channel, x, y), &measure);
    if (panel == PANEL_INPUT)
        snprintf(text, CAPTION_BYTES, "channel %zu", channel);
    else if (panel == PANEL_DECODED && measure.noise > 0)
        snprintf(text, CAPTION_BYTES, "%.1f dB", cli_codec_snr(&measure));
    else
        snprintf(text, CAPTION_BYTES, "%.3g to %.3g", (double)low, (double)high);
}

static void draw_row(cli_sheet *sheet, size_t row) {
    size_t channel = sheet->channels[row], y = row_y(sheet, row);
    float darkest, brightest, low, high;
    gather(sheet, PANEL_INPUT, channel, &darkest, &brightest);
    for (int column = 0; column < COLUMNS; column++) {
        char text[CAPTION_BYTES];
        size_t x = column_x(sheet, column);
        gather(sheet, (cli_panel)column, channel, &low, &high);
        caption(sheet, (cli_panel)column, channel, low, high, text);
        if (column == PANEL_HIGH) {
            float end = fmaxf(-low, high);
            draw_panel(sheet, x, y, DV_SCALE_DIVERGING, -end, end);
        } else {
            draw_panel(sheet, x, y, DV_SCALE_GREY, darkest, brightest);
        }
        draw_text(sheet, x, y + sheet->plane.height * sheet->plane.zoom_y + 8, text, pale);
    }
}

/* ---- the sheet ----------------------------------------------------------------------------- */

/* Two lines above a column: what it is, and what it costs or holds. */
static void draw_head(cli_sheet *sheet, int column, const char *title, const char *detail) {
    size_t x = column_x(sheet, column), y = MARGIN + 2 * LINE + LINE / 2;
    draw_text(sheet, x, y, title, ink);
    draw_text(sheet, x, y + LINE - 2, detail, pale);
}

static void draw_heads(cli_sheet *sheet, const codec_measure *measure) {
    char text[CAPTION_BYTES];
    double share = measure->signal > 0 ? 100 * measure->low / measure->signal : 0;
    snprintf(text, sizeof text, "%zu bits per element", 8 * dv_type_bytes(sheet->trial->map.type));
    draw_head(sheet, PANEL_INPUT, "input", text);
    snprintf(text, sizeof text, "%.1f %% of the energy", share);
    draw_head(sheet, PANEL_LOW, "LFC: block averages", text);
    snprintf(text, sizeof text, "%.1f %% of the energy", 100 - share);
    draw_head(sheet, PANEL_HIGH, "HFC: the rest", text);
    if (measure->noise > 0)
        snprintf(text, sizeof text, "%.2f bits, %.1f dB", cli_codec_bits(sheet->trial), cli_codec_snr(measure));
    else
        snprintf(text, sizeof text, "%.2f bits, no error", cli_codec_bits(sheet->trial));
    draw_head(sheet, PANEL_DECODED, "decoded", text);
}

static void draw_sheet(cli_sheet *sheet, const codec_measure *measure) {
    char method[CLI_CODEC_TEXT], map[CLI_CODEC_TEXT];
    dv_codec_format(&sheet->trial->codec, method, sizeof method);
    draw_text(sheet, MARGIN, MARGIN, method, ink);
    cli_codec_describe(&sheet->trial->map, map);
    draw_text(sheet, sheet->picture.width - MARGIN - strlen(map) * DV_TEXT_WIDTH * TEXT_ZOOM, MARGIN, map, pale);
    dv_picture_fill(&sheet->picture, MARGIN, MARGIN + LINE + LINE / 2, sheet->picture.width - 2 * MARGIN, 1, frame);
    draw_heads(sheet, measure);
    for (size_t row = 0; row < sheet->rows; row++)
        draw_row(sheet, row);
}

/* Draws into the sheet's own memory and writes it. */
static dv_status draw_and_write(cli_sheet *sheet, const codec_measure *measure, const char *path, dv_error *error) {
    pick_channels(sheet);
    size_t width = column_x(sheet, COLUMNS) - GAP + MARGIN, height = row_y(sheet, sheet->rows) - GAP + MARGIN - 8;
    dv_status status = dv_picture_new(&sheet->picture, width, height, paper, error);
    if (status != DV_OK)
        return status;
    draw_sheet(sheet, measure);
    status = dv_picture_write(&sheet->picture, path, error);
    dv_picture_free(&sheet->picture);
    return status;
}

dv_status cli_codec_draw(const codec_trial *trial, const codec_measure *measure, const char *path, dv_error *error) {
    if (trial->map.rank == 0)
        return cli_error(
            error, DV_ERROR_UNSUPPORTED,
            "a map without sides can't be drawn: leave out --png, or reshape the array to [N, C, sides...]");
    cli_sheet sheet = {.trial = trial, .plane = find_plane(&trial->map)};
    sheet.values = malloc(sheet.plane.width * sheet.plane.height * sizeof *sheet.values);
    if (sheet.values == NULL)
        return cli_error(error, DV_ERROR_MEMORY, "no memory to draw the map: give a smaller one");
    dv_status status = draw_and_write(&sheet, measure, path, error);
    free(sheet.values);
    return status;
}
