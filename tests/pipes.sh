#!/usr/bin/env bash
# A pipe that nobody writes to, wherever a file is read: an error at once, and no waiting.
# DV_PROGRAM is the program, DV_TEMP an empty folder.
source "$DV_SOURCE_DIR/tests/calls.bash"

# refuses ARGUMENT...: the program says that something is no regular file, and does not wait for it.
refuses() {
    call="division $*"
    output=$(timeout 60 "$DV_PROGRAM" "$@" --quiet 2>messages </dev/null)
    code=$?
    messages=$(<messages)
    [[ $code == 1 && $messages == "division: "*"no regular file"* ]] || complain "expected a pipe to be refused at once"
}

mkfifo pipe
refuses train pipe
refuses train --data synthetic:side=8,train=8,test=8 --batch 8 --init pipe

mkdir cifar
for file in data_batch_{1,2,3,4,5} test_batch; do
    head -c $((3073 * 4)) /dev/zero >cifar/$file.bin
done
mkfifo cifar/batches.meta.txt # names of classes, which need not be there
run train --data cifar10:cifar --batch 4 --steps 1 --quiet
prints ''
rm cifar/data_batch_3.bin && mkfifo cifar/data_batch_3.bin
refuses train --data cifar10:cifar --batch 4

mkdir -p images/{train,val}/cat
mkfifo images/{train,val}/cat/image.png
refuses train --data folder:images --batch 1
refuses data lmdb images made

mkdir records
mkfifo records/{train,val}.lmdb
refuses train --data lmdb:records
"$DV_PROGRAM" data show synthetic --images 1 --png image.png >/dev/null
rm images/{train,val}/cat/image.png && cp image.png images/train/cat && cp image.png images/val/cat
refuses data lmdb images records

finish
