#!/usr/bin/env bash
# Compiles the example of each guide (the block marked ```c) as the tests are compiled, with internal headers and the
# static library, and runs it. A guide without an example fails, and so does one with two.
set -euo pipefail
cd "$DV_TEMP"

fail() {
    echo "guides: $*"
    exit 1
}

# The compiler and flags of a test, from what the build was configured to do.
compile=$(sed -n 's|.*"command": "\(.*\) -o .* -c .*/tests/test_relu\.c".*|\1|p' "$DV_BUILD_DIR/compile_commands.json")
[[ -n $compile ]] || fail "$DV_BUILD_DIR/compile_commands.json does not say how tests are compiled"
libraries=$(PKG_CONFIG_PATH="$DV_BUILD_DIR:${PKG_CONFIG_PATH:-}" pkg-config --static --libs division cmocka |
    sed 's/-ldivision//')

# example GUIDE: takes the block out, compiles and runs it.
example() {
    local name
    name=$(basename "$1" .md)
    awk '/^```c$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$1" >"$name.c"
    [[ $(grep -c '^```c$' "$1") == 1 ]] || fail "$1 has not exactly one block marked \`\`\`c"
    echo "$name:"
    # shellcheck disable=SC2086 # lists of flags
    $compile -Werror "$name.c" -o "$name" "$DV_BUILD_DIR/libdivision.a" $libraries || fail "$1 does not compile"
    "./$name" || fail "the example of $1 fails"
}

for guide in "$DV_SOURCE_DIR"/docs/guides/*.md; do
    example "$guide"
done
