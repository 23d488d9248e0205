/* WebP images, through libwebp: lossy and lossless ones; what is transparent counts as opaque. libwebp has no rows to
 * offer, so the part that the view takes is decoded at once, and is there for that long. Lossless ones it decodes whole
 * whatever the part.
 *
 * Animations are refused: which of their images would be the one to train with? */
#include "base/status.h"
#include "data/image.h"

#include <stdlib.h>
#include <string.h>
#include <webp/decode.h>

/* A part of the image that is decoded. */
typedef struct area {
    size_t left, top, width, height;
} area;

/* ---- errors -------------------------------------------------------------------------------- */

static const char *describe(VP8StatusCode code) {
    switch (code) {
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
        return "it is cut short";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return "it has a feature that libwebp does not know";
    default:
        return "its data are damaged";
    }
}

static dv_status fail(VP8StatusCode code, dv_error *error) {
    if (code == VP8_STATUS_OUT_OF_MEMORY)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to decode a WebP: free some");
    return dv_fail(error, DV_ERROR_FORMAT, "corrupt WebP: %s", describe(code));
}

/* ---- decoding ------------------------------------------------------------------------------ */

static bool is_webp(const uint8_t *bytes, size_t count) {
    enum { RIFF = 4, LENGTH = 4, WEBP = 4 };
    return count >= RIFF + LENGTH + WEBP && memcmp(bytes, "RIFF", RIFF) == 0 &&
           memcmp(bytes + RIFF + LENGTH, "WEBP", WEBP) == 0;
}

static dv_status open_webp(const dv_packed_image *image, size_t *width, size_t *height, dv_error *error) {
    WebPBitstreamFeatures features;
    VP8StatusCode code = WebPGetFeatures(image->bytes, image->count, &features);
    if (code != VP8_STATUS_OK)
        return fail(code, error);
    if (features.has_animation)
        return dv_fail(error, DV_ERROR_FORMAT, "an animated WebP: give one of its images as a file of its own");
    *width = (size_t)features.width;
    *height = (size_t)features.height;
    return DV_OK;
}

/* Begins `margin` before `first`, at an even place, as libwebp's colours do. */
static size_t before(size_t first, size_t margin) {
    return (first > margin ? first - margin : 0) & ~(size_t)1;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* The area with two pixels more on each side: at its edge, the interpolation of colours lacks a neighbour. */
static area widen(area part, size_t width, size_t height) {
    enum { MARGIN = 2 };
    area wide = {.left = before(part.left, MARGIN), .top = before(part.top, MARGIN)};
    wide.width = smaller(part.left + part.width + MARGIN, width) - wide.left;
    wide.height = smaller(part.top + part.height + MARGIN, height) - wide.top;
    return wide;
}

/* Decodes an area to RGB [height][width][3]. */
static dv_status decode(const dv_packed_image *image, area part, uint8_t *pixels, dv_error *error) {
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return dv_fail(error, DV_ERROR_UNSUPPORTED, "libwebp is older than that which this was built with: update it");
    config.options.use_cropping = 1;
    config.options.crop_left = (int)part.left;
    config.options.crop_top = (int)part.top;
    config.options.crop_width = (int)part.width;
    config.options.crop_height = (int)part.height;
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = pixels;
    config.output.u.RGBA.stride = (int)(part.width * DV_PIXEL);
    config.output.u.RGBA.size = part.width * part.height * DV_PIXEL;
    VP8StatusCode code = WebPDecode(image->bytes, image->count, &config);
    WebPFreeDecBuffer(&config.output);
    return code == VP8_STATUS_OK ? DV_OK : fail(code, error);
}

/* Decodes an area to memory that is the caller's to free. */
static dv_status decode_new(const dv_packed_image *image, area part, uint8_t **pixels, dv_error *error) {
    *pixels = malloc(part.width * part.height * DV_PIXEL);
    if (*pixels == NULL)
        return fail(VP8_STATUS_OUT_OF_MEMORY, error);
    dv_status status = decode(image, part, *pixels, error);
    if (status != DV_OK)
        free(*pixels);
    return status;
}

static dv_status show(const dv_packed_image *image, const dv_view *view, dv_resample *resample, uint8_t *dst,
                      dv_error *error) {
    size_t width, height;
    uint8_t *pixels;
    DV_TRY(open_webp(image, &width, &height, error));
    dv_resample_begin(resample, &view->size, dst);
    size_t first = dv_resample_first(resample), end = dv_resample_end(resample);
    area part = {view->left, view->top + first, view->size.width, end - first};
    area wide = widen(part, width, height);
    DV_TRY(decode_new(image, wide, &pixels, error));
    const uint8_t *corner = pixels + ((part.top - wide.top) * wide.width + part.left - wide.left) * DV_PIXEL;
    for (size_t y = 0; y < part.height; y++)
        dv_resample_row(resample, corner + y * wide.width * DV_PIXEL);
    free(pixels);
    return DV_OK;
}

static dv_status drain(const dv_packed_image *image, dv_error *error) {
    area whole = {0};
    uint8_t *pixels;
    DV_TRY(open_webp(image, &whole.width, &whole.height, error));
    DV_TRY(decode_new(image, whole, &pixels, error));
    free(pixels);
    return DV_OK;
}

const dv_image_format dv_webp_format = {.is = is_webp, .open = open_webp, .show = show, .drain = drain};
