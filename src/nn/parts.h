/* How a batch is cut into parts for threads, and workspace into arrays. The cut follows from the shape alone,
 * never from the number of threads: sums of parts, taken in their order, are the same for any number. */
#ifndef DV_NN_PARTS_H
#define DV_NN_PARTS_H

#include "nn/kernels/elementwise.h"
#include "nn/layer.h"

enum { DV_MAX_PARTS = 64 };

/* Elements begin .. end - 1 of each of the images first .. last - 1. */
typedef struct dv_part {
    size_t first, last;
    size_t begin, end;
} dv_part;

/* Parts of `images` of `elements` each, at most DV_MAX_PARTS: whole images, or where they are few pieces of
 * them that begin at whole chunks. */
size_t dv_part_count(size_t images, size_t elements);
dv_part dv_part_at(size_t images, size_t elements, size_t index);

/* The span of a part in each of its images. */
static inline dv_span dv_part_span(const dv_map *map, const dv_part *part) {
    return (dv_span){map->type, map->channels, part->begin, part->end};
}

/* Image `index` of a batch. NULL stays NULL. */
static inline const void *dv_image(const dv_map *map, const void *batch, size_t index) {
    size_t bytes = dv_map_image_elements(map) * dv_type_bytes(map->type);
    return batch ? (const char *)batch + index * bytes : NULL;
}

static inline void *dv_image_in(const dv_map *map, void *batch, size_t index) {
    size_t bytes = dv_map_image_elements(map) * dv_type_bytes(map->type);
    return batch ? (char *)batch + index * bytes : NULL;
}

/* What forward does to a span of one image, and backward where it has to know the mask of the output: `mask` is
 * that of the image. */
typedef void dv_forward_span(const dv_layer *layer, const dv_forward *call, const dv_span *span, size_t image);
typedef void dv_masked_span(const dv_layer *layer, const dv_backward *call, const dv_span *span, size_t image,
                            const uint8_t *mask);

/* Does it to all images of the call, whose parts threads share. The mask is loaded by slices, each into
 * `call->workspace`, where it is not kept as bits. */
void dv_forward_spans(const dv_layer *layer, const dv_forward *call, dv_forward_span *forward);
dv_status dv_masked_spans(const dv_layer *layer, const dv_backward *call, dv_masked_span *backward, dv_error *error);

/* Takes `bytes`, rounded up to whole cache lines, from a workspace at *offset. With workspace NULL only the
 * offset grows: so one function books a workspace and cuts it. */
void *dv_carve(void *workspace, size_t *offset, size_t bytes);

/* Fills an extended array (channels + DV_CHUNK entries) from its first `channels` entries. */
void dv_extend(float *values, size_t channels);

/* Writes the mask of the first `images` images of a layer's output, for kinds that do not while they make it. */
void dv_write_mask(const dv_map *map, size_t images, const void *output, uint8_t *mask);

/* Sets images first .. last - 1, of `bytes` each, to zero: those that are not there, where they would count in a sum.
 */
void dv_clear_images(void *batch, size_t bytes, size_t first, size_t last);

#endif
