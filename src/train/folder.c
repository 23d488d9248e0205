/* The folder of a run. Whole files are replaced at once; the log grows by a line per epoch, and each line is on the
 * disk before training goes on. */
#include <division/folder.h>
#include <division/tools/json.h>

#include "base/file.h"
#include "base/json_read.h"
#include "base/status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGEST_LOG = 1 << 28 };

static const char *const files[] = {DV_FOLDER_CONFIG, DV_FOLDER_PASSES, DV_FOLDER_LOG,
                                    DV_FOLDER_LAST,   DV_FOLDER_BEST,   DV_FOLDER_SUMMARY};

enum { FILE_COUNT = sizeof files / sizeof *files };

struct dv_folder {
    char *path;
    char *log_path;
    int lock;       /* a descriptor of the folder, locked */
    FILE *log;      /* NULL until the first line of a run that goes on */
    bool replacing; /* the run before is still there */
    char *config;   /* the options of the new one meanwhile, or NULL */
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

/* ---- opening ------------------------------------------------------------------------------- */

/* Keeps other trainings out. A file system without locks is no reason to fail. */
static dv_status lock(dv_folder *folder, dv_error *error) {
    folder->lock = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->lock >= 0 && flock(folder->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return dv_fail(error, DV_ERROR_IO, "another training is writing to %s: wait for it, or choose another folder",
                       dv_file_shown(folder->path));
    return DV_OK;
}

/* True for what a training that was killed may have left beside file `name`: "name.123-0.tmp". */
static bool is_left_over(const char *entry, const char *name) {
    size_t length = strlen(name), whole = strlen(entry);
    return whole > length + 5 && strncmp(entry, name, length) == 0 && entry[length] == '.' &&
           strcmp(entry + whole - 4, ".tmp") == 0;
}

/* Removes half-written files of a training that was killed. What can't be removed stays. */
static void remove_left_overs(const dv_folder *folder) {
    DIR *list = opendir(folder->path);
    for (struct dirent *entry; list != NULL && (entry = readdir(list)) != NULL;)
        for (size_t i = 0; i < FILE_COUNT; i++)
            if (is_left_over(entry->d_name, files[i]))
                unlinkat(folder->lock, entry->d_name, 0);
    if (list != NULL)
        closedir(list);
}

/* True if there is any file of a training. */
static bool holds_training(const dv_folder *folder) {
    struct stat status;
    for (size_t i = 0; i < FILE_COUNT; i++)
        if (fstatat(folder->lock, files[i], &status, 0) == 0)
            return true;
    return false;
}

static dv_status fail_log(const dv_folder *folder, int code, dv_error *error) {
    return dv_fail(error, DV_ERROR_IO, "could not write %s: %s: choose another folder", dv_file_shown(folder->log_path),
                   strerror(code));
}

static dv_status open_log(dv_folder *folder, dv_folder_mode mode, dv_error *error) {
    if (mode == DV_FOLDER_GO_ON)
        return DV_OK;
    if (mode == DV_FOLDER_NEW && holds_training(folder))
        return dv_fail(error, DV_ERROR_IO,
                       "%s holds a run already: --resume it, --replace it, or choose another folder",
                       dv_file_shown(folder->path));
    folder->replacing = holds_training(folder);
    folder->log = fopen(folder->log_path, folder->replacing ? "ae" : "we");
    return folder->log != NULL ? DV_OK : fail_log(folder, errno, error);
}

static dv_status open_folder(dv_folder *folder, const char *path, dv_folder_mode mode, dv_error *error) {
    folder->path = strdup(path);
    folder->log_path = join(path, DV_FOLDER_LOG);
    if (folder->path == NULL || folder->log_path == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to open %s: free some", dv_file_shown(path));
    int code = make_folders(folder->path);
    if (code != 0)
        return dv_fail(error, DV_ERROR_IO, "could not make the folder %s: %s: choose another", dv_file_shown(path),
                       strerror(code));
    DV_TRY(lock(folder, error));
    if (mode != DV_FOLDER_NEW)
        remove_left_overs(folder);
    return open_log(folder, mode, error);
}

dv_status dv_folder_open(const char *path, dv_folder_mode mode, dv_folder **folder, dv_error *error) {
    if (path == NULL || path[0] == '\0' || folder == NULL)
        return dv_fail(error, DV_ERROR_ARGUMENT, "no folder for the run: give one");
    dv_folder *made = calloc(1, sizeof *made);
    if (made == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to open %s: free some", dv_file_shown(path));
    made->lock = -1;
    dv_status status = open_folder(made, path, mode, error);
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
    if (folder->lock >= 0)
        close(folder->lock);
    free(folder->path);
    free(folder->log_path);
    free(folder->config);
    free(folder);
}

/* ---- files --------------------------------------------------------------------------------- */

static dv_status write_text(const dv_folder *folder, const char *name, const char *text, dv_error *error) {
    char *path = join(folder->path, name);
    if (path == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to write %s: free some", name);
    dv_status status = dv_file_replace(path, text, strlen(text), error);
    free(path);
    return status;
}

/* The new run has something to show: `written`, which is in the folder already, or a line of the log that comes next
 * (NULL). What else is there of the run before goes. */
static dv_status replace_training(dv_folder *folder, const char *written, dv_error *error) {
    if (!folder->replacing)
        return DV_OK;
    folder->replacing = false;
    for (size_t i = 0; i < FILE_COUNT; i++)
        if (strcmp(files[i], DV_FOLDER_LOG) != 0 && (written == NULL || strcmp(files[i], written) != 0))
            unlinkat(folder->lock, files[i], 0);
    folder->log = freopen(folder->log_path, "we", folder->log);
    if (folder->log == NULL)
        return fail_log(folder, errno, error);
    return folder->config != NULL ? write_text(folder, DV_FOLDER_CONFIG, folder->config, error) : DV_OK;
}

/* Options are nothing to show yet: while there is a run before, they wait. */
static dv_status hold_config(dv_folder *folder, const char *text, dv_error *error) {
    free(folder->config);
    folder->config = strdup(text);
    return folder->config != NULL ? DV_OK : dv_fail(error, DV_ERROR_MEMORY, "no memory to keep the options: free some");
}

dv_status dv_folder_write(dv_folder *folder, const char *name, const char *text, dv_error *error) {
    DV_NEED(folder);
    DV_NEED(name);
    DV_NEED(text);
    if (folder->replacing && strcmp(name, DV_FOLDER_CONFIG) == 0)
        return hold_config(folder, text, error);
    DV_TRY(write_text(folder, name, text, error));
    return replace_training(folder, name, error);
}

dv_status dv_folder_save(dv_folder *folder, const char *name, const dv_checkpoint_content *content, dv_error *error) {
    DV_NEED(folder);
    DV_NEED(name);
    char *path = join(folder->path, name);
    if (path == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to write %s: free some", name);
    dv_status status = dv_checkpoint_write(path, content, error);
    free(path);
    return status == DV_OK ? replace_training(folder, name, error) : status;
}

/* ---- the log ------------------------------------------------------------------------------- */

/* The epoch of a line of the log, or 0 if it is none. */
static uint64_t epoch_of(const char *line, size_t bytes) {
    dv_json_cursor json = dv_json_cursor_at(line, bytes);
    uint64_t epoch = 0;
    char key[64];
    for (dv_json_enter(&json, '{'); dv_json_next(&json, '}');) {
        dv_json_read_key(&json, key, sizeof key);
        if (strcmp(key, "epoch") == 0)
            dv_json_read_unsigned(&json, &epoch);
        else
            dv_json_skip(&json);
    }
    return dv_json_ended(&json) ? epoch : 0;
}

/* Keeps the whole lines of epochs before `epoch`, in place. Returns how many bytes they are. */
static size_t keep_lines(char *text, size_t bytes, uint64_t epoch) {
    size_t kept = 0;
    for (char *at = text, *end = text + bytes, *stop; (stop = memchr(at, '\n', (size_t)(end - at))) != NULL;) {
        size_t length = (size_t)(stop + 1 - at);
        uint64_t found = epoch_of(at, length);
        if (found > 0 && found < epoch) {
            memmove(text + kept, at, length);
            kept += length;
        }
        at = stop + 1;
        if (at == end)
            break;
    }
    return kept;
}

/* Drops the lines of an epoch that is done again and of later ones, and goes on behind what is left. */
static dv_status continue_log(dv_folder *folder, uint64_t epoch, dv_error *error) {
    void *text = NULL;
    size_t bytes = 0;
    struct stat status;
    if (stat(folder->log_path, &status) == 0 && S_ISREG(status.st_mode)) {
        DV_TRY(dv_file_read(folder->log_path, LARGEST_LOG, &text, &bytes, error));
        dv_status replaced = dv_file_replace(folder->log_path, text, keep_lines(text, bytes, epoch), error);
        free(text);
        DV_TRY(replaced);
    }
    folder->log = fopen(folder->log_path, "ae");
    return folder->log != NULL ? DV_OK : fail_log(folder, errno, error);
}

/* To the disk. What is no file, such as a pipe, can't be synced, and need not. */
static bool sync_log(FILE *log) {
    return fflush(log) == 0 && (fsync(fileno(log)) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS);
}

dv_status dv_folder_log(dv_folder *folder, const dv_epoch_record *record, dv_error *error) {
    char text[DV_EPOCH_JSON_BYTES];
    DV_NEED(folder);
    DV_TRY(dv_epoch_json(record, text, error));
    DV_TRY(replace_training(folder, NULL, error));
    if (folder->log == NULL)
        DV_TRY(continue_log(folder, record->epoch, error));
    errno = 0;
    if (fprintf(folder->log, "%s\n", text) >= 0 && sync_log(folder->log))
        return DV_OK;
    return dv_fail(error, DV_ERROR_IO, "could not write %s after epoch %zu: %s: make room, or choose another folder",
                   dv_file_shown(folder->log_path), record->epoch, strerror(errno));
}

dv_status dv_epoch_json(const dv_epoch_record *record, char text[DV_EPOCH_JSON_BYTES], dv_error *error) {
    dv_json json;
    DV_NEED(record);
    DV_NEED(text);
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
    if (record->spilled_bytes > 0)
        dv_json_number(&json, "waited_seconds", record->waited_seconds);
    dv_json_unsigned(&json, "workers", record->workers);
    if (record->ranks > 1) {
        dv_json_unsigned(&json, "ranks", record->ranks);
        dv_json_number(&json, "network_seconds", record->network_seconds);
        dv_json_number(&json, "others_seconds", record->others_seconds);
    }
    dv_json_number(&json, "learning_rate", record->learning_rate);
    dv_json_unsigned(&json, "steps", record->steps);
    dv_json_boolean(&json, "complete", record->complete);
    dv_json_end(&json);
    return dv_json_finish(&json, error);
}
