#!/usr/bin/env bash
# Every command of README.md does what it should: each line of its shell blocks is run as it stands, with the program of the
# build, on photographs of the project's own making; so is each command within the text, with names for what is in capitals. What
# installs packages or writes outside of a folder is in the list of `exceptions`: there the scripts and targets that it names must be there.
# DV_PROGRAM is the program, DV_TEMP an empty folder.
set -euo pipefail
cd "$DV_TEMP"
readme=$DV_SOURCE_DIR/README.md

# command|why it is not run
exceptions=(
    'scripts/setup && make demo|installs packages, and takes minutes; the script of the demo is run below, on a few small images'
    'scripts/setup test && make test|installs packages, and is this very call'
    'make && sudo make install && sudo ldconfig|writes to the system; tests/install.sh installs to a folder'
    'mpirun -n 4 division train RECIPE|needs MPI; tests/machines.sh starts it where there is some'
    'division bench paper|takes hours; tests/bench.sh runs a part'
)

fail() {
    echo "FAILED: $*"
    exit 1
}

# reason_of COMMAND: why it is not run, if it is an exception.
reason_of() {
    local entry
    for entry in "${exceptions[@]}"; do
        [[ ${entry%%|*} != "$1" ]] || echo "${entry#*|}"
    done
}

# exists COMMAND: scripts are there, make has the targets, the program has the subcommands.
exists() {
    local part words
    while IFS= read -r part; do
        read -ra words <<<"${part/sudo /}"
        case ${words[0]} in
        scripts/*) [[ -x $DV_SOURCE_DIR/${words[0]} ]] || fail "there is no ${words[0]}" ;;
        make) make -n -C "$DV_SOURCE_DIR" "${words[@]:1:1}" >/dev/null || fail "make has no ${words[1]:-default}" ;;
        division) division help "${words[@]:1:2}" >/dev/null || fail "division has no ${words[1]}" ;;
        mpirun) division help "${words[4]}" >/dev/null || fail "division has no ${words[4]}" ;;
        ldconfig) ;;
        *) fail "what is ${words[0]}?" ;;
        esac
    done <<<"${1// && /$'\n'}"
}

# perform COMMAND: runs it, or looks whether it could be.
perform() {
    local reason
    reason=$(reason_of "$1")
    if [[ -n $reason ]]; then
        echo "not run: $1: $reason"
        exists "$1"
        return
    fi
    echo "$1"
    bash -euo pipefail -c "$1" >output 2>messages || { cat output messages && fail "$1"; }
}

# ---- what they need ----------------------------------------------------------------------------

mkdir bin new
ln -s "$DV_PROGRAM" bin/division
export PATH=$PWD/bin:$PATH
for class in cat dog; do
    mkdir -p "photographs/$class"
    for i in 1 2 3 4 5 6; do
        division data show synthetic:side=128 --seed "$i" --images 1 --columns 1 --png "photographs/$class/$i.png" >/dev/null
        cp "photographs/$class/$i.png" "new/$class$i.jpg" # what it is shows in its contents
    done
done
awk '/^```c$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$readme" >example.c
cmake --install "$DV_BUILD_DIR" --prefix "$PWD/prefix" >/dev/null
export PKG_CONFIG_PATH LD_LIBRARY_PATH
PKG_CONFIG_PATH=$(dirname "$(find prefix -name division.pc)")
LD_LIBRARY_PATH=$(dirname "$(find prefix -name libdivision.so)")

# ---- blocks ------------------------------------------------------------------------------------

awk '/^```sh$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$readme" >lines
count=0
while IFS= read -r line; do
    line=${line%%  #*}
    line=${line%"${line##*[! ]}"}
    [[ -n $line ]] || continue
    perform "$line"
    count=$((count + 1))
done <lines
((count >= 8)) || fail "only $count commands found in blocks"
for made in sheet.png runs/first/best.safetensors network.onnx page.html example; do
    [[ -s $made ]] || fail "there is no $made"
done
./example | grep -q '^epoch 2: ' || fail "the example prints something else"

# ---- commands within the text ------------------------------------------------------------------

awk '/^```/ { inside = !inside } !inside' "$readme" | grep -oE '`(division|make|mpirun|scripts/)[^`]*`' | tr -d '`' >lines
while IFS= read -r line; do
    case $line in
    *NETWORK*) perform "$(sed 's/NETWORK/resnet50/; s/--batch N/--batch 32/; s/--method M/--method division/; s/$/ --elsewhere/' <<<"$line")" ;;
    make*) perform "$line -C \"$DV_SOURCE_DIR\"" ;;
    *) perform "$line" ;;
    esac
done <lines

# ---- both commands of the first block, in one folder: what the first configures without tests, the second has with them ----

cmake -S "$DV_SOURCE_DIR" -B both -DDV_TESTS=OFF >output 2>messages && cmake -DDV_TESTS=ON both >output 2>messages ||
    { cat output messages && fail "cmake"; }
for part in tests examples; do
    [[ -e both/$part/Makefile || -e both/$part/CTestTestfile.cmake ]] || fail "a demo, and then no $part in the same folder"
done

# ---- the demo ----------------------------------------------------------------------------------

"$DV_SOURCE_DIR/scripts/demo" "$DV_PROGRAM" demo --data synthetic:side=8,train=16,test=8 --epochs 1 --batch 8 >output ||
    { cat output && fail "the demo"; }
for row in 'test accuracy' 'activation memory' 'planned memory' 'peak memory' speed; do
    grep -Eq "^$row +[0-9.]+ [^ ]+ +[0-9.]+ [^ ]+ +([0-9.]+ x|-)\$" output || { cat output && fail "the demo has no $row"; }
done
(($(tail -n 6 output | wc -L) < 80)) || { cat output && fail "the demo's table is wider than a terminal"; }

words=$(wc -w <"$readme")
((words < 700)) || fail "README.md has $words words: a front page has fewer than 700"
