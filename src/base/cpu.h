/* Which instruction set the kernels use. */
#ifndef DV_BASE_CPU_H
#define DV_BASE_CPU_H

#include <division/info.h>

/* The set in use, as dv_isa_picked, for code that dispatches. */
dv_isa dv_isa_current(void);

/* Makes `isa` the set in use from now on, for tests that compare them. It must be available. Not
 * while other threads are in the library. */
void dv_isa_force(dv_isa isa);

#endif
