/* Winograd's kernels compiled for NEON. */
#define DV_KERNELS dv_winograd_neon
#define DV_STRIDED dv_winograd_strided_neon
#define DV_STRIDED_BACK dv_winograd_strided_back_neon
#include "nn/kernels/winograd_template.h"
