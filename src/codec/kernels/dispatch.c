/* From the instruction set in use to its table of kernels. */
#include "base/cpu.h"
#include "codec/kernels/kernels.h"

static const dv_codec_kernels *const tables[DV_ISA_COUNT] = {
    [DV_ISA_SCALAR] = &dv_codec_kernels_reference,
#if defined(__x86_64__)
    [DV_ISA_SSE2] = &dv_codec_kernels_baseline,
    [DV_ISA_AVX2] = &dv_codec_kernels_avx2,
    [DV_ISA_AVX512] = &dv_codec_kernels_avx512,
    [DV_ISA_AMX] = &dv_codec_kernels_avx512, /* tiles are for convolutions */
#elif defined(__aarch64__)
    [DV_ISA_NEON] = &dv_codec_kernels_baseline,
#endif
};

const dv_codec_kernels *dv_codec_kernels_current(void) {
    return tables[dv_isa_current()];
}
