/* The layers' kernels compiled for AVX2. */
#define DV_KERNELS dv_elementwise_avx2
#include "nn/kernels/elementwise_template.h"
