/* The parts of `division info`. */
#ifndef DV_CLI_INFO_H
#define DV_CLI_INFO_H

/* --passes: for which network. */
typedef struct info_passes {
    const char *model; /* NULL: it was not asked for */
    const char *tune;
    int batch, precision, threads, as_json;
} info_passes;

/* Returns the exit code. */
int info_print_passes(const info_passes *asked);

#endif
