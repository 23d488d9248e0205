"""Hooks on modules, for what a hook on saved tensors cannot know: which layer is about to save.

They are there while a context is entered, and act in its thread alone.
"""
from typing import TYPE_CHECKING, Any, Callable

import torch

from .norms import note_norm

if TYPE_CHECKING:
    from .compress import compress

_NORMS = torch.nn.modules.batchnorm._BatchNorm
_WATCHED = (torch.nn.Hardtanh, torch.nn.LeakyReLU, torch.nn.MaxPool2d, torch.nn.MaxPool3d, torch.nn.LayerNorm)


def watch(model: torch.nn.Module, context: "compress") -> Callable[[], None]:
    """Watches the layers of a model. Returns what ends it."""
    handles = []

    def enter(layer: torch.nn.Module, inputs: Any) -> None:
        if context.is_mine() and inputs and torch.is_tensor(inputs[0]):
            context.layers.append((layer, inputs[0].detach()))

    def leave(layer: torch.nn.Module, inputs: Any, output: Any) -> None:
        if context.is_mine() and context.layers and context.layers[-1][0] is layer:
            context.layers.pop()
            if isinstance(layer, _NORMS):
                note(layer, inputs[0], output)

    def note(layer: torch.nn.Module, x: Any, output: Any) -> None:
        codes = context.codes_of(x)
        if codes is not None and output.grad_fn is not None:
            note_norm(layer, output.grad_fn, codes)

    for layer in model.modules():
        if isinstance(layer, _WATCHED) or (context.recomputes_norms and isinstance(layer, _NORMS)):
            handles.append(layer.register_forward_pre_hook(enter))
            handles.append(layer.register_forward_hook(leave))
    return lambda: [handle.remove() for handle in handles] and None
