#!/usr/bin/env bash
# Weights of torchvision's networks say the same of the same images as in PyTorch. Left out, with a word, where no Python
# has torch and torchvision. DV_PROGRAM is the program, DV_SHARED (or ../shared) may have photographs; DV_PYTHON is the
# Python to use.
source "$DV_SOURCE_DIR/tests/calls.bash"

# find_python: the first Python that has what is needed.
find_python() {
    for python in "${DV_PYTHON:-python3}" /usr/bin/python3; do
        ! "$python" -c 'import torch, torchvision, PIL' >/dev/null 2>&1 || return 0
    done
    return 1
}

# compares ARGUMENT...: both say the same.
compares() {
    call="weights.py $*"
    output=$("$python" "$DV_SOURCE_DIR/tests/golden/weights.py" "$DV_PROGRAM" "$@" 2>messages)
    code=$?
    messages=$(<messages)
    echo "$output"
    [[ $code == 0 ]] || complain "expected the losses of both to agree"
}

if sanitized; then
    echo "left out: the losses do not depend on a sanitizer"
    finish
fi
if ! find_python; then
    echo "left out: there is no Python with torch and torchvision (packages python3-torch and python3-torchvision)"
    finish
fi
compares
photographs=${DV_SHARED:-$DV_SOURCE_DIR/../shared}/data/imagenet-sample
if [[ -d $photographs ]]; then
    compares "$photographs" --networks resnet18
else
    echo "left out: there are no photographs in $photographs"
fi
finish
