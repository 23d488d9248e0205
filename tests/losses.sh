#!/usr/bin/env bash
# The program that scripts/losses trains with: it compiles against the public headers as they are, and two calls print
# the same planned bytes and losses, to the last bit.
set -euo pipefail
cd "$DV_TEMP"

# shellcheck disable=SC2086 # DV_CFLAGS is a list
"$DV_CC" -std=c11 -Wall -Wextra -Werror $DV_CFLAGS -I"$DV_SOURCE_DIR/include" "$DV_SOURCE_DIR/bench/losses.c" -o losses \
    -L"$DV_BUILD_DIR" -ldivision -Wl,-rpath,"$DV_BUILD_DIR"

for network in "dropout 8" "resnet20 16"; do
    # shellcheck disable=SC2086 # a name and a side
    for result in first second; do
        ./losses $network f32 division 3 2 >"$result"
    done
    cat first
    cmp first second
    [[ $(grep -Ec '^(planned [0-9]+|(evaluation )?0x1\.[0-9a-f]+p[+-][0-9]+)$' first) == 5 ]] || { echo "expected planned bytes and four losses"; exit 1; }
done
