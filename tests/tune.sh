#!/usr/bin/env bash
# Passes chosen by measurement: two trainings with one file of times have the same bits, one that goes on has the passes it
# had though the file is gone, and a damaged file is measured again. DV_PROGRAM is the program, DV_TEMP an empty folder.
# shellcheck source=tests/calls.bash
source "$DV_SOURCE_DIR/tests/calls.bash"
export XDG_CACHE_HOME=$PWD/cache DV_TUNE=cache
options=(--model resnet20 --data synthetic:side=16,train=64,test=16 --batch 16 --epochs 2 --threads 1)

same() {
    equal_in arrays "$1/last.safetensors" "$2/last.safetensors" || complain "$1 and $2 have other weights"
}

run train "${options[@]}" --out first
succeeds
[[ -s first/passes.txt ]] || complain "first has no passes.txt"
file=$(echo cache/division/passes-*.txt)
[[ -s $file ]] || complain "no times are kept"
run train "${options[@]}" --out second
succeeds
same first second

run train "${options[@]}" --out third --steps 3
succeeds
echo "damaged" >"$file"
run train --resume third --steps 0
succeeds
same first third
[[ $(cat "$file") == damaged ]] || complain "a training that goes on measured its passes"

run train "${options[@]}" --out fourth
succeeds
[[ $(wc -l <"$file") -gt 2 ]] || complain "a damaged file was not measured again"

run train "${options[@]}" --tune off --out plain
succeeds
[[ ! -e plain/passes.txt ]] || complain "--tune off has a passes.txt"
run train "${options[@]}" --tune fast --out none
fails 2 '--tune: unknown way to tune "fast": there are off, cache and again'
run info --passes resnet20 --batch 4 --threads 1
prints 'first layer*layer1.0.conv1*forward*convolutions take*the peak is*'
finish
