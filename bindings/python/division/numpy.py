"""The codec for plain arrays.

    packed = division.numpy.encode(array, "division:block=8,bits=2")
    again = division.numpy.decode(packed)

An array is a map [images, channels, sides...] of f32 or f16, with up to three sides; with layout="nhwc" it is
[images, sides..., channels].
"""
from dataclasses import dataclass
from typing import Tuple

import numpy

from . import _library

_TYPES = {"float32": "f32", "float16": "f16"}


@dataclass(frozen=True)
class Packed:
    """A packed array, and all that unpacking needs."""

    codec: str
    map: str
    shape: Tuple[int, ...]
    dtype: str
    key: Tuple[int, int, int]
    data: numpy.ndarray

    @property
    def nbytes(self) -> int:
        return self.data.nbytes


def _aligned(size: int) -> numpy.ndarray:
    """`size` bytes, aligned as the library asks for."""
    raw = numpy.empty(size + _library.ALIGNMENT, numpy.uint8)
    start = -raw.ctypes.data % _library.ALIGNMENT
    return raw[start : start + size]


def _map_of(array: numpy.ndarray, layout: str) -> str:
    if array.dtype.name not in _TYPES:
        raise _library.DivisionError(f"arrays of {array.dtype} cannot be packed: float32 and float16 can")
    if layout not in ("nchw", "nhwc") or not 2 <= array.ndim <= 5:
        raise _library.DivisionError("an array is [images, channels, up to 3 sides]; layout is \"nchw\" or \"nhwc\"")
    sizes = array.shape if layout == "nchw" else (array.shape[0], array.shape[-1], *array.shape[1:-1])
    return f"{_TYPES[array.dtype.name]} {layout} " + "x".join(map(str, sizes))


def encode(
    array: numpy.ndarray, codec: str = "division:block=8,bits=2", *, layout: str = "nchw", seed: int = 0, step: int = 0, value: int = 0
) -> Packed:
    """Packs an array. The same numbers give the same bytes; NaN and infinity are a NotFiniteError."""
    array = numpy.ascontiguousarray(array)
    map_text = _map_of(array, layout)
    data = _aligned(_library.packed_bytes(codec, map_text))
    key = (seed, step, value)
    _library.encode(codec, map_text, key, array.ctypes.data, data.ctypes.data, data.nbytes)
    return Packed(codec, map_text, array.shape, array.dtype.name, key, data)


def decode(packed: Packed) -> numpy.ndarray:
    """The array again, with the noise of its codec."""
    array = numpy.empty(packed.shape, packed.dtype)
    data = packed.data
    if data.ctypes.data % _library.ALIGNMENT:  # it was copied in the meantime
        data = _aligned(packed.nbytes)
        data[:] = packed.data
    _library.decode(packed.codec, packed.map, packed.key, data.ctypes.data, data.nbytes, array.ctypes.data)
    return array
