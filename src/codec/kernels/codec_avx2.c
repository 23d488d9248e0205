/* The codecs' kernels compiled for AVX2 and F16C. */
#define DV_KERNELS dv_codec_kernels_avx2
#include "codec/kernels/template.h"
