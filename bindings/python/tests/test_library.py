"""Finding the library, and what is said where it cannot be found."""
import os
import subprocess
import sys

import division
import pytest
from division import _library


def test_a_version_can_be_asked_for():
    assert division.version().count(".") == 2


def run(code, **environment):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)


def test_a_wrong_name_is_told():
    done = run("import division; division.version()", DIVISION_LIBRARY="/nowhere/libdivision.so")
    assert done.returncode == 1
    assert "/nowhere/libdivision.so" in done.stderr and "DIVISION_LIBRARY" in done.stderr


def test_another_library_is_told():
    done = run("import division; division.version()", DIVISION_LIBRARY="libm.so.6")
    assert done.returncode == 1 and "could not load DIVISION's library: libm.so.6" in done.stderr


def test_wrong_texts_are_the_librarys_own_errors():
    with pytest.raises(division.DivisionError, match='unknown codec "divisio"'):
        _library.packed_bytes("divisio", "f32 nchw 1x2x4")
    with pytest.raises(division.DivisionError, match="must be 1, 2, 4 or 8"):
        _library.packed_bytes("division:bits=3", "f32 nchw 1x2x4")
    with pytest.raises(division.DivisionError, match="as in"):
        _library.packed_bytes("division", "f32 1x2x4")


def test_one_openmp_runtime_has_threads():
    """Beside PyTorch's runtime no second one starts threads of its own."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    code = """
import os, torch, division.numpy
torch.set_num_threads(3)
x = torch.randn(64, 64, 32, 32)
for _ in range(3): x = x.relu() + 1
before = len(os.listdir('/proc/self/task'))
for _ in range(3): division.numpy.encode(x.numpy())
assert len(os.listdir('/proc/self/task')) <= before
"""
    done = run(code, OMP_NUM_THREADS="3")
    assert done.returncode == 0, done.stderr
