#!/usr/bin/env bash
# A training that is killed with SIGKILL at random moments and resumed each time ends with the weights and the log of one
# that was left alone. DV_PROGRAM is the program, DV_TEMP an empty folder; DV_KILLS is how often (4), DV_KILL_SEED the
# seed of the moments.
set -uo pipefail
cd "$DV_TEMP" || exit 1
unset DV_ISA
kills=${DV_KILLS:-4}
seed=${DV_KILL_SEED:-$((SECONDS + $$))}
RANDOM=$seed

complain() {
    echo "FAILED: $1"
    echo "To repeat: DV_KILLS=$kills DV_KILL_SEED=$seed DV_PROGRAM=$DV_PROGRAM $DV_SOURCE_DIR/tests/with_temporary_folder bash $DV_SOURCE_DIR/tests/kill.sh"
    exit 1
}

# Saves after every step, so that many of the moments are in the middle of one.
options=(--model resnet20 --data synthetic:side=8,train=48,test=16 --batch 8 --epochs $((3 * kills)) --threads 1 --average 0.9 --mixup 0.2)
train=("$DV_PROGRAM" train "${options[@]}" --save-minutes 1e-6 --quiet)

# arrays FILE: what follows the header of a checkpoint; the header has times.
arrays() {
    tail -c "+$((9 + $(od -An -t u8 -N 8 "$1")))" "$1"
}

# log FILE: its lines without times and memory.
log() {
    sed -E 's/"(images_per_second|peak_bytes|seconds)": [^,]*, //g' "$1"
}

# milliseconds: on a clock.
milliseconds() {
    echo $(($(date +%s%N) / 1000000))
}

begin=$(milliseconds)
"${train[@]}" --out whole || complain "the training that is left alone"
longest=$((($(milliseconds) - begin) / 2)) # so that the first one meets it

hits=0
for ((i = 0; i < kills; i++)); do
    "${train[@]}" --out killed --resume 2>messages &
    process=$!
    delay=$((RANDOM * longest / 32768))
    sleep "$((delay / 1000)).$(printf %03d $((delay % 1000)))"
    kill -KILL "$process" 2>/dev/null
    wait "$process" 2>/dev/null
    (($? != 137)) || hits=$((hits + 1))
    [[ ! -s messages ]] || complain "after kill $i: $(<messages)"
    for file in killed/last.safetensors killed/best.safetensors; do
        [[ ! -e $file ]] || "$DV_PROGRAM" eval "$file" >/dev/null || complain "$file is no checkpoint after kill $i"
    done
done
((hits > 0)) || complain "no kill met a training that was running"

"${train[@]}" --out killed --resume || complain "the last part"
cmp -s <(arrays whole/last.safetensors) <(arrays killed/last.safetensors) || complain "other weights"
cmp -s <(arrays whole/best.safetensors) <(arrays killed/best.safetensors) || complain "other best weights"
cmp -s <(log whole/log.jsonl) <(log killed/log.jsonl) || complain "another log: $(diff <(log whole/log.jsonl) <(log killed/log.jsonl))"
[[ $(ls killed) == $(ls whole) ]] || complain "other files: $(ls killed)"
