#!/usr/bin/env bash
# Compiles the example of each guide (the block marked ```c) as the tests are compiled, with internal headers and the
# static library, and runs it; or, if it is one of commands (```sh), runs that. A guide without an example fails, and so does
# one with two.
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

# block KIND GUIDE: the block of this kind.
block() {
    awk -v mark="^\`\`\`$1\$" '$0 ~ mark { inside = 1; next } /^```/ { inside = 0 } inside' "$2"
}

# commands GUIDE: runs its commands where there are photographs and pretrained weights.
commands() {
    if [[ $DV_CFLAGS == *sanitize* ]]; then
        echo "left out: trainings take long under a sanitizer"
        return
    fi
    mkdir commands && cd commands
    "$DV_SOURCE_DIR/tests/make_photographs" photos 12
    "$DV_PROGRAM" train --model resnet18 --classes 1000 --data folder:photos --side 64 --batch 8 --lr 0 --epochs 1 --out weights --quiet
    mv weights/last.safetensors resnet18.pth
    ln -s "$DV_PROGRAM" division
    block sh "$1" >"$DV_TEMP/commands.sh"
    PATH=$PWD:$PATH bash -euxo pipefail "$DV_TEMP/commands.sh" || fail "the commands of $1 fail"
    cd ..
}

# example GUIDE: takes the block out, compiles and runs it.
example() {
    local name
    name=$(basename "$1" .md)
    [[ $(grep -cE '^```(c|sh)$' "$1") == 1 ]] || fail "$1 has not exactly one block marked \`\`\`c or \`\`\`sh"
    echo "$name:"
    if grep -q '^```sh$' "$1"; then
        commands "$1"
        return
    fi
    block c "$1" >"$name.c"
    # shellcheck disable=SC2086 # lists of flags
    $compile -Werror "$name.c" -o "$name" "$DV_BUILD_DIR/libdivision.a" $libraries || fail "$1 does not compile"
    "./$name" || fail "the example of $1 fails"
}

for guide in "$DV_SOURCE_DIR"/docs/guides/*.md; do
    example "$guide"
done
