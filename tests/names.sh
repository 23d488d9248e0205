#!/usr/bin/env bash
# Names that hold what a terminal would act upon: of folders of classes, of images, of tensors, of files. They are shown with
# question marks instead, or refused with a word. DV_PROGRAM is the program, DV_TEMP an empty folder.
source "$DV_SOURCE_DIR/tests/calls.bash"

# is_clean: neither output nor messages have control characters but the ends of lines, or bytes that are no UTF-8.
is_clean() {
    local text
    text=$(printf '%s\n%s' "$output" "$messages" | LC_ALL=C tr -d '\n\40-\176')
    [[ -z $text ]] || complain "expected nothing but printable ASCII"
}

newline=$'two\nlines' escape=$'red\e[31m' latin=$'caf\xe9' # no UTF-8
"$DV_PROGRAM" data show synthetic --images 1 --png image.png >/dev/null
for class in "$newline" "$escape" "$latin" plain; do
    mkdir -p images/{train,val}/"$class"
    cp image.png images/train/"$class"/image.png
    cp image.png images/val/"$class"/image.png
done

run data show folder:images
prints '*caf?*plain*red?*two?lines*'
is_clean
run data lmdb images made
fails 1 'the class "caf?" has control characters, or bytes that are no UTF-8, in its name: rename its folders'
[[ ! -e made ]] || complain "expected nothing to be left behind"
rm -r images/*/"$latin" images/*/"$escape"
run data lmdb images made
fails 1 'the class "two?lines" has control characters, or bytes that are no UTF-8, in its name: rename its folders'
run train --data folder:images --side 16 --batch 2 --epochs 1 --quiet --out run
prints ''
cp image.png images/val/plain/$'\x9b31m.png' && echo 'no image' >images/val/plain/$'\x9b31m.png'
run train --data folder:images --side 16 --batch 2 --epochs 1 --quiet
[[ $code == 1 && $messages == *'val/plain/?31m.png: it is not JPEG, PNG or WebP'* ]] || complain "expected a corrupt image"
is_clean

# A tensor and a note of a file.
LC_ALL=C sed 's/"fc.bias"/"f\\u001b"/' run/best.safetensors >tensor.safetensors
run eval tensor.safetensors
[[ $code == 1 && $messages == *'unexpected: f? [2]'* ]] || complain "expected a tensor that is not known"
is_clean
LC_ALL=C sed 's/"model": "resnet20"/"model": "\\u001b20"/' run/best.safetensors >note.safetensors
run eval note.safetensors
[[ $code != 0 && $messages == *'?20'* ]] || complain "expected a network that is not known"
is_clean
run eval $'no\esuch'
fails 1 'could not read no?such: No such file or directory: check the name, and that the folder exists'

# Letters that are not of ASCII have one column each, and a name that is too long ends in dots, not inside of a letter.
rm -r images
for class in $'Stra\xc3\x9fe' $'long-\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc' plain; do
    mkdir -p images/{train,val}/"$class"
    cp image.png images/train/"$class"/image.png
    cp image.png images/val/"$class"/image.png
done
run train --data folder:images --side 16 --batch 2 --epochs 1 --quiet --out letters
run eval letters --confusion --confusion-png matrix.png --worst worst.png
rows=$(LC_ALL=C sed 's/\xc3[\x80-\xbf]/x/g' <<<"$output" | LC_ALL=C grep -E '^(Straxe|long-x{17}\.\.|plain) +1 +[0-9.]+ %')
[[ $(wc -l <<<"$rows") == 3 && $(sed 's/%.*//' <<<"$rows" | awk '{ print length($0) }' | sort -u | wc -l) == 1 ]] ||
    complain "expected three rows of the same columns"

finish
