/* The codecs' kernels compiled for what every x86-64 (SSE2) or AArch64 (NEON) processor has. */
#define DV_KERNELS dv_codec_kernels_baseline
#include "codec/kernels/template.h"
