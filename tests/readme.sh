#!/usr/bin/env bash
# Compiles each C program of README.md and docs/library.md (the blocks marked ```c) against the library, and runs it.
# A document without one fails.
set -euo pipefail
cd "$DV_TEMP"

# programs_of DOCUMENT: compiles and runs its programs.
programs_of() {
    local name source count=0
    name=$(basename "$1" .md)
    awk -v name="$name" '/^```c$/ { inside = 1; file = sprintf("%s_%02d.c", name, ++count); next }
         /^```/ { inside = 0 }
         inside { print > file }' "$DV_SOURCE_DIR/$1"
    for source in "$name"_*.c; do
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
        echo "$1 has no block marked \`\`\`c"
        exit 1
    fi
}

programs_of README.md
programs_of docs/library.md
