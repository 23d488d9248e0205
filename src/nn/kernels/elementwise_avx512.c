/* The layers' kernels compiled for AVX-512 F, BW, DQ and VL. */
#define DV_KERNELS dv_elementwise_avx512
#include "nn/kernels/elementwise_template.h"
