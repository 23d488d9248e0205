"""How a tensor is described to the library: the map that its memory is."""
from typing import List, Optional, Tuple

import torch

TYPES = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}


def memory_order(tensor: torch.Tensor) -> Optional[List[int]]:
    """The dimensions from the slowest to the fastest, if the elements lie without gaps and without overlap."""
    order = sorted((d for d in range(tensor.dim())), key=lambda d: (-tensor.stride(d), tensor.size(d) == 1))
    expected = tensor.numel()
    for d in order:
        if tensor.size(d) != 1:
            if tensor.size(d) * tensor.stride(d) != expected:
                return None
            expected = tensor.stride(d)
    return order if expected == 1 else None


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """The elements of a tensor without gaps as a vector, in the order of memory. No copy."""
    return tensor.as_strided((tensor.numel(),), (1,), tensor.storage_offset())


def _is_channels_last(tensor: torch.Tensor) -> bool:
    return 2 < tensor.dim() < 6 and tensor.movedim(1, -1).is_contiguous()


def _sizes(tensor: torch.Tensor) -> Tuple[str, List[int]]:
    """Layout and sizes of a tensor without gaps. What is neither of the two layouts is taken as it lies in memory."""
    if tensor.is_contiguous():
        sizes = list(tensor.shape)
    elif _is_channels_last(tensor):
        return "nhwc", list(tensor.shape)
    else:
        sizes = [tensor.size(d) for d in memory_order(tensor) or []]
    while len(sizes) > 5:  # more than three sides: the first dimensions are images together
        sizes[:2] = [sizes[0] * sizes[1]]
    return "nchw", sizes


def map_text(tensor: torch.Tensor) -> str:
    """ "f32 nhwc 32x64x56x56", for a tensor of a known type that lies without gaps."""
    layout, sizes = _sizes(tensor)
    return f"{TYPES[tensor.dtype]} {layout} " + "x".join(map(str, sizes))


def tokens_text(tensor: torch.Tensor) -> Optional[str]:
    """The same of tokens, [images, sides..., channels], as a layer norm reads them; None for what lies in another order."""
    turned = tensor.movedim(-1, 1)
    return map_text(turned) if turned.is_contiguous() or _is_channels_last(turned) else None
