/* Names of weights that PyTorch programs write otherwise than torchvision does today. */
#include "train/torch.h"

#include <string.h>

/* DataParallel, torch.compile and Lightning put the network into a member of their own. */
static const char *const prefixes[] = {"module.", "_orig_mod.", "model."};

static bool all_begin_with(const dv_array_file *file, const char *prefix) {
    for (size_t i = 0; i < file->array_count; i++)
        if (strncmp(file->arrays[i].name, prefix, strlen(prefix)) != 0)
            return false;
    return true;
}

static void strip(dv_array_file *file, const char *prefix) {
    for (size_t i = 0; i < file->array_count; i++)
        file->arrays[i].name += strlen(prefix);
}

/* "features.denseblock1.denselayer2.norm.1.weight", as it was until 2017: "norm1" since. */
static void mend_dense(char *name) {
    static const char *const parts[] = {".norm.", ".conv."};
    char *layer = strstr(name, ".denselayer");
    for (size_t i = 0; layer != NULL && i < 2; i++) {
        char *part = strstr(layer, parts[i]), *dot = part != NULL ? part + strlen(parts[i]) - 1 : NULL;
        if (dot != NULL && (dot[1] == '1' || dot[1] == '2') && dot[2] == '.')
            memmove(dot, dot + 1, strlen(dot));
    }
}

void dv_torch_mend_names(dv_array_file *file) {
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (all_begin_with(file, prefixes[i]))
            strip(file, prefixes[i]);
    for (size_t i = 0; i < file->array_count; i++)
        mend_dense(file->pool + (file->arrays[i].name - file->pool));
}
