/* Resizing: against weights worked out plainly in double, row by row. */
#include "images.h"

#include "base/random.h"

#include <math.h>

/* The weight of source pixel `at` for pixel `target` of the result, not normalised. */
static double weight(size_t source, size_t targets, size_t target, size_t at) {
    double step = (double)source / (double)targets, scale = step < 1 ? 1 : step;
    double distance = fabs((double)at + 0.5 - ((double)target + 0.5) * step) / scale;
    return distance < 1 ? 1 - distance : 0;
}

/* PIL's arithmetic: weights of 22 bits after the point. */
static int64_t whole(size_t source, size_t targets, size_t target, size_t at) {
    double sum = 0;
    for (size_t i = 0; i < source; i++)
        sum += weight(source, targets, target, i);
    return (int64_t)(weight(source, targets, target, at) / sum * (1 << 22) + 0.5);
}

/* A pixel in that arithmetic: along rows to bytes, then along columns. */
static int exact(const uint8_t *image, const dv_resample_size *size, size_t x, size_t y, size_t channel) {
    int64_t outer = 1 << 21;
    for (size_t v = 0; v < size->height; v++) {
        int64_t along = whole(size->height, size->target_height, y, v), inner = 1 << 21;
        for (size_t u = 0; u < size->width && along > 0; u++)
            inner += whole(size->width, size->target_width, x, u) * image[(v * size->width + u) * DV_PIXEL + channel];
        outer += along * (inner >> 22);
    }
    return (int)(outer >> 22);
}

static double plain(const uint8_t *image, const dv_resample_size *size, size_t x, size_t y, size_t channel) {
    double sum = 0, weights = 0;
    for (size_t v = 0; v < size->height; v++) {
        double along = weight(size->height, size->target_height, y, v);
        for (size_t u = 0; u < size->width && along > 0; u++) {
            double both = along * weight(size->width, size->target_width, x, u);
            sum += both * image[(v * size->width + u) * DV_PIXEL + channel];
            weights += both;
        }
    }
    return sum / weights;
}

static void resize(const uint8_t *image, const dv_resample_size *size, uint8_t *dst) {
    dv_resample resample;
    void *memory = malloc(dv_resample_bytes(size->part_width, size->part_height));
    assert_non_null(memory);
    dv_resample_init(&resample, size->part_width, size->part_height, memory);
    dv_resample_pixels(&resample, image, size->width, &(dv_view){.size = *size}, dst);
    free(memory);
}

static const dv_resample_size sizes[] = {
    {1, 1, 1, 1, 0, 0, 1, 1, false},        {1, 1, 5, 7, 0, 0, 5, 7, false},
    {7, 5, 7, 5, 0, 0, 7, 5, false},        {17, 31, 8, 8, 0, 0, 8, 8, false},
    {100, 75, 32, 24, 3, 2, 20, 20, false}, {30, 20, 64, 43, 10, 0, 43, 43, false},
    {301, 3, 4, 9, 0, 0, 4, 9, false},      {3, 200, 3, 7, 1, 2, 2, 4, false},
    {64, 64, 63, 65, 0, 0, 63, 65, false},  {2000, 1, 32, 1000, 31, 7, 1, 200, false},
};

static void test_against_plain(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const dv_resample_size *size = &sizes[k];
        uint8_t *image = images_paint(size->width, size->height, (unsigned)k);
        size_t bytes = size->part_width * size->part_height * DV_PIXEL;
        uint8_t *dst = guarded_new(bytes);
        resize(image, size, dst);
        for (size_t i = 0; i < bytes; i++) {
            size_t x = i / DV_PIXEL % size->part_width, y = i / DV_PIXEL / size->part_width;
            double expected = plain(image, size, size->left + x, size->top + y, i % DV_PIXEL);
            if (fabs(expected - dst[i]) > 1.01) /* each pass rounds to a byte */
                fail_msg("size %zu, byte %zu: %d, expected %g", k, i, dst[i], expected);
        }
        guarded_free(dst, bytes);
        free(image);
    }
}

/* To the bit, for small sizes: those that are enlarged, reduced, and kept in one direction. */
static void test_to_the_bit(void **state) {
    (void)state;
    for (size_t width = 1; width < 20; width += 3)
        for (size_t target = 1; target < 24; target += 4) {
            dv_resample_size size = {width, 21 - width, target, 25 - target, 0, 0, target, 25 - target, false};
            uint8_t *image = images_paint(size.width, size.height, (unsigned)target), dst[24 * 24 * DV_PIXEL];
            for (size_t i = 0; i < size.width * size.height * DV_PIXEL; i++)
                image[i] = (uint8_t)(i % 7 == 0 ? 255 : dv_random_word((dv_random){9, (uint32_t)width}, (uint32_t)i));
            resize(image, &size, dst);
            for (size_t i = 0; i < size.part_width * size.part_height * DV_PIXEL; i++)
                assert_int_equal(dst[i], exact(image, &size, i / DV_PIXEL % target, i / DV_PIXEL / target, i % 3));
            free(image);
        }
}

/* Mirrored: the same pixels the other way round. */
static void test_flipped(void **state) {
    (void)state;
    enum { WIDTH = 31, HEIGHT = 9, SIDE = 20 };
    uint8_t *image = images_paint(WIDTH, HEIGHT, 8), plain_way[SIDE * SIDE * 3], flipped[SIDE * SIDE * 3];
    dv_resample_size size = {WIDTH, HEIGHT, 25, SIDE, 3, 0, SIDE, SIDE, false};
    resize(image, &size, plain_way);
    size.flip = true;
    resize(image, &size, flipped);
    dv_view_mirror(SIDE, flipped);
    assert_memory_equal(plain_way, flipped, sizeof flipped);
    free(image);
}

/* The same size is the same image, and one colour stays that colour. */
static void test_exact(void **state) {
    (void)state;
    enum { WIDTH = 37, HEIGHT = 23, SIDE = 16 };
    uint8_t *image = images_paint(WIDTH, HEIGHT, 3), dst[WIDTH * HEIGHT * DV_PIXEL];
    resize(image, &(dv_resample_size){WIDTH, HEIGHT, WIDTH, HEIGHT, 0, 0, WIDTH, HEIGHT, false}, dst);
    assert_memory_equal(image, dst, sizeof dst);
    for (int level = 0; level < 256; level += 51) {
        memset(image, level, WIDTH * HEIGHT * DV_PIXEL);
        resize(image, &(dv_resample_size){WIDTH, HEIGHT, SIDE, SIDE, 0, 0, SIDE, SIDE, false}, dst);
        for (size_t i = 0; i < (size_t)SIDE * SIDE * DV_PIXEL; i++)
            assert_int_equal(dst[i], level);
    }
    free(image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_plain),
        cmocka_unit_test(test_to_the_bit),
        cmocka_unit_test(test_flipped),
        cmocka_unit_test(test_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
