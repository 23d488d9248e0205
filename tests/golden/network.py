#!/usr/bin/env python3
"""Makes the golden files that tests/test_network.c holds the engine to: losses of 20 steps of SGD and the
gradients of the first, computed by PyTorch on the CPU in f32. Weights, images and labels come from an integer
hash that the test implements too, so that the files stay small.

    python3 tests/golden/network.py resnet18_cifar > tests/golden/resnet18_cifar.txt
    python3 tests/golden/network.py resnet50_64 > tests/golden/resnet50_64.txt
    python3 tests/golden/network.py resnet18_cifar_frozen > tests/golden/resnet18_cifar_frozen.txt
    python3 tests/golden/network.py resnet50_64_frozen > tests/golden/resnet50_64_frozen.txt

What is frozen has requires_grad_(False), and its batch norms eval(); running statistics then begin as numbers of the hash.

A value that rounding moves across zero in front of a ReLU changes the gradients of its channel by a thousandth of
their norm: PyTorch's own gradients in f32 and f64 then differ by that much. The first batch is therefore one that
keeps away from zero: `network.py margins NAME` prints, for each of 100 batches, the smallest value in front of any
ReLU, in units of its layer's root mean square.
"""
import sys

import numpy
import torch
from torch import nn


def uniform(seed, count):
    """`count` numbers in [0, 1) that depend on `seed` and their position only."""
    with numpy.errstate(over="ignore"):
        x = numpy.arange(count, dtype=numpy.uint32) + numpy.uint32(seed)
        x = (x ^ (x >> numpy.uint32(16))) * numpy.uint32(0x7FEB352D)
        x = (x ^ (x >> numpy.uint32(15))) * numpy.uint32(0x846CA68B)
        x = x ^ (x >> numpy.uint32(16))
    return x.astype(numpy.float64) * 2.0**-32


def name_seed(name):
    """FNV-1a of a parameter's name."""
    h = 2166136261
    for byte in name.encode():
        h = ((h ^ byte) * 16777619) & 0xFFFFFFFF
    return h


class Block(nn.Module):
    """A residual block with torchvision's names."""

    def __init__(self, channels, width, stride, bottleneck):
        super().__init__()
        out = width * 4 if bottleneck else width
        self.conv1 = nn.Conv2d(channels, width, 1 if bottleneck else 3, 1 if bottleneck else stride,
                               0 if bottleneck else 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride if bottleneck else 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.bottleneck = bottleneck
        if bottleneck:
            self.conv3 = nn.Conv2d(width, out, 1, bias=False)
            self.bn3 = nn.BatchNorm2d(out)
        self.downsample = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        if self.bottleneck:
            y = self.bn3(self.conv3(torch.relu(y)))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self, blocks, bottleneck, small_images, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False) if small_images else nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.pool = nn.Identity() if small_images else nn.MaxPool2d(3, 2, 1)
        channels = 64
        for stage, count in enumerate(blocks):
            layers = []
            for i in range(count):
                layers.append(Block(channels, 64 << stage, 2 if stage and i == 0 else 1, bottleneck))
                channels = (64 << stage) * (4 if bottleneck else 1)
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = self.pool(torch.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


CASES = {  # blocks, bottleneck, small images, side, batch, classes, number of the first batch
    "resnet18_cifar": ([2, 2, 2, 2], False, True, 32, 4, 10, 49),
    "resnet50_64": ([3, 4, 6, 3], True, False, 64, 4, 10, 25),
    "resnet18_cifar_frozen": ([2, 2, 2, 2], False, True, 32, 4, 10, 35),
    "resnet50_64_frozen": ([3, 4, 6, 3], True, False, 64, 4, 10, 29),
}

FROZEN = {  # the first has a block in the middle, and one whose norms alone are frozen
    "resnet18_cifar_frozen": ["conv1", "bn1", "layer1", "layer3.0", "layer4.0.bn1", "layer4.0.bn2"],
    "resnet50_64_frozen": ["conv1", "bn1", "layer1", "layer2", "layer3"],
}


CALM = ("bn3.weight", "layer4.0.downsample.1.weight")


def fill(model):
    """Parameters: convolutions of variance 2 / fan out, norms near 1 and 0 (CALM ones, where a block is summed,
    near 0.1, so that training is calm and rounding does not grow), the linear layer in +-0.1/sqrt(fan in)."""
    for name, p in model.named_parameters():
        u = uniform(name_seed(name), p.numel()) - 0.5
        if p.dim() == 4:
            u *= 2 * (6.0 / (p.shape[0] * p.shape[2] * p.shape[3])) ** 0.5
        elif p.dim() == 2 or name == "fc.bias":
            u *= 0.2 / model.fc.in_features**0.5
        else:
            u = u * 0.2 + (0.1 if name.endswith(CALM) else 1.0 if name.endswith("weight") else 0.0)
        p.data = torch.from_numpy(u.astype(numpy.float32).reshape(p.shape))


def freeze(model, names):
    """Freezes the modules of these names. All running statistics are numbers near 0 and near 1."""
    for name, buffer in model.named_buffers():
        u = uniform(name_seed(name), buffer.numel())
        if name.endswith("running_mean"):
            buffer.copy_(torch.from_numpy(0.2 * u - 0.1))
        elif name.endswith("running_var"):
            buffer.copy_(torch.from_numpy(0.5 + u))
    for name in names:
        model.get_submodule(name).requires_grad_(False).eval()


def batch_of(step, side, batch, classes):
    """Images [batch, 3, side, side], made channels last, and labels."""
    pixels = uniform(1000003 * (step + 1), batch * side * side * 3).reshape(batch, side, side, 3) * 2 - 1
    labels = (uniform(77777 + step * 1000, batch) * classes).astype(numpy.int64)
    images = torch.from_numpy(pixels.astype(numpy.float32)).permute(0, 3, 1, 2).contiguous()
    return images, torch.from_numpy(labels)


def new_model(name):
    blocks, bottleneck, small, side, batch, classes, first = CASES[name]
    model = ResNet(blocks, bottleneck, small, classes)
    fill(model)
    freeze(model, FROZEN.get(name, []))
    return model, (side, batch, classes), first


def print_margins(name):
    """For each of 100 batches, how close it comes to the kink of a ReLU."""
    model, shape, _ = new_model(name)
    margins = []
    plain = torch.relu

    def watched(x):
        margins.append((x.abs().min() / x.square().mean().sqrt()).item())
        return plain(x)

    torch.relu = watched
    for number in range(100):
        margins.clear()
        with torch.no_grad():
            model(batch_of(number, *shape)[0])
        print(f"batch {number} margin {min(margins):.3g}")


def print_golden(name):
    model, shape, first = new_model(name)
    trained = {parameter: p for parameter, p in model.named_parameters() if p.requires_grad}
    optimizer = torch.optim.SGD(trained.values(), lr=0.01, weight_decay=5e-4)
    print(f"# {name}: side {shape[0]}, batch {shape[1]}, classes {shape[2]}, SGD lr 0.01 weight decay 5e-4")
    print(f"# PyTorch {torch.__version__}")
    if name in FROZEN:
        print("# frozen:", ", ".join(FROZEN[name]))
    for step in range(20):
        images, labels = batch_of(first + step, *shape)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        print(f"loss {first + step} {loss.item():.9g}")
        if step == 0:
            for parameter, p in trained.items():
                g = p.grad.double().flatten()
                entries = [(i * 7919 + 13) % g.numel() for i in range(4)]
                print(f"gradient {parameter} {g.norm().item():.9g}", *[f"{i}:{g[i].item():.9g}" for i in entries])
        optimizer.step()


torch.set_num_threads(2)
if __name__ == "__main__":
    if sys.argv[1] == "margins":
        print_margins(sys.argv[2])
    else:
        print_golden(sys.argv[1])
