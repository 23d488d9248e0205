/* The codecs' kernels compiled for AVX-512 (F, BW, DQ, VL). */
#define DV_KERNELS dv_codec_kernels_avx512
#include "codec/kernels/template.h"
