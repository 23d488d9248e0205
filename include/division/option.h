/* Options that are written behind a name: "division:block=8,bits=2". Codecs and methods have tables of them, which
 * can be asked for.
 *
 * Threads, fork, freeing. Tables are static and never change: any thread may read them, and nothing is freed. */
#ifndef DIVISION_OPTION_H
#define DIVISION_OPTION_H

#include <stdint.h>

/* One option, for help texts and checks. All text is static. */
typedef struct dv_option {
    const char *name;
    const char *help;
    int32_t minimum, maximum, preset;
    const char *const *words; /* names of minimum..maximum, or NULL where the option is a number */
    int power_of_two;         /* only powers of two are taken */
} dv_option;

#endif
