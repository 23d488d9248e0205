#!/usr/bin/env bash
# division report from outside: what it reads, what it says when something is wrong, what it writes.
# DV_PROGRAM is the program, DV_TEMP an empty folder.
source "$DV_SOURCE_DIR/tests/calls.bash"
subcommand=(report)

# epoch NUMBER ACCURACY: a line of a log.
epoch() {
    printf '{"epoch": %s, "train_loss": 1.5, "train_top1": 40, "test_loss": 1.25, "test_top1": %s, "images_per_second": 100, ' "$1" "$2"
    printf '"peak_bytes": 1000000, "activation_bytes": 500000, "seconds": 10, "learning_rate": 0.1, "steps": %s, "complete": true}\n' "$(($1 * 10))"
}

# make_run FOLDER METHOD SEED ACCURACY...: the folder of a run with an epoch per accuracy.
make_run() {
    local folder=$1 method=$2 seed=$3 number=0 accuracy
    shift 3
    mkdir -p "$folder"
    printf '{"model": "resnet20", "data": "cifar10:data", "method": "%s", "precision": "f32", "batch": 128, "epochs": %s, "seed": %s}\n' \
        "$method" $# "$seed" >"$folder/config.json"
    for accuracy; do
        number=$((number + 1))
        epoch "$number" "$accuracy"
    done >"$folder/log.jsonl"
}

# holds FILE TEXT...: the file has all the texts in it. A ~ is the space between a number and its unit, which does not break.
holds() {
    local file=$1 text
    shift
    for text; do
        grep -qF -- "${text//\~/$'\xc2\xa0'}" "$file" || complain "expected in $file: $text"
    done
}

# ---- calls -----------------------------------------------------------------------------------

run --help
prints 'Usage: division report RUN|FILE...*  -o FILE *  --figures FOLDER *'
run
fails 2 "report: missing RUN|FILE...: see 'division report --help'"
make_run runs/none-1 none 1 50 60.5
make_run runs/none-2 none 2 52 61.5
make_run runs/division-1 division 1 48 59.25
run runs/none-1
fails 2 "report: nothing to write: name a page with -o page.html, or a folder with --figures or --tensorboard"

# ---- a page ----------------------------------------------------------------------------------

run runs/none-1 runs/none-2 runs/division-1 -o page.html --title 'Ours & <theirs>'
prints ''
holds page.html '<title>Ours &amp; &lt;theirs&gt;</title>' '<html lang="en">' 'resnet20 on cifar10' \
    'none, epoch 2: 61.00~%, mean of 2 runs from 60.50~% to 61.50~%' 'division, epoch 2: 59.25~%' \
    'none: 61.00~%, mean of 2 runs from 60.50~% to 61.50~%, standard error 0.50~%' \
    'Memory by method: there is no data for this figure' 'division bench memory --model resnet50'
! grep -E '(src|href)="?(https?:)?//|@import|url\(' page.html || complain "expected nothing from elsewhere"
cp page.html first.html
run runs/none-1 runs/none-2 runs/division-1 -o page.html --title 'Ours & <theirs>'
cmp page.html first.html || complain "expected the same bytes"

# Benchmarks and plans, in one file or several; a method is one however it is spelt, and a repeated benchmark counts as it was last.
cat >bench.jsonl <<'EOL'
{"model": "resnet20", "batch": 64, "method": "none", "precision": "f32", "activation_bytes": 99408000, "planned_bytes": 107117696, "peak_bytes": 127172608, "activation_ratio": 1, "total_ratio": 1, "measured": true}
{"model": "resnet20", "batch": 64, "method": "division", "precision": "f32", "activation_bytes": 1, "planned_bytes": 1, "peak_bytes": null, "activation_ratio": 99, "total_ratio": 1, "measured": false}
{"model": "resnet20", "batch": 64, "method": "division:block=8,bits=2", "precision": "f32", "activation_bytes": 9025664, "planned_bytes": 24925440, "peak_bytes": null, "activation_ratio": 11.0139, "total_ratio": 2.8, "measured": false}

{"model": "resnet20", "batch": 64, "method": "none", "precision": "f32", "images_per_second": 232.25, "relative": 1}
{"model": "resnet20", "batch": 64, "method": "division", "precision": "f32", "images_per_second": 218.5, "relative": 0.9408}
{"model": "resnet20", "data": "cifar10:data", "batch": 64, "method": "none", "parameter": null, "batch_noise": 2, "method_noise": 0, "variance_ratio": 0, "mean_ratio": 0}
{"model": "resnet20", "data": "cifar10:data", "batch": 64, "method": "division", "parameter": null, "batch_noise": 2, "method_noise": 0.7, "variance_ratio": 0.1312, "mean_ratio": 1.02}
{"model": "resnet20", "data": "cifar10:data", "batch": 64, "method": "division", "parameter": "conv1.weight", "batch_noise": 1, "method_noise": 0.7, "variance_ratio": 0.5, "mean_ratio": 1.02}
{"model": "resnet50", "batch": 32, "method": "division", "precision": "f32", "threads": 2, "batches": 1, "bandwidth": 1250000000, "latency": 5e-05, "scales_to": 2, "scaling": [{"ranks": 1, "step_images": 32, "step_seconds": 4, "compute_seconds": 4, "transfer_seconds": 0, "waiting_seconds": 0, "images_per_second": 8, "efficiency": 1}, {"ranks": 2, "step_images": 64, "step_seconds": 5, "compute_seconds": 4, "transfer_seconds": 2, "waiting_seconds": 1, "images_per_second": 12.8, "efficiency": 0.8}]}
EOL
for method in none division; do
    "$DV_PROGRAM" plan --model resnet20 --batch 64 --method "$method" --json --operations >"plan-$method.jsonl"
done
run runs/none-1 runs/none-2 runs/division-1 bench.jsonl plan-*.jsonl -o page.html --figures figures
prints ''
holds page.html 'division: 9.0~MB of activations, 11.0~× less than none, 24.9~MB planned in all, peak not measured' '219~images/s' '0.941~×' \
    'division: 0.131 of the batch&#39;s variance, 141~kB for an image' 'division: accuracy 59.25~%, compression 11.0~×, throughput 0.941~×' \
    'division, 10 Gb/s, 50 µs, 2 machines: 12.8~images/s' 'division, 10 Gb/s, 50 µs, 2 machines: 80.00~%' \
    'bytes that each layer leaves; 9.0~MB when the forward pass ends' 'division, operation 1, forward bn1: '
! grep -q 'there is no data for this figure' page.html || complain "expected all figures"
! grep -qF '99.0' page.html || complain "expected the last of two equal benchmarks"
[[ $(find figures -name '*.svg' | wc -l) == 10 && $(find figures -name '*.csv' | wc -l) == 10 ]] || complain "expected ten figures"
holds figures/memory.csv 'division,resnet20,64,f32,9025664,11.0139,0.008405804634094238,,24925440,'
holds figures/accuracy.csv 'division,resnet20 on cifar10,1,59.25,,-1.75,,59.25,59.25,59.25,'
holds figures/noise.csv 'division,resnet20,cifar10:data,64,141026,0.1312,1.02'
holds figures/radar.csv 'division,resnet20 on cifar10,59.25,11.0139,0.9408'
# Where a figure was published, it stands beside ours: 5.14 GiB of ResNet-50's activations.
sed 's/"resnet20"/"resnet50"/' bench.jsonl >published.jsonl
run published.jsonl -o page.html --figures figures
holds page.html 'none, published: 5.5~GB' 'division, published: 526~MB' 'as published'
holds figures/memory.csv ',0.09258091449737549,5.14,107117696,127172608'
head -c 700 bench.jsonl >cut.jsonl
run cut.jsonl -o page.html
[[ $code == 0 && $messages == "division: cut.jsonl: the last line is cut off, as by a kill: those before it are shown" ]] ||
    complain "expected a word about the last line"

# Names hold anything.
make_run $'runs/<b>"&\'\e[31m' 'x\"><script>alert(1)</script>' 1 50
run $'runs/<b>"&\'\e[31m' -o names.html
prints ''
[[ $(grep -c '<script>' names.html) == 1 ]] || complain "expected no script but the page's own"
! LC_ALL=C grep -q $'\e' names.html || complain "expected no control characters"

# ---- files of figures ------------------------------------------------------------------------

rm -r figures
run runs/none-1 runs/division-1 --figures figures
prints ''
holds figures/accuracy-curves.svg '<svg xmlns="http://www.w3.org/2000/svg"' '<style>'
holds figures/accuracy-curves.csv 'run,network and data,method,epoch,training accuracy,test accuracy' \
    'division-1,resnet20 on cifar10,division,2,40,59.25'
if command -v xmllint >/dev/null; then
    xmllint --noout figures/*.svg || complain "expected figures that are XML"
fi

# ---- event files of TensorBoard --------------------------------------------------------------

touch -d @1000000000 runs/none-1/log.jsonl
run runs/none-1 runs/division-1 --tensorboard events
prints ''
[[ -s events/none-1/events.out.tfevents.0000000000.division && -s events/division-1/events.out.tfevents.0000000000.division ]] ||
    complain "expected an event file for each run"
for python in "${DV_PYTHON:-python3}" /usr/bin/python3; do
    ! "$python" -c 'import tensorboard' >/dev/null 2>&1 || break
    python=''
done
if [[ -z $python ]]; then
    echo "left out: TensorBoard's reader, for no Python has tensorboard"
else
    read_back=$("$python" "$DV_SOURCE_DIR/tests/tensorboard_read.py" events 2>messages) || complain "expected TensorBoard to read the files: $(<messages)"
    [[ $(wc -l <<<"$read_back") == 28 ]] || complain "expected seven numbers of two epochs of two runs: $read_back"
    for line in 'none-1 accuracy/test 20 60.5 1000000000.0' 'none-1 loss/train 10 1.5 999999990.0' 'division-1 accuracy/test 10 48.0 '; do
        [[ $read_back == *"$line"* ]] || complain "expected TensorBoard to read: $line"
    done
fi
run bench.jsonl --tensorboard events
fails 2 "no run was given to write event files of: give a folder that 'division train --out' made"
(cd runs/none-1 && "$DV_PROGRAM" report . --tensorboard ../../here) || complain "expected a run by the name of its folder"
[[ -d here/none-1 ]] || complain "expected a run by the name of its folder"

# ---- bad input -------------------------------------------------------------------------------

cp -r runs/none-1 cut && printf '{"epoch": 3, "train_lo' >>cut/log.jsonl
run cut -o page.html
[[ $code == 0 && $messages == "division: cut: the last line of log.jsonl is cut off, as by a kill: 2 epochs before it are shown" ]] ||
    complain "expected a word about the last line"
holds page.html 'cut: the last line of log.jsonl is cut off'
mkdir empty && run empty -o no.html
fails 1 "empty is no folder of a run: config.json is missing: give a folder that 'division train --out' made"
cp runs/none-1/config.json empty && run empty -o no.html
fails 1 "empty: log.jsonl has no epoch yet: wait for the first one, or leave this run out"
: >empty/log.jsonl && run empty -o no.html
fails 1 "empty: log.jsonl has no epoch yet: wait for the first one, or leave this run out"
sed '1s/1.5/NaN/' runs/none-1/log.jsonl >empty/log.jsonl && run empty -o no.html
fails_like 1 "empty/log.jsonl: line 1 is no JSON object, at character *: give a file as the program prints it"
printf '{"epoch": 1' >empty/config.json && run empty -o no.html
fails_like 1 "empty is no folder of a run: config.json *: give a folder that 'division train --out' made"
run missing -o no.html
fails 1 "could not read missing: No such file or directory: check the name, and that the folder exists"
: >nothing && run nothing -o no.html
fails 1 "nothing is empty: give the folder of a run, or what 'division bench' or 'division plan' prints with --json"
echo 'no JSON' >words && run words -o no.html
fails_like 1 "words: line 1 is no JSON object, at character 1: *"
echo '{"a": 1}' >other && run other -o no.html
fails_like 1 "other: line 1: nothing that a report shows: give what 'division bench memory'*"
cp -r runs/none-1 runs/division-1 cut && run runs/none-1 cut/none-1 -o no.html
fails 2 "two runs are called none-1, runs/none-1 and cut/none-1: rename one of the folders, or leave it out"
run runs/none-1 -o missing/page.html
fails_like 1 "*missing/page.html*No such file or directory*"
[[ ! -e no.html ]] || complain "expected no page after an error"
sed 's/"epochs": 2/"epochs": 9/' runs/none-1/config.json >empty/config.json && cp runs/none-1/log.jsonl empty
run empty -o page.html
[[ $code == 0 && $messages == "division: empty: 2 of 9 epochs are done: its last accuracy is not its final one" ]] ||
    complain "expected a word about a training under way"
sed 's/"test_top1": [0-9.]*/"test_top1": 50/' runs/none-1/log.jsonl >empty/log.jsonl
for patience in 1 2; do # the second epoch is no better than the first
    sed "s/\"epochs\": 2/\"epochs\": 9, \"patience\": $patience/" runs/none-1/config.json >empty/config.json
    run empty -o page.html
    [[ $code == 0 && ${messages:+told} == "$( ((patience == 1)) || echo told)" ]] || complain "expected a word unless patience ended it"
done

finish
