/* Choices: which maker computes each distinct pass of a graph, and how long each of them was measured to take.
 *
 * A graph takes note of its passes while its layers are prepared. Nothing is measured then, and every pass is by its
 * expected maker. dv_choices_measure times the makers that suit; whoever then changes `maker` has the layers prepared
 * again.
 *
 * Choices are kept in files, a line each. The file of a user (dv_choices_cache_path) spares the measuring; that of a
 * training (passes.txt) makes it go on with the same passes, and so with the same bits. */
#ifndef DV_NN_CHOICES_H
#define DV_NN_CHOICES_H

#include "nn/pass.h"

#include <division/tune.h>

typedef struct dv_choice {
    dv_pass_kind kind;
    dv_convolution_shape shape;
    int threads;
    char *layer;                    /* the one layer that it is for; NULL: for all that have none of their own */
    int maker;                      /* index of dv_pass_makers: who computes it */
    int expected;                   /* ... and who does where nothing was measured */
    double seconds[DV_PASS_MAKERS]; /* of packing weights and a run; 0: not measured, or it does not suit */
    size_t bytes[DV_PASS_MAKERS];   /* of packed weights and workspace, likewise */
} dv_choice;

typedef struct dv_choices {
    dv_choice *at;
    size_t count, capacity;
} dv_choices;

/* The number of the choice for a layer's pass, which is added with the expected maker if there is none. */
dv_status dv_choices_note(dv_choices *choices, dv_pass_kind kind, const dv_convolution_shape *shape, const char *layer,
                          int *index, dv_error *error);

/* Gives a layer a choice of its own, a copy of number `index`, and its number to `own`. DV_ERROR_UNSUPPORTED: a file
 * can't hold the layer's name. */
dv_status dv_choices_part(dv_choices *choices, int index, const char *layer, int *own, dv_error *error);
void dv_choices_unite(dv_choices *choices); /* takes all of these back; passes are to be made again */

void dv_choices_free(dv_choices *choices); /* what it owns */

/* Times the makers of a choice that have not been. Where only the expected one suits there is nothing to measure. */
dv_status dv_choice_measure(dv_choice *choice, dv_error *error);
bool dv_choice_is_measured(const dv_choice *choice);
int dv_choice_candidates(const dv_choice *choice); /* makers that suit */

/* The fastest of the makers that take `most` bytes or less. The expected one counts as a little faster than it is, so
 * that noise alone does not change the choice, and is taken where nothing was measured. */
int dv_choice_fastest(const dv_choice *choice, size_t most);

/* Multiplications and additions of a run. */
double dv_choice_operations(const dv_choice *choice);

/* "forward f32 images 8 channels 64 64 ...": a line of a file begins with it. */
enum { DV_CHOICE_TEXT_BYTES = DV_PASS_TEXT_BYTES };
const char *dv_choice_text(const dv_choice *choice, char text[DV_CHOICE_TEXT_BYTES]);

/* ---- files ---------------------------------------------------------------------------------- */

/* Where the user's choices for this processor, instruction set and these libraries are; false if there is no place. */
bool dv_choices_cache_path(char *path, size_t bytes);

/* Takes what a file says about these choices, which `found` counts: times, and with `makers` also who computes them,
 * and choices of single layers. A file that is not there, damaged, or of another processor says nothing. */
dv_status dv_choices_read(dv_choices *choices, const char *path, bool makers, size_t *found, dv_error *error);

/* Writes them to a file, behind the lines for other choices that it has. Its folder is made. */
dv_status dv_choices_write(const dv_choices *choices, const char *path, dv_error *error);

#endif
