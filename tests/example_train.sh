#!/usr/bin/env bash
# examples/train.c: killed again and again and called again, it comes to the weights and the log of one that was left alone, in a
# folder that the program reads. DV_BUILD_DIR has it, in examples; DV_KILL_SEED is the seed of the moments.
# shellcheck source=tests/calls.bash
source "$DV_SOURCE_DIR/tests/calls.bash"
seed=${DV_KILL_SEED:-$((SECONDS + $$))}
RANDOM=$seed
options=(data=synthetic:side=8,train=48,test=16 batch=8 epochs=8 threads=1 average=0.9 save-minutes=1e-6)

# stop TEXT: the first thing that is wrong ends it.
stop() {
    echo "FAILED: $1. To repeat: DV_KILL_SEED=$seed"
    failures=1
    finish
}

# train FOLDER [OPTION...]: the example, with the options above.
train() {
    "$DV_BUILD_DIR/examples/train" "$1" "${options[@]}" "${@:2}"
}

begin=$(milliseconds)
train whole >output || stop "the training that is left alone"
longest=$((($(milliseconds) - begin) / 2))
[[ $(<output) == *' bytes planned; begins after step 0'*'epoch 8  loss '*'ends after step 48' ]] || stop "another output: $(<output)"

hits=0
for ((calls = 0; calls < 12 && hits < 4; calls++)); do
    signal=KILL
    ((hits % 2 == 0)) || signal=INT
    env --default-signal=INT "$DV_BUILD_DIR/examples/train" killed "${options[@]}" >output 2>messages &
    if kill_within "$longest" $! $signal || { [[ $signal == INT ]] && ! grep -q 'ends after step 48' output; }; then
        hits=$((hits + 1))
    fi
    [[ ! -s messages ]] || stop "after SIG$signal: $(<messages)"
done
echo "$hits signals met a training"
train killed >/dev/null || stop "the last part"
for file in last best; do
    equal_in arrays whole/$file.safetensors killed/$file.safetensors || stop "other arrays in $file.safetensors"
done
equal_in log whole/log.jsonl killed/log.jsonl || stop "another log: $(differences log whole/log.jsonl killed/log.jsonl)"
[[ $(ls killed) == $(ls whole) ]] || stop "other files: $(ls killed)"

# The program writes the same, and goes on with it.
"$DV_PROGRAM" train --data synthetic:side=8,train=48,test=16 --batch 8 --epochs 8 --threads 1 --average 0.9 --save-minutes 1e-6 --quiet --out program ||
    stop "the program"
equal_in arrays whole/last.safetensors program/last.safetensors || stop "other weights than the program's"
cmp -s whole/config.json program/config.json || stop "another config.json than the program's"
run train --resume killed --epochs 9 --quiet
prints ''

# What is wrong is said.
! train whole lr=fast 2>messages >output || stop "it takes a rate that is none"
[[ $(<messages) == "train: lr: 'fast' is not what it takes: give a number from 0 to 1000" ]] || stop "of a rate that is none: $(<messages)"
finish
