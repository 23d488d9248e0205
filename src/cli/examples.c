/* Images to measure with. */
#include "examples.h"

#include "cli.h"

#include <division/synthetic.h>

#include <stdlib.h>
#include <string.h>

/* From [0, 16) to [-1, 1), in f32 or, by dropping bits, in bf16. */
static void convert(const float *from, size_t count, dv_type type, char *to) {
    for (size_t i = 0; i < count; i++) {
        float value = from[i] / 8 - 1;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        if (type == DV_F32)
            memcpy(to + i * sizeof bits, &bits, sizeof bits);
        else
            ((uint16_t *)(void *)to)[i] = (uint16_t)(bits >> 16);
    }
}

static int no_memory(void) {
    return cli_fail("no memory for images: use smaller ones");
}

static int make_example(const dv_map *map, uint64_t seed, float *values, char **example) {
    dv_error error;
    *example = malloc(dv_map_bytes(map));
    if (*example == NULL)
        return no_memory();
    if (dv_synthetic_map(map, seed, values, &error) != DV_OK)
        return cli_report(&error);
    convert(values, dv_map_elements(map), map->type, *example);
    return CLI_SUCCESS;
}

int cli_examples_make(dv_run *run, cli_examples *examples) {
    dv_map map = *dv_run_input_map(run);
    map.images = 1;
    float *values = malloc(dv_map_elements(&map) * sizeof *values);
    if (values == NULL)
        return no_memory();
    int code = CLI_SUCCESS;
    for (int i = 0; i < CLI_EXAMPLES && code == CLI_SUCCESS; i++)
        code = make_example(&map, (uint64_t)i + 1, values, &examples->at[i]);
    free(values);
    return code;
}

void cli_examples_free(cli_examples *examples) {
    for (int i = 0; i < CLI_EXAMPLES; i++)
        free(examples->at[i]);
    *examples = (cli_examples){{NULL}};
}

void cli_examples_fill(const cli_examples *examples, dv_run *run) {
    dv_map one = *dv_run_input_map(run);
    size_t images = one.images, classes = dv_run_logits_map(run)->channels;
    one.images = 1;
    size_t bytes = dv_map_bytes(&one);
    char *input = dv_run_input(run);
    int32_t *labels = dv_run_labels(run);
    for (size_t i = 0; i < images; i++) {
        memcpy(input + i * bytes, examples->at[i % CLI_EXAMPLES], bytes);
        labels[i] = (int32_t)(i % CLI_EXAMPLES % classes);
    }
}
