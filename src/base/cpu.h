/* Which instruction set the kernels use. */
#ifndef DV_BASE_CPU_H
#define DV_BASE_CPU_H

#include <division/info.h>

/* The set in use, as dv_isa_picked, for code that dispatches. */
dv_isa dv_isa_current(void);

/* Makes `isa` the set in use from now on, for tests that compare them. It must be available. Not
 * while other threads are in the library. */
void dv_isa_force(dv_isa isa);

/* Which processor this is, as it says itself: "AuthenticAMD 25.17.1", "unknown" where it does not. Static. */
const char *dv_processor_signature(void);

/* Whether the processor has AMX but does not say how large its tiles are, as in some virtual machines: a library that
 * believes it sets up tiles of no size, and dies of an illegal instruction. */
int dv_amx_is_half_hidden(void);

#endif
