/* Fuzzes the reader of recipes, lines and JSON. Of what it accepts, names and values must be text, and names must
 * differ. */
#include <division/recipe.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    dv_recipe *recipe;
    dv_error error;
    const dv_recipe_line *one, *other;
    if (dv_recipe_parse("input", (const char *)data, size, &recipe, &error) != DV_OK)
        return 0;
    for (size_t i = 0; (one = dv_recipe_at(recipe, i)) != NULL; i++) {
        if (strlen(one->name) + strlen(one->value) > size)
            abort();
        for (size_t k = 0; k < i && (other = dv_recipe_at(recipe, k)) != NULL; k++)
            if (strcmp(one->name, other->name) == 0)
                abort();
    }
    dv_recipe_free(recipe);
    return 0;
}
