#!/usr/bin/python3
"""Writes tests/golden/torch/*: small files of every form that torch.save has, for tests/test_torch.c.

    /usr/bin/python3 tests/golden/torch_files.py

Element i of every tensor, counted row by row, is i / 4 - 1, which all types hold exactly."""
import collections
import pathlib

import torch
from torch import nn

FOLDER = pathlib.Path(__file__).parent / "torch"


def ramp(*shape, dtype=torch.float32):
    count = torch.Size(shape).numel()
    return (torch.arange(count, dtype=torch.float64) / 4 - 1).reshape(shape).to(dtype)


def of_all_types():
    """Types, views of a shared storage, strides of several kinds."""
    shared = torch.arange(12, dtype=torch.float32) / 4 - 2.0
    state = collections.OrderedDict()
    state["conv.weight"] = nn.Parameter(ramp(2, 3, 2, 2))
    state["conv.channels_last"] = ramp(2, 3, 2, 2).contiguous(memory_format=torch.channels_last)
    state["transposed"] = ramp(3, 4).t().contiguous().t()
    state["double"] = ramp(5, dtype=torch.float64)
    state["half"] = ramp(5, dtype=torch.float16)
    state["brain"] = ramp(5, dtype=torch.bfloat16)
    state["norm.num_batches_tracked"] = torch.tensor(7)
    state["view"] = shared[4:]  # behind four elements that belong to nobody
    state["view.again"] = shared[4:].reshape(2, 4)[:, :1].reshape(2)[:1]
    state["scalar"] = torch.tensor(-1.0)
    state["empty"] = torch.zeros(0, 5)
    return state


def wrapped():
    """A checkpoint of a training program: the weights of a DataParallel, those of an optimizer, and more."""
    net = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    with torch.no_grad():
        net.weight.copy_(ramp(1, 2))
        net.bias.copy_(ramp(1))
    names = collections.OrderedDict(("module." + name, value) for name, value in net.state_dict().items())
    return {"epoch": 3, "arch": "tiny", "best_acc1": torch.tensor(71.5), "state_dict": names,
            "optimizer": optimizer.state_dict(), "lr": 0.1, "large": 1 << 80}


def old_dense():
    """Names as torchvision's DenseNets had them until 2017."""
    layer = "features.denseblock1.denselayer2."
    return {layer + name: ramp(2) for name in ("norm.1.weight", "conv.2.weight", "norm.2.running_mean")}


class Scripted(nn.Module):
    def forward(self, x):
        return x + 1


def main():
    FOLDER.mkdir(exist_ok=True)
    for name, legacy, saved, protocol in [
        ("zip.pth", False, of_all_types(), 2),
        ("legacy.pth", True, of_all_types(), 2),
        ("zip_protocol4.pth", False, of_all_types(), 4),
        ("legacy_protocol4.pth", True, old_dense(), 4),
        ("wrapped_zip.pth", False, wrapped(), 2),
        ("wrapped_legacy.pth", True, wrapped(), 2),
        ("old_dense.pth", True, old_dense(), 2),
        ("expanded.pth", False, {"a": torch.ones(1).expand(1000)}, 2),
        ("module_zip.pth", False, nn.Linear(2, 1), 2),
        ("module_legacy.pth", True, nn.Linear(2, 1), 2),
        ("tensor.pth", False, ramp(3), 2),
        ("complex.pth", False, {"a": torch.zeros(1, dtype=torch.complex64)}, 2),
    ]:
        torch.save(saved, FOLDER / name, pickle_protocol=protocol, _use_new_zipfile_serialization=not legacy)
    torch.jit.script(Scripted()).save(str(FOLDER / "script.pt"))


if __name__ == "__main__":
    main()
