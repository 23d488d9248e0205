"""torchvision's networks as they are, a compiled model, and two processes that train together."""
import os
import socket
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from networks import distance, gradient, images, small
from torch import nn

import division.torch as division

# Noise with 8 bits, of the gradient's length; what has no maps stays exact.
MODELS = {"resnet18": 0.03, "densenet121": 0.03, "mobilenet_v2": 0.04, "efficientnet_b0": 0.06, "convnext_tiny": 0.03, "vit_b_16": 0.001, "swin_t": 0.01}


@pytest.mark.parametrize("name", MODELS)
def test_torchvisions_networks(name):
    models = pytest.importorskip("torchvision", reason="torchvision is not installed").models
    if not hasattr(models, name):
        pytest.skip(f"this torchvision has no {name}")
    if name in ("vit_b_16", "swin_t", "convnext_tiny") and int(torch.__version__.split(".")[0]) < 2:
        pytest.skip("PyTorch 1.13 is slow with it, or hangs in its backward pass, without division too")
    torch.manual_seed(1)
    model = getattr(models, name)(**({"image_size": 64} if name == "vit_b_16" else {}))
    for layer in model.modules():
        if isinstance(layer, nn.Dropout) or type(layer).__name__ == "StochasticDepth":
            layer.p = 0.0
    x = images(2, 3, 64)
    loss = lambda: nn.functional.cross_entropy(model(x), torch.arange(len(x)))
    exact = gradient(model, loss)
    assert torch.equal(gradient(model, loss, division.compress(model, "exact")), exact)
    assert distance(gradient(model, loss, division.compress(model, "division:bits=8")), exact) < MODELS[name]


def test_a_compiled_model():
    if not hasattr(torch, "compile") or "DIVISION_INSTALLED" not in os.environ and "DIVISION_COMPILE" not in os.environ:
        pytest.skip("compiling takes long: scripts/python-tests --newest does it")
    torch.manual_seed(1)
    model, x = small(), images()
    compiled = torch.compile(model)
    loss = lambda: nn.functional.cross_entropy(compiled(x), torch.arange(len(x)) % 10)
    exact = gradient(model, loss)
    assert distance(gradient(model, loss, division.compress(model, "division:bits=8")), exact) < 1e-4
    assert "the peak of memory does not fall" in str(division.report(compiled, x))


WORKER = """
import sys, torch
sys.path[:0] = {paths!r}
from networks import images, small
from torch import nn
import torch.distributed as dist
import division.torch as division
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="tcp://127.0.0.1:{port}", rank=rank, world_size=2)
torch.manual_seed(1)
torch.set_num_threads(1)
x = images(16)
for method in ("exact", "division:bits=8"):
    model = nn.parallel.DistributedDataParallel(small())
    torch.manual_seed(2)
    with division.compress(model, method):
        loss = nn.functional.cross_entropy(model(x[8 * rank : 8 * rank + 8]), torch.arange(8))
    loss.backward()
    mine = torch.cat([p.grad.flatten() for p in model.parameters()])
    other = mine.clone()
    dist.broadcast(other, 0)
    assert torch.equal(mine, other) and mine.abs().sum() > 0
print("done")
"""


def test_two_processes():
    if not torch.distributed.is_available():
        pytest.skip("this PyTorch has no torch.distributed")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    code = WORKER.format(paths=[os.path.dirname(__file__), *[p for p in sys.path if p]], port=port)
    workers = [subprocess.Popen([sys.executable, "-c", code, str(rank)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in range(2)]
    for worker in workers:
        output, messages = worker.communicate(timeout=600)
        assert worker.returncode == 0 and "done" in output, messages
