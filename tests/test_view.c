/* Views: within the image, of the areas and shapes asked for, and the same for the same key. */
#include "images.h"

#include "data/augmentation.h"

#include <math.h>

static dv_view_options varied(dv_crop crop, size_t side) {
    return (dv_view_options){.side = side, .resize = side, .vary = true, .augmentation = dv_augmentation_default(crop)};
}

static const size_t shapes[][2] = {{1, 1}, {2, 700}, {640, 480}, {375, 500}, {3000, 20}, {33, 32}, {224, 224}};

static void test_resized(void **state) {
    (void)state;
    enum { DRAWS = 2000 };
    dv_view_options options = varied(DV_CROP_RESIZED, 224);
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        size_t width = shapes[k][0], height = shapes[k][1], flips = 0;
        double areas = 0, least = 1, most = 0;
        for (uint32_t i = 0; i < DRAWS; i++) {
            dv_view view = dv_view_choose(&options, (dv_showing){7, 0, i}, width, height);
            assert_true(view.size.width >= 1 && view.left + view.size.width <= width);
            assert_true(view.size.height >= 1 && view.top + view.size.height <= height);
            assert_true(view.size.target_width == 224 && view.size.part_height == 224);
            double area = (double)(view.size.width * view.size.height) / (double)(width * height);
            areas += area / DRAWS;
            least = area < least ? area : least;
            most = area > most ? area : most;
            flips += view.flip || view.size.flip;
        }
        assert_in_range(flips, DRAWS * 4 / 10, DRAWS * 6 / 10);
        if (width < 300 || height < 300)
            continue; /* those below are of large images */
        assert_true(least < 0.1 && least > 0.07 && most > 0.9);
        assert_true(areas > 0.42 && areas < 0.46); /* 0.43: few large parts have a shape that fits */
    }
}

/* The ratio's logarithm is uniform, so it is as often above 1 as below. */
static void test_ratios(void **state) {
    (void)state;
    enum { DRAWS = 2000 };
    size_t wide = 0;
    dv_view_options options = varied(DV_CROP_RESIZED, 64);
    for (uint32_t i = 0; i < DRAWS; i++) {
        dv_view view = dv_view_choose(&options, (dv_showing){8, 0, i}, 1000, 1000);
        double ratio = (double)view.size.width / (double)view.size.height;
        assert_true(ratio > 0.745 && ratio < 1.345);
        wide += ratio > 1;
    }
    assert_in_range(wide, DRAWS * 45 / 100, DRAWS * 55 / 100);
}

/* As torchvision does it: Resize(256), CenterCrop(224). */
static void test_middle(void **state) {
    (void)state;
    static const struct {
        size_t width, height, target_width, target_height, left, top;
    } cases[] = {
        {500, 375, 341, 256, 58, 16}, {375, 500, 256, 341, 16, 58},       {224, 224, 256, 256, 16, 16},
        {100, 99, 258, 256, 17, 16},  {1, 1000, 256, 256000, 16, 127888},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dv_view view = dv_view_choose(&(dv_view_options){.side = 224, .resize = 256}, (dv_showing){0, 0, 0},
                                      cases[i].width, cases[i].height);
        assert_int_equal(view.size.target_width, cases[i].target_width);
        assert_int_equal(view.size.target_height, cases[i].target_height);
        assert_int_equal(view.size.left, cases[i].left);
        assert_int_equal(view.size.top, cases[i].top);
        assert_false(view.flip || view.scaled || dv_view_moves(&view));
    }
}

/* By chance an image is mirrored in half of the epochs; in every other one, never as in the epoch before. */
static void test_flips(void **state) {
    (void)state;
    enum { IMAGES = 2000 };
    dv_view_options options = varied(DV_CROP_ZERO, 32);
    size_t first[DV_FLIP_COUNT] = {0}, changes[DV_FLIP_COUNT] = {0};
    for (dv_flip flip = 0; flip < DV_FLIP_COUNT; flip++)
        for (uint64_t i = 0; i < IMAGES; i++) {
            options.augmentation.flip = flip;
            bool mirrored = dv_view_choose(&options, (dv_showing){9, 0, i}, 32, 32).flip;
            first[flip] += mirrored;
            changes[flip] += mirrored != dv_view_choose(&options, (dv_showing){9, 1, i}, 32, 32).flip;
            assert_true(flip == DV_FLIP_CHANCE ||
                        mirrored == dv_view_choose(&options, (dv_showing){9, 6, i}, 32, 32).flip);
        }
    assert_int_equal(first[DV_FLIP_NEVER] + changes[DV_FLIP_NEVER], 0);
    assert_in_range(first[DV_FLIP_CHANCE], IMAGES * 45 / 100, IMAGES * 55 / 100);
    assert_in_range(changes[DV_FLIP_CHANCE], IMAGES * 45 / 100, IMAGES * 55 / 100);
    assert_in_range(first[DV_FLIP_ALTERNATE], IMAGES * 45 / 100, IMAGES * 55 / 100);
    assert_int_equal(changes[DV_FLIP_ALTERNATE], IMAGES);
}

static void test_plain(void **state) {
    (void)state;
    dv_view_options options = varied(DV_CROP_ZERO, 32);
    dv_view view = dv_view_choose(&options, (dv_showing){1, 2, 3}, 32, 32);
    assert_true(dv_view_is_plain(&view));
    view = dv_view_choose(&options, (dv_showing){1, 2, 3}, 33, 32);
    assert_false(dv_view_is_plain(&view));
}

/* A row 1 2 3 4, moved; what comes in is black, or 3 2 | 1 2 3 4 | 3 2. */
static void test_moved(void **state) {
    (void)state;
    enum { SIDE = 4 };
    static const struct {
        int right;
        bool reflect;
        uint8_t row[SIDE];
    } cases[] = {{0, false, {1, 2, 3, 4}}, {2, false, {3, 4, 0, 0}}, {-1, false, {0, 1, 2, 3}}, {5, false, {0}},
                 {-2, true, {3, 2, 1, 2}}, {3, true, {4, 3, 2, 1}},  {1, true, {2, 3, 4, 3}}};
    uint8_t square[SIDE * SIDE * DV_PIXEL], dst[SIDE * SIDE * DV_PIXEL];
    for (size_t i = 0; i < sizeof square; i++)
        square[i] = (uint8_t)(1 + i / DV_PIXEL % SIDE);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        dv_view view = {.right = cases[k].right, .reflect = cases[k].reflect, .size = {.part_width = SIDE}};
        dv_view_move(&view, square, dst);
        for (size_t i = 0; i < sizeof dst; i++)
            assert_int_equal(dst[i], cases[k].row[i / DV_PIXEL % SIDE]);
        for (size_t i = 0; i < sizeof square; i++) /* the same downwards */
            dst[i] = (uint8_t)(1 + i / DV_PIXEL / SIDE);
        uint8_t down[sizeof square];
        dv_view_move(&(dv_view){.down = cases[k].right, .reflect = cases[k].reflect, .size = {.part_width = SIDE}}, dst,
                     down);
        for (size_t i = 0; i < sizeof down; i++)
            assert_int_equal(down[i], cases[k].row[i / DV_PIXEL / SIDE]);
    }
    dv_view_mirror(SIDE, square);
    for (size_t i = 0; i < sizeof square; i++)
        assert_int_equal(square[i], SIDE - i / DV_PIXEL % SIDE);
}

static void test_text(void **state) {
    (void)state;
    dv_augmentation made;
    assert_ok(dv_augmentation_parse("usual", &made, &error));
    assert_int_equal(made.crop, DV_CROP_USUAL);
    assert_ok(dv_augmentation_parse("reflect:padding=2,flip=0", &made, &error));
    assert_int_equal(made.crop, DV_CROP_REFLECT);
    assert_int_equal(made.padding, 2);
    assert_int_equal(made.flip, 0);
    assert_ok(dv_augmentation_parse("zero:flip=2", &made, &error));
    assert_int_equal(made.flip, DV_FLIP_ALTERNATE);
    assert_ok(dv_augmentation_parse("resized:least=0.25", &made, &error));
    assert_true(made.least_area == 0.25 && made.most_area == 1 && made.least_ratio == 0.75 && made.flip == 1);
    assert_fails(dv_augmentation_parse("cutout", &made, &error), DV_ERROR_OPTION,
                 "there is usual, none, zero, reflect");
    assert_fails(dv_augmentation_parse("zero:padding=65", &made, &error), DV_ERROR_OPTION, "from 0 to 64");
    assert_fails(dv_augmentation_parse("zero:flip=3", &made, &error), DV_ERROR_OPTION, "from 0 to 2");
    assert_fails(dv_augmentation_parse("none:flip=1", &made, &error), DV_ERROR_OPTION, "it takes none");
    assert_fails(dv_augmentation_parse("resized:least=0.5,most=0.4", &made, &error), DV_ERROR_OPTION,
                 "area from 0.5 to 0.4");
    assert_fails(dv_augmentation_parse(NULL, &made, &error), DV_ERROR_ARGUMENT, "NULL");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resized), cmocka_unit_test(test_ratios), cmocka_unit_test(test_middle),
        cmocka_unit_test(test_flips),   cmocka_unit_test(test_plain),  cmocka_unit_test(test_moved),
        cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
