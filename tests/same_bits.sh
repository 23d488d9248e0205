#!/usr/bin/env bash
# The same training twice gives the same weights to the last bit: with any number of threads, with any instruction set,
# each for itself. (What does not depend on them at all, codecs and element-wise layers, is held to that in test_codec*
# and in the tests of the layers.)
# shellcheck source=tests/calls.bash
source "$DV_SOURCE_DIR/tests/calls.bash"

# train FOLDER OPTION...: two steps.
train() {
    local out=$1
    shift
    run train --model resnet20 --data synthetic:side=16,train=16,test=8 --batch 8 --epochs 1 --out "$out" "$@"
}

# twice OPTION...: trains with these options in one folder and in another, and compares.
twice() {
    rm -rf first second
    train first "$@"
    succeeds
    train second "$@"
    succeeds
    equal_in arrays first/last.safetensors second/last.safetensors || complain "a second training gave other bits"
}

for isa in scalar sse2 neon avx2 avx512 amx; do
    export DV_ISA=$isa
    run info
    ((code == 0)) || continue # not on this processor
    twice --threads 2 --precision bf16
    ((${DV_TEST_SCALE:-1} > 1)) && continue # every step is slow
    for threads in 1 2 3; do
        twice --threads "$threads" --method division:recompute=norms
    done
done
finish
