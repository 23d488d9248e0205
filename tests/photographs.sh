#!/usr/bin/env bash
# examples/photographs.sh on photographs that are made up: from the folder to predictions, with pretrained weights and
# without. DV_PROGRAM is the program.
source "$DV_SOURCE_DIR/tests/calls.bash"
if sanitized; then
    echo "left out: trainings take long under a sanitizer"
    finish
fi

# example ARGUMENT...: calls it.
example() {
    call="photographs.sh $*"
    output=$(DIVISION=$DV_PROGRAM "$DV_SOURCE_DIR/examples/photographs.sh" "$@" 2>messages </dev/null)
    code=$?
    messages=$(<messages)
}

"$DV_SOURCE_DIR/tests/make_photographs" photos 12
example photos first none --side 64 --epochs 2 --lr 0.01
succeeds
for file in sheet.png run/best.safetensors confusion.png mistakes.csv; do
    [[ -s first/$file ]] || complain "expected $file"
done
[[ $(wc -l <first/predictions.csv) == 13 ]] || complain "expected a line for each of 12 photographs"
if "$DV_PROGRAM" help export >/dev/null 2>&1; then
    [[ -s first/network.onnx ]] || complain "expected network.onnx"
fi

# Weights of a thousand classes.
"$DV_PROGRAM" train --model resnet18 --classes 1000 --data folder:photos --side 64 --batch 8 --lr 0 --epochs 1 --out weights --quiet
example photos second weights/last.safetensors --side 64 --epochs 2
succeeds
[[ $output == *'top-1'* ]] || complain "expected a test"
example photos
[[ $code == 2 && $messages == *'Usage: photographs.sh PHOTOGRAPHS RESULT'* ]] || complain "expected how it is called"
example nowhere third
[[ $code != 0 && $messages == *'nowhere'* ]] || complain "expected a word on the folder"
finish
