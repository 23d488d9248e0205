#!/usr/bin/env python3
"""The codes of BLPA and AC-GC, read from their definitions with PyTorch in double precision.

    tests/golden/baselines.py > tests/golden/baselines.inc    for tests/test_baselines.c

It is run by hand. What it knows of this project is the made-up input alone (`elements`), which the test makes as well.
"""
import torch

PIXELS, CHANNELS = 40, 5


def elements():
    """[pixels][channels]: numbers with 16 bits behind the point."""
    index = torch.arange(PIXELS * CHANNELS)
    return (((index * 2654435761 >> 8) % 65536).double() / 65536 * 8 - 4).view(PIXELS, CHANNELS)


MEAN = torch.tensor([0.25, -0.5, 0.0, 1.0, 0.125], dtype=torch.float64)
ISTD = torch.tensor([0.5, 0.75, 1.0, 0.375, 2.0], dtype=torch.float64)
WEIGHT = torch.tensor([1.0, 0.5, 0.25, 2.0, 0.125], dtype=torch.float64)
BIAS = torch.tensor([0.0, 0.25, -1.0, 0.5, 0.75], dtype=torch.float64)  # bias / weight: 0, 1/2, -4, 1/4, 6


def blpa(bits):
    bins = 2**bits
    hat = (elements() - MEAN) * ISTD
    a = (hat * WEIGHT + BIAS) / WEIGHT
    shift = torch.clamp(bins / 2 - torch.floor(BIAS / WEIGHT * bins / 6), min=1)
    code = torch.clamp(torch.floor((a - 1e-6) * bins / 6) + shift, 0, bins - 1)
    return code, (code - shift + 0.5) * 6 / bins, code >= shift


DX2 = torch.tensor([1e-2, 1e-4, 3e-6, 0.5, 1e-9], dtype=torch.float64)  # allowed mean squared error, by channel


def acgc(signed):
    x = elements() if signed else elements().abs()
    scale = 1 / (x.abs().amax(0) + 1e-6)
    fbits = torch.clamp(torch.trunc(-0.5 * torch.log2(DX2) - torch.log2(scale) - 1), 1, 15)
    code = torch.round(x * scale * 2 ** (fbits + 1))
    width = fbits + (2 if signed else 1)
    low, high = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if signed else (0 * width, 2**width - 1)
    code = torch.minimum(torch.maximum(code, low), high)
    return width, code


def put(name, kind, values):
    text = ", ".join(str(int(v)) for v in values.flatten())
    print(f"static const {kind} {name}[] = {{{text}}};")


print("/* Made by baselines.py: pixel by pixel, channel by channel. */")
for bits in 4, 8:
    code, _, mask = blpa(bits)
    put(f"blpa{bits}_codes", "int", code)
    put(f"blpa{bits}_mask", "int", mask)
for name, signed in ("signed", True), ("unsigned", False):
    width, code = acgc(signed)
    put(f"acgc_{name}_widths", "int", width)
    put(f"acgc_{name}_codes", "int", code)
