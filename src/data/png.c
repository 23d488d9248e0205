/* PNG images, through libspng. They are rare among photographs, and decoded whole. */
#include "base/status.h"
#include "data/image.h"

#include <spng.h>
#include <stdlib.h>

enum { CHUNK_LIMIT = 1 << 22, CACHE_LIMIT = 1 << 24 }; /* bytes of chunks that are not pixels */

static dv_status fail(int code, dv_error *error) {
    if (code == SPNG_EMEM)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to decode a PNG: free some");
    return dv_fail(error, DV_ERROR_FORMAT, "corrupt PNG: %s", spng_strerror(code));
}

/* Gives libspng the bytes and asks for the size. */
static int open_png(spng_ctx *png, const uint8_t *bytes, size_t count, struct spng_ihdr *header) {
    int code = spng_set_image_limits(png, DV_IMAGE_MAX_SIDE, DV_IMAGE_MAX_SIDE);
    if (code == 0)
        code = spng_set_chunk_limits(png, CHUNK_LIMIT, CACHE_LIMIT);
    if (code == 0)
        code = spng_set_png_buffer(png, bytes, count);
    if (code == 0)
        code = spng_get_ihdr(png, header);
    return code;
}

dv_status dv_png_size(const uint8_t *bytes, size_t count, size_t *width, size_t *height, dv_error *error) {
    struct spng_ihdr header = {0};
    spng_ctx *png = spng_ctx_new(0);
    int code = png != NULL ? open_png(png, bytes, count, &header) : SPNG_EMEM;
    spng_ctx_free(png);
    *width = header.width;
    *height = header.height;
    return code == 0 ? DV_OK : fail(code, error);
}

/* Decodes all of it, to RGB whatever it is; what is transparent counts as opaque. */
static int decode(spng_ctx *png, const uint8_t *bytes, size_t count, uint8_t **pixels, size_t *width) {
    struct spng_ihdr header;
    size_t size;
    int code = open_png(png, bytes, count, &header);
    if (code == 0)
        code = spng_decoded_image_size(png, SPNG_FMT_RGB8, &size);
    if (code != 0)
        return code;
    *width = header.width;
    *pixels = malloc(size);
    return *pixels != NULL ? spng_decode_image(png, *pixels, size, SPNG_FMT_RGB8, 0) : SPNG_EMEM;
}

dv_status dv_png_show(const uint8_t *bytes, size_t count, const dv_view *view, dv_resample *resample, uint8_t *dst,
                      dv_error *error) {
    uint8_t *pixels = NULL;
    size_t width = 0;
    spng_ctx *png = spng_ctx_new(0);
    int code = png != NULL ? decode(png, bytes, count, &pixels, &width) : SPNG_EMEM;
    if (code == 0 && resample != NULL)
        dv_resample_pixels(resample, pixels, width, view, dst);
    spng_ctx_free(png);
    free(pixels);
    return code == 0 ? DV_OK : fail(code, error);
}

dv_status dv_png_drain(const uint8_t *bytes, size_t count, dv_error *error) {
    return dv_png_show(bytes, count, NULL, NULL, NULL, error);
}
