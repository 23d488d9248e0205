/* Normalisation: from text and as text, its bounds, and what the loader makes of bytes with it. */
#include "check.h"

#include "data/dataset.h"

#include <division/data.h>
#include <locale.h>
#include <math.h>

static void texts_are_read(void **state) {
    (void)state;
    dv_image_normalisation made;
    assert_ok(dv_image_normalisation_parse("0.4914+0.4822+0.4465/0.2023+0.1994+0.2010", &made, &error));
    assert_true(made.mean[0] == 0.4914 && made.mean[1] == 0.4822 && made.mean[2] == 0.4465);
    assert_true(made.deviation[0] == 0.2023 && made.deviation[1] == 0.1994 && made.deviation[2] == 0.2010);
    assert_ok(dv_image_normalisation_parse("usual", &made, &error));
    for (size_t channel = 0; channel < DV_DATA_CHANNELS; channel++)
        assert_true(made.mean[channel] == 0 && made.deviation[channel] == 0);
}

static void mistakes_are_explained(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"", "normalisation: \"\": must be usual, or three means and three deviations, as 0.485+0.456+0.406/0.229"},
        {"imagenet", "normalisation: \"imagenet\": must be usual, or three means"},
        {"0.5/0.25", "\"0.5/0.25\": must be usual, or three means"},
        {"0.5+0.5+0.5", "must be usual, or three means"},
        {"0.5+0.5+0.5/1+1+1+1", "must be usual, or three means"},
        {"0.5+0.5+0.5/1+1/1", "must be usual, or three means"},
        {"0.5+0.5+0.5/1+1+1/", "must be usual, or three means"},
        {"125.3+123+113.9/63+62.1+66.7", "mean: \"125.3\": must be a number from 0 to 1, where 1 is white"},
        {"0.5+-0.5+0.5/1+1+1", "mean: \"-0.5\": must be a number from 0 to 1"},
        {"0.5+0.5+0.5/1+0+1", "deviation: \"0\": must be a number from 0.001 to 1000"},
        {"0.5+0.5+/1+1+1", "mean: \"\": must be a number"},
        {"0.5+0.5+0.5/1+1+nan", "deviation: \"nan\": must be a number"},
        {"0.5+0.5+0.5/1+1+1 ", "deviation: \"1 \": must be a number"},
    };
    dv_image_normalisation made = {{1, 2, 3}, {4, 5, 6}}, before = made;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_fails(dv_image_normalisation_parse(cases[i][0], &made, &error), DV_ERROR_OPTION, cases[i][1]);
        assert_memory_equal(&made, &before, sizeof made);
    }
}

/* Numbers of any length are read again as they were, whatever the locale has for a point. */
static void texts_are_read_again(void **state) {
    (void)state;
    char text[DV_NORMALISATION_BYTES];
    dv_image_normalisation made, again;
    for (int i = 0; i < 1000; i++) {
        for (size_t channel = 0; channel < DV_DATA_CHANNELS; channel++) {
            made.mean[channel] = fabs(sin(i * 3 + (double)channel));
            made.deviation[channel] = 0.001 + exp(6 * cos(i * 5 + (double)channel));
        }
        setlocale(LC_NUMERIC, i % 2 ? "de_DE.UTF-8" : "C"); /* where it is not installed nothing changes */
        assert_ok(dv_image_normalisation_format(&made, text, &error));
        assert_ok(dv_image_normalisation_parse(text, &again, &error));
        assert_memory_equal(&made, &again, sizeof made);
    }
    setlocale(LC_NUMERIC, "C");
    assert_ok(dv_image_normalisation_parse("0.5+0.25+1/0.125+1e-3+1000", &made, &error));
    assert_ok(dv_image_normalisation_format(&made, text, &error));
    assert_string_equal(text, "0.5+0.25+1/0.125+0.001+1000");
    assert_ok(dv_image_normalisation_format(&(dv_image_normalisation){0}, text, &error));
    assert_string_equal(text, "usual");
    made.deviation[1] = 0;
    assert_fails(dv_image_normalisation_format(&made, text, &error), DV_ERROR_OPTION, "deviation: \"0\": must be");
}

/* ---- the loader ---------------------------------------------------------------------------- */

enum { SIDE = 8, ELEMENTS = SIDE * SIDE * DV_DATA_CHANNELS };

/* One image as numbers, and as the bytes that it was. */
static void show(const dv_dataset *data, dv_image_normalisation normalisation, float image[ELEMENTS],
                 uint8_t bytes[ELEMENTS]) {
    dv_loader_options options = {.type = DV_F32, .batch = 1, .normalisation = normalisation};
    dv_loader *loader;
    int32_t label;
    size_t count;
    assert_ok(dv_loader_new(data, &options, &loader, &error));
    assert_ok(dv_loader_fill(loader, 0, 0, image, &label, &count, &error));
    assert_ok(dv_loader_fill_bytes(loader, 0, 0, bytes, &label, &count, &error));
    dv_loader_free(loader);
}

static void loaders_use_it(void **state) {
    (void)state;
    const dv_image_normalisation given = {{0.4914, 0.4822, 0.4465}, {0.2023, 0.1994, 0.2010}};
    float image[ELEMENTS];
    uint8_t bytes[ELEMENTS];
    dv_dataset *data;
    assert_ok(dv_dataset_open("synthetic:side=8,train=2", &data, &error));
    show(data, given, image, bytes);
    for (size_t i = 0; i < ELEMENTS; i++) {
        double expected = (bytes[i] / 255.0 - given.mean[i % 3]) / given.deviation[i % 3];
        assert_true(fabs(image[i] - expected) < 1e-5);
    }
    dv_loader_options wrong = {.batch = 1, .normalisation = {.deviation = {1, 1, -1}}};
    dv_loader *loader;
    assert_fails(dv_loader_new(data, &wrong, &loader, &error), DV_ERROR_OPTION, "deviation: \"-1\": must be");
    dv_dataset_close(data);
}

/* Where nothing is asked for, numbers are to the bit those of the data's own mean and deviation in bytes, as f32. */
static void usual_is_the_data_s_own(void **state) {
    (void)state;
    static const struct {
        dv_image_normalisation own;
        float mean[3], deviation[3];
    } cases[] = {
        {{{0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616}},
         {255 * 0.4914f, 255 * 0.4822f, 255 * 0.4465f},
         {255 * 0.2470f, 255 * 0.2435f, 255 * 0.2616f}},
        {{{0.5071, 0.4865, 0.4409}, {0.2673, 0.2564, 0.2762}},
         {255 * 0.5071f, 255 * 0.4865f, 255 * 0.4409f},
         {255 * 0.2673f, 255 * 0.2564f, 255 * 0.2762f}},
        {DV_PHOTOGRAPHS, {255 * 0.485f, 255 * 0.456f, 255 * 0.406f}, {255 * 0.229f, 255 * 0.224f, 255 * 0.225f}},
        {{{0.5, 0.5, 0.5}, {50. / 255, 50. / 255, 50. / 255}}, {127.5f, 127.5f, 127.5f}, {50, 50, 50}},
    };
    float image[ELEMENTS];
    uint8_t bytes[ELEMENTS];
    dv_dataset *data;
    assert_ok(dv_dataset_open("synthetic:side=8,train=2", &data, &error));
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        data->normalisation = cases[k].own;
        show(data, (dv_image_normalisation){0}, image, bytes);
        for (size_t i = 0; i < ELEMENTS; i++)
            assert_true(image[i] == ((float)bytes[i] - cases[k].mean[i % 3]) * (1 / cases[k].deviation[i % 3]));
        dv_image_normalisation told = dv_loader_normalisation(data, &(dv_loader_options){.batch = 1});
        assert_memory_equal(&told, &cases[k].own, sizeof told);
    }
    dv_dataset_close(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_read),          cmocka_unit_test(mistakes_are_explained),
        cmocka_unit_test(texts_are_read_again),    cmocka_unit_test(loaders_use_it),
        cmocka_unit_test(usual_is_the_data_s_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
