#!/usr/bin/env bash
# A run of an earlier version (tests/fixtures) goes on: with its options, from its step, with the sums of the epoch that was
# under way, to a checkpoint with the same tensors. DV_PROGRAM is the program, DV_TEMP an empty folder.
# shellcheck source=tests/calls.bash
source "$DV_SOURCE_DIR/tests/calls.bash"
earlier=$DV_SOURCE_DIR/tests/fixtures/run-bf92902

# tensors FILE: names, types and shapes of a checkpoint.
tensors() {
    head -c "$((8 + $(od -An -t u8 -N 8 "$1")))" "$1" | grep -aoE '"[^"]*": \{"dtype": "[^"]*", "shape": \[[^]]*\]' | sort
}

# options FILE: a line for each option of a config.json; --steps, which the calls below give, is left out.
options() {
    tr -d '{}' <"$1" | sed 's/, "/\n"/g' | grep -v '^"steps"' | sort
}

# near NUMBER NUMBER: but for rounding, which depends on the processor.
near() {
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < (1e-4 * a) ^ 2) }'
}

cp -r "$earlier" run
run train --resume run --steps 8
prints 'planned *
goes on after step 7; epochs complete: 1
epoch 2/6  loss *'
# (40.35 of 16 images before + 26.47 of 8 images now) / 24, as the earlier version printed it.
loss=$(sed -n '2s/.*"train_loss": \([^,]*\),.*/\1/p' run/log.jsonl)
near "$loss" 2.7841387460383893 || complain "the loss of the epoch is $loss: expected 2.78413875, with the sums before step 8"
[[ $(head -n 1 "$earlier/log.jsonl") == "$(head -n 1 run/log.jsonl)" ]] || complain "another line of the first epoch"
options run/config.json >now
lost=$(options "$earlier/config.json" | comm -23 - now)
[[ -z $lost ]] || complain "options are not what they were: $lost"
[[ -n $(tensors run/last.safetensors) ]] || complain "expected tensors"
equal_in tensors "$earlier/last.safetensors" run/last.safetensors || complain "other tensors: $(differences tensors "$earlier/last.safetensors" run/last.safetensors)"

# An epoch has as many steps as it had: four of the 44 images do not fill a batch.
run train --resume run --steps 12 --quiet
prints ''
steps=$(sed -n 's/.*"steps": \([0-9]*\),.*/\1/p' run/log.jsonl | tr '\n' ' ')
[[ $steps == '5 10 12 ' ]] || complain "expected epochs to end at steps 5, 10 and 12: $steps"

run eval "$earlier/last.safetensors" --json
prints '*"model": "resnet20", *"loss": *'
finish
