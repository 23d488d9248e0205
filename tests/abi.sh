#!/usr/bin/env bash
# A program that was compiled with earlier headers runs with the library of now, or the ABI number is another:
# - the public headers are what tests/fixtures/abi.txt recorded; if not, it says what to do, `scripts/abi --record` at least;
# - that check finds what programs would not survive, and tells it from what is only new;
# - where there is git and a commit before, abi_program.c of that commit, compiled with its headers, runs with this library.
set -euo pipefail
cd "$DV_TEMP"

fail() {
    echo "FAILED: $*"
    exit 1
}

# ---- the headers are those of the record -------------------------------------------------------

"$DV_SOURCE_DIR/scripts/abi" --check

# ---- the check must be able to fail ------------------------------------------------------------

# sample STATE: a copy of the tree's headers and record, with its number open or closed.
sample() {
    rm -rf sample
    mkdir -p sample/{scripts,tests/fixtures}
    cp -r "$DV_SOURCE_DIR/include" sample/
    cp "$DV_SOURCE_DIR/scripts/abi" sample/scripts/
    sed "1s/[a-z]*$/$1/" "$DV_SOURCE_DIR/tests/fixtures/abi.txt" >sample/tests/fixtures/abi.txt
}

# edit HEADER SED: changes a header of the sample; the change must be one.
edit() {
    cp "sample/include/division/$1" before.h
    sed -i "$2" "sample/include/division/$1"
    ! cmp -s before.h "sample/include/division/$1" || fail "nothing to change in $1 with $2"
}

# refused WORDS: the check finds the change and says WORDS.
refused() {
    ! sample/scripts/abi --check >told 2>&1 || fail "the check does not see it"
    grep -q "$1" told || { cat told && fail "the check does not say: $1"; }
}

recorded() {
    sample/scripts/abi --record >told 2>&1 || { cat told && fail "it is not recorded"; }
    sample/scripts/abi --check || fail "the check refuses what was recorded"
}

# What programs would not survive: refused with a closed number, recorded with the next one.
lethal=("codec.h s/^    size_t images;/&\n    size_t more;/" "codec.h s/int threads; /long threads;/" "codec.h s/DV_MAX_RANK = 3/DV_MAX_RANK = 4/"
    "codec.h s/DV_F32, DV_BF16/DV_BF16, DV_F32/" "version.h s/int dv_abi/long dv_abi/" "version.h /dv_abi(void)/d"
    "threads.h s/dv_set_threads(int/dv_set_threads(long/")
number=$(sed -n 's/^#define DV_ABI //p' "$DV_SOURCE_DIR/include/division/version.h")
for change in "${lethal[@]}"; do
    read -r header edit <<<"$change"
    echo "$change"
    sample closed
    edit "$header" "$edit"
    refused "make DV_ABI in include/division/version.h $((number + 1))"
    ! sample/scripts/abi --record >told 2>&1 || fail "a closed number is recorded anew"
    edit version.h "s/^#define DV_ABI .*/#define DV_ABI $((number + 1))/"
    recorded
done

# The same with an open number, and with a record that was forgotten.
sample open
edit codec.h 's/^    size_t images;/&\n    size_t more;/'
refused 'run scripts/abi --record'
recorded
edit version.h "s/^#define DV_ABI .*/#define DV_ABI $((number + 1))/"
refused 'run scripts/abi --record'
recorded

# What is only new stays with its number, and is recorded too.
sample closed
edit version.h 's/^DV_API int dv_abi/DV_API int dv_new(void);\n&/'
refused 'run scripts/abi --record'
recorded
[[ $(head -n 1 sample/tests/fixtures/abi.txt) == "abi $number closed" ]] || fail "a closed number was opened"
edit version.h '/dv_new/d'
refused "make DV_ABI in include/division/version.h $((number + 1))"

# A header with a mistake ends it with a word.
sample open
edit version.h 's/dv_abi(void)/dv_abi(void/'
! timeout 60 sample/scripts/abi --check >told 2>&1 && [[ -s told ]] || fail "a header with a mistake is accepted, or nothing is said"

# ---- a program of the commit before ------------------------------------------------------------

# run_with FOLDER: compiles FOLDER/abi_program.c with FOLDER/include, and runs it with the library of this build.
run_with() {
    # shellcheck disable=SC2086 # DV_CFLAGS is a list
    "$DV_CC" -std=c11 -Wall -Wextra -Werror $DV_CFLAGS -I"$1/include" "$1/tests/abi_program.c" -o program \
        -L"$DV_BUILD_DIR" -ldivision -lm -Wl,-rpath,"$DV_BUILD_DIR" || fail "tests/abi_program.c does not compile"
    rm -rf written && mkdir written
    ./program written || fail "a program that was compiled with $2 does not run with the library of now"
}

run_with "$DV_SOURCE_DIR" "the headers of now"

skip() {
    echo "left out: a program of the commit before: $*"
    exit 0
}

cd "$DV_SOURCE_DIR"
command -v git >/dev/null || skip "there is no git"
commit=$(git rev-parse --verify --quiet HEAD 2>/dev/null) || skip "this is no git repository"
# The commit before: the last one, if headers were changed since.
! git diff --quiet HEAD -- include || commit=$(git rev-parse --verify --quiet HEAD~1) || skip "there is none here"
git cat-file -e "$commit:./tests/abi_program.c" 2>/dev/null || skip "it has none"
mkdir "$DV_TEMP/before"
git archive "$commit" include tests/abi_program.c tests/fixtures/abi.txt | tar -x -C "$DV_TEMP/before"
cd "$DV_TEMP"
[[ $(sed -n 's/^#define DV_ABI //p' before/include/division/version.h) == "$number" ]] || skip "its ABI number is another"
sort "$DV_SOURCE_DIR/tests/fixtures/abi.txt" >now
gone=$(grep -v '^abi ' before/tests/fixtures/abi.txt | sort | comm -23 - now)
if [[ -n $gone ]]; then
    [[ $(head -n 1 before/tests/fixtures/abi.txt) == *open ]] ||
        fail "ABI $number was closed in $commit, and something is gone since: make DV_ABI $((number + 1))"$'\n'"$gone"
    skip "ABI $number is open, and something was changed since $commit"
fi
run_with before "the headers of $commit"
