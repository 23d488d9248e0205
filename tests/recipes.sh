#!/usr/bin/env bash
# The recipes, and reading recipes through the program. DV_PROGRAM is the program, DV_TEMP an empty folder.
set -uo pipefail
cd "$DV_TEMP" || exit 1
unset DV_ISA
failures=0

# run ARGUMENT...: calls division train; output and messages go to $output, the exit code to $code.
run() {
    call="division train $*"
    output=$("$DV_PROGRAM" train "$@" 2>&1)
    code=$?
}

# ends CODE PATTERN: the last call ended with this code, and its output matches the pattern.
ends() {
    # shellcheck disable=SC2053 # a pattern it is
    [[ $code == "$1" && $output == $2 ]] && return
    failures=$((failures + 1))
    printf 'FAILED: %s\n  expected exit code %s and: %s\n  exit code: %s\n  output: %s\n' "$call" "$1" "$2" "$code" "$output"
}

# ---- every recipe of the tree ----------------------------------------------------------------

# Each is read, its network built and its memory mapped, for a batch of one; it ends before the first step because an
# accumulation over more batches than there are is refused.
models=$("$DV_PROGRAM" models)
for recipe in "$DV_SOURCE_DIR"/recipes/*; do
    model=$(sed -n 's/^model *= *//p' "$recipe")
    run "$recipe" --data synthetic:train=3,test=1 --batch 1 --accumulate 4 --side 32 --resize 32 --quiet
    if [[ $'\n'$models == *$'\n'"$model "* ]]; then
        ends 2 'division: accumulate: 4: an epoch has 3 batches: use at most as many'
    else
        ends 2 "division: unknown model \"$model\"*"
    fi
    # Its data is that of the name, and what is not there is named.
    run "$recipe" --quiet
    ends 1 'division: *data/*'
done

# ---- what a recipe says is done --------------------------------------------------------------

cat >tiny <<'END'
# a recipe
model = resnet20
data = synthetic:train=16,test=8
batch = 8
epochs = 2
lr = 0.05
nesterov = yes
schedule = step:every=1,factor=0.5
END
run tiny --epochs 1 --out first --quiet
ends 0 ''
[[ $(<first/config.json) == *'"batch": 8, '*'"epochs": 1, '*'"lr": 0.05, '*'"nesterov": true, '* ]] || ends 0 'a config.json with the options of the recipe and the command line'

# A run's options are a recipe too: the same again gives the same weights.
run first --out second --quiet
ends 0 ''
cmp -s first/best.safetensors second/best.safetensors || ends 0 'the same weights as before'
run first/config.json --out third --lr 0.01 --quiet
ends 0 ''
! cmp -s first/best.safetensors third/best.safetensors || ends 0 'other weights than before'

# ---- mistakes --------------------------------------------------------------------------------

printf 'model = resnet20\n\nlearning = 1\n' >unknown
run unknown
ends 2 'division: unknown, line 3: learning: no such option*'
printf 'lr = fast\n' >value
run value
ends 2 "division: value, line 1: lr: 'fast' is not what it takes: give a number from 0 to 1000"
printf 'model = resnet20\nout = here\n' >out
run out
ends 2 'division: out, line 2: out: belongs on the command line'
printf 'model resnet20\n' >equals
run equals
ends 1 'division: equals, line 1: "model resnet20": not an option: write name = value'
run missing
ends 1 'division: could not read missing: No such file or directory: *'
mkdir empty
run empty
ends 1 'division: could not read empty/config.json: No such file or directory: *'
head -c 100000 /dev/zero >vast
run vast
ends 1 'division: vast has more than the 65536 bytes expected: *'

if ((failures > 0)); then
    echo "$failures failed. To repeat: DV_PROGRAM=$DV_PROGRAM $DV_SOURCE_DIR/tests/with_temporary_folder bash $DV_SOURCE_DIR/tests/recipes.sh"
    exit 1
fi
