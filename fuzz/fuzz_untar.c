/* Fuzzes the reader of archives that `data fetch` unpacks. Whatever it is given, it writes nothing outside of its
 * folder. */
#define _GNU_SOURCE /* memfd_create */
#include "untar.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char outer[] = "/tmp/fuzz-untar-XXXXXX";

/* The folder around the one that is unpacked into has that one and nothing else. */
static void check_outer(void) {
    DIR *folder = opendir(outer);
    struct dirent *entry;
    int count = 0;
    while (folder != NULL && (entry = readdir(folder)) != NULL)
        count++;
    if (folder == NULL || count > 3)
        abort();
    closedir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int descriptor = -1;
    char path[64], folder[64];
    dv_error error;
    size_t files;
    if (descriptor < 0) {
        descriptor = memfd_create("fuzz", MFD_CLOEXEC);
        if (mkdtemp(outer) == NULL)
            abort();
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    snprintf(folder, sizeof folder, "%s/in", outer);
    if (ftruncate(descriptor, 0) != 0 || pwrite(descriptor, data, size, 0) != (ssize_t)size)
        abort();
    (void)untar(path, folder, &files, &error);
    check_outer();
    return 0;
}
