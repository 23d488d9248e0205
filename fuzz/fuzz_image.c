/* Fuzzes the decoder of JPEG, PNG and WebP. The first bytes choose the view; the rest is the image. What is decoded
 * must be the same again, and every byte of it must have been written. */
#include "data/augmentation.h"
#include "data/image.h"

#include <stdlib.h>
#include <string.h>

enum { SIDE = 16, CHOICE = 4, MOST_PIXELS = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Decodes into a buffer that was filled with `before`. Returns 0 if the image is refused. */
static int decode(dv_decoder *decoder, const uint8_t *data, size_t size, uint8_t before, uint8_t *dst) {
    dv_error error;
    size_t width, height;
    dv_view_options options = {.side = SIDE,
                               .resize = SIDE + data[0] % 8,
                               .vary = data[1] & 1,
                               .augmentation = dv_augmentation_default((dv_crop)(1 + data[1] / 2 % 4))};
    memset(dst, before, (size_t)SIDE * SIDE * DV_PIXEL);
    if (dv_decoder_open(decoder, data + CHOICE, size - CHOICE, &width, &height, &error) != DV_OK)
        return 0;
    if (width * height > MOST_PIXELS) /* it would take long */
        return 0;
    dv_view view = dv_view_choose(&options, (dv_showing){data[2], data[3], 0}, width, height);
    return dv_decoder_show(decoder, &view, dst, &error) == DV_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static dv_decoder *decoder;
    uint8_t first[SIDE * SIDE * DV_PIXEL], again[SIDE * SIDE * DV_PIXEL];
    if (size < CHOICE || (decoder == NULL && dv_decoder_new(SIDE, SIDE, &decoder, NULL) != DV_OK))
        return 0;
    int one = decode(decoder, data, size, 0, first), other = decode(decoder, data, size, 255, again);
    if (one != other || (one && memcmp(first, again, sizeof first) != 0))
        abort();
    return 0;
}
