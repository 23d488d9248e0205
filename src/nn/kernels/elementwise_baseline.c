/* The layers' kernels compiled for what every x86-64 (SSE2) or AArch64 (NEON) processor has. */
#define DV_KERNELS dv_elementwise_baseline
#include "nn/kernels/elementwise_template.h"
