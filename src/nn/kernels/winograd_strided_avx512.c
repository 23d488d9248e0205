/* Winograd's kernels for stride 2 compiled for AVX-512 F. */
#define DV_STRIDED dv_winograd_strided_avx512
#define DV_STRIDED_BACK dv_winograd_strided_back_avx512
#include "nn/kernels/winograd_strided_template.h"
