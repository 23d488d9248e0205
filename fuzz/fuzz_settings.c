/* Fuzzes the texts that name a data set, a normalisation, a schedule or a method. What is accepted must be within its
 * bounds and work; what is not must leave the target alone and say why in one line. */
#include "base/option_text.h"
#include "graph/method.h"
#include "require.h"

#include <division/train.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_BYTES = 512 };

static void try_schedule(const char *text) {
    dv_schedule schedule = dv_schedule_default(), before = schedule;
    dv_error error = {0};
    if (dv_schedule_parse(text, &schedule, &error) != DV_OK) {
        REQUIRE(error.text[0] != '\0' && memcmp(&schedule, &before, sizeof schedule) == 0);
        return;
    }
    REQUIRE(dv_schedule_check(&schedule, NULL) == DV_OK);
    for (uint64_t step = 0; step < 1000; step += 7) {
        double rate = dv_schedule_rate(&schedule, step, 10, 100);
        REQUIRE(rate >= 0 && rate <= schedule.rate);
    }
}

/* What is read is within bounds, and is read again from its own text. */
static void try_normalisation(const char *text) {
    dv_image_normalisation made = {{0}, {0}}, again;
    dv_error error = {0};
    char written[DV_NORMALISATION_BYTES];
    if (dv_image_normalisation_parse(text, &made, &error) != DV_OK) {
        REQUIRE(error.text[0] != '\0' && made.deviation[0] == 0);
        return;
    }
    REQUIRE(dv_image_normalisation_format(&made, written, &error) == DV_OK);
    REQUIRE(dv_image_normalisation_parse(written, &again, &error) == DV_OK);
    REQUIRE(memcmp(&made, &again, sizeof made) == 0);
}

static void try_method(const char *text) {
    dv_method method;
    dv_error error = {0};
    if (dv_method_parse(text, &method, &error) != DV_OK) {
        REQUIRE(error.text[0] != '\0');
        return;
    }
    REQUIRE(strncmp(text, method.kind->name, strlen(method.kind->name)) == 0);
    REQUIRE((method.kind->codec != NULL) == (method.codec.kind != NULL));
    for (size_t i = 0; i < method.kind->option_count; i++)
        REQUIRE(dv_option_holds(&method.kind->options[i], method.options));
}

static void try_data(const char *text) {
    dv_dataset *dataset = NULL;
    dv_error error = {0};
    if (dv_dataset_open(text, &dataset, &error) != DV_OK) {
        REQUIRE(error.text[0] != '\0' && dataset == NULL);
        return;
    }
    dv_dataset_shape shape = dv_dataset_describe(dataset);
    REQUIRE(shape.images[DV_TRAIN] > 0 && shape.images[DV_TEST] > 0 && shape.side > 0);
    uint8_t *image = malloc(shape.side * shape.side * DV_DATA_CHANNELS);
    int32_t label = -1;
    REQUIRE(image != NULL);
    REQUIRE(dv_dataset_load(dataset, DV_TEST, shape.images[DV_TEST] - 1, image, &label, &error) == DV_OK);
    REQUIRE(label >= 0 && (size_t)label < shape.classes);
    free(image);
    dv_dataset_close(dataset);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char text[TEXT_BYTES + 1] = "";
    memcpy(text, data, size < TEXT_BYTES ? size : TEXT_BYTES);
    try_schedule(text);
    try_normalisation(text);
    try_method(text);
    if (strncmp(text, "synthetic", strlen("synthetic")) == 0 || strchr(text, '/') == NULL) /* no files */
        try_data(text);
    return 0;
}
