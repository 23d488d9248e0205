/* Decoding: JPEG of every colour space, PNG and WebP come out right, a part of an image is that part of the whole, and
 * nothing that is damaged gets through unnoticed or crashes. */
#include "images.h"

#include "base/random.h"

#include <jpeglib.h>
#include <math.h>
#include <spng.h>
#include <webp/encode.h>

typedef struct picture {
    size_t width, height;
    uint8_t *pixels;
} picture;

/* Decodes all of it. */
static dv_status decode(const uint8_t *bytes, size_t count, picture *made, dv_error *error) {
    dv_decoder *decoder;
    dv_status status = dv_decoder_new(1, 1, &decoder, error);
    assert_int_equal(status, DV_OK);
    status = dv_decoder_open(decoder, bytes, count, &made->width, &made->height, error);
    dv_decoder_free(decoder);
    made->pixels = NULL;
    if (status != DV_OK)
        return status;
    status = dv_decoder_new(made->width, made->height, &decoder, error);
    assert_int_equal(status, DV_OK);
    made->pixels = malloc(made->width * made->height * DV_PIXEL);
    assert_non_null(made->pixels);
    dv_view view = dv_view_whole(made->width, made->height, made->width, made->height);
    status = dv_decoder_open(decoder, bytes, count, &made->width, &made->height, error);
    if (status == DV_OK)
        status = dv_decoder_show(decoder, &view, made->pixels, error);
    dv_decoder_free(decoder);
    return status;
}

/* The root of the mean squared difference. */
static double difference(const uint8_t *a, const uint8_t *b, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    return sqrt(sum / (double)count);
}

/* A JPEG of pixels with `components` bytes each, which libjpeg stores in a space of its choice or in `stored`. */
static void write_jpeg(const uint8_t *pixels, size_t width, size_t height, int components, J_COLOR_SPACE space,
                       J_COLOR_SPACE stored, int progressive, uint8_t **bytes, unsigned long *count) {
    struct jpeg_compress_struct encoder;
    struct jpeg_error_mgr errors;
    encoder.err = jpeg_std_error(&errors);
    jpeg_create_compress(&encoder);
    *bytes = NULL;
    *count = 0;
    jpeg_mem_dest(&encoder, bytes, count);
    encoder.image_width = (JDIMENSION)width;
    encoder.image_height = (JDIMENSION)height;
    encoder.input_components = components;
    encoder.in_color_space = space;
    jpeg_set_defaults(&encoder);
    jpeg_set_colorspace(&encoder, stored);
    jpeg_set_quality(&encoder, 95, TRUE);
    if (progressive)
        jpeg_simple_progression(&encoder);
    jpeg_start_compress(&encoder, TRUE);
    while (encoder.next_scanline < height) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)(pixels + encoder.next_scanline * width * (size_t)components);
        jpeg_write_scanlines(&encoder, &row, 1);
    }
    jpeg_finish_compress(&encoder);
    jpeg_destroy_compress(&encoder);
}

enum { WIDTH = 150, HEIGHT = 110, BYTES = WIDTH * HEIGHT * DV_PIXEL };

static void test_colours(void **state) {
    (void)state;
    static const J_COLOR_SPACE stored[] = {JCS_YCbCr, JCS_RGB, JCS_GRAYSCALE};
    uint8_t *image = images_paint(WIDTH, HEIGHT, 1);
    for (int k = 0; k < 6; k++) {
        uint8_t *bytes;
        unsigned long count;
        picture made;
        write_jpeg(image, WIDTH, HEIGHT, 3, JCS_RGB, stored[k % 3], k / 3, &bytes, &count);
        assert_ok(decode(bytes, count, &made, &error));
        assert_int_equal(made.width, WIDTH);
        assert_int_equal(made.height, HEIGHT);
        for (size_t i = 0; i < BYTES && k % 3 == 2; i += 3) { /* grey: three of the same, as light as the original */
            double light = 0.299 * image[i] + 0.587 * image[i + 1] + 0.114 * image[i + 2];
            assert_true(made.pixels[i] == made.pixels[i + 1] && made.pixels[i] == made.pixels[i + 2]);
            assert_true(fabs(light - made.pixels[i]) < 15);
        }
        if (k % 3 < 2)
            assert_true(difference(image, made.pixels, BYTES) < 6);
        free(made.pixels);
        free(bytes);
    }
    free(image);
}

/* Ink: as it is, and inverted as libjpeg's marker of Adobe (which it writes with YCCK and CMYK) says it is. */
static void test_ink(void **state) {
    (void)state;
    static const J_COLOR_SPACE stored[] = {JCS_CMYK, JCS_YCCK};
    uint8_t *image = images_paint(WIDTH, HEIGHT, 2), *ink = malloc(WIDTH * HEIGHT * 4);
    assert_non_null(ink);
    for (size_t i = 0; i < WIDTH * HEIGHT; i++) { /* black ink takes what all colours have in common; all inverted */
        uint8_t *rgb = image + i * 3, white = (uint8_t)(rgb[0] > rgb[1] ? rgb[0] : rgb[1]);
        white = (uint8_t)(rgb[2] > white ? rgb[2] : white);
        for (int c = 0; c < 3; c++)
            ink[i * 4 + (size_t)c] = (uint8_t)(white ? rgb[c] * 255 / white : 255);
        ink[i * 4 + 3] = white;
    }
    for (int k = 0; k < 2; k++) {
        uint8_t *bytes;
        unsigned long count;
        picture made;
        write_jpeg(ink, WIDTH, HEIGHT, 4, JCS_CMYK, stored[k], 0, &bytes, &count);
        assert_ok(decode(bytes, count, &made, &error));
        assert_true(difference(image, made.pixels, BYTES) < 6);
        free(made.pixels);
        free(bytes);
    }
    free(ink);
    free(image);
}

static void test_png(void **state) {
    (void)state;
    uint8_t *image = images_paint(WIDTH, HEIGHT, 3);
    struct spng_ihdr header = {
        .width = WIDTH, .height = HEIGHT, .bit_depth = 8, .color_type = SPNG_COLOR_TYPE_TRUECOLOR};
    size_t count;
    int code;
    picture made;
    spng_ctx *png = spng_ctx_new(SPNG_CTX_ENCODER);
    spng_set_option(png, SPNG_ENCODE_TO_BUFFER, 1);
    spng_set_ihdr(png, &header);
    assert_int_equal(spng_encode_image(png, image, BYTES, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE), 0);
    uint8_t *bytes = spng_get_png_buffer(png, &count, &code);
    assert_non_null(bytes);
    assert_ok(decode(bytes, count, &made, &error));
    assert_memory_equal(made.pixels, image, BYTES);
    free(made.pixels);
    for (size_t cut = 0; cut < count; cut += 1 + count / 60) { /* cut short, or one byte wrong */
        if (cut + 32 < count) {                                /* else all pixels are there */
            assert_int_not_equal(decode(bytes, cut, &made, NULL), DV_OK);
            free(made.pixels);
        }
        bytes[cut] ^= 0x55;
        (void)decode(bytes, count, &made, NULL);
        bytes[cut] ^= 0x55;
        free(made.pixels);
    }
    free(bytes);
    free(image);
    spng_ctx_free(png);
}

/* A WebP, lossless or with losses, in memory that WebPFree frees. */
static uint8_t *make_webp(const uint8_t *image, int lossless, size_t *count) {
    uint8_t *bytes = NULL;
    *count = lossless ? WebPEncodeLosslessRGB(image, WIDTH, HEIGHT, WIDTH * DV_PIXEL, &bytes)
                      : WebPEncodeRGB(image, WIDTH, HEIGHT, WIDTH * DV_PIXEL, 90, &bytes);
    assert_non_null(bytes);
    return bytes;
}

/* Cut short anywhere a WebP is corrupt; with any byte wrong it may be, and nothing else happens. */
static void damage_webp(uint8_t *bytes, size_t count) {
    picture made;
    for (size_t cut = 12; cut + 16 < count; cut += 1 + count / 100) {
        assert_fails(decode(bytes, cut, &made, &error), DV_ERROR_FORMAT, "corrupt WebP: it");
        free(made.pixels);
    }
    for (size_t at = 0; at < count; at += 1 + count / 200) {
        bytes[at] ^= 0xff;
        (void)decode(bytes, count, &made, NULL);
        free(made.pixels);
        bytes[at] ^= 0xff;
    }
}

static void test_webp(void **state) {
    (void)state;
    uint8_t *image = images_paint(WIDTH, HEIGHT, 8);
    for (int lossless = 0; lossless < 2; lossless++) {
        size_t count;
        picture made;
        uint8_t *bytes = make_webp(image, lossless, &count);
        assert_ok(decode(bytes, count, &made, &error));
        assert_int_equal(made.width, WIDTH);
        assert_int_equal(made.height, HEIGHT);
        if (lossless)
            assert_memory_equal(made.pixels, image, BYTES);
        else
            assert_true(difference(image, made.pixels, BYTES) < 8);
        free(made.pixels);
        damage_webp(bytes, count);
        WebPFree(bytes);
    }
    free(image);
}

/* Headers alone are enough to refuse: an animation, a size that would take gigabytes, a sound. */
static void test_refused_webp(void **state) {
    (void)state;
    picture made;
    uint8_t extended[30] = "RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0"; /* then flags, width - 1 and height - 1 */
    extended[20] = 2;
    extended[24] = extended[27] = 15;
    assert_fails(decode(extended, sizeof extended, &made, &error), DV_ERROR_FORMAT, "an animated WebP: give one");
    /* of one chunk VP8L: its signature, then 14 bits each of width - 1 and height - 1 */
    const uint8_t vast[] = "RIFF\x16\0\0\0WEBPVP8L\x0a\0\0\0\x2f\xff\xff\xff\x0f\0\0\0\0\0";
    assert_fails(decode(vast, sizeof vast - 1, &made, &error), DV_ERROR_FORMAT, "16384 x 16384 is too large");
    assert_fails(decode((const uint8_t *)"RIFF\x10\0\0\0WAVEfmt ", 16, &made, &error), DV_ERROR_FORMAT,
                 "not JPEG, PNG or WebP but a sound or film");
}

/* What is cut out of an image while it is decoded is what is cut out of the whole, to the bit. */
static void check_parts(const uint8_t *bytes, size_t count) {
    enum { PARTS = 40, MOST = 64 };
    size_t width, height;
    picture whole;
    dv_decoder *decoder;
    assert_ok(decode(bytes, count, &whole, &error));
    assert_ok(dv_decoder_new(MOST, MOST, &decoder, &error));
    for (unsigned k = 0; k < PARTS; k++) {
        dv_random key = {k, 5};
        size_t side = 1 + dv_random_word(key, 0) % MOST;
        dv_view view = {.size = {side, side, side, side, 0, 0, side, side, false}};
        view.left = dv_random_word(key, 1) % (WIDTH - side + 1);
        view.top = dv_random_word(key, 2) % (HEIGHT - side + 1);
        uint8_t part[MOST * MOST * DV_PIXEL];
        assert_ok(dv_decoder_open(decoder, bytes, count, &width, &height, &error));
        assert_ok(dv_decoder_show(decoder, &view, part, &error));
        for (size_t y = 0; y < side; y++)
            assert_memory_equal(part + y * side * DV_PIXEL,
                                whole.pixels + ((view.top + y) * WIDTH + view.left) * DV_PIXEL, side * DV_PIXEL);
    }
    dv_decoder_free(decoder);
    free(whole.pixels);
}

static void test_parts(void **state) {
    (void)state;
    uint8_t *image = images_paint(WIDTH, HEIGHT, 4), *bytes;
    size_t count;
    assert_ok(dv_jpeg_write(image, WIDTH, HEIGHT, 85, &bytes, &count, &error));
    check_parts(bytes, count);
    free(bytes);
    for (int lossless = 0; lossless < 2; lossless++) {
        bytes = make_webp(image, lossless, &count);
        check_parts(bytes, count);
        WebPFree(bytes);
    }
    free(image);
}

/* A view much smaller than the image may be decoded at a lower resolution, and looks like the whole, resized. Else it
 * is the whole, resized, to the bit. */
static void test_scaled(void **state) {
    (void)state;
    enum { LARGE = 640, SIDE = 60 };
    uint8_t *image = images_paint(LARGE, LARGE, 5), *bytes, a[SIDE * SIDE * DV_PIXEL], b[SIDE * SIDE * DV_PIXEL];
    size_t count, width, height;
    dv_decoder *decoder;
    picture whole;
    dv_view view = dv_view_whole(LARGE, LARGE, SIDE, SIDE);
    assert_ok(dv_jpeg_write(image, LARGE, LARGE, 95, &bytes, &count, &error));
    assert_ok(decode(bytes, count, &whole, &error));
    assert_ok(dv_decoder_new(SIDE, SIDE, &decoder, &error));
    for (int scaled = 0; scaled < 2; scaled++) {
        view.scaled = scaled;
        assert_ok(dv_decoder_open(decoder, bytes, count, &width, &height, &error));
        assert_ok(dv_decoder_show(decoder, &view, a, &error));
        dv_decoder_show_pixels(decoder, whole.pixels, LARGE, &view, b);
        assert_true(difference(a, b, sizeof a) < 6);
        assert_int_equal(memcmp(a, b, sizeof a) == 0, !scaled);
    }
    dv_decoder_free(decoder);
    free(whole.pixels);
    free(bytes);
    free(image);
}

/* Cut short anywhere, a JPEG is corrupt, unless nothing but its end is missing. */
static void test_truncated(void **state) {
    (void)state;
    uint8_t *image = images_paint(WIDTH, HEIGHT, 6), *bytes;
    size_t count;
    picture made;
    assert_ok(dv_jpeg_write(image, WIDTH, HEIGHT, 85, &bytes, &count, &error));
    for (size_t cut = 0; cut < count - 16; cut += 1 + count / 100) {
        dv_error error;
        assert_int_equal(decode(bytes, cut, &made, &error), DV_ERROR_FORMAT);
        free(made.pixels);
    }
    for (size_t at = 0; at < count; at += 1 + count / 200) { /* no crash; and the decoder is fit for use afterwards */
        bytes[at] ^= 0xff;
        (void)decode(bytes, count, &made, NULL);
        free(made.pixels);
        bytes[at] ^= 0xff;
    }
    assert_fails(decode(bytes, 0, &made, &error), DV_ERROR_FORMAT, "it is empty");
    assert_fails(decode(bytes, count / 2, &made, &error), DV_ERROR_FORMAT, "corrupt JPEG: Premature end");
    free(made.pixels);
    assert_fails(decode((const uint8_t *)"GIF89a..", 8, &made, &error), DV_ERROR_FORMAT,
                 "not JPEG, PNG or WebP but a GIF");
    assert_fails(decode((const uint8_t *)"nothing", 7, &made, &error), DV_ERROR_FORMAT, "but something else");
    free(bytes);
    free(image);
}

/* One decoder goes on after an image that failed, and after one that was opened only. */
static void test_goes_on(void **state) {
    (void)state;
    enum { SIDE = 32 };
    uint8_t *image = images_paint(WIDTH, HEIGHT, 7), *bytes, first[SIDE * SIDE * 3], again[SIDE * SIDE * 3];
    size_t count, width, height;
    dv_decoder *decoder;
    dv_view view = {.left = 9, .top = 60, .size = {40, 40, SIDE, SIDE, 0, 0, SIDE, SIDE, false}};
    assert_ok(dv_jpeg_write(image, WIDTH, HEIGHT, 85, &bytes, &count, &error));
    assert_ok(dv_decoder_new(SIDE, SIDE, &decoder, &error));
    assert_ok(dv_decoder_open(decoder, bytes, count, &width, &height, &error));
    assert_ok(dv_decoder_show(decoder, &view, first, &error));
    assert_ok(dv_decoder_open(decoder, bytes, count, &width, &height, &error));
    assert_ok(dv_decoder_open(decoder, bytes, count / 2, &width, &height, &error));
    assert_fails(dv_decoder_show(decoder, &view, again, &error), DV_ERROR_FORMAT, "corrupt JPEG");
    assert_ok(dv_decoder_open(decoder, bytes, count, &width, &height, &error));
    assert_ok(dv_decoder_show(decoder, &view, again, &error));
    assert_memory_equal(first, again, sizeof first);
    dv_decoder_free(decoder);
    free(bytes);
    free(image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_colours), cmocka_unit_test(test_ink),    cmocka_unit_test(test_png),
        cmocka_unit_test(test_parts),   cmocka_unit_test(test_scaled), cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_goes_on), cmocka_unit_test(test_webp),   cmocka_unit_test(test_refused_webp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
