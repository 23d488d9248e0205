"""The context in which tensors that layers save are packed."""
import sys
import threading
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .. import _library
from . import norms
from .heap import LEAST_ELEMENTS, heap
from .kept import Codes, Exact, InRange, Kept, Mask, ShapeOnly, Tokens, counter, keep_small
from .layers import watch
from .memory import Memory
from .method import Method
from .producers import makes_map, plain_name, saves_its_result
from .shapes import TYPES, memory_order

_LEAST_ELEMENTS = 4096  # what is smaller stays as it is: statistics, biases, logits


def storage_of(tensor: torch.Tensor) -> Any:
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()


class _Seen:
    """What is known of tensors by their storage: two tensors with one address are the same only while it lives.

    A weak reference to a storage keeps its number from being given to another one. What is kept is referred to weakly as
    well: it belongs to autograd.
    """

    def __init__(self):
        self._entries: Dict[tuple, Tuple[StorageWeakRef, Any]] = {}

    @staticmethod
    def _key(tensor: torch.Tensor, kind: type, reference: StorageWeakRef) -> tuple:
        version = 0 if tensor.is_inference() else tensor._version
        return reference.cdata, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype, version, kind

    def find(self, tensor: torch.Tensor, kind: type) -> Optional[Any]:
        entry = self._entries.get(self._key(tensor, kind, StorageWeakRef(storage_of(tensor))))
        return entry[1]() if entry is not None else None

    def remember(self, tensor: torch.Tensor, kind: type, kept: Kept) -> None:
        reference = StorageWeakRef(storage_of(tensor))
        self._entries[self._key(tensor, kind, reference)] = (reference, weakref.ref(kept))

    def forget(self) -> None:
        self._entries.clear()


def _check_devices(model: torch.nn.Module) -> None:
    for name, tensor in list(model.named_parameters()) + list(model.named_buffers()):
        if tensor.device.type != "cpu":
            raise _library.DivisionError(
                f"{name} is on the device {tensor.device}: division packs tensors of the CPU; move the model there with "
                "model.to('cpu'), or train without division.compress"
            )


def _is_saved_by_function() -> bool:
    """True if a torch.autograd.Function written in Python saves: that of torch.utils.checkpoint, which computes forward
    again from what it saved, one of a compiled model, which takes masks of what it saved, or one of which nothing is known."""
    frame = sys._getframe(3)  # who called the operation whose tensor came to _pack and _keep
    name = frame.f_code.co_filename
    return name.endswith(("/torch/autograd/function.py", "/torch/utils/checkpoint.py")) or "/torch/_functorch/" in name


class compress:
    """with compress(model, method): what layers save for backward is packed.

    method  "division:block=8,bits=2,dither=stochastic|subtractive,recompute=nothing|norms", as the program takes it;
            "exact" changes nothing
    seed    of the dither; by default each context has another one

    Backward may run inside of the context or behind it. A context can be entered again, one thread at a time; every
    thread that computes enters a context of its own, as PyTorch's hooks belong to threads.
    """

    def __init__(self, model: torch.nn.Module, method: str = "division:block=8,bits=2", *, seed: Optional[int] = None):
        if not isinstance(model, torch.nn.Module):
            raise TypeError(f"compress takes a torch.nn.Module first, and not {type(model).__name__}")
        self._model, self._method, self._seed = model, Method(method), seed
        _library.library()
        self._seen, self._number, self._step, self._entered = _Seen(), 0, -1, 0
        self._thread: Optional[int] = None
        self._observer: Optional[Callable[[torch.Tensor, Kept, bool], None]] = None
        self._unwatch: Callable[[], None] = lambda: None
        self.layers: List[Tuple[torch.nn.Module, torch.Tensor]] = []  # watched ones that compute now, with their inputs
        self._hooks: Any = None
        self._memory = Memory()

    # ---- entering and leaving ----

    def __enter__(self) -> "compress":
        if self._hooks is not None:
            raise RuntimeError("this context is entered already: make another one with division.compress")
        _check_devices(self._model)
        self._thread = threading.get_ident()
        self._step = next(counter) if self._seed is None else self._step + 1
        self._number = 0
        self._unwatch = watch(self._model, self) if not self._method.exact else self._unwatch
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, _unpack)
        self._hooks.__enter__()
        return self

    def __exit__(self, *exception) -> None:
        self._hooks.__exit__(*exception)
        self._hooks = None
        self._unwatch()
        self._unwatch = lambda: None
        self.layers.clear()
        self._seen.forget()
        self._memory = Memory()

    @property
    def recomputes_norms(self) -> bool:
        return self._method.recompute_norms

    def is_mine(self) -> bool:
        """True in the thread that entered."""
        return threading.get_ident() == self._thread

    def codes_of(self, tensor: torch.Tensor) -> Optional[Codes]:
        return self._seen.find(tensor, Codes)

    # ---- packing ----

    def _pack(self, tensor: torch.Tensor) -> Kept:
        if tensor.numel() >= LEAST_ELEMENTS:
            heap.tend()
        try:
            kept, new = self._keep(tensor)
        except _library.NotFiniteError:  # scaled losses overflow now and then, and PyTorch wants to see it
            kept, new = Exact(tensor), True
        if self._observer is not None:
            self._observer(tensor, kept, new)
        return kept

    def _keep(self, tensor: torch.Tensor) -> Tuple[Kept, bool]:
        """How the tensor is kept, and whether that is new."""
        if self._method.exact or tensor.device.type != "cpu" or tensor.layout is not torch.strided:
            return Exact(tensor), True
        if tensor.dtype not in TYPES:
            return keep_small(tensor, self._memory), True
        if not self._is_map(tensor) or _is_saved_by_function():
            return Exact(tensor), True
        if memory_order(tensor) is None:
            if 0 in tensor.stride():
                return Exact(tensor), True  # expanded: there is little behind it
            return Codes(tensor.contiguous(), self._memory, self._method.maps, self._key()), True
        if self.layers and self.layers[-1][1].shape == tensor.shape:
            kept = self._keep_for_layer(tensor, *self.layers[-1])
            if kept is not None:
                return kept, True
        if self._seen.find(tensor, Mask) is None and saves_its_result(tensor.grad_fn):
            return self._remembered(tensor, Mask, Mask(tensor, self._memory)), True
        return self._keep_codes(tensor)

    @staticmethod
    def _is_map(tensor: torch.Tensor) -> bool:
        if tensor.numel() < _LEAST_ELEMENTS or tensor.dim() < 3 or isinstance(tensor, torch.nn.Parameter):
            return False
        if tensor.grad_fn is None:
            return tensor.dim() > 3 or not tensor.requires_grad
        return makes_map(tensor.grad_fn)

    def _key(self) -> Tuple[int, int, int]:
        self._number += 1
        seed = torch.initial_seed() if self._seed is None else self._seed
        return seed % 2**64, self._step, self._number

    def _remembered(self, tensor: torch.Tensor, kind: type, kept: Kept) -> Kept:
        self._seen.remember(tensor, kind, kept)
        return kept

    def _keep_for_layer(self, tensor: torch.Tensor, layer: torch.nn.Module, given: torch.Tensor) -> Optional[Kept]:
        """What a layer saves that reads less of its input than its numbers."""
        if isinstance(layer, torch.nn.Hardtanh):  # ReLU6 is one
            return InRange(tensor, self._memory, layer.min_val, layer.max_val)
        if isinstance(layer, torch.nn.LeakyReLU):
            return Mask(tensor, self._memory)
        if isinstance(layer, (torch.nn.MaxPool2d, torch.nn.MaxPool3d)) and tensor.data_ptr() == given.data_ptr():
            return ShapeOnly(tensor)  # where its winners were is in the indices
        return None

    def _keep_codes(self, tensor: torch.Tensor) -> Tuple[Kept, bool]:
        found = self._seen.find(tensor, Kept)
        if found is not None:
            return found, False
        mask = self._seen.find(tensor, Mask)
        kept: Optional[Kept] = norms.rebuild(tensor, mask) if self.recomputes_norms else None
        if kept is None:
            kept = self._codes(tensor, mask)
            self._seen.remember(tensor, Codes, kept)
        if self.recomputes_norms:
            norms.note_kept(tensor.grad_fn, kept)
        return self._remembered(tensor, Kept, kept), True

    def _codes(self, tensor: torch.Tensor, mask: Optional[Mask]) -> Codes:
        codec, key = self._codec_for(tensor, mask), self._key()
        layer = self.layers[-1][0] if self.layers else None
        if isinstance(layer, torch.nn.LayerNorm) and tensor.dim() < 6 and tensor.shape[-1:] == torch.Size(layer.normalized_shape):
            return Tokens(tensor, self._memory, codec, key)
        return Codes(tensor, self._memory, codec, key, self._mask_for(tensor, mask))

    def _codec_for(self, tensor: torch.Tensor, mask: Optional[Mask]) -> str:
        if tensor.grad_fn is None:
            return self._method.images
        if self.recomputes_norms and self.layers and isinstance(self.layers[-1][0], torch.nn.modules.batchnorm._BatchNorm):
            return self._method.sources
        if mask is None and plain_name(tensor.grad_fn) in ("Relu", "Threshold"):  # made outside of this context
            return self._method.rectified(self._method.maps)
        return self._method.maps

    @staticmethod
    def _mask_for(tensor: torch.Tensor, mask: Optional[Mask]) -> Optional[Mask]:
        """A leaky ReLU's mask says nothing of zeros."""
        return mask if plain_name(tensor.grad_fn) in ("Relu", "Threshold") else None


def _unpack(kept: Kept) -> torch.Tensor:
    if torch.is_grad_enabled():
        raise RuntimeError(
            "a second derivative (create_graph=True) through tensors that division.compress keeps is not possible: they "
            "are unpacked without their graph. Compute what needs it outside of division.compress"
        )
    if kept.shape.numel() >= LEAST_ELEMENTS:
        heap.tend()
    return kept.unpack()
