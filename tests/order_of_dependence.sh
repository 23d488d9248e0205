#!/usr/bin/env bash
# Fails when a file under src/FOLDER includes a header of a folder that comes later in the order of
# dependence of docs/architecture.md, or when src/cli includes anything but public headers.
set -euo pipefail

# The folders in order: the items of the list that follows the mark in the document.
order_of() {
    awk '/^<!-- order-of-dependence -->$/ { found = 1; next }
         found && /^([0-9]+\.|[-*]) +`[a-z]+`/ { split($0, part, "`"); print part[2]; next }
         found { exit }' "$1/docs/architecture.md"
}

# "file:line header" of every include under src/.
includes_of() {
    (cd "$1" && grep -rnE --include='*.[ch]' '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]' src) |
        sed -E 's/^([^:]+:[0-9]+):[^"<]*["<]([^">]+)[">].*/\1 \2/'
}

# Sets $to to the folder under src/ that file $2 of tree $1 reaches with header $3; to nothing for public and system
# headers. As the compiler does, it looks beside the file first and under src/ then. There are a thousand includes: only
# the rare ones with ".." start a process.
find_folder() {
    local tree=$1 file=$2 header=$3 path
    to=
    for path in "${file%/*}/$header" "src/$header"; do
        [[ -e $tree/$path ]] || continue
        [[ $path != *..* ]] || path=$(realpath -m --relative-to="$tree" "$tree/$path")
        [[ $path != src/*/* ]] || to=${path#src/} to=${to%%/*}
        return
    done
}

# Prints what breaks the order in the tree $1; true if nothing does.
check() {
    local tree=$1 broken=0 file header where from to
    local -A position=()
    for from in $(order_of "$tree"); do
        position[$from]=$((${#position[@]} + 1))
    done
    if [[ ${#position[@]} -eq 0 ]]; then
        echo "docs/architecture.md: no list after the line <!-- order-of-dependence -->"
        return 1
    fi
    for from in "$tree"/src/*/; do
        from=$(basename "$from")
        if [[ -z ${position[$from]:-} ]]; then
            echo "src/$from: not in the list of docs/architecture.md"
            broken=1
        fi
    done
    while read -r where header; do
        file=${where%:*}
        from=${file#src/} from=${from%%/*}
        find_folder "$tree" "$file" "$header"
        [[ -n $to && $to != "$from" ]] || continue
        if [[ $from == cli ]]; then
            echo "$where: cli uses public headers only, and this is of $to: $header"
            broken=1
        elif ((${position[$to]:-0} > ${position[$from]:-0})); then
            echo "$where: $from comes before $to and may not include $header"
            broken=1
        fi
    done <<<"$(includes_of "$tree")"
    return $broken
}

# ---- the check itself must be able to fail -------------------------------------------------------

# Checks a small tree in order, to which file $1 with the include $2 was added.
sample() {
    local tree=$DV_TEMP/sample
    rm -rf "$tree"
    mkdir -p "$tree"/docs "$tree"/src/{base,codec/kernels,cli} "$tree/$(dirname "$1")"
    cat >"$tree/docs/architecture.md" <<'END'
<!-- order-of-dependence -->
1. `base`: the first
2. `codec`
3. `cli`

4. `nn`: not of the list any more
END
    touch "$tree"/src/base/base.h "$tree"/src/codec/codec.h "$tree"/src/cli/cli.h
    printf '#include <stdio.h>\n%s\n' "$2" >"$tree/$1"
    check "$tree" >/dev/null
}

must_pass() {
    sample "$@" || { echo "the check refuses a good sample: $*"; exit 1; }
}

must_fail() {
    ! sample "$@" || { echo "the check accepts a bad sample: $*"; exit 1; }
}

must_pass src/codec/a.c '#include "base/base.h"'
must_pass src/codec/kernels/a.c '#include "../codec.h"'
must_pass src/cli/a.c '#include "cli.h"'
must_pass src/cli/a.c '#include <division/codec.h>'
must_fail src/base/a.c '#include "codec/codec.h"'
must_fail src/base/a.h '#  include <codec/codec.h>'
must_fail src/base/a.c '#include "../codec/codec.h"'
must_fail src/cli/a.c '#include "base/base.h"'
must_fail src/nn/a.c '#include "base/base.h"'

check "$DV_SOURCE_DIR"
