/* division data lmdb: an image folder to LMDB files, and verifying them. */
#include "cli.h"
#include "live.h"
#include "options.h"

#include <division/tools/lmdb.h>

#include <stdio.h>

static const char *const split_names[DV_SPLIT_COUNT] = {[DV_TRAIN] = "train", [DV_TEST] = "val"};

static void show_progress(void *context, const dv_lmdb_progress *progress) {
    cli_live *line = context;
    char left[CLI_LEFT_TEXT];
    if (!cli_live_due(line))
        return;
    double speed = (double)(progress->all_done - progress->kept) / (progress->seconds > 0 ? progress->seconds : 1);
    cli_live_draw(line, "%s %s  %zu/%zu  %.0f images/s%s", progress->verifying ? "verifying" : "writing",
                  split_names[progress->split], progress->done, progress->images, speed,
                  cli_left_text(progress->seconds_left, left));
}

static void show_corrupt(void *context, const char *text) {
    cli_live_wipe(context);
    fflush(stdout);
    cli_fail("%s: it is kept as it is", text);
}

static void print_result(const dv_lmdb_result *result, int verified_only) {
    char text[CLI_BYTES_TEXT];
    for (dv_split split = 0; split < DV_SPLIT_COUNT; split++)
        printf("%s.lmdb  %zu images  %s\n", split_names[split], result->images[split],
               cli_bytes_text((double)result->bytes[split], text));
    if (result->kept > 0)
        printf("%zu images were there already\n", result->kept);
    if (result->resized > 0)
        printf("%zu images were resized\n", result->resized);
    if (result->corrupt > 0)
        printf("%zu images are corrupt\n", result->corrupt);
    printf(verified_only ? "all records are as they were written\n" : "written and verified\n");
}

static int convert_or_verify(const char *source, const char *destination, const dv_lmdb_options *options, int quiet) {
    cli_live line = cli_live_new(stdout, quiet);
    dv_lmdb_callbacks callbacks = {show_progress, show_corrupt, &line, &cli_interrupted};
    dv_lmdb_result result;
    dv_error error;
    cli_catch_interrupts("stopping at the next image; a second Ctrl-C ends at once");
    dv_status status = source != NULL ? dv_lmdb_convert(source, destination, options, &callbacks, &result, &error)
                                      : dv_lmdb_verify(destination, &callbacks, &result, &error);
    cli_live_wipe(&line);
    if (status != DV_OK)
        return cli_report(&error);
    if (!result.complete) {
        cli_fail("interrupted: call it again: it goes on from there");
        return CLI_INTERRUPTED;
    }
    if (!quiet)
        print_result(&result, source == NULL);
    return cli_finish();
}

int cli_data_lmdb(int argc, char **argv) {
    dv_lmdb_options chosen = dv_lmdb_options_default();
    int resize = 0, quality = (int)chosen.quality, workers = 0, verify = 0, quiet = 0;
    const dv_option options[] = {
        {"resize", "N", "make the shorter side of larger images N; 0 keeps their bytes", CLI_INTEGER(&resize, 0, 4096)},
        {"quality", "Q", "of the JPEG of what is resized", CLI_INTEGER(&quality, 50, 100)},
        {"workers", "N", "threads; 0 for as many as OpenMP uses", CLI_INTEGER(&workers, 0, 256)},
        {"verify", NULL, "only look at every record of the files in DEST", CLI_FLAG(&verify)},
        {"quiet", NULL, "print nothing but errors", CLI_FLAG(&quiet)},
        CLI_OPTIONS_END,
    };
    const cli_usage usage = {
        .command = "data lmdb",
        .operands = "[SRC] DEST",
        .summary =
            "Makes DEST/train.lmdb and DEST/val.lmdb of the images in SRC/train/CLASS/ and SRC/val/CLASS/, in a\n"
            "random but fixed order, and verifies them. If it was interrupted, in whatever way, call it again\n"
            "and it goes on. With --verify it takes DEST alone. Train with --data lmdb:DEST.\n",
        .options = options,
        .minimum_operands = 1,
        .maximum_operands = 2};
    cli_operands operands;
    int code = cli_parse(&usage, argc, argv, &operands);
    if (code != CLI_CONTINUE)
        return code;
    if (operands.count != (verify ? 1 : 2))
        return cli_wrong_call(verify ? "data lmdb: --verify takes the folder of the files alone"
                                     : "data lmdb: give the folder of images and one for the files: SRC DEST");
    chosen.resize = (size_t)resize;
    chosen.quality = (size_t)quality;
    chosen.workers = (size_t)workers;
    return convert_or_verify(verify ? NULL : operands.at[0], operands.at[operands.count - 1], &chosen, quiet);
}
