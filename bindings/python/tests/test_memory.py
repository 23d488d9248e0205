"""Where packed bytes and decoded maps are, and what becomes of the heap's holes."""
import gc

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from networks import images, small
from torch import nn

import division.torch as division
from division.torch import heap
from division.torch.kept import Mask
from division.torch.memory import Chunks, Lent, mapped_bytes

SHAPE, STRIDE = (4, 16, 128, 128), (16 * 128 * 128, 128 * 128, 128, 1)


def test_chunks_go_with_their_last_tensor():
    before, chunks = mapped_bytes(), Chunks()
    taken = [chunks.take(5 << 20) for _ in range(7)]  # three in a mapping of 16 MiB
    assert mapped_bytes() - before == 3 * 16 << 20
    assert all(t.data_ptr() % 64 == 0 and t.numel() == 5 << 20 for t in taken)
    for number, tensor in enumerate(taken):
        tensor.fill_(number)
    assert all((t == number).all() for number, t in enumerate(taken))
    del taken[:2], tensor
    assert mapped_bytes() - before == 3 * 16 << 20
    del taken[:1]
    assert mapped_bytes() - before == 2 * 16 << 20
    del taken, chunks
    assert mapped_bytes() == before


def test_what_is_larger_than_a_chunk_has_a_mapping():
    before = mapped_bytes()
    tensor = Chunks().take(40 << 20)
    assert tensor.numel() == 40 << 20 and mapped_bytes() - before == 40 << 20


def test_decoded_maps_take_turns():
    before, lent = mapped_bytes(), Lent()
    one = lent.take(SHAPE, STRIDE, torch.float32)
    address, view = one.data_ptr(), one[1:]
    del one
    other = lent.take(SHAPE, STRIDE, torch.float32)
    assert other.data_ptr() != address  # a view still has the first
    del view
    assert lent.take(SHAPE, STRIDE, torch.bfloat16).data_ptr() == address
    assert mapped_bytes() - before == 2 * other.numel() * 4
    del other, lent
    assert mapped_bytes() == before


def test_a_larger_map_replaces_a_smaller_mapping():
    before, lent = mapped_bytes(), Lent()
    for images_ in (1, 2, 4, 2, 1):
        made = lent.take((images_,) + SHAPE[1:], STRIDE, torch.float32)
        del made
    assert mapped_bytes() - before == 4 * STRIDE[0] * 4


def test_small_tensors_come_from_the_heap():
    before = mapped_bytes()
    made = Lent().take((2, 3, 8, 8), (192, 64, 8, 1), torch.float32)
    assert made.shape == (2, 3, 8, 8) and mapped_bytes() == before


@pytest.mark.parametrize("method", ["division", "division:recompute=norms"])
def test_a_step_leaves_no_mapping(method):
    model, before = small(), mapped_bytes()
    context = division.compress(model, method)
    for _ in range(2):
        with context:
            loss = model(images(64)).pow(2).sum()
        assert mapped_bytes() > before
        loss.backward()
        del loss
        gc.collect()
        assert mapped_bytes() == before


def test_forward_unpacks_nothing(monkeypatch):
    """What a ReLU saved can be asked for while another layer saves the same map: to see whether it is there."""
    unpacked = []
    monkeypatch.setattr(Mask, "unpack", lambda self: unpacked.append(self) or self.decode("bits", (0, 0, 0)))
    with division.compress(nn.Identity()):
        x = torch.randn(4, 16, 24, 24, requires_grad=True)
        nn.functional.conv2d(nn.functional.relu(x), torch.randn(16, 16, 1, 1, requires_grad=True))
    assert not unpacked


def test_holes_are_given_back(monkeypatch):
    watched = heap.Heap()
    if watched._library is None:
        pytest.skip("this C library tells nothing of its heap")
    monkeypatch.setattr(heap, "_SLACK_BYTES", 16 << 20)
    watched.tend()
    pieces = [torch.ones(25_000) for _ in range(1000)]  # 100 MB, below what glibc maps
    watched.tend()
    trims, full = watched.trims, watched._resident()
    del pieces[1::2]
    watched.tend()
    assert watched.trims == trims  # all that is resident was in use
    watched._most -= 40 << 20
    watched.tend()
    assert watched.trims == trims + 1 and watched._resident() < full - (32 << 20)


def test_large_maps_come_from_the_heap():
    watched = heap.Heap()
    if watched._library is None:
        pytest.skip("this C library tells nothing of its heap")
    watched.tend()
    begin = watched._pages._begin
    if begin is None:
        pytest.skip("this process has no heap that grows by sbrk")
    for _ in range(2):
        made = torch.ones(20_000_000)  # 80 MB: glibc would map it
        watched.tend()
        assert begin <= made.data_ptr() < watched._library.sbrk(0)


def test_trimming_can_be_left_out(monkeypatch):
    monkeypatch.setenv("DIVISION_TRIM", "0")
    watched = heap.Heap()
    watched.tend()
    assert watched.trims == 0
