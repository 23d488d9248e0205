/* Compressed images: JPEG, PNG and WebP, told apart by their contents. A decoder belongs to one thread and is used for
 * many images; it decodes no more of one than the view of it takes, and at no higher resolution where the view may be
 * scaled.
 *
 *     dv_decoder_open(decoder, bytes, count, &width, &height, &error);
 *     dv_view view = dv_view_choose(&options, showing, width, height);
 *     dv_decoder_show(decoder, &view, dst, &error); */
#ifndef DV_DATA_IMAGE_H
#define DV_DATA_IMAGE_H

#include "data/view.h"

#include <division/status.h>

/* Images of more pixels than this are refused: they take a gigabyte, or are made to. */
enum { DV_IMAGE_MAX_PIXELS = 1 << 27 };

typedef struct dv_decoder dv_decoder;

/* A decoder for views of up to width x height. */
dv_status dv_decoder_new(size_t width, size_t height, dv_decoder **decoder, dv_error *error);
void dv_decoder_free(dv_decoder *decoder);

/* Bytes that a decoder takes. Those of progressive JPEGs, interlaced PNGs and WebPs, which can only be decoded whole,
 * come on top while one is decoded. */
size_t dv_decoder_bytes(size_t width, size_t height);

/* Looks at the beginning of an image. The bytes must stay until dv_decoder_show has returned. What is wrong with it
 * is DV_ERROR_FORMAT. */
dv_status dv_decoder_open(dv_decoder *decoder, const uint8_t *bytes, size_t count, size_t *width, size_t *height,
                          dv_error *error);

/* Decodes the part of the opened image that the view has, resizes it, and writes it [part_height][part_width][3]:
 * not moved, not mirrored. Data so damaged that pixels are lost are DV_ERROR_FORMAT. */
dv_status dv_decoder_show(dv_decoder *decoder, const dv_view *view, uint8_t *dst, dv_error *error);

/* Decodes all of the opened image and keeps nothing: for measuring what that takes. */
dv_status dv_decoder_drain(dv_decoder *decoder, dv_error *error);

/* Resizes an image [height][width][3] that is in memory already, likewise. */
void dv_decoder_show_pixels(dv_decoder *decoder, const uint8_t *image, size_t width, const dv_view *view, uint8_t *dst);

/* Packs an image [height][width][3] as a JPEG. `bytes` is the caller's to free(). */
dv_status dv_jpeg_write(const uint8_t *image, size_t width, size_t height, int quality, uint8_t **bytes, size_t *count,
                        dv_error *error);

/* ---- what a format implements -------------------------------------------------------------- */

typedef struct dv_jpeg dv_jpeg;
dv_jpeg *dv_jpeg_new(void); /* NULL: no memory */
void dv_jpeg_free(dv_jpeg *jpeg);

/* The image that is open. */
typedef struct dv_packed_image {
    const uint8_t *bytes; /* [count], the caller's */
    size_t count;
    dv_jpeg *jpeg; /* libjpeg's state, the decoder's */
} dv_packed_image;

/* Sizes are looked at between open and the others: what is too large is never decoded. */
typedef struct dv_image_format {
    bool (*is)(const uint8_t *bytes, size_t count); /* by the first bytes */
    dv_status (*open)(const dv_packed_image *image, size_t *width, size_t *height, dv_error *error);
    dv_status (*show)(const dv_packed_image *image, const dv_view *view, dv_resample *resample, uint8_t *dst,
                      dv_error *error);
    dv_status (*drain)(const dv_packed_image *image, dv_error *error);
} dv_image_format;

extern const dv_image_format dv_jpeg_format, dv_png_format, dv_webp_format;

/* Gives the resampler the view's part of an image in memory. */
void dv_resample_pixels(dv_resample *resample, const uint8_t *image, size_t width, const dv_view *view, uint8_t *dst);

#endif
