/* Passes: who makes them, and what is the same whoever did. */
#include "nn/pass.h"

#include <string.h>

bool dv_pass_force_onednn;

dv_status dv_pass_new(dv_pass **pass, dv_pass_kind kind, const dv_convolution_shape *shape, const char *name,
                      dv_error *error) {
    if (!dv_pass_force_onednn && dv_winograd_suits(shape))
        return dv_winograd_pass_new(pass, kind, shape, name, error);
    if (!dv_pass_force_onednn && dv_matrix_suits(kind, shape))
        return dv_matrix_pass_new(pass, kind, shape, name, error);
    return dv_onednn_pass_new(pass, kind, shape, name, error);
}

void dv_pass_free(dv_pass *pass) {
    if (pass)
        pass->methods->destroy(pass);
}

bool dv_pass_is_reference(const dv_pass *pass) {
    return strncmp(pass->kernel, "ref", 3) == 0;
}

dv_status dv_pass_pack_weights(dv_pass *pass, const float *plain, void *packed, void *workspace, const void **weights,
                               dv_error *error) {
    return pass->methods->pack_weights(pass, plain, packed, workspace, weights, error);
}

dv_status dv_pass_run(dv_pass *pass, const dv_pass_arrays *arrays, dv_error *error) {
    return pass->methods->run(pass, arrays, error);
}
