/* Passes: who makes them, and what is the same whoever did. */
#include "nn/pass.h"

#include "base/status.h"
#include "nn/choices.h"

const dv_pass_maker *dv_pass_forced;

const dv_pass_maker *const dv_pass_makers[DV_PASS_MAKERS] = {&dv_matrix_maker, &dv_winograd_maker, &dv_widened_maker,
                                                             &dv_onednn_maker};

int dv_pass_expected(dv_pass_kind kind, const dv_convolution_shape *shape) {
    int i = 0;
    while (i < DV_PASS_MAKERS - 1 && !dv_pass_makers[i]->is_expected(kind, shape))
        i++;
    return i;
}

dv_status dv_pass_new(dv_pass **pass, struct dv_choices *choices, dv_pass_kind kind, const dv_convolution_shape *shape,
                      const char *name, dv_error *error) {
    int choice = -1;
    if (choices)
        DV_TRY(dv_choices_note(choices, kind, shape, name, &choice, error));
    const dv_pass_maker *maker =
        dv_pass_makers[choice >= 0 ? choices->at[choice].maker : dv_pass_expected(kind, shape)];
    if (dv_pass_forced && dv_pass_forced->suits(kind, shape))
        maker = dv_pass_forced;
    DV_TRY(maker->make(pass, kind, shape, name, error));
    (*pass)->choice = choice;
    return DV_OK;
}

void dv_pass_free(dv_pass *pass) {
    if (pass)
        pass->methods->destroy(pass);
}

dv_status dv_pass_pack_weights(dv_pass *pass, const float *plain, void *packed, void *workspace, const void **weights,
                               dv_error *error) {
    return pass->methods->pack_weights(pass, plain, packed, workspace, weights, error);
}

dv_status dv_pass_run(dv_pass *pass, const dv_pass_arrays *arrays, dv_error *error) {
    return pass->methods->run(pass, arrays, error);
}
