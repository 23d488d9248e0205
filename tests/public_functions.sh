#!/usr/bin/env bash
# Every public function that returns a status or frees something is called with NULL in test_null.c.
set -uo pipefail
missing=0
declarations=$(cat "$DV_SOURCE_DIR"/include/division/*.h | tr '\n' ' ' | grep -oE 'DV_API [^;]*;')
while read -r name; do
    if ! grep -q "[^a-z_]$name(" "$DV_SOURCE_DIR/tests/test_null.c"; then
        echo "FAILED: tests/test_null.c does not call $name with NULL"
        missing=1
    fi
done < <(grep -E '^DV_API (dv_status|void) [a-z_0-9]*(_free|_close)?\(' <<<"$declarations" |
    grep -E '^DV_API dv_status|_(free|close)\(' | grep -oE 'dv_[a-z0-9_]+\(' | tr -d '(')
exit "$missing"
