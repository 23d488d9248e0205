#!/usr/bin/env bash
# The memory that is planned, beside what program and libraries have, is the memory that training takes, whatever the data:
# keeps_to_plan says how closely. Each kind has more bytes of data than that leaves room for.
# DV_PROGRAM is the program, DV_TEMP an empty folder.
source "$DV_SOURCE_DIR/tests/calls.bash"
subcommand=(train)
if sanitized; then
    echo "left out: a sanitizer takes memory of its own"
    finish
fi

# holds DATA [OPTION...]: training keeps to its plan, with workers and without.
holds() {
    for workers in 0 2 auto; do
        run --data "$@" --model resnet20 --side 8 --batch 64 --epochs 1 --workers $workers --quiet --replace --out run
        prints ''
        keeps_to_plan run
    done
}

# paint FILE IMAGES: a picture of the program's own making.
paint() {
    "$DV_PROGRAM" data show synthetic:side=32 --images "$2" --png "$1" >/dev/null || complain "expected a picture"
}

# fill FOLDER CLASSES FILES PICTURE: a folder of images, all of them links to one picture.
fill() {
    mkdir -p "$1/val/0" "$1/files"
    for ((i = 0; i < $3; i++)); do
        ln "$4" "$1/files/$i.png"
    done
    for ((i = 0; i < $2; i++)); do
        mkdir -p "$1/train/$i"
        cp -al "$1/files/." "$1/train/$i"
    done
    ln "$4" "$1/val/0/0.png"
}

holds synthetic:side=32,train=2048,test=64

mkdir cifar # of zeros: 77 MB
for file in data_batch_{1,2,3,4,5} test_batch; do
    head -c $((3073 * 5000)) /dev/zero >cifar/$file.bin
done
holds cifar10:cifar --steps 100

paint small.png 1
fill small 25 500 small.png
holds folder:small --steps 50
"$DV_PROGRAM" data lmdb small small.lmdb --quiet || complain "expected small records"
[[ $(stat -c %s small.lmdb/train.lmdb) -gt 90000000 ]] || complain "expected a file that is not small"
holds lmdb:small.lmdb --steps 150

paint large.png 400
fill large 2 40 large.png
"$DV_PROGRAM" data lmdb large large.lmdb --quiet || complain "expected large records"
[[ $(stat -c %s large.lmdb/train.lmdb) -gt 60000000 ]] || complain "expected a file that is not small"
holds lmdb:large.lmdb

finish
