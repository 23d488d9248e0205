/* JPEG images, through libjpeg-turbo: RGB, grey and CMYK. Rows and columns outside of the view are skipped, and where
 * the view is half of the image or less and need not be exact, the transform itself yields fewer pixels.
 *
 * libjpeg calls error_exit and does not expect it to return; ours jumps back to `attempt`, through which all calls of
 * libjpeg go that can fail. */
#include "base/status.h"
#include "data/image.h"

#include <setjmp.h>
#include <stdio.h> /* jpeglib.h needs it */
#include <stdlib.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

enum { MOST_SCANS = 200 }; /* of a progressive image: one can be made that takes for ever */

struct dv_jpeg {
    struct jpeg_decompress_struct decoder;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
    char text[JMSG_LENGTH_MAX];
    int code;          /* of what went wrong */
    uint8_t *row;      /* a decoded row; grows */
    size_t row_bytes;  /* that it has */
    JDIMENSION column; /* of the source, scaled, that a row begins with */
};

/* ---- errors -------------------------------------------------------------------------------- */

static void leave(j_common_ptr info) {
    dv_jpeg *jpeg = info->client_data;
    info->err->format_message(info, jpeg->text);
    jpeg->code = info->err->msg_code;
    longjmp(jpeg->jump, 1);
}

/* Warnings that say that pixels are lost are errors; the others are about trifles that are common in the wild. */
static void hear(j_common_ptr info, int level) {
    static const int harmless[] = {JWRN_ADOBE_XFORM, JWRN_EXTRANEOUS_DATA, JWRN_JFIF_MAJOR, JWRN_BOGUS_ICC};
    if (level >= 0)
        return;
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (info->err->msg_code == harmless[i])
            return;
    leave(info);
}

static void count_scans(j_common_ptr info) {
    if (!info->is_decompressor || ((j_decompress_ptr)info)->input_scan_number <= MOST_SCANS)
        return;
    dv_jpeg *jpeg = info->client_data;
    snprintf(jpeg->text, sizeof jpeg->text, "more than %d scans", MOST_SCANS);
    jpeg->code = JERR_BAD_PROGRESSION;
    longjmp(jpeg->jump, 1);
}

static void say_nothing(j_common_ptr info) {
    (void)info;
}

static struct jpeg_error_mgr *handle_errors(struct jpeg_error_mgr *errors) {
    jpeg_std_error(errors);
    errors->error_exit = leave;
    errors->emit_message = hear;
    errors->output_message = say_nothing;
    return errors;
}

/* Calls a function that calls libjpeg. False if it did not return, but jumped out of an error. A function of its own
 * so that no variable of its callers is at the mercy of the jump. */
__attribute__((noinline)) static bool attempt(dv_jpeg *jpeg, void (*function)(dv_jpeg *jpeg, const void *argument),
                                              const void *argument) {
    if (setjmp(jpeg->jump) != 0)
        return false;
    function(jpeg, argument);
    return true;
}

/* After a jump. */
static dv_status fail(dv_jpeg *jpeg, dv_error *error) {
    jpeg_abort_decompress(&jpeg->decoder);
    if (jpeg->code == JERR_OUT_OF_MEMORY)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to decode a JPEG: free some");
    return dv_fail(error, DV_ERROR_FORMAT, "corrupt JPEG: %.150s", jpeg->text);
}

/* ---- a decoder ----------------------------------------------------------------------------- */

static void create(dv_jpeg *jpeg, const void *unused) {
    (void)unused;
    jpeg_create_decompress(&jpeg->decoder);
    jpeg->decoder.progress = &jpeg->progress;
}

dv_jpeg *dv_jpeg_new(void) {
    dv_jpeg *jpeg = calloc(1, sizeof *jpeg);
    if (jpeg == NULL)
        return NULL;
    jpeg->decoder.err = handle_errors(&jpeg->errors);
    jpeg->decoder.client_data = jpeg;
    jpeg->progress.progress_monitor = count_scans;
    if (!attempt(jpeg, create, NULL)) {
        free(jpeg);
        return NULL;
    }
    return jpeg;
}

void dv_jpeg_free(dv_jpeg *jpeg) {
    if (jpeg == NULL)
        return;
    jpeg_destroy_decompress(&jpeg->decoder);
    free(jpeg->row);
    free(jpeg);
}

static bool is_jpeg(const uint8_t *bytes, size_t count) {
    return count >= 2 && bytes[0] == 0xff && bytes[1] == 0xd8;
}

/* libjpeg keeps an image's tables for the next one, which may lack them. A damaged image would then look like this or
 * that, depending on what the thread had decoded before; so it begins anew. */
static void read_header(dv_jpeg *jpeg, const void *argument) {
    const dv_packed_image *from = argument;
    jpeg_destroy_decompress(&jpeg->decoder);
    create(jpeg, NULL);
    jpeg_mem_src(&jpeg->decoder, from->bytes, from->count);
    jpeg_read_header(&jpeg->decoder, TRUE);
}

static dv_status open_jpeg(const dv_packed_image *image, size_t *width, size_t *height, dv_error *error) {
    if (!attempt(image->jpeg, read_header, image))
        return fail(image->jpeg, error);
    *width = image->jpeg->decoder.image_width;
    *height = image->jpeg->decoder.image_height;
    return DV_OK;
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* By how much the view may be scaled down while it is decoded: 1, 2, 4 or 8. */
static unsigned choose_scale(const dv_view *view) {
    unsigned scale = view->scaled ? 8 : 1;
    while (scale > 1 &&
           (view->size.width / scale < view->size.target_width || view->size.height / scale < view->size.target_height))
        scale /= 2;
    return scale;
}

/* Has libjpeg decode only the columns from `left` to `left + width`, and a block more on either side: at the edge of
 * what it decodes, the interpolation of colours lacks a neighbour. */
static void choose_columns(dv_jpeg *jpeg, size_t left, size_t width) {
    struct jpeg_decompress_struct *decoder = &jpeg->decoder;
    size_t margin = (size_t)decoder->max_h_samp_factor * DCTSIZE;
    size_t first = left > margin ? left - margin : 0, end = left + width + margin;
    if (end > decoder->output_width)
        end = decoder->output_width;
    JDIMENSION columns = (JDIMENSION)(end - first);
    jpeg->column = (JDIMENSION)first;
    if (columns < decoder->output_width)
        jpeg_crop_scanline(decoder, &jpeg->column, &columns);
}

/* Room for a row. */
static void make_row(dv_jpeg *jpeg) {
    size_t bytes = (size_t)jpeg->decoder.output_width * (size_t)jpeg->decoder.output_components;
    if (bytes <= jpeg->row_bytes)
        return;
    free(jpeg->row);
    jpeg->row = malloc(bytes);
    jpeg->row_bytes = jpeg->row != NULL ? bytes : 0;
    if (jpeg->row == NULL)
        ERREXIT1(&jpeg->decoder, JERR_OUT_OF_MEMORY, 0);
}

/* a * b / 255, rounded. */
static unsigned times(unsigned a, unsigned b) {
    unsigned product = a * b + 128;
    return (product + (product >> 8)) >> 8;
}

/* Turns `count` pixels of ink into light, in place; Adobe's files have ink inverted. */
static void from_ink(uint8_t *pixels, size_t count, bool inverted) {
    const uint8_t *src = pixels;
    for (uint8_t *dst = pixels; count > 0; count--, src += 4, dst += DV_PIXEL) {
        unsigned white = inverted ? src[3] : 255u - src[3];
        for (int i = 0; i < DV_PIXEL; i++) {
            unsigned ink = inverted ? 255u - src[i] : src[i];
            dst[i] = (uint8_t)(white - times(ink, white));
        }
    }
}

/* Decodes the next row to RGB. */
static const uint8_t *next_row(dv_jpeg *jpeg) {
    struct jpeg_decompress_struct *decoder = &jpeg->decoder;
    JSAMPROW row = jpeg->row;
    jpeg_read_scanlines(decoder, &row, 1);
    if (decoder->out_color_space == JCS_CMYK)
        from_ink(jpeg->row, decoder->output_width, decoder->saw_Adobe_marker);
    return jpeg->row;
}

/* Skips rows; libjpeg may skip fewer than it was asked to. */
static void skip_rows(dv_jpeg *jpeg, size_t count) {
    while (count > 0) {
        JDIMENSION skipped = jpeg_skip_scanlines(&jpeg->decoder, (JDIMENSION)count);
        if (skipped == 0) {
            next_row(jpeg);
            skipped = 1;
        }
        count -= skipped;
    }
}

/* Begins to decode at the scale, in a colour space that next_row can make RGB of. */
static void start(dv_jpeg *jpeg, unsigned scale) {
    struct jpeg_decompress_struct *decoder = &jpeg->decoder;
    bool ink = decoder->jpeg_color_space == JCS_CMYK || decoder->jpeg_color_space == JCS_YCCK;
    decoder->out_color_space = ink ? JCS_CMYK : JCS_RGB;
    decoder->scale_num = 1;
    decoder->scale_denom = scale;
    jpeg_start_decompress(decoder);
}

/* What is to be shown of an image, in its decoded pixels. */
typedef struct task {
    unsigned scale;
    size_t left, top;
    dv_resample *resample;
} task;

static void show_rows(dv_jpeg *jpeg, const void *argument) {
    const task *what = argument;
    dv_resample *resample = what->resample;
    start(jpeg, what->scale);
    make_row(jpeg);
    choose_columns(jpeg, what->left, resample->size.width);
    skip_rows(jpeg, what->top + dv_resample_first(resample));
    for (size_t y = dv_resample_first(resample); y < dv_resample_end(resample); y++)
        dv_resample_row(resample, next_row(jpeg) + (what->left - jpeg->column) * DV_PIXEL);
}

static dv_status show(const dv_packed_image *image, const dv_view *view, dv_resample *resample, uint8_t *dst,
                      dv_error *error) {
    unsigned scale = choose_scale(view);
    task what = {scale, view->left / scale, view->top / scale, resample};
    dv_resample_size size = view->size;
    size.width /= scale;
    size.height /= scale;
    dv_resample_begin(resample, &size, dst);
    if (!attempt(image->jpeg, show_rows, &what))
        return fail(image->jpeg, error);
    jpeg_abort_decompress(&image->jpeg->decoder); /* what is below is not wanted */
    return DV_OK;
}

static void drain_rows(dv_jpeg *jpeg, const void *unused) {
    (void)unused;
    start(jpeg, 1);
    make_row(jpeg);
    while (jpeg->decoder.output_scanline < jpeg->decoder.output_height)
        next_row(jpeg);
    jpeg_finish_decompress(&jpeg->decoder);
}

static dv_status drain(const dv_packed_image *image, dv_error *error) {
    return attempt(image->jpeg, drain_rows, NULL) ? DV_OK : fail(image->jpeg, error);
}

const dv_image_format dv_jpeg_format = {.is = is_jpeg, .open = open_jpeg, .show = show, .drain = drain};
