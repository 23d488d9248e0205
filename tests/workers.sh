#!/usr/bin/env bash
# --workers auto: the same bits as any number, a choice that is printed and in the log, an option that config.json keeps and
# --resume takes up. (peak.sh holds it to its plan, test_workers.c has what is chosen when.)
# DV_PROGRAM is the program, DV_TEMP an empty folder.
source "$DV_SOURCE_DIR/tests/calls.bash"
subcommand=(train)

for class in cat dog; do
    mkdir -p "images/$class"
    for i in 1 2 3 4; do
        "$DV_PROGRAM" data show synthetic:side=200 --seed "$i" --images 1 --columns 1 --png "images/$class/$i.png" >/dev/null
        for copy in a b c d e f g h; do
            ln "images/$class/$i.png" "images/$class/$i$copy.png"
        done
    done
done
options=(--data folder:images --side 8 --batch 4 --epochs 2)

run "${options[@]}" --out auto
succeeds
printed=$output
for workers in 0 2; do
    run "${options[@]}" --workers $workers --out "$workers" --quiet
    succeeds
    equal_in arrays auto/last.safetensors "$workers/last.safetensors" || complain "expected the bits of --workers auto"
    [[ $(tail -n 1 "$workers/log.jsonl") == *"\"workers\": $workers,"* ]] || complain "expected the number in the log"
    grep -q "\"workers\": $workers[,}]" "$workers/config.json" || complain "expected the number in config.json"
done
grep -q '"workers": "auto"' auto/config.json || complain "expected auto in config.json"
chosen=$(sed -n '$s/.*"workers": \([0-9]*\),.*/\1/p' auto/log.jsonl)
output=$printed
if (($(nproc) > 1)); then
    [[ $printed == *"workers: $chosen; steps are "*'faster with batches made ahead (--workers)'* ]] || complain "expected the choice of the log: $chosen"
else
    [[ $chosen == 0 && $printed != *'workers: '* ]] || complain "expected no choice"
fi

# in the middle of the trial, and after it
run "${options[@]}" --steps 9 --quiet --out parts
run --resume parts --steps 12 --quiet
succeeds
run --resume parts --steps 0 --quiet
succeeds
equal_in arrays auto/last.safetensors parts/last.safetensors || complain "expected the bits of a training in one go"

run --data synthetic --workers many
fails 2 "--workers: 'many' is not what it takes: give a whole number from 0 to 256, or auto"
finish
