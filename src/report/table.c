/* Tables. */
#include "report/table.h"

#include "report/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void dv_table_free(dv_table *table) {
    for (size_t i = 0; i < table->cell_count; i++)
        free(table->cells[i].words);
    free(table->cells);
    *table = (dv_table){0};
}

void dv_table_column(dv_table *table, const char *heading, dv_unit unit) {
    if (table->columns == DV_TABLE_COLUMNS)
        return;
    table->headings[table->columns] = heading;
    table->units[table->columns++] = unit;
}

/* A table without columns has no cells. */
static dv_cell *add_cell(dv_table *table) {
    if (table->columns == 0)
        return NULL;
    dv_cell *added = table->failed ? NULL : dv_report_more(&table->cells, table->cell_count, sizeof *added);
    table->failed |= added == NULL;
    table->cell_count += added != NULL;
    return added;
}

void dv_table_words(dv_table *table, const char *words) {
    dv_cell *cell = add_cell(table);
    if (cell != NULL && (cell->words = strdup(words)) == NULL)
        table->failed = true;
}

void dv_table_number(dv_table *table, double number) {
    dv_cell *cell = add_cell(table);
    if (cell != NULL)
        cell->number = number;
}

/* ---- HTML ---------------------------------------------------------------------------------- */

static void put_html_cell(const dv_table *table, size_t index, dv_text *text) {
    const dv_cell *cell = &table->cells[index];
    char shown[DV_UNIT_TEXT];
    size_t column = index % table->columns; /* there are some where there is a cell */
    if (cell->words != NULL) {
        dv_text_put(text, column == 0 ? "<th scope=\"row\">" : "<td>");
        dv_text_escape(text, cell->words);
        dv_text_put(text, column == 0 ? "</th>" : "</td>");
        return;
    }
    dv_text_format(text, "<td class=\"number\">%s</td>", dv_unit_text(table->units[column], cell->number, shown));
}

static bool is_numeric(const dv_table *table, size_t column) {
    return table->cell_count > column && table->cells[column].words == NULL;
}

void dv_table_html(const dv_table *table, const char *caption, dv_text *text) {
    dv_text_put(text, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"");
    dv_text_escape(text, caption);
    dv_text_put(text, "\"><table>\n<thead><tr>");
    for (size_t i = 0; i < table->columns; i++)
        dv_text_format(text, "<th scope=\"col\"%s>%s</th>", is_numeric(table, i) ? " class=\"number\"" : "",
                       table->headings[i]);
    dv_text_put(text, "</tr></thead>\n<tbody>");
    for (size_t i = 0; table->columns > 0 && i < table->cell_count; i++) {
        if (i % table->columns == 0)
            dv_text_put(text, i > 0 ? "</tr>\n<tr>" : "\n<tr>");
        put_html_cell(table, i, text);
    }
    dv_text_put(text, table->cell_count > 0 ? "</tr>\n</tbody></table></div>\n" : "</tbody></table></div>\n");
    text->failed |= table->failed;
}

/* ---- CSV ----------------------------------------------------------------------------------- */

/* Words in quotation marks where they need some. */
static void put_csv_words(const char *words, dv_text *text) {
    if (strpbrk(words, ",\"\r\n") == NULL) {
        dv_text_put(text, words);
        return;
    }
    dv_text_put(text, "\"");
    for (; *words != '\0'; words++)
        dv_text_bytes(text, *words == '"' ? "\"\"" : words, *words == '"' ? 2 : 1);
    dv_text_put(text, "\"");
}

void dv_table_csv(const dv_table *table, dv_text *text) {
    char number[DV_UNIT_TEXT];
    for (size_t i = 0; i < table->columns; i++) {
        put_csv_words(table->headings[i], text);
        dv_text_put(text, i + 1 < table->columns ? "," : "\n");
    }
    for (size_t i = 0; table->columns > 0 && i < table->cell_count; i++) {
        const dv_cell *cell = &table->cells[i];
        put_csv_words(cell->words != NULL ? cell->words : dv_exact_text(cell->number, number), text);
        dv_text_put(text, (i + 1) % table->columns != 0 ? "," : "\n");
    }
    text->failed |= table->failed;
}
