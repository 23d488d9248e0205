#!/usr/bin/env bash
# A training that is killed with SIGKILL at random moments and resumed each time ends with the weights and the log of one
# that was left alone. DV_PROGRAM is the program, DV_TEMP an empty folder; DV_KILLS is how often (4), DV_KILL_SEED the
# seed of the moments.
source "$DV_SOURCE_DIR/tests/calls.bash"
kills=${DV_KILLS:-4}
seed=${DV_KILL_SEED:-$((SECONDS + $$))}
RANDOM=$seed

# stop TEXT: the first thing that is wrong ends it.
stop() {
    echo "FAILED: $1. To repeat: DV_KILLS=$kills DV_KILL_SEED=$seed"
    failures=1
    finish
}

# Saves after every step, so that many of the moments are in the middle of one.
options=(--model resnet20 --data synthetic:side=8,train=48,test=16 --batch 8 --epochs $((3 * kills)) --threads 1 --average 0.9 --mixup 0.2)
train=("$DV_PROGRAM" train "${options[@]}" --save-minutes 1e-6 --quiet)

begin=$(milliseconds)
"${train[@]}" --out whole || stop "the training that is left alone"
longest=$((($(milliseconds) - begin) / 2)) # so that the first one meets it

hits=0
for ((i = 0; i < kills; i++)); do
    "${train[@]}" --out killed --resume 2>messages &
    kill_within $longest $! && hits=$((hits + 1))
    [[ ! -s messages ]] || stop "after kill $i: $(<messages)"
    for file in killed/last.safetensors killed/best.safetensors; do
        [[ ! -e $file ]] || "$DV_PROGRAM" eval "$file" >/dev/null || stop "$file is no checkpoint after kill $i"
    done
done
((hits > 0)) || stop "no kill met a training that was running"

"${train[@]}" --out killed --resume || stop "the last part"
cmp -s <(arrays whole/last.safetensors) <(arrays killed/last.safetensors) || stop "other weights"
cmp -s <(arrays whole/best.safetensors) <(arrays killed/best.safetensors) || stop "other best weights"
cmp -s <(log whole/log.jsonl) <(log killed/log.jsonl) || stop "another log: $(diff <(log whole/log.jsonl) <(log killed/log.jsonl))"
[[ $(ls killed) == $(ls whole) ]] || stop "other files: $(ls killed)"
