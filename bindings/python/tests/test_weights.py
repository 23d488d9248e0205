"""Weights and networks travel both ways."""
import subprocess

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch

import division.torch as division
from division.torch.weights import notes


def test_weights_come_back(tmp_path):
    model = division.network("resnet20", 7)
    division.save(model, tmp_path / "w.safetensors", model="resnet20", classes=7, side=32)
    other = division.network("resnet20", 7)
    division.load(tmp_path / "w.safetensors", other)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name])
    assert notes(tmp_path / "w.safetensors") == {"format": "pt", "model": "resnet20", "classes": "7", "side": "32"}


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float16, torch.int64], ids=str)
def test_types_come_back(tmp_path, kind):
    state = {"a": torch.arange(24).reshape(2, 3, 4).to(kind), "empty": torch.empty(0, dtype=kind)}
    division.save(state, tmp_path / "w")
    again = division.load(tmp_path / "w")
    assert all(torch.equal(again[name], state[name]) for name in state)


def test_a_checkpoint_of_the_program_is_loaded(tree):
    model = division.network("resnet20", 10)
    state = division.load(tree / "tests/fixtures/run-bf92902/last.safetensors", model)
    assert not any(name.startswith("optimizer.") for name in state)
    assert torch.equal(model.layer1[0].conv1.weight, state["layer1.0.conv1.weight"])


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_networks_have_the_programs_parameters(program, monkeypatch):
    monkeypatch.setattr(torch.nn.init, "kaiming_uniform_", lambda tensor, **_: tensor)  # it takes most of the time
    lines = run(program, "models").splitlines()[1:]
    assert len(lines) >= 19
    for line in lines:
        name, _, _, parameters = line.split()[:4]
        assert sum(p.numel() for p in division.network(name).parameters()) == int(parameters), name


@pytest.mark.parametrize("name", ["resnet20", "resnet29_preact", "densenet121_cifar"])
def test_the_program_evaluates_our_weights(program, tmp_path, name):
    """Every name and shape is known to it, and none is missing."""
    path = str(tmp_path / "w.safetensors")
    division.save(division.network(name, 10), path, model=name, classes=10, side=32)
    assert "loss" in run(program, "eval", path, "--data", "synthetic:side=32,test=20", "--batch", "10")


def test_what_is_no_file_of_weights_is_told(tmp_path):
    cases = {"short": b"12", "long": b"\xff" * 16, "no JSON": (4).to_bytes(8, "little") + b"abcd",
             "a list": (2).to_bytes(8, "little") + b"[]"}
    for name, data in cases.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(division.DivisionError, match=str(tmp_path / name)):
            division.load(tmp_path / name)
    division.save(division.network("resnet20", 10), tmp_path / "w")
    with pytest.raises(division.DivisionError, match="missing: layer1.3.conv1.weight"):
        division.load(tmp_path / "w", division.network("resnet32", 10))
    whole = (tmp_path / "w").read_bytes()
    (tmp_path / "cut").write_bytes(whole[:-8])
    with pytest.raises(division.DivisionError, match="the file ends before it"):
        division.load(tmp_path / "cut")
    with pytest.raises(division.DivisionError, match='unknown network "resnet21": there are resnet18'):
        division.network("resnet21")
