#!/usr/bin/env bash
# Compiles each C program of README.md (the blocks marked ```c) against the library, and runs it.
# A README without one fails.
set -euo pipefail
cd "$DV_TEMP"

awk '/^```c$/ { inside = 1; file = sprintf("readme_%02d.c", ++count); next }
     /^```/ { inside = 0 }
     inside { print > file }' "$DV_SOURCE_DIR/README.md"

count=0
for source in readme_*.c; do
    [[ -e $source ]] || break
    echo "$source:"
    cat "$source"
    # shellcheck disable=SC2086 # DV_CFLAGS is a list
    "$DV_CC" -std=c11 -Wall -Wextra -Werror $DV_CFLAGS -I"$DV_SOURCE_DIR/include" "$source" -o "${source%.c}" \
        -L"$DV_BUILD_DIR" -ldivision -Wl,-rpath,"$DV_BUILD_DIR"
    echo "prints:"
    "./${source%.c}"
    count=$((count + 1))
done
if ((count == 0)); then
    echo "README.md has no block marked \`\`\`c"
    exit 1
fi
