/* Maps made up from a seed, for trying things where no data is at hand. They look like the activations of
 * a network that sees natural images: smooth at large, less so at small scales, cut by a few hard edges that
 * all channels of an image see, and in many channels zero over about half of the area.
 *
 * - Threads: Any thread may call it at any time, each with memory of its own.
 * - Fork: A child may call it too.
 * - Freeing: The caller owns all memory. */
#ifndef DIVISION_SYNTHETIC_H
#define DIVISION_SYNTHETIC_H

#include <division/codec.h>
#include <division/export.h>
#include <division/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fills `dst`, f32 whatever the map's type, with the map's shape in the map's layout. Elements are in [0, 16), and
 * the same on every machine. The layout orders them and changes none. */
DV_API dv_status dv_synthetic_map(const dv_map *map, uint64_t seed, float *dst, dv_error *error);

#ifdef __cplusplus
}
#endif

#endif
