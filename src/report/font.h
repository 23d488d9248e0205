/* The font of pictures: the printable ASCII characters, 5 dots wide, 7 high and one below the line. */
#ifndef DV_REPORT_FONT_H
#define DV_REPORT_FONT_H

#include <stdint.h>

enum { DV_FONT_COLUMNS = 5, DV_FONT_ROWS = 8 };

/* The columns of a character, left to right; the lowest bit is the highest dot. Static. */
const uint8_t *dv_font_columns(char character);

#endif
