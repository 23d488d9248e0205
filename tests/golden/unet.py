#!/usr/bin/python3
"""Writes unet.inc: loss and gradients of a small U-Net whose logits are maps, with pixels that have no label, by PyTorch
on the CPU in f64. Weights, images and labels come from the integer hash of network.py, which the test implements too.

    /usr/bin/python3 tests/golden/unet.py > tests/golden/unet.inc

Of every parameter: the norm of its gradient, and four elements of it. The batch is one of 200 that keeps its distance
from zero in front of every ReLU, where rounding would count: see network.py."""
import torch
from torch import nn

from network import name_seed, uniform

IMAGES, SIDE, CLASSES = 2, 12, 3


class Twice(nn.Module):
    def __init__(self, before, channels, up=None):
        super().__init__()
        if up:
            self.up1 = nn.ConvTranspose2d(up, channels, 2, 2)
        self.conv1 = nn.Conv2d(before, channels, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(x)))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1 = Twice(3, 8)
        self.down2 = Twice(8, 16)
        self.up1 = Twice(16, 8, up=16)
        self.classify = nn.Conv2d(8, CLASSES, 1)

    def forward(self, x):
        whole = self.down1(x)
        half = self.down2(nn.functional.max_pool2d(whole, 2))
        joined = torch.cat([whole, self.up1.up1(half)], 1)
        return self.classify(self.up1(joined))


def fill(model):
    for name, p in model.named_parameters():
        u = torch.from_numpy(uniform(name_seed(name), p.numel())).float().double() - 0.5
        p.data = (u + 1 if ".bn" in name and name.endswith("weight") else u).reshape(p.shape)


def batch_of(number):
    pixels = torch.from_numpy(uniform(1000003 * number, IMAGES * SIDE * SIDE * 3)).float().double() * 2 - 1
    draws = torch.from_numpy(uniform(77777 + number, IMAGES * SIDE * SIDE))
    labels = (draws * (CLASSES + 1)).floor().long() - 1  # -1: none
    return pixels.reshape(IMAGES, SIDE, SIDE, 3).permute(0, 3, 1, 2).contiguous(), labels.reshape(IMAGES, SIDE, SIDE)


def margin(model, number):
    margins = []
    plain, torch.relu = torch.relu, lambda x: margins.append((x.abs().min() / x.square().mean().sqrt()).item()) or plain(x)
    with torch.no_grad():
        model(batch_of(number)[0])
    torch.relu = plain
    return min(margins)


model = UNet().double()
fill(model)
number = max(range(1, 201), key=lambda n: margin(model, n))
images, labels = batch_of(number)
loss = nn.functional.cross_entropy(model(images), labels, ignore_index=-1, label_smoothing=0.1)
loss.backward()
print("/* Made by tests/golden/unet.py with PyTorch. */\n/* clang-format off */")
print(f"enum {{ BATCH_NUMBER = {number}, COUNTED = {int((labels >= 0).sum())} }};")
print(f"static const double golden_loss = {loss.item()!r};")
print("static const golden_gradient gradients[] = {")
for name, p in model.named_parameters():
    flat = p.grad.reshape(-1)
    places = [(13 + i * 1007) % flat.numel() for i in range(4)]
    print(f'    {{"{name}", {flat.norm().item()!r}, {{{", ".join(map(str, places))}}}, '
          f'{{{", ".join(repr(flat[i].item()) for i in places)}}}}},')
print("};")
