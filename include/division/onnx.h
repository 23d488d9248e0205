/* Export for inference: a network and its weights as a file that other programs run (ONNX, opset 13).
 *
 *     dv_onnx_options options = dv_onnx_options_default();
 *     options.fold = 1;
 *     dv_onnx_write("model.onnx", run, &options, &error);
 *
 * The file takes f32 images [batch, channels, sides...] as `images` and gives `logits`, the output of the last layer;
 * the batch may be of any size. Arrays have the names of parameters. Normalising is not part of it: notes say how.
 *
 * - Threads: Any thread may write a run that is not used meanwhile.
 * - Fork: A child may write a run as its parent may.
 * - Freeing: Nothing is held after the call. */
#ifndef DIVISION_ONNX_H
#define DIVISION_ONNX_H

#include <division/checkpoint.h>
#include <division/export.h>
#include <division/graph.h>
#include <division/status.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dv_onnx_options {
    int fold; /* 1: a batch norm right behind a convolution, of whose output nobody else takes anything, becomes part of
                 its weights; 0 */
    const char *name;     /* of the graph; NULL: "division" */
    const dv_note *notes; /* [note_count], into the file's metadata; the caller's */
    size_t note_count;
} dv_onnx_options;

DV_API dv_onnx_options dv_onnx_options_default(void);

/* Writes the graph of a run with its weights and running statistics, or replaces the file that is there. A layer that
 * ONNX has nothing for is DV_ERROR_UNSUPPORTED, with its name. `options` may be NULL: the defaults. */
DV_API dv_status dv_onnx_write(const char *path, const dv_run *run, const dv_onnx_options *options, dv_error *error);

#ifdef __cplusplus
}
#endif

#endif
