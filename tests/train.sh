#!/usr/bin/env bash
# division train from outside: short runs, their folders, errors, interruption, full disks.
# DV_PROGRAM is the program, DV_TEMP an empty folder.
set -uo pipefail
cd "$DV_TEMP" || exit 1
unset DV_ISA
failures=0

# run ARGUMENT...: calls division train; its output, messages and exit code go to $output, $messages, $code.
run() {
    call="division train $*"
    output=$("$DV_PROGRAM" train "$@" 2>messages)
    code=$?
    messages=$(<messages)
}

complain() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n  %s\n  exit code: %s\n  output: %s\n  messages: %s\n' "$call" "$1" "$code" "$output" "$messages"
}

# fails CODE TEXT: the last call ended with this code, printed exactly this one message and nothing else.
fails() {
    [[ $code == "$1" && -z $output && $messages == "division: $2" ]] || complain "expected exit code $1 and: division: $2"
}

# prints PATTERN: the last call succeeded, had nothing to complain about, and its output matches the pattern.
prints() {
    # shellcheck disable=SC2053 # a pattern it is
    [[ $code == 0 && -z $messages && $output == $1 ]] || complain "expected output: $1"
}

# holds FILE PATTERN: the file's text matches the pattern.
holds() {
    # shellcheck disable=SC2053
    [[ -e $1 && $(<"$1") == $2 ]] || complain "expected in $1: $2; it is: $(cat "$1" 2>&1)"
}

# values FIELD FILE: the field's value in each line of a log.
values() {
    sed -n "s/.*\"$1\": \([^,}]*\).*/\1/p" "$2"
}

tiny=(--model resnet20 --batch 8)

# ---- a run and its folder --------------------------------------------------------------------

run "${tiny[@]}" --data synthetic:train=32,test=20 --epochs 2 --out some/where/run
prints 'planned *: parameters * activations * workspace *
epoch 1/2  loss *  top-1 * %  test loss *  test top-1 * %  * images/s  peak *  * s
epoch 2/2  loss *
best test top-1 * %
planned *, activations *, peak * resident'
line='{"epoch": ?, "train_loss": *, "train_top1": *, "test_loss": *, "test_top1": *, "images_per_second": *, "peak_bytes": *, "activation_bytes": *, "seconds": *, "learning_rate": *, "steps": *, "complete": true}'
holds some/where/run/log.jsonl "$line
$line"
holds some/where/run/config.json '{"model": "resnet20", "data": "synthetic:train=32,test=20", "method": "division", "precision": "f32", "batch": 8, *"epochs": 2, *"lr": 0.1, *"save-minutes": 10}'
holds some/where/run/summary.json '{"model": "resnet20", *"method": "division", *"epochs": 2, "steps": 8, "stopped": false, *"planned_bytes": *, "peak_bytes": *}'
run "${tiny[@]}" --out some/where/run
fails 1 "some/where/run holds a run already: --resume it, --replace it, or choose another folder"
# Twenty images in batches of eight: the four that fill up the last one do not count.
while read -r percent; do
    awk -v p="$percent" 'BEGIN { n = p / 5; exit !(p >= 0 && p <= 100 && n == int(n)) }' || complain "test_top1 $percent is no twentieth"
done < <(values test_top1 some/where/run/log.jsonl)

# The same seed gives the same numbers; another seed, others.
# losses SEED FILE: writes the losses of a short training.
losses() {
    run "${tiny[@]}" --data synthetic:train=64,test=16 --epochs 2 --seed "$1" --threads 2 --json
    [[ $code == 0 ]] || complain "expected success"
    echo "$output" >log
    { values train_loss log && values test_loss log; } >"$2"
}
losses 1 first
losses 1 same
losses 2 other
cmp -s first same || complain "the same seed gave other losses"
! cmp -s first other || complain "another seed gave the same losses"

# Every method and precision; options of all kinds; quiet.
for method in none division division:bits=4,block=4; do
    for precision in f32 bf16; do
        run "${tiny[@]}" --data synthetic:train=32,test=8 --epochs 1 --method "$method" --precision "$precision" --json
        prints '{"epoch": 1, *}'
    done
done
run "${tiny[@]}" --data synthetic:train=40,test=8 --epochs 4 --accumulate 2 --schedule step:every=2,factor=0.5 --warmup 0.5 --nesterov --label-smoothing 0.1 --classes 12 --steps 7 --quiet --out options
prints ''
[[ $(values steps options/log.jsonl | tr '\n' ' ') == '2 4 6 7 ' ]] || complain "steps are not 2 4 6 7"
[[ $(values learning_rate options/log.jsonl | tr '\n' ' ') == '0.1 0.1 0.05 0.05 ' ]] || complain "learning rates are not 0.1 0.1 0.05 0.05"
holds options/log.jsonl '*"complete": false}'

# ---- errors ----------------------------------------------------------------------------------

run --batch 0
fails 2 "--batch: '0' is not what it takes: give a whole number from 1 to 1048576"
run --epochs 0
fails 2 "--epochs: '0' is not what it takes: give a whole number from 1 to 100000"
run --model resnet21
[[ $code == 2 && $messages == 'division: unknown model "resnet21"'*resnet20* ]] || complain "expected a message on resnet21"
run --method nothing
[[ $code == 2 && $messages == division:*nothing*division* ]] || complain "expected a message on the method"
run --method division:bits=3
[[ $code == 2 && $messages == division:*bits=3* ]] || complain "expected a message on bits"
run --data cifar9:here
[[ $code == 2 && $messages == 'division: data: "cifar9:here" is no data set: there is'*synthetic* ]] || complain "expected a message on the data"
run --data synthetic:side=1000
fails 2 "synthetic: side=1000: must be a whole number from 8 to 512"
run --classes 9
fails 2 "--classes: 9: the data has 10: give as many or more"
run --batch 33 --data synthetic:train=32
fails 2 "--batch: 33: the data has 32 images: use a smaller batch or more data"
run "${tiny[@]}" --data synthetic:train=32 --accumulate 5
[[ $code == 2 && $messages == 'division: accumulate: 5: an epoch has 4 batches: use at most as many' ]] || complain "expected a message on accumulate"
run --schedule linear
fails 2 'schedule: "linear" is none: there are constant, cosine, step and multistep'
run --nesterov --momentum 0
fails 2 "nesterov: needs momentum, which is 0: give one, 0.9 for example"
run one two
fails 2 "train: 'two' is one argument too many: see 'division train --help'"
run --mixup 101
fails 2 "--mixup: '101' is not what it takes: give a number from 0 to 100"

# A learning rate that explodes: told with step and rate, and the log of what was before stays.
run "${tiny[@]}" --data synthetic:train=64,test=8 --lr 1000 --momentum 0.99 --schedule constant --epochs 20 --out explodes
[[ $code == 1 && $messages == division:*step*"learning rate"*1000* ]] || complain "expected a message with step and learning rate"

# A plan that does not fit: what it takes, and what would fit.
run --model resnet50 --batch 20000 --data synthetic:side=224 --method none
[[ $code == 1 && $messages == 'division: the plan takes '*' GB are free: '*'division: this would fit: --method division --batch '*'division: this would fit: --batch '* ]] || complain "expected what would fit"

# ---- output that can't be written ------------------------------------------------------------

mkdir full
ln -s /dev/full full/log.jsonl
run "${tiny[@]}" --data synthetic:train=32,test=8 --epochs 3 --quiet --out full --replace
fails 1 "could not write full/log.jsonl after epoch 1: No space left on device: make room, or choose another folder"
run "${tiny[@]}" --out /dev/null/run
fails 1 "could not make the folder /dev/null/run: Not a directory: choose another"
call="division train >/dev/full" output=
"$DV_PROGRAM" train "${tiny[@]}" --data synthetic:train=8,test=8 --epochs 1 >/dev/full 2>messages
code=$? messages=$(<messages)
fails 1 "could not write to standard output: No space left on device: check where the output goes"

# ---- interruption ----------------------------------------------------------------------------

for signal in INT TERM; do
    call="division train, then SIG$signal" output=
    env --default-signal=INT "$DV_PROGRAM" train "${tiny[@]}" --data synthetic:train=80000,test=8 --out "stopped.$signal" >/dev/null 2>messages &
    process=$!
    for ((i = 0; i < 200; i++)); do
        [[ ! -e stopped.$signal/config.json ]] || break
        sleep 0.1
    done
    sleep 1
    kill "-$signal" "$process"
    wait "$process"
    code=$? messages=$(<messages)
    [[ $code == 130 && $messages == "division: interrupted after step "*": --resume goes on from there" ]] || complain "expected exit code 130"
    holds "stopped.$signal/log.jsonl" '{"epoch": 1, *"test_top1": null, *"complete": false}'
    holds "stopped.$signal/summary.json" '*"stopped": true*'
done

if ((failures > 0)); then
    echo "$failures failed. To repeat: DV_PROGRAM=$DV_PROGRAM $DV_SOURCE_DIR/tests/with_temporary_folder bash $DV_SOURCE_DIR/tests/train.sh"
    exit 1
fi
