#!/usr/bin/env bash
# Runs the programs in examples, in a short form: they do what they say. DV_BUILD_DIR has them, in examples.
set -euo pipefail
cd "$DV_TEMP"

fail() {
    echo "FAILED: $*"
    exit 1
}

# segment: an epoch is enough to tell most pixels, and too short for the 95 % that its 24 epochs come to.
"$DV_BUILD_DIR/examples/segment" 1 >output || fail "segment ends with $?"
accuracy=$(sed -n 's/^epoch  1: .* pixels right *\([0-9]*\)\..* %.*/\1/p' output)
((${accuracy:-0} >= 75)) || { cat output && fail "segment: expected 75 % of the pixels or more"; }
[[ $(tail -n 16 output | grep -c '^[.OHA]\{32\}   [.OHA]\{32\}$') == 16 ]] || { cat output && fail "segment: expected a picture"; }
! "$DV_BUILD_DIR/examples/segment" 1 nonsense >output 2>messages || fail "segment takes a method that is none"
grep -q '^segment: .*nonsense' messages || { cat messages && fail "segment does not say what is wrong with its method"; }
