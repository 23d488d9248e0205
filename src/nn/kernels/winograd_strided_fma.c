/* Winograd's kernels for stride 2 compiled for AVX2 and FMA. */
#define DV_STRIDED dv_winograd_strided_fma
#define DV_STRIDED_BACK dv_winograd_strided_back_fma
#include "nn/kernels/winograd_strided_template.h"
