#!/usr/bin/env bash
# Installs into a temporary prefix, and builds a small program with what is there: through pkg-config,
# shared and static, and through find_package. Each must print the version of the library. What is only for the program
# is neither installed nor exported.
set -euo pipefail
cd "$DV_TEMP"

cat >consumer.c <<'END'
#include <division/division.h>
#include <stdio.h>
int main(void) {
    return puts(dv_version()) < 0 || dv_abi() != DV_ABI;
}
END

# A fresh cache each: what one way finds must not help the next.
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.22)
project(consumer LANGUAGES C)
find_package(division REQUIRED)
add_executable(shared consumer.c)
target_link_libraries(shared PRIVATE division::division)
add_executable(static consumer.c)
target_link_libraries(static PRIVATE division::division-static)
END

cmake --install "$DV_BUILD_DIR" --prefix "$DV_TEMP/first" >/dev/null
mv first prefix # the prefix may be moved
export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find prefix -name division.pc)")
libraries=$(dirname "$(find prefix -name libdivision.so)")
version=$(pkg-config --modversion division)
abi=$(sed -n 's/^#define DV_ABI //p' prefix/include/division/version.h)

expect_version() {
    local printed
    printed=$("$@")
    echo "$*: $printed"
    [[ $printed == *"$version"* ]] || { echo "expected version $version"; exit 1; }
}

# shellcheck disable=SC2046,SC2086 # lists of flags
{
    "$DV_CC" $DV_CFLAGS consumer.c -o with_pkg_config $(pkg-config --cflags --libs division)
    "$DV_CC" $DV_CFLAGS consumer.c -o with_pkg_config_static $(pkg-config --cflags division) \
        "$libraries/libdivision.a" $(pkg-config --static --libs division | sed 's/-ldivision//')
}
expect_version env LD_LIBRARY_PATH="$libraries" ./with_pkg_config
expect_version ./with_pkg_config_static

cmake -S . -B consumer -DCMAKE_C_COMPILER="$DV_CC" -DCMAKE_C_FLAGS="$DV_CFLAGS" -DCMAKE_PREFIX_PATH="$PWD/prefix" >/dev/null
cmake --build consumer >/dev/null
expect_version consumer/shared
expect_version consumer/static

expect_version prefix/bin/division info
prefix/bin/division plan resnet18_cifar10 --elsewhere 2>/dev/null | grep '^layer4' >/dev/null || { echo "expected a recipe by its name"; exit 1; }

fail() {
    echo "FAILED: $*"
    exit 1
}

[[ ! -e prefix/include/division/tools ]] || fail "headers for the program alone are installed"
[[ $(readlink "$libraries/libdivision.so") == "libdivision.so.$abi" ]] || fail "the shared library is not named by DV_ABI, $abi"
if command -v nm >/dev/null; then
    # Exactly the promised functions are exported.
    cat prefix/include/division/*.h | tr '\n' ' ' | grep -oE 'DV_API [^;(]*\(' | grep -oE 'dv_[a-z0-9_]+\($' | tr -d '(' | sort >declared
    nm -D --defined-only "$libraries/libdivision.so" | awk '$3 ~ /^dv_/ { print $3 }' | sort >exported
    diff declared exported || fail "the shared library does not export what its headers declare"
fi
