#!/usr/bin/env bash
# Fine-tuning as a user calls it: weights of other classes, a rate of its own for the last layer, patience, the search
# for a learning rate. DV_PROGRAM is the program.
source "$DV_SOURCE_DIR/tests/calls.bash"
subcommand=(train)
small=(--model resnet20 --batch 8 --data synthetic:side=8,train=32,test=8)

run "${small[@]}" --epochs 1 --out base --quiet
prints ''

# ---- weights of files -------------------------------------------------------------------------

# The kind of a file is told by its contents, not by its name.
cp base/best.safetensors base.pth
run "${small[@]}" --init base.pth --steps 1 --out none --quiet
prints ''
run "${small[@]}" --init "$DV_SOURCE_DIR/tests/golden/torch/module_zip.pth" --steps 1 --out none --quiet
fails_like 1 '*module_zip.pth asks for torch.nn.modules.linear.Linear, which is not executed: save weights alone with *'
run "${small[@]}" --init "$DV_SOURCE_DIR/tests/golden/torch/wrapped_zip.pth" --steps 1 --out none --quiet
[[ $code == 1 && $messages == *'107 missing, 2 unexpected'* ]] || complain "expected the two arrays of the file"

# ---- a rate of its own for the last layer -----------------------------------------------------

run "${small[@]}" --classes 12 --init base/best.safetensors --init-except fc --groups fc:rate=10 --lr 0.001 --epochs 1 --out head --quiet
prints ''
run "${small[@]}" --groups 'head:rate=10' --out none --quiet
fails_like 2 "*head*"

# ---- patience ---------------------------------------------------------------------------------

run "${small[@]}" --lr 0 --epochs 40 --patience 2 --out patient
prints '*stopped early: no better test in 2 epochs (--patience)*best test top-1*'
epochs=$(wc -l <patient/log.jsonl)
((epochs < 40)) || complain "expected an early end"
run --resume patient
prints '*nothing is left to do: the last 2 epochs were not better; more --patience goes on*'
run --resume patient --patience 3
prints '*'
(($(wc -l <patient/log.jsonl) > epochs)) || complain "expected more epochs"

# ---- the search for a rate --------------------------------------------------------------------

run "${small[@]}" --find-lr
prints '*losses by rate: find-lr.svg, find-lr.json'
[[ $(<find-lr.json) == '{"suggested": '*', "lowest": '*', "at_end": '*', "points": [{"rate": 1e-06, "loss": '* ]] || complain "expected the numbers in find-lr.json"
[[ $(<find-lr.svg) == '<svg '*'resnet20, batch 8, sgd'*'</svg>' ]] || complain "expected a drawing in find-lr.svg"
[[ ! -e runs ]] || complain "expected no folder of a run"
run "${small[@]}" --find-lr --out other
fails 2 "--find-lr: trains nothing that could be kept: leave out --out, --resume and --replace"
echo 'find-lr = yes' >recipe
run recipe
fails 2 "recipe, line 1: find-lr: belongs on the command line"
finish
