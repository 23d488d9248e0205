/* Walking over folders of images. */
#include "image_list.h"

#include "cli.h"

#include <division/data.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_DEPTH = 32 };

static dv_status fail_memory(dv_error *error) {
    return cli_error(error, DV_ERROR_MEMORY, "no memory for a list of images: give fewer at once");
}

/* Takes over `path`, which may be NULL: there was no memory for it. */
static dv_status take(image_list *list, char *path, dv_error *error) {
    if (path != NULL && list->count == list->room) {
        size_t room = list->room > 0 ? 2 * list->room : 256;
        char **grown = realloc(list->paths, room * sizeof *grown);
        if (grown != NULL) {
            list->room = room;
            list->paths = grown;
        }
    }
    if (path == NULL || list->count == list->room) {
        free(path);
        return fail_memory(error);
    }
    list->paths[list->count++] = path;
    return DV_OK;
}

static int is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static int is_shown(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

/* Byte by byte, so that the order is the same in any language. */
static int compare(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static char *join(const char *folder, const char *name) {
    size_t length = strlen(folder), bytes = length + strlen(name) + 2;
    char *path = malloc(bytes);
    if (path != NULL)
        snprintf(path, bytes, "%s%s%s", folder, length > 0 && folder[length - 1] == '/' ? "" : "/", name);
    return path;
}

static dv_status walk(image_list *list, const char *folder, int depth, dv_error *error);

/* A folder is walked, an image taken; all else is left alone. */
static dv_status visit(image_list *list, const char *folder, const char *name, int depth, dv_error *error) {
    char *path = join(folder, name);
    if (path == NULL)
        return fail_memory(error);
    if (!is_folder(path) && dv_image_is_named(name))
        return take(list, path, error);
    dv_status status = is_folder(path) ? walk(list, path, depth + 1, error) : DV_OK;
    free(path);
    return status;
}

static dv_status walk(image_list *list, const char *folder, int depth, dv_error *error) {
    struct dirent **entries;
    if (depth == MOST_DEPTH) /* links may go round in circles */
        return cli_error(error, DV_ERROR_IO, "%.100s: folders are too deep: give one of those inside", folder);
    int count = scandir(folder, &entries, is_shown, compare);
    if (count < 0)
        return cli_error(error, DV_ERROR_IO, "could not read the folder %.100s: %s: check its name", folder,
                         strerror(errno));
    dv_status status = DV_OK;
    for (int i = 0; i < count; i++) {
        if (status == DV_OK)
            status = visit(list, folder, entries[i]->d_name, depth, error);
        free(entries[i]);
    }
    free(entries);
    return status;
}

dv_status image_list_add(image_list *list, const char *operand, dv_error *error) {
    size_t before = list->count;
    if (!is_folder(operand))
        return take(list, strdup(operand), error);
    dv_status status = walk(list, operand, 0, error);
    if (status == DV_OK && list->count == before)
        return cli_error(error, DV_ERROR_FORMAT,
                         "%.100s has no images (.jpg, .png, .webp, ...): give a folder that has some", operand);
    return status;
}

void image_list_free(image_list *list) {
    for (size_t i = 0; i < list->count; i++)
        free(list->paths[i]);
    free(list->paths);
}
