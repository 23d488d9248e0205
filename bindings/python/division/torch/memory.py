"""Memory of our own, beside the heap of the C library.

Packed bytes live from forward to backward, decoded maps for a moment. On one heap with PyTorch's maps the first lie
between the second, and most of what is freed is in nobody's reach. So both come from mappings of their own, in large
pages where the system has them. Autograd owns the tensors; no call gives anything back:

    Chunks    packed bytes, one behind the other: a mapping goes when the last tensor in it goes
    Lent      decoded maps: a mapping serves one tensor at a time, and the next one when that is gone
"""
import ctypes
import mmap
import threading
import weakref
from typing import Dict, List, Optional, Sequence

import torch

_CHUNK_BYTES = 16 << 20
_LARGE_PAGE = 2 << 20
_LEAST_LENT = 1 << 20  # what is smaller comes from the heap

_live: Dict[int, int] = {}  # bytes of mappings


def _round_up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _mapped(size: int) -> mmap.mmap:
    made = mmap.mmap(-1, _round_up(size, _LARGE_PAGE), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        made.madvise(mmap.MADV_HUGEPAGE)
    except (AttributeError, OSError):  # not Linux, or a kernel without them
        pass
    _live[id(made)] = len(made)
    weakref.finalize(made, _live.pop, id(made)).atexit = False
    return made


def mapped_bytes() -> int:
    """Bytes of all mappings that live."""
    return sum(list(_live.values()))


class Chunks:
    """Bytes one behind the other. The tensors of a mapping own it together."""

    def __init__(self):
        self._mapping: Optional[mmap.mmap] = None
        self._at = 0

    def take(self, size: int) -> torch.Tensor:
        """A vector of bytes, aligned as the library asks for."""
        if self._mapping is None or len(self._mapping) - self._at < size:
            self._mapping, self._at = _mapped(max(size, _CHUNK_BYTES)), 0
        made = torch.frombuffer(self._mapping, dtype=torch.uint8, count=size, offset=self._at)
        self._at += _round_up(size, 64)
        return made


class Lent:
    """Mappings that are lent to one tensor at a time."""

    def __init__(self):
        self._free: List[mmap.mmap] = []
        self._lock = threading.Lock()

    def _find(self, size: int) -> Optional[mmap.mmap]:
        """The smallest free mapping that suffices. Where none does, the largest one goes: what is made now replaces it."""
        with self._lock:
            enough = [m for m in self._free if len(m) >= size]
            chosen = min(enough, key=len) if enough else max(self._free, key=len, default=None)
            if chosen is not None:
                self._free.remove(chosen)
            return chosen if enough else None

    def take(self, shape: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """A tensor without gaps, whose elements are whatever the memory holds."""
        size = torch.Size(shape).numel() * torch.empty((), dtype=dtype).element_size()
        if size < _LEAST_LENT:
            return torch.empty_strided(shape, stride, dtype=dtype)
        mapping = self._find(size) or _mapped(size)
        array = (ctypes.c_char * size).from_buffer(mapping)  # the tensor's storage owns it
        weakref.finalize(array, self._free.append, mapping).atexit = False
        return torch.frombuffer(array, dtype=dtype).as_strided(shape, stride)


class Memory:
    """Of one forward pass: what it keeps, and what is decoded of it. It goes with the last tensor that it kept."""

    def __init__(self):
        self.packed, self.decoded = Chunks(), Lent()
