/* Standard streams, and how OpenMP's threads wait.
 *
 * Threads that spin while they wait for each other keep, on a busy machine, the very thread they wait for from running:
 * training becomes several times slower. Threads that sleep at once take microseconds to wake, thousands of times a
 * step where layers are small. So they spin for about as long as waking takes, and then sleep. OpenMP's libraries read
 * how to wait from the environment when they are loaded, which is before main: so the program sets it and starts itself
 * once more.
 */
#include "start.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/types.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

/* Looks at what a thread waits for: 10 to 40 microseconds of them. Of GCC's library; others sleep at once. */
#define SPINS "1000"

void start_with_open_streams(void) {
    for (int number = STDIN_FILENO; number <= STDERR_FILENO; number++) {
        if (fcntl(number, F_GETFD) >= 0 || errno != EBADF)
            continue;
        int flags = number == STDIN_FILENO ? O_WRONLY : O_RDONLY; /* the other way round: EBADF, as if closed */
        if (open("/dev/null", flags) < 0)
            (void)open("/", O_RDONLY); /* in a chroot */
    }
}

/* True if the environment says how threads wait: the standard's variable, or one of the libraries' own. */
static int is_told_how_to_wait(void) {
    static const char *const names[] = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]) != NULL)
            return 1;
    return 0;
}

/* Without /proc, as in a root of one's own, the kernel says still how the program was called. */
size_t start_program_path(char *path, size_t bytes) {
    ssize_t length = readlink("/proc/self/exe", path, bytes - 1);
    path[length > 0 ? length : 0] = '\0';
    if (length <= 0) {
        const char *name = (const char *)getauxval(AT_EXECFN);
        char *called = name != NULL ? realpath(name, NULL) : NULL;
        snprintf(path, bytes, "%s", called != NULL ? called : "");
        free(called);
    }
    return strlen(path);
}

/* By its path, not as /proc/self/exe: under an emulator that is the emulator. What execv can't do is left. */
void start_with_patient_threads(char **argv) {
    char path[PATH_BYTES];
    if (is_told_how_to_wait())
        return; /* by the user, or by the call before this one */
    size_t length = start_program_path(path, sizeof path);
    if (length == 0 || length + 1 == sizeof path || setenv("GOMP_SPINCOUNT", SPINS, 1) != 0 ||
        setenv("OMP_WAIT_POLICY", "passive", 1) != 0)
        return;
    execv(path, argv);
}
