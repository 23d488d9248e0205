#!/usr/bin/env bash
# The page of division report in a browser: all figures are there, no words overlap or go over an edge, bars are as long as their
# numbers, on a screen and on a telephone, in light and dark. Pictures of it stay in the build folder, under report. Left out,
# with a word, where there is no Chromium. DV_PROGRAM is the program, DV_BUILD_DIR the build folder, DV_TEMP an empty folder.
source "$DV_SOURCE_DIR/tests/calls.bash"

for browser in chromium chromium-browser google-chrome; do
    ! command -v "$browser" >/dev/null || break
    browser=''
done
if [[ -z $browser ]]; then
    echo "left out: there is no Chromium (package chromium)"
    finish
fi

# ---- a page with everything in it ------------------------------------------------------------

# Methods as people will compare them, with names from short to long.
methods=(none division division:dither=subtractive "division:dither=subtractive,recompute=norms" "division:bits=4,recompute=norms"
    checkpoint swap actnn:level=L1 blpa acgc bf16 "a method: <with> \"odd\" & very long name, longer than any method has a right to be, and longer")

# json METHOD: a method as a JSON string.
json() {
    sed 's/["\\]/\\&/g; s/.*/"&"/' <<<"$1"
}

# make_run SEED INDEX: the folder of a run with the method of that index.
make_run() {
    local folder="runs/run-$2-$1" epoch
    mkdir -p "$folder"
    printf '{"model": "resnet20", "data": "cifar10:d", "method": %s, "precision": "f32", "batch": 128, "epochs": 12, "seed": %s}\n' \
        "$(json "${methods[$2]}")" "$1" >"$folder/config.json"
    for epoch in {1..12}; do
        awk -v e="$epoch" -v s="$1" -v m="$2" 'BEGIN {
            top = 89 - 40 / e + sin(e * 7 + s * 3 + m) * 3 / e
            printf "{\"epoch\": %d, \"train_loss\": %.4f, \"train_top1\": %.3f, \"test_loss\": %.4f, \"test_top1\": %.3f, ", e, 2 / e, top + 1, 2.2 / e + m / 50, top
            printf "\"images_per_second\": 100, \"peak_bytes\": 1e6, \"activation_bytes\": 5e5, \"seconds\": 10, \"learning_rate\": 0.1, \"steps\": %d}\n", e * 390 }'
    done >"$folder/log.jsonl"
}

expected=''
for index in "${!methods[@]}"; do
    for seed in 1 2; do
        make_run "$seed" "$index"
    done
    name=$(json "${methods[index]}") bytes=$((index == 0 ? 99408000 : 90000000 / (index + 1)))
    expected+="$name: $bytes, "
    printf '{"model": "resnet20", "batch": 64, "method": %s, "precision": "f32", "activation_bytes": %s, "planned_bytes": 107117696, "peak_bytes": 127172608, "activation_ratio": %s, "measured": true}\n' \
        "$name" "$bytes" "$(awk -v b="$bytes" 'BEGIN { print 99408000 / b }')"
    printf '{"model": "resnet20", "batch": 64, "method": %s, "precision": "f32", "images_per_second": %s, "relative": %s}\n' "$name" $((232 - 9 * index)) "0.$((98 - 4 * index))"
    printf '{"model": "resnet20", "data": "cifar10:d", "batch": 64, "method": %s, "parameter": null, "variance_ratio": %s, "mean_ratio": 1}\n' "$name" "$((index % 5 == 0 ? 0 : 1)).$((index / 3))e-2"
done >bench.jsonl
for method in none division checkpoint; do
    "$DV_PROGRAM" plan --model resnet50 --batch 32 --method "$method" --json --operations
done >plans.jsonl
for bandwidth in 1 10; do
    "$DV_PROGRAM" plan --model resnet20 --batch 2 --threads 1 --tune off --bandwidth "${bandwidth}Gb/s" --json
done >scaling.jsonl
call="division report"
"$DV_PROGRAM" report runs/* bench.jsonl plans.jsonl scaling.jsonl -o page.html --title 'Twelve methods' || complain "expected a page"

# ---- in the browser --------------------------------------------------------------------------

kept=$DV_BUILD_DIR/report
mkdir -p "$kept"
cp page.html "$kept"

# browse ARGUMENT...: calls the browser, with everything of its own in this folder.
browse() {
    HOME=$PWD timeout 120 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$PWD/profile" "$@" 2>browser_said
}

# looks NAME DARK ARGUMENT...: the page is right in a browser that is called like this, and a picture of it is kept.
looks() {
    local name=$1 dark=$2
    shift 2
    call="$browser, $name"
    {
        sed '/<\/body>/,$d' page.html
        echo "<script>var expectedBytes = {${expected%, }}, expectedDark = $dark;"
        echo "var expectedSections = ['radar', 'accuracy', 'memory', 'throughput', 'noise', 'scaling', 'plan', 'schedule', 'accuracy-curves', 'loss-curves'];</script>"
        echo "<script>" && cat "$DV_SOURCE_DIR/tests/report_check.js" && echo "</script></body></html>"
    } >checked.html
    browse "$@" --virtual-time-budget=4000 --dump-dom "file://$PWD/checked.html" >dom.html
    output=$(tr '\n' '\f' <dom.html | sed 's/.*<pre id="verdict">//; s/<\/pre>.*//' | tr '\f' '\n') code=$?
    messages=$(tail -n 3 browser_said)
    [[ $output == fine ]] || complain "expected nothing to be wrong with the page"
    browse "$@" --screenshot="$kept/$name.png" "file://$PWD/page.html" >/dev/null
    [[ -s $kept/$name.png ]] || complain "expected a picture"
}

looks light false --window-size=1200,9000
looks dark true --window-size=1200,9000 --force-dark-mode
looks telephone false --window-size=390,14000
browse --no-pdf-header-footer --print-to-pdf="$kept/print.pdf" "file://$PWD/page.html" >/dev/null
[[ -s $kept/print.pdf ]] || complain "expected a printed page"

# Each figure alone is a picture too, as in a README.
"$DV_PROGRAM" report runs/* bench.jsonl plans.jsonl --figures figures || complain "expected figures"
printf '<img width="900" alt="" src="%s">\n' figures/*.svg >pictures.html
echo '<script>onload = function () { document.title = Array.from(document.images).every(function (i) { return i.naturalWidth > 300; }) ? "fine" : "broken"; }</script>' >>pictures.html
browse --window-size=920,8000 --screenshot="$kept/figures.png" "file://$PWD/pictures.html" >/dev/null
browse --virtual-time-budget=4000 --dump-dom "file://$PWD/pictures.html" | grep -q '<title>fine' || complain "expected nine pictures"
echo "pictures are in $kept"
finish
