/* From the instruction set in use to its table of kernels. */
#include "base/cpu.h"
#include "nn/kernels/elementwise.h"
#include "nn/kernels/matrix.h"
#include "nn/kernels/winograd.h"

static const dv_elementwise_kernels *const tables[DV_ISA_COUNT] = {
    [DV_ISA_SCALAR] = &dv_elementwise_reference,
#if defined(__x86_64__)
    [DV_ISA_SSE2] = &dv_elementwise_baseline,    [DV_ISA_AVX2] = &dv_elementwise_avx2,
    [DV_ISA_AVX512] = &dv_elementwise_avx512,    [DV_ISA_AMX] = &dv_elementwise_avx512, /* tiles are for convolutions */
#elif defined(__aarch64__)
    [DV_ISA_NEON] = &dv_elementwise_baseline,
#endif
};

const dv_elementwise_kernels *dv_elementwise(void) {
    return tables[dv_isa_current()];
}

static const dv_winograd_kernels *const winograd_tables[DV_ISA_COUNT] = {
#if defined(__x86_64__)
    [DV_ISA_AVX2] = &dv_winograd_fma,
    [DV_ISA_AVX512] = &dv_winograd_avx512,
    [DV_ISA_AMX] = &dv_winograd_avx512,
#elif defined(__aarch64__)
    [DV_ISA_NEON] = &dv_winograd_neon,
#endif
};

const dv_winograd_kernels *dv_winograd(void) {
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("fma"))
        return NULL;
#endif
    return winograd_tables[dv_isa_current()];
}

const dv_matrix_kernels *dv_matrix(void) {
#if defined(__x86_64__)
    if (dv_isa_current() == DV_ISA_AMX)
        return &dv_matrix_amx;
#endif
    return NULL;
}
