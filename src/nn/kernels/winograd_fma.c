/* Winograd's kernels compiled for AVX2 and FMA. */
#define DV_KERNELS dv_winograd_fma
#define DV_STRIDED dv_winograd_strided_fma
#define DV_STRIDED_BACK dv_winograd_strided_back_fma
#include "nn/kernels/winograd_template.h"
