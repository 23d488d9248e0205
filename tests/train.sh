#!/usr/bin/env bash
# division train from outside: short runs, their folders, errors, interruption, full disks.
# DV_PROGRAM is the program, DV_TEMP an empty folder.
source "$DV_SOURCE_DIR/tests/calls.bash"
subcommand=(train)

# holds FILE PATTERN: the file's text matches the pattern.
holds() {
    # shellcheck disable=SC2053
    [[ -e $1 && $(<"$1") == $2 ]] || complain "expected in $1: $2; it is: $(cat "$1" 2>&1)"
}

# values FIELD FILE: the field's value in each line of a log.
values() {
    sed -n "s/.*\"$1\": \([^,}]*\).*/\1/p" "$2"
}

tiny=(--model resnet20 --batch 8)

# ---- a run and its folder --------------------------------------------------------------------

run "${tiny[@]}" --data synthetic:train=32,test=20 --epochs 2 --out some/where/run
prints 'planned *: parameters * activations * workspace *
with program and libraries, which take * already: *
epoch 1/2  loss *  top-1 * %  test loss *  test top-1 * %  * images/s  peak *  * s
epoch 2/2  loss *
best test top-1 * %
planned * (activations *) + program and libraries * = *; peak * resident*'
line='{"epoch": ?, "train_loss": *, "train_top1": *, "test_loss": *, "test_top1": *, "images_per_second": *, "peak_bytes": *, "activation_bytes": *, "seconds": *, "workers": *, "learning_rate": *, "steps": *, "complete": true}'
holds some/where/run/log.jsonl "$line
$line"
holds some/where/run/config.json '{"model": "resnet20", "data": "synthetic:train=32,test=20", *"method": "division", *"precision": "f32", "batch": 8, *"epochs": 2, *"lr": 0.1, *"save-minutes": 10}'
holds some/where/run/summary.json '{"model": "resnet20", *"method": "division", *"epochs": 2, "steps": 8, "stopped": false, *"planned_bytes": *, "peak_bytes": *}'
if [[ $DV_PROGRAM != */emulated/* && -e /proc/self/status ]]; then
    (($(field code_bytes some/where/run/summary.json) > 0)) || complain "expected code that ran first in the steps"
fi
run "${tiny[@]}" --out some/where/run
fails 1 "some/where/run holds a run already: --resume it, --replace it, or choose another folder"
# Twenty images in batches of eight: the last one has four.
values test_top1 some/where/run/log.jsonl >percents
while read -r percent; do
    awk -v p="$percent" 'BEGIN { n = p / 5; exit !(p >= 0 && p <= 100 && n == int(n)) }' || complain "test_top1 $percent is no twentieth"
done <percents

# ---- the last batch --------------------------------------------------------------------------

# last NAME STEPS OPTION...: the epoch of a new run has so many steps.
last() {
    run "${@:3}" --epochs 1 --quiet --out "$1"
    prints ''
    [[ $(values steps "$1/log.jsonl") == "$2" ]] || complain "expected $2 steps"
}
last rest 3 "${tiny[@]}" --data synthetic:side=8,train=18,test=8
holds rest/config.json '*"drop-last": false, *'
last dropped 2 rest --drop-last
holds dropped/config.json '*"drop-last": true, *'
last again 2 dropped
# A run of before there was the option left the rest out; a recipe that says nothing does not.
sed 's/"drop-last": false, //' rest/config.json >earlier.json
last earlier 2 earlier.json
last asked 3 earlier.json --drop-last=no
printf 'model = resnet20\ndata = synthetic:side=8,train=18,test=8\nbatch = 8\n' >silent
last silence 3 silent
# The last maps are of one pixel here: one image has no variance.
run "${tiny[@]}" --data synthetic:side=8,train=17,test=9 --side 4 --augment none --epochs 1
prints 'planned *
the last batch of an epoch, of 1 image, is left out: batch norms of one value per image need 2
epoch 1/1  loss *'

# With standard streams closed, files of the run do not get their numbers, and what is printed.
for closed in '<&- >&-' '<&- >&- 2>&-'; do
    call="division train ${tiny[*]} $closed" output='' messages=''
    eval '"$DV_PROGRAM" train "${tiny[@]}" --data synthetic:train=16,test=8 --epochs 2 --out closed --replace 2>/dev/null' "$closed"
    code=$?
    [[ $code == 1 ]] || complain "expected to fail for want of standard output"
    holds closed/log.jsonl "$line
$line"
done

# A test after every second epoch, and after the last.
run "${tiny[@]}" --data synthetic:train=16,test=8 --epochs 3 --test-every 2
prints '*epoch 1/3 *epoch 2/3 * test top-1 *epoch 3/3 * test top-1 *best test top-1 *'
[[ $output != *'epoch 1/3 '*test*'epoch 2/3 '* ]] || complain "expected no test after the first epoch"
run "${tiny[@]}" --test-every 0
fails 2 "--test-every: '0' is not what it takes: give a whole number from 1 to 100000"

# The same seed gives the same numbers; another seed, others.
# losses SEED FILE: writes the losses of a short training.
losses() {
    run "${tiny[@]}" --data synthetic:train=64,test=16 --epochs 2 --seed "$1" --threads 2 --json
    [[ $code == 0 ]] || complain "expected success"
    echo "$output" >log
    { values train_loss log && values test_loss log; } >"$2"
}
losses 1 first
losses 1 same
losses 2 other
cmp -s first same || complain "the same seed gave other losses"
! cmp -s first other || complain "another seed gave the same losses"

# Fifty steps twice: logs that differ in times and memory alone. And the plain kernels agree but for rounding.
small=(--model resnet20 --batch 8 --data synthetic:side=8,train=80,test=16)
for method in none division; do
    for folder in fifty again; do
        run "${small[@]}" --epochs 5 --method "$method" --threads 2 --quiet --out "$folder.$method"
        prints ''
    done
    [[ $(values steps "fifty.$method/log.jsonl" | tail -n 1) == 50 ]] || complain "not fifty steps"
    equal_in log "fifty.$method/log.jsonl" "again.$method/log.jsonl" || complain "fifty steps differ"
    for isa in '' scalar; do
        call="DV_ISA=$isa division train ${small[*]} --steps 5" output=
        env ${isa:+DV_ISA=$isa} "$DV_PROGRAM" train "${small[@]}" --lr 0.001 --steps 5 --method "$method" --json >"steps.$method.$isa" 2>messages
        code=$? messages=$(<messages)
        [[ $code == 0 ]] || complain "expected success"
    done
    for field in train_loss test_loss; do
        awk -v a="$(values $field "steps.$method.")" -v b="$(values $field "steps.$method.scalar")" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < (1e-3 * a) ^ 2) }' ||
            complain "$field of the plain kernels: $(values $field "steps.$method.scalar"), of the others: $(values $field "steps.$method.")"
    done
done

# Every method and precision; options of all kinds; quiet.
for method in none division division:bits=4,block=4 division:dither=subtractive,recompute=norms; do
    for precision in f32 bf16; do
        run "${tiny[@]}" --data synthetic:train=32,test=8 --epochs 1 --method "$method" --precision "$precision" --json
        prints '{"epoch": 1, *}'
    done
done
run "${tiny[@]}" --data synthetic:train=40,test=8 --epochs 4 --accumulate 2 --schedule step:every=2,factor=0.5 --warmup 0.5 --nesterov --label-smoothing 0.1 --classes 12 --steps 11 --quiet --out options
prints ''
[[ $(values steps options/log.jsonl | tr '\n' ' ') == '3 6 9 11 ' ]] || complain "steps are not 3 6 9 11"
[[ $(values learning_rate options/log.jsonl | tr '\n' ' ') == '0.1 0.1 0.05 0.05 ' ]] || complain "learning rates are not 0.1 0.1 0.05 0.05"
holds options/log.jsonl '*"complete": false}'

# ---- errors ----------------------------------------------------------------------------------

run --batch 0
fails 2 "--batch: '0' is not what it takes: give a whole number from 1 to 1048576, or auto"
run --epochs 0
fails 2 "--epochs: '0' is not what it takes: give a whole number from 1 to 100000"
run --model resnet21
[[ $code == 2 && $messages == 'division: unknown model "resnet21"'*'did you mean resnet20?'*'division models'* ]] || complain "expected a message on resnet21"
run --model vgg16
fails 2 "unknown model \"vgg16\": 'division models' lists what there is"
run --method nothing
[[ $code == 2 && $messages == division:*nothing*division* ]] || complain "expected a message on the method"
run --method division:recompute=convolutions
fails 2 "division: recompute=convolutions: must be nothing or norms"
run --method division:bits=3
[[ $code == 2 && $messages == division:*bits=3* ]] || complain "expected a message on bits"
run --data cifar9:here
[[ $code == 2 && $messages == 'division: data: "cifar9:here" is no data set: there is'*synthetic* ]] || complain "expected a message on the data"
run --data synthetic:side=1000
fails 2 "synthetic: side=1000: must be a whole number from 8 to 512"
run --classes 9
fails 2 "--classes: 9: the data has 10: give as many or more"
run --batch 33 --data synthetic:train=32
fails 2 "--batch: 33: the data has 32 images: give at most as many; 8 would do"
# The default gives way, and says so.
run --model resnet20 --data synthetic:side=8,train=32,test=8 --epochs 1 --out small
prints 'planned *
batches are of 8 images and not of 128: the data has 32 (--batch)
the rate is 0.00625 and not 0.1, for batches that are smaller (--lr)
*'
holds small/config.json '*"batch": 8, *"lr": 0.00625, *'
run --resume small --epochs 2
prints '*goes on after step 4; *'
[[ $output != *'batches are of'* ]] || complain "expected the batch of before"
run --model resnet20 --data synthetic:side=8,train=3,test=8 --epochs 1 --out smallest --quiet
prints ''
holds smallest/config.json '*"batch": 2, *'
run --model resnet20 --data synthetic:side=8,train=32,test=8 --epochs 1 --lr 0.1 --out small-batch
prints '*batches are of 8 images*'
[[ $output != *'the rate is'* ]] || complain "expected the rate that was given"
holds small-batch/config.json '*"batch": 8, *"lr": 0.1, *'
run "${tiny[@]}" --data synthetic:train=32 --accumulate 5
[[ $code == 2 && $messages == 'division: accumulate: 5: an epoch has 4 batches: use at most as many' ]] || complain "expected a message on accumulate"
run --schedule quadratic
fails 2 '--schedule: "quadratic" is none: there are constant, cosine, linear, step, multistep and exponential'
run --nesterov --momentum 0
fails 2 "nesterov: needs momentum, which is 0: give one, 0.9 for example"
run one two
fails 2 "train: 'two' is one argument too many: see 'division train --help'"
run --mixup 101
fails 2 "--mixup: '101' is not what it takes: give a number from 0 to 100"

# A learning rate that explodes: told with step and rate, and the log of what was before stays.
run "${tiny[@]}" --data synthetic:train=64,test=8 --lr 1000 --momentum 0.99 --schedule constant --epochs 20 --out explodes
[[ $code == 1 && $messages == 'division: step '[0-9]*': '*': use a learning rate (--lr) below 1000 or a warm-up (--warmup), or check the data' ]] || complain "expected a message with step and learning rate"

# Likewise where a step, here an epoch, takes eight batches: it is the step that is told.
run "${tiny[@]}" --data synthetic:train=64,test=8 --lr 1000 --momentum 0.99 --schedule constant --epochs 100 --test-every 100 --accumulate 8 --out gathers
[[ $code == 1 && $messages == "division: step $(wc -l <gathers/log.jsonl): "*': use a learning rate (--lr) below 1000 or a warm-up (--warmup), or check the data' ]] || complain "expected a message with the step"

# A NaN among the weights: told with step and layer. The first array begins behind the header.
cp options/best.safetensors nan.safetensors
start=$((8 + $(od -An -t u8 -N 8 nan.safetensors)))
printf '\x00\x00\xc0\x7f' | dd of=nan.safetensors bs=1 seek=$start conv=notrunc 2>/dev/null
run "${tiny[@]}" --data synthetic:train=32,test=8 --init nan.safetensors --classes 12 --quiet
[[ $code == 1 && $messages == 'division: step 0: conv1: '*NaN*': use a learning rate (--lr) below '* ]] || complain "expected a message with step and layer"

# A plan that does not fit: what it takes, and what would fit.
run --model resnet50 --batch 20000 --data synthetic:side=224 --method none
[[ $code == 1 && $messages == 'division: the plan takes '*' GB are free: '*'division: this would fit: --method division --batch '*'division: this would fit: --batch '* ]] || complain "expected what would fit"

# ---- output that can't be written ------------------------------------------------------------

mkdir full
ln -s /dev/full full/log.jsonl
run "${tiny[@]}" --data synthetic:train=32,test=8 --epochs 3 --quiet --out full --replace
fails 1 "could not write full/log.jsonl after epoch 1: No space left on device: make room, or choose another folder"
run "${tiny[@]}" --out /dev/null/run
fails 1 "could not make the folder /dev/null/run: Not a directory: choose another"
call="division train >/dev/full" output=
"$DV_PROGRAM" train "${tiny[@]}" --data synthetic:train=8,test=8 --epochs 1 >/dev/full 2>messages
code=$? messages=$(<messages)
fails 1 "could not write to standard output: No space left on device: check where the output goes"

# A disk that is full: a limit on the size of files stands in for it. What is there stays, and the run can go on.
run "${tiny[@]}" --data synthetic:side=8,train=32,test=8 --epochs 3 --quiet --out whole
prints ''
run "${tiny[@]}" --data synthetic:side=8,train=32,test=8 --epochs 3 --steps 4 --quiet --out room
prints ''
cp room/last.safetensors before
output=$(ulimit -f 500 && "$DV_PROGRAM" train --resume room --steps 0 --quiet 2>messages)
code=$? messages=$(<messages) call='division train --resume room, without room'
[[ $code == 1 && -z $output && $messages == 'division: could not write '*'room/'*'.safetensors: File too large: make room, or choose another place' ]] || complain "expected a message on the checkpoint"
cmp -s before room/last.safetensors || complain "the checkpoint before it is gone"
run --resume room --steps 0 --quiet
prints ''
equal_in arrays whole/last.safetensors room/last.safetensors || complain "other weights than without the interruption"
[[ $(ls room) == $(ls whole) ]] || complain "other files: $(ls room)"

# ---- interruption ----------------------------------------------------------------------------

for signal in INT TERM HUP; do
    call="division train, then SIG$signal" output=
    env --default-signal=INT,HUP "$DV_PROGRAM" train "${tiny[@]}" --data synthetic:train=80000,test=8 --out "stopped.$signal" >/dev/null 2>messages &
    process=$!
    for ((i = 0; i < 200; i++)); do
        [[ ! -e stopped.$signal/config.json ]] || break
        sleep 0.1
    done
    sleep 1
    kill "-$signal" "$process"
    wait "$process"
    code=$? messages=$(<messages)
    [[ $code == 130 && $messages == "division: interrupted after step "*": 'division train --resume stopped.$signal' goes on from there" ]] || complain "expected exit code 130"
    holds "stopped.$signal/log.jsonl" '{"epoch": 1, *"test_top1": null, *"complete": false}'
    holds "stopped.$signal/summary.json" '*"stopped": true*'
    steps=$(values steps "stopped.$signal/log.jsonl")
    run --resume "stopped.$signal" --steps $((steps + 2))
    prints "planned *
goes on after step $steps; epochs complete: 0
*"
    holds "stopped.$signal/log.jsonl" "{\"epoch\": 1, *\"steps\": $((steps + 2)), \"complete\": false}"
done

# Under nohup the end of the terminal is none of the training.
call="nohup division train, then SIGHUP" output=
env --ignore-signal=HUP "$DV_PROGRAM" train "${tiny[@]}" --data synthetic:side=8,train=320,test=8 --epochs 5 --quiet --out hung 2>messages &
process=$!
for ((i = 0; i < 200; i++)); do
    [[ ! -e hung/config.json ]] || break
    sleep 0.1
done
kill -HUP "$process"
wait "$process"
code=$? messages=$(<messages)
repeats ''
holds hung/summary.json '*"epochs": 5, *"stopped": false*'

# ---- what is there stays ---------------------------------------------------------------------

# A call that can't work leaves nothing behind, and what it was to replace.
mistaken=(--side 16 --resize 8)
run "${tiny[@]}" --data synthetic:side=8,train=32,test=8 "${mistaken[@]}" --out nothing
fails 2 "resize: 8: must be from 16 to 2048"
[[ ! -e nothing ]] || complain "a folder is left: $(ls nothing)"
run "${tiny[@]}" --data synthetic:side=8,train=32,test=8 --accumulate 10 --out nothing
fails 2 "accumulate: 10: an epoch has 4 batches: use at most as many"
[[ ! -e nothing ]] || complain "a folder is left: $(ls nothing)"
cp -r whole kept
run "${tiny[@]}" --data synthetic:side=8,train=32,test=8 "${mistaken[@]}" --out kept --replace
fails 2 "resize: 8: must be from 16 to 2048"
diff -r whole kept >/dev/null || complain "the run that was to be replaced has changed"

# So does one that fails at its first step.
run "${tiny[@]}" --data synthetic:side=8,train=32,test=8 --init nan.safetensors --classes 12 --out kept --replace --quiet
[[ $code == 1 && $messages == 'division: step 0: '* ]] || complain "expected to fail at the first step"
diff -r whole kept >/dev/null || complain "the run that was to be replaced has changed"
# When the new run has something to show, nothing of the old one is left.
run "${tiny[@]}" --data synthetic:side=8,train=32,test=8 --epochs 1 --test-every 5 --steps 2 --out kept --replace --quiet
prints ''
[[ $(ls kept) == $(ls whole) ]] || complain "expected the files of a run: $(ls kept)"
for file in config.json log.jsonl summary.json last.safetensors best.safetensors; do
    ! cmp -s "whole/$file" "kept/$file" || complain "$file is of the run that was replaced"
done
[[ $(wc -l <kept/log.jsonl) == 1 ]] || complain "lines of the run that was replaced are left in the log"

# Any file of a run is one: the log may not be there yet.
mkdir begun_only && cp whole/config.json begun_only
run "${tiny[@]}" --out begun_only
fails 1 "begun_only holds a run already: --resume it, --replace it, or choose another folder"
cmp -s whole/config.json begun_only/config.json || complain "its options have changed"

# ---- a folder that nobody named --------------------------------------------------------------

# names OPTION...: a training without --out says where it writes before the first step, and does. The folder is $folder.
names() {
    run "${tiny[@]}" --data synthetic:side=8,train=8,test=8 --epochs 1 "$@"
    prints 'planned *
writes to runs/* (--out chooses another folder, --out nowhere none)
epoch 1/1 *'
    folder=$(sed -n 's/^writes to \([^ ]*\) .*/\1/p' <<<"$output")
    holds "$folder/summary.json" '*"epochs": 1, *'
}
mkdir unnamed && cd unnamed || exit 1
names
[[ $folder == runs/resnet20-synthetic-1 ]] || complain "it is $folder"
names
[[ $folder == runs/resnet20-synthetic-2 ]] || complain "it is $folder"
printf 'lr = 0.05\n' >'a recipe.txt'
names 'a recipe.txt'
[[ $folder == runs/a-recipe-1 ]] || complain "it is $folder"
names "$folder"
[[ $folder == runs/a-recipe-2 ]] || complain "it is $folder"
mkdir -p pictures.d/{train,val}/{cat,dog}
"$DV_PROGRAM" data show synthetic:side=16 --images 1 --png pictures.d/train/cat/0.png >/dev/null
for copy in train/cat/{1..3} train/dog/{0..3} val/cat/0 val/dog/0; do
    cp pictures.d/train/cat/0.png "pictures.d/$copy.png"
done
names --data "folder:$PWD/pictures.d/" --side 16
[[ $folder == runs/resnet20-pictures-1 ]] || complain "it is $folder"
# What can't work, or is to keep nothing, leaves nothing behind.
rm -r runs
run "${tiny[@]}" --data synthetic:side=8,train=32,test=8 --accumulate 10
[[ $code == 2 && ! -e runs ]] || complain "expected to fail and leave nothing: $(ls)"
run "${tiny[@]}" --data synthetic:side=8,train=8,test=8 --epochs 1 --out nowhere
[[ $code == 0 && $output != *'writes to'* && ! -e runs && ! -e nowhere ]] || complain "expected to leave nothing: $(ls)"
run --replace
fails 2 "--replace: which run? Give its folder, --out RUN"
touch runs
run "${tiny[@]}" --data synthetic:side=8,train=8,test=8 --epochs 1
fails 1 "could not make a folder in runs: Not a directory: choose another with --out, or --out nowhere to keep nothing"
cd .. || exit 1

# ---- going on --------------------------------------------------------------------------------

run --resume
fails 2 "--resume: which run? Give its folder, --out RUN"
for call in missing '--out nowhere'; do
    # shellcheck disable=SC2086 # two words
    run --resume $call
    fails 2 "--resume: which run? Give its folder, --out RUN"
done
run --resume --replace --out whole
fails 2 "--resume and --replace contradict each other: give one of them"
run --resume whole --seed 7 --quiet
fails 2 "seed: 7: what was trained so far had 1: go on with that, or begin a new training"
run --resume whole --batch 16 --quiet
fails 2 "a step takes 16 images, but took 8 in what was trained so far: go on with the same batch times accumulation, or begin a new training"
run --resume whole --batch 7 --quiet
fails 2 "a step takes 7 images, but took 8 in what was trained so far: go on with the same batch times accumulation, or begin a new training"
run --resume whole --data synthetic:side=8,train=33,test=8 --quiet
fails 2 "the data has 33 images, but had 32 in what was trained so far: go on with the same data, or begin a new training"
holds whole/config.json '*"batch": 8, *"seed": 1, *'
# The same images in smaller batches, as on a smaller machine.
cp -r whole smaller
run --resume smaller --batch 4 --accumulate 2 --epochs 4 --quiet
prints ''
[[ $(values steps smaller/log.jsonl | tail -n 1) == 16 ]] || complain "steps are not 16"
run --resume whole --model resnet32 --quiet
[[ $code == 1 && $messages == 'division:   missing: layer1.3.conv1.weight [16, 16, 3, 3]'*'division:   ... and more'*'whole/last.safetensors is not of this network: '*' missing, 0 unexpected, 0 of other shape ('* ]] || complain "expected what is missing"
run --resume whole
prints 'planned *
nothing is left to do: steps done: 12; epochs complete: 3; more --epochs or --steps go on
best test top-1 *'
run --resume smaller --epochs 9 --steps 17 --quiet
run --resume smaller
prints 'planned *
nothing is left to do: steps done: 17; epochs complete: 4; *'
cp -r whole cut
head -c 1000 whole/last.safetensors >cut/last.safetensors
run --resume cut --quiet
fails 1 "cut/last.safetensors is no good safetensors file: it ends inside its header: check that it is the right file"

# ---- frozen layers ---------------------------------------------------------------------------

# What is frozen is an option of the run: a training goes on with the same, to the same bits, and its weights fit any.
frozen=("${tiny[@]}" --data synthetic:side=16,train=32,test=8 --epochs 2 --average 0.9)
run "${frozen[@]}" --freeze conv1,bn1,layer1,layer2.0 --out frozen --quiet
prints ''
grep -q '"freeze": "conv1,bn1,layer1,layer2.0"' frozen/config.json || complain "config.json does not say what is frozen"
run "${frozen[@]}" --freeze conv1,bn1,layer1,layer2.0 --out thawed --steps 3 --quiet
prints ''
run --resume thawed --freeze fc --quiet
fails 2 "freeze: 'fc': thawed/last.safetensors was trained with 'conv1,bn1,layer1,layer2.0': go on with that (--freeze), or begin a training from its weights alone (--init)"
run --resume thawed --steps 0 --quiet
prints ''
equal_in arrays frozen/last.safetensors thawed/last.safetensors || complain "other weights than without the interruption"
run "${frozen[@]}" --init frozen/last.safetensors --freeze fc --quiet
prints ''
run "${frozen[@]}" --freeze conv9 --quiet
fails 2 "freeze: 'conv9' names no parameter: give names like fc or fc.weight, or globs of them ('*' is any text)"

# ---- images that can't be decoded ------------------------------------------------------------

# A test that fails leaves what was trained before it.
for class in cat dog; do
    mkdir -p photos/{train,val}/$class
    "$DV_PROGRAM" data show synthetic:side=16 --images 1 --png photos/one.png >/dev/null
    for ((i = 0; i < 8; i++)); do
        cp photos/one.png photos/train/$class/$i.png
    done
    cp photos/one.png photos/val/$class/0.png
done
echo 'no image' >photos/val/cat/0.png
mkdir photos/train/cat/folder.png
run "${tiny[@]}" --data folder:photos --side 16 --epochs 2 --out tested --quiet
fails_like 1 '*cat/0.png*with this, 1 of 2 images are corrupt, too many: repair or remove them'
cp photos/one.png photos/val/cat/0.png
run --resume tested
prints 'planned *
goes on after step 2; epochs complete: 0
*'
[[ $(values steps tested/log.jsonl | tr '\n' ' ') == '2 4 ' ]] || complain "steps are not 2 4"

# One among many is told of once, not after every epoch; a few among not so many are no failure either.
for ((i = 1; i < 34; i++)); do
    cp photos/one.png photos/val/cat/$i.png
done
echo 'no image' >photos/val/cat/0.png
run "${tiny[@]}" --data folder:photos --side 16 --epochs 3 --quiet
[[ $code == 0 && $messages == 'division: corrupt, and another image in its place: '*cat/0.png* && $(wc -l <messages) == 1 ]] || complain "expected one message"

# ---- other weights to begin with -------------------------------------------------------------

run "${tiny[@]}" --data synthetic:side=8,train=32,test=8 --epochs 1 --lr 0 --weight-decay 0 --init whole/best.safetensors --quiet --out begun
prints ''
run "${tiny[@]}" --data synthetic:side=8,train=32,test=8 --init whole/best.safetensors --classes 12 --quiet
fails 1 "  other shape: fc.weight is [10, 64], should be [12, 64]
division:   other shape: fc.bias is [10], should be [12]
division: only the last layer is another, as for other classes: leave it out with --init-except fc
division: whole/best.safetensors is not of this network: 0 missing, 0 unexpected, 2 of other shape (other shape: fc.weight is [10, 64], should be [12, 64]; ...): give the right model and classes"
run "${tiny[@]}" --data synthetic:side=8,train=32,test=8 --init whole/best.safetensors --classes 12 --init-except fc --steps 1 --quiet
prints ''
# The advice names the last layer as it is called, and is given only where it helps.
dense=(--model densenet121_cifar --batch 2 --lr 0 --data synthetic:side=8,train=4,test=2 --steps 1 --quiet)
run "${dense[@]}" --out dense
prints ''
run "${dense[@]}" --init dense/last.safetensors --classes 12
[[ $code == 1 && $messages == *'leave it out with --init-except classifier'$'\n'* ]] || complain "expected advice to leave out the classifier"
run "${dense[@]}" --init dense/last.safetensors --classes 12 --init-except classifier
prints ''
run --model resnet32 --batch 8 --data synthetic:side=8,train=32,test=8 --init whole/best.safetensors
[[ $code == 1 && $messages == *$'\n''division: these are weights of another network: the file says --model resnet20, and the call --model resnet32'$'\n'* && $messages != *init-except* ]] || complain "expected the two models"
LC_ALL=C sed 's/"model":"resnet20"/"model":"resnetXX"/; s/"model": "resnet20"/"model": "resnetXX"/' whole/best.safetensors >foreign.safetensors
run --model resnet32 --batch 8 --data synthetic:side=8,train=32,test=8 --init foreign.safetensors
[[ $code == 1 && $messages == *$'\n'"division: these are not weights of --model resnet32: 'division models' lists what there is"$'\n'* ]] || complain "expected the model of the call"
run --init tiny.safetensors
fails 1 "could not read tiny.safetensors: No such file or directory: check the name, and that the folder exists"

# ---- division eval ---------------------------------------------------------------------------

subcommand=(eval)
run whole --batch 8 --json
prints '{"file": "whole/best.safetensors", "model": "resnet20", "data": "synthetic:side=8,train=32,test=8", "split": "test", "images": 8, "top1": *, "top5": *, "loss": *}'
run whole/last.safetensors --batch 8 --json
prints '*'
echo "$output" >evaluated
[[ $(values loss evaluated) == $(values test_loss whole/log.jsonl | tail -n 1) ]] || complain "not the loss of the log"
[[ $(values top1 evaluated) == $(values test_top1 whole/log.jsonl | tail -n 1) ]] || complain "not the accuracy of the log"
run whole --split train --data synthetic:side=8,train=16,test=8 --batch 3
prints 'weights           whole/best.safetensors
model             resnet20
data              synthetic:side=8,train=16,test=8, 16 images to train
top-1             * %
top-5             * %
loss              *'
subcommand=(train)
run "${tiny[@]}" --data synthetic:side=8,train=32,test=8 --resize 16 --epochs 1 --quiet --out resized
prints ''
subcommand=(eval)
run resized --batch 8 --json
prints '*'
echo "$output" >evaluated
[[ $(values loss evaluated) == $(values test_loss resized/log.jsonl) ]] || complain "not resized as in training"

# Images are normalised as the call says; tests of the weights know it from the file, and going on must not change it.
subcommand=(train)
normalised=("${tiny[@]}" --data synthetic:side=8,train=32,test=8 --epochs 1 --quiet)
run "${normalised[@]}" --normalise 0.4+0.5+0.6/0.1+0.2+0.3 --out normalised
prints ''
run "${normalised[@]}" --out usual
prints ''
run "${normalised[@]}" --normalise 0.5+0.5+0.5/0.19607843137254902+0.19607843137254902+0.19607843137254902 --out spelt_out
prints ''
loss=$(values test_loss normalised/log.jsonl)
[[ $loss != $(values test_loss usual/log.jsonl) ]] || complain "expected another loss with another normalisation"
[[ $(values test_loss spelt_out/log.jsonl) == $(values test_loss usual/log.jsonl) ]] || complain "not what is usual"
run --resume normalised --normalise usual --epochs 2 --quiet
fails 2 'normalise: 0.5+0.5+0.5/0.19607843137254902+0.19607843137254902+0.19607843137254902: what was trained so far had 0.4+0.5+0.6/0.1+0.2+0.3: go on with that, or begin a new training'
run --resume normalised --epochs 2 --quiet
prints ''
run --resume usual --normalise 0.5+0.5+0.5/0.19607843137254902+0.19607843137254902+0.19607843137254902 --epochs 2 --quiet
prints ''
subcommand=(eval)
loss=$(values test_loss normalised/log.jsonl | tail -n 1)
for given in '' '--normalise 0.4+0.5+0.6/0.1+0.2+0.3'; do
    # shellcheck disable=SC2086 # none, or two words
    run normalised/last.safetensors $given --batch 8 --json
    echo "$output" >evaluated
    [[ $(values loss evaluated) == "$loss" ]] || complain "not normalised as in training"
done
run normalised/last.safetensors --normalise usual --batch 8 --json
echo "$output" >evaluated
[[ $(values loss evaluated) != "$loss" ]] || complain "expected the data's own normalisation"
LC_ALL=C sed 's|/0.1+0.2+0.3|/0.1+0.2+0,3|' normalised/last.safetensors >noted.safetensors
run noted.safetensors --batch 8
fails 1 'noted.safetensors: its note normalise is "0.4+0.5+0.6/0.1+0.2+0,3", which is no normalisation: give --normalise'

# Images in folders, moved and not resized: tests see them at the scale of training, and whatever makes that differ is told.
mkdir -p folders/{train,val}/{cat,dog}
for ((i = 0; i < 4; i++)); do
    "$DV_PROGRAM" data show synthetic:side=32 --seed "$i" --images 1 --png folders/train/cat/$i.png >/dev/null
    for place in train/dog val/cat val/dog; do
        cp folders/train/cat/$i.png folders/$place/
    done
done
moved=(--data folder:folders --augment zero --side 16 --epochs 1)
subcommand=(train)
run "${tiny[@]}" "${moved[@]}" --out moved
prints 'planned *
epoch 1/1  *'
run "${tiny[@]}" "${moved[@]}" --resize 20
prints 'planned *
tests show images at another scale than training, resized to 20 for a side of 16: leave out --resize for the same
epoch 1/1  *'
subcommand=(eval)
for given in '' '--resize 16'; do
    # shellcheck disable=SC2086 # none, or two words
    run moved $given --batch 8 --json
    prints '*'
    echo "$output" >evaluated
    [[ $(values loss evaluated) == $(values test_loss moved/log.jsonl) ]] || complain "not the scale of training"
done
run moved --side 32 --batch 8 --json
doubled=$output
run moved --side 32 --resize 32 --batch 8 --json
repeats "$doubled"

# A note that is no whole number is refused, and not read as far as it goes; an option goes over it.
LC_ALL=C sed 's/"classes": "10"/"classes": "1e"/' whole/best.safetensors >noted.safetensors
run noted.safetensors --batch 8
fails 1 'noted.safetensors: its note classes is "1e", and no whole number up to 1048576: give --classes'
run noted.safetensors --batch 8 --classes 10 --json
prints '*'
run whole --model resnet32
[[ $code == 1 && $messages == *'is not of this network'* ]] || complain "expected another network to be refused"
run nan.safetensors "${tiny[@]}" --data synthetic:train=32,test=8 --classes 12
fails 1 'test, batch 1: loss: logits of image 0 are not finite: check the data and the training of these weights'
run nowhere
fails 1 "could not read nowhere: No such file or directory: check the name, and that the folder exists"
run "$DV_SOURCE_DIR/README.md"
[[ $code == 1 && $messages == *'README.md is no good safetensors file: '* ]] || complain "expected a foreign file to be refused"
run
fails 2 "eval: missing RUN|FILE: see 'division eval --help'"

finish
