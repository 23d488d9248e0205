#!/usr/bin/env bash
# A training that is ended by SIGKILL, SIGTERM and SIGHUP at random moments and resumed each time comes to the weights and the
# log of one that was left alone. DV_PROGRAM is the program, DV_TEMP an empty folder; DV_KILLS is how often each signal
# meets it (2), DV_KILL_SEED the seed of the moments, DV_KILL_METHOD the method, DV_KILL_OPTIMIZER the optimizer (one at random), DV_KILL_SIDE the side of the images: from 16
# on, swap has values that are worth a file.
# shellcheck source=tests/calls.bash
source "$DV_SOURCE_DIR/tests/calls.bash"
kills=${DV_KILLS:-2}
seed=${DV_KILL_SEED:-$((SECONDS + $$))}
RANDOM=$seed

# stop TEXT: the first thing that is wrong ends it.
stop() {
    echo "FAILED: $1. To repeat: DV_KILLS=$kills DV_KILL_SEED=$seed"
    failures=1
    finish
}

options=(--model resnet20 --data "synthetic:side=${DV_KILL_SIDE:-8},train=48,test=16" --batch 8 --epochs 12 --threads 1 --average 0.9 --mixup 0.2)
optimizers=(sgd adamw rmsprop:momentum=0.9,centered=yes)
optimizer=${DV_KILL_OPTIMIZER:-${optimizers[RANDOM % 3]}}
echo "optimizer $optimizer"
train=("$DV_PROGRAM" train "${options[@]}" --optimizer "$optimizer" --lr 0.01 --method "${DV_KILL_METHOD:-division}" --spill spill)
# SIGKILL gives no time to save; with a checkpoint after every step, many of its moments are in the middle of one.
declare -A saves=([KILL]=1e-6 [TERM]=10 [HUP]=10)

# is_whole: what was interrupted became what one go made.
is_whole() {
    for file in last best; do
        equal_in arrays whole/$file.safetensors killed/$file.safetensors || stop "other arrays in $file.safetensors"
    done
    equal_in log whole/log.jsonl killed/log.jsonl || stop "another log: $(differences log whole/log.jsonl killed/log.jsonl)"
    [[ $(ls killed) == $(ls whole) ]] || stop "other files: $(ls killed)"
}

# is_sound: what the last signal left can be loaded, and nothing went wrong but by that signal.
is_sound() {
    local said
    said=$(grep -v '^division: interrupted ' messages)
    [[ -z $said ]] || stop "after SIG$signal: $said"
    for file in killed/last.safetensors killed/best.safetensors; do
        [[ ! -e $file ]] || "$DV_PROGRAM" eval "$file" >/dev/null || stop "$file is no checkpoint after SIG$signal"
    done
}

# goes_on: the training began where the one before it said that it ended, if it said so.
goes_on() {
    [[ -z $ended || ! -s output ]] || grep -q "^goes on after step $ended;" output || stop "expected to go on after step $ended: $(<output)"
}

begin=$(milliseconds)
mkdir spill
"${train[@]}" --quiet --out whole || stop "the training that is left alone"
longest=$((($(milliseconds) - begin) / 2)) # so that most signals meet it

# One that comes to its end between two signals is to be like one in one go, and the next begins from nothing.
ends=0 ended='' hits=0
for signal in KILL TERM HUP; do
    for ((met = 0; met < kills && ends < 20 + kills;)); do
        env --default-signal=HUP "${train[@]}" --save-minutes "${saves[$signal]}" --out killed --resume >output 2>messages &
        if kill_within $longest $! $signal; then
            goes_on
            ended=$(sed -n 's/^division: interrupted after step \([0-9]*\):.*/\1/p' messages)
            met=$((met + 1)) hits=$((hits + 1))
            is_sound
        else
            is_whole
            ended='' ends=$((ends + 1))
            rm -r killed
        fi
    done
    echo "SIG$signal: met $met trainings"
done
((hits == 3 * kills)) || stop "expected $((3 * kills)) signals to meet a training that ran: $hits"
"${train[@]}" --quiet --out killed --resume || stop "the last part"
is_whole
[[ -z $(ls -A spill) ]] || stop "something is left: $(ls -A spill)"
finish
