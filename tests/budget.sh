#!/usr/bin/env bash
# --memory: a training takes no more than it was allowed, in several budgets; more memory is never slower; --resume keeps
# what was chosen, to the same bits; what cannot be is told with what would do. Where a memory control group can be made,
# trainings live in one of the budget's size. DV_PROGRAM is the program, DV_TEMP an empty folder.
# shellcheck source=tests/calls.bash
source "$DV_SOURCE_DIR/tests/calls.bash"
export XDG_CACHE_HOME=$PWD/cache
options=(--model resnet20 --data synthetic:side=16,train=128,test=16 --batch 64 --threads 1 --tune off)

if sanitized; then
    echo "left out: a sanitizer takes memory of its own"
    finish
fi

# ---- what would do -----------------------------------------------------------------------------

for text in 0 -5MB nan 1e300GB 600MX 150% 12.x ''; do
    run plan "${options[@]}" --memory="$text"
    fails_like 2 "--memory: *"
done
run plan "${options[@]}" --memory 900TB
fails_like 2 '--memory: 900TB: there are * MB here: give at most so many, or auto for what is free'
run plan "${options[@]}" --memory 1000
fails_like 2 '--memory: 1000: too little even to look at the network: * bytes (* MB) or more will do'
run plan "${options[@]}" --memory 60MB --ranks 2
fails_like 2 '--memory: for one process alone: *'

# ---- the curve ---------------------------------------------------------------------------------

run plan "${options[@]}" --frontier --json
succeeds
echo "$output" >frontier.json
points=$(grep -oE '"memory_bytes": [0-9]+, "planned_bytes": [0-9]+, "noise": [^,]+, "seconds": [^,]+' frontier.json)
[[ $(wc -l <<<"$points") -ge 5 ]] || complain "expected a curve"
head -n -2 <<<"$points" | awk -F'[:,]' 'NR > 1 && ($2 < bytes || $8 > seconds) { exit 1 } { bytes = $2; seconds = $8 }' ||
    complain "more memory is slower: $points"
least=$(grep -oE '"memory_bytes": [0-9]+' <<<"$points" | head -1 | grep -oE '[0-9]+$')
most=$(grep -oE '"memory_bytes": [0-9]+' <<<"$points" | tail -2 | head -1 | grep -oE '[0-9]+$')

# ---- a file of what was measured ---------------------------------------------------------------

run plan "${options[@]}" --frontier --json --profile profile.json
succeeds
first=$output
run plan "${options[@]}" --frontier --json --profile profile.json
frontier() { sed 's/"memory_bytes": [0-9]*//g' <<<"$1"; } # what is resident differs by a page
[[ $(frontier "$output") == "$(frontier "$first")" ]] || complain "expected the curve of the same profile"
run plan "${options[@]}" --frontier --model resnet29_preact --profile profile.json
fails_like 1 'profile.json: byte *: a value of another network: not a profile of this network: *'
sed 's/"code": [^,]*, //' profile.json >before.json # as a version of before would have it: a number less
run plan "${options[@]}" --frontier --profile before.json
fails_like 1 'before.json: byte *: a number is missing: not a profile of this network: remove the file, and it is made anew'
head -c 300 profile.json >cut.json
run plan "${options[@]}" --frontier --profile cut.json
fails_like 1 'cut.json: byte *'

# ---- smaller batches ---------------------------------------------------------------------------

# Less than the least for 512 images: too little for them, and enough for a half.
large=(--model resnet20 --data synthetic:side=16,train=1024,test=16 --batch 512 --threads 1 --tune off)
run plan "${options[@]}" --batch auto
fails_like 2 '--batch: auto: chosen by --memory: *'
run plan "${large[@]}" --frontier --json
succeeds
budget=$(($(grep -oE '"memory_bytes": [0-9]+' <<<"$output" | head -1 | grep -oE '[0-9]+$') - 5000000))
run plan "${large[@]}" --memory "$budget"
fails_like 2 '--memory: *: too little: *'
run train "${large[@]}" --batch auto --memory "$budget" --epochs 1 --steps 1 --out smaller
prints '*batches are of * images, and a step of *: 512 images, as before (--batch auto)*'
batch=$(field batch smaller/config.json) accumulate=$(field accumulate smaller/config.json)
((batch < 512 && batch * accumulate == 512)) || complain "expected smaller batches and as many images a step"
run train --resume smaller --steps 2 --quiet
prints ''
[[ $(field batch smaller/config.json) == "$batch" ]] || complain "expected --resume to keep the batch"

# ---- trainings ---------------------------------------------------------------------------------

# The process takes no more than was allowed.
keeps_to_budget() {
    local peak
    peak=$(field peak_bytes "$1/summary.json")
    echo "$call: allowed $2, peak $peak"
    ((peak > 0 && peak <= $2)) || complain "allowed $2 bytes, and took $peak"
}

# A folder of a memory control group with this limit; nothing where none can be made.
new_group() {
    local parent=/sys/fs/cgroup/memory file=memory.limit_in_bytes
    [[ -d $parent ]] || { parent=/sys/fs/cgroup file=memory.max; }
    group=$parent/division-budget-$$
    mkdir "$group" 2>/dev/null && echo "$1" 2>/dev/null >"$group/$file"
}

room=$((5000000)) # what differs from process to process
for part in 0 3 10; do
    budget=$((least + room + (most - least) * part / 10))
    run train "${options[@]}" --memory $budget --epochs 1 --quiet --replace --out run-$part
    prints ''
    keeps_to_budget run-$part $budget
    grep -q '"method": "mixed:' run-$part/config.json || complain "config.json does not have what was chosen"
done

if new_group "$budget"; then
    (echo $BASHPID >"$group/cgroup.procs" && exec "$DV_PROGRAM" train "${options[@]}" --memory $budget --epochs 1 --quiet --out grouped) ||
        complain "a training of $budget bytes does not live in a control group of as many"
    rmdir "$group"
else
    [[ ! -d $group ]] || rmdir "$group"
    echo "left out: no memory control group can be made here"
fi

# ---- going on ----------------------------------------------------------------------------------

# Three steps and then the rest, or all at once: the same choice and the same weights.
method() { grep -oE '"method": "[^"]*"' "$1/config.json"; }
budget=$((least + room))
run train "${options[@]}" --memory $budget --epochs 3 --steps 3 --quiet --out halves
prints ''
before=$(method halves)
cp -r halves copy
run train --resume halves --steps 0 --quiet
prints ''
[[ $(method halves) == "$before" ]] || complain "--resume chose anew"
run train "${options[@]}" --method "$(grep -oE 'mixed:[^"]*' <<<"$before")" --epochs 3 --quiet --out whole
prints ''
equal_in arrays halves/last.safetensors whole/last.safetensors || complain "a training that goes on has other bits"
finish
