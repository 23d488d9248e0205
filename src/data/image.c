/* Telling formats apart, and what they share. */
#include "data/image.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

struct dv_decoder {
    dv_packed_image image; /* that is open */
    const dv_image_format *format;
    dv_resample resample;
    void *memory; /* the resampler's */
};

size_t dv_decoder_bytes(size_t width, size_t height) {
    enum { JPEG = 1 << 20 }; /* of libjpeg, with rows of a few thousand pixels */
    return sizeof(dv_decoder) + dv_resample_bytes(width, height) + JPEG;
}

dv_status dv_decoder_new(size_t width, size_t height, dv_decoder **decoder, dv_error *error) {
    dv_decoder *made = calloc(1, sizeof *made);
    if (made != NULL) {
        made->image.jpeg = dv_jpeg_new();
        made->memory = malloc(dv_resample_bytes(width, height));
    }
    if (made == NULL || made->image.jpeg == NULL || made->memory == NULL) {
        dv_decoder_free(made);
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to decode images: free some");
    }
    dv_resample_init(&made->resample, width, height, made->memory);
    *decoder = made;
    return DV_OK;
}

void dv_decoder_free(dv_decoder *decoder) {
    if (decoder == NULL)
        return;
    dv_jpeg_free(decoder->image.jpeg);
    free(decoder->memory);
    free(decoder);
}

/* What the first bytes of a file that is no image say it is. */
static const char *looks_like(const uint8_t *bytes, size_t count) {
    static const struct {
        const char *magic, *name;
    } known[] = {{"GIF8", "a GIF"}, {"BM", "a BMP"},      {"RIFF", "a sound or film"}, {"II*", "a TIFF"},
                 {"MM", "a TIFF"},  {"PK", "an archive"}, {"\x1f\x8b", "an archive"},  {"<", "text"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (count >= strlen(known[i].magic) && memcmp(bytes, known[i].magic, strlen(known[i].magic)) == 0)
            return known[i].name;
    return "something else";
}

static dv_status check_size(size_t width, size_t height, dv_error *error) {
    if (width <= DV_IMAGE_MAX_SIDE && height <= DV_IMAGE_MAX_SIDE && width * height <= DV_IMAGE_MAX_PIXELS)
        return DV_OK;
    return dv_fail(error, DV_ERROR_FORMAT, "an image of %zu x %zu is too large", width, height);
}

static const dv_image_format *find_format(const uint8_t *bytes, size_t count) {
    static const dv_image_format *const formats[] = {&dv_jpeg_format, &dv_png_format, &dv_webp_format};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i]->is(bytes, count))
            return formats[i];
    return NULL;
}

dv_status dv_decoder_open(dv_decoder *decoder, const uint8_t *bytes, size_t count, size_t *width, size_t *height,
                          dv_error *error) {
    decoder->image.bytes = bytes;
    decoder->image.count = count;
    decoder->format = find_format(bytes, count);
    if (count == 0)
        return dv_fail(error, DV_ERROR_FORMAT, "it is empty");
    if (decoder->format == NULL)
        return dv_fail(error, DV_ERROR_FORMAT, "it is not JPEG, PNG or WebP but %s", looks_like(bytes, count));
    DV_TRY(decoder->format->open(&decoder->image, width, height, error));
    return check_size(*width, *height, error);
}

dv_status dv_decoder_show(dv_decoder *decoder, const dv_view *view, uint8_t *dst, dv_error *error) {
    return decoder->format->show(&decoder->image, view, &decoder->resample, dst, error);
}

dv_status dv_decoder_drain(dv_decoder *decoder, dv_error *error) {
    return decoder->format->drain(&decoder->image, error);
}

void dv_resample_pixels(dv_resample *resample, const uint8_t *image, size_t width, const dv_view *view, uint8_t *dst) {
    dv_resample_begin(resample, &view->size, dst);
    for (size_t y = dv_resample_first(resample), end = dv_resample_end(resample); y < end; y++)
        dv_resample_row(resample, image + ((view->top + y) * width + view->left) * DV_PIXEL);
}

void dv_decoder_show_pixels(dv_decoder *decoder, const uint8_t *image, size_t width, const dv_view *view,
                            uint8_t *dst) {
    dv_resample_pixels(&decoder->resample, image, width, view, dst);
}
