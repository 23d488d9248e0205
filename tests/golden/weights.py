#!/usr/bin/env python3
"""Takes weights from torchvision to division, and compares what both say of the same images.

Usage: weights.py PROGRAM [FOLDER] [--networks NAME...] [--trained], with FOLDER as `folder:FOLDER` takes it: train/ and
val/ with a folder a class. Without one, a few PNG images are made up.

For each network: torchvision's random weights, with running statistics of these images, perturbed, go into a file, in
one after the other of the forms that there are: safetensors, and both of torch.save; `division eval` and PyTorch test them on the images of val/, and on those of train/ if there is a FOLDER. With
--trained, `division train --init` trains them for an epoch as well, PyTorch loads what it saved, and both test that. Losses
must agree within 1e-5 of their size, and top-1 exactly. Needs torch and torchvision; tests/torchvision.sh calls it where
they are.
"""

import argparse
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

import torch
import torchvision
from PIL import Image
from torchvision import transforms

TYPES = {torch.float32: "F32", torch.int64: "I64"}
NAMES = ["resnet18", "resnet50", "wide_resnet50_2", "densenet121", "densenet161"]
SPLITS = {"train": "train", "test": "val"}  # of division, and their folders
TOLERANCE = 1e-5


# ---- safetensors ---------------------------------------------------------------------------------


def save(state, path):
    """Writes a state dict as safetensors."""
    header, blobs, offset = {}, [], 0
    for name, tensor in state.items():
        blob = tensor.contiguous().numpy().tobytes()
        header[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def save_zip(state, path):
    """Writes it as torch.save does, inside of a checkpoint of a DataParallel."""
    names = {"module." + name: tensor for name, tensor in state.items()}
    torch.save({"epoch": 1, "state_dict": names}, path)


def save_legacy(state, path):
    """Writes it as torch.save did before version 1.6, with the strides of channels last."""
    mixed = {name: tensor.contiguous(memory_format=torch.channels_last) if tensor.dim() == 4 else tensor
             for name, tensor in state.items()}
    torch.save(mixed, path, _use_new_zipfile_serialization=False)


FORMS = [save, save_zip, save_legacy]


def load(path, names):
    """The tensors of a safetensors file that a state dict has names for."""
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    header, state = json.loads(data[8:8 + size]), {}
    for name in names:
        if name.endswith("num_batches_tracked") and name not in header:
            continue
        begin, end = header[name]["data_offsets"]
        values = torch.frombuffer(bytearray(data[8 + size + begin:8 + size + end]), dtype=torch.float32)
        state[name] = values.reshape(header[name]["shape"])
    return state


# ---- images --------------------------------------------------------------------------------------


def paint(width, height, seed):
    """An image of waves, others in each channel."""
    draw = random.Random(seed)
    waves = [(draw.uniform(0.01, 0.2), draw.uniform(0.01, 0.2), draw.uniform(0, 6)) for _ in range(3)]
    pixels = bytes(int(127.5 + 127 * math.sin(a * x + b * y + c)) for y in range(height) for x in range(width)
                   for a, b, c in waves)
    return Image.frombytes("RGB", (width, height), pixels)


def make_images(folder):
    """Two classes of PNG images, smaller and far larger than what is shown of them."""
    for split in SPLITS.values():
        for label in range(2):
            place = os.path.join(folder, split, f"class{label}")
            os.makedirs(place)
            for i in range(4):
                size = 80 + 60 * (2 * i + label)
                paint(size, size * 3 // 4, f"{split}{label}{i}").save(os.path.join(place, f"{i}.png"))


def read_images(folder, split, side):
    """The images of a split as a test shows them, and their labels."""
    steps = [transforms.Resize(side * 8 // 7), transforms.CenterCrop(side), transforms.ToTensor(),
             transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]
    pairs = list(torchvision.datasets.ImageFolder(os.path.join(folder, SPLITS[split]), transforms.Compose(steps)))
    return torch.stack([image for image, _ in pairs]), torch.tensor([label for _, label in pairs])


# ---- networks ------------------------------------------------------------------------------------


def make_model(name, classes, images):
    """A network whose statistics are not those that it began with, nor those of the images: each is moved at random."""
    torch.manual_seed(1)
    model = getattr(torchvision.models, name)(num_classes=classes)
    norms = [module for module in model.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1  # the next batch's statistics are taken as they are
    with torch.no_grad():
        model.train()(images[:8])
        for norm in norms:
            norm.running_mean += 0.1 * norm.running_var.sqrt() * torch.randn_like(norm.running_mean)
            norm.running_var *= torch.exp(0.1 * torch.randn_like(norm.running_var))
            norm.weight += 0.1 * torch.randn_like(norm.weight)
            norm.bias += 0.1 * torch.randn_like(norm.bias)
            norm.momentum = 0.1
    return model


def test(model, images, labels):
    """Mean loss and top-1 by PyTorch, in double precision: rounding in f32 alone is up to 5e-6 of these losses."""
    loss = right = 0
    model.eval().double()
    with torch.no_grad():
        for image, label in zip(images.split(4), labels.split(4)):
            scores = model(image.double())
            loss += torch.nn.functional.cross_entropy(scores, label, reduction="sum").item()
            right += int((scores.argmax(1) == label).sum())
    return loss / len(labels), 100 * right / len(labels)


# ---- comparing -----------------------------------------------------------------------------------


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\n{done.stderr}")
    return done.stdout


def compare(what, model, program, path, folder, data, *options):
    fine = True
    for split, (images, labels) in data.items():
        loss, top1 = test(model, images, labels)
        ours = json.loads(run(program, "eval", path, "--data", f"folder:{folder}", "--split", split, "--batch", "4",
                              "--side", str(images.shape[2]), "--json", *options))
        off = abs(ours["loss"] - loss) / loss
        same = off < TOLERANCE and abs(ours["top1"] - top1) < 1e-3
        print(f"{what:34} {split:5} torchvision {loss:.7f} {top1:6.2f} %   division {ours['loss']:.7f} "
              f"{ours['top1']:6.2f} %   {off:.1e}   {'ok' if same else 'DIFFERENT'}", flush=True)
        fine &= same
    return fine


def train(name, model, program, path, folder, side, out):
    """Has division train the weights, and PyTorch load them."""
    run(program, "train", "--model", name, "--data", f"folder:{folder}", "--init", path, "--epochs", "1", "--batch", "8",
        "--lr", "0.01", "--precision", "f32", "--method", "division", "--side", str(side), "--out", out)
    trained = os.path.join(out, "last.safetensors")
    model.load_state_dict(load(trained, model.state_dict()), strict=False)
    return trained


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--networks", nargs="+", default=NAMES)
    parser.add_argument("--trained", action="store_true")
    given = parser.parse_args()
    fine = True
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or os.path.join(temporary, "images")
        if given.folder is None:
            make_images(folder)
        splits, side = (SPLITS, 224) if given.folder else (["test"], 96)
        data = {split: read_images(folder, split, side) for split in splits}
        classes = len(os.listdir(os.path.join(folder, "train")))
        for number, name in enumerate(given.networks):
            model = make_model(name, classes, data["test"][0])
            path = os.path.join(temporary, f"{name}.weights")
            FORMS[number % len(FORMS)](model.state_dict(), path)
            fine &= compare(f"{name}, torchvision's", model, given.program, path, folder, data, "--model", name)
            if given.trained:
                path = train(name, model, given.program, path, folder, side, os.path.join(temporary, name))
                fine &= compare(f"{name}, trained by division", model, given.program, path, folder, data)
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
