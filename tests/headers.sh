#!/usr/bin/env bash
# Each public header compiles alone, in C11 and in C++, without warnings; the promised ones include none of tools/;
# division.h includes all the promised ones; each says what threads may do, what a fork leaves, and what is freed when.
set -uo pipefail
cd "$DV_TEMP" || exit 1
include=$DV_SOURCE_DIR/include failed=0
warnings=(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror)

complain() {
    echo "FAILED: $*"
    failed=1
}

mapfile -t headers <<<"$(cd "$include" && find division -name '*.h' | sort)"
for header in "${headers[@]}"; do
    printf '#include <%s>\nint main(void) { return 0; }\n' "$header" >one.c
    "$DV_CC" -std=c11 -Wstrict-prototypes "${warnings[@]}" -I"$include" -fsyntax-only one.c ||
        complain "$header does not compile alone in C"
    [[ $header == */tools/* ]] && continue
    ! grep -n '#include.*tools/' "$include/$header" || complain "$header is promised, and includes what is not"
    top=$(sed '/^#ifndef/,$d' "$include/$header")
    for word in threads fork freeing; do
        [[ ${top,,} == *${word}[:,]* ]] || complain "the top of $header says nothing of: $word"
    done
    grep -q "#include <$header>" "$include/division/division.h" || [[ $header == */division.h ]] ||
        complain "division/division.h does not include $header"
done

if command -v c++ >/dev/null; then
    for header in "${headers[@]}"; do
        [[ $header != */tools/* ]] || continue
        printf '#include <%s>\nint main() { return 0; }\n' "$header" >one.cpp
        c++ -std=c++11 "${warnings[@]}" -I"$include" -fsyntax-only one.cpp || complain "$header does not compile alone in C++"
    done
else
    echo "c++ is missing: the headers were compiled as C alone"
fi
exit "$failed"
