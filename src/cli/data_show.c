/* division data show: what a data set has, and a sheet of images as training sees them. */
#include "cli.h"
#include "options.h"
#include "sheet.h"

#include <division/data.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEW_CLASSES = 20, TILE = 96 };

static const char *const splits[] = {"train", "test", NULL};

typedef struct settings {
    const char *data, *png, *augment;
    dv_augmentation augmentation;
    dv_dataset_options held;
    int split, images, columns, side, all_classes;
    uint64_t seed, epoch;
} settings;

/* ---- counting ------------------------------------------------------------------------------ */

static dv_status count_split(const dv_dataset *data, dv_split split, size_t *counts, dv_error *error) {
    size_t images = dv_dataset_describe(data).images[split];
    for (size_t i = 0; i < images; i++) {
        int32_t label;
        dv_status status = dv_dataset_label(data, split, i, &label, error);
        if (status != DV_OK)
            return status;
        counts[label]++;
    }
    return DV_OK;
}

static void print_range(const char *split, const size_t *counts, size_t classes) {
    size_t least = counts[0], most = counts[0];
    for (size_t i = 1; i < classes; i++) {
        least = counts[i] < least ? counts[i] : least;
        most = counts[i] > most ? counts[i] : most;
    }
    printf("%-6s %zu to %zu images a class\n", split, least, most);
}

static void print_classes(const settings *chosen, const dv_dataset *data, const size_t *train, const size_t *test) {
    size_t classes = dv_dataset_describe(data).classes;
    char text[CLI_CLASS_TEXT];
    if (classes > FEW_CLASSES && !chosen->all_classes) {
        print_range("train", train, classes);
        print_range("test", test, classes);
        return;
    }
    printf("%6s  %8s  %8s  %s\n", "label", "train", "test", "class");
    for (size_t i = 0; i < classes; i++)
        printf("%6zu  %8zu  %8zu  %s\n", i, train[i], test[i], cli_class_text(dv_dataset_class_name(data, i), i, text));
}

/* What training says of the same data when it starts. */
static void print_notes(const dv_dataset *data) {
    dv_dataset_shape shape = dv_dataset_describe(data);
    if (shape.held_out > 0)
        printf("held out to test with: %zu of %zu images (--hold-out)\n", shape.held_out,
               shape.held_out + shape.images[DV_TRAIN]);
    if (dv_dataset_unread(data) != NULL)
        printf("files that are no images to this program were left out: %s\n", dv_dataset_unread(data));
}

static dv_status count(const settings *chosen, const dv_dataset *data, dv_error *error) {
    dv_dataset_shape shape = dv_dataset_describe(data);
    size_t *counts = calloc(2 * shape.classes, sizeof *counts);
    if (counts == NULL)
        return cli_error(error, DV_ERROR_MEMORY, "no memory to count classes: free some");
    dv_status status = count_split(data, DV_TRAIN, counts, error);
    if (status == DV_OK)
        status = count_split(data, DV_TEST, counts + shape.classes, error);
    size_t side = chosen->side > 0 ? (size_t)chosen->side : shape.side;
    if (status == DV_OK) {
        printf("%zu images to train, %zu to test, %zu classes, shown as %zu x %zu\n", shape.images[DV_TRAIN],
               shape.images[DV_TEST], shape.classes, side, side);
        print_notes(data);
        print_classes(chosen, data, counts, counts + shape.classes);
    }
    free(counts);
    return status;
}

/* ---- the sheet ----------------------------------------------------------------------------- */

typedef struct shown {
    dv_loader *loader;
    size_t images, side;
    size_t found;    /* images that there are */
    uint8_t *pixels; /* [images][side][side][3] */
    int32_t *labels;
} shown;

static void warn(void *context, const char *text) {
    (void)context;
    cli_fail("%s", text);
}

static dv_status load(const settings *chosen, const dv_dataset *data, shown *to, dv_error *error) {
    dv_loader_options options = {.split = (dv_split)chosen->split,
                                 .batch = to->images,
                                 .seed = chosen->seed,
                                 .shuffle = 1,
                                 .augment = 1,
                                 .augmentation = chosen->augmentation,
                                 .side = (size_t)chosen->side,
                                 .corrupt = warn};
    dv_status status = dv_loader_new(data, &options, &to->loader, error);
    if (status != DV_OK)
        return status;
    to->pixels = malloc(to->images * to->side * to->side * 3);
    to->labels = calloc(to->images, sizeof *to->labels);
    if (to->pixels == NULL || to->labels == NULL)
        return cli_error(error, DV_ERROR_MEMORY, "no memory for the images: show fewer");
    return dv_loader_fill_bytes(to->loader, chosen->epoch, 0, to->pixels, to->labels, &to->found, error);
}

static dv_status paint(const settings *chosen, const dv_dataset *data, const shown *from, dv_error *error) {
    const sheet_layout layout = {
        .images = from->images, .columns = (size_t)chosen->columns, .side = from->side, .tile = TILE, .text_zoom = 1};
    sheet made;
    char text[CLI_CLASS_TEXT];
    dv_status status = sheet_new(&layout, &made, error);
    if (status != DV_OK)
        return status;
    for (size_t i = 0; i < from->found; i++) {
        size_t label = (size_t)from->labels[i];
        sheet_card card = {.pixels = from->pixels + i * from->side * from->side * 3,
                           .caption = cli_class_text(dv_dataset_class_name(data, label), label, text)};
        sheet_draw(&made, i, &card);
    }
    status = dv_picture_write(&made.picture, chosen->png, error);
    sheet_free(&made);
    return status;
}

static dv_status make_sheet(const settings *chosen, const dv_dataset *data, dv_error *error) {
    shown made = {.images = (size_t)chosen->images};
    made.side = chosen->side > 0 ? (size_t)chosen->side : dv_dataset_describe(data).side;
    dv_status status = load(chosen, data, &made, error);
    if (status == DV_OK)
        status = paint(chosen, data, &made, error);
    dv_loader_free(made.loader);
    free(made.pixels);
    free(made.labels);
    return status;
}

/* ---- the command --------------------------------------------------------------------------- */

static int show(const settings *chosen) {
    dv_dataset *data = NULL;
    dv_error error;
    dv_status status = dv_dataset_open_with(chosen->data, &chosen->held, &data, &error);
    if (status == DV_OK)
        status = count(chosen, data, &error);
    if (status == DV_OK && chosen->png != NULL)
        status = make_sheet(chosen, data, &error);
    dv_dataset_close(data);
    return status == DV_OK ? cli_finish() : cli_report(&error);
}

int cli_data_show(int argc, char **argv) {
    settings chosen = {.augment = "usual", .held = dv_dataset_options_default(), .images = 24, .columns = 6, .seed = 1};
    static const cli_section sections[] = {{"Data sets", dv_dataset_usage_at, dv_dataset_help_at},
                                           {"Augmentations", dv_augmentation_usage_at, dv_augmentation_help_at},
                                           {0}};
    char details[2048];
    const dv_option options[] = {
        {"png", "FILE", "draw a sheet of images there", CLI_TEXT(&chosen.png)},
        {"split", NULL, "of the sheet", CLI_WORD(&chosen.split, splits)},
        {"images", "N", "on the sheet", CLI_INTEGER(&chosen.images, 1, 10000)},
        {"columns", "N", "of the sheet", CLI_INTEGER(&chosen.columns, 1, 100)},
        {"augment", "HOW", "how images are varied", CLI_TEXT(&chosen.augment)},
        {"side", "N", "of the images; 0 for the data's", CLI_INTEGER(&chosen.side, 0, 1024)},
        {"seed", "N", "of order and variation", CLI_UNSIGNED(&chosen.seed)},
        {"epoch", "N", "of order and variation", CLI_UNSIGNED(&chosen.epoch)},
        {"hold-out", "SHARE", "of each class, to test with, where a folder has no val/",
         CLI_NUMBER(&chosen.held.hold_out, 0, 0.9)},
        {"hold-out-seed", "N", "which images those are", CLI_UNSIGNED(&chosen.held.seed)},
        {"classes", NULL, "print all classes, however many", CLI_FLAG(&chosen.all_classes)},
        CLI_OPTIONS_END,
    };
    const cli_usage usage = {
        .command = "data show",
        .operands = "DATA",
        .summary = "Prints how many images of which class a data set has, and draws some as training sees them.\n",
        .details = details,
        .options = options,
        .minimum_operands = 1,
        .maximum_operands = 1};
    cli_operands operands;
    cli_describe(sections, details, sizeof details);
    int code = cli_parse(&usage, argc, argv, &operands);
    if (code != CLI_CONTINUE)
        return code;
    chosen.data = operands.at[0];
    dv_error error;
    if (dv_augmentation_parse(chosen.augment, &chosen.augmentation, &error) != DV_OK)
        return cli_report(&error);
    return show(&chosen);
}
