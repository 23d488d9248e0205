#!/usr/bin/env bash
# Every function of the headers that returns a status and takes a pointer beside the error's, or frees something, is
# called with NULL in test_null.c: those that are promised (DV_API) and those for the program (DV_TOOL).
set -uo pipefail
missing=0
declarations=$(cat "$DV_SOURCE_DIR"/include/division/{,tools/}*.h | tr '\n' ' ' | grep -oE '\<DV_(API|TOOL) [^;]*;' |
    sed 's/dv_error \*error//')
while read -r name; do
    if ! grep -q "[^a-z_]$name(" "$DV_SOURCE_DIR/tests/test_null.c"; then
        echo "FAILED: tests/test_null.c does not call $name with NULL"
        missing=1
    fi
done <<<"$(grep -E '^DV_[A-Z]+ (dv_status .*\(.*\*|void [a-z_0-9]*_(free|close)\()' <<<"$declarations" |
    grep -oE 'dv_[a-z0-9_]+\(' | tr -d '(')"
exit "$missing"
