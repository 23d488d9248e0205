/* Recipes: files of options.
 *
 *     # ResNet-18 on CIFAR-10
 *     model = resnet18_cifar
 *     epochs = 100
 *
 * One option a line, in any order, each at most once; a value goes to the end of its line, without the space around it.
 * Empty lines and lines that begin with # say nothing. A file that begins with { is read as one flat JSON object: so is
 * the config.json of a run, which thus is a recipe too. What the options are called and what they take is for the
 * caller to know.
 *
 * - Threads: Any thread may read a recipe at any time.
 * - Fork: A child may read it too.
 * - Freeing: Names and values live as long as their recipe. */
#ifndef DIVISION_RECIPE_H
#define DIVISION_RECIPE_H

#include <division/export.h>
#include <division/status.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dv_recipe dv_recipe;

/* An option. The text lives as long as the recipe. */
typedef struct dv_recipe_line {
    const char *name, *value;
    size_t line; /* of the file, from 1; 0 in JSON */
} dv_recipe_line;

/* Reads a file. A mistake is DV_ERROR_FORMAT, with file, line and what is wrong. */
DV_API dv_status dv_recipe_read(const char *path, dv_recipe **recipe, dv_error *error);

/* The same from memory, of which nothing is needed afterwards; `name` is what messages call it. */
DV_API dv_status dv_recipe_parse(const char *name, const char *text, size_t bytes, dv_recipe **recipe, dv_error *error);
DV_API void dv_recipe_free(dv_recipe *recipe);

/* The options in the order of the file; NULL past the last. */
DV_API const dv_recipe_line *dv_recipe_at(const dv_recipe *recipe, size_t index);

#ifdef __cplusplus
}
#endif

#endif
