#!/usr/bin/env bash
# division bench memory, throughput, gradient and worker from outside: what they print, that it can be true, and errors.
# DV_PROGRAM is the program, DV_TEMP an empty folder.
source "$DV_SOURCE_DIR/tests/calls.bash"
subcommand=(bench)
shopt -s extglob

# value FIELD [LINE]: the field's value in a line of the last output (1).
value() {
    sed -n "${2:-1}s/.*\"$1\": \([^,}]*\).*/\1/p" <<<"$output"
}

# holds CONDITION: what awk makes of the condition is true.
holds() {
    awk "BEGIN { exit !($1) }" || complain "does not hold: $1"
}

# ---- memory ----------------------------------------------------------------------------------

# object METHOD PRECISION MEASURED: the pattern of a line.
object() {
    echo '{"model": "*", "batch": +([0-9]), "method": "'"$1"'", "precision": "'"$2"'", *("side": +([0-9]), |"classes": +([0-9]), )"activation_bytes": +([0-9]), "planned_bytes": +([0-9]), "peak_bytes": @(+([0-9])|null), "activation_ratio": +([0-9.]), "total_ratio": +([0-9.]), "measured": '"$3"', "activation_gib": +([0-9.e-]), "published_gib": @(+([0-9.])|null)}'
}

# promised LINE: the peak is what was planned, within 5 % and 100 MB. A sanitizer takes memory of its own: there, peaks of
# small networks say nothing.
promised() {
    local planned peak
    planned=$(value planned_bytes "$1") peak=$(value peak_bytes "$1")
    if sanitized; then
        holds "$peak > $planned"
    else
        holds "$peak > $planned && $peak <= 1.05 * $planned + 1e8"
    fi
}

run memory --model resnet20 --batch 4,8 --json
prints "$(object none f32 true)
$(object division f32 true)
$(object none f32 true)
$(object division f32 true)"
for line in 1 2 3 4; do
    promised $line
done
[[ $(value batch 2) == 4 && $(value batch 3) == 8 ]] || complain "batches are not 4 and 8"
for line in 2 4; do
    holds "$(value activation_ratio $line) >= 10.5"
    sanitized || holds "$(value total_ratio $line) > 1"
    holds "$(value activation_ratio $line) == $(value activation_bytes $((line - 1))) / $(value activation_bytes $line)"
done
holds "$(value total_ratio 2) == $(value peak_bytes 1) / $(value peak_bytes 2)"
planned=$(value planned_bytes 1)
output=$("$DV_PROGRAM" plan --model resnet20 --batch 4 --method none --json)
[[ $(value planned_bytes) == "$planned" ]] || complain "planned $planned, not what division plan says"
run memory --model resnet20 --batch 4 --methods none --threads 2
prints "model *
resnet20 *4  none *f32 *1.00 * 1.00"

# Every method keeps the promise, whatever the network and the precision.
networks=("resnet18 --side 64" resnet18_cifar resnet56)
if sanitized; then
    networks=(resnet20)
fi
for network in "${networks[@]}"; do
    for precision in f32 bf16; do
        # shellcheck disable=SC2086 # words they are
        run memory --model $network --batch 2 --precision $precision --json
        prints "$(object none $precision true)
$(object division $precision true)"
        promised 1
        promised 2
    done
done

# Methods with options; none is not asked for: what it would take is planned.
run memory --model resnet20 --batch 4 --methods division:bits=4,block=4,division --classes 7 --json
prints "$(object division:bits=4,block=4 f32 true)
$(object division f32 true)"
holds "$(value activation_ratio 1) > 4"
sanitized || holds "$(value total_ratio 2) > $(value total_ratio 1)"

# What does not fit is not run.
run memory --model resnet50 --batch 1048576 --json
prints "$(object none f32 false)
$(object division f32 false)"
[[ $(value peak_bytes 1) == null ]] || complain "a peak that was not measured"
holds "$(value total_ratio 2) == $(value planned_bytes 1) / $(value planned_bytes 2)"
run memory --model resnet50 --batch 1048576
prints '*none*not run*division*not run*'

# What would be chosen for some bytes is one more method, another one for another batch, and keeps to them.
run memory --model resnet20 --batch 32,64 --methods none --memory 70MB --json
[[ $code == 0 && $(wc -l <<<"$output") == 4 && $(value method 1) == '"none"' && $(value method 4) == '"mixed:'* &&
    $(value batch 4) == 64 ]] || complain "expected none and what is chosen, for both batches"
sanitized || holds "$(value peak_bytes 2) <= 70000000 && $(value peak_bytes 4) <= 70000000"
run gradient --model resnet20 --batch 16 --side 16 --data synthetic:side=16,train=64,test=16 --batches 2 --draws 2 --methods lean --memory 60MB --json
[[ $code == 0 && $(value method 1) == '"lean"' && $(value method 2) == '"mixed:'* ]] || complain "expected the noise of both"
run throughput --model resnet20 --batch 64 --memory 1000
fails_like 2 '--memory: 1000: too little even to look at the network: *'
run throughput --model resnet20 --batch 64 --memory 70MB,
fails_like 2 "memory: '' is not what it takes: give *"

# Published figures stand beside ours in both units, and nothing is run where a process may take nothing.
run memory --model resnet50 --batch 64 --limit 0.001 --json
prints "$(object none f32 false)
$(object division f32 false)"
[[ $(value published_gib 1) == 5.14 && $(value published_gib 2) == 0.49 ]] || complain "published: 5.14 and 0.49 GiB"
holds "$(value activation_gib 2) == $(value activation_bytes 2) / 1073741824 && $(value activation_ratio 2) >= 10.5"
run memory --model resnet50 --batch 64 --limit 0.001
prints "model * activations *GiB published *
resnet50 *64  none *f32 *5.2 GB *4.8?? *5.14 * not run *
resnet50 *64  division *f32 * 0.49 * not run *"

# Every method in one call; none comes first, wherever it stands.
run memory --model resnet20 --batch 2 --methods all,division:bits=4 --limit 0.001 --json
[[ $code == 0 && $(value method 1) == '"none"' && $(wc -l <<<"$output") == $(($("$DV_PROGRAM" methods --json | wc -l) + 1)) ]] ||
    complain "expected a line for every method and one more"

# A file of lines: what is there is not measured again, a line that was cut off is; the table has both.
resumes() { # COMMAND FIGURE
    local words=("$1" --model resnet20 --batch "2,4" --out "$1.jsonl")
    run "${words[@]}" --json
    [[ $code == 0 && $output == "$(<"$1.jsonl")" && $(wc -l <"$1.jsonl") == 4 ]] || complain "expected the lines in the file too"
    sed -i "1s/\"$2\": [0-9.]*/\"$2\": 123456/" "$1.jsonl"
    truncate --size=-30 "$1.jsonl"
    cp "$1.jsonl" before
    run "${words[@]}" --json
    [[ $code == 0 && $output == "$(<"$1.jsonl")" && $(wc -l <<<"$output") == 4 && $(value "$2" 1) == 123456 &&
        $output == "$(head -n 3 before)"* && $(value batch 4) == 4 ]] || complain "expected three lines as before and one anew"
    run "${words[@]}"
    [[ $code == 0 && $(wc -l <<<"$output") == 5 && $(sed -n 2p <<<"$output") == resnet20*none* ]] || complain "expected a table"
    run "$1" --model resnet20 --batch 2 --side 16 --methods none --out "$1.jsonl" --json
    [[ $code == 0 && $output == *'"side": 16, '* && $(wc -l <"$1.jsonl") == 5 ]] || complain "another side is another line"
}
resumes memory activation_bytes
resumes throughput images_per_second

# A line from a plan alone is measured once memory allows it, and only then.
for limit in 0.001 0.001 0 0; do
    run memory --model resnet20 --batch 2 --methods none --limit "$limit" --out plans.jsonl --json
done
[[ $code == 0 && $(value measured 1) == true && $(grep -o '"measured": [a-z]*' plans.jsonl | tr -d '\n') == '"measured": false"measured": true' ]] ||
    complain "expected a line of a plan, and one of a measurement"
printf 'no lines' >other
run memory --model resnet20 --batch 2 --out other
fails 1 'other is no file of a benchmark'"'"'s lines: give another one with --out'
[[ $(<other) == 'no lines' ]] || complain "the file is not as it was"
run memory --model resnet20 --batch 2 --out missing/file
fails 1 'could not open missing/file: No such file or directory: give another file with --out'
exec 9>>memory.jsonl && flock 9
run memory --model resnet20 --batch 2 --out memory.jsonl
fails 1 'memory.jsonl: another call writes to it: wait for its end, or give another file with --out'
exec 9>&-

# The processes that measure start others; whose number is known by /proc alone.
children=yes
[[ -e /proc/$$/task/$$/children ]] || { children="" && echo "left out: workers that are killed (there is no /proc)"; }

# Whoever measures is killed: the process that trains ends with it, in the middle of a long round.
if [[ $DV_PROGRAM != */emulated/* && $children ]]; then
    "$DV_PROGRAM" bench throughput --model resnet20 --batch 32 --rounds 1 --steps 10000 --methods none >told 2>&1 &
    measuring=$! worker=
    for ((i = 0; i < 100; i++)); do
        read -r worker _ <"/proc/$measuring/task/$measuring/children" || true
        [[ -z $worker ]] || break
        sleep 0.1
    done 2>/dev/null
    sleep 1
    kill -0 "$worker" || complain "there is no worker to outlive: $(<told)"
    kill -KILL "$measuring"
    wait "$measuring" 2>/dev/null || true
    for ((i = 0; i < 100; i++)); do
        kill -0 "$worker" 2>/dev/null || break
        sleep 0.1
    done
    ! kill -0 "$worker" 2>/dev/null || { complain "the worker outlives whoever started it" && kill -KILL "$worker"; }
fi

# ---- throughput ------------------------------------------------------------------------------

speed() {
    echo '{"model": "resnet20", "batch": 4, "method": "'"$1"'", "precision": "'"$2"'", "images_per_second": +([0-9.]), "relative": +([0-9.])}'
}

run throughput --model resnet20 --batch 4 --rounds 2 --steps 1 --json
prints "$(speed none f32)
$(speed division f32)"
[[ $(value relative 1) == 1 ]] || complain "none is not 1"
holds "$(value images_per_second 1) > 0 && $(value relative 2) > 0.05 && $(value relative 2) < 20"
run throughput --model resnet20 --batch 4 --rounds 1 --steps 1 --precision bf16 --methods division,division:bits=8,none --json
prints "$(speed none bf16)
$(speed division bf16)
$(speed division:bits=8 bf16)"
[[ $(value relative 1) == 1 ]] || complain "none is not 1"
run throughput --model resnet20 --batch 4 --rounds 1 --methods division
prints 'model * images/s *relative
resnet20 *4  division *f32 * 1.000'

# ---- the paper's evaluation ------------------------------------------------------------------

# From plans alone, nothing is run: every method and batch, marked as not measured, beside what was published.
run paper-memory --trial --limit 0.001 --out evaluation --json
[[ $code == 0 && $messages == 'paper-memory: 0 of '*' are in evaluation already; the rest takes about 0:00 hours'*'evaluation/report.html' ]] ||
    complain "expected an estimate and a page"
lines=$(wc -l <evaluation/memory.jsonl)
for model in resnet50 wide_resnet50_2 resnet164_published; do
    grep -q '"model": "'$model'", .*"method": "acgc".*"measured": false' evaluation/memory.jsonl || complain "$model is missing"
done
[[ $(<evaluation/report.html) == *'</html>'* && -s evaluation/figures/memory.csv ]] || complain "expected a page and figures"

# A call that was killed goes on: the same lines, none twice, those that were there as they were.
head -n 20 evaluation/memory.jsonl >kept && head -c -9 kept >evaluation/memory.jsonl
run paper-memory --trial --limit 0.001 --out evaluation --json
[[ $code == 0 && $messages == 'paper-memory: 19 of '"$lines"' are in evaluation already;'* && $(wc -l <evaluation/memory.jsonl) == "$lines" &&
    $(sort -u evaluation/memory.jsonl | wc -l) == "$lines" && $(head -n 19 evaluation/memory.jsonl) == "$(head -n 19 kept)" ]] ||
    complain "expected what was missing, and no more"

# Trainings and noise go into folders of runs; killed in the middle they are complete after one more call. It takes minutes
# of the processor: with DV_EVALUATION=1 alone.
if [[ -z ${DV_EVALUATION:-} ]]; then
    echo "left out: the noise of all methods, killed and gone on with (DV_EVALUATION=1 has it)"
else
    trial=(bench paper-noise --trial --recipes "$DV_SOURCE_DIR/recipes" --out evaluation)
    "$DV_PROGRAM" "${trial[@]}" >told 2>&1 &
    kill_within 8000 $! || true
    run "${trial[@]:1}"
    [[ $code == 0 && -s evaluation/weights/resnet18-none-1/summary.json && $(grep -c '"resnet20"' evaluation/gradient.jsonl) == 11 &&
        $(grep -c '"resnet18_cifar"' evaluation/gradient.jsonl) == 11 ]] || complain "expected two trainings and the noise of eleven methods"
    run "${trial[@]:1}"
    [[ $code == 0 && $messages == 'paper-noise: 24 of 24 are in evaluation already;'* ]] || complain "expected nothing to do"
fi
run paper-accuracy --estimate --recipes nowhere --out evaluation
[[ $code == 1 && $messages == *'recipes are looked for in nowhere: give their folder with --recipes' ]] || complain "expected a word on recipes"
run paper-memory --estimate --limit 0.001 --out estimated
[[ $code == 0 && ! -e estimated ]] || complain "an estimate leaves nothing behind"
run paper-accuracy --trial --full --estimate --recipes "$DV_SOURCE_DIR/recipes" --out evaluation
[[ $code == 0 && $messages == 'paper-accuracy: 0 of 21 are in evaluation already;'* ]] || complain "expected the published trainings"

# ---- gradient --------------------------------------------------------------------------------

noise() {
    echo '{"model": "resnet20", "data": "synthetic:*", "batch": 8, "method": "'"$1"'", "parameter": '"$2"', "batch_noise": +([0-9.]), "method_noise": +([0-9.e-]), "variance_ratio": +([0-9.e-]), "mean_ratio": +([0-9.e-]), "bias_ratio": +([0-9.e-]), "activation_bytes": +([0-9])}'
}

small=(--model resnet20 --data "synthetic:side=16,train=64,test=8" --batch 8)
run gradient "${small[@]}" --batches 4 --draws 6 --methods none,division,division:dither=subtractive,division:bits=8,division:recompute=norms --json
prints "$(noise none null)
$(noise division null)
$(noise division:dither=subtractive null)
$(noise division:bits=8 null)
$(noise division:recompute=norms null)"
[[ $(value method_noise 1) == 0 ]] || complain "none is not exact"
holds "$(value variance_ratio 2) > 0.01 && $(value variance_ratio 2) < 1"
holds "$(value variance_ratio 3) < 0.7 * $(value variance_ratio 2) && $(value variance_ratio 4) < 0.01 * $(value variance_ratio 2)"
holds "$(value variance_ratio 5) < 0.4 * $(value variance_ratio 2)"
holds "$(value mean_ratio 2) > 0.5 && $(value mean_ratio 2) < 1.5" # no bias
holds "$(value bias_ratio 2) > -0.2 && $(value bias_ratio 2) < 0.2 && $(value bias_ratio 1) == 0"
# rounded to the nearest the error of a batch is the same in every draw: all of it is bias
run gradient "${small[@]}" --batches 2 --draws 2 --fixed --methods division:dither=none --json
holds "$(value bias_ratio 1) > 0.99 * $(value variance_ratio 1)"
run gradient "${small[@]}" --batches 2 --draws 2 --methods division --parameters
prints 'method * variance *mean *bias
division all *
division conv1.weight *
division fc.bias *'
run gradient "${small[@]}" --batches 9
fails 2 '--batches 9: the data has 8 of 8 images: give fewer'
run gradient "${small[@]}" --batches 2 --methods division,nothing
fails_like 2 'unknown method "nothing": there are none, division, *'
run gradient "${small[@]}" --batches 2 --init missing.safetensors
fails 1 'could not read missing.safetensors: No such file or directory: check the name, and that the folder exists'

# ---- the worker ------------------------------------------------------------------------------

call="division bench worker <<<'1 2'"
output=$(printf '1\n2\n' | "$DV_PROGRAM" bench worker --model resnet20 --batch 2 2>messages)
code=$? messages=$(<messages)
answer='{"seconds": +([0-9.e-]), "peak_bytes": +([0-9])}'
prints "$answer
$answer"
for steps in 0 -1 x 1x 1000001; do
    call="division bench worker <<<$steps"
    output=$("$DV_PROGRAM" bench worker --model resnet20 --batch 2 2>messages <<<"$steps")
    code=$? messages=$(<messages)
    fails 2 "bench worker: '$steps' is no number of steps: give one from 1 to 1000000 a line"
done

# ---- errors ----------------------------------------------------------------------------------

for batch in 0 x 4, ,4 4,,4 4x 1048577; do
    run memory --batch $batch
    fails 2 "--batch: '$batch' is not what it takes: give whole numbers from 1 to 1048576 with commas between them"
done
run memory --batch 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1
fails 2 "--batch: '1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1' are more than 16: give fewer"
for command in memory throughput; do
    for methods in '' , none, none,,division; do
        run $command --methods "$methods"
        fails 2 "--methods: '$methods' has an empty place: give methods with commas between them"
    done
    run $command --model resnet20 --batch 4 --methods none,nothing
    fails_like 2 'unknown method "nothing": there are none, division, *'
    run $command --model resnet20 --batch 4 --methods none,division:bits=3
    [[ $code == 2 && -z $output && $messages == division:*bits=3* ]] || complain "expected a message on bits"
    run $command --model resnet21
    [[ $code == 2 && -z $output && $messages == 'division: unknown model "resnet21"'* ]] || complain "expected a message on resnet21"
    run $command --precision f64
    fails 2 "--precision: 'f64' is not what it takes: give f32 or bf16"
    run $command --help
    prints "Usage: division bench $command*--methods*"
done
run throughput --rounds 0
fails 2 "--rounds: '0' is not what it takes: give a whole number from 1 to 101"
run throughput --model resnet50 --batch 1048576 --methods none
[[ $code == 1 && -z $output && $messages == 'division: the plan takes '*' GB and '*' GB are free: use a smaller batch or a method that keeps less' ]] || complain "expected a message on memory"

# A worker that is killed is told of.
if [[ $children ]]; then
    call="division bench throughput, its worker killed"
    "$DV_PROGRAM" bench throughput --model resnet20 --batch 4 --rounds 101 --methods none >output 2>messages &
    parent=$!
    worker=
    for ((i = 0; i < 100; i++)); do
        worker=$(cat "/proc/$parent/task/$parent/children" 2>/dev/null)
        [[ -n $worker ]] && break
        sleep 0.1
    done
    kill -KILL $worker
    wait $parent
    code=$? output=$(<output) messages=$(<messages)
    fails 1 "resnet20, batch 4, method none: the process that trained it was ended by signal 9: memory may have run out: use a smaller batch"
fi

# ---- beside PyTorch --------------------------------------------------------------------------

# compare ARGUMENT...: calls bench/compare.
compare() {
    call="bench/compare $*"
    output=$("$DV_SOURCE_DIR/bench/compare" --program "$DV_PROGRAM" "$@" 2>messages)
    code=$?
    messages=$(<messages)
}

row() {
    echo '{"model": "resnet20", "batch": 4, "method": "'"$1"'", "precision": "f32", "images_per_second": +([0-9.]), "relative": +([0-9.]), "peak_bytes": +([0-9]), "total_ratio": +([0-9.])}'
}

if ! sanitized && [[ -x /usr/bin/python3 ]]; then
    compare --model resnet20 --batch 4 --rounds 1 --steps 1 --json
    if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
        prints "$(row pytorch)
$(row none)
$(row division)"
        holds "$(value peak_bytes 1) > $(value peak_bytes 3) && $(value total_ratio 3) > 1"
    else
        [[ $code == 1 && -z $output && $messages == *'has no PyTorch: install python3-torch'* ]] || complain "expected a message on PyTorch"
    fi
fi

finish
