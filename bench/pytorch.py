#!/usr/bin/env python3
"""Training in PyTorch with and without division.compress: bytes kept for backward, peak memory, speed.

    bench/pytorch.py [--model resnet50] [--batch 32] [--side 224] [--precision f32|bf16] [--rounds 3] [--methods LIST]
    bench/pytorch.py --noise [--draws 2] ...

Each method has a process of its own, and they take turns: a step of one, a step of the next. So what else the machine does
meets all of them alike, and none has the heap of another. Peaks are those of the same steps. Methods: plain (PyTorch's own), heap (plain, with the C library's heap
as division.compress sets it), checkpoint (torch.utils.checkpoint on each block), python (the codec written in PyTorch's operations), and every text that
division.compress takes.

--noise: the squared distance of a method's gradient to the exact one by the squared length of that, mean of the draws.
"""
import argparse
import contextlib
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bindings/python"))

import torch
import torchvision
from torch import nn
from torch.utils.checkpoint import checkpoint

import division.torch as division

DIVISION = "division:block=8,bits=2"
DEFAULT = ["plain", "heap", DIVISION, DIVISION + ",recompute=norms", "checkpoint", "python"]
# No mapping for each large tensor, and large pages.
HEAP = {"MALLOC_MMAP_MAX_": "0", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


# ---- methods ---------------------------------------------------------------------------------------------------------


class PythonCodec:
    """The codec in PyTorch's own operations, for maps [images, channels, height, width]: block averages in bf16, and
    codes of two bits, four of them a byte."""

    def __init__(self, x):
        self.shape, self.dtype, edge = x.shape, x.dtype, 8
        x = x.float()
        self.average = nn.functional.avg_pool2d(x, [min(edge, s) for s in x.shape[2:]], ceil_mode=True).bfloat16()
        rest = x - self._low()
        self.low = rest.amin((2, 3), keepdim=True)
        self.step = (rest.amax((2, 3), keepdim=True) - self.low).div_(3).clamp_(min=1e-30)
        codes = ((rest - self.low) / self.step + torch.rand_like(rest)).floor_().clamp_(0, 3).to(torch.uint8).flatten()
        codes = torch.cat([codes, codes.new_zeros(-codes.numel() % 4)])
        self.codes = codes[0::4] | codes[1::4] << 2 | codes[2::4] << 4 | codes[3::4] << 6

    def _low(self):
        return nn.functional.interpolate(self.average.float(), size=self.shape[2:], mode="nearest")

    def unpack(self):
        codes = torch.stack([self.codes >> s & 3 for s in (0, 2, 4, 6)], 1).flatten()[: self.shape.numel()]
        return (self._low() + self.low + self.step * codes.view(self.shape).float()).to(self.dtype)


def in_python(_model):
    pack = lambda t: PythonCodec(t) if t.dim() == 4 and t.is_floating_point() and t.grad_fn is not None else t.detach()
    return torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept.unpack() if isinstance(kept, PythonCodec) else kept)


def context_of(method, model):
    if method in ("plain", "heap", "checkpoint"):
        return contextlib.nullcontext()
    return in_python(model) if method == "python" else division.compress(model, method)


def forward_checkpointed(model, x):
    """A ResNet whose blocks are computed again in backward."""
    x = model.maxpool(model.relu(model.bn1(model.conv1(x))))
    for stage in (model.layer1, model.layer2, model.layer3, model.layer4):
        for block in stage:
            x = checkpoint(block, x, use_reentrant=False)
    return model.fc(model.avgpool(x).flatten(1))


# ---- a training ------------------------------------------------------------------------------------------------------


class Training:
    def __init__(self, options):
        torch.manual_seed(1)
        self.autocast = options.precision == "bf16"
        self.model = getattr(torchvision.models, options.model)().to(memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.01, 0.9)
        self.x = torch.randn(options.batch, 3, options.side, options.side).to(memory_format=torch.channels_last)
        self.y = torch.arange(options.batch) % 1000

    def step(self, method):
        self.optimizer.zero_grad()
        with context_of(method, self.model):
            with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
                output = forward_checkpointed(self.model, self.x) if method == "checkpoint" else self.model(self.x)
            loss = nn.functional.cross_entropy(output.float(), self.y)
        loss.backward()
        self.optimizer.step()

    def gradient(self, method, seed):
        self.model.zero_grad()
        context = division.compress(self.model, method, seed=seed) if method != "plain" else contextlib.nullcontext()
        with context:
            loss = nn.functional.cross_entropy(self.model(self.x), self.y)
        loss.backward()
        return torch.cat([parameter.grad.flatten() for parameter in self.model.parameters()])

    def kept(self, method):
        """Bytes that PyTorch keeps for backward, and that are kept instead."""
        def forward(model, x):
            with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
                return model(x)

        made = division.report(self.model, self.x, "exact" if method in ("plain", "heap", "checkpoint", "python") else method, forward=forward)
        return made.before, made.after


def worker(options):
    """The process of one method: a line of times for each line "step", and one of peaks for "end"."""
    training = Training(options)
    start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print("ready", flush=True)
    for line in sys.stdin:
        if line == "end\n":
            break
        wall, processor = time.monotonic(), time.process_time()
        training.step(options.only)
        print(json.dumps([time.monotonic() - wall, time.process_time() - processor]), flush=True)
    result = {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, "start": start * 1024}
    if options.only.startswith("division"):
        result["saved"], result["kept"] = training.kept(options.only)
    print(json.dumps(result), flush=True)


class Worker:
    def __init__(self, options, method):
        words = [sys.executable, __file__, "--only", method]
        for name in ("model", "batch", "side", "precision"):
            words += [f"--{name}", str(getattr(options, name))]
        self.method, self.times = method, []
        environment = os.environ | (HEAP if method == "heap" else {})
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def answer(self):
        return self.process.stdout.readline()

    def ask(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return json.loads(self.answer())


def measure(options):
    """Times of steps and memory, by method. The first step of each is not timed: it has memory to ask for."""
    workers = [Worker(options, method) for method in options.methods]
    for each in workers:
        each.answer()
    for number in range(options.rounds + 1):
        for each in workers:
            each.times.append(each.ask("step"))
            print(f"  {each.method}: {each.times[-1]}", file=sys.stderr, flush=True)
    return {w.method: w.times[1:] for w in workers}, {w.method: w.ask("end") for w in workers}


def noise(options):
    training = Training(options)
    print("| method | kept for backward | squared noise |\n| --- | --- | --- |")
    for method in options.methods:
        if method.startswith("division"):
            exact = training.gradient("plain", 0)
            draws = [training.gradient(method, seed) for seed in range(options.draws)]
            values = [float((draw - exact).pow(2).sum() / exact.pow(2).sum()) for draw in draws]
            print(f"| {method} | {training.kept(method)[1] / 1e6:.1f} MB | {statistics.mean(values):.4f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--rounds", type=int, default=3, help="steps that are timed; at least 1")
    parser.add_argument("--methods", nargs="+", default=DEFAULT)
    parser.add_argument("--noise", action="store_true", help="of gradients, instead of speed; in f32")
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rounds < 1 or not (options.only or options.noise or "plain" in options.methods):
        parser.error("--rounds is at least 1, and --methods has plain, with which the others are compared")
    if options.only:
        return worker(options)
    if options.noise:
        return noise(options)
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads, load {os.getloadavg()[0]:.1f}: "
          f"{options.model}, batch {options.batch}, side {options.side}, {options.precision}, channels last")
    times, peaks = measure(options)
    print("| method | kept for backward | fewer | peak | by plain | wall s | speed by plain | processor s | by plain |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    median = lambda method, i: statistics.median(t[i] for t in times[method])
    for method in options.methods:
        row, peak = [method], peaks[method]
        row += [f"{peak['kept'] / 1e6:.0f} MB of {peak['saved'] / 1e6:.0f}", f"{peak['saved'] / peak['kept']:.1f}"] if "kept" in peak else ["", ""]
        row += [f"{peak['peak'] / 1e6:.0f} MB", f"{peak['peak'] / peaks['plain']['peak']:.2f}"]
        ratios = [statistics.median(p[i] / t[i] for p, t in zip(times["plain"], times[method])) for i in (0, 1)]
        row += [f"{median(method, 0):.2f}", f"{ratios[0]:.2f}", f"{median(method, 1):.2f}", f"{ratios[1]:.2f}"]
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
