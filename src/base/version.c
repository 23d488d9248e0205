/* The version that the library was built as. */
#include <division/version.h>

const char *dv_version(void) {
    return DV_VERSION;
}

int dv_abi(void) {
    return DV_ABI;
}
