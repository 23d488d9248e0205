/* Recipes: files of options by path, folders of runs, and those that came with the program by name. */
#ifndef DV_CLI_RECIPE_H
#define DV_CLI_RECIPE_H

#include <division/options.h>

/* Options that are the call's own and in no recipe. */
#define CLI_OUT "out"
#define CLI_RESUME "resume"
#define CLI_REPLACE "replace"
#define CLI_QUIET "quiet"
#define CLI_JSON "json"
#define CLI_FIND_RATE "find-lr"

/* Reads a recipe over the options. `name` is a file; or the folder of a run, whose options are taken; or, where there
 * is neither, the name of a recipe in recipes/ of the tree or of the installation. Prints what is wrong, with names
 * like the one that is not there. Returns CLI_CONTINUE or an exit code. */
int cli_read_recipe(const char *name, dv_options *options);

/* Prints the names of those that came with the program, one in each line. Returns an exit code. */
int cli_recipe_names(void);

#endif
