"""recompute=norms: the output of a batch norm is rebuilt from its packed input.

A norm's input x and the output z behind its ReLU are both read in backward. z follows from x: with the bits of both, x
alone has a small part of the noise. A norm's node carries a note of its scale, its shift and its packed input; what is
made of norms, sums and ReLUs behind it is found by walking back over the graph.

Notes hold weak references: codes live as long as autograd keeps them, and no longer.
"""
import weakref
from typing import Any, List, Optional

import torch

from .kept import Codes, Kept, Mask
from .producers import plain_name

_NOTE, MOST_SOURCES = "division", 4


class Norm:
    """z = x scale + shift, of the packed x."""

    def __init__(self, codes: Codes, scale: torch.Tensor, shift: torch.Tensor):
        self.codes, self.scale, self.shift = weakref.ref(codes), scale, shift


class Term:
    """A packed map and what it is multiplied with and added to; or a map that is kept, as it is."""

    def __init__(self, kept: Kept, scale: Optional[torch.Tensor] = None, shift: Optional[torch.Tensor] = None):
        self.kept, self.scale, self.shift = kept, scale, shift

    def value(self) -> torch.Tensor:
        x = self.kept.unpack()
        if self.scale is None:
            return x
        sides = (1, -1) + (1,) * (x.dim() - 2)
        scale, shift = self.scale.view(sides), self.shift.view(sides)
        if x.dtype is scale.dtype:
            return torch.addcmul(shift, x, scale, out=x)
        return x.copy_(torch.addcmul(shift, x.to(scale.dtype), scale))


class Rebuilt(Kept):
    """A sum of terms, set to zero outside of a mask."""

    __slots__ = ("terms", "mask")
    name = "recomputed"

    def __init__(self, tensor: torch.Tensor, terms: List[Term], mask: Optional[Mask]):
        super().__init__(tensor)
        self.terms, self.mask = terms, mask

    def unpack(self) -> torch.Tensor:
        total = self.terms[0].value()
        for term in self.terms[1:]:
            total.add_(term.value())
        if total.stride() != self.stride:
            total = self.empty().copy_(total)
        if self.mask is not None:
            self.mask.apply(total, total)
        return total


def _statistics(module: torch.nn.Module, node: Any):
    """Mean and inverse deviation that the norm has just used."""
    if module.training or module.running_mean is None:
        with torch.no_grad():
            return node._saved_result1, node._saved_result2
    return module.running_mean, (module.running_var + module.eps).rsqrt()


def note_norm(module: torch.nn.Module, node: Any, codes: Codes) -> None:
    """Leaves a note at a batch norm's node."""
    with torch.no_grad():
        mean, scale = _statistics(module, node)
        if mean.numel() == 0:
            return
        scale = scale.clone() if module.weight is None else scale * module.weight.to(scale.dtype)
        shift = -mean * scale if module.bias is None else module.bias.to(scale.dtype) - mean * scale
    node.metadata[_NOTE] = Norm(codes, scale.detach(), shift.detach())


def note_kept(node: Any, kept: Kept) -> None:
    """Leaves a note of how the map that a node made is kept, for sums that it enters."""
    if node is not None and not isinstance(node.metadata.get(_NOTE), Norm):
        node.metadata[_NOTE] = weakref.ref(kept)


def _terms(node: Any) -> Optional[List[Term]]:
    note = node.metadata.get(_NOTE) if node is not None else None
    if isinstance(note, Norm):
        codes = note.codes()
        return None if codes is None else [Term(codes, note.scale, note.shift)]
    if note is not None:
        kept = note()
        return None if kept is None else [Term(kept)]
    if plain_name(node) == "Add" and getattr(node, "_saved_alpha", 1) == 1:
        parts = [_terms(next_node) for next_node, _ in node.next_functions]
        if len(parts) == 2 and all(parts):
            return parts[0] + parts[1]
    return None


def _sources(kept: Kept) -> int:
    return sum(_sources(term.kept) for term in kept.terms) if isinstance(kept, Rebuilt) else 1


def rebuild(tensor: torch.Tensor, mask: Optional[Mask]) -> Optional[Rebuilt]:
    """The tensor as something that follows from packed inputs of norms, if it does."""
    node = tensor.grad_fn
    if plain_name(node) == "Relu":
        if mask is None:
            return None
        node = node.next_functions[0][0]
    else:
        mask = None
    terms = _terms(node)
    if not terms or all(term.scale is None for term in terms):
        return None
    terms.sort(key=lambda term: term.scale is not None)  # chains first: at any time two maps are there, and no more
    return Rebuilt(tensor, terms, mask) if sum(_sources(term.kept) for term in terms) <= MOST_SOURCES else None
