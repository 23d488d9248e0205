/* Files of choices: two lines that say whose they are, and a line for each choice:
 *
 *     forward f32 threads 2 images 8 ...: winograd: winograd 0.00123 4194304, onednn 0.00167 0
 *
 * its text, who computes it, and of each maker the seconds and bytes that were measured. The text of a choice for one
 * layer goes on: " in layer1.0.conv2". */
#include "base/cpu.h"
#include "base/file.h"
#include "base/status.h"
#include "nn/choices.h"

#include <division/version.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_BYTES = 4 << 20, PATH_BYTES = 4096, HEAD_BYTES = 256 };

/* ---- whose they are ------------------------------------------------------------------------- */

static const char *onednn_version(void) {
    for (size_t i = 0; dv_library_name_at(i); i++)
        if (strcmp(dv_library_name_at(i), "oneDNN") == 0)
            return dv_library_version_at(i);
    return "unknown";
}

static const char *head_text(char text[HEAD_BYTES]) {
    snprintf(text, HEAD_BYTES, "# passes of convolutions, by division %s with oneDNN %s\n# on %s with %s\n",
             dv_version(), onednn_version(), dv_processor_signature(), dv_isa_name(dv_isa_current()));
    return text;
}

/* FNV-1a */
static unsigned long long hash_of(const char *text) {
    unsigned long long hash = 0xcbf29ce484222325u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

bool dv_choices_cache_path(char *path, size_t bytes) {
    char head[HEAD_BYTES];
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool own = cache && cache[0] == '/'; /* what is relative is to be ignored, says the specification */
    if (!own && !(home && home[0] == '/'))
        return false;
    int used = snprintf(path, bytes, "%s%s/division/passes-%016llx.txt", own ? cache : home, own ? "" : "/.cache",
                        hash_of(head_text(head)));
    return used > 0 && (size_t)used < bytes;
}

/* ---- reading -------------------------------------------------------------------------------- */

static int maker_named(const char *name, size_t length) {
    for (int m = 0; m < DV_PASS_MAKERS; m++)
        if (strlen(dv_pass_makers[m]->name) == length && memcmp(dv_pass_makers[m]->name, name, length) == 0)
            return m;
    return -1;
}

static const char *next_line(const char *line) {
    const char *end = strchr(line, '\n');
    return end ? end + 1 : NULL;
}

/* Where a line goes on behind the text of a choice and `then`; NULL if it does not begin so. */
static const char *behind_text(const char *line, const dv_choice *choice, const char *then) {
    char key[DV_CHOICE_TEXT_BYTES];
    size_t length = strlen(dv_choice_text(choice, key));
    bool begins = strncmp(line, key, length) == 0 && strncmp(line + length, then, strlen(then)) == 0;
    return begins ? line + length + strlen(then) : NULL;
}

/* " winograd 0.00123 4194304": a maker's seconds and bytes. Where the text goes on, or NULL if it is not of this form.
 */
static const char *read_time(const char *text, dv_choice *choice) {
    size_t length = strcspn(text + 1, " \n");
    int maker = *text == ' ' ? maker_named(text + 1, length) : -1;
    char *end;
    if (maker < 0 || text[1 + length] != ' ')
        return NULL;
    double seconds = strtod(text + length + 2, &end);
    if (!(seconds > 0) || !(seconds < 1e6) || end[0] != ' ' || end[1] < '0' || end[1] > '9')
        return NULL;
    choice->seconds[maker] = seconds;
    choice->bytes[maker] = strtoull(end + 1, &end, 10);
    return end;
}

/* One for each maker, with commas between them, to the end of the line. What is not of this form makes the whole line
 * void. */
static bool read_times(const char *text, dv_choice *choice) {
    while ((text = read_time(text, choice)) && *text == ',')
        text++;
    return text && *text == '\n';
}

/* Whether a line says anything; `choice` is changed only if it does. */
static bool read_line(const char *text, dv_choice *choice) {
    dv_choice read = *choice;
    size_t length = strcspn(text, ":\n");
    read.maker = maker_named(text, length);
    if (read.maker < 0 || text[length] != ':' || !dv_pass_makers[read.maker]->suits(read.kind, &read.shape) ||
        !read_times(text + length + 1, &read))
        return false;
    *choice = read;
    return true;
}

/* The text of a file that is this processor's, to be freed; NULL if there is none. */
static char *read_file(const char *path) {
    char head[HEAD_BYTES];
    void *text;
    size_t bytes;
    if (dv_file_read(path, MOST_BYTES, &text, &bytes, NULL) != DV_OK)
        return NULL;
    head_text(head);
    if (strncmp(text, head, strlen(head)) == 0)
        return text;
    free(text);
    return NULL;
}

/* The first line of a choice that is one: times, and with `makers` who computes it. */
static void read_choice(dv_choice *choice, const char *text, bool makers, size_t *found) {
    int before = choice->maker;
    for (const char *line = text; line; line = next_line(line)) {
        const char *rest = behind_text(line, choice, ": ");
        if (!rest)
            continue;
        *found += read_line(rest, choice);
        break;
    }
    if (!makers)
        choice->maker = before;
}

/* "layer1.0.conv2: onednn: ...": gives a layer its own choice, if the line says anything. */
static dv_status read_own(dv_choices *choices, int index, const char *text, size_t *found, dv_error *error) {
    size_t length = strcspn(text, ":\n");
    dv_choice read = choices->at[index];
    int own;
    if (text[length] != ':' || text[length + 1] != ' ' || !read_line(text + length + 2, &read))
        return DV_OK;
    char *layer = strndup(text, length);
    dv_status status = layer ? dv_choices_part(choices, index, layer, &own, error)
                             : dv_fail(error, DV_ERROR_MEMORY, "no memory for the choice of a convolution's pass");
    if (status == DV_OK) {
        read.layer = choices->at[own].layer;
        choices->at[own] = read;
        ++*found;
    }
    free(layer);
    return status;
}

static dv_status read_owns(dv_choices *choices, const char *text, size_t *found, dv_error *error) {
    size_t count = choices->count;
    for (const char *line = text; line; line = next_line(line))
        for (size_t i = 0; i < count; i++) {
            const char *rest = behind_text(line, &choices->at[i], " in ");
            if (rest)
                DV_TRY(read_own(choices, (int)i, rest, found, error));
        }
    return DV_OK;
}

dv_status dv_choices_read(dv_choices *choices, const char *path, bool makers, size_t *found, dv_error *error) {
    char *text = read_file(path);
    *found = 0;
    for (size_t i = 0; text && i < choices->count; i++)
        read_choice(&choices->at[i], text, makers, found);
    dv_status status = text && makers ? read_owns(choices, text, found, error) : DV_OK;
    free(text);
    return status;
}

/* ---- writing -------------------------------------------------------------------------------- */

static void write_choice(FILE *stream, const dv_choice *choice) {
    char text[DV_CHOICE_TEXT_BYTES];
    fprintf(stream, "%s%s%s: %s:", dv_choice_text(choice, text), choice->layer ? " in " : "",
            choice->layer ? choice->layer : "", dv_pass_makers[choice->maker]->name);
    const char *comma = "";
    for (int m = 0; m < DV_PASS_MAKERS; m++)
        if (choice->seconds[m] > 0) {
            fprintf(stream, "%s %s %.9f %zu", comma, dv_pass_makers[m]->name, choice->seconds[m], choice->bytes[m]);
            comma = ",";
        }
    fputc('\n', stream);
}

static bool is_written(const dv_choice *choice) {
    return choice->seconds[choice->maker] > 0;
}

/* Whether a line is that of one of the choices that are written, or of one layer that had its own: all of these are
 * written anew. */
static bool is_replaced(const dv_choices *choices, const char *line) {
    for (size_t i = 0; i < choices->count; i++) {
        const dv_choice *choice = &choices->at[i];
        if (is_written(choice) && (behind_text(line, choice, ":") || behind_text(line, choice, " in ")))
            return true;
    }
    return false;
}

/* The lines of an earlier file that stay. */
static void write_others(FILE *stream, const dv_choices *choices, const char *text) {
    for (const char *line = text, *end; line && (end = strchr(line, '\n')); line = end + 1)
        if (*line != '#' && !is_replaced(choices, line))
            fwrite(line, 1, (size_t)(end + 1 - line), stream);
}

/* The folders that a path leads through. That one can't be made is told when the file can't. */
static void make_folders(const char *path) {
    char folder[PATH_BYTES];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(folder, 0777);
        *slash = '/';
    }
}

dv_status dv_choices_write(const dv_choices *choices, const char *path, dv_error *error) {
    char head[HEAD_BYTES];
    dv_file file;
    make_folders(path);
    char *others = read_file(path);
    dv_status status = dv_file_begin(&file, path, error);
    if (status == DV_OK) {
        fputs(head_text(head), file.stream);
        write_others(file.stream, choices, others);
        for (size_t i = 0; i < choices->count; i++)
            if (is_written(&choices->at[i]))
                write_choice(file.stream, &choices->at[i]);
        status = dv_file_commit(&file, error);
    }
    free(others);
    return status;
}
