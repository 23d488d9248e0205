/* Names of classes: written with a checkpoint, read with it. */
#include "train/class_names.h"

#include "base/json_read.h"
#include "base/status.h"

#include <division/tools/json.h>

#include <stdlib.h>
#include <string.h>

static dv_status fail_memory(dv_error *error) {
    return dv_fail(error, DV_ERROR_MEMORY, "no memory for names of classes: free some");
}

/* ---- writing ------------------------------------------------------------------------------- */

static void list(dv_json *json, const dv_dataset *data) {
    size_t classes = dv_dataset_describe(data).classes;
    dv_json_array(json, NULL);
    for (size_t i = 0; i < classes; i++)
        dv_json_text(json, NULL, dv_dataset_class_name(data, i));
    dv_json_end(json);
}

dv_status dv_class_names_text(const dv_dataset *data, char **text, dv_error *error) {
    char nowhere[1];
    dv_json json;
    *text = NULL;
    if (dv_dataset_class_name(data, 0) == NULL)
        return DV_OK;
    dv_json_to_buffer(&json, nowhere, sizeof nowhere); /* its length is measured first */
    list(&json, data);
    size_t bytes = json.length + 1;
    *text = malloc(bytes);
    if (*text == NULL)
        return fail_memory(error);
    dv_json_to_buffer(&json, *text, bytes);
    list(&json, data);
    return dv_json_finish(&json, error);
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Reads the array; the names' text goes into `block` [bytes], where each is shorter than it was in the note. */
static bool read_array(dv_json_cursor *json, size_t classes, char **names, char *block, size_t bytes) {
    size_t count = 0;
    for (dv_json_enter(json, '['); dv_json_next(json, ']');) {
        if (count == classes)
            return dv_json_refuse(json, "more names than classes");
        if (!dv_json_read_text(json, block, bytes))
            break;
        names[count++] = block;
        bytes -= strlen(block) + 1;
        block += strlen(block) + 1;
    }
    return dv_json_ended(json);
}

dv_status dv_class_names_read(const char *text, size_t classes, char ***names, dv_error *error) {
    size_t length = strlen(text);
    dv_json_cursor json = dv_json_cursor_at(text, length);
    char **made = calloc(1, classes * sizeof *made + length + 1);
    if (made == NULL)
        return fail_memory(error);
    if (read_array(&json, classes, made, (char *)(made + classes), length + 1)) {
        *names = made;
        return DV_OK;
    }
    free(made);
    return dv_fail(error, DV_ERROR_FORMAT,
                   "its note " DV_NOTE_CLASS_NAMES " is no list of up to %zu names: %s, byte %zu", classes,
                   json.problem, dv_json_position(&json));
}
