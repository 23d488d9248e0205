#!/usr/bin/env bash
# The manual page and the completions have every command with every option that its help has; the page is good roff, and
# completion completes. DV_PROGRAM is the program.
source "$DV_SOURCE_DIR/tests/calls.bash"

for form in man bash zsh; do
    run help --$form
    prints '*'
    echo "$output" >page.$form
done
run help --recipes
prints '*resnet18_cifar10_short*'
run help --pdf
fails 2 "help: '--pdf': give a command, or --man, --bash or --zsh"

# ---- every option of every command ------------------------------------------------------------

# section FORM COMMAND: what a file says of a command.
section() {
    case $1 in
    man) awk -v name=".SS division $2" 'index($0 " ", name " ") == 1 { inside = 1; next } /^\.S[SH]/ { inside = 0 } inside' page.man ;;
    bash) grep -F "    '$2') echo" page.bash ;;
    zsh) awk -v name="    '$2')" '$0 == name { inside = 1; next } /^        ;;/ { inside = 0 } inside' page.zsh ;;
    esac
}

# has_options COMMAND WORD...: all files have all options of the help of the command.
has_options() {
    local option form shown
    local -A said
    for form in man bash zsh; do
        said[$form]=$(section $form "$*")
    done
    run "$@" --help
    for option in $(sed -nE '/^Options:/,/^$/s/^  (--?[a-z0-9-]+).*/\1/p' <<<"$output"); do
        for form in man bash zsh; do
            shown=$option
            [[ $form != man ]] || shown=${option//-/\\-}
            [[ $form == man && $option == --help ]] || [[ ${said[$form]} == *"$shown"* ]] || complain "$form: division $* has no $option"
        done
        options=$((options + 1))
    done
}

# commands WORD...: the names that a list of commands has.
commands() {
    "$DV_PROGRAM" "$@" --help | sed -nE '/^(Commands|Benchmarks):/,/^$/s/^  ([a-z]+) .*/\1/p'
}

options=0
for command in $(commands | grep -vx help); do
    parts=$(commands "$command")
    for part in $parts; do
        has_options "$command" "$part"
    done
    [[ -n $parts ]] || has_options "$command"
done
((options > 150)) || complain "expected more than $options options"
echo "options: $options"

# ---- the page ---------------------------------------------------------------------------------

if command -v man >/dev/null; then
    call="man --warnings"
    messages=$(MANROFFSEQ='' man --warnings -E UTF-8 -l page.man 2>&1 >page.txt)
    output='' code=$?
    [[ -z $messages ]] || complain "expected no warnings"
    grep -q -- '--find-lr' page.txt || complain "expected a page with --find-lr"
    wide=$(MANWIDTH=80 man -E UTF-8 -l page.man | awk '{ gsub(/[^ -~]+/, "x") } length($0) > 80')
    [[ -z $wide ]] || complain "expected no lines wider than 80 columns: $wide"
else
    echo "left out: the check of the page by man, which is not installed"
fi

# ---- completion -------------------------------------------------------------------------------

# completes LINE EXPECTED: what bash offers for the last word of a line.
completes() {
    local offered
    offered=$(bash -c '
        source page.bash
        division() { "$DV_PROGRAM" "$@"; }
        read -ra COMP_WORDS <<<"$1"
        [[ $1 != *" " ]] || COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _division
        echo "${COMPREPLY[*]}"' bash "$1" 2>&1)
    call="completion of '$1'" output=$offered
    [[ $offered == "$2" ]] || complain "expected: $2"
}
completes 'division tr' 'train'
completes 'division train --find' '--find-lr'
completes 'division train --precision ' 'f32 bf16'
completes 'division train --model resnet18' 'resnet18 resnet18_cifar'
completes 'division data sh' 'show'
completes 'division data show --spl' '--split'
completes 'division data show --split ' 'train test'
completes 'division eval ' ''
completes 'division help pl' 'plan'
completes 'division train resnet18' 'resnet18_cifar10 resnet18_cifar10_short'
completes 'division plan --batch 8 resnet50_' 'resnet50_imagenet'
completes 'division train --batch ' ''
completes 'division eval runs/first --sp' '--split'
completes 'division train --data ' 'synthetic folder: cifar10: cifar100: lmdb:'
completes 'division data show fol' 'folder:'
completes 'division train --data folder : resnet18' ''
if command -v zsh >/dev/null; then
    call="zsh -n"
    output=$(zsh -n page.zsh 2>&1) || complain "expected a good script"
    # What it asks of zsh's own functions, which need a terminal.
    asks() {
        call="completion of '$1' by zsh"
        output=$(zsh -fc '
            words=(${(s: :)1}) CURRENT=$#words
            _arguments() { print -rl -- "$@"; }
            _describe() { print -rl -- $list; }
            source ./page.zsh' zsh "$1" 2>&1)
        [[ $output == *"$2"* ]] || complain "expected: $2"
    }
    asks 'division tr' 'help:explain a command'
    asks 'division help pl' 'plan:'
    asks 'division train x' '*:recipe or file: _alternative'
    asks 'division train x' ']:N: '
    asks 'division eval x' '*:file:_files'
    asks 'division data sh' 'show:'
    asks 'division data show x' '*:data:{ if compset'
else
    echo "left out: the check of zsh's completion, which is not installed"
fi
finish
