#!/usr/bin/python3
"""Writes layers.inc: what PyTorch's pooling, batch norm, leaky ReLU and cross-entropy, of images and of maps, make of numbers that a formula gives.

    /usr/bin/python3 tests/golden/layers.py > tests/golden/layers.inc

Tensors are made channels last, element i of the flat array from a formula, and results go out as one number: the sum
of element i times weight(i). Inputs are small integers, so that windows hold many equal elements."""
import itertools

import torch
from torch import nn

CHANNELS, IMAGES = 3, 2


def values(count, seed):
    i = torch.arange(count, dtype=torch.int64)
    return (((i + seed) * 2654435761 % 2**32) // 2**24 % 8 - 3).double()


def weights(count):
    i = torch.arange(count, dtype=torch.int64)
    return (i * 7919 % 31 - 15).double()


def last(tensor):
    """Flat, channels last."""
    return tensor.movedim(1, -1).reshape(-1)


def made(sides, seed):
    shape = [IMAGES, *sides, CHANNELS]
    flat = values(torch.Size(shape).numel(), seed)
    return flat.reshape(shape).movedim(-1, 1).contiguous().requires_grad_()


def number(tensor):
    flat = last(tensor.detach())
    return repr(float((flat * weights(flat.numel())).sum()))


def backward(x, y):
    y.backward(values(y.numel(), 77).reshape([IMAGES, *y.shape[2:], y.shape[1]]).movedim(-1, 1))
    return number(x.grad)


def pooling(sides, kernel, stride, padding, ceil, count_padding, maximum):
    rank = len(sides)
    x = made(sides, 5)
    if maximum:
        layer = [nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d][rank - 1](kernel, stride, padding, ceil_mode=ceil)
    else:
        layer = [nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d][rank - 1](kernel, stride, padding, ceil_mode=ceil,
                                                                     count_include_pad=count_padding)
    y = layer(x)
    shape = lambda s: "{" + ", ".join(str(v) for v in s) + "}"
    flag = lambda b: "true" if b else "false"
    print(f"    {{{flag(maximum)}, {rank}, {shape(sides)}, {kernel}, {stride}, {padding}, {flag(ceil)}, "
          f"{flag(count_padding)}, {shape(y.shape[2:])}, {number(y)}, {backward(x, y)}}},")


def leaky_relu(sides, slope):
    x = made(sides, 9)
    y = nn.functional.leaky_relu(x, slope)
    print(f"    {{{{{sides[0]}, {sides[1]}}}, {slope}f, {number(y)}, {backward(x, y)}}},")


def batch_norm(sides, momentum, epsilon):
    x = made(sides, 9)
    layer = nn.BatchNorm2d(CHANNELS, epsilon, momentum).double()
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([0.5, -1.5, 2.0]))
        layer.bias.copy_(torch.tensor([0.25, 1.0, -0.5]))
    y = torch.relu(layer(x))
    slope = backward(x, y)
    numbers = [number(y), slope] + [repr(float(v)) for v in (*layer.weight.grad, *layer.bias.grad, *layer.running_mean,
                                                              *layer.running_var)]
    print(f"    {{{{{sides[0]}, {sides[1]}}}, {momentum}f, {epsilon}f, {numbers[0]}, {numbers[1]}, "
          f"{{{', '.join(numbers[2:])}}}}},")


def loss(classes, smoothing):
    z = values(IMAGES * classes, 3).reshape(IMAGES, classes).requires_grad_()
    labels = torch.tensor([1, classes - 1])
    total = nn.functional.cross_entropy(z, labels, label_smoothing=smoothing, reduction="mean")
    total.backward()
    flat = z.grad.reshape(-1)
    print(f"    {{{classes}, {smoothing}f, {repr(float(total.detach()) * IMAGES)}, "
          f"{repr(float((flat * weights(flat.numel())).sum()))}}},")


def map_loss(sides, classes, smoothing, without):
    """Every `without`-th pixel has no label."""
    rows = IMAGES * sides[0] * sides[1]
    z = values(rows * classes, 3).reshape(IMAGES, *sides, classes).movedim(-1, 1).contiguous().requires_grad_()
    i = torch.arange(rows)
    labels = torch.where(i % without == 0, torch.tensor(-1), i * 5 % classes).reshape(IMAGES, *sides)
    total = nn.functional.cross_entropy(z, labels, label_smoothing=smoothing, ignore_index=-1)
    total.backward()
    print(f"    {{{{{sides[0]}, {sides[1]}}}, {classes}, {smoothing}f, {without}, {int((labels >= 0).sum())}, "
          f"{repr(float(total.detach()))}, {number(z.grad)}}},")


print("/* Made by tests/golden/layers.py with PyTorch. */\n/* clang-format off */")
print("static const golden_pooling poolings[] = {")
shapes = [(9,), (6, 7), (5, 4, 6)]
for sides, kernel, stride, ceil in itertools.product(shapes, (1, 2, 3, 4), (1, 2, 3), (False, True)):
    for padding in range(kernel // 2 + 1):
        if kernel > min(sides) + 2 * padding:
            continue
        pooling(sides, kernel, stride, padding, ceil, True, True)
        for count_padding in (False, True):
            pooling(sides, kernel, stride, padding, ceil, count_padding, False)
print("};")
print("static const golden_batch_norm batch_norms[] = {")
for sides in ((1, 1), (3, 5), (9, 12)):
    for momentum in (0.1, 0.5):
        batch_norm(sides, momentum, 1e-5 if momentum == 0.1 else 1e-3)
print("};")
print("static const golden_leaky_relu leaky_relus[] = {")
for sides in ((1, 1), (3, 5), (17, 31)):
    for slope in (0.01, 0.25):
        leaky_relu(sides, slope)
print("};")
print("static const golden_loss losses[] = {")
for classes in (2, 10, 100):
    for smoothing in (0.0, 0.1):
        loss(classes, smoothing)
print("};")
print("static const golden_map_loss map_losses[] = {")
for sides in ((1, 1), (3, 5), (17, 12)):
    for classes in (2, 7):
        for smoothing in (0.0, 0.1):
            map_loss(sides, classes, smoothing, 3)
print("};")
