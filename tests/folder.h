/* A folder of its own for each test that writes files, with everything in it removed afterwards.
 * Use folder_new and folder_free as a test's setup and teardown. */
#ifndef DV_TESTS_FOLDER_H
#define DV_TESTS_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FOLDER_PATH_BYTES = 1024 };

/* The state of a test is the folder's path. */
static inline int folder_new(void **state) {
    const char *parent = getenv("TMPDIR");
    char *path = malloc(FOLDER_PATH_BYTES);
    if (path == NULL)
        return -1;
    snprintf(path, FOLDER_PATH_BYTES, "%s/division-test-XXXXXX", parent != NULL ? parent : "/tmp");
    *state = path;
    return mkdtemp(path) != NULL ? 0 : -1;
}

/* The path of `name` in the folder, in a buffer of FOLDER_PATH_BYTES. */
static inline const char *folder_path(void **state, const char *name, char *path) {
    snprintf(path, FOLDER_PATH_BYTES, "%.512s/%.256s", (const char *)*state, name);
    return path;
}

/* Counts the entries of the folder, and removes them if `remove_them`. */
static inline int folder_count(void **state, int remove_them) {
    int count = 0;
    char path[FOLDER_PATH_BYTES];
    DIR *folder = opendir(*state);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        count++;
        if (remove_them)
            remove(folder_path(state, entry->d_name, path));
    }
    if (folder != NULL)
        closedir(folder);
    return count;
}

static inline int folder_free(void **state) {
    folder_count(state, 1);
    int code = rmdir(*state);
    free(*state);
    return code;
}

#endif
