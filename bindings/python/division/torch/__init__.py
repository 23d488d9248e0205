"""Any PyTorch model in a fraction of its activation memory.

    import division.torch as division

    with division.compress(model, "division:block=8,bits=2"):
        loss = criterion(model(x), y)
    loss.backward()

What the layers save for their backward passes is packed when they save it, and unpacked when they ask for it. Nothing
else changes: not the model, not the losses, not the optimizer. docs/pytorch.md has examples and figures.
"""
from .._library import DivisionError, LibraryError
from .compress import compress
from .networks import network
from .report import Report, Row, report
from .weights import load, save

__all__ = ["DivisionError", "LibraryError", "Report", "Row", "compress", "load", "network", "report", "save"]
