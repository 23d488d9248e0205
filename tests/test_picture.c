/* Pictures: what is drawn stays on the canvas, scales keep order, and the PNG has the same pixels. */
#include "base/file.h"
#include "check.h"
#include "folder.h"
#include "report/font.h"

#include <division/tools/picture.h>
#include <math.h>
#include <spng.h>
#include <stdbool.h>

static const dv_colour red = {255, 0, 0};

static dv_picture make(size_t width, size_t height) {
    dv_picture picture;
    assert_int_equal(dv_picture_new(&picture, width, height, DV_WHITE, NULL), DV_OK);
    return picture;
}

static int is(dv_colour a, dv_colour b) {
    return a.red == b.red && a.green == b.green && a.blue == b.blue;
}

static size_t count(const dv_picture *picture, dv_colour colour) {
    size_t found = 0;
    for (size_t i = 0; i < picture->width * picture->height; i++)
        found += (size_t)is(picture->pixels[i], colour);
    return found;
}

static void test_sizes(void **state) {
    (void)state;
    static const size_t bad[] = {0, DV_PICTURE_MAX_SIDE + 1, SIZE_MAX};
    dv_picture picture;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(dv_picture_new(&picture, bad[i], 1, DV_WHITE, NULL), DV_ERROR_ARGUMENT);
        assert_int_equal(dv_picture_new(&picture, 1, bad[i], DV_WHITE, NULL), DV_ERROR_ARGUMENT);
        assert_null(picture.pixels);
    }
    assert_int_equal(dv_picture_new(NULL, 1, 1, DV_WHITE, NULL), DV_ERROR_ARGUMENT);
    dv_picture_free(&picture);
    dv_picture_free(NULL);
}

static void test_fill_is_clipped(void **state) {
    (void)state;
    dv_picture picture = make(10, 6);
    dv_picture_fill(&picture, 10, 0, 5, 5, red);
    dv_picture_fill(&picture, 0, SIZE_MAX, 5, 5, red);
    dv_picture_fill(&picture, 3, 3, 0, 2, red);
    assert_int_equal(count(&picture, red), 0);
    dv_picture_fill(&picture, 8, 4, SIZE_MAX, SIZE_MAX, red);
    assert_int_equal(count(&picture, red), 4);
    dv_picture_fill(&picture, 0, 0, 3, 2, red);
    assert_int_equal(count(&picture, red), 10);
    dv_picture_free(&picture);
}

static void test_grey_scale_keeps_order(void **state) {
    (void)state;
    int last = -1;
    for (int i = 0; i <= 1000; i++) {
        dv_colour colour = dv_scale_colour(DV_SCALE_GREY, (float)i * 0.001f, 0, 1);
        assert_true(colour.red >= last && colour.red == colour.green && colour.red == colour.blue);
        last = colour.red;
    }
    assert_int_equal(last, 255);
    assert_true(is(dv_scale_colour(DV_SCALE_GREY, -5, 0, 1), DV_BLACK));
    assert_true(is(dv_scale_colour(DV_SCALE_GREY, INFINITY, 0, 1), DV_WHITE));
}

static void test_diverging_scale(void **state) {
    (void)state;
    dv_colour low = dv_scale_colour(DV_SCALE_DIVERGING, -1, -1, 1),
              high = dv_scale_colour(DV_SCALE_DIVERGING, 1, -1, 1);
    dv_colour middle = dv_scale_colour(DV_SCALE_DIVERGING, 0, -1, 1);
    assert_true(low.blue > low.red && high.red > high.blue);
    assert_true(middle.red == middle.blue && middle.red > 240);
}

static void test_odd_numbers_have_colours(void **state) {
    (void)state;
    static const float odd[] = {NAN, INFINITY, -INFINITY, 0, 3.4e38f, -3.4e38f, 1e-45f};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) /* a sanitizer tells if a conversion overflows */
        for (size_t j = 0; j < sizeof odd / sizeof *odd; j++)
            for (int scale = 0; scale < DV_SCALE_COUNT; scale++)
                dv_scale_colour((dv_scale)scale, odd[i], odd[j], -odd[j]);
    assert_true(is(dv_scale_colour(DV_SCALE_GREY, NAN, 0, 1), (dv_colour){255, 0, 255}));
    assert_true(is(dv_scale_colour(DV_SCALE_GREY, 7, 7, 7), (dv_colour){128, 128, 128}));
}

static void test_map_strides_and_zoom(void **state) {
    (void)state;
    /* Two channels, channels last: the second one's elements are 0 1 / 1 0. */
    static const float values[] = {9, 0, 9, 1, 9, 1, 9, 0};
    dv_picture picture = make(12, 12);
    dv_picture_map map = {.values = values + 1,
                          .width = 2,
                          .height = 2,
                          .stride_x = 2,
                          .stride_y = 4,
                          .zoom_x = 3,
                          .zoom_y = 2,
                          .high = 1};
    dv_picture_draw_map(&picture, 1, 1, &map);
    assert_int_equal(count(&picture, DV_BLACK), 2 * 3 * 2);
    assert_true(is(picture.pixels[1 * 12 + 1], DV_BLACK));
    assert_true(is(picture.pixels[1 * 12 + 4], DV_WHITE));
    assert_true(is(picture.pixels[4 * 12 + 6], DV_BLACK));
    dv_picture_draw_map(&picture, 11, 11, &map);
    dv_picture_free(&picture);
}

static void test_image(void **state) {
    (void)state;
    static const dv_colour image[] = {{255, 0, 0}, {0, 0, 0}};
    dv_picture picture = make(8, 4);
    dv_picture_draw_image(&picture, 2, 1, image, 2, 1, 3);
    assert_int_equal(count(&picture, red), 9);
    assert_int_equal(count(&picture, DV_BLACK), 9);
    dv_picture_free(&picture);
}

/* Every printable character has dots of its own, and no two have the same. */
enum { FIRST = 0xc0, LAST = 0xff }; /* letters of Latin-1 */

/* A small letter with a mark. Eth and thorn are drawn as d and p. */
static bool is_small(uint32_t code) {
    return code >= 0xdf && code <= LAST && code != 0xf0 && code != 0xfe;
}

static bool look_the_same(uint32_t a, uint32_t b) {
    uint8_t dots[2][DV_FONT_COLUMNS];
    dv_font_columns(a, dots[0]);
    dv_font_columns(b, dots[1]);
    return memcmp(dots[0], dots[1], DV_FONT_COLUMNS) == 0;
}

static void test_font(void **state) {
    (void)state;
    for (uint32_t a = '!'; a <= LAST; a++)
        for (uint32_t b = ' '; b < a && (a <= '~' || is_small(a)); b++)
            if ((b <= '~' || is_small(b)) && look_the_same(a, b))
                fail_msg("U+%04x and U+%04x look the same", a, b);
    for (uint32_t a = 0; a<0x20000; a += a> 2 * LAST ? 997 : 1)
        if (a < ' ' || (a > '~' && a < FIRST) || a > LAST)
            assert_true(look_the_same(a, 0xfffd));
        else
            assert_false(look_the_same(a, 0xfffd));
}

static void test_text(void **state) {
    (void)state;
    dv_picture picture = make(40, 20);
    dv_picture_text(&picture, 0, 0, "|", 2, red);
    assert_int_equal(count(&picture, red), 7 * 2 * 2);
    dv_picture_text(&picture, 35, 15, "runs off the canvas", 3, red);
    dv_picture_free(&picture);
    picture = make(20, 40);
    dv_picture_text_up(&picture, 0, 40, "|", 2, red); /* lies down: seven dots to the right, in the middle of six */
    assert_int_equal(count(&picture, red), 7 * 2 * 2);
    assert_true(is(picture.pixels[34 * 20], red) && is(picture.pixels[35 * 20 + 13], red));
    dv_picture_text_up(&picture, 15, 15, "runs off the canvas", 3, red);
    dv_picture_free(&picture);
    picture = make(20, 10); /* a place for each character: a box of 20 dots, and a bar of 7 in the middle of the next */
    dv_picture_text(&picture, 0, 0, "\xe2\x82\xac|", 1, red);
    assert_int_equal(count(&picture, red), 20 + 7);
    assert_true(is(picture.pixels[8], red) && is(picture.pixels[20 + 8], red));
    dv_picture_free(&picture);
}

/* Decodes a PNG file into pixels. */
static void expect_png(const char *path, const dv_picture *wanted) {
    void *data;
    size_t bytes, size;
    dv_error error;
    if (dv_file_read(path, 1 << 20, &data, &bytes, &error) != DV_OK)
        fail_msg("%s", error.text);
    spng_ctx *context = spng_ctx_new(0);
    assert_int_equal(spng_set_png_buffer(context, data, bytes), 0);
    assert_int_equal(spng_decoded_image_size(context, SPNG_FMT_RGB8, &size), 0);
    assert_int_equal(size, wanted->width * wanted->height * 3);
    dv_colour *pixels = malloc(size);
    assert_non_null(pixels);
    assert_int_equal(spng_decode_image(context, pixels, size, SPNG_FMT_RGB8, 0), 0);
    assert_memory_equal(pixels, wanted->pixels, size);
    spng_ctx_free(context);
    free(pixels);
    free(data);
}

static void test_png(void **state) {
    char path[FOLDER_PATH_BYTES];
    dv_picture picture = make(31, 17);
    dv_picture_text(&picture, 2, 3, "png", 1, red);
    folder_path(state, "a.png", path);
    assert_int_equal(dv_picture_write(&picture, path, NULL), DV_OK);
    expect_png(path, &picture);
    assert_int_equal(folder_count(state, 0), 1);
    dv_picture_free(&picture);
}

static void test_png_errors(void **state) {
    char path[FOLDER_PATH_BYTES];
    dv_error error = {DV_OK, ""};
    dv_picture picture = make(31, 17), none = {0};
    folder_path(state, "no such folder/a.png", path);
    assert_int_equal(dv_picture_write(&picture, path, &error), DV_ERROR_IO);
    assert_non_null(strstr(error.text, "a.png"));
    assert_int_equal(dv_picture_write(&picture, "/dev/full", &error), DV_ERROR_IO);
    assert_int_equal(dv_picture_write(&none, path, &error), DV_ERROR_ARGUMENT);
    dv_picture_free(&picture);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_new, folder_free)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_fill_is_clipped),
        cmocka_unit_test(test_grey_scale_keeps_order),
        cmocka_unit_test(test_diverging_scale),
        cmocka_unit_test(test_odd_numbers_have_colours),
        cmocka_unit_test(test_map_strides_and_zoom),
        cmocka_unit_test(test_image),
        cmocka_unit_test(test_font),
        cmocka_unit_test(test_text),
        IN_FOLDER(test_png),
        IN_FOLDER(test_png_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
