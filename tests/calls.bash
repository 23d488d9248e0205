# What the scripts that call the program have in common; they source it. DV_PROGRAM is the program, DV_TEMP an empty
# folder, where they go on.
set -uo pipefail
cd "$DV_TEMP" || exit 1
unset DV_ISA
export DV_TUNE=${DV_TUNE:-off} # the same passes, and so the same bits, however busy the machine is
failures=0
subcommand=() # words that stand before the arguments of every call

# run ARGUMENT...: calls the program; its output, messages and exit code go to $output, $messages, $code.
run() {
    call="division ${subcommand[*]} $*"
    output=$("$DV_PROGRAM" "${subcommand[@]}" "$@" 2>messages </dev/null)
    code=$?
    messages=$(<messages)
}

# complain TEXT: the last call did not do what it should.
complain() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n  %s\n  exit code: %s\n  output: %s\n  messages: %s\n' "$call" "$1" "$code" "$output" "$messages"
}

# fails CODE TEXT: the last call ended with this code, printed exactly this one message and nothing else.
fails() {
    [[ $code == "$1" && -z $output && $messages == "division: $2" ]] || complain "expected exit code $1 and: division: $2"
}

# fails_like CODE PATTERN: the same, with a message that matches the pattern.
fails_like() {
    # shellcheck disable=SC2053 # a pattern it is
    [[ $code == "$1" && -z $output && $messages == "division: "$2 ]] || complain "expected exit code $1 and: division: $2"
}

# succeeds: the last call ended well and had nothing to complain about. How far it is a call says once a minute, which is no
# complaint: the machine may be busy.
succeeds() {
    [[ $code == 0 && -z $(sed '/^[0-9]*\/[0-9]*  /d' <<<"$messages") ]] || complain "expected success"
}

# prints PATTERN: the last call succeeded, and its output matches the pattern.
prints() {
    succeeds
    # shellcheck disable=SC2053 # a pattern it is
    [[ $output == $1 ]] || complain "expected output: $1"
}

# repeats TEXT: the last call succeeded, and its output is exactly this.
repeats() {
    succeeds
    [[ $output == "$1" ]] || complain "expected output: $1"
}

# sanitized: the program is built with a sanitizer, and slow.
sanitized() {
    [[ $DV_CFLAGS == *sanitize* ]]
}

# milliseconds: on a clock.
milliseconds() {
    echo $(($(date +%s%N) / 1000000))
}

# kill_within MILLISECONDS PROCESS [SIGNAL]: sends SIGKILL or another signal to the process after a random time below this,
# unless it has ended by then; true if it ended by the signal, at once or in good order.
kill_within() {
    local delay=$((RANDOM * $1 / 32768)) signal=${3:-KILL} code
    sleep "$((delay / 1000)).$(printf %03d $((delay % 1000)))"
    kill "-$signal" "$2" 2>/dev/null
    wait "$2" 2>/dev/null
    code=$?
    ((code == 128 + $(kill -l "$signal"))) || [[ $signal != KILL && $code == 130 ]]
}

# arrays FILE: what follows the header of a checkpoint; the header has times.
arrays() {
    tail -c "+$((9 + $(od -An -t u8 -N 8 "$1")))" "$1"
}

# equal_in WHAT FILE FILE: the function WHAT prints the same of both. (<(...), here and in other scripts, would need /proc,
# which is not there in every container.)
equal_in() {
    [[ $("$1" "$2" | sha256sum) == "$("$1" "$3" | sha256sum)" ]]
}

# differences WHAT FILE FILE: those of what the function prints of both.
differences() {
    "$1" "$2" >"$DV_TEMP/.first"
    "$1" "$3" | diff "$DV_TEMP/.first" -
}

# log FILE: the lines of a log without times and memory.
log() {
    sed -E 's/"(images_per_second|peak_bytes|seconds|waited_seconds|workers)": [^,]*, //g' "$1"
}

# field NAME FILE: a number of a summary.
field() {
    sed -n "s/.*\"$1\": \([0-9.e+-]*\).*/\1/p" "$2"
}

# keeps_to_plan RUN: the last call was a training that took the memory that it had planned and what program and libraries
# took before, within 2 % and 16 MB; an emulator's own memory is among the latter.
keeps_to_plan() {
    local planned program peak room=16000000
    [[ $DV_PROGRAM != */emulated/* ]] || room=50000000
    planned=$(field planned_bytes "$1/summary.json") peak=$(field peak_bytes "$1/summary.json")
    program=$(field program_bytes "$1/summary.json")
    echo "$call: planned $planned, program and libraries $program, peak $peak"
    ((planned > 0 && program > 0 && peak <= (planned + program) * 102 / 100 + room)) ||
        complain "planned $planned bytes and had $program, and took $peak"
}

# finish: ends the script, badly if there was anything to complain about.
finish() {
    ((failures > 0)) || exit 0
    echo "$failures failed. To repeat: DV_PROGRAM=$DV_PROGRAM DV_SOURCE_DIR=$DV_SOURCE_DIR DV_CFLAGS= $DV_SOURCE_DIR/tests/with_temporary_folder bash $0"
    exit 1
}
