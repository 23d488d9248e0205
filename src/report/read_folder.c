/* Reads the folder of a run: its options, and a line per epoch. */
#include "base/file.h"
#include "base/status.h"
#include "report/data.h"
#include "report/method_text.h"

#include <division/folder.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { KEY_BYTES = 128, LARGEST_CONFIG = 1 << 20, LARGEST_LOG = 1 << 28, MOST_EPOCHS = 100000, PATH_BYTES = 4096 };

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

static dv_status read_config(dv_run_folder *run, const dv_record_text *config, dv_error *error) {
    dv_json_cursor json = dv_json_cursor_at(config->text, config->bytes);
    DV_TRY(read_settings(run, &json, error));
    if (!dv_json_ended(&json))
        return fail_config(run->path, "is no JSON:", json.problem, error);
    if (dv_run_setting_of(run, "method")[0] == '\0')
        return fail_config(run->path, "has", "no method", error);
    return DV_OK;
}

/* ---- the log ------------------------------------------------------------------------------- */

/* An epoch that was done again replaces itself and those behind it. */
static dv_status read_epoch(void *context, dv_json_cursor *json, dv_error *error) {
    dv_run_folder *run = context;
    dv_log_line line;
    if (!dv_record_read(json, log_fields, &line) || !dv_json_ended(json))
        return DV_OK; /* the cursor knows why */
    if (!(line.epoch >= 1 && line.epoch <= MOST_EPOCHS))
        return dv_fail(error, DV_ERROR_FORMAT, "it has no epoch from 1 to %d: give a log as the program writes it",
                       MOST_EPOCHS);
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

static dv_status read_log(dv_report_data *data, dv_run_folder *run, const dv_record_text *log, dv_error *error) {
    bool cut = false;
    run->best_top1 = NAN;
    DV_TRY(dv_record_lines(log, read_epoch, run, &cut, error));
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

/* Whether a training ended before its last epoch, for its tests became no better. */
static bool lost_patience(const dv_run_folder *run) {
    double patience;
    size_t best = 0;
    while (best + 1 < run->epochs && !(run->log[best].test_top1 >= run->best_top1))
        best++;
    return dv_record_number(dv_run_setting_of(run, "patience"), &patience) && patience > 0 &&
           run->log[run->epochs - 1].epoch >= run->log[best].epoch + patience;
}

/* A training under way is shown, and said to be one. */
static dv_status note_end(dv_report_data *data, const dv_run_folder *run, dv_error *error) {
    double wanted;
    if (!dv_record_number(dv_run_setting_of(run, "epochs"), &wanted) || run->log[run->epochs - 1].epoch >= wanted ||
        lost_patience(run))
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

dv_status dv_report_read_run(dv_report_data *data, const char *path, const dv_record_text *config,
                             const dv_record_text *log, double ended, dv_error *error) {
    dv_run_folder *run = dv_report_more(&data->runs, data->run_count, sizeof *run);
    if (run == NULL || (run->path = strdup(path)) == NULL)
        return dv_report_no_memory(error);
    data->run_count++; /* from here on it is freed with the others */
    run->ended = ended;
    DV_TRY(name_run(run, error));
    DV_TRY(check_name(data, run, error));
    DV_TRY(read_config(run, config, error));
    DV_TRY(read_log(data, run, log, error));
    DV_TRY(note_end(data, run, error));
    return dv_report_method(data, dv_run_setting_of(run, "method"), error);
}

/* A file of the folder in memory. */
typedef struct file_text {
    char path[PATH_BYTES];
    void *text; /* owned; NULL: there is no such file */
    size_t bytes;
    double written; /* when, in seconds since 1970 */
} file_text;

static dv_status load(const char *folder, const char *name, size_t limit, file_text *file, dv_error *error) {
    struct stat there;
    *file = (file_text){0};
    if (snprintf(file->path, PATH_BYTES, "%s/%s", folder, name) >= PATH_BYTES)
        return dv_fail(error, DV_ERROR_IO, "a path of %zu characters: give a shorter one", strlen(folder));
    if (stat(file->path, &there) != 0)
        return DV_OK;
    file->written = (double)there.st_mtime;
    return dv_file_read(file->path, limit, &file->text, &file->bytes, error);
}

static dv_record_text text_of(const file_text *file) {
    return (dv_record_text){file->path, file->text != NULL ? file->text : "", file->bytes};
}

dv_status dv_report_read_folder(dv_report_data *data, const char *path, dv_error *error) {
    file_text config, log;
    DV_TRY(load(path, DV_FOLDER_CONFIG, LARGEST_CONFIG, &config, error));
    if (config.text == NULL)
        return fail_config(path, "is", "missing", error);
    dv_status status = load(path, DV_FOLDER_LOG, LARGEST_LOG, &log, error);
    dv_record_text config_text = text_of(&config), log_text = text_of(&log);
    if (status == DV_OK)
        status = dv_report_read_run(data, path, &config_text, &log_text, log.written, error);
    free(config.text);
    free(log.text);
    return status;
}
