#!/usr/bin/env bash
# division eval class by class: accuracies, the matrix as table, JSON and picture, lists and sheets of mistakes. The sums agree
# with each other and with division predict. DV_PROGRAM is the program, DV_TEMP an empty folder.
source "$DV_SOURCE_DIR/tests/calls.bash"

"$DV_PROGRAM" train --data synthetic:side=16,train=64,test=40 --batch 16 --epochs 1 --quiet --out run || exit 1
subcommand=(eval)

# sum PATTERN: of the numbers that stand behind it in the output.
sum() {
    grep -o "$1 [0-9]*" <<<"$output" | awk '{ s += $NF } END { print s + 0 }'
}

run run
prints '*top-1             * %
top-5             * %
loss              *

class                       images     top-1  mostly taken for
striped disc                     4  * %*
chequered cross                  4  * %*'
run run --confusion
prints '*images of a class in its row, by what they were taken for
                         0   1   2   3   4   5   6   7   8   9
  0 striped disc     *
  9 chequered cross  *'
! awk 'length > 80' <<<"$output" | grep -q . || complain "expected lines of 80 columns at most"
run run --json --confusion
prints '*"classes": \[{"label": 0, "class": "striped disc", "images": 4, "top1": *}, *\], "confusion": \[\[*\]\]}'
[[ $(sum '"images":') == 80 ]] || complain "expected 40 images in all, and in classes"
rows=${output##*\"confusion\": }
[[ $(tr -cs '0-9' '\n' <<<"$rows" | awk '{ s += $1 } END { print s }') == 40 ]] || complain "expected 40 images in the matrix"
right=$(grep -o '"top1": [0-9.]*' <<<"$output" | awk 'NR > 1 { s += $2 } END { printf "%.0f", s * 4 / 100 }')

run run --mistakes mistakes.csv --worst worst.png --worst-images 5 --confusion-png matrix.png
succeeds
[[ $(head -n 1 mistakes.csv) == image,class,taken_for,probability_of_class,probability_of_taken_for ]] || complain "expected a heading"
[[ $(($(wc -l <mistakes.csv) - 1)) == $((40 - right)) ]] || complain "expected a line for each of $((40 - right)) mistakes"
tail -n +2 mistakes.csv | cut -d, -f4 | sort -gc || complain "expected the worst first"
for picture in worst.png matrix.png; do
    [[ $(head -c 4 "$picture" | tail -c 3) == PNG ]] || complain "expected a picture: $picture"
done
run run --mistakes no/such/file
[[ $code == 1 && $messages == 'division: could not write no/such/file: No such file or directory: check the name' ]] || complain "expected an error"

# Files have names, and predictions agree. There is no top-5 of two classes.
for class in cat dog; do
    for split in train val; do
        mkdir -p "images/$split/$class"
        for i in 1 2 3; do
            "$DV_PROGRAM" data show synthetic:side=24 --seed "$i$([[ $class == cat ]] && echo 7)" --images 1 --columns 1 \
                --png "images/$split/$class/$i.png" >/dev/null
        done
    done
done
"$DV_PROGRAM" train --data folder:images --side 24 --batch 3 --epochs 1 --quiet --out own || exit 1
run own --mistakes mistakes.csv
[[ $code == 0 && $output != *top-5* ]] || complain "expected no top-5"
run own --json
prints '*"top1": *, "loss": *'
[[ $output != *top5* ]] || complain "expected no top5"
tail -n +2 mistakes.csv >rows
while IFS=, read -r image class taken rest; do
    [[ $image == "val/$class/"* ]] || complain "expected the name of a file: $image"
    [[ $("$DV_PROGRAM" predict own "images/$image" --csv --top 1 | tail -n 1) == "images/$image,1,"*",$taken,${rest#*,}" ]] ||
        complain "expected $image to be taken for $taken by division predict too"
done <rows

# Many classes: no table unless it is asked for, and the most frequent confusions instead of a matrix.
"$DV_PROGRAM" train --data synthetic:side=16,train=64,test=40 --classes 100 --batch 16 --epochs 1 --quiet --out many || exit 1
run many
prints '*loss *'
[[ $output != *'mostly taken for'* ]] || complain "expected no table of classes"
run many --per-class --confusion --confusion-png many.png
prints '*mostly taken for*the matrix of 100 classes is wider than 80 columns: --json and --confusion-png have all of it
  images  of                        were taken for
*'
[[ $(head -c 4 many.png | tail -c 3) == PNG ]] || complain "expected a picture"
finish
