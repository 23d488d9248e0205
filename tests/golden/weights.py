#!/usr/bin/env python3
"""Takes weights from torchvision to division and back, and compares what both say of the same photographs.

Usage: weights.py PROGRAM FOLDER, with FOLDER as `folder:FOLDER` takes it: train/ and val/ with a folder a class.

For each network: torchvision's own weights, random but for the seed, go into a safetensors file; `division eval` and
PyTorch test them on FOLDER/val. Then `division train --init` trains them for an epoch, PyTorch loads what it saved,
and both test that. Losses must agree within 5e-3 (pixels differ by a level here and there, and random weights amplify
that) and top-1 exactly. Needs torch and torchvision; not run by the test suite, which needs neither.
"""

import json
import os
import struct
import subprocess
import sys
import tempfile

import torch
import torchvision
from torchvision import transforms

TYPES = {torch.float32: "F32", torch.int64: "I64"}
NAMES = ["resnet18", "resnet50", "wide_resnet50_2", "densenet121", "densenet161"]


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


def test(model, folder):
    """Loss and top-1 of PyTorch on FOLDER/val."""
    steps = [transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor(),
             transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]
    images = torchvision.datasets.ImageFolder(os.path.join(folder, "val"), transforms.Compose(steps))
    model.eval()
    loss = right = 0
    with torch.no_grad():
        for image, label in images:
            scores = model(image[None])
            loss += torch.nn.functional.cross_entropy(scores, torch.tensor([label])).item()
            right += int(scores.argmax()) == label
    return loss / len(images), 100 * right / len(images)


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\n{done.stderr}")
    return done.stdout


def compare(what, model, program, path, folder, *options):
    loss, top1 = test(model, folder)
    words = (program, "eval", path, "--data", f"folder:{folder}", "--batch", "4", "--json", *options)
    ours = json.loads(run(*words))
    same = abs(ours["loss"] - loss) < 5e-3 * max(1, loss) and abs(ours["top1"] - top1) < 1e-3
    print(f"{what:34} torchvision {loss:.5f} {top1:6.2f} %   division {ours['loss']:.5f} {ours['top1']:6.2f} %   "
          f"{'ok' if same else 'DIFFERENT'}")
    return same


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: weights.py PROGRAM FOLDER")
    program, folder = sys.argv[1:]
    classes = len(os.listdir(os.path.join(folder, "train")))
    fine = True
    with tempfile.TemporaryDirectory() as temporary:
        for name in NAMES:
            torch.manual_seed(1)
            model = getattr(torchvision.models, name)(num_classes=classes)
            path, out = os.path.join(temporary, f"{name}.safetensors"), os.path.join(temporary, name)
            save(model.state_dict(), path)
            fine &= compare(f"{name}, torchvision's", model, program, path, folder, "--model", name)
            run(program, "train", "--model", name, "--data", f"folder:{folder}", "--init", path, "--epochs", "1",
                "--batch", "8", "--lr", "0.01", "--precision", "f32", "--method", "division", "--out", out)
            trained = os.path.join(out, "last.safetensors")
            model.load_state_dict(load(trained, model.state_dict()), strict=False)
            fine &= compare(f"{name}, trained by division", model, program, trained, folder)
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
