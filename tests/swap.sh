#!/usr/bin/env bash
# Values in a file, and values computed again: training has the bits of one that keeps them in memory, takes the memory of its
# plan, and leaves nothing behind. DV_PROGRAM is the program, DV_TEMP an empty folder.
# shellcheck source=tests/calls.bash
source "$DV_SOURCE_DIR/tests/calls.bash"
subcommand=(train)
mkdir spill

# A folder for temporary files may be memory itself: then all but the saving is tested.
swap=swap
[[ $(stat -f -c %T spill) != tmpfs ]] || swap=swap:tmpfs=allowed

# With this batch values are far more than the 16 MB that the peak may be above what is planned and there.
batch=128
sanitized && batch=16
small=(--model resnet20 --data "synthetic:side=32,train=$((2 * batch)),test=16" --batch "$batch" --epochs 1 --threads 2)

# trains METHOD FOLDER: one epoch, in a folder of that name.
trains() {
    run "${small[@]}" --method "$1" --spill spill --quiet --out "$2"
    prints ''
    [[ -z $(ls -A spill) ]] || complain "something is left: $(ls -A spill)"
    sanitized || keeps_to_plan "$2"
}

# alike METHOD FOLDER: trains to the losses and weights of the run in FOLDER.
alike() {
    trains "$1" "$1"
    equal_in arrays "$2/last.safetensors" "$1/last.safetensors" || complain "other weights than with $2"
    for name in train_loss test_loss; do
        [[ $(field $name "$1/summary.json") == $(field $name "$2/summary.json") ]] || complain "another $name than with $2"
    done
}

trains none none
trains division division
alike "$swap" none
alike checkpoint none
alike checkpoint:segments=2 none
[[ $swap != swap ]] || alike division:spill=on division
for method in "$swap" checkpoint; do
    sanitized || (($(field planned_bytes none/summary.json) > 2 * $(field planned_bytes "$method/summary.json"))) || complain "expected $method to take less than half of none"
done

# The file and the time that waits for it are told.
run "${small[@]}" --method "$swap" --spill spill
prints 'planned *; in a file * MB
with program and libraries, *
*epoch 1/1 * s, * of them waiting for the file
*'

# ---- folders that will not do: before the first step, and without a trace ----------------------

run "${small[@]}" --method swap --spill nowhere --out refused
fails 1 "could not use the folder to spill to, nowhere: No such file or directory: check the name, and that the folder exists"
if [[ $(stat -f -c %T /dev/shm 2>/dev/null) == tmpfs ]]; then
    run "${small[@]}" --method swap --spill /dev/shm --out refused
    fails 2 "folder to spill to: /dev/shm is in memory (tmpfs), where spilling saves none: give one that is on a disk"
    run "${small[@]}" --method swap:tmpfs=allowed --spill /dev/shm --quiet
    prints ''
fi
call="ulimit -f 1000; division train --method $swap"
output=$(ulimit -f 1000 && "$DV_PROGRAM" train "${small[@]}" --method "$swap" --spill spill --quiet --out refused 2>messages)
code=$? messages=$(<messages)
fails_like 1 "could not reserve * MB to spill to in spill: this process may not write files of more than 1.0 MB: raise its limit (ulimit -f)"
[[ ! -e refused ]] || complain "a folder is left: $(ls refused)"

# ---- SIGKILL -----------------------------------------------------------------------------------

call="division train --method $swap, then SIGKILL" output='' messages=''
"$DV_PROGRAM" train "${small[@]}" --epochs 10000 --save-minutes 1e-6 --method "$swap" --spill spill --quiet --out killed &
process=$!
for ((i = 0; i < 600; i++)); do
    [[ ! -e killed/last.safetensors ]] || break
    sleep 0.1
done
kill -KILL "$process"
wait "$process" 2>/dev/null
code=$?
[[ $code == 137 && -e killed/last.safetensors ]] || complain "expected a training that SIGKILL met"
[[ -z $(ls -A spill) ]] || complain "something is left: $(ls -A spill)"
finish
