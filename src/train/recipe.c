/* Reading recipes: lines of "name = value", or a flat JSON object. Both become a list of names and values. */
#include <division/recipe.h>

#include "base/file.h"
#include "base/json_read.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_FILE = 1 << 16, MOST_LINES = 256, NAME_BYTES = 64, VALUE_BYTES = 4200, SHOWN = 40 };

struct dv_recipe {
    char *pool; /* all text; never longer than the file, but for a final zero each */
    size_t used;
    dv_recipe_line lines[MOST_LINES];
    size_t count;
};

static bool is_space(char letter) {
    return letter == ' ' || letter == '\t' || letter == '\r';
}

/* Copies text into the pool. */
static const char *keep(dv_recipe *recipe, const char *text, size_t bytes) {
    char *kept = recipe->pool + recipe->used;
    memcpy(kept, text, bytes);
    kept[bytes] = '\0';
    recipe->used += bytes + 1;
    return kept;
}

/* What is wrong with one more option of this name, or NULL. */
static const char *refuse(const dv_recipe *recipe, const char *name, size_t name_bytes, size_t value_bytes) {
    if (recipe->count == MOST_LINES)
        return "too many options";
    if (name_bytes >= NAME_BYTES || value_bytes >= VALUE_BYTES)
        return "too long";
    for (size_t i = 0; i < recipe->count; i++)
        if (strlen(recipe->lines[i].name) == name_bytes && memcmp(recipe->lines[i].name, name, name_bytes) == 0)
            return "it is set twice";
    return NULL;
}

static void add(dv_recipe *recipe, const char *name, size_t name_bytes, const char *value, size_t value_bytes,
                size_t line) {
    dv_recipe_line *made = &recipe->lines[recipe->count++];
    made->name = keep(recipe, name, name_bytes);
    made->value = keep(recipe, value, value_bytes);
    made->line = line;
}

/* ---- lines --------------------------------------------------------------------------------- */

/* A piece of the text, without the space around it. */
typedef struct piece {
    const char *at;
    size_t bytes;
} piece;

static piece trimmed(const char *first, const char *end) {
    while (first < end && is_space(*first))
        first++;
    while (end > first && is_space(end[-1]))
        end--;
    return (piece){first, (size_t)(end - first)};
}

static bool is_name(piece name) {
    for (size_t i = 0; i < name.bytes; i++) {
        char letter = name.at[i];
        if (!((letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '-' || letter == '_'))
            return false;
    }
    return name.bytes > 0;
}

static bool has_control_characters(piece value) {
    for (size_t i = 0; i < value.bytes; i++)
        if ((unsigned char)value.at[i] < 0x20 || value.at[i] == 0x7f)
            return true;
    return false;
}

static dv_status fail_line(const char *file, size_t line, piece shown, const char *reason, dv_error *error) {
    char text[SHOWN + 1];
    size_t used = 0; /* what can't be printed is left out */
    for (size_t i = 0; i < shown.bytes && used < SHOWN; i++)
        if ((unsigned char)shown.at[i] >= 0x20 && shown.at[i] != 0x7f)
            text[used++] = shown.at[i];
    text[used] = '\0';
    return dv_fail(error, DV_ERROR_FORMAT, "%s, line %zu: \"%s\": %s", dv_file_shown(file), line, text, reason);
}

static dv_status read_line(dv_recipe *recipe, const char *file, piece whole, size_t line, dv_error *error) {
    const char *equals = whole.at, *end = whole.at + whole.bytes;
    if (whole.bytes == 0 || whole.at[0] == '#')
        return DV_OK;
    while (equals < end && *equals != '=')
        equals++;
    if (equals == end)
        return fail_line(file, line, whole, "not an option: write name = value", error);
    piece name = trimmed(whole.at, equals), value = trimmed(equals + 1, end);
    if (!is_name(name))
        return fail_line(file, line, name, "not a name: use small letters, digits and '-'", error);
    if (value.bytes == 0 || has_control_characters(value))
        return fail_line(file, line, name, "its value is missing or not text: write name = value", error);
    const char *wrong = refuse(recipe, name.at, name.bytes, value.bytes);
    if (wrong != NULL)
        return fail_line(file, line, name, wrong, error);
    add(recipe, name.at, name.bytes, value.at, value.bytes, line);
    return DV_OK;
}

static dv_status read_lines(dv_recipe *recipe, const char *file, const char *text, size_t bytes, dv_error *error) {
    size_t line = 1;
    for (const char *at = text, *end = text + bytes; at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop != NULL ? stop : end;
        DV_TRY(read_line(recipe, file, trimmed(at, stop), line, error));
        at = stop + (stop < end);
    }
    return DV_OK;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static dv_status fail_json(const char *file, const dv_json_cursor *json, const char *reason, dv_error *error) {
    return dv_fail(error, DV_ERROR_FORMAT, "%s, byte %zu: %s: it should be one object of options", dv_file_shown(file),
                   dv_json_position(json), reason);
}

static dv_status read_object(dv_recipe *recipe, const char *file, const char *text, size_t bytes, dv_error *error) {
    dv_json_cursor json = dv_json_cursor_at(text, bytes);
    for (dv_json_enter(&json, '{'); dv_json_next(&json, '}');) {
        char name[NAME_BYTES], value[VALUE_BYTES];
        bool is_null;
        if (!dv_json_read_key(&json, name, sizeof name) || !dv_json_read_scalar(&json, value, sizeof value, &is_null))
            break;
        const char *wrong = refuse(recipe, name, strlen(name), strlen(value));
        if (wrong != NULL)
            return fail_json(file, &json, wrong, error);
        if (!is_null)
            add(recipe, name, strlen(name), value, strlen(value), 0);
    }
    return dv_json_ended(&json) ? DV_OK : fail_json(file, &json, json.problem, error);
}

/* ---- the recipe ---------------------------------------------------------------------------- */

dv_status dv_recipe_parse(const char *name, const char *text, size_t bytes, dv_recipe **recipe, dv_error *error) {
    DV_NEED(name);
    DV_NEED(text);
    DV_NEED(recipe);
    if (bytes > LARGEST_FILE)
        return dv_fail(error, DV_ERROR_FORMAT, "%s has more than %d bytes: check that it is a recipe",
                       dv_file_shown(name), LARGEST_FILE);
    dv_recipe *made = calloc(1, sizeof *made);
    char *pool = malloc(bytes + 2 * MOST_LINES + 1);
    if (made == NULL || pool == NULL) {
        free(made);
        free(pool);
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to read %s: free some", dv_file_shown(name));
    }
    made->pool = pool;
    dv_status status = bytes > 0 && text[0] == '{' ? read_object(made, name, text, bytes, error)
                                                   : read_lines(made, name, text, bytes, error);
    if (status == DV_OK)
        *recipe = made;
    else
        dv_recipe_free(made);
    return status;
}

dv_status dv_recipe_read(const char *path, dv_recipe **recipe, dv_error *error) {
    void *text;
    size_t bytes;
    if (path == NULL || recipe == NULL)
        return dv_fail(error, DV_ERROR_ARGUMENT, "recipe: path or recipe is NULL");
    DV_TRY(dv_file_read(path, LARGEST_FILE, &text, &bytes, error));
    dv_status status = dv_recipe_parse(path, text, bytes, recipe, error);
    free(text);
    return status;
}

void dv_recipe_free(dv_recipe *recipe) {
    if (recipe == NULL)
        return;
    free(recipe->pool);
    free(recipe);
}

const dv_recipe_line *dv_recipe_at(const dv_recipe *recipe, size_t index) {
    return index < recipe->count ? &recipe->lines[index] : NULL;
}
