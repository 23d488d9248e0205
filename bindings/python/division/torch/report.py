"""What a model saves for its backward pass, layer by layer, and what packing makes of it."""
import html
from dataclasses import dataclass, field
from typing import Any, Callable, List, Optional, Tuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .compress import compress, storage_of
from .kept import Exact, Kept, Mask, ShapeOnly

_COLUMNS = ("layer", "shape", "kept as", "bytes", "kept bytes", "error")
_COMPILED = (
    "This model is compiled: its layers are one function, whose maps stay exact, so that the peak of memory does not fall. "
    "Compile parts of the model, or train it without torch.compile."
)


@dataclass(frozen=True)
class Row:
    """One tensor that one layer saved. `before` is 0 where another row has the same memory."""

    layer: str
    shape: Tuple[int, ...]
    form: str
    before: int
    after: int
    error: Optional[float]  # of the decoded tensor: root of the mean square, by that of the tensor

    def cells(self) -> Tuple[str, ...]:
        shape = "x".join(map(str, self.shape))
        error = "" if self.error is None else f"{self.error:.4f}"
        return self.layer, shape, self.form, str(self.before), str(self.after), error


@dataclass
class Report:
    """Rows in the order in which layers saved them. str() is a table, html() a page."""

    method: str
    rows: List[Row] = field(default_factory=list)
    note: str = ""

    @property
    def before(self) -> int:
        """Bytes that PyTorch itself keeps for backward, without parameters."""
        return sum(row.before for row in self.rows)

    @property
    def after(self) -> int:
        return sum(row.after for row in self.rows)

    def summary(self) -> str:
        by = f", {self.before / self.after:.1f} times fewer" if self.after else ""
        return f"{self.method}: {self.before} bytes are saved for backward, {self.after} are kept{by}"

    def __str__(self) -> str:
        cells = [_COLUMNS] + [row.cells() for row in self.rows]
        widths = [max(len(line[i]) for line in cells) for i in range(len(_COLUMNS))]
        left = (True, True, True, False, False, False)
        lines = ["  ".join(c.ljust(w) if l else c.rjust(w) for c, w, l in zip(line, widths, left)).rstrip() for line in cells]
        return "\n".join(lines + [self.summary()] + ([self.note] if self.note else []))

    def html(self) -> str:
        """The same as one page that needs nothing else."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in _COLUMNS)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row.cells()) + "</tr>\n" for row in self.rows)
        style = "body{font-family:sans-serif}table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:2px 8px;text-align:left}td:nth-child(n+4){text-align:right}"
        note = f"<p>{html.escape(self.note)}</p>" if self.note else ""
        return (
            f"<!doctype html><html lang=en><meta charset=utf-8><title>Saved tensors</title><style>{style}</style>"
            f"<h1>Saved tensors</h1><p>{html.escape(self.summary())}</p>{note}<table><tr>{head}</tr>\n{body}</table></html>"
        )


class _Rows:
    """Collects rows while a model computes."""

    def __init__(self, result: Report, model: torch.nn.Module):
        self.result, self.stack, self.storages = result, [], {}
        self.parameters = {p.data_ptr() for p in model.parameters()}
        self.handles: List[Any] = []
        for name, layer in model.named_modules():
            if next(layer.children(), None) is None:
                self.handles.append(layer.register_forward_pre_hook(lambda *_, name=name: self.stack.append(name)))
                self.handles.append(layer.register_forward_hook(lambda *_: self.stack.pop() and None))

    def add(self, tensor: torch.Tensor, kept: Kept, new: bool) -> None:
        if tensor.data_ptr() in self.parameters:
            return
        size = tensor.numel() * tensor.element_size()
        reference = StorageWeakRef(storage_of(tensor))  # held, so that its number is given to no other storage
        before = 0 if reference.cdata in self.storages else size
        self.storages[reference.cdata] = reference
        after = before if isinstance(kept, Exact) else kept.nbytes if new else 0
        layer = self.stack[-1] if self.stack else ""
        self.result.rows.append(Row(layer, tuple(tensor.shape), kept.name, before, after, _error(tensor, kept)))


def _error(tensor: torch.Tensor, kept: Kept) -> Optional[float]:
    if isinstance(kept, (Mask, ShapeOnly)) or not tensor.is_floating_point():
        return None
    if isinstance(kept, Exact):
        return 0.0
    size = tensor.float().pow(2).mean()
    return float(((kept.unpack().float() - tensor.float()).pow(2).mean() / size).sqrt()) if size > 0 else 0.0


def report(
    model: torch.nn.Module,
    x: Any,
    method: str = "division:block=8,bits=2",
    *,
    forward: Optional[Callable[[torch.nn.Module, Any], Any]] = None,
) -> Report:
    """Runs the model forward once, on `x`, and tells what it saves for backward. The model is left as it was.

    forward  what to call instead of model(x), for models that take more than one argument
    """
    result = Report(method)
    if type(model).__name__ == "OptimizedModule":
        result.note = _COMPILED
    context = compress(model, method)
    rows = _Rows(result, model)
    context._observer = rows.add
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    try:
        with torch.random.fork_rng(devices=[]), torch.enable_grad(), context:
            made = forward(model, x) if forward is not None else model(x)
        del made
    finally:
        for handle in rows.handles:
            handle.remove()
        with torch.no_grad():
            for name, buffer in model.named_buffers():
                buffer.copy_(buffers[name])
    return result
