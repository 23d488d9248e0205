#!/usr/bin/env bash
# The program from outside: exact output, exit codes, and what it says when something is wrong.
# DV_PROGRAM is the program, DV_TEMP an empty folder.
source "$DV_SOURCE_DIR/tests/calls.bash"
if [[ ! -x $DV_PROGRAM ]]; then
    echo "there is no program $DV_PROGRAM: build it first"
    exit 1
fi

# npy VERSION HEADER BYTES: a .npy file with this header and so many zero bytes behind it, on stdout.
npy() {
    local length=${#2}
    # shellcheck disable=SC2059 # the format is made here
    printf "\\x93NUMPY$(printf '\\x%02x' "$1" 0 $((length % 256)) $((length / 256)))"
    [[ $1 == 1 ]] || printf '\0\0'
    printf '%s' "$2"
    head -c "$3" /dev/zero
}

header() {
    echo "{'descr': '$1', 'fortran_order': False, 'shape': ($2), }"
}

# ---- calls -----------------------------------------------------------------------------------

run
prints 'Usage: division COMMAND*codec*bench*info*help*'
whole_help=$output
for call in --help -h help; do
    run "$call"
    repeats "$whole_help"
done
run --version
prints 'division [0-9]*.[0-9]*.[0-9]*'
run help codec
prints 'Usage: division codec FILE*--method*--json*--help*Codecs*division*block*exact*bits*'
codec_help=$output
run codec --help
repeats "$codec_help"
run codec missing.npy --seed x --help
repeats "$codec_help"
run methods
prints 'none *division *block*bits*checkpoint*segments*actnn*level*: L0, L1, L2, L3 or L4*'
run help bench
prints 'Usage: division bench BENCHMARK*codec*'
run help info
prints 'Usage: division info*--json*'

run codc
fails 2 "there is no command 'division codc': did you mean 'division codec'?"
run frobnicate
fails 2 "there is no command 'division frobnicate': see 'division --help'"
run help frobnicate
fails 2 "there is no command 'division frobnicate': see 'division --help'"
run bench
fails 2 "bench: BENCHMARK is missing: see 'division bench --help'"
run bench codex
fails 2 "there is no command 'division bench codex': did you mean 'division bench codec'?"
run codec
fails 2 "codec: missing FILE.npy|synthetic[:NxCxHxW]: see 'division codec --help'"
run codec a.npy b.npy
fails 2 "codec: 'b.npy' is one argument too many: see 'division codec --help'"
run info now
fails 2 "info: 'now' is one argument too many: see 'division info --help'"
run codec synthetic --metod exact
fails 2 "--metod: no such option: did you mean --method?"
run codec synthetic -x
fails 2 "--x: no such option: see --help for those there are"
run codec synthetic --seed
fails 2 "--seed: its value is missing: give a whole number from 0 to 18446744073709551615"
run codec synthetic --layout
fails 2 "--layout: its value is missing: give nchw or nhwc"
run codec synthetic --layout=chwn
fails 2 "--layout: 'chwn' is not what it takes: give nchw or nhwc"
for bad in -1 1025 1.5 two 99999999999999999999 ''; do
    run codec synthetic --threads "$bad"
    fails 2 "--threads: '$bad' is not what it takes: give a whole number from 0 to 1024"
done
for bad in -1 18446744073709551616 0xg '' ' 1'; do
    run codec synthetic --seed "$bad"
    fails 2 "--seed: '$bad' is not what it takes: give a whole number from 0 to 18446744073709551615"
done
run codec synthetic --json=perhaps
fails 2 "--json: 'perhaps' is not what it takes: give yes, no, or no value at all"
run codec synthetic --method bogus
[[ $code == 2 && $messages == division:*bogus* ]] || complain "expected exit code 2 and a message on bogus"
run codec synthetic --method division:bits=3
[[ $code == 2 && $messages == division:*bits*3* ]] || complain "expected exit code 2 and a message on bits"
DV_ISA=mmx run info
[[ $code == 2 && $messages == division:*mmx* ]] || complain "expected exit code 2 and a message on DV_ISA"
DV_ISA=scalar run info
prints '*in use*scalar*'

# ---- info ------------------------------------------------------------------------------------

run info
prints 'version  *processor  *instruction sets  *scalar*in use  *threads  *memory  *libraries  *machines  *'
run info --json
prints '{"version": "*", "processor": "*", "isa": "*", "threads": *, "memory_bytes": *, "isa_found": \["scalar"*\], "cache_bytes": {"l1d": *}, "libraries": {*}, "machines": *}'

# ---- codec -----------------------------------------------------------------------------------

number='[0-9]*'
json="{\"elements\": 6272, \"input_bytes\": 25088, \"packed_bytes\": $number, \"ratio\": $number, \"bits_per_element\": $number, \"rmse\": $number, \"max_error\": $number, \"snr_db\": $number, \"lfc_energy\": 0.$number}"

run codec synthetic:1x2x56x56 --seed 7 --json --out decoded.npy
prints "$json"
first=$output
for threads in 1 2 5; do
    run codec synthetic:1x2x56x56 --seed=0x7 --json --threads "$threads"
    repeats "$first"
done
run codec --json --seed 7 -- synthetic:1x2x56x56
repeats "$first"
run codec synthetic:1x2x56x56 --json=yes --layout nhwc --seed 7
prints "$json"
run codec synthetic:1x2x56x56
prints 'map  *1 x 2 x 56 x 56, f32, nchw
method  *division:block=8,bits=2,dither=stochastic,lfc=on,hfc=on
elements  *6272
input bytes  *25088
packed bytes  *
ratio  *
bits per element  *
RMSE  *
largest error  *
SNR  * dB
energy in the LFC * %'
run codec synthetic
prints '*4 x 64 x 56 x 56, f32, nchw*'

# What was decoded is an array again: as long as it says, and exact when packed exactly.
run codec decoded.npy --method exact --json --out same.npy
prints '{"elements": 6272, "input_bytes": 25088, "packed_bytes": *, "rmse": 0, "max_error": 0, "snr_db": null, "lfc_energy": 0.*}'
cmp -s decoded.npy same.npy || complain "the exact copy differs"
[[ $(wc -c <decoded.npy) == $((25088 + 128)) ]] || complain "the decoded file has another size"

# Maps of every rank, both layouts, and f16, which stays f16.
for shape in 3x5 3x5x17 3x5x9x31 2x3x5x8x9; do
    for layout in nchw nhwc; do
        run codec "synthetic:$shape" --layout "$layout" --out out.npy --json
        succeeds
        run codec out.npy --layout "$layout" --method exact --out again.npy
        succeeds
        cmp -s out.npy again.npy || complain "the exact copy differs"
    done
done
npy 1 "$(header '<f2' '2, 3, 4, 5')" 240 >half.npy
run codec half.npy --out half_out.npy --method bits
prints '*2 x 3 x 4 x 5, f16, nchw*'
[[ $(head -c 128 half_out.npy | tr -d '\0') == *"'<f2'"*"(2, 3, 4, 5)"* && $(wc -c <half_out.npy) == 368 ]] || complain "not f16 any more"
if [[ -e /dev/stdin ]]; then
    npy 2 "$(header '<f4' '2, 3')" 24 | "$DV_PROGRAM" codec /dev/stdin --json >piped 2>messages
    [[ $(<piped) == '{"elements": 6, '*'"snr_db": null, "lfc_energy": null}' ]] || complain "a pipe is read as a file is"
else
    echo "left out: a pipe read as a file (there is no /proc, into which /dev/stdin points)"
fi

# ---- pictures --------------------------------------------------------------------------------

for shape in 1x1x7x7 2x5x56x56 1x3x300x20 1x2x20x700 1x2x100 1x2x9x9x9; do
    for layout in nchw nhwc; do
        rm -f map.png
        run codec "synthetic:$shape" --png map.png --layout "$layout"
        succeeds
        [[ $(head -c 8 map.png | od -An -tx1) == ' 89 50 4e 47 0d 0a 1a 0a' ]] || complain "map.png is no PNG"
    done
done
run codec synthetic:2x3 --png map.png
fails 1 "a map without sides can't be drawn: leave out --png, or reshape the array to [N, C, sides...]"

# ---- bad input -------------------------------------------------------------------------------

damaged="save it again with numpy.save"
run codec missing.npy
fails 1 "could not read missing.npy: No such file or directory: check the name"
mkdir folder
run codec folder
fails 1 "could not read folder: Is a directory: check the path and the device"
: >bad.npy
run codec bad.npy
fails 1 "bad.npy: the file ends before its array does: it was cut, make it again"
echo "this is no array at all" >bad.npy
run codec bad.npy
fails 1 "bad.npy: not a .npy file: save the array with numpy.save"
npy 4 "$(header '<f4' '2, 3')" 24 >bad.npy
run codec bad.npy
fails 1 "bad.npy: .npy version 4.0 is unknown: save it with version 1.0 to 3.0"
npy 1 "$(header '<f8' '2, 3')" 48 >bad.npy
run codec bad.npy
fails 1 "bad.npy: dtype '<f8': 64-bit floats are not supported: save it with .astype('<f4')"
npy 1 "$(header '>f4' '2, 3')" 24 >bad.npy
run codec bad.npy
fails 1 "bad.npy: dtype '>f4': big-endian numbers are not supported: save it with .astype('<f4')"
npy 1 "$(header '|O' '2, 3')" 24 >bad.npy
run codec bad.npy
fails 1 "bad.npy: dtype '|O': arrays of Python objects are not supported: save it with .astype('<f4')"
npy 1 "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }" 24 >bad.npy
run codec bad.npy
fails 1 "bad.npy: Fortran order is not supported: save numpy.ascontiguousarray(array)"
npy 1 "$(header '<f4' '2, 0')" 0 >bad.npy
run codec bad.npy
fails 1 "bad.npy: the array is empty (axis 1 has length 0): save one with elements"
npy 1 "$(header '<f4' '4294967296, 4294967296')" 24 >bad.npy
run codec bad.npy
fails 1 "bad.npy: its header is damaged (its shape has more elements than memory has addresses): $damaged"
npy 1 "$(header '<f4' '2, 3')" 23 >bad.npy
run codec bad.npy
fails 1 "bad.npy: the file ends before its array does: it was cut, make it again"
npy 1 "$(header '<f4' '2, 3')" 25 >bad.npy
run codec bad.npy
fails 1 "bad.npy: something follows the array: save one array per file"
npy 1 "{'descr': '<f4'" 24 >bad.npy
run codec bad.npy
fails 1 "bad.npy: its header is damaged (a comma is missing): $damaged"
reshape="reshape it to [images, channels] and up to 3 sides (--layout nhwc: [images, sides..., channels])"
npy 1 "$(header '<f4' '6,')" 24 >bad.npy
run codec bad.npy
fails 1 "the array has 1 axes: $reshape"
npy 1 "$(header '<f4' '1, 1, 1, 1, 2, 3')" 24 >bad.npy
run codec bad.npy
fails 1 "the array has 6 axes: $reshape"
{ npy 1 "$(header '<f4' '2, 3, 2')" 40 && printf '\0\0\xc0\x7f' && head -c 4 /dev/zero; } >bad.npy
run codec bad.npy
[[ $code == 1 && $messages == division:*image\ 1*channel\ 2* ]] || complain "expected a message on image 1, channel 2"
for shape in '' 3 3x 3x0 ax2 1x2x3x4x5x6 3x5x; do
    run codec "synthetic:$shape"
    fails 2 "synthetic: its shape is not one: give synthetic:NxCxHxW, with 0 to 3 sides"
done

# ---- plans ------------------------------------------------------------------------------------

# With several ranks gradients lie in buckets, which take memory.
run plan --model resnet20 --ranks 4 --operations --elsewhere
prints '*backward conv1 *reduce conv1 *update conv1 *'

# What a step should take on several machines: rows for powers of two, and for the number that was asked for.
network=(plan --model resnet20 --batch 2 --method none --tune off --threads 1)
run "${network[@]}" --ranks 6 --bandwidth 10Gb/s --latency 20us
prints 'measured: *ranks *images *step *transfers *waiting *hidden *images/s *efficiency
 *1 *2 * 0 us *100%
 *2 *4 *
 *4 *8 *
 *6 *12 *
 *8 *16 *
 *1024 *2048 *It scales to *'
run "${network[@]}" --bandwidth 1.25GB/s --json
prints '{"model": "resnet20", "batch": 2, *"bandwidth": 1250000000, "latency": *e-05, "scales_to": *"scaling": *{"ranks": 1, *{"ranks": 1024, *}*}'
run "${network[@]}" --bandwidth 10
fails 2 "--bandwidth: '10' is not what it takes: give what a machine sends in a second, as 10Gb/s, 100Mb/s or 1.2GB/s"
run "${network[@]}" --bandwidth 1Gb/s --latency fast
fails 2 "--latency: 'fast' is not what it takes: give how long a message takes, as 50us or 0.2ms"

# The figures of a plan that does not fit are printed, and it fails; for another machine it does not.
vast=(plan --model resnet20 --method none --batch 1048576)
for json in '' --json; do
    run "${vast[@]}" $json
    [[ $code == 1 && $output == *planned* && $output == *available* && $messages == 'division: it does not fit: '*' planned, '*' available: use a smaller batch or a method that keeps less, or --elsewhere to plan for another machine' ]] ||
        complain "expected figures and a failure"
    run "${vast[@]}" --elsewhere $json
    prints '*planned*'
    [[ $output != *available* ]] || complain "what is available here does not matter"
done
run plan --model resnet20 --batch 1
prints '*available *'

# A schedule fits a terminal, names its columns and has one peak; its first operation stores the images.
run plan --model densenet121 --batch 2 --method division:recompute=norms --operations
prints 'at: position in the step; *    at  operation and its layer or value, pieces it touches * bytes *alive
     0  forward features.conv0 *
            packed output of input *
*     1  forward features.norm0 *
            output of features.conv0 *
            output of features.norm0 * in place
*backward features.conv0 *planned *'
[[ $(grep -c '  peak$' <<<"$output") == 1 ]] || complain "expected one peak"
[[ $(awk 'length > 100' <<<"$output") == '' ]] || complain "expected lines of at most 100 characters"
run plan --model resnet20 --batch 2 --method checkpoint --operations --json
prints '*"planned_bytes": *"peak_at": *"peak_bytes": *"schedule": [[]{"at": 0, "operation": "forward", "subject": "conv1", "alive_bytes": *, "touches": [[]{"role": "output", "owner": "input", "bytes": 24576, "piece": *"operation": "loss", "subject": "fc"*"operation": "replay"*"role": "output again"*"operation": "backward", "subject": "conv1"*'
run plan --model resnet20 --batch 2 --json
[[ $output != *schedule* ]] || complain "expected no schedule where none is asked for"

# What is frozen is marked, and what it saves is told.
run plan --model resnet20 --batch 2 --method none --freeze 'conv1,bn1,layer[12]' --elsewhere
prints 'layer *
conv1 *  convolution *  -  * 0 B   0.00        0 B  frozen
*layer2.2.bn2 *  exact *  frozen
layer3.0.conv1 * 0 B
*frozen            66128 of 272474 parameters; without: * activations, * planned
parameters *'
run plan --model resnet20 --batch 2 --freeze conv1 --json
prints '*"freeze": "conv1"*"layer": "conv1"*"frozen_bytes": 1728*"frozen_bytes": 1728*"activation_bytes_if_not_frozen": *"planned_bytes_if_not_frozen": *'
run plan --model resnet20 --freeze '*'
fails 2 "freeze: '*' are all parameters: nothing is left to train: leave some out, fc for example"

# ---- the environment --------------------------------------------------------------------------

# settings [NAME=VALUE...]: what OpenMP's library is told, each time that it is loaded.
settings() {
    env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT OMP_DISPLAY_ENV=verbose "$@" "$DV_PROGRAM" --version 2>&1 >/dev/null
}

# Threads sleep when they have waited for a moment, unless the user has said otherwise: the program starts again to see
# to it.
call="division --version, with OMP_DISPLAY_ENV" code=0
passive=$(settings OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=1000)
lines=$(wc -l <<<"$passive")
output=$(settings)
[[ $(tail -n "$lines" <<<"$output") == "$passive" ]] || complain "expected to end with: $passive"
for chosen in OMP_WAIT_POLICY=active GOMP_SPINCOUNT=7 KMP_BLOCKTIME=7; do
    output=$(settings $chosen)
    [[ $(wc -l <<<"$output") == "$lines" ]] || complain "expected to be loaded once with $chosen"
done
call="division '' 'a  b'"
output=$(env -u OMP_WAIT_POLICY "$DV_PROGRAM" codec '' 'a  b' 2>messages)
code=$? messages=$(<messages)
fails 2 "codec: 'a  b' is one argument too many: see 'division codec --help'"

# ---- output that can't be written ------------------------------------------------------------

run codec synthetic:1x2x8x8 --out no/such/folder.npy
fails 1 "could not write no/such/folder.npy: No such file or directory: check the name, and that the folder exists"
run codec synthetic:1x2x8x8 --out /dev/full
fails 1 "could not write /dev/full: No space left on device: make room, or choose another place"
run codec synthetic:1x2x8x8 --png /dev/full
fails 1 "could not write /dev/full: No space left on device: make room, or choose another place"
for arguments in '--help' '--version' 'info' 'info --json' 'codec --help' 'codec synthetic:1x2x8x8' 'codec synthetic:1x2x8x8 --json'; do
    call="division $arguments >/dev/full" output=
    # shellcheck disable=SC2086 # words they are
    "$DV_PROGRAM" $arguments >/dev/full 2>messages
    code=$? messages=$(<messages)
    fails 1 "could not write to standard output: No space left on device: check where the output goes"
done
call="division --help | :" output=
{ sleep 0.3; "$DV_PROGRAM" --help 2>messages; echo $? >code; } | :
code=$(<code) messages=$(<messages)
fails 1 "could not write to standard output: Broken pipe: check where the output goes"
call="division info >&-" output=
"$DV_PROGRAM" info 2>messages >&-
code=$? messages=$(<messages)
fails 1 "could not write to standard output: Bad file descriptor: check where the output goes"
leftovers=$(find . -name '*.tmp')
[[ -z $leftovers ]] || complain "temporary files are left: $leftovers"

finish
