#!/usr/bin/env bash
# division predict: tables, JSON, CSV and sheets of predictions; what cannot be read is told and the rest goes on; what a file
# does not say is asked for. Also examples/predict.c. DV_PROGRAM is the program, DV_TEMP an empty folder.
source "$DV_SOURCE_DIR/tests/calls.bash"

for class in cat dog; do
    for split in train val; do
        mkdir -p "images/$split/$class"
        for i in 1 2 3 4; do
            "$DV_PROGRAM" data show synthetic:side=24 --seed "$i$([[ $class$split == cattrain ]] && echo 7)" --images 1 --columns 1 \
                --png "images/$split/$class/$i.png" >/dev/null
        done
    done
done
"$DV_PROGRAM" train --data folder:images --side 24 --batch 4 --epochs 1 --quiet --out run || exit 1

# rounded_alike TEXT: whether the output is this text but for probabilities, which may be 1e-5 off: kernels differ by the
# number of images, and round in another order then.
rounded_alike() {
    [[ $(probabilities '' <<<"$output") == "$(probabilities '' <<<"$1")" ]] &&
        probabilities -o <<<"$1" >expected &&
        probabilities -o <<<"$output" | paste - expected |
            awk '{ d = $1 - $2; if (d > 1e-5 || d < -1e-5) wrong = 1 } END { exit wrong }'
}

# Without them, or with -o them alone.
probabilities() {
    if [[ $1 == -o ]]; then
        grep -o '"probability": [0-9.e-]*' | cut -d ' ' -f 2
    else
        sed 's/"probability": [0-9.e-]*/"probability": /g'
    fi
}

# ---- forms of output ---------------------------------------------------------------------------

run predict run images/val/cat/1.png images/val/dog --top 1
prints 'image                                   class                         probab.
images/val/cat/1.png                    @(cat|dog)                            * %
images/val/dog/1.png                    *
images/val/dog/2.png                    *
images/val/dog/3.png                    *
images/val/dog/4.png                    *'
run predict run images/val --json --batch 3
prints '{"image": "images/val/cat/1.png", "top": \[{"label": [01], "class": "@(cat|dog)", "probability": 0.*}, {"label": *}\]}
*{"image": "images/val/dog/4.png", "top": *'
whole=$output
[[ $(wc -l <<<"$output") == 8 ]] || complain "expected a line for each image"
run predict run/best.safetensors images/val --json --batch 1
[[ $code == 0 ]] && rounded_alike "$whole" || complain "expected what batches of three give"
cp images/val/cat/1.png 'a,"b".png'
run predict run 'a,"b".png' --csv
prints 'image,rank,label,class,probability
"a,""b"".png",1,[01],@(cat|dog),0.*
"a,""b"".png",2,[01],@(cat|dog),0.*'
call="division predict run -"
output=$("$DV_PROGRAM" predict run - --json <images/val/cat/1.png)
output=${output/\"-\"/\"images/val/cat/1.png\"}
rounded_alike "${whole%%$'\n'*}" || complain "expected what the file gives"
run predict run images/val --png sheet.png --top 2
[[ $code == 0 && $(head -c 4 sheet.png | tail -c 3) == PNG ]] || complain "expected a picture"
run predict run images/val/cat/1.png --json --verbose
[[ $code == 0 && $messages == *'weights run/best.safetensors'*'model resnet20, 2 classes, f32'*'resized to 27, 24 x 24'*'planned '*'peak '* ]] ||
    complain "expected what network and what memory"

# ---- what cannot be read -----------------------------------------------------------------------

echo 'no image' >images/val/dog/2.png
head -c 200 images/val/dog/3.png >cut && mv cut images/val/dog/3.png
run predict run images/val missing.jpg --json
[[ $code == 1 && $(grep -c '"top"' <<<"$output") == 6 && $(grep -c '"error"' <<<"$output") == 3 ]] || complain "expected the others"
[[ $messages == *'images/val/dog/2.png: it is not'*'images/val/dog/3.png: '*'missing.jpg: No such file'*'3 of 9 images could not be read' ]] ||
    complain "expected what is wrong with each"
mkdir empty
run predict run empty
fails 1 'empty has no images (.jpg, .png, .webp, ...): give a folder that has some'
run predict nothing images/val
fails_like 1 'could not read nothing: No such file*'
run predict run
fails 2 "predict: missing RUN|FILE IMAGE|FOLDER...: see 'division predict --help'"
run predict run images --json --csv
fails 2 'predict: --json and --csv: give one of them'
name=$'red\e[31m.png'
cp images/val/cat/1.png "$name"
run predict run "$name" --top 1
[[ $code == 0 && $output == *'red?[31m.png'* ]] || complain "expected a name that a terminal can show"

# ---- what a file does not say ------------------------------------------------------------------

LC_ALL=C sed 's/"model": "/"Model": "/; s/"normalise": "/"Normalise": "/' run/best.safetensors >bare.safetensors
run predict bare.safetensors images/val/cat
fails 2 'bare.safetensors does not say what network it is of and what images that takes: give --model, --normalise'
run predict bare.safetensors images/val/cat/1.png --json --model resnet20 --normalise 0.485+0.456+0.406/0.229+0.224+0.225
rounded_alike "${whole%%$'\n'*}" || complain "expected what notes of the file give"
printf 'one\ntwo\n' >names.txt
run predict run images/val/cat/1.png --top 1 --names names.txt
prints '*@(one|two)*'
LC_ALL=C sed 's/"class_names": "\[/"class_names": "{/' run/best.safetensors >broken.safetensors
run predict broken.safetensors images/val/cat
fails_like 1 'broken.safetensors: its note class_names is no list of up to 2 names: *: give --names'

# More operands than other commands take.
images=() && for ((i = 0; i < 100; i++)); do images+=(images/val/cat/1.png); done
run predict run "${images[@]}" --csv --top 1
[[ $code == 0 && $(wc -l <<<"$output") == 101 ]] || complain "expected a hundred images"

# ---- the library's example ---------------------------------------------------------------------

call=examples/predict
output=$("$DV_BUILD_DIR/examples/predict" run images/val/cat/1.png images/val/cat/2.png 2>messages)
code=$? messages=$(<messages)
[[ $code == 0 && $output == 'images/val/cat/1.png: '@(cat|dog)', '*' %'$'\n''images/val/cat/2.png: '* ]] || complain "expected two lines"
! "$DV_BUILD_DIR/examples/predict" run nothing.png 2>messages || complain "expected an error"
grep -q '^predict: .*nothing.png: No such file' messages || complain "expected what is wrong"

finish
