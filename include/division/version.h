/* The version of the library, in one place: CMake, pkg-config, the name of the shared library and the program take it
 * from here.
 *
 * The version says what there is, the ABI number what runs together. A program runs with the library
 * whose headers it was compiled with, and with later ones of the same ABI number: the shared library carries it in its
 * name (libdivision.so.1), so that the dynamic linker finds no other. What else links or loads the library can ask:
 *
 *     if (dv_abi() != DV_ABI)
 *         ... compiled with headers of another library
 *
 * The number grows with a change that a compiled program would not survive: of a public struct, of a constant, of the
 * parameters of a function. New functions, structs and constants leave it. tests/abi.sh holds the headers to what
 * scripts/abi has recorded of them.
 *
 * - Threads: Any thread may call any function here at any time.
 * - Fork: A child may call them too.
 * - Freeing: There is nothing to free: text is static. */
#ifndef DIVISION_VERSION_H
#define DIVISION_VERSION_H

#include <division/export.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DV_VERSION_MAJOR 0
#define DV_VERSION_MINOR 1
#define DV_VERSION_PATCH 0
#define DV_ABI 1

/* "0.1.0". */
#define DV_VERSION DV_VERSION_TEXT(DV_VERSION_MAJOR, DV_VERSION_MINOR, DV_VERSION_PATCH)
#define DV_VERSION_TEXT(major, minor, patch) DV_VERSION_QUOTED(major, minor, patch)
#define DV_VERSION_QUOTED(major, minor, patch) #major "." #minor "." #patch

/* Those of the library in use, which may be another than the one whose headers a program was compiled with. */
DV_API const char *dv_version(void);
DV_API int dv_abi(void);

#ifdef __cplusplus
}
#endif

#endif
