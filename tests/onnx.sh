#!/usr/bin/env bash
# division export: networks as ONNX and weights alone. ONNX Runtime and torchvision say the same of an image as division predict
# where a Python has them; that part is left out with a word where none has. DV_PYTHON is the Python to use.
source "$DV_SOURCE_DIR/tests/calls.bash"

"$DV_PROGRAM" train --data synthetic:side=16,train=16,test=8 --batch 8 --epochs 1 --quiet --average 0.9 --out run || exit 1
subcommand=(export)
run run model.onnx
repeats 'model.onnx: resnet20, 10 classes, images of 3 x 16 x 16'
run run folded.onnx --fold
repeats 'folded.onnx: resnet20, 10 classes, images of 3 x 16 x 16, batch norms folded'
(($(stat -c %s folded.onnx) < $(stat -c %s model.onnx))) || complain "expected fewer arrays of a folded network"
for word in images logits Conv Gemm conv1.weight class_names 'striped disc' normalise; do
    grep -qa "$word" model.onnx || complain "expected $word in the file"
done
! grep -qa 'synthetic:' model.onnx || complain "expected nothing of where the images were"
run run/last.safetensors weights.safetensors
repeats 'weights.safetensors: resnet20, 10 classes, images of 3 x 16 x 16'
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

# agrees MODULES MODEL...: the first Python that has the modules says the same as division predict.
agrees() {
    local python modules=$1 && shift
    for python in "${DV_PYTHON:-python3}" /usr/bin/python3; do
        "$python" -c "import $modules" >/dev/null 2>&1 || continue
        call="onnx_check.py $*"
        mkdir "by-$modules"
        output=$("$python" "$DV_SOURCE_DIR/tests/golden/onnx_check.py" "$DV_PROGRAM" "by-$modules" "$@" 2>messages)
        code=$? messages=$(<messages)
        echo "$output"
        [[ $code == 0 && -n $output ]] || complain "expected both to agree"
        return
    done
    echo "left out: there is no Python with $modules"
}

if sanitized; then
    echo "left out: other programs' results do not depend on a sanitizer"
else
    agrees numpy,onnxruntime resnet20 resnet29_preact densenet121_cifar resnet18
    agrees numpy,torch,torchvision resnet18 densenet121
fi
finish
