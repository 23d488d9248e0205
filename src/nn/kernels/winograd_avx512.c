/* Winograd's kernels compiled for AVX-512 F. */
#define DV_KERNELS dv_winograd_avx512
#define DV_STRIDED dv_winograd_strided_avx512
#define DV_STRIDED_BACK dv_winograd_strided_back_avx512
#include "nn/kernels/winograd_template.h"
