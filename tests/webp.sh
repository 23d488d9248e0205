#!/usr/bin/env bash
# WebP wherever images are read: folders, data show, train, eval, predict, LMDB; animations and damaged files are named.
# The files are the fuzz target's, without the bytes that choose its view. DV_PROGRAM is the program, DV_TEMP an empty folder.
source "$DV_SOURCE_DIR/tests/calls.bash"

webp() {
    tail -c +5 "$DV_SOURCE_DIR/fuzz/corpus/image/$1.webp"
}
for class in cat dog; do
    for split in train val; do
        mkdir -p "images/$split/$class"
        for form in lossy lossless alpha simple; do
            webp $form >"images/$split/$class/$form.webp"
        done
    done
done
mv images/val/dog/alpha.webp images/val/dog/alpha.WEBP

run data show folder:images --png sheet.png
[[ $code == 0 && $output == *8*8* && $(head -c 4 sheet.png | tail -c 3) == PNG ]] || complain "expected a sheet of 8 and 8 images"
run train --data folder:images --side 24 --batch 4 --epochs 1 --quiet --out run
succeeds
run eval run --data folder:images --json
prints '*"images": 8,*'
run predict run images/val --json
[[ $code == 0 && $(grep -c '"top"' <<<"$output") == 8 ]] || complain "expected a prediction of each"
call="division predict run -"
output=$(webp lossy | "$DV_PROGRAM" predict run - --json --top 1)
[[ $output == *'"top"'* ]] || complain "expected a prediction of standard input"
run data lmdb images images.lmdb --quiet
succeeds
run eval run --data lmdb:images.lmdb --json
prints '*"images": 8,*'

webp animated >images/val/cat/animated.webp
webp lossy | head -c 200 >images/val/cat/cut.webp
run predict run images/val/cat --json
[[ $code == 1 && $(grep -c '"top"' <<<"$output") == 4 &&
    $messages == *'cat/animated.webp: an animated WebP: give one of its images as a file of its own'*'cat/cut.webp: corrupt WebP: it is cut short'* ]] ||
    complain "expected what is wrong with each"

finish
