/* Finds the processor's instruction sets and picks one, once. */
#include "base/cpu.h"

#include "base/status.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

static const char *const names[DV_ISA_COUNT] = {
    [DV_ISA_SCALAR] = "scalar", [DV_ISA_SSE2] = "sse2",     [DV_ISA_NEON] = "neon",
    [DV_ISA_AVX2] = "avx2",     [DV_ISA_AVX512] = "avx512", [DV_ISA_AMX] = "amx",
};

const char *dv_isa_name(dv_isa isa) {
    return (unsigned)isa < DV_ISA_COUNT ? names[isa] : "unknown";
}

#if defined(__x86_64__)

/* Linux gives a process the tiles' registers when it asks for them; other systems are not known to. */
static int tiles_granted(void) {
#if defined(__linux__)
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#else
    return 0;
#endif
}

/* Tiles are 16 rows of 64 bytes wherever there are any: nobody has to be asked for their size. */
static int has_amx(void) {
    enum { BF16 = 1 << 22, TILES = 1 << 24 };
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & BF16) && (d & TILES) && tiles_granted();
}

int dv_amx_is_half_hidden(void) {
    unsigned bytes = 0, b, rows = 0, d; /* leaf 0x1d, palette 1: they stay 0 if there is no such leaf */
    (void)__get_cpuid_count(0x1d, 1, &bytes, &b, &rows, &d);
    return has_amx() && (bytes == 0 || rows == 0);
}

int dv_isa_available(dv_isa isa) {
    switch (isa) {
    case DV_ISA_SCALAR:
    case DV_ISA_SSE2:
        return 1;
    case DV_ISA_AVX2:
        return __builtin_cpu_supports("avx2"); /* every processor with AVX2 has F16C too */
    case DV_ISA_AVX512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    case DV_ISA_AMX:
        return dv_isa_available(DV_ISA_AVX512) && has_amx();
    default:
        return 0;
    }
}

#else

int dv_amx_is_half_hidden(void) {
    return 0;
}

int dv_isa_available(dv_isa isa) {
#if defined(__aarch64__)
    return isa == DV_ISA_SCALAR || isa == DV_ISA_NEON;
#else
    return isa == DV_ISA_SCALAR;
#endif
}

#endif

static dv_isa fastest(void) {
    int isa = DV_ISA_COUNT - 1;
    while (!dv_isa_available((dv_isa)isa))
        isa--;
    return (dv_isa)isa;
}

/* The set that DV_ISA asks for, or the fastest where it asks for none or for one that is not here. */
static dv_status pick(dv_isa *isa, dv_error *error) {
    *isa = fastest();
    const char *wish = getenv("DV_ISA");
    if (!wish || !*wish)
        return DV_OK;
    for (int i = 0; i < DV_ISA_COUNT; i++) {
        if (strcmp(wish, names[i]) != 0)
            continue;
        if (!dv_isa_available((dv_isa)i))
            return dv_fail(error, DV_ERROR_OPTION, "DV_ISA=%s: this processor or build does not have it: unset it",
                           wish);
        *isa = (dv_isa)i;
        return DV_OK;
    }
    return dv_fail(error, DV_ERROR_OPTION, "DV_ISA=%s: unknown: use scalar, sse2, avx2, avx512, amx or neon", wish);
}

/* The choice plus one; zero until it is made. Threads that race to make it make the same one. */
static atomic_int picked;

dv_isa dv_isa_current(void) {
    int known = atomic_load_explicit(&picked, memory_order_relaxed);
    if (known)
        return (dv_isa)(known - 1);
    dv_isa isa;
    (void)pick(&isa, NULL);
    dv_isa_force(isa);
    return isa;
}

void dv_isa_force(dv_isa isa) {
    atomic_store_explicit(&picked, (int)isa + 1, memory_order_relaxed);
}

dv_status dv_isa_picked(dv_isa *isa, dv_error *error) {
    if (!isa)
        return dv_fail(error, DV_ERROR_ARGUMENT, "dv_isa_picked: isa is NULL");
    dv_isa wish;
    dv_status status = pick(&wish, error);
    *isa = dv_isa_current();
    return status;
}
