/* What the program sees to before anything else. */
#ifndef DV_CLI_START_H
#define DV_CLI_START_H

#include <stddef.h>

/* Opens those of standard input, output and error that are closed, so that no file of ours gets their numbers and with
 * them what is printed. Reading and writing them fails as before. */
void start_with_open_streams(void);

/* Starts the program again, once, with threads that sleep while they wait for each other, unless the environment says
 * how they are to wait. Does nothing where it can't be done. */
void start_with_patient_threads(char **argv);

/* Writes the path of the program's own file, as much as there is room for; an empty one if nothing says it. Returns its
 * length. */
size_t start_program_path(char *path, size_t bytes);

#endif
