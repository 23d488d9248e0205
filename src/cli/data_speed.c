/* division data speed: how fast batches can be made, next to the decoder alone. */
#include "cli.h"
#include "options.h"

#include <division/data.h>
#include <division/tools/json.h>

#include <stdio.h>

static const char *const splits[] = {"train", "test", NULL};

typedef struct settings {
    const char *data, *augment;
    int split, batch, side, workers, json;
    double seconds;
} settings;

static dv_status measure(const settings *chosen, dv_loader_speed *speed, dv_error *error) {
    dv_dataset *data;
    dv_loader_options options = {.split = (dv_split)chosen->split,
                                 .batch = (size_t)chosen->batch,
                                 .seed = 1,
                                 .shuffle = 1,
                                 .augment = chosen->split == DV_TRAIN,
                                 .side = (size_t)chosen->side,
                                 .workers = (size_t)chosen->workers};
    dv_status status = dv_augmentation_parse(chosen->augment, &options.augmentation, error);
    if (status == DV_OK)
        status = dv_dataset_open(chosen->data, &data, error);
    if (status != DV_OK)
        return status;
    status = dv_loader_measure(data, &options, chosen->seconds, speed, error);
    dv_dataset_close(data);
    return status;
}

static void print_json(const settings *chosen, const dv_loader_speed *speed) {
    dv_json json;
    dv_json_to_file(&json, stdout);
    dv_json_object(&json, NULL);
    dv_json_text(&json, "data", chosen->data);
    dv_json_text(&json, "split", splits[chosen->split]);
    dv_json_integer(&json, "batch", chosen->batch);
    dv_json_integer(&json, "workers", chosen->workers);
    dv_json_number(&json, "loader_images_per_second", speed->loader);
    dv_json_number(&json, "decoder_images_per_second", speed->decoder);
    dv_json_number(&json, "ratio", speed->ratio);
    dv_json_end(&json);
    dv_json_finish(&json, NULL); /* cli_finish tells of failed output */
}

static void print_table(const dv_loader_speed *speed) {
    cli_line("loader", "%.0f images/s", speed->loader);
    if (speed->decoder != speed->decoder)
        return;
    cli_line("decoder alone", "%.0f images/s", speed->decoder);
    cli_line("ratio", "%.2f", speed->ratio);
}

int cli_data_speed(int argc, char **argv) {
    settings chosen = {.augment = "usual", .batch = 32, .workers = 2, .seconds = 10};
    const dv_option options[] = {
        {"split", NULL, "which images; those to train are varied", CLI_WORD(&chosen.split, splits)},
        {"batch", "N", "images per batch", CLI_INTEGER(&chosen.batch, 1, 1 << 20)},
        {"side", "N", "of the images; 0 for the data's", CLI_INTEGER(&chosen.side, 0, 1024)},
        {"augment", "HOW", "how images are varied: see 'division help data show'", CLI_TEXT(&chosen.augment)},
        {"workers", "N", "threads; 0 for OpenMP's, when a batch is asked for", CLI_INTEGER(&chosen.workers, 0, 256)},
        {"seconds", "S", "to measure", CLI_NUMBER(&chosen.seconds, 0.1, 3600)},
        {"json", NULL, "print one JSON object", CLI_FLAG(&chosen.json)},
        CLI_OPTIONS_END,
    };
    const cli_usage usage = {
        .command = "data speed",
        .operands = "DATA",
        .summary =
            "Measures how fast batches are made: read, decoded, varied, normalised. Next to it, how fast as many\n"
            "threads decode whole images and do nothing else, in turns.\n",
        .options = options,
        .minimum_operands = 1,
        .maximum_operands = 1};
    cli_operands operands;
    dv_loader_speed speed;
    dv_error error;
    int code = cli_parse(&usage, argc, argv, &operands);
    if (code != CLI_CONTINUE)
        return code;
    chosen.data = operands.at[0];
    if (measure(&chosen, &speed, &error) != DV_OK)
        return cli_report(&error);
    if (chosen.json)
        print_json(&chosen, &speed);
    else
        print_table(&speed);
    return cli_finish();
}
