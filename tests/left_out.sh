#!/usr/bin/env bash
# What a test leaves out is shown as skipped, and told at the end of `make test` with its reason; a C test that skips gives one.
set -euo pipefail
cd "$DV_TEMP"

fail() {
    echo "$*"
    exit 1
}

# ends_with CODE SCRIPT: a test that is SCRIPT ends so.
ends_with() {
    local code=0
    "$DV_SOURCE_DIR/tests/or_skipped" sh -c "$2" >told || code=$?
    ((code == $1)) || fail "a test that is '$2' ends with $code, not $1"
}
ends_with 0 'echo all is well'
ends_with 77 'echo "left out: a part: why"'
ends_with 77 'echo "[  SKIPPED ] a_part"'
ends_with 3 'echo "left out: a part: why"; exit 3'

mkdir -p build/Testing/Temporary
cat >build/Testing/Temporary/LastTest.log <<'END'
1/3 Testing: test_first
1/3 Test: test_first
Output:
left out: a part: there is no such thing
left out: a part: there is no such thing
Test Passed.
2/3 Testing: second
Output:
nothing is left out: of this line
Test Passed.
3/3 Testing: third
Output:
left out: another
END
"$DV_SOURCE_DIR/tests/left_out" build >told
printf '\nLeft out:\n  test_first: a part: there is no such thing\n  third: another\n' >expected
diff expected told || fail "it tells something else"
sed -i '/^left out/d' build/Testing/Temporary/LastTest.log
[[ -z $("$DV_SOURCE_DIR/tests/left_out" build) ]] || fail "it tells of something where nothing is left out"

! grep -n '\bskip();' "$DV_SOURCE_DIR"/tests/test_*.c || fail "these tests skip without a reason: call leave_out()"
