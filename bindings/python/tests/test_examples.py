"""The examples of docs/pytorch.md run, in a smaller form: sizes stand in one line of each."""
import pathlib
import re

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch

PAGE = (pathlib.Path(__file__).resolve().parents[3] / "docs/pytorch.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"^### (.+?)$.*?```python\n(.*?)```", PAGE, re.S | re.M))


def test_there_are_four():
    assert len(EXAMPLES) == 4


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name, capsys):
    code = EXAMPLES[name]
    if "torchvision" in code:
        pytest.importorskip("torchvision", reason="torchvision is not installed")
    torch.manual_seed(1)
    small, count = re.subn(r"^batch, side, steps(.*) = .*$", lambda m: f"batch, side, steps{m[1]} = 4, 64, 2" + ", 2" * m[1].count(","), code, flags=re.M)
    assert count == 1
    exec(compile(small, name, "exec"), {"__name__": "__main__"})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and all(0 < float(line.split()[1]) < 50 for line in lines)
