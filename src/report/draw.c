/* Shapes and words as SVG. */
#include "report/draw.h"

#include "base/printable.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DECIMALS = 1, CUT_BYTES = 512 };

void dv_drawing_free(dv_drawing *drawing) {
    dv_text_free(&drawing->body);
    dv_text_free(&drawing->title);
}

/* ` name="number"`. */
static void put_attribute(dv_text *text, const char *name, double number) {
    dv_text_format(text, " %s=\"", name);
    dv_text_number(text, isfinite(number) ? number : 0, DECIMALS);
    dv_text_put(text, "\"");
}

static void put_look(dv_text *text, const char *look) {
    if (look != NULL)
        dv_text_format(text, " class=\"%s\"", look);
}

/* Ends the tag of a shape, with its hint inside if it has one. */
static void end_shape(dv_text *text, const char *name, const char *hint) {
    if (hint == NULL) {
        dv_text_put(text, "/>\n");
        return;
    }
    dv_text_put(text, "><title>");
    dv_text_escape(text, hint);
    dv_text_format(text, "</title></%s>\n", name);
}

/* ---- words --------------------------------------------------------------------------------- */

/* Widths of Helvetica's and Arial's letters from the space on, in thousandths of their size. */
static const unsigned short widths[] = {278,  278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
                                        556,  556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
                                        1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
                                        667,  778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
                                        333,  556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
                                        556,  556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584};

/* Width of the character at `at`, of `length` bytes; three bytes and more may be of a script with wide ones. */
static double character_width(const char *at, size_t length) {
    unsigned index = (unsigned char)*at - 32u;
    if (length == 1 && index < sizeof widths / sizeof *widths)
        return widths[index] / 1000.0;
    return length <= 2 ? 0.6 : 1;
}

double dv_words_width(const char *words, double letters) {
    const double other_fonts = 1.08; /* are wider */
    double width = 0;
    for (; *words != '\0'; words += dv_utf8_step(words))
        width += character_width(words, dv_utf8_step(words));
    return width * letters * other_fonts;
}

/* Cuts words in their middle, where they differ least, until they fit. Returns whether that was needed. */
static bool cut_words(const char *words, double letters, double room, char cut[CUT_BYTES]) {
    size_t length = strlen(words), head = 0, tail = length;
    double used = dv_words_width("\xe2\x80\xa6", letters);
    if (room <= 0 || dv_words_width(words, letters) <= room)
        return false;
    for (bool front = true; head < tail; front = !front) {
        size_t bytes = dv_utf8_step(words + head);
        char character[8] = "";
        if (!front)
            for (bytes = 1; bytes < 4 && tail > head + bytes && ((unsigned char)words[tail - bytes] & 0xc0) == 0x80;)
                bytes++;
        memcpy(character, front ? words + head : words + tail - bytes, bytes);
        used += dv_words_width(character, letters);
        if (used > room || head + bytes + (length - tail) + 8 > CUT_BYTES)
            break;
        head += front ? bytes : 0;
        tail -= front ? 0 : bytes;
    }
    snprintf(cut, CUT_BYTES, "%.*s\xe2\x80\xa6%s", (int)head, words, words + tail);
    return true;
}

static double letters_of(const char *look) {
    if (look != NULL && strstr(look, "heading") != NULL)
        return DV_TITLE_LETTERS;
    return look != NULL && strstr(look, "small") != NULL ? DV_SMALL_LETTERS : DV_LETTERS;
}

void dv_draw_words(dv_drawing *drawing, dv_words place, const char *words) {
    static const char *const anchors[] = {"start", "middle", "end"};
    char cut[CUT_BYTES];
    bool is_cut = cut_words(words, letters_of(place.look), place.room, cut);
    const char *hint = place.hint != NULL ? place.hint : is_cut ? words : NULL;
    dv_text_put(&drawing->body, "<text");
    put_attribute(&drawing->body, "x", place.x);
    put_attribute(&drawing->body, "y", place.y);
    if (place.at != DV_START)
        dv_text_format(&drawing->body, " text-anchor=\"%s\"", anchors[place.at]);
    put_look(&drawing->body, place.look);
    dv_text_put(&drawing->body, ">");
    dv_text_escape(&drawing->body, is_cut ? cut : words);
    if (hint != NULL) {
        dv_text_put(&drawing->body, "<title>");
        dv_text_escape(&drawing->body, hint);
        dv_text_put(&drawing->body, "</title>");
    }
    dv_text_put(&drawing->body, "</text>\n");
}

void dv_draw_heading(dv_drawing *drawing, const char *words) {
    dv_text_escape(&drawing->title, words);
    dv_draw_words(drawing, (dv_words){.x = DV_EDGE, .y = 16, .look = "heading", .room = DV_PANEL_WIDTH - 2 * DV_EDGE},
                  words);
}

/* ---- shapes -------------------------------------------------------------------------------- */

void dv_draw_line(dv_drawing *drawing, double x1, double y1, double x2, double y2, const char *look) {
    dv_text_put(&drawing->body, "<line");
    put_attribute(&drawing->body, "x1", x1);
    put_attribute(&drawing->body, "y1", y1);
    put_attribute(&drawing->body, "x2", x2);
    put_attribute(&drawing->body, "y2", y2);
    put_look(&drawing->body, look);
    end_shape(&drawing->body, "line", NULL);
}

void dv_draw_box(dv_drawing *drawing, double x, double y, double width, double height, const char *look,
                 const char *hint) {
    dv_text_put(&drawing->body, "<rect");
    put_attribute(&drawing->body, "x", x);
    put_attribute(&drawing->body, "y", y);
    put_attribute(&drawing->body, "width", fmax(width, 0));
    put_attribute(&drawing->body, "height", fmax(height, 0));
    put_look(&drawing->body, look);
    end_shape(&drawing->body, "rect", hint);
}

dv_path dv_path_begin(dv_drawing *drawing, const char *look) {
    dv_text_put(&drawing->body, "<path");
    put_look(&drawing->body, look);
    dv_text_put(&drawing->body, " d=\"");
    return (dv_path){.drawing = drawing};
}

void dv_path_point(dv_path *path, double x, double y) {
    if (!isfinite(x) || !isfinite(y))
        return;
    dv_text_put(&path->drawing->body, path->down ? "L" : "M");
    dv_text_number(&path->drawing->body, x, DECIMALS);
    dv_text_put(&path->drawing->body, " ");
    dv_text_number(&path->drawing->body, y, DECIMALS);
    path->down = true;
}

void dv_path_lift(dv_path *path) {
    path->down = false;
}

void dv_path_close(dv_path *path) {
    if (path->down)
        dv_text_put(&path->drawing->body, "Z");
    path->down = false;
}

void dv_path_end(dv_path *path, const char *hint) {
    dv_text_put(&path->drawing->body, "\"");
    end_shape(&path->drawing->body, "path", hint);
}

/* ---- series -------------------------------------------------------------------------------- */

const char *dv_series_look(size_t series, const char *name, char look[DV_LOOK_BYTES]) {
    snprintf(look, DV_LOOK_BYTES, "%.24s c%u d%u", name, (unsigned)(series % DV_COLOURS),
             (unsigned)(series % DV_DASHES));
    return look;
}

/* Corners of marks around (0, 0), about as large as a circle of radius 1; a circle has many. */
typedef struct mark_form {
    int corners;
    double first; /* angle of the first corner, in turns */
    double size;
} mark_form;

static const mark_form marks[DV_MARKS] = {{24, 0, 1},     {4, 0.125, 1.25}, {3, -0.25, 1.4}, {4, 0, 1.3},
                                          {3, 0.25, 1.4}, {6, 0, 1.15},     {5, -0.25, 1.2}};

void dv_draw_mark(dv_drawing *drawing, double x, double y, double radius, size_t series, const char *hint) {
    const double turn = 6.283185307179586;
    const mark_form *form = &marks[series % DV_MARKS];
    char look[DV_LOOK_BYTES];
    dv_path path = dv_path_begin(drawing, dv_series_look(series, "mark", look));
    for (int i = 0; i < form->corners; i++) {
        double angle = turn * (form->first + (double)i / form->corners);
        dv_path_point(&path, x + radius * form->size * cos(angle), y + radius * form->size * sin(angle));
    }
    dv_path_close(&path);
    dv_path_end(&path, hint);
}

/* ---- legends ------------------------------------------------------------------------------- */

enum { SAMPLE = 26, GAP = 8, BETWEEN = 18, ROW = 18, MARGIN = 10 };

double dv_draw_legend(dv_drawing *drawing, double top, const dv_legend_entry *entries, size_t count) {
    double x = MARGIN, y = top;
    char look[DV_LOOK_BYTES];
    for (size_t i = 0; i < count; i++) {
        double words = dv_words_width(entries[i].words, DV_LETTERS), right = DV_PANEL_WIDTH - MARGIN;
        if (x > MARGIN && x + SAMPLE + GAP + words > right) {
            x = MARGIN;
            y += ROW;
        }
        dv_draw_line(drawing, x, y + ROW / 2.0, x + SAMPLE, y + ROW / 2.0,
                     dv_series_look(entries[i].series, "line", look));
        dv_draw_mark(drawing, x + SAMPLE / 2.0, y + ROW / 2.0, 3.5, entries[i].series, NULL);
        dv_draw_words(drawing, (dv_words){.x = x + SAMPLE + GAP, .y = y + 13, .room = right - x - SAMPLE - GAP},
                      entries[i].words);
        x += SAMPLE + GAP + words + BETWEEN;
    }
    return y + ROW;
}

/* ---- the whole ----------------------------------------------------------------------------- */

void dv_draw_finish(dv_drawing *drawing, const dv_svg *svg, dv_text *text) {
    dv_text_put(text, "<svg");
    put_look(text, svg->class);
    if (svg->inside) {
        put_attribute(text, "x", svg->x);
        put_attribute(text, "y", svg->y);
    }
    put_attribute(text, "width", DV_PANEL_WIDTH);
    put_attribute(text, "height", drawing->height);
    dv_text_format(text, " viewBox=\"0 0 %d ", DV_PANEL_WIDTH);
    dv_text_number(text, drawing->height, DECIMALS);
    dv_text_put(text, "\" role=\"img\" aria-label=\"");
    if (drawing->title.length > 0)
        dv_text_bytes(text, drawing->title.data, drawing->title.length);
    dv_text_put(text, "\">\n");
    if (drawing->body.length > 0)
        dv_text_bytes(text, drawing->body.data, drawing->body.length);
    text->failed |= drawing->body.failed;
    dv_text_put(text, "</svg>\n");
    dv_drawing_free(drawing);
}
