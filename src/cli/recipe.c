/* Finding and reading recipes. */
#include "recipe.h"

#include "cli.h"
#include "options.h"
#include "start.h"

#include <division/folder.h>
#include <division/recipe.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_BYTES = 4096, NAME_BYTES = 64, MOST_RECIPES = 64, LIST_BYTES = MOST_RECIPES * NAME_BYTES };

/* Where recipes are, from the folder of the program if it is not absolute: as installed, wherever that was moved; in
 * the tree of a build folder; and where they were to be installed, for systems that do not say where the program is. */
static const char *const places[] = {"../share/division/recipes", "../../recipes", DV_RECIPES};

enum { PLACES = sizeof places / sizeof *places };

/* The names there are. */
typedef struct listing {
    char names[MOST_RECIPES][NAME_BYTES];
    size_t count;
} listing;

static int exists(const char *path, int *is_folder) {
    struct stat status;
    int found = stat(path, &status) == 0;
    *is_folder = found && S_ISDIR(status.st_mode);
    return found;
}

/* ---- by name ------------------------------------------------------------------------------- */

/* The index-th folder of recipes. Returns 0 past the last. */
static int folder_at(size_t index, char path[PATH_BYTES]) {
    char program[PATH_BYTES];
    if (index >= PLACES)
        return 0;
    start_program_path(program, sizeof program);
    char *slash = strrchr(program, '/');
    if (slash != NULL)
        *slash = '\0';
    snprintf(path, PATH_BYTES, "%.3800s%s%s", places[index][0] == '/' ? "" : program,
             places[index][0] == '/' ? "" : "/", places[index]);
    return 1;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(a, b);
}

/* Adds a name, unless it is there or is none of a recipe. */
static void add_name(listing *list, const char *name) {
    if (name[0] == '.' || strlen(name) >= NAME_BYTES || list->count == MOST_RECIPES)
        return;
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->names[i], name) == 0)
            return;
    strcpy(list->names[list->count++], name);
}

static void list_recipes(listing *list) {
    char path[PATH_BYTES];
    for (size_t i = 0; folder_at(i, path); i++) {
        DIR *folder = opendir(path);
        for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;)
            add_name(list, entry->d_name);
        if (folder != NULL)
            closedir(folder);
    }
    qsort(list->names, list->count, sizeof *list->names, compare_names);
}

int cli_recipe_names(void) {
    static listing list;
    list.count = 0;
    list_recipes(&list);
    for (size_t i = 0; i < list.count; i++)
        printf("%s\n", list.names[i]);
    return cli_finish();
}

/* Says what there is instead. */
static int fail_missing(const char *name) {
    static listing list;
    const char *names[MOST_RECIPES];
    char text[LIST_BYTES] = "";
    list.count = 0;
    list_recipes(&list);
    for (size_t i = 0; i < list.count; i++) {
        names[i] = list.names[i];
        strcat(strcat(text, i > 0 ? ", " : ""), list.names[i]);
    }
    const char *nearest = dv_nearest(name, names, list.count);
    if (nearest != NULL)
        return cli_wrong_call("there is no recipe '%s': did you mean %s?", name, nearest);
    if (list.count > 0)
        return cli_wrong_call("there is no recipe '%s': give the path of a file, or one of %s", name, text);
    return cli_wrong_call("there is no recipe '%s': give the path of a file", name);
}

/* Finds the recipe of that name. Returns 0 if there is none. */
static int find_by_name(const char *name, char path[PATH_BYTES]) {
    char folder[PATH_BYTES];
    int is_folder;
    for (size_t i = 0; folder_at(i, folder); i++) {
        snprintf(path, PATH_BYTES, "%.3900s/%.190s", folder, name);
        if (exists(path, &is_folder) && !is_folder)
            return 1;
    }
    return 0;
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Refuses what only the command line may say: options of the program itself. */
static dv_status check_names(const char *path, const dv_recipe *recipe, dv_error *error) {
    static const char *const own[] = {CLI_OUT, CLI_RESUME, CLI_REPLACE, CLI_QUIET, CLI_JSON, CLI_FIND_RATE};
    const dv_recipe_line *line;
    for (size_t i = 0; (line = dv_recipe_at(recipe, i)) != NULL; i++)
        for (size_t n = 0; n < sizeof own / sizeof *own; n++)
            if (strcmp(line->name, own[n]) == 0)
                return line->line > 0
                           ? cli_error(error, DV_ERROR_OPTION, "%s, line %zu: %s: belongs on the command line", path,
                                       line->line, line->name)
                           : cli_error(error, DV_ERROR_OPTION, "%s: %s: belongs on the command line", path, line->name);
    return DV_OK;
}

static int read_file(const char *path, dv_options *options) {
    dv_recipe *recipe = NULL;
    dv_error error;
    dv_status status = dv_recipe_read(path, &recipe, &error);
    if (status == DV_OK)
        status = check_names(path, recipe, &error);
    if (status == DV_OK)
        status = dv_options_apply(options, recipe, path, &error);
    dv_recipe_free(recipe);
    return status == DV_OK ? CLI_CONTINUE : cli_report(&error);
}

int cli_read_recipe(const char *name, dv_options *options) {
    char path[PATH_BYTES];
    int is_folder;
    int found = exists(name, &is_folder);
    if (!found && strchr(name, '/') == NULL)
        return find_by_name(name, path) ? read_file(path, options) : fail_missing(name);
    snprintf(path, sizeof path, is_folder ? "%s/" DV_FOLDER_CONFIG : "%s", name);
    return read_file(path, options);
}
