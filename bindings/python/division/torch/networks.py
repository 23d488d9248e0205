"""The program's networks as PyTorch modules: the same layers, the same names of parameters.

    model = division.network("resnet20", classes=10)
    division.load("runs/first/best.safetensors", model)

src/models has them in C, and what is published about each; the tables below are those of src/models/models.c.
"""
from collections import OrderedDict
from typing import Callable, Dict, List, Optional

import torch
from torch import nn

from .._library import DivisionError


def _convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, bias: bool = False) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=bias)


class _Block(nn.Module):
    """Two 3 x 3 convolutions, or 1 x 1, 3 x 3, 1 x 1, added to their input."""

    def __init__(self, channels: int, width: int, stride: int, inner: int):
        super().__init__()
        out = width * 4 if inner else width
        middle = width * inner // 64 if inner else width
        shape = [(channels, middle, 1, 1), (middle, middle, 3, stride), (middle, out, 1, 1)] if inner else [
            (channels, width, 3, stride), (width, width, 3, 1)]
        for number, one in enumerate(shape, 1):
            setattr(self, f"conv{number}", _convolution(*one))
            setattr(self, f"bn{number}", nn.BatchNorm2d(one[1]))
        self.count = len(shape)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: Optional[nn.Module] = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(_convolution(channels, out, 1, stride), nn.BatchNorm2d(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x
        for number in range(1, self.count + 1):
            y = getattr(self, f"bn{number}")(getattr(self, f"conv{number}")(y))
            if number < self.count:
                y = self.relu(y)
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class _PreactBlock(nn.Module):
    """Batch norm and ReLU before each of 1 x 1, 3 x 3, 1 x 1; `raw` as DIVISION was published."""

    def __init__(self, channels: int, width: int, stride: int, project: bool, raw: bool):
        super().__init__()
        self.bn1, self.conv1 = nn.BatchNorm2d(channels), _convolution(channels, width, 1, stride if raw else 1)
        self.bn2, self.conv2 = nn.BatchNorm2d(width), _convolution(width, width, 3, 1 if raw else stride)
        self.bn3, self.conv3 = nn.BatchNorm2d(width), _convolution(width, 4 * width, 1, bias=raw)
        self.relu, self.raw, self.project = nn.ReLU(inplace=True), raw, None
        if project and raw:
            self.shortcut = _convolution(channels, 4 * width, 1, stride)
        elif project:
            self.downsample = nn.Sequential(_convolution(channels, 4 * width, 1, stride))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        active = self.relu(self.bn1(x))
        y = self.conv1(active)
        y = self.conv2(self.relu(self.bn2(y)))
        y = self.conv3(self.relu(self.bn3(y)))
        if hasattr(self, "shortcut"):
            x = self.shortcut(x)
        elif hasattr(self, "downsample"):
            x = self.downsample(active)
        return y + x


class _ResNet(nn.Module):
    def __init__(self, blocks: List[int], width: int, inner: int, small: bool, preact: Optional[str], classes: int):
        super().__init__()
        self.preact = preact
        self.conv1 = _convolution(3, width, 3 if small else 7, 1 if small else 2)
        if preact is None:
            self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool: nn.Module = nn.Identity() if small else nn.MaxPool2d(3, 2, 1)
        self.stages = len(blocks)
        channels = width
        for stage, count in enumerate(blocks):
            layers: List[nn.Module] = []
            for i in range(count):
                stride = 2 if stage > 0 and i == 0 else 1
                if preact is None:
                    layers.append(_Block(channels, width << stage, stride, inner))
                else:
                    layers.append(_PreactBlock(channels, width << stage, stride, i == 0, preact == "raw"))
                channels = (width << stage) * (4 if inner else 1)
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
        if preact is not None:
            self.bn = nn.BatchNorm2d(channels)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv1(x)
        if self.preact is None:
            x = self.maxpool(self.relu(self.bn1(x)))
        for stage in range(self.stages):
            x = getattr(self, f"layer{stage + 1}")(x)
        if self.preact is not None:
            x = self.relu(self.bn(x))
        return self.fc(self.avgpool(x).flatten(1))


class _DenseLayer(nn.Module):
    def __init__(self, channels: int, growth: int):
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(channels), _convolution(channels, 4 * growth, 1)
        self.norm2, self.conv2 = nn.BatchNorm2d(4 * growth), _convolution(4 * growth, growth, 3)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv1(self.relu(self.norm1(x)))
        return torch.cat([x, self.conv2(self.relu(self.norm2(y)))], 1)


class _DenseNet(nn.Module):
    def __init__(self, blocks: List[int], width: int, growth: int, small: bool, classes: int):
        super().__init__()
        parts: "OrderedDict[str, nn.Module]" = OrderedDict(conv0=_convolution(3, width, 3 if small else 7, 1 if small else 2))
        if not small:
            parts.update(norm0=nn.BatchNorm2d(width), relu0=nn.ReLU(inplace=True), pool0=nn.MaxPool2d(3, 2, 1))
        channels = width
        for stage, count in enumerate(blocks, 1):
            layers = [(f"denselayer{i + 1}", _DenseLayer(channels + i * growth, growth)) for i in range(count)]
            parts[f"denseblock{stage}"] = nn.Sequential(OrderedDict(layers))
            channels += count * growth
            if stage < len(blocks):
                parts[f"transition{stage}"] = nn.Sequential(OrderedDict(
                    norm=nn.BatchNorm2d(channels), relu=nn.ReLU(inplace=True),
                    conv=_convolution(channels, channels // 2, 1), pool=nn.AvgPool2d(2, 2)))
                channels //= 2
        parts.update(norm5=nn.BatchNorm2d(channels), relu5=nn.ReLU(inplace=True))
        self.features, self.classifier = nn.Sequential(parts), nn.Linear(channels, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(x).mean((2, 3)))


def _resnet(blocks, width=64, inner=0, small=False, preact=None):
    return lambda classes: _ResNet(blocks, width, inner, small, preact, classes)


def _densenet(blocks, width, growth, small=False):
    return lambda classes: _DenseNet(blocks, width, growth, small, classes)


_NETWORKS: Dict[str, Callable[[int], nn.Module]] = {
    "resnet18": _resnet([2, 2, 2, 2]),
    "resnet34": _resnet([3, 4, 6, 3]),
    "resnet50": _resnet([3, 4, 6, 3], inner=64),
    "resnet101": _resnet([3, 4, 23, 3], inner=64),
    "resnet152": _resnet([3, 8, 36, 3], inner=64),
    "wide_resnet50_2": _resnet([3, 4, 6, 3], inner=128),
    "resnet18_cifar": _resnet([2, 2, 2, 2], small=True),
    **{f"resnet{6 * n + 2}": _resnet([n, n, n], 16, small=True) for n in (3, 5, 7, 9, 18)},
    "resnet164_cifar": _resnet([18, 18, 18], 16, 64, True, "same"),
    "resnet164_published": _resnet([18, 18, 18], 16, 64, True, "raw"),
    "resnet29_preact": _resnet([3, 3, 3], 16, 64, True, "raw"),
    "densenet121": _densenet([6, 12, 24, 16], 64, 32),
    "densenet161": _densenet([6, 12, 36, 24], 96, 48),
    "densenet121_cifar": _densenet([6, 12, 24, 16], 64, 32, True),
    "densenet161_cifar": _densenet([6, 12, 36, 24], 96, 48, True),
}


def network(name: str, classes: Optional[int] = None) -> nn.Module:
    """A network of the program by its name; `division models` lists them. Weights are PyTorch's own."""
    if name not in _NETWORKS:
        raise DivisionError(f'unknown network "{name}": there are {", ".join(_NETWORKS)}')
    small = name not in ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "wide_resnet50_2", "densenet121", "densenet161")
    return _NETWORKS[name](classes if classes is not None else 10 if small else 1000)
