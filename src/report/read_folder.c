/* Reads the folder of a run: its options, and a line per epoch. */
#include "base/file.h"
#include "base/status.h"
#include "report/data.h"
#include "report/method_text.h"
#include "report/record.h"

#include <division/folder.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { KEY_BYTES = 128, LARGEST_CONFIG = 1 << 20, PATH_BYTES = 4096 };

static const dv_record_field log_fields[] = {
    DV_RECORD_NUMBER(dv_log_line, epoch),
    DV_RECORD_NUMBER(dv_log_line, steps),
    DV_RECORD_NUMBER(dv_log_line, train_loss),
    DV_RECORD_NUMBER(dv_log_line, train_top1),
    DV_RECORD_NUMBER(dv_log_line, test_loss),
    DV_RECORD_NUMBER(dv_log_line, test_top1),
    DV_RECORD_NUMBER(dv_log_line, images_per_second),
    DV_RECORD_NUMBER(dv_log_line, peak_bytes),
    DV_RECORD_NUMBER(dv_log_line, activation_bytes),
    DV_RECORD_NUMBER(dv_log_line, seconds),
    DV_RECORD_NUMBER(dv_log_line, learning_rate),
    DV_RECORD_END,
};

/* "path/name" for a file of the folder. */
static dv_status file_of(const char *path, const char *name, char file[PATH_BYTES], dv_error *error) {
    if (snprintf(file, PATH_BYTES, "%s/%s", path, name) >= PATH_BYTES)
        return dv_fail(error, DV_ERROR_IO, "a path of %zu characters: give a shorter one", strlen(path));
    return DV_OK;
}

/* The last part of a path, without slashes at its end, which are cut off. */
static const char *last_part(char *path) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        path[--length] = '\0';
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

/* A run is called after its folder, also where that is given as "." or "..". */
static dv_status name_run(dv_run_folder *run, dv_error *error) {
    char *whole = realpath(run->path, NULL);
    const char *name = last_part(run->path);
    if (name[strspn(name, ".")] == '\0' && whole != NULL)
        name = last_part(whole);
    run->name = strdup(name);
    free(whole);
    return run->name != NULL ? DV_OK : dv_report_no_memory(error);
}

/* ---- options ------------------------------------------------------------------------------- */

static dv_status add_setting(dv_run_folder *run, const char *key, const char *value, dv_error *error) {
    dv_run_setting *added = dv_report_more(&run->settings, run->setting_count, sizeof *added);
    if (added == NULL)
        return dv_report_no_memory(error);
    run->setting_count++;
    added->key = strdup(key);
    added->value = strdup(value);
    if (added->key == NULL || added->value == NULL)
        return dv_report_no_memory(error);
    if (strcmp(key, "method") == 0)
        dv_method_shorten(added->value);
    return DV_OK;
}

static dv_status read_settings(dv_run_folder *run, dv_json_cursor *json, dv_error *error) {
    char key[KEY_BYTES], value[DV_SETTING_TEXT];
    bool is_null;
    for (dv_json_enter(json, '{'); dv_json_next(json, '}');)
        if (dv_json_read_key(json, key, sizeof key) && dv_json_read_scalar(json, value, sizeof value, &is_null))
            DV_TRY(add_setting(run, key, value, error));
    return DV_OK;
}

static dv_status fail_config(const char *path, const char *verb, const char *reason, dv_error *error) {
    return dv_fail(error, DV_ERROR_FORMAT,
                   "%.80s is no folder of a run: " DV_FOLDER_CONFIG
                   " %s %s: give a folder that 'division train --out' made",
                   dv_file_shown(path), verb, reason);
}

static dv_status read_config(dv_run_folder *run, dv_error *error) {
    char file[PATH_BYTES];
    struct stat there;
    void *text;
    size_t bytes;
    DV_TRY(file_of(run->path, DV_FOLDER_CONFIG, file, error));
    if (stat(file, &there) != 0)
        return fail_config(run->path, "is", "missing", error);
    DV_TRY(dv_file_read(file, LARGEST_CONFIG, &text, &bytes, error));
    dv_json_cursor json = dv_json_cursor_at(text, bytes);
    dv_status status = read_settings(run, &json, error);
    if (status == DV_OK && !dv_json_ended(&json))
        status = fail_config(run->path, "is no JSON:", json.problem, error);
    free(text);
    if (status == DV_OK && dv_run_setting_of(run, "method")[0] == '\0')
        status = fail_config(run->path, "has", "no method", error);
    return status;
}

/* ---- the log ------------------------------------------------------------------------------- */

/* An epoch that was done again replaces itself and those behind it. */
static dv_status read_epoch(void *context, dv_json_cursor *json, dv_error *error) {
    dv_run_folder *run = context;
    dv_log_line line;
    if (!dv_record_read(json, log_fields, &line) || !dv_json_ended(json))
        return DV_OK; /* the cursor knows why */
    if (!(line.epoch >= 1))
        return dv_fail(error, DV_ERROR_FORMAT, "it has no epoch: give a log as the program writes it");
    while (run->epochs > 0 && run->log[run->epochs - 1].epoch >= line.epoch)
        run->epochs--;
    dv_log_line *added = dv_report_more(&run->log, run->epochs, sizeof *added);
    if (added == NULL)
        return dv_report_no_memory(error);
    *added = line;
    run->epochs++;
    run->best_top1 = fmax(run->best_top1, line.test_top1);
    return DV_OK;
}

static dv_status read_log(dv_report_data *data, dv_run_folder *run, dv_error *error) {
    char file[PATH_BYTES];
    struct stat there;
    bool cut = false;
    DV_TRY(file_of(run->path, DV_FOLDER_LOG, file, error));
    run->best_top1 = NAN;
    if (stat(file, &there) == 0) {
        run->ended = (double)there.st_mtime;
        DV_TRY(dv_record_lines(file, read_epoch, run, &cut, error));
    }
    if (run->epochs == 0)
        return dv_fail(error, DV_ERROR_FORMAT,
                       "%.80s: " DV_FOLDER_LOG " has no epoch yet: wait for the first one, or leave this run out",
                       dv_file_shown(run->path));
    if (cut)
        DV_TRY(dv_report_note(data, error,
                              "%.80s: the last line of " DV_FOLDER_LOG
                              " is cut off, as by a kill: %zu epochs before it are shown",
                              run->name, run->epochs));
    return DV_OK;
}

/* A training under way is shown, and said to be one. */
static dv_status note_end(dv_report_data *data, const dv_run_folder *run, dv_error *error) {
    double wanted;
    if (!dv_record_number(dv_run_setting_of(run, "epochs"), &wanted) || run->log[run->epochs - 1].epoch >= wanted)
        return DV_OK;
    return dv_report_note(data, error, "%.80s: %.0f of %.0f epochs are done: its last accuracy is not its final one",
                          run->name, run->log[run->epochs - 1].epoch, wanted);
}

/* ---- the folder ---------------------------------------------------------------------------- */

/* Figures and files are called after runs. */
static dv_status check_name(const dv_report_data *data, const dv_run_folder *run, dv_error *error) {
    for (const dv_run_folder *other = data->runs; other < run; other++)
        if (strcmp(other->name, run->name) == 0)
            return dv_fail(error, DV_ERROR_OPTION,
                           "two runs are called %.60s, %.60s and %.60s: rename one of the folders, or leave it out",
                           run->name, other->path, run->path);
    return DV_OK;
}

dv_status dv_report_read_folder(dv_report_data *data, const char *path, dv_error *error) {
    dv_run_folder *run = dv_report_more(&data->runs, data->run_count, sizeof *run);
    if (run == NULL || (run->path = strdup(path)) == NULL)
        return dv_report_no_memory(error);
    data->run_count++; /* from here on it is freed with the others */
    DV_TRY(name_run(run, error));
    DV_TRY(check_name(data, run, error));
    DV_TRY(read_config(run, error));
    DV_TRY(read_log(data, run, error));
    DV_TRY(note_end(data, run, error));
    return dv_report_method(data, dv_run_setting_of(run, "method"), error);
}
