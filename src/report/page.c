/* The page: a section for each figure whose data is there, a sentence for each other one, what was read. */
#include "report/page.h"

#include "report/style.h"

#include <division/version.h>

#include <math.h>

/* `before`, escaped words, `after`. */
static void put_between(dv_text *text, const char *before, const char *words, const char *after) {
    dv_text_put(text, before);
    dv_text_escape(text, words);
    dv_text_put(text, after);
}

static void put_head(const char *title, dv_text *text) {
    dv_text_put(text,
                "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
                "script-src 'unsafe-inline'\">\n");
    dv_text_format(text, "<meta name=\"generator\" content=\"division %s\">\n", dv_version());
    put_between(text, "<title>", title, "</title>\n<style>\n");
    dv_text_put(text, dv_page_style);
    dv_text_put(text, dv_drawing_style);
    dv_text_put(text, "</style>\n</head>\n<body>\n");
}

/* ---- figures ------------------------------------------------------------------------------- */

static void put_panels(const dv_figure *figure, const dv_report_data *data, dv_text *text) {
    dv_text_put(text, "<div class=\"panels\">\n");
    for (size_t i = 0; i < figure->panels(data); i++) {
        dv_drawing drawing = {0};
        figure->draw(data, i, &drawing);
        dv_text_put(text, "<div>");
        dv_draw_finish(&drawing, &(dv_svg){.class = "panel"}, text);
        dv_text_put(text, "</div>\n");
    }
    dv_text_put(text, "</div>\n");
}

static void put_numbers(const dv_figure *figure, const dv_report_data *data, dv_text *text) {
    dv_table table = {0};
    figure->tabulate(data, &table);
    dv_text_format(text, "<details%s><summary>Numbers: %s</summary>\n", figure->open ? " open" : "", figure->title);
    dv_table_html(&table, figure->title, text);
    dv_text_put(text, "</details>\n");
    dv_table_free(&table);
}

static void put_figure(const dv_figure *figure, const dv_report_data *data, dv_text *text) {
    dv_text_format(
        text, "<section id=\"%s\">\n<figure aria-labelledby=\"%s-title\">\n<figcaption><h2 id=\"%s-title\">%s</h2>\n",
        figure->name, figure->name, figure->name, figure->title);
    put_between(text, "<p class=\"quiet\">", figure->about, "</p></figcaption>\n");
    put_panels(figure, data, text);
    put_numbers(figure, data, text);
    dv_text_put(text, "</figure>\n</section>\n");
}

static void put_contents(const dv_report_data *data, dv_text *text) {
    const dv_figure *figure;
    dv_text_put(text, "<nav aria-label=\"Figures\"><ul>\n");
    for (size_t i = 0; (figure = dv_figure_at(i)) != NULL; i++)
        if (figure->panels(data) > 0)
            dv_text_format(text, "<li><a href=\"#%s\">%s</a></li>\n", figure->name, figure->title);
    if (data->run_count > 0)
        dv_text_put(text, "<li><a href=\"#runs\">Runs</a></li>\n");
    dv_text_put(text, "</ul></nav>\n");
}

/* ---- runs ---------------------------------------------------------------------------------- */

/* The settings of a run that its row shows. */
static const char *const shown_settings[] = {"model", "data", "method", "precision", "batch", "seed"};

static void tabulate_run(const dv_run_folder *run, dv_table *table) {
    const dv_log_line *last = &run->log[run->epochs - 1];
    double seconds = 0;
    for (size_t i = 0; i < run->epochs; i++)
        seconds += run->log[i].seconds;
    dv_table_words(table, run->name);
    for (size_t i = 0; i < sizeof shown_settings / sizeof *shown_settings; i++)
        dv_table_words(table, dv_run_setting_of(run, shown_settings[i]));
    dv_table_number(table, last->epoch);
    dv_table_number(table, dv_run_last_top1(run));
    dv_table_number(table, last->images_per_second);
    dv_table_number(table, last->activation_bytes);
    dv_table_number(table, last->peak_bytes);
    dv_table_number(table, seconds / 60);
}

static void put_runs(const dv_report_data *data, dv_text *text) {
    dv_table table = {0};
    if (data->run_count == 0)
        return;
    dv_table_column(&table, "run", DV_UNIT_NONE);
    for (size_t i = 0; i < sizeof shown_settings / sizeof *shown_settings; i++)
        dv_table_column(&table, shown_settings[i], DV_UNIT_NONE);
    dv_table_column(&table, "epochs", DV_UNIT_COUNT);
    dv_table_column(&table, "last test", DV_UNIT_PERCENT);
    dv_table_column(&table, "last epoch", DV_UNIT_SPEED);
    dv_table_column(&table, "activations", DV_UNIT_BYTES);
    dv_table_column(&table, "peak", DV_UNIT_BYTES);
    dv_table_column(&table, "minutes", DV_UNIT_COUNT);
    for (size_t i = 0; i < data->run_count; i++)
        tabulate_run(&data->runs[i], &table);
    dv_text_put(text, "<section id=\"runs\">\n<h2>Runs</h2>\n");
    dv_table_html(&table, "Runs", text);
    dv_text_put(text, "</section>\n");
    dv_table_free(&table);
}

/* ---- what is not there, and what was read -------------------------------------------------- */

static void put_missing(const dv_report_data *data, dv_text *text) {
    const dv_figure *figure;
    size_t missing = 0;
    for (size_t i = 0; (figure = dv_figure_at(i)) != NULL; i++) {
        if (figure->panels(data) > 0)
            continue;
        if (missing++ == 0)
            dv_text_put(text, "<section id=\"missing\">\n<h2>Not in this report</h2>\n<ul>\n");
        dv_text_format(text, "<li>%s: there is no data for this figure among what was given. ", figure->title);
        put_between(text, "This command makes some: <code>", figure->command, "</code></li>\n");
    }
    if (missing > 0)
        dv_text_put(text, "</ul>\n</section>\n");
}

static void put_list(char *const *words, size_t count, dv_text *text) {
    dv_text_put(text, "<ul>\n");
    for (size_t i = 0; i < count; i++)
        put_between(text, "<li>", words[i], "</li>\n");
    dv_text_put(text, "</ul>\n");
}

static void put_sources(const dv_report_data *data, dv_text *text) {
    if (data->note_count > 0) {
        dv_text_put(text, "<section id=\"notes\">\n<h2>To bear in mind</h2>\n");
        put_list(data->notes, data->note_count, text);
        dv_text_put(text, "</section>\n");
    }
    dv_text_put(text, "</main>\n<footer>\n<details><summary>What this page was made of</summary>\n");
    put_list(data->inputs, data->input_count, text);
    dv_text_put(text, "</details>\n");
    dv_text_format(text, "<p>Made by <code>division report</code>, version %s.</p>\n</footer>\n", dv_version());
}

void dv_page_write(const dv_report_data *data, const char *title, dv_text *text) {
    const dv_figure *figure;
    put_head(title, text);
    put_between(text, "<header>\n<h1>", title, "</h1>\n");
    put_contents(data, text);
    dv_text_put(text, "</header>\n<main>\n");
    for (size_t i = 0; (figure = dv_figure_at(i)) != NULL; i++)
        if (figure->panels(data) > 0)
            put_figure(figure, data, text);
    put_runs(data, text);
    put_missing(data, text);
    put_sources(data, text);
    dv_text_put(text, "<script>\n");
    dv_text_put(text, dv_page_script);
    dv_text_put(text, "</script>\n</body>\n</html>\n");
}

/* ---- files --------------------------------------------------------------------------------- */

enum { COLUMNS = 2, BETWEEN = 16 };

/* Draws all panels into `body`, rows as high as their highest, and says how high the whole is. */
static double place_panels(const dv_figure *figure, const dv_report_data *data, dv_text *body) {
    double top = 0, row = 0;
    for (size_t i = 0; i < figure->panels(data); i++) {
        dv_drawing drawing = {0};
        if (i > 0 && i % COLUMNS == 0) {
            top += row + BETWEEN;
            row = 0;
        }
        figure->draw(data, i, &drawing);
        row = fmax(row, drawing.height);
        dv_svg svg = {.x = (double)(i % COLUMNS) * (DV_PANEL_WIDTH + BETWEEN), .y = top, .inside = true};
        dv_draw_finish(&drawing, &svg, body);
    }
    return top + row;
}

void dv_svg_file(const char *title, int width, int height, const dv_text *body, dv_text *text) {
    dv_text_format(text,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"panel\" width=\"%d\" height=\"%d\" "
                   "viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"",
                   width, height, width, height);
    dv_text_escape(text, title);
    dv_text_put(text, "\">\n<style>\n");
    dv_text_put(text, dv_drawing_style);
    dv_text_put(text, "</style>\n");
    if (body->length > 0)
        dv_text_bytes(text, body->data, body->length);
    dv_text_put(text, "</svg>\n");
    text->failed |= body->failed;
}

void dv_figure_svg(const dv_figure *figure, const dv_report_data *data, dv_text *text) {
    dv_text body = {0};
    size_t panels = figure->panels(data);
    int width = panels > 1 ? COLUMNS * DV_PANEL_WIDTH + (COLUMNS - 1) * BETWEEN : DV_PANEL_WIDTH;
    int height = (int)ceil(place_panels(figure, data, &body));
    dv_svg_file(figure->title, width, height, &body, text);
    dv_text_free(&body);
}

void dv_figure_csv(const dv_figure *figure, const dv_report_data *data, dv_text *text) {
    dv_table table = {0};
    figure->tabulate(data, &table);
    dv_table_csv(&table, text);
    dv_table_free(&table);
}
