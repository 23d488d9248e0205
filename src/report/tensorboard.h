/* Event files of TensorBoard. */
#ifndef DV_REPORT_TENSORBOARD_H
#define DV_REPORT_TENSORBOARD_H

#include "report/data.h"
#include "report/text.h"

/* TensorBoard finds files by this name. It is always the same, so that a file written again replaces the one before. */
#define DV_TENSORBOARD_FILE "events.out.tfevents.0000000000.division"

/* Writes the figures of a run, epoch by epoch, as the bytes of an event file. Steps are those of the optimizer. The log
 * says how long an epoch took, and its file when the last one ended: wall times follow from both. */
void dv_tensorboard_write(const dv_run_folder *run, dv_text *bytes);

#endif
