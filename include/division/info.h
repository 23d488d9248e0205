/* What this build found on this machine, and the libraries it stands on.
 *
 * - Threads: Any thread may call any function here at any time.
 * - Fork: A child may call them too, and has the instruction set that its parent picked.
 * - Freeing: There is nothing to free: text is static. */
#ifndef DIVISION_INFO_H
#define DIVISION_INFO_H

#include <division/export.h>
#include <division/status.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The instruction sets that kernels exist for, slowest first. Which of them a build has depends on
 * the processor family it is for: x86-64 has scalar, sse2, avx2, avx512, amx; AArch64 scalar, neon. */
typedef enum dv_isa {
    DV_ISA_SCALAR,
    DV_ISA_SSE2,
    DV_ISA_NEON,
    DV_ISA_AVX2,
    DV_ISA_AVX512,
    DV_ISA_AMX, /* AVX-512, and matrix tiles for convolutions in bf16 */
    DV_ISA_COUNT
} dv_isa;

/* "scalar", "sse2", ...; the name DV_ISA takes. Static. */
DV_API const char *dv_isa_name(dv_isa isa);

/* True if this build has kernels for `isa` and this processor runs them. */
DV_API int dv_isa_available(dv_isa isa);

/* The set in use: the fastest available, or the one the environment variable DV_ISA names. Picked
 * once, at the first call. A DV_ISA that is unknown or not available is an error here (and `isa` is
 * then the fastest), so that a program can say so at its start. */
DV_API dv_status dv_isa_picked(dv_isa *isa, dv_error *error);

/* The libraries in use: name and version of the index-th, or NULL past the last. Static. */
DV_API const char *dv_library_name_at(size_t index);
DV_API const char *dv_library_version_at(size_t index);

#ifdef __cplusplus
}
#endif

#endif
