/* The folder of a run: what one training wrote.
 *
 *     config.json        the options, resolved
 *     passes.txt         what computes its convolutions (division/tune.h), unless nothing was measured
 *     log.jsonl          a line per epoch
 *     last.safetensors   a checkpoint to go on from
 *     best.safetensors   the weights of the best test
 *     summary.json       the last figures
 *
 * Files but the log are replaced at once or not at all. The log grows by whole lines; whoever goes on after a crash
 * drops what is of epochs that are done again.
 *
 * - Threads: A folder is one thread's at a time.
 * - Fork: A child must not use it. It stays locked until parent and child have closed it, ended, or started another
 *   program.
 * - Freeing: Folder and run can be freed in any order. */
#ifndef DIVISION_FOLDER_H
#define DIVISION_FOLDER_H

#include <division/checkpoint.h>
#include <division/export.h>
#include <division/status.h>
#include <division/train.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DV_FOLDER_CONFIG "config.json"
#define DV_FOLDER_PASSES "passes.txt"
#define DV_FOLDER_LOG "log.jsonl"
#define DV_FOLDER_LAST "last.safetensors"
#define DV_FOLDER_BEST "best.safetensors"
#define DV_FOLDER_SUMMARY "summary.json"

typedef struct dv_folder dv_folder;

typedef enum dv_folder_mode {
    DV_FOLDER_NEW,     /* there must be no run in it yet: otherwise DV_ERROR_IO */
    DV_FOLDER_REPLACE, /* a run in it is removed when the new one has something to show: a checkpoint or a line of the
                        * log. Until then its config.json waits in memory. */
    DV_FOLDER_GO_ON    /* a run in it stays; the first line of the log replaces those of its epoch and later ones */
} dv_folder_mode;

/* Makes the folder, and those above it, and begins or continues the log. As long as it is open no other training can
 * open it. */
DV_API dv_status dv_folder_open(const char *path, dv_folder_mode mode, dv_folder **folder, dv_error *error);
DV_API void dv_folder_close(dv_folder *folder);

/* Replaces a file of the folder by `text`. */
DV_API dv_status dv_folder_write(dv_folder *folder, const char *name, const char *text, dv_error *error);

/* Replaces a checkpoint of the folder. */
DV_API dv_status dv_folder_save(dv_folder *folder, const char *name, const dv_checkpoint_content *content,
                                dv_error *error);

/* Adds a line to the log; it is handed to the system before this returns. */
DV_API dv_status dv_folder_log(dv_folder *folder, const dv_epoch_record *record, dv_error *error);

/* The same line, without its end, into a buffer. */
enum { DV_EPOCH_JSON_BYTES = 1024 };
DV_API dv_status dv_epoch_json(const dv_epoch_record *record, char text[DV_EPOCH_JSON_BYTES], dv_error *error);

#ifdef __cplusplus
}
#endif

#endif
