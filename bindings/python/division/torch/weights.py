"""Files of weights: safetensors, as the program `division` reads and writes them.

A file is the length of a header (8 bytes, little-endian), the header (JSON), and the tensors one behind the other.
"""
import json
import os
from typing import Any, Dict, Mapping, Optional, Tuple, Union

import torch

from .._library import DivisionError

_TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64, "I64": torch.int64}
_NAMES = {kind: name for name, kind in _TYPES.items()}
_OF_TRAINING = ("optimizer.", "average.", "method.")  # what a checkpoint to go on from has besides
_MOST_HEADER = 100_000_000

State = Dict[str, torch.Tensor]


def _read_header(file: Any, path: str) -> Tuple[Dict[str, Any], int]:
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > min(size - 8, _MOST_HEADER):
        raise DivisionError(f"{path}: it is no safetensors file, or cut short")
    try:
        header = json.loads(file.read(length))
    except ValueError as error:
        raise DivisionError(f"{path}: its header is no JSON: {error}") from None
    if not isinstance(header, dict):
        raise DivisionError(f"{path}: its header is no object")
    return header, 8 + length


def _read_tensor(file: Any, path: str, name: str, entry: Any, start: int) -> torch.Tensor:
    try:
        kind, shape, (first, last) = _TYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
        count = torch.Size(shape).numel()
    except (KeyError, TypeError, ValueError, RuntimeError):
        raise DivisionError(f"{path}: {name}: its type, shape or place is not one that can be read") from None
    if last - first != count * torch.empty((), dtype=kind).element_size() or first < 0:
        raise DivisionError(f"{path}: {name}: its shape does not fit its bytes")
    file.seek(start + first)
    data = bytearray(file.read(last - first))
    if len(data) != last - first:
        raise DivisionError(f"{path}: {name}: the file ends before it")
    return torch.frombuffer(data, dtype=kind).reshape(shape) if data else torch.empty(shape, dtype=kind)


def load(path: Union[str, os.PathLike], model: Optional[torch.nn.Module] = None) -> State:
    """The weights and running statistics of a file, by name; and into `model`, if one is given.

    What else a checkpoint has, an optimizer's state for instance, is left out.
    """
    path = os.fspath(path)
    with open(path, "rb") as file:
        header, start = _read_header(file, path)
        names = [name for name in header if name != "__metadata__" and not name.startswith(_OF_TRAINING)]
        state = {name: _read_tensor(file, path, name, header[name], start) for name in names}
    if model is not None:
        missing = [n for n in model.state_dict() if n not in state and not n.endswith("num_batches_tracked")]
        unknown = [n for n in state if n not in model.state_dict()]
        if missing or unknown:
            raise DivisionError(f"{path}: missing: {', '.join(missing) or 'nothing'}; unexpected: {', '.join(unknown) or 'nothing'}")
        model.load_state_dict(state, strict=False)
    return state


def notes(path: Union[str, os.PathLike]) -> Dict[str, str]:
    """What a file says of itself: the network's name, its classes, the side of its images, ..."""
    path = os.fspath(path)
    with open(path, "rb") as file:
        return dict(_read_header(file, path)[0].get("__metadata__", {}))


def save(weights: Union[torch.nn.Module, Mapping[str, torch.Tensor]], path: Union[str, os.PathLike], **about: Any) -> None:
    """Writes the weights of a model, or those given by name, as the program reads them.

        save(model, "weights.safetensors", model="resnet20", classes=10, side=32)

    The words behind the path become notes of the file: with model, classes and side, `division eval` needs no more.
    """
    state = weights.state_dict() if isinstance(weights, torch.nn.Module) else weights
    kept = {n: t.detach().cpu().contiguous() for n, t in state.items() if not n.endswith("num_batches_tracked")}
    header: Dict[str, Any] = {"__metadata__": {"format": "pt", **{name: str(value) for name, value in about.items()}}}
    at = 0
    for name, tensor in kept.items():
        if tensor.dtype not in _NAMES:
            raise DivisionError(f"{name}: tensors of {tensor.dtype} cannot be written")
        end = at + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    temporary = f"{os.fspath(path)}.{os.getpid()}.tmp"
    with open(temporary, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in kept.values():
            file.write(bytes(tensor.flatten().view(torch.uint8).numpy()) if tensor.numel() else b"")
    os.replace(temporary, path)
