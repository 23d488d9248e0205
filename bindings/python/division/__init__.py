"""DIVISION for Python: activation maps in a few bits per element.

    division.torch   any PyTorch model in a fraction of its activation memory
    division.numpy   the codec for plain arrays

Neither is imported here: each needs the package that it is named after.
"""
from ._library import LibraryError, NotFiniteError, DivisionError, version

__all__ = ["DivisionError", "LibraryError", "NotFiniteError", "version"]
