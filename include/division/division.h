/* All of libdivision that is promised, in one header. The folder `tools` is not: what is there belongs to the program.
 *
 *     version, status, threads, info      what the library is, how its functions fail, how many threads they use
 *     codec, packed, synthetic            maps of activations in few bits, the same for other languages; maps to try
 * that with graph, layers, models               networks: building, planning, running data labelled images and batches
 * of them train, checkpoint, folder, recipe   training, its files, and files of its options optimizer how parameters
 * follow their gradients option, options, training           options by name; a training from them to its folder
 *     parallel                            processes on several machines that train together
 *
 * - Threads, fork, freeing: The rules stand at the top of each header. */
#ifndef DIVISION_DIVISION_H
#define DIVISION_DIVISION_H

#include <division/budget.h>
#include <division/checkpoint.h>
#include <division/codec.h>
#include <division/data.h>
#include <division/export.h>
#include <division/folder.h>
#include <division/graph.h>
#include <division/info.h>
#include <division/layers.h>
#include <division/models.h>
#include <division/onnx.h>
#include <division/optimizer.h>
#include <division/option.h>
#include <division/options.h>
#include <division/packed.h>
#include <division/parallel.h>
#include <division/predictor.h>
#include <division/recipe.h>
#include <division/status.h>
#include <division/synthetic.h>
#include <division/threads.h>
#include <division/train.h>
#include <division/training.h>
#include <division/tune.h>
#include <division/version.h>

#endif
