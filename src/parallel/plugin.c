/* Finding the engine: a shared object beside the program or the library, opened when it is needed. */
#define _GNU_SOURCE /* dladdr; NOLINT(bugprone-reserved-identifier) */
#include "base/status.h"
#include "parallel/world.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define PLUGIN "division-mpi.so"

enum { PATH_BYTES = 4096 };

int dv_world_launched(void) {
    static const char *const counts[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const char *count = getenv(counts[i]);
        if (count != NULL)
            return strtol(count, NULL, 10) > 1;
    }
    return getenv("PMIX_RANK") != NULL || getenv("PMI_RANK") != NULL;
}

/* ---- where it may be ------------------------------------------------------------------------- */

/* The folder that the library is in, or, where it is part of it, the program. */
static bool find_library(char path[PATH_BYTES]) {
    Dl_info found;
    return dladdr((const void *)&dv_world_launched, &found) != 0 && found.dli_fname != NULL &&
           snprintf(path, PATH_BYTES, "%s", found.dli_fname) < PATH_BYTES;
}

/* Without /proc, as in a root of one's own, the kernel says still how the program was called. */
static bool find_program(char path[PATH_BYTES]) {
    ssize_t length = readlink("/proc/self/exe", path, PATH_BYTES - 1);
    path[length > 0 ? length : 0] = '\0';
    if (length > 0)
        return true;
    const char *name = (const char *)getauxval(AT_EXECFN);
    char *called = name != NULL ? realpath(name, NULL) : NULL;
    bool fits = called != NULL && snprintf(path, PATH_BYTES, "%s", called) < PATH_BYTES;
    free(called);
    return fits;
}

/* Opens the plugin in a place, seen from the folder of a file. Its symbols are for all: MPI's own plugins need them. */
static void *try_place(const char *file, const char *place) {
    char path[PATH_BYTES];
    const char *slash = strrchr(file, '/');
    int length = slash == NULL ? 0 : (int)(slash - file);
    if (slash == NULL || snprintf(path, sizeof path, "%.*s/%s", length, file, place) >= (int)sizeof path ||
        access(path, R_OK) != 0)
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

static void *try_places(const char *file) {
    static const char *const places[] = {PLUGIN, "division/" PLUGIN, "../lib/division/" PLUGIN,
                                         "../" DV_LIBRARY_FOLDER "/division/" PLUGIN};
    void *library = NULL;
    for (size_t i = 0; library == NULL && i < sizeof places / sizeof *places; i++)
        library = try_place(file, places[i]);
    return library;
}

/* The plugin that the environment names, or the first that is found. What a plugin lacks is told by dlerror. */
static void *open_plugin(void) {
    char path[PATH_BYTES];
    const char *named = getenv("DV_MPI_PLUGIN");
    (void)dlerror();
    if (named != NULL && named[0] != '\0')
        return dlopen(named, RTLD_NOW | RTLD_GLOBAL);
    void *library = find_library(path) ? try_places(path) : NULL;
    return library == NULL && find_program(path) ? try_places(path) : library;
}

/* ---- opening it ------------------------------------------------------------------------------ */

dv_status dv_engine_load(const dv_engine **engine, void **library, dv_error *error) {
    *library = open_plugin();
    if (*library == NULL) {
        const char *why = dlerror();
        return dv_fail(error, DV_ERROR_UNSUPPORTED, "%.150s: install MPI ('scripts/setup mpi') and build again",
                       why != NULL ? why : "the plugin " PLUGIN " is not there, which speaks to MPI");
    }
    *engine = dlsym(*library, DV_ENGINE_SYMBOL);
    if (*engine != NULL && (*engine)->version == DV_ENGINE_VERSION)
        return DV_OK;
    dv_engine_unload(*library);
    return dv_fail(error, DV_ERROR_UNSUPPORTED, "the plugin " PLUGIN " is of another version: install both together");
}

void dv_engine_unload(void *library) {
    if (library != NULL)
        (void)dlclose(library);
}

/* The plugin stays open: not every MPI can be closed and opened again. */
dv_status dv_engine_name(char text[DV_ENGINE_NAME_BYTES], dv_error *error) {
    const dv_engine *engine;
    void *library;
    DV_NEED(text);
    DV_TRY(dv_engine_load(&engine, &library, error));
    snprintf(text, DV_ENGINE_NAME_BYTES, "%s", engine->library());
    return DV_OK;
}
