#!/usr/bin/env bash
# Sizes that cannot be had end with a message, never with a crash: of a network, and of the address space.
# shellcheck source=tests/calls.bash
source "$DV_SOURCE_DIR/tests/calls.bash"

run plan --model resnet20 --classes 262144 --batch 262144
fails_like 1 "fc: oneDNN computes at most * use a smaller batch, smaller images or fewer channels"

# within KILOBYTES ARGUMENT...: calls the program with so much address space.
within() {
    local limit=$1
    shift
    call="ulimit -v $limit; division $*"
    output=$(ulimit -v "$limit" && "$DV_PROGRAM" "$@" 2>messages </dev/null)
    code=$?
    messages=$(<messages)
}

# Sanitizers and emulators take more address space than any limit here.
if [[ -n $DV_CFLAGS || $DV_PROGRAM == */emulated/* ]]; then
    echo "left out: limits of the address space, under a sanitizer or an emulator"
    finish
fi

# From the least with which the program starts until training fits.
least=40000
while within "$least" info && [[ $code != 0 && $least -lt 400000 ]]; do
    least=$((least + 5000))
done
for ((more = 0; more <= 60000; more += 5000)); do
    for command in "plan" "train --data synthetic:train=64,test=64 --epochs 1 --threads 1 --out run-$more"; do
        # shellcheck disable=SC2086 # words of a command
        within $((least + more)) $command --model resnet20 --batch 64
        [[ $code == 0 || ($code == 1 && $messages == "division: "*) ]] || complain "expected success, or one error"
    done
done
finish
