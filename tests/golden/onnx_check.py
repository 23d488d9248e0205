"""Runs what `division export` writes by ONNX Runtime, and compares with `division predict`.

Usage: onnx_check.py PROGRAM FOLDER [MODEL...]

Trains each network for a step in FOLDER, on made-up images, exports it with and without --fold, and predicts the same image
by both. Logits differ by less than TOLERANCE of the largest, probabilities by less than TOLERANCE; batches of any size give
the same. Files are checked by onnx where that is installed. Where torch and torchvision are installed, torchvision's networks
load the exported weights by load_state_dict(strict=True) and say the same too. Needs numpy; what is not installed is left out.
"""
import json
import os
import subprocess
import struct
import sys
import zlib

import numpy

SIDE, CLASSES, TOLERANCE = 32, 10, 1e-5


def run(program, *arguments):
    done = subprocess.run([program, *arguments], stdout=subprocess.PIPE, check=True, text=True)
    return done.stdout


def write_png(path, pixels):
    """[side, side, 3] bytes as a PNG without filters."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 2, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def normalised(pixels, text):
    mean, deviation = ([float(number) for number in part.split("+")] for part in text.split("/"))
    return ((pixels / 255.0 - mean) / deviation).astype(numpy.float32).transpose(2, 0, 1)[None]


def softmax(logits):
    powers = numpy.exp(logits.astype(numpy.float64) - logits.max())
    return powers / powers.sum()


def predict(program, weights, image):
    """Probabilities in the order of labels."""
    top = json.loads(run(program, "predict", weights, image, "--json", "--top", str(CLASSES)))["top"]
    return numpy.array([row["probability"] for row in sorted(top, key=lambda row: row["label"])])


def check_metadata(session, path):
    notes = session.get_modelmeta().custom_metadata_map
    assert notes["side"] == notes["resize"] == str(SIDE) and len(json.loads(notes["class_names"])) == CLASSES, notes
    try:
        import onnx
    except ImportError:
        return notes
    onnx.checker.check_model(path, full_check=True)
    return notes


def load(path):
    """The arrays of a safetensors file."""
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    return {name: numpy.frombuffer(data[8 + size:], numpy.float32, numpy.prod(row["shape"], dtype=int),
                                   row["data_offsets"][0]).reshape(row["shape"]).copy()
            for name, row in header.items() if name != "__metadata__"}


def compare_onnx(program, folder, model, weights, pixels, ours):
    try:
        import onnxruntime
    except ImportError:
        return True
    fine, plain = True, None
    for options in ([], ["--fold"]):
        path = os.path.join(folder, f"{model}.onnx")
        run(program, "export", weights, path, *options)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        images = normalised(pixels, check_metadata(session, path)["normalise"])
        logits = session.run(["logits"], {"images": images})[0]
        three = session.run(["logits"], {"images": numpy.concatenate([images] * 3)})[0]
        plain = logits if plain is None else plain
        off = abs(softmax(logits[0]) - ours).max()
        folded = abs(logits - plain).max() / abs(plain).max()
        same = off < TOLERANCE and folded < TOLERANCE and numpy.allclose(three, logits, rtol=1e-4, atol=1e-5)
        print(f"{model:24} {' '.join(options):7} {len(session.get_modelmeta().custom_metadata_map)} notes   "
              f"off {off:.1e}   folded {folded:.1e}   {'ok' if same else 'DIFFERENT'}", flush=True)
        fine &= same
    return fine


def compare_torch(program, folder, model, weights, pixels, ours):
    try:
        import torch
        import torchvision
        build = getattr(torchvision.models, model)
    except (ImportError, AttributeError):
        return True
    path = os.path.join(folder, f"{model}.safetensors")
    run(program, "export", weights, path)
    network = build(num_classes=CLASSES)
    network.load_state_dict({name: torch.from_numpy(array) for name, array in load(path).items()}, strict=True)
    text = "0.5+0.5+0.5/0.19607843137254902+0.19607843137254902+0.19607843137254902"
    with torch.no_grad():
        logits = network.eval()(torch.from_numpy(normalised(pixels, text))).numpy()[0]
    off = abs(softmax(logits) - ours).max()
    print(f"{model:24} strict  torchvision   off {off:.1e}   {'ok' if off < TOLERANCE else 'DIFFERENT'}", flush=True)
    return bool(off < TOLERANCE)


def main():
    program, folder, *models = sys.argv[1:]
    pixels = numpy.random.default_rng(1).integers(0, 256, (SIDE, SIDE, 3), dtype=numpy.uint8)
    image, fine = os.path.join(folder, "image.png"), True
    write_png(image, pixels)
    for model in models or ["resnet20", "resnet18", "densenet121"]:
        out = os.path.join(folder, "run-" + model)
        run(program, "train", "--model", model, "--data", f"synthetic:side={SIDE},train=16,test=4", "--batch", "8",
            "--steps", "2", "--epochs", "1", "--lr", "0.001", "--quiet", "--out", out)
        ours = predict(program, out, image)
        fine &= compare_onnx(program, folder, model, out, pixels, ours)
        fine &= compare_torch(program, folder, model, out, pixels, ours)
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
