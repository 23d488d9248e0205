/* Winograd's kernels for stride 2 compiled for NEON. */
#define DV_STRIDED dv_winograd_strided_neon
#define DV_STRIDED_BACK dv_winograd_strided_back_neon
#include "nn/kernels/winograd_strided_template.h"
