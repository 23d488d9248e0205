#!/usr/bin/env python3
"""Trains ResNet-18 (its form for small images) for 20 steps with each optimizer, by PyTorch and by the program that
scripts/optimizers has built from bench/optimizers.c, and prints how far the weights are from each other: for each
parameter the norm of the difference by the norm, of all parameters the largest. Ends with 1 if it is more than 1e-5.
Beside it stands how far the weights have moved, and how far PyTorch's are from its own with channels last. AdamW and RMSprop
divide gradients by their size: where a gradient is next to nothing, its rounding decides where the weight goes, by
a whole step. Learning rates are small so that this is not what is compared.

    scripts/optimizers
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests" / "golden"))
import network  # noqa: E402

STEPS, MOST = 20, 1e-5
NAME = "resnet18_cifar"


def groups_of(model, rate, decay):
    """GROUPS: the first that names a parameter counts."""
    found = {"fc": [], "vectors": [], "rest": []}
    for name, p in model.named_parameters():
        found["fc" if name.startswith("fc.") else "vectors" if p.dim() == 1 else "rest"].append(p)
    return [{"params": found["fc"], "lr": 10 * rate, "weight_decay": decay},
            {"params": found["vectors"], "weight_decay": 0}, {"params": found["rest"], "weight_decay": decay}]


GROUPS = "fc:rate=10;vectors:decay=0"
optim = torch.optim
CASES = [  # the optimizer, groups, norm and rate of ours, and PyTorch's optimizer of a model with this rate
    ("sgd:momentum=0.9,nesterov=yes,decay=5e-4", "", 0, 1e-5,
     lambda m, rate: optim.SGD(m.parameters(), rate, momentum=0.9, nesterov=True, weight_decay=5e-4)),
    ("sgd:momentum=0.9,decay=5e-4", "", 0.5, 1e-5,
     lambda m, rate: optim.SGD(m.parameters(), rate, momentum=0.9, weight_decay=5e-4)),
    ("sgd:momentum=0.9,decay=0.1", GROUPS, 0, 1e-5,
     lambda m, rate: optim.SGD(groups_of(m, rate, 0.1), rate, momentum=0.9)),
    ("adamw", "", 0, 1e-6, lambda m, rate: optim.AdamW(m.parameters(), rate)),
    ("adamw:beta1=0.8,beta2=0.95,decay=0.1", GROUPS, 0.5, 1e-6,
     lambda m, rate: optim.AdamW(groups_of(m, rate, 0.1), rate, betas=(0.8, 0.95))),
    ("rmsprop", "", 0, 1e-7, lambda m, rate: optim.RMSprop(m.parameters(), rate)),
    ("rmsprop:momentum=0.9,decay=0.01", "", 0, 1e-7,
     lambda m, rate: optim.RMSprop(m.parameters(), rate, momentum=0.9, weight_decay=0.01)),
    ("rmsprop:alpha=0.9,eps=1e-3,momentum=0.5,centered=yes", "", 0, 1e-7,
     lambda m, rate: optim.RMSprop(m.parameters(), rate, alpha=0.9, eps=1e-3, momentum=0.5, centered=True)),
]


def write_weights(model, path):
    """As safetensors: the length of the header, the header, the arrays."""
    header, data = {}, b""
    for name, p in model.state_dict().items():
        if not name.endswith("num_batches_tracked"):
            array = p.numpy().astype(numpy.float32).tobytes()
            header[name] = {"dtype": "F32", "shape": list(p.shape), "data_offsets": [len(data), len(data) + len(array)]}
            data += array
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_weights(path):
    raw = path.read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    for name, entry in json.loads(raw[8:8 + length]).items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            yield name, numpy.frombuffer(raw[8 + length + first:8 + length + last], numpy.float32)


def batches():
    model, shape, first = network.new_model(NAME)
    return [network.batch_of(first + step, *shape) for step in range(STEPS)]


def write_batches(path):
    with path.open("wb") as file:
        for images, labels in batches():
            file.write(images.permute(0, 2, 3, 1).contiguous().numpy().tobytes())
            file.write(labels.numpy().astype(numpy.int32).tobytes())


def train(make, rate, clip, layout=torch.contiguous_format):
    model = network.new_model(NAME)[0].to(memory_format=layout)
    optimizer = make(model, rate)
    for images, labels in batches():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images.to(memory_format=layout)), labels).backward()
        if clip > 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return {name: p.detach().contiguous().numpy().ravel() for name, p in model.named_parameters()}


def distance(theirs, ours):
    """The largest of any parameter, and its name."""
    return max((float(numpy.linalg.norm(ours[n] - p) / numpy.linalg.norm(p)), n) for n, p in theirs.items())


def first_weights():
    return {name: p.detach().numpy().ravel() for name, p in network.new_model(NAME)[0].named_parameters()}


def main(program):
    wrong = 0
    folder = pathlib.Path(tempfile.mkdtemp())
    write_weights(network.new_model(NAME)[0], folder / "weights")
    write_batches(folder / "batches")
    print(f"{'optimizer':54} {'groups':28} {'clip':>4} {'rate':>5} {'moved':>8} {'rounding':>8} {'distance':>8}  of")
    for text, groups, clip, rate, make in CASES:
        theirs = train(make, rate, clip)
        subprocess.run([program, folder / "weights", folder / "batches", text, groups, str(clip), str(rate),
                        folder / "out"], check=True)
        moved = distance(theirs, first_weights())[0]
        rounding = distance(theirs, train(make, rate, clip, torch.channels_last))[0]
        far, name = distance(theirs, dict(read_weights(folder / "out")))
        print(f"{text:54} {groups:28} {clip:4} {rate:5.0e} {moved:8.1e} {rounding:8.1e} {far:8.1e}  {name}", flush=True)
        wrong += far > MOST
    print(f"{len(CASES)} optimizers, {STEPS} steps, PyTorch {torch.__version__}: {wrong} more than {MOST} apart")
    return wrong > 0


torch.set_num_threads(2)
sys.exit(main(sys.argv[1]))
