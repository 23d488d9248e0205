/* Writing JPEG images. */
#include "base/status.h"
#include "data/image.h"

#include <setjmp.h>
#include <stdio.h> /* jpeglib.h needs it */
#include <stdlib.h>

#include <jpeglib.h>

typedef struct writer {
    struct jpeg_compress_struct encoder;
    struct jpeg_error_mgr errors;
    jmp_buf jump;
    char text[JMSG_LENGTH_MAX];
    unsigned char *bytes;
    unsigned long count;
} writer;

static void leave(j_common_ptr info) {
    writer *to = info->client_data;
    info->err->format_message(info, to->text);
    longjmp(to->jump, 1);
}

static void write_rows(writer *to, const uint8_t *image, size_t width, size_t height, int quality) {
    struct jpeg_compress_struct *encoder = &to->encoder;
    jpeg_create_compress(encoder);
    jpeg_mem_dest(encoder, &to->bytes, &to->count);
    encoder->image_width = (JDIMENSION)width;
    encoder->image_height = (JDIMENSION)height;
    encoder->input_components = DV_PIXEL;
    encoder->in_color_space = JCS_RGB;
    jpeg_set_defaults(encoder);
    jpeg_set_quality(encoder, quality, TRUE);
    encoder->optimize_coding = TRUE;
    jpeg_start_compress(encoder, TRUE);
    for (size_t y = 0; y < height; y++) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)(image + y * width * DV_PIXEL); /* it is only read */
        jpeg_write_scanlines(encoder, &row, 1);
    }
    jpeg_finish_compress(encoder);
}

/* Calls write_rows. False if it did not return, but jumped out of an error. */
__attribute__((noinline)) static bool attempt(writer *to, const uint8_t *image, size_t width, size_t height,
                                              int quality) {
    if (setjmp(to->jump) != 0)
        return false;
    write_rows(to, image, width, height, quality);
    return true;
}

dv_status dv_jpeg_write(const uint8_t *image, size_t width, size_t height, int quality, uint8_t **bytes, size_t *count,
                        dv_error *error) {
    writer to = {.bytes = NULL};
    to.encoder.err = jpeg_std_error(&to.errors);
    to.errors.error_exit = leave;
    to.encoder.client_data = &to;
    bool written = attempt(&to, image, width, height, quality);
    jpeg_destroy_compress(&to.encoder);
    if (!written) {
        free(to.bytes);
        return dv_fail(error, DV_ERROR_MEMORY, "could not write a JPEG of %zu x %zu: %.120s", width, height, to.text);
    }
    *bytes = to.bytes;
    *count = to.count;
    return DV_OK;
}
