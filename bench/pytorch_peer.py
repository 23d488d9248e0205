#!/usr/bin/python3
"""Trains the same networks in PyTorch on the CPU, and prints what `division bench` prints of ours.

The networks have the shapes and names of src/models/resnet.c, and of torchvision, which is not needed. Values are
channels last, the optimizer is SGD with momentum and weight decay, all threads are used. bf16 is PyTorch's autocast.

    pytorch_peer.py --bench memory --model resnet50 --batch 32 --precision f32
    pytorch_peer.py --bench throughput --model resnet50 --batch 32 --precision bf16
    pytorch_peer.py --bench worker ...     as `division bench worker`: steps to make on standard input, a line each
"""

import argparse
import json
import os
import statistics
import sys
import time

try:
    import torch
    from torch import nn
except ImportError:
    sys.exit(f"pytorch_peer.py: {sys.executable} has no PyTorch: install python3-torch, or call it with a Python that has it")

EXAMPLES = 8  # images, over and over, as the worker of ours does
MEMORY_STEPS = 3
ROUND_SECONDS = 1
EXPANSION = 4  # of a bottleneck


# ---- networks ------------------------------------------------------------------------------------


def convolution(inputs, outputs, kernel, stride):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)


class Block(nn.Module):
    """Two 3x3 convolutions, or 1x1, 3x3, 1x1, beside a shortcut."""

    def __init__(self, channels, width, inner, stride, bottleneck):
        super().__init__()
        outputs = width * EXPANSION if bottleneck else width
        shapes = [(channels, width, 3, stride), (width, width, 3, 1)]
        if bottleneck:
            shapes = [(channels, inner, 1, 1), (inner, inner, 3, stride), (inner, outputs, 1, 1)]
        self.count = len(shapes)
        for number, shape in enumerate(shapes, 1):
            setattr(self, f"conv{number}", convolution(*shape))
            setattr(self, f"bn{number}", nn.BatchNorm2d(shape[1]))
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or channels != outputs:
            self.downsample = nn.Sequential(convolution(channels, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        same = x if self.downsample is None else self.downsample(x)
        for number in range(1, self.count + 1):
            x = getattr(self, f"bn{number}")(getattr(self, f"conv{number}")(x))
            if number < self.count:
                x = self.relu(x)
        x += same  # as torchvision has it: a sum of its own would be another map to write
        return self.relu(x)


class ResNet(nn.Module):
    def __init__(self, blocks, width, inner, bottleneck, small_images, classes):
        super().__init__()
        kernel, stride = (3, 1) if small_images else (7, 2)
        self.conv1 = convolution(3, width, kernel, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.Identity() if small_images else nn.MaxPool2d(3, 2, 1)
        channels = width
        self.stages = len(blocks)
        for stage, count in enumerate(blocks):
            layer = []
            for i in range(count):
                outer = width << stage
                stride = 2 if stage > 0 and i == 0 else 1
                layer.append(Block(channels, outer, outer * inner // 64, stride, bottleneck))
                channels = outer * EXPANSION if bottleneck else outer
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layer))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for stage in range(self.stages):
            x = getattr(self, f"layer{stage + 1}")(x)
        return self.fc(torch.flatten(self.avgpool(x), 1))


# name: (blocks, width, inner, bottleneck, small images), as in src/models/models.c
MODELS = {
    "resnet18": ((2, 2, 2, 2), 64, 64, False, False),
    "resnet34": ((3, 4, 6, 3), 64, 64, False, False),
    "resnet50": ((3, 4, 6, 3), 64, 64, True, False),
    "resnet101": ((3, 4, 23, 3), 64, 64, True, False),
    "resnet152": ((3, 8, 36, 3), 64, 64, True, False),
    "wide_resnet50_2": ((3, 4, 6, 3), 64, 128, True, False),
    "resnet18_cifar": ((2, 2, 2, 2), 64, 64, False, True),
    "resnet20": ((3, 3, 3), 16, 64, False, True),
    "resnet32": ((5, 5, 5), 16, 64, False, True),
    "resnet44": ((7, 7, 7), 16, 64, False, True),
    "resnet56": ((9, 9, 9), 16, 64, False, True),
    "resnet110": ((18, 18, 18), 16, 64, False, True),
}


# ---- training ------------------------------------------------------------------------------------


def peak_bytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


class Trainer:
    """A network and its batch. A step fills the batch, as ours does, and goes forward and backward and updates."""

    def __init__(self, options):
        small = MODELS[options.model][-1]
        side = options.side or (32 if small else 224)
        classes = options.classes or (10 if small else 1000)
        torch.set_num_threads(options.threads or len(os.sched_getaffinity(0)))
        torch.manual_seed(1)
        self.half = options.precision == "bf16"
        self.network = ResNet(*MODELS[options.model], classes).to(memory_format=torch.channels_last).train()
        self.examples = torch.rand(EXAMPLES, 3, side, side).contiguous(memory_format=torch.channels_last) * 2 - 1
        self.numbers = torch.arange(options.batch) % EXAMPLES
        self.labels = self.numbers % classes
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
        self.loss = nn.CrossEntropyLoss()

    def step(self):
        images = self.examples[self.numbers].contiguous(memory_format=torch.channels_last)
        self.optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.half):
            logits = self.network(images)
        loss = self.loss(logits.float(), self.labels)
        loss.backward()
        self.optimizer.step()

    def train(self, steps):
        """Seconds that the steps take."""
        start = time.monotonic()
        for _ in range(steps):
            self.step()
        return time.monotonic() - start

    def activation_bytes(self):
        """What one step keeps from forward to backward: storages that autograd saves, parameters left out."""
        kept = {}
        own = {p.data_ptr() for p in self.network.parameters()}

        def note(tensor):
            storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
            if storage.data_ptr() not in own:
                kept[storage.data_ptr()] = storage.nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            self.step()
        return sum(kept.values())


def make_trainer(options):
    """A trainer that has made its first step; what PyTorch can't do here, it says in one line."""
    try:
        trainer = Trainer(options)
        trainer.train(1)
        return trainer
    except (RuntimeError, AttributeError, TypeError) as failure:
        reason = str(failure).splitlines()[0]
        sys.exit(f"pytorch_peer.py: PyTorch {torch.__version__} can't train {options.model} in {options.precision} here: {reason}")


# ---- benchmarks ----------------------------------------------------------------------------------


def head(options):
    return {"model": options.model, "batch": options.batch, "method": "pytorch", "precision": options.precision}


def bench_memory(options):
    trainer = make_trainer(options)
    kept = trainer.activation_bytes()
    trainer.train(MEMORY_STEPS - 2)
    bytes_of = {"activation_bytes": kept, "planned_bytes": None, "peak_bytes": peak_bytes()}
    print(json.dumps({**head(options), **bytes_of, "activation_ratio": None, "total_ratio": None, "measured": True}))


def bench_throughput(options):
    trainer = make_trainer(options)
    steps = options.steps or max(1, int(ROUND_SECONDS / trainer.train(1)))
    speeds = [options.batch * steps / trainer.train(steps) for _ in range(options.rounds)]
    print(json.dumps({**head(options), "images_per_second": statistics.median(speeds), "relative": 1}))


def bench_worker(options):
    trainer = make_trainer(options)
    for line in sys.stdin:
        seconds = trainer.train(int(line))
        print(json.dumps({"seconds": seconds, "peak_bytes": peak_bytes()}), flush=True)


def at_least(low):
    def read(text):
        number = int(text)
        if number < low:
            raise argparse.ArgumentTypeError(f"{text}: must be at least {low}")
        return number

    return read


def main():
    benches = {"memory": bench_memory, "throughput": bench_throughput, "worker": bench_worker}
    parser = argparse.ArgumentParser(description="The benchmarks of whole networks, in PyTorch on the CPU.")
    parser.add_argument("--bench", choices=benches, required=True, help="what to measure")
    parser.add_argument("--model", choices=MODELS, default="resnet50", metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--batch", type=at_least(1), default=32, help="images per step")
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32", help="of values")
    parser.add_argument("--classes", type=at_least(0), default=0, help="0 for the model's own")
    parser.add_argument("--side", type=at_least(0), default=0, help="of the images, 0 for the model's own")
    parser.add_argument("--threads", type=at_least(0), default=0, help="0 for all")
    parser.add_argument("--rounds", type=at_least(1), default=5, help="over which the median is taken")
    parser.add_argument("--steps", type=at_least(0), default=0, help="per round, 0 for about a second of them")
    options = parser.parse_args()
    benches[options.bench](options)


if __name__ == "__main__":
    main()
