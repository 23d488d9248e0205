/* The folder of a run. Whole files are replaced at once; the log grows by a line per epoch, and each line is with
 * the operating system before training goes on. */
#include <division/json.h>
#include <division/train.h>

#include "base/file.h"
#include "base/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char LOG_NAME[] = "log.jsonl";

struct dv_folder {
    char *path;
    char *log_path;
    FILE *log;
};

/* "path/name"; the caller's to free(). NULL if there is no memory. */
static char *join(const char *path, const char *name) {
    size_t bytes = strlen(path) + strlen(name) + 2;
    char *joined = malloc(bytes);
    if (joined != NULL)
        snprintf(joined, bytes, "%s/%s", path, name);
    return joined;
}

/* Makes the folder and those above it. Returns 0, or an errno. `path` is changed and restored. */
static int make_folders(char *path) {
    struct stat status;
    for (char *at = path + 1;; at++) {
        if (*at != '/' && *at != '\0')
            continue;
        char mark = *at;
        *at = '\0';
        int code = mkdir(path, 0777) == 0 || errno == EEXIST ? 0 : errno;
        *at = mark;
        if (code != 0)
            return code;
        if (mark == '\0')
            break;
    }
    if (stat(path, &status) != 0)
        return errno;
    return S_ISDIR(status.st_mode) ? 0 : ENOTDIR;
}

static dv_status open_log(dv_folder *folder, int replace, dv_error *error) {
    folder->log = fopen(folder->log_path, replace ? "we" : "wxe");
    if (folder->log != NULL)
        return DV_OK;
    if (errno == EEXIST)
        return dv_fail(error, DV_ERROR_IO, "%s holds a run already: choose another folder, or --replace it",
                       dv_file_shown(folder->path));
    return dv_fail(error, DV_ERROR_IO, "could not write %s: %s: choose another folder", dv_file_shown(folder->log_path),
                   strerror(errno));
}

static dv_status open_folder(dv_folder *folder, const char *path, int replace, dv_error *error) {
    folder->path = strdup(path);
    folder->log_path = join(path, LOG_NAME);
    if (folder->path == NULL || folder->log_path == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to open %s: free some", dv_file_shown(path));
    int code = make_folders(folder->path);
    if (code != 0)
        return dv_fail(error, DV_ERROR_IO, "could not make the folder %s: %s: choose another", dv_file_shown(path),
                       strerror(code));
    return open_log(folder, replace, error);
}

dv_status dv_folder_open(const char *path, int replace, dv_folder **folder, dv_error *error) {
    if (path == NULL || path[0] == '\0' || folder == NULL)
        return dv_fail(error, DV_ERROR_ARGUMENT, "no folder for the run: give one");
    dv_folder *made = calloc(1, sizeof *made);
    if (made == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to open %s: free some", dv_file_shown(path));
    dv_status status = open_folder(made, path, replace, error);
    if (status == DV_OK)
        *folder = made;
    else
        dv_folder_close(made);
    return status;
}

void dv_folder_close(dv_folder *folder) {
    if (folder == NULL)
        return;
    if (folder->log != NULL)
        fclose(folder->log);
    free(folder->path);
    free(folder->log_path);
    free(folder);
}

dv_status dv_folder_write(dv_folder *folder, const char *name, const char *text, dv_error *error) {
    char *path = join(folder->path, name);
    if (path == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to write %s: free some", name);
    dv_status status = dv_file_replace(path, text, strlen(text), error);
    free(path);
    return status;
}

dv_status dv_folder_log(dv_folder *folder, const dv_epoch_record *record, dv_error *error) {
    char text[DV_EPOCH_JSON_BYTES];
    DV_TRY(dv_epoch_json(record, text, error));
    errno = 0;
    if (fprintf(folder->log, "%s\n", text) >= 0 && fflush(folder->log) == 0)
        return DV_OK;
    return dv_fail(error, DV_ERROR_IO, "could not write %s after epoch %zu: %s: make room, or choose another folder",
                   dv_file_shown(folder->log_path), record->epoch, strerror(errno));
}

dv_status dv_epoch_json(const dv_epoch_record *record, char text[DV_EPOCH_JSON_BYTES], dv_error *error) {
    dv_json json;
    dv_json_to_buffer(&json, text, DV_EPOCH_JSON_BYTES);
    dv_json_object(&json, NULL);
    dv_json_unsigned(&json, "epoch", record->epoch);
    dv_json_number(&json, "train_loss", record->train_loss);
    dv_json_number(&json, "train_top1", record->train_top1);
    dv_json_number(&json, "test_loss", record->test_loss);
    dv_json_number(&json, "test_top1", record->test_top1);
    dv_json_number(&json, "images_per_second", record->images_per_second);
    dv_json_unsigned(&json, "peak_bytes", record->peak_bytes);
    dv_json_unsigned(&json, "activation_bytes", record->activation_bytes);
    dv_json_number(&json, "seconds", record->seconds);
    dv_json_number(&json, "learning_rate", record->learning_rate);
    dv_json_unsigned(&json, "steps", record->steps);
    dv_json_boolean(&json, "complete", record->complete);
    dv_json_end(&json);
    return dv_json_finish(&json, error);
}
