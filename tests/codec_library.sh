#!/usr/bin/env bash
# libdivision_codec, which bindings carry, needs the C library alone; a program that has an OpenMP runtime can load it, and
# packs and unpacks with it.
set -euo pipefail
cd "$DV_TEMP"
library=$DV_BUILD_DIR/libdivision_codec.so
if [[ -n $DV_CFLAGS || $DV_PROGRAM == */emulated/* ]]; then
    echo "left out: a sanitizer's library, or an emulated one, is not the one that is carried"
    exit 77
fi

needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort | tr '\n' ' ')
for name in $needed; do
    [[ $name =~ ^(libc|libm|ld-linux-.*)\.so\.[0-9]+$ ]] || { echo "FAILED: it needs $name"; exit 1; }
done

cat >load.c <<'END'
#include <division/packed.h>
#include <dlfcn.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

static _Alignas(DV_PACKED_ALIGNMENT) char packed[1 << 16];
static float src[2 * 8 * 14 * 14], dst[2 * 8 * 14 * 14];

int main(int count, char **words) {
    static const char codec[] = "exact", map[] = "f32 nhwc 2x8x14x14";
    void *library = count > 1 ? dlopen(words[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library || omp_get_max_threads() < 1)
        return fprintf(stderr, "%s\n", dlerror()), 1;
    __typeof__(&dv_packed_encode) encode = (__typeof__(&dv_packed_encode))dlsym(library, "dv_packed_encode");
    __typeof__(&dv_packed_decode) decode = (__typeof__(&dv_packed_decode))dlsym(library, "dv_packed_decode");
    for (int i = 0; i < 2 * 8 * 14 * 14; i++)
        src[i] = (float)i;
    int failed = encode(codec, map, 1, 2, 3, src, packed, sizeof packed, NULL) != DV_OK ||
                 decode(codec, map, 1, 2, 3, packed, sizeof packed, dst, NULL) != DV_OK;
    return failed || memcmp(src, dst, sizeof src) != 0;
}
END
"$DV_CC" -fopenmp -I"$DV_SOURCE_DIR/include" load.c -o load -ldl
./load "$library" || { echo "FAILED: it cannot be loaded, or does not give back what it packed"; exit 1; }
