/* Where a training writes that was not told where: runs/NAME-N, with a name that says what it is and the first number
 * that is free. The folder is made before anything else, so that two trainings that begin together have two; if nothing
 * came to be in it, it goes again. */
#include "train.h"

#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_BYTES = 96, MOST_RUNS = 100000 };

#define RUNS "runs"

/* Of "some/where/photos.lmdb/" the part "photos", fit for the name of a folder. */
static void name_of_path(const char *path, char name[NAME_BYTES]) {
    size_t end = strlen(path), used = 0;
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    for (; begin < end && used + 1 < NAME_BYTES; begin++) {
        unsigned char character = (unsigned char)path[begin];
        if (character == '.' && used > 0)
            break;
        name[used++] = isalnum(character) || character == '_' ? (char)character : '-';
    }
    name[used] = '\0';
}

/* Takes the number off a name that was made here. */
static void remove_number(char *name) {
    size_t digits = strlen(name);
    while (digits > 0 && isdigit((unsigned char)name[digits - 1]))
        digits--;
    if (digits > 1 && name[digits - 1] == '-' && name[digits] != '\0')
        name[digits - 1] = '\0';
}

/* "resnet18-photos", "resnet20-synthetic": a set that is anybody's is called as its folder is. */
static void name_of_options(const dv_options *options, char name[NAME_BYTES]) {
    char data[NAME_BYTES];
    const char *colon = strchr(options->data, ':');
    int is_own = strncmp(options->data, "folder:", 7) == 0 || strncmp(options->data, "lmdb:", 5) == 0;
    if (is_own)
        name_of_path(colon + 1, data);
    else
        snprintf(data, sizeof data, "%.*s", colon != NULL ? (int)(colon - options->data) : NAME_BYTES, options->data);
    snprintf(name, NAME_BYTES, "%.40s-%.40s", options->model, data);
}

/* A recipe has a name; a config.json, or no recipe at all, has not. */
static void choose_name(const train_settings *chosen, char name[NAME_BYTES]) {
    const char *recipe = chosen->recipe;
    if (recipe == NULL || strstr(recipe, ".json") != NULL) {
        name_of_options(&chosen->options, name);
        return;
    }
    name_of_path(recipe, name);
    if (train_is_folder(recipe))
        remove_number(name);
}

int train_claim_folder(train_settings *chosen) {
    char name[NAME_BYTES];
    choose_name(chosen, name);
    if (mkdir(RUNS, 0777) != 0 && errno != EEXIST)
        return cli_fail("could not make the folder " RUNS
                        ": %s: choose another with --out, or --out nowhere to keep nothing",
                        strerror(errno));
    for (int number = 1; number <= MOST_RUNS; number++) {
        snprintf(chosen->claimed, sizeof chosen->claimed, RUNS "/%s-%d", name, number);
        if (mkdir(chosen->claimed, 0777) == 0) {
            chosen->out = chosen->claimed;
            return CLI_CONTINUE;
        }
        if (errno != EEXIST)
            break;
    }
    int reason = errno;
    chosen->claimed[0] = '\0';
    return cli_fail("could not make a folder in " RUNS
                    ": %s: choose another with --out, or --out nowhere to keep nothing",
                    strerror(reason));
}

void train_leave_folder(const train_settings *chosen) {
    if (chosen->claimed[0] != '\0' && rmdir(chosen->claimed) == 0)
        (void)rmdir(RUNS); /* if it is empty too */
}
