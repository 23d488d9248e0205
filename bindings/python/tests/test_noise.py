"""The noise of a gradient is the one that the program has: `division bench gradient`, with the same weights and images.

DIVISION_WEIGHTS and DIVISION_CIFAR10, a file of ResNet-20's weights and a folder of CIFAR-10, measure that of real ones.
"""
import json
import os
import subprocess

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
numpy = pytest.importorskip("numpy", reason="numpy is not installed")

import torch
from networks import gradient, images
from torch.nn import functional

import division.torch as division

FILES, EACH, BATCH, DRAWS = 5, 50, 125, 16  # two batches, which are the least that the program takes
MEAN, DEVIATION = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)


def records():
    """Images in CIFAR-10's form: a label and 3 x 32 x 32 bytes for each image."""
    if "DIVISION_CIFAR10" in os.environ:
        path = os.path.join(os.environ["DIVISION_CIFAR10"], "data_batch_1.bin")
        return numpy.fromfile(path, numpy.uint8, FILES * EACH * 3073).reshape(-1, 3073)
    torch.manual_seed(1)
    pixels = images(FILES * EACH, 3, 32).mul(50).add(128).clamp(0, 255).byte().flatten(1)
    return torch.cat([torch.randint(0, 10, (len(pixels), 1)).byte(), pixels], 1).numpy()


def write_data(folder, data):
    folder.mkdir()
    for i, part in enumerate(numpy.split(data, FILES)):
        part.tofile(folder / f"data_batch_{i + 1}.bin")
    data.tofile(folder / "test_batch.bin")
    (folder / "batches.meta.txt").write_text("\n".join(f"class{i}" for i in range(10)) + "\n")


def batch_of(data):
    x = torch.from_numpy(data[:, 1:].reshape(-1, 3, 32, 32).copy()).float().div(255)
    x = (x - torch.tensor(MEAN).view(1, 3, 1, 1)) / torch.tensor(DEVIATION).view(1, 3, 1, 1)
    return x.to(memory_format=torch.channels_last), torch.from_numpy(data[:, 0].astype(numpy.int64))


def noise_in_pytorch(model, data, method):
    """Root of the mean squared distance of gradients to the exact ones, of both halves of the images in some order."""
    total, order = 0.0, numpy.random.default_rng(1).permutation(len(data))
    for half in range(2):
        x, y = batch_of(data[order[half * BATCH : half * BATCH + BATCH]])
        loss = lambda: functional.cross_entropy(model(x), y)
        exact = gradient(model, loss)
        for seed in range(DRAWS // 2):
            total += float((gradient(model, loss, division.compress(model, method, seed=seed)) - exact).pow(2).sum())
    return (total / DRAWS) ** 0.5


def noise_in_program(program, folder, weights, method):
    normalise = "+".join(map(str, MEAN)) + "/" + "+".join(map(str, DEVIATION))
    words = [program, "bench", "gradient", "--model", "resnet20", "--data", f"cifar10:{folder}", "--init", weights, "--batch", BATCH,
             "--batches", 2, "--draws", DRAWS, "--normalise", normalise, "--tune", "off", "--methods", method, "--json"]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return next(row["method_noise"] for row in rows if row.get("method") == method and row["parameter"] is None)


@pytest.mark.parametrize("method", ["division", "division:dither=subtractive,recompute=norms"])
def test_the_noise_is_that_of_the_program(program, tmp_path, method):
    data = records()
    write_data(tmp_path / "data", data)
    torch.manual_seed(1)
    model = division.network("resnet20", 10)
    weights = os.environ.get("DIVISION_WEIGHTS")
    if weights:
        division.load(weights, model)
    else:
        weights = tmp_path / "weights.safetensors"
        division.save(model, weights, model="resnet20", classes=10, side=32)
    model = model.to(memory_format=torch.channels_last)
    ours, theirs = noise_in_pytorch(model, data, method), noise_in_program(program, tmp_path / "data", weights, method)
    print(f"{method}: {ours:.4f} in PyTorch, {theirs:.4f} in the program")
    assert abs(ours / theirs - 1) < 0.2
