#!/usr/bin/env bash
# Images that are held out by other options than the default: --resume and eval see the same. Small data: the batch that plan
# shows is the one that is trained with. And eval names an image that stands in for a corrupt one, not the corrupt one.
# DV_PROGRAM is the program, DV_TEMP an empty folder.
source "$DV_SOURCE_DIR/tests/calls.bash"

"$DV_PROGRAM" data show synthetic:side=16 --images 1 --columns 1 --png one.png >/dev/null
for class in cat dog; do
    mkdir -p "images/$class" "parted/train/$class" "parted/val/$class"
    for i in 0 1 2 3 4 5 6 7 8 9; do
        cp one.png "images/$class/$i.png"
        cp one.png "parted/train/$class/$i.png"
        cp one.png "parted/val/$class/$i.png"
    done
    echo 'no image' >"parted/val/$class/0.png"
done

# ---- held out ----------------------------------------------------------------------------------

run train --data folder:images --hold-out 0.3 --hold-out-seed 7 --side 8 --epochs 1 --out run
prints '*held out to test with: 6 of 20 images (--hold-out)*batches are of 2 images and not of 128: the data has 14 (--batch)*'
grep -q '"hold-out": 0.3, "hold-out-seed": 7,' run/config.json || complain "expected both in config.json"
run eval run --json
prints '*"images": 6,*'
names() {
    "$DV_PROGRAM" eval "$1" --mistakes mistakes.csv >/dev/null && tail -n +2 mistakes.csv | cut -d, -f1 | sort
}
before=$(names run)
run train --resume run --epochs 2
prints '*held out to test with: 6 of 20 images (--hold-out)*'
run eval run/last.safetensors --json
prints '*"images": 6,*'
after=$(names run/last.safetensors)
run train --data folder:images --hold-out 0.3 --hold-out-seed 8 --side 8 --epochs 1 --quiet --out other
other=$(names other)
[[ $(wc -w <<<"$before") == 3 && $(wc -w <<<"$after") == 3 ]] || complain "expected the three of one class, of two alike"
# Of two classes of the same images one is all wrong: names are those of the images held out.
if [[ ${before%%/*} == "${after%%/*}" ]]; then
    [[ $before == "$after" ]] || complain "expected the same images held out"
fi
if [[ ${before%%/*} == "${other%%/*}" ]]; then
    [[ $before != "$other" ]] || complain "expected other images held out with another seed"
fi

# ---- the batch ---------------------------------------------------------------------------------

run plan --data folder:images --side 8 --json --elsewhere
prints '*"batch": 4,*'
run plan --data folder:images --side 8 --elsewhere
prints '*batch*4: the data has 18 images (--batch)*'
run plan --data folder:images --side 8 --batch 128 --elsewhere
fails 2 '--batch: 128: the data has 18 images: give at most as many; 4 would do'
run train --data folder:images --side 8 --batch 128 --out nowhere
fails 2 '--batch: 128: the data has 18 images: give at most as many; 4 would do'

# ---- an option of a recipe that is taken back ---------------------------------------------------

printf 'model = resnet20\nfreeze = conv1\n' >frozen
run plan frozen --elsewhere --freeze ''
prints '*'
[[ $output != *frozen* ]] || complain "expected nothing frozen"
run plan frozen --elsewhere
prints '*frozen*'

# ---- other images in the place of corrupt ones --------------------------------------------------

run train --data folder:parted --side 8 --batch 10 --epochs 1 --quiet --out run2
[[ $code == 0 && $messages == *val/cat/0.png*val/dog/0.png* ]] || complain "expected the names of both corrupt images"
run eval run2 --mistakes mistakes.csv
[[ $code == 0 && $(tail -n +2 mistakes.csv | wc -l) == 10 && $(grep -c '/1.png' mistakes.csv) == 2 ]] || complain "expected ten of one class, the second twice"
! grep -q '/0.png' mistakes.csv || complain "expected no corrupt image"

# Of the six that are held out of twenty two may be corrupt, as of any twenty; not three.
cp -r images damaged
tried=0
for image in $before; do
    echo 'no image' >"damaged/$image"
    run eval run --data folder:damaged
    if ((++tried < 3)); then
        [[ $code == 0 && $messages == *"$image"* ]] || complain "expected a word on $tried corrupt images, and no failure"
    else
        fails_like 1 '*with this, 3 of 6 images are corrupt, too many: repair or remove them'
    fi
done

# ---- data show tells what training tells ---------------------------------------------------------

run data show folder:images --side 64
prints '18 images to train, 2 to test, 2 classes, shown as 64 x 64*held out to test with: 2 of 20 images (--hold-out)*'
[[ $output != *'left out'* ]] || complain "expected no word of files that are not there"
echo 'no image' >images/cat/notes.txt
run data show folder:images --hold-out 0.3 --hold-out-seed 7
prints '14 images to train, 6 to test*held out to test with: 6 of 20 images*files that are no images to this program were left out: 1 .txt*'
run data show folder:parted
prints '20 images to train, 20 to test*'
[[ $output != *'held out'* ]] || complain "expected nothing held out of a folder with val/"
finish
