/* The processor's name for itself: two machines on which it differs may not find the same kernel fastest. */
#include "base/cpu.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static char signature[64] = "unknown";

#if defined(__x86_64__)

/* Vendor, family, model and stepping. Where the family or the model has a second part, it is in bits of its own. */
static void find_signature(void) {
    unsigned a, vendor[3], b, c, d;
    if (!__get_cpuid(0, &a, &vendor[0], &vendor[2], &vendor[1]) || !__get_cpuid(1, &a, &b, &c, &d))
        return;
    unsigned family = a >> 8 & 15, model = a >> 4 & 15;
    if (family == 6 || family == 15)
        model += (a >> 16 & 15) << 4;
    if (family == 15)
        family += a >> 20 & 255;
    snprintf(signature, sizeof signature, "%.12s %u.%u.%u", (const char *)vendor, family, model, a & 15);
}

#else

/* The register that AArch64 has for it, as Linux shows it. */
static void find_signature(void) {
    FILE *stream = fopen("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1", "r");
    char text[32];
    if (stream && fgets(text, sizeof text, stream))
        snprintf(signature, sizeof signature, "midr %.*s", (int)strcspn(text, "\n"), text);
    if (stream)
        fclose(stream);
}

#endif

const char *dv_processor_signature(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_signature);
    return signature;
}
