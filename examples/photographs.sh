#!/usr/bin/env bash
# From a folder of photographs to a network that names what is on others: look at them, fine-tune a ResNet-18, test it with
# a matrix of confusions, predict, and export it for other programs where the program can.
#
# Usage: photographs.sh PHOTOGRAPHS RESULT [WEIGHTS [OPTION...]]
#   PHOTOGRAPHS  a folder with train/CLASS/ and val/CLASS/ of JPEG, PNG or WebP files
#   RESULT       a folder that is made, for all that comes of it
#   WEIGHTS      pretrained weights to begin with, as torchvision's resnet18 (.pth or .safetensors); none: begin at random
#   OPTION       more options of 'division train', as --side 128 --epochs 20
# The program is division, or what DIVISION says.
set -euo pipefail
if (($# < 2)); then
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
fi
photographs=$1 result=$2 weights=${3:-none}
options=("${@:4}")
division=${DIVISION:-division}
mkdir -p "$result"

# With pretrained weights all but the last two stages stay as they are, and the new last layer learns ten times as fast.
begin=()
if [[ $weights != none ]]; then
    begin=(--init "$weights" --init-except fc --freeze 'conv1,bn1,layer[12]' --groups fc:rate=10)
fi

say() {
    printf '\n== %s\n' "$*"
}

say "What there is, and how training will see it: $result/sheet.png"
"$division" data show "folder:$photographs" --png "$result/sheet.png"

say "Training: $result/run"
"$division" train --model resnet18 --data "folder:$photographs" --batch 8 --epochs 30 --patience 8 --lr 0.003 \
    "${begin[@]}" "${options[@]}" --out "$result/run"

say "Test: $result/confusion.png, $result/mistakes.csv"
"$division" eval "$result/run" --batch 8 --per-class --confusion --confusion-png "$result/confusion.png" \
    --mistakes "$result/mistakes.csv"

say "Prediction: $result/predictions.csv"
"$division" predict "$result/run" "$photographs/val" --top 1 --csv >"$result/predictions.csv"
head -n 5 "$result/predictions.csv"

if "$division" help export >/dev/null 2>&1; then
    say "For other programs: $result/network.onnx"
    "$division" export "$result/run" "$result/network.onnx"
fi
