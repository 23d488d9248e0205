#!/usr/bin/env bash
# The recipes, and reading recipes through the program. DV_PROGRAM is the program, DV_TEMP an empty folder.
source "$DV_SOURCE_DIR/tests/calls.bash"
subcommand=(train)

# ---- every recipe of the tree ----------------------------------------------------------------

# Each is read, its network built and planned, and a step of two small batches trained and tested. So small a batch wants a
# smaller rate; networks for large images make one pixel of 32 x 32, of which two have next to no variance.
for recipe in "$DV_SOURCE_DIR"/recipes/*; do
    side=32
    [[ $recipe != *_imagenet ]] || side=64
    run "$recipe" --data synthetic:train=7,test=1 --batch 2 --accumulate 2 --side $side --resize $side --lr 0.001 --steps 1 --out "${recipe##*/}" --quiet
    prints ''
    [[ $(<"${recipe##*/}/log.jsonl") == *'"steps": 1, '* ]] || complain "expected a step of ${recipe##*/}"
    # Its data is that of the name, and what is not there is named.
    run "$recipe" --quiet
    fails_like 1 '*data/*'
done

# option NAME RECIPE: its value, as the run of above has it.
option() {
    grep -oE "\"$1\": (\"[^\"]*\"|[^,}]*)" "$2/config.json"
}

# Those as published: batches of 64, as many to a step as there were cards; every image; the weights of PyTorch's layers.
published=(resnet18_cifar10 resnet164_cifar10 resnet164_cifar100 densenet121_cifar100 resnet50_imagenet densenet161_imagenet)
for recipe in "${published[@]}"; do
    cards=4
    [[ $recipe != densenet161_imagenet ]] || cards=8
    grep -qx 'batch = 64' "$DV_SOURCE_DIR/recipes/$recipe" || complain "$recipe: expected batches of 64"
    grep -qx "accumulate = $cards" "$DV_SOURCE_DIR/recipes/$recipe" || complain "$recipe: expected $cards batches a step"
    for expected in '"drop-last": false' '"init-weights": "pytorch"' '"schedule": "cosine:per=epoch"' '"warmup": 0' '"lr-min": 0' '"groups": null'; do
        name=${expected#\"}
        [[ $(option "${name%%\"*}" "$recipe") == "$expected" ]] || complain "$recipe: expected $expected"
    done
done

# ---- what a recipe says is done --------------------------------------------------------------

cat >tiny <<'END'
# a recipe
model = resnet20
data = synthetic:train=16,test=8
batch = 8
epochs = 2
lr = 0.05
nesterov = yes
schedule = step:every=1,factor=0.5
END
run tiny --epochs 1 --out first --quiet
prints ''
[[ $(<first/config.json) == *'"batch": 8, '*'"epochs": 1, '*'"lr": 0.05, '*'"nesterov": true, '* ]] || complain 'expected a config.json with the options of the recipe and the command line'

# A run's options are a recipe too: the same again gives the same weights.
run first --out second --quiet
prints ''
cmp -s first/best.safetensors second/best.safetensors || complain 'expected the same weights as before'
run first/config.json --out third --lr 0.01 --quiet
prints ''
! cmp -s first/best.safetensors third/best.safetensors || complain 'expected other weights than before'

# ---- mistakes --------------------------------------------------------------------------------

printf 'model = resnet20\n\nlearning = 1\n' >unknown
run unknown
fails_like 2 'unknown, line 3: learning: no such option*'
printf 'lr = fast\n' >value
run value
fails 2 "value, line 1: lr: 'fast' is not what it takes: give a number from 0 to 1000"
printf 'model = resnet20\nout = here\n' >out
run out
fails 2 'out, line 2: out: belongs on the command line'
printf 'model resnet20\n' >equals
run equals
fails 1 'equals, line 1: "model resnet20": not an option: write name = value'
run missing
fails_like 2 "there is no recipe 'missing': give the path of a file, or one of densenet121_cifar100, *, resnet50_imagenet"
run ./missing
fails_like 1 'could not read ./missing: No such file or directory: *'

# ---- by name ---------------------------------------------------------------------------------

mkdir named && cd named || exit 1 # runs of above have the names of recipes
run resnet18_cifar11
fails 2 "there is no recipe 'resnet18_cifar11': did you mean resnet18_cifar10?"
# Data that is not there: how to get it.
run resnet18_cifar10
fails_like 1 "could not read data/cifar10/*: No such file or directory: give the folder with the binary version of cifar10, or fetch it: 'division data fetch cifar10 data/cifar10'"
[[ ! -e runs ]] || complain "expected to leave nothing"
few=(--data synthetic:side=32,train=8,test=4 --batch 4 --accumulate 1 --lr 0.001 --steps 1)
run resnet20_cifar10_short "${few[@]}"
prints '*writes to runs/resnet20_cifar10_short-1 *'
grep -q '"model": "resnet20"' runs/resnet20_cifar10_short-1/config.json || complain "expected the recipe's model"
# A file goes before a name.
printf 'model = resnet32\n' >resnet20_cifar10_short
run resnet20_cifar10_short "${few[@]}" --out own --quiet
prints ''
grep -q '"model": "resnet32"' own/config.json || complain "expected the file's model"
rm resnet20_cifar10_short

# ---- plans of recipes ------------------------------------------------------------------------

# The plan of a training is that of its recipe and options.
subcommand=(plan)
run resnet20_cifar10_short "${few[@]}" --json
succeeds
echo "$output" >plan.json
summary=runs/resnet20_cifar10_short-1/summary.json
(($(field planned_bytes plan.json) + $(field loader_bytes $summary) == $(field planned_bytes $summary))) ||
    complain "expected the plan of the training: $(<$summary)"
run own --json
prints '{"model": "resnet32", *"batch": 4, *'
run resnet18_cifar10 --schedule constant --workers 2 --elsewhere
[[ $code == 0 && $output == *'fc  '*' 10 '* && $messages == *"; the plan has the side and the classes of --side and --classes, or the model's own" ]] || complain "expected a plan"
run resnet18_cifar11
fails 2 "there is no recipe 'resnet18_cifar11': did you mean resnet18_cifar10?"
run --side 1025
fails 2 "--side: '1025' is not what it takes: give a whole number from 0 to 1024"
subcommand=(train)
cd .. || exit 1
mkdir empty
run empty
fails_like 1 'could not read empty/config.json: No such file or directory: *'
head -c 100000 /dev/zero >vast
run vast
fails_like 1 'vast has more than the 65536 bytes expected: *'

finish
