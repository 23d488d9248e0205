#!/usr/bin/env bash
# Processes that train together over MPI, with two and four ranks on this machine: one folder, the same bits twice, the
# losses of one process, --resume also with another number of ranks, ranks that differ, die or hang.
# DV_PROGRAM is the program, DV_TEMP an empty folder.
source "$DV_SOURCE_DIR/tests/calls.bash"

if [[ ! -e $DV_BUILD_DIR/division-mpi.so ]] || ! command -v mpirun >/dev/null; then
    echo "left out: MPI is not installed: 'scripts/setup mpi' installs it"
    exit 0
fi
if sanitized; then
    echo "left out: MPI's own libraries do not stand a sanitizer; test_ranks has ranks that are threads"
    exit 0
fi
# Open MPI refuses root, and more ranks than cores, unless told otherwise; MPICH does not know these.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1
launcher=(mpirun)
[[ $(mpirun --version) != *"Open MPI"* ]] || launcher+=(--oversubscribe --bind-to none)

common=(train --data synthetic:train=96,test=21,side=8 --batch 8 --epochs 2 --tune=off --method none --lr 0.01)

# ranks NUMBER ARGUMENT...: trains on so many; output, messages and exit code as `run` has them.
ranks() {
    local number=$1
    shift
    call="mpirun -n $number division ${common[*]} $*"
    output=$(timeout 120 "${launcher[@]}" -n "$number" "$DV_PROGRAM" "${common[@]}" "$@" 2>messages </dev/null)
    code=$?
    messages=$(<messages)
}

# says PATTERN: the last call failed, and one of its messages is like this.
says() {
    # shellcheck disable=SC2053 # a pattern it is
    [[ $code != 0 && $messages == $1 ]] || complain "expected a failure and: $1"
}

# same_weights RUN RUN: the best weights of both are the same to the bit.
same_weights() {
    cmp -s "$1/best.safetensors" "$2/best.safetensors" || complain "expected the same weights in $1 and $2"
}

# same_end RUN RUN: the figures of the last epoch are the same to the last digit.
same_end() {
    [[ $(ending "$1") == "$(ending "$2")" ]] || complain "expected the same end: $(ending "$1") $(ending "$2")"
}

ending() {
    tail -n 1 "$1/log.jsonl" | grep -oE '"(train|test)_loss": [0-9.e-]+' | tr '\n' ' '
}

# losses RUN: of its epochs.
losses() {
    grep -oE '"train_loss": [0-9.]+' "$1/log.jsonl" | cut -d' ' -f2
}

# near RUN RUN EPOCHS: losses of so many within a thousandth.
near() {
    losses "$2" >losses
    losses "$1" | paste - losses |
        awk -v n="$3" '{ d = $1 - $2; if (d * d > 1e-6) bad = 1 } END { exit bad || NR != n }' ||
        complain "expected losses of $1 and $2 to be near: $(losses "$1") $(losses "$2")"
}

# One folder, one voice; the losses of one process with the whole batch. Where a kernel rounds otherwise in a smaller batch, an
# element of a ReLU changes its sign now and then: small steps keep that small, and statistics of a rank's own images would
# still be off by a hundredth from the first step on.
alike=(--lr 0.001 --quiet)
ranks 2 "${alike[@]}" --sync-norm --out two
[[ $code == 0 && -z $output ]] || complain "expected success"
[[ $(ls two) == $'best.safetensors\nconfig.json\nlast.safetensors\nlog.jsonl\nsummary.json' ]] || complain "expected one run: $(ls two)"
[[ $(grep -c '"ranks": 2, "network_seconds": [0-9.e-]*, "others_seconds": ' two/log.jsonl) == 2 ]] || complain "expected ranks in the log"
run "${common[@]}" "${alike[@]}" --batch 16 --out one
succeeds
near one two 2
ranks 4 "${alike[@]}" --batch 4 --sync-norm --out four
near one four 2

# Twenty steps, an epoch each, so that the log has the loss of every one.
steps=(--data "synthetic:train=16,test=1,side=8" --epochs 20 --test-every 20 --sync-norm "${alike[@]}")
run "${common[@]}" "${steps[@]}" --batch 16 --out steps-1
succeeds
for number in 2 4; do
    ranks $number "${steps[@]}" --batch $((16 / number)) --out steps-$number
    near steps-1 steps-$number 20
done

# Every recipe as published: a step of as many small batches as there were cards, shared by two ranks.
for recipe in resnet18_cifar10 resnet164_cifar10 resnet164_cifar100 densenet121_cifar100 resnet50_imagenet densenet161_imagenet; do
    side=32 cards=$(sed -n 's/^accumulate = //p' "$DV_SOURCE_DIR/recipes/$recipe")
    [[ $recipe != *_imagenet ]] || side=64
    call="mpirun -n 2 division train recipes/$recipe"
    output=$(timeout 300 "${launcher[@]}" -n 2 "$DV_PROGRAM" train "$DV_SOURCE_DIR/recipes/$recipe" --data "synthetic:train=$((2 * cards)),test=2" \
        --batch 2 --side $side --resize $side --lr 0.001 --steps 1 --tune=off --threads 1 --out "$recipe" --quiet 2>messages </dev/null)
    code=$? messages=$(<messages)
    [[ $code == 0 && $(<"$recipe/log.jsonl") == *'"ranks": 2, '*'"steps": 1, '* ]] || complain "expected a step"
done

# The same number of ranks, the same bits; also stopped in between.
ranks 4 "${alike[@]}" --batch 4 --sync-norm --out again
same_weights four again
ranks 2 --method division --quiet --out whole
ranks 2 --method division --steps 8 --quiet --out parts
ranks 2 --method division --steps 0 --resume --quiet --out parts
same_end whole parts

# All ranks go on with the passes of the folder, which is rank 0's, whatever their own machine has measured since.
export XDG_CACHE_HOME=$PWD/cache
ranks 2 --tune=cache --steps 8 --quiet --out passes
cp -r passes passes-elsewhere
ranks 2 --tune=cache --steps 0 --resume --quiet --out passes
mkdir -p elsewhere
cp -r cache/* elsewhere
find elsewhere -type f -exec sed -i 's/winograd 0[.0-9]*/winograd 9/' {} +
call="mpirun, one rank that has measured something else"
resume=("$DV_PROGRAM" "${common[@]}" --tune=cache --steps 0 --resume --quiet --out passes-elsewhere)
output=$(timeout 120 "${launcher[@]}" -n 1 "${resume[@]}" : -n 1 env XDG_CACHE_HOME="$PWD/elsewhere" "${resume[@]}" 2>messages)
code=$? messages=$(<messages)
[[ $code == 0 ]] || complain "expected success"
same_end passes passes-elsewhere
same_weights passes passes-elsewhere
[[ -z $(find /tmp -maxdepth 1 -name 'division-??????' -user "$(id -u)" -newer passes/config.json) ]] || complain "expected no file to be left in /tmp"

# Another number of ranks goes on where the epoch was, with as many images in a step.
ranks 2 --steps 8 --quiet --out other
run train --resume other --steps 0 --quiet
succeeds
[[ $(tail -n 1 other/log.jsonl) == *'"steps": 12, "complete": true}' ]] || complain "expected all steps to be done"
ranks 4 --resume --epochs 3 --quiet --out other
says "*accumulate: 2: 4 ranks can't share so many batches: --batch 4 --accumulate 4 have as many images in a step*"
ranks 4 --resume --epochs 3 --batch 4 --accumulate 4 --quiet --out other
[[ $code == 0 && $(tail -n 1 other/log.jsonl) == *'"ranks": 4, '*'"steps": 18, "complete": true}' ]] || complain "expected four ranks to go on"

# What can't be: batches that can't be shared, ranks that differ.
ranks 4 --accumulate 6 --quiet --out no
says "*division: rank 0 (*): accumulate: 6: 4 ranks can't share so many batches: --batch 6 --accumulate 8 have as many images in a step*"
[[ ! -e no ]] || complain "expected nothing to be left behind"
call="mpirun, one rank with another seed"
output=$("${launcher[@]}" -n 1 "$DV_PROGRAM" "${common[@]}" --out no : -n 1 "$DV_PROGRAM" "${common[@]}" --seed 2 --out no 2>messages)
code=$? messages=$(<messages)
says '*division: rank 1 (*): has --seed 2, and rank 0 has --seed 1: start all ranks alike*'
[[ ! -e no ]] || complain "expected nothing to be left behind"

patience=() # options of the launcher
# begin_long RUN ARGUMENT...: a training in the background that does not end by itself, until its first checkpoint is there.
begin_long() {
    local run=$1
    shift
    timeout 120 "${launcher[@]}" "${patience[@]}" -n 2 "$DV_PROGRAM" "${common[@]}" --epochs 10000 --quiet --out "$run" "$@" >out 2>messages </dev/null &
    job=$! call="mpirun -n 2 division train --out $run"
    for ((i = 0; i < 600; i++)); do
        [[ ! -e $run/last.safetensors ]] || return
        sleep 0.05
    done
    complain "expected a checkpoint"
}

# second_rank: the process that has no folder open, by what the launcher left in its environment.
second_rank() {
    local process
    for process in $(pgrep -f -- "$DV_PROGRAM train.*--out $1"); do
        if tr '\0' '\n' <"/proc/$process/environ" 2>/dev/null | grep -qE '^(OMPI_COMM_WORLD_RANK|PMI_RANK)=1$'; then
            echo "$process"
            return
        fi
    done
}

# A rank that is killed: the launcher ends the others, and the last checkpoint stands.
begin_long killed
kill -KILL "$(second_rank killed)"
wait "$job"
code=$? output=$(<out) messages=$(<messages)
[[ $code != 0 && $code != 124 ]] || complain "expected the launcher to end"
ranks 2 --resume --epochs 10000 --steps 1 --quiet --out killed
[[ $code == 0 ]] || complain "expected the checkpoint to stand"

# Ctrl-C: all stop at the same step, and rank 0 saves. On a busy machine that takes longer than the second that Open MPI gives.
[[ ${#launcher[@]} == 1 ]] || patience=(--mca odls_base_sigkill_timeout 10)
begin_long interrupted
patience=()
kill -INT "$(pgrep -P "$job" mpirun || echo "$job")"
wait "$job"
code=$? output=$(<out) messages=$(<messages)
says '*division: interrupted after step *goes on from there*'

# A rank that hangs: the other leaves by itself, and names it.
begin_long hung --timeout 2
stopped=$(second_rank hung)
kill -STOP "$stopped"
wait "$job"
code=$? output=$(<out) messages=$(<messages)
kill -KILL "$stopped" 2>/dev/null
says '*division: rank 0: *waited 2 s for rank 1 (*), for *: see what became of it*'
[[ $code != 124 ]] || complain "expected it to end"

finish
