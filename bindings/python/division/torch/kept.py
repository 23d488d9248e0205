"""The forms in which a tensor survives from forward to backward. Each has `nbytes`, and `unpack`, which makes the tensor.

    Exact        the tensor itself
    Codes        packed by the codec, and set to zero outside of a mask, if it has one
    Tokens       the same of [images, tokens, channels]
    Mask         one bit an element: where it is positive
    InRange      the same of where it lies between two bounds
    Bits         a bool tensor
    Winners      the indices of a max pooling
    ShapeOnly    nothing: its reader wants to know no more
"""
import itertools
from typing import Optional, Tuple

import torch

from .. import _library
from .memory import Memory
from .shapes import flat, map_text, memory_order, tokens_text

try:
    import numpy
except ImportError:  # bits and indices then stay as they are
    numpy = None

Key = Tuple[int, int, int]


class Kept:
    """What all forms have in common: the tensor's outside, and what it is called in a report."""

    __slots__ = ("shape", "stride", "dtype", "memory", "__weakref__")
    name = "kept"
    nbytes = 0

    def __init__(self, tensor: torch.Tensor, memory: Optional[Memory] = None):
        self.shape, self.stride, self.dtype, self.memory = tensor.shape, tensor.stride(), tensor.dtype, memory

    def empty(self) -> torch.Tensor:
        """Memory for the tensor."""
        if self.memory is not None:
            return self.memory.decoded.take(self.shape, self.stride, self.dtype)
        return torch.empty_strided(self.shape, self.stride, dtype=self.dtype)

    def unpack(self) -> torch.Tensor:
        raise NotImplementedError


class Exact(Kept):
    """The tensor itself. One that a layer made is cut from its graph: autograd must not hold what holds it."""

    __slots__ = ("tensor", "version")
    name = "exact"

    def __init__(self, tensor: torch.Tensor):
        super().__init__(tensor)
        self.tensor = tensor if tensor.grad_fn is None else tensor.detach()
        self.version = None if tensor.is_inference() else tensor._version

    @property
    def nbytes(self) -> int:
        return self.tensor.numel() * self.tensor.element_size()

    def unpack(self) -> torch.Tensor:
        if self.version is not None and self.tensor._version != self.version:
            raise RuntimeError(
                f"a tensor {tuple(self.shape)} that backward needs was changed in place: it had version {self.version} "
                f"and has {self.tensor._version}. Change a copy of it, or call backward before"
            )
        return self.tensor


class Packed(Kept):
    """Packed bytes: what Mask and Codes have in common."""

    __slots__ = ("map", "data")
    name = "packed"

    def __init__(self, tensor: torch.Tensor, memory: Memory, codec: str, key: Key):
        super().__init__(tensor, memory)
        self.map = self.map_of(tensor)
        self.data = memory.packed.take(_library.packed_bytes(codec, self.map))
        _library.encode(codec, self.map, key, tensor.data_ptr(), self.data.data_ptr(), self.data.numel())

    @staticmethod
    def map_of(tensor: torch.Tensor) -> str:
        return map_text(tensor)

    @property
    def nbytes(self) -> int:
        return self.data.numel()

    def decode(self, codec: str, key: Key) -> torch.Tensor:
        made = self.empty()
        _library.decode(codec, self.map, key, self.data.data_ptr(), self.data.numel(), made.data_ptr())
        return made


class Mask(Packed):
    """Where a tensor is positive: all that the backward pass of a ReLU reads. Unpacks to ones and zeros."""

    __slots__ = ()
    name = "mask"

    def __init__(self, tensor: torch.Tensor, memory: Memory):
        super().__init__(tensor, memory, "bits", (0, 0, 0))

    def unpack(self) -> torch.Tensor:
        return self.decode("bits", (0, 0, 0))

    def apply(self, tensor: torch.Tensor, destination: torch.Tensor) -> None:
        """`destination` becomes `tensor` inside of the mask, else zero. All of one shape, type and layout."""
        _library.apply_mask(
            "bits", self.map, self.data.data_ptr(), self.data.numel(), tensor.data_ptr(), destination.data_ptr()
        )


class InRange(Mask):
    """Where a tensor lies between two bounds: all that the backward pass of ReLU6 or Hardtanh reads."""

    __slots__ = ("low", "high")

    def __init__(self, tensor: torch.Tensor, memory: Memory, low: float, high: float):
        super().__init__(((tensor > low) & (tensor < high)).to(tensor.dtype), memory)
        self.low, self.high = low, high

    def unpack(self) -> torch.Tensor:
        return super().unpack().mul_((self.high - self.low) / 2).add_(self.low)


class Codes(Packed):
    """Packed by a codec."""

    __slots__ = ("codec", "key", "mask")

    def __init__(self, tensor: torch.Tensor, memory: Memory, codec: str, key: Key, mask: Optional[Mask] = None):
        super().__init__(tensor, memory, codec, key)
        self.codec, self.key, self.mask = codec, key, mask

    def unpack(self) -> torch.Tensor:
        made = self.decode(self.codec, self.key)
        if self.mask is not None:
            self.mask.apply(made, made)
        return made


class Tokens(Codes):
    """What a layer norm reads, [images, tokens..., channels]: blocks are neighbouring tokens, and each channel has its range.

    As [images, channels, sides], with a token in the place of a channel, it had three times the variance in swin_t.
    """

    __slots__ = ()
    name = "packed along tokens"

    def __init__(self, tensor: torch.Tensor, memory: Memory, codec: str, key: Key):
        super().__init__(tensor if tokens_text(tensor) is not None else tensor.contiguous(), memory, codec, key)

    @staticmethod
    def map_of(tensor: torch.Tensor) -> str:
        return tokens_text(tensor) or map_text(tensor)


class ShapeOnly(Kept):
    """For a reader that asks for the shape: its elements are whatever the memory holds."""

    __slots__ = ()
    name = "shape"

    def unpack(self) -> torch.Tensor:
        return self.empty()


class Bits(Kept):
    """A bool tensor without gaps, eight elements a byte."""

    __slots__ = ("data",)
    name = "bits"

    def __init__(self, tensor: torch.Tensor):
        super().__init__(tensor)
        self.data = numpy.packbits(flat(tensor).numpy())

    @property
    def nbytes(self) -> int:
        return self.data.nbytes

    def unpack(self) -> torch.Tensor:
        made = self.empty()
        flat(made).numpy()[:] = numpy.unpackbits(self.data, count=made.numel())
        return made


class Winners(Kept):
    """Indices of a max pooling, [images, channels, sides...]: those at one place differ little from image to image and
    from channel to channel. Kept are the smallest at each place, and how far the others are above it: 4 bits where there
    are at most 16 different distances, as with a window of 3 x 3, else 8.
    """

    __slots__ = ("base", "distances", "data", "count")
    name = "indices"

    def __init__(self, tensor: torch.Tensor, memory: Optional[Memory] = None):
        super().__init__(tensor, memory)
        self.base = tensor.amin(dim=(0, 1), keepdim=True)
        bytes_ = self._above(tensor)
        self.count = bytes_.numel()
        self.distances = torch.bincount(bytes_, minlength=256).nonzero().numpy().ravel()
        self.data = self._halved(bytes_.numpy()) if self.distances.size <= 16 else bytes_.numpy()

    def _above(self, tensor: torch.Tensor) -> torch.Tensor:
        """How far each index is above the smallest of its place, in the order of memory; an image at a time, which caches hold."""
        made = torch.empty_strided(self.shape, self.stride, dtype=torch.uint8)
        above = torch.empty_strided((1, *self.shape[1:]), self.stride, dtype=tensor.dtype)
        for image, bytes_ in zip(tensor.split(1), made.split(1)):
            torch.sub(image, self.base, out=above)
            if int(flat(above).max()) > 255:
                raise ValueError("indices too far from each other")
            bytes_.copy_(above)
        return flat(made)

    def _halved(self, bytes_):
        """Two codes a byte, read from a table of pairs."""
        codes = numpy.zeros(256, numpy.uint8)
        codes[self.distances] = numpy.arange(self.distances.size, dtype=numpy.uint8)
        if self.count % 2:
            bytes_ = numpy.append(bytes_, bytes_[:1])
        first, second = (numpy.arange(65536, dtype=numpy.uint16).view(numpy.uint8)[i::2] for i in (0, 1))
        return (codes[first] | codes[second] << 4)[bytes_.view(numpy.uint16)]

    def _bytes(self):
        if self.distances.size > 16:
            return self.data
        distances = numpy.zeros(16, numpy.uint8)
        distances[: self.distances.size] = self.distances
        codes = numpy.arange(256)
        pairs = numpy.stack([distances[codes & 15], distances[codes >> 4]], 1).view(numpy.uint16).ravel()
        return pairs[self.data].view(numpy.uint8)[: self.count]

    @property
    def nbytes(self) -> int:
        return self.data.nbytes + self.base.numel() * self.base.element_size()

    def unpack(self) -> torch.Tensor:
        made = self.empty()
        bytes_ = torch.from_numpy(self._bytes()).as_strided(self.shape, self.stride)
        for image, above in zip(made.split(1), bytes_.split(1)):
            image.copy_(above).add_(self.base)
        return made


def keep_small(tensor: torch.Tensor, memory: Optional[Memory] = None) -> Kept:
    """A tensor that is no map: bool as bits, indices of a pooling in few bits, the rest exactly."""
    if numpy is not None and tensor.numel() >= 4096 and memory_order(tensor) is not None:
        if tensor.dtype is torch.bool:
            return Bits(tensor)
        if tensor.dtype is torch.int64 and tensor.dim() >= 4:
            try:
                return Winners(tensor, memory)
            except ValueError:
                pass
    return Exact(tensor)


counter = itertools.count(1)  # of contexts, in this process: what keys the dither of each
