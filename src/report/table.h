/* Tables of numbers: below a figure for those who read, and as CSV for programs. A table is filled cell by cell, row
 * by row. */
#ifndef DV_REPORT_TABLE_H
#define DV_REPORT_TABLE_H

#include "report/text.h"
#include "report/units.h"

#include <stddef.h>

enum { DV_TABLE_COLUMNS = 16 };

typedef struct dv_cell {
    char *words;   /* owned; NULL: it is a number */
    double number; /* in the unit of its column */
} dv_cell;

typedef struct dv_table {
    const char *headings[DV_TABLE_COLUMNS]; /* static text */
    dv_unit units[DV_TABLE_COLUMNS];
    size_t columns;
    dv_cell *cells; /* owned */
    size_t cell_count;
    bool failed; /* there was no memory */
} dv_table;

void dv_table_free(dv_table *table);

/* Adds a column; all of them before the first cell. */
void dv_table_column(dv_table *table, const char *heading, dv_unit unit);

/* Adds a cell. Words are copied. */
void dv_table_words(dv_table *table, const char *words);
void dv_table_number(dv_table *table, double number);

/* Appends the table: as HTML, numbers as people read them, or as CSV (RFC 4180), with all their digits. */
void dv_table_html(const dv_table *table, const char *caption, dv_text *text);
void dv_table_csv(const dv_table *table, dv_text *text);

#endif
