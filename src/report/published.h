/* Figures that were published, to stand beside ours: from the papers of DIVISION, ActNN, BLPA and AC-GC, as DIVISION's
 * authors report them. Methods are meant as they are by default here. */
#ifndef DV_REPORT_PUBLISHED_H
#define DV_REPORT_PUBLISHED_H

/* Top-1 in percent on the test images, of one seed and its best epoch; NaN if there is none. `data` is a data set as in
 * "cifar10:DIR". */
double dv_published_accuracy(const char *model, const char *data, const char *method);

/* Bytes of activations of a batch; NaN if there are none. */
double dv_published_bytes(const char *model, double batch, const char *method);

#endif
