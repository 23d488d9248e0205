/* Random crops and mirror images. The edge that a crop adds is black before normalisation, as in the published
 * recipes. */
#include "data/augment.h"

#include <string.h>

enum { PIXEL = 3 };

/* A number from 0 to count - 1, the word at `position` of the key's sequence. */
static size_t draw(dv_random key, uint32_t position, size_t count) {
    return (size_t)((uint64_t)dv_random_word(key, position) * count >> 32);
}

dv_window dv_window_draw(dv_random key, size_t padding, int flip) {
    return (dv_window){.left = (int)draw(key, 0, 2 * padding + 1) - (int)padding,
                       .top = (int)draw(key, 1, 2 * padding + 1) - (int)padding,
                       .flip = flip && draw(key, 2, 2) == 1};
}

static void cut_row(const dv_window *window, const uint8_t *row, int side, uint8_t *dst) {
    int step = window->flip ? -1 : 1, at = window->flip ? window->left + side - 1 : window->left;
    for (int i = 0; i < side; i++, at += step, dst += PIXEL) {
        int inside = at >= 0 && at < side;
        for (int channel = 0; channel < PIXEL; channel++)
            dst[channel] = inside ? row[at * PIXEL + channel] : 0;
    }
}

void dv_window_cut(const dv_window *window, const uint8_t *image, size_t side, uint8_t *dst) {
    for (size_t i = 0; i < side; i++, dst += side * PIXEL) {
        ptrdiff_t at = (ptrdiff_t)i + window->top;
        if (at >= 0 && (size_t)at < side)
            cut_row(window, image + (size_t)at * side * PIXEL, (int)side, dst);
        else
            memset(dst, 0, side * PIXEL);
    }
}
