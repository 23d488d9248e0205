#!/usr/bin/env bash
# division export: networks as ONNX and weights alone. ONNX Runtime and torchvision say the same of an image as division predict
# where a Python has them; that part is left out with a word where none has. DV_PYTHON is the Python to use.
source "$DV_SOURCE_DIR/tests/calls.bash"

"$DV_PROGRAM" train --data synthetic:side=16,train=16,test=8 --batch 8 --epochs 1 --quiet --average 0.9 --out run || exit 1
subcommand=(export)
run run model.onnx
prints ''
run run folded.onnx --fold
prints ''
(($(stat -c %s folded.onnx) < $(stat -c %s model.onnx))) || complain "expected fewer arrays of a folded network"
for word in images logits Conv Gemm conv1.weight class_names 'striped disc' normalise; do
    grep -qa "$word" model.onnx || complain "expected $word in the file"
done
run run/last.safetensors weights.safetensors
prints ''
! grep -qa 'optimizer\.\|average\.' weights.safetensors || complain "expected weights alone"
subcommand=()
run eval run/last.safetensors --json
expected=${output#*\"model\"}
run eval weights.safetensors --json
[[ $code == 0 && ${output#*\"model\"} == "$expected" ]] || complain "expected what the run's averages say"
subcommand=(export)
run run weights.pth
fails_like 2 'weights.pth: its ending says nothing that can be written: give a name that ends in .onnx or .safetensors*'
run run weights.safetensors --fold
fails 2 '--fold: weights alone have the names of their layers: export .onnx'
run run no/such/model.onnx
fails_like 1 'could not write no/such/model.onnx: No such file*'
run run
fails 2 "export: missing RUN|FILE OUT: see 'division export --help'"

for python in "${DV_PYTHON:-python3}" /usr/bin/python3; do
    ! "$python" -c 'import onnxruntime, numpy' >/dev/null 2>&1 || break
    python=
done
if [[ -z $python ]]; then
    echo "left out: there is no Python with onnxruntime to run the files by"
elif ! sanitized; then
    call=onnx_check.py
    output=$("$python" "$DV_SOURCE_DIR/tests/golden/onnx_check.py" "$DV_PROGRAM" . resnet20 resnet29_preact densenet121_cifar resnet18 2>messages)
    code=$? messages=$(<messages)
    echo "$output"
    [[ $code == 0 ]] || complain "expected both to agree"
fi
finish
