/* The font of pictures, 5 dots wide, 7 high and one below the line: the printable characters of ASCII and the letters
 * of Latin-1, which the languages of western Europe are written with. */
#ifndef DV_REPORT_FONT_H
#define DV_REPORT_FONT_H

#include <stdint.h>

enum { DV_FONT_COLUMNS = 5, DV_FONT_ROWS = 8 };

/* The columns of a character, by its number in Unicode, left to right; the lowest bit is the highest dot. What the font
 * does not have is a box. */
void dv_font_columns(uint32_t code, uint8_t columns[DV_FONT_COLUMNS]);

#endif
