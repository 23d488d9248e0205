#!/usr/bin/env python3
"""The codecs once more, from docs/codec.md and in plain Python, to tell what the packed bytes must be.

    tests/golden/codec.py > tests/golden/codec.inc    the cases of tests/test_golden.c
    tests/golden/codec.py random                      the table in tests/test_random.c

It is run by hand, and only where the format changes on purpose; say so in the commit. Numbers are Python's
doubles, rounded to f32 after every operation: for + - * / of two f32 that is what a processor's f32
arithmetic gives.
"""
import math
import struct
import sys

CHUNK, TILE, ALIGNMENT = 256, 512, 64
MASK32, MASK64 = (1 << 32) - 1, (1 << 64) - 1


# ---- floats ------------------------------------------------------------------------------------------------


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def to_places(x, precision, smallest, rounding):
    """x as a multiple of its last place in a format of so many bits and so small a normal exponent."""
    exponent = max(math.frexp(x)[1] - 1, smallest)
    place = math.ldexp(1.0, exponent - precision + 1)
    return rounding(x / place) * place


def half_even(x):
    return float(round(x))


def bf16(x, rounding=half_even):
    return to_places(x, 8, -126, rounding)


def f16(x):
    return to_places(x, 11, -14, half_even)


def bf16_bytes(x):
    return struct.pack("<f", x)[2:]


# Per type: rounding a number to it, and the bytes of a number that it holds.
TYPES = {
    "f32": (f32, lambda x: struct.pack("<f", x)),
    "bf16": (bf16, bf16_bytes),
    "f16": (lambda x: f16(min(max(x, -65504.0), 65504.0)), lambda x: struct.pack("<e", x)),
}


# ---- random numbers ----------------------------------------------------------------------------------------


def random_key(words):
    key = 0
    for word in words:
        x = (key + word + 0x9E3779B97F4A7C15) & MASK64
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK64
        x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK64
        key = x ^ x >> 31
    return key & MASK32, key >> 32


def random_word(key, position):
    x = (position + key[0]) & MASK32
    x = (x ^ x >> 16) * 0x7FEB352D & MASK32
    x = (x + key[1]) & MASK32
    x = (x ^ x >> 15) * 0x846CA68B & MASK32
    return x ^ x >> 16


def dither(key, index, bits):
    """16 - bits random bits of an element; a word serves two, its lower half the first."""
    return (random_word(key, index // 2) >> (index % 2 * 16) & 0xFFFF) >> bits


# ---- streams of codes --------------------------------------------------------------------------------------


def pack(codes, bits):
    """By chunks; in a chunk of k bytes, byte j holds codes j, j + k, j + 2k, ... from its lowest bits up."""
    packed = b""
    for start in range(0, len(codes), CHUNK):
        chunk = codes[start : start + CHUNK]
        size = -(-len(chunk) * bits // 8)
        values = [0] * size
        for i, code in enumerate(chunk):
            values[i % size] |= code << (i // size * bits)
        packed += bytes(values)
    return packed


def padded(data):
    return data + bytes(-len(data) % ALIGNMENT)


# ---- the division codec ------------------------------------------------------------------------------------


def block_pixels(sides, block):
    """For each block, in order, its pixels as (row number, column number, index)."""
    depth, height, width = sides
    edges = [min(block, side) for side in sides]
    for z0 in range(0, depth, edges[0]):
        for y0 in range(0, height, edges[1]):
            for x0 in range(0, width, edges[2]):
                rows = [
                    (z, y)
                    for z in range(z0, min(z0 + edges[0], depth))
                    for y in range(y0, min(y0 + edges[1], height))
                ]
                columns = range(x0, min(x0 + edges[2], width))
                yield [[(z * height + y) * width + x for x in columns] for z, y in rows]


def total(values):
    result = 0.0
    for value in values:
        result = f32(result + value)
    return result


def average(rows, channel_values, layout):
    """NHWC adds pixel after pixel; NCHW each column from top to bottom, then the columns."""
    values = [[channel_values[pixel] for pixel in row] for row in rows]
    flat = sum(values, [])
    if min(flat) == max(flat):
        return bf16(flat[0])
    sums = flat if layout == "nhwc" else [total(column) for column in zip(*values)]
    return bf16(f32(total(sums) / len(flat)))


def range_of(rest, bits):
    """Minimum and step of a channel's HFC; a negative step says that there is one value only."""
    low, high = min(rest), max(rest)
    minimum = bf16(low, math.floor) + 0.0
    if low == high:
        return minimum, -bf16(f32(high - minimum), math.ceil)
    wanted = f32(f32(high - minimum) / ((1 << bits) - 1))
    return minimum, bf16(max(wanted, 2.0**-100), math.ceil)


def fixed_point(rest, minimum, step, bits):
    """The element above the minimum, in steps, with 16 - bits bits behind the point."""
    if step <= 0:
        return 0
    scale = f32(f32((1 << (16 - bits)) * (1 - 2.0**-22)) / step)
    offset = f32(minimum - f32(0.5 / scale))
    return int(f32(f32(rest - offset) * scale))


def encode_tile(channels, sides, layout, options, key):
    """Packs channels (each a list of pixels); returns the record and what it decodes to."""
    bits, one = options["bits"], 1 << (16 - options["bits"])
    blocks = list(block_pixels(sides, options["block"]))
    averages = [[average(rows, values, layout) for rows in blocks] for values in channels]
    lows = []
    for mine in averages:
        low = {pixel: value for rows, value in zip(blocks, mine) for row in rows for pixel in row}
        lows.append(low)
    rests = [[f32(v - lows[c][p]) for p, v in enumerate(values)] for c, values in enumerate(channels)]
    ranges = [range_of(rest, bits) for rest in rests]

    count, pixels = len(channels), len(channels[0])
    if layout == "nhwc":
        order = [(c, p) for p in range(pixels) for c in range(count)]
        flat_averages = [averages[c][b] for b in range(len(blocks)) for c in range(count)]
    else:
        order = [(c, p) for c in range(count) for p in range(pixels)]
        flat_averages = sum(averages, [])

    codes, decoded = [], {}
    for index, (c, p) in enumerate(order):
        minimum, step = ranges[c]
        random = dither(key, index, bits)
        code = (fixed_point(rests[c][p], minimum, step, bits) + random) // one
        codes.append(code)
        if step < 0:
            minimum, step = f32(minimum - step), 0.0
        level = float(code)
        if options["dither"] == "subtractive":
            level = f32(level + f32(0.5 - 0.5 / one - random / one))
        decoded[c, p] = f32(f32(lows[c][p] + minimum) + f32(step * level))
    numbers = flat_averages + [r[0] for r in ranges]
    head = b"".join(bf16_bytes(x) for x in numbers)
    for _, step in ranges: # a channel that is its average has the step -0
        head += bf16_bytes(step if step else -0.0)
    return padded(head + pack(codes, bits)), decoded


def encode_division(image, number, case):
    options, layout, sides = case["options"], case["layout"], ([1, 1, 1] + case["sides"])[-3:]
    if len(image[0]) == 1:
        return encode_exact(image, number, case)
    packed, result = b"", []
    for tile, first in enumerate(range(0, len(image), TILE)):
        key = random_key([*case["noise"], number, tile])
        channels = image[first : first + TILE]
        record, decoded = encode_tile(channels, sides, layout, options, key)
        packed += record
        result += [[decoded[c, p] for p in range(len(image[0]))] for c in range(len(channels))]
    return packed, result


# ---- the other codecs --------------------------------------------------------------------------------------


def in_memory(image, layout):
    """An image, [channels][pixels], in the order of its layout."""
    return sum(image, []) if layout == "nchw" else [value for pixel in zip(*image) for value in pixel]


def encode_exact(image, number, case):
    to_bytes = TYPES[case["type"]][1]
    return padded(b"".join(to_bytes(x) for x in in_memory(image, case["layout"]))), image


def encode_bits(image, number, case):
    signs = [int(x > 0) for x in in_memory(image, case["layout"])]
    return padded(pack(signs, 1)), [[float(x > 0) for x in values] for values in image]


def encode_bf16(image, number, case):
    packed = b"".join(bf16_bytes(bf16(x)) for x in in_memory(image, case["layout"]))
    return padded(packed), [[bf16(x) for x in values] for values in image]


ENCODERS = {"bf16": encode_bf16, "division": encode_division, "exact": encode_exact, "bits": encode_bits}


# ---- cases -------------------------------------------------------------------------------------------------


def element(case, index):
    """Noise on a slope, or the same everywhere; tests/test_golden.c computes the same."""
    if case["flat"]:
        return TYPES[case["type"]][0](f32(0.1))
    noise = f32((random_word(random_key([case["seed"]]), index) >> 8) * 2.0**-22 - 2.0)
    return TYPES[case["type"]][0](f32(noise + index % 97 / 32))


def make_case(seed, text, kind, layout, shape, flat=False):
    name, _, rest = text.partition(":")
    options = {"block": 8, "bits": 2, "dither": "stochastic"}
    for option in filter(None, rest.split(",")):
        key, value = option.split("=")
        options[key] = value if key == "dither" else int(value)
    return dict(seed=seed, text=text, name=name, options=options, type=kind, layout=layout, images=shape[0],
                channels=shape[1], sides=list(shape[2:]), flat=flat, noise=(seed, 2, 3))


CASES = [
    make_case(1, "division", "f32", "nhwc", (1, 2, 3, 5)),
    make_case(2, "division", "f32", "nchw", (1, 2, 3, 5)),
    make_case(3, "division", "f32", "nhwc", (2, 3, 9, 11)),
    make_case(4, "division", "f32", "nchw", (2, 3, 9, 11)),
    make_case(5, "division:dither=subtractive", "bf16", "nhwc", (2, 17, 10, 12)),
    make_case(6, "division:dither=subtractive", "f16", "nchw", (1, 9, 20, 36)),
    make_case(7, "division:bits=1", "f16", "nchw", (1, 5, 7, 9)),
    make_case(8, "division:block=5,bits=4", "f32", "nhwc", (1, 515, 3, 2)),
    make_case(9, "division:bits=8,dither=subtractive", "bf16", "nchw", (1, 2, 3, 9, 10)),
    make_case(10, "division:bits=8", "f32", "nhwc", (1, 3, 9, 4, 10)),
    make_case(11, "division:block=64", "f16", "nhwc", (1, 33, 70)),
    make_case(12, "division:block=3", "bf16", "nchw", (2, 1, 31)),
    make_case(13, "division", "f32", "nhwc", (1, 4, 5, 6), flat=True),
    make_case(14, "division:bits=1", "bf16", "nchw", (1, 4, 5, 6), flat=True),
    make_case(15, "division", "f32", "nchw", (3, 7)),
    make_case(16, "bits", "f32", "nhwc", (2, 3, 9, 11)),
    make_case(17, "bits", "f16", "nchw", (1, 1, 1, 7)),
    make_case(18, "exact", "bf16", "nchw", (2, 5, 3)),
    make_case(19, "bf16", "f32", "nhwc", (2, 5, 3, 7)),
    make_case(20, "bf16", "f16", "nchw", (1, 3, 9)),
]


def elements_of(case):
    """[images][channels][pixels] of a case; indices count in the order of memory."""
    pixels, channels = math.prod(case["sides"]), case["channels"]
    def at(n, c, p):
        within = p * channels + c if case["layout"] == "nhwc" else c * pixels + p
        return element(case, n * channels * pixels + within)
    return [[[at(n, c, p) for p in range(pixels)] for c in range(channels)] for n in range(case["images"])]


def checksum(data):
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & MASK64
    return value


def run(case):
    to_type, to_bytes = TYPES[case["type"]]
    packed = unpacked = b""
    for number, image in enumerate(elements_of(case)):
        record, decoded = ENCODERS[case["name"]](image, number, case)
        packed += record
        unpacked += b"".join(to_bytes(to_type(x)) for x in in_memory(decoded, case["layout"]))
    return packed, unpacked


def print_cases():
    print("/* Printed by tests/golden/codec.py: do not edit. */")
    for case in CASES:
        packed, unpacked = run(case)
        sides = ", ".join(map(str, case["sides"])) or "0"
        print('{"%s", {DV_%s, DV_%s, %d, %d, %d, {%s}}, %d, %d, %d, 0x%016x, 0x%016x},' % (
            case["text"], case["type"].upper(), case["layout"].upper(), case["images"], case["channels"],
            len(case["sides"]), sides, case["seed"], case["flat"], len(packed), checksum(packed), checksum(unpacked)))
    for name, case in (("NHWC_BYTES", CASES[0]), ("NCHW_BYTES", CASES[1])):
        print("#define %s \\" % name)
        packed = run(case)[0]
        for start in range(0, len(packed), 16):
            end = " \\" if start + 16 < len(packed) else ""
            print('    "%s"%s' % ("".join("\\x%02x" % byte for byte in packed[start : start + 16]), end))


def print_random():
    for words in ((0, 0, 0), (1, 2, 3), (MASK64, 0, 1 << 63)):
        key = random_key(words)
        numbers = [random_word(key, position) for position in (0, 1, 2, MASK32)]
        print("{{%s}, {%s}, {%s}}," % (", ".join("0x%x" % w for w in words), ", ".join("0x%08x" % k for k in key),
                                      ", ".join("0x%08x" % n for n in numbers)))


if __name__ == "__main__":
    print_random() if sys.argv[1:] == ["random"] else print_cases()
