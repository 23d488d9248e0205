/* Varying an image: what is drawn at random, and doing it. */
#ifndef DV_DATA_AUGMENT_H
#define DV_DATA_AUGMENT_H

#include "base/random.h"

#include <stdint.h>

/* Where a window of an image begins, and whether it is mirrored. The window may reach over the edges. */
typedef struct dv_window {
    int left, top, flip;
} dv_window;

/* A window as large as the image, moved by up to `padding` pixels either way, and mirrored half of the time if
 * `flip`: all drawn from the key's sequence. */
dv_window dv_window_draw(dv_random key, size_t padding, int flip);

/* Writes what the window shows of an image [side][side][3]; outside of it there is black. */
void dv_window_cut(const dv_window *window, const uint8_t *image, size_t side, uint8_t *dst);

#endif
