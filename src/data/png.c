/* PNG images, through libspng: row by row, so that no more than a row of them is ever there, or whole if they are
 * interlaced. All of an image is decoded whatever the view shows of it: damage may be anywhere. */
#include "base/status.h"
#include "data/image.h"

#include <spng.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_LIMIT = 1 << 22, CACHE_LIMIT = 1 << 24 }; /* bytes of chunks that are not pixels */

static dv_status fail(int code, dv_error *error) {
    if (code == SPNG_EMEM)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to decode a PNG: free some");
    return dv_fail(error, DV_ERROR_FORMAT, "corrupt PNG: %s", spng_strerror(code));
}

/* Gives libspng the bytes and asks for the size. */
static int open_png(spng_ctx *png, const dv_packed_image *image, struct spng_ihdr *header) {
    int code = spng_set_image_limits(png, DV_IMAGE_MAX_SIDE, DV_IMAGE_MAX_SIDE);
    if (code == 0)
        code = spng_set_chunk_limits(png, CHUNK_LIMIT, CACHE_LIMIT);
    if (code == 0)
        code = spng_set_png_buffer(png, image->bytes, image->count);
    if (code == 0)
        code = spng_get_ihdr(png, header);
    return code;
}

static bool is_png(const uint8_t *bytes, size_t count) {
    static const uint8_t signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    return count >= sizeof signature && memcmp(bytes, signature, sizeof signature) == 0;
}

static dv_status read_size(const dv_packed_image *image, size_t *width, size_t *height, dv_error *error) {
    struct spng_ihdr header = {0};
    spng_ctx *png = spng_ctx_new(0);
    int code = png != NULL ? open_png(png, image, &header) : SPNG_EMEM;
    spng_ctx_free(png);
    *width = header.width;
    *height = header.height;
    return code == 0 ? DV_OK : fail(code, error);
}

/* What is to be shown of an image. */
typedef struct task {
    const dv_view *view;
    dv_resample *resample; /* NULL: nothing */
    uint8_t *dst;
} task;

/* Room for a number of rows, to RGB whatever the image is; what is transparent counts as opaque. */
static uint8_t *make_rows(const struct spng_ihdr *header, size_t rows) {
    return malloc(header->width * rows * DV_PIXEL);
}

/* Decodes row after row and passes on those of the view. */
static int decode_rows(spng_ctx *png, const struct spng_ihdr *header, const task *what) {
    uint8_t *row = make_rows(header, 1);
    size_t first = 0, end = 0;
    if (row == NULL)
        return SPNG_EMEM;
    if (what->resample != NULL) {
        dv_resample_begin(what->resample, &what->view->size, what->dst);
        first = what->view->top + dv_resample_first(what->resample);
        end = what->view->top + dv_resample_end(what->resample);
    }
    int code = spng_decode_image(png, NULL, 0, SPNG_FMT_RGB8, SPNG_DECODE_PROGRESSIVE);
    for (size_t y = 0; code == 0; y++) {
        code = spng_decode_row(png, row, header->width * (size_t)DV_PIXEL);
        if ((code == 0 || code == SPNG_EOI) && y >= first && y < end)
            dv_resample_row(what->resample, row + what->view->left * DV_PIXEL);
    }
    free(row);
    return code == SPNG_EOI ? 0 : code;
}

static int decode_whole(spng_ctx *png, const struct spng_ihdr *header, const task *what) {
    uint8_t *pixels = make_rows(header, header->height);
    if (pixels == NULL)
        return SPNG_EMEM;
    int code = spng_decode_image(png, pixels, (size_t)header->width * header->height * DV_PIXEL, SPNG_FMT_RGB8, 0);
    if (code == 0 && what->resample != NULL)
        dv_resample_pixels(what->resample, pixels, header->width, what->view, what->dst);
    free(pixels);
    return code;
}

static dv_status decode(const dv_packed_image *image, const task *what, dv_error *error) {
    struct spng_ihdr header;
    spng_ctx *png = spng_ctx_new(0);
    int code = png != NULL ? open_png(png, image, &header) : SPNG_EMEM;
    if (code == 0)
        code = header.interlace_method == SPNG_INTERLACE_NONE ? decode_rows(png, &header, what)
                                                              : decode_whole(png, &header, what);
    spng_ctx_free(png);
    return code == 0 ? DV_OK : fail(code, error);
}

static dv_status show(const dv_packed_image *image, const dv_view *view, dv_resample *resample, uint8_t *dst,
                      dv_error *error) {
    return decode(image, &(task){view, resample, dst}, error);
}

static dv_status drain(const dv_packed_image *image, dv_error *error) {
    return decode(image, &(task){NULL, NULL, NULL}, error);
}

const dv_image_format dv_png_format = {.is = is_png, .open = read_size, .show = show, .drain = drain};
