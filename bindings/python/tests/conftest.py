"""Tests of the bindings. Those of division.torch are skipped, with a word, where PyTorch is missing."""
import os
import pathlib
import sys

import pytest

TREE = pathlib.Path(__file__).resolve().parents[3]
if "DIVISION_INSTALLED" not in os.environ:  # scripts/python-tests --newest tests a wheel
    sys.path.insert(0, str(TREE / "bindings/python"))


@pytest.fixture
def tree():
    return TREE


@pytest.fixture
def program(tree):
    path = os.environ.get("DV_PROGRAM", str(tree / "build/release/division"))
    if not os.path.exists(path):
        pytest.skip("the program is not built")
    return path
