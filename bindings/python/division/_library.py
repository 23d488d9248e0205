"""The shared library: where it is, how it is loaded, and its functions with Python's errors.

Everything goes through include/division/packed.h, whose functions take text and plain arguments.
"""
import ctypes
import os
import pathlib
import re
import threading
from typing import Dict, Iterator, Optional, Tuple

ABI = 1
ALIGNMENT = 64
_NOT_FINITE = 5
_MESSAGE_BYTES = 256
_NAMES = ("libdivision_codec.so", "libdivision.so")


class DivisionError(Exception):
    """A call that the library refuses; the message says why, and what to do."""


class LibraryError(DivisionError, ImportError):
    """The library cannot be found or loaded."""


class NotFiniteError(DivisionError):
    """What was to be packed has NaN or infinity in it."""


# ---- finding and loading ---------------------------------------------------------------------------------------------


def _candidates() -> Iterator[pathlib.Path]:
    """Where the library may be: beside this file (a wheel), in the build folder of a checkout."""
    here = pathlib.Path(__file__).resolve().parent
    yield from (here / name for name in _NAMES)
    if len(here.parents) > 2 and (here.parents[2] / "include/division/packed.h").exists():
        for build in ("release", "debug"):
            yield from (here.parents[2] / "build" / build / name for name in _NAMES)


def _openmp_in_process() -> Optional[str]:
    """The OpenMP runtime that this process has mapped already, PyTorch's own for instance."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            found = re.search(r"\s(/.*/lib(?:gomp|iomp5|omp)[^/]*\.so[^/]*)$", line.rstrip("\n"))
            if found:
                return found[1]
    return None


def _share_openmp() -> None:
    """Makes one OpenMP runtime visible to the library: the one that is there, or else the system's.

    Two runtimes in a process have two sets of threads, and those of one spin on the cores while the other computes.
    """
    path = _openmp_in_process() if os.path.exists("/proc/self/maps") else None
    try:
        ctypes.CDLL(path or "libgomp.so.1", mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise LibraryError(f"no OpenMP runtime ({error}): import torch first, or install libgomp1") from None


def _open() -> ctypes.CDLL:
    given = os.environ.get("DIVISION_LIBRARY")
    paths = [given] if given else [str(path) for path in _candidates() if path.exists()] + ["libdivision.so.%d" % ABI]
    failures = []
    _share_openmp()
    for path in paths:
        try:
            library = ctypes.CDLL(path)
            library.dv_packed_bytes  # an earlier library has none
            return library
        except (OSError, AttributeError) as error:
            failures.append(f"{path}: {error}")
    where = "DIVISION_LIBRARY names it" if given else "it is looked for in the package, in build/release of a checkout, and where `make install` puts it"
    raise LibraryError(
        "could not load DIVISION's library: " + "; ".join(failures) + f" ({where}). "
        "Run `make` in a checkout, or set DIVISION_LIBRARY to libdivision.so or libdivision_codec.so"
    )


_TEXT, _SIZE, _NUMBER, _MEMORY = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_void_p
_FUNCTIONS = {
    "dv_packed_bytes": [_TEXT, _TEXT, ctypes.POINTER(_SIZE), _TEXT],
    "dv_packed_encode": [_TEXT, _TEXT, _NUMBER, _NUMBER, _NUMBER, _MEMORY, _MEMORY, _SIZE, _TEXT],
    "dv_packed_decode": [_TEXT, _TEXT, _NUMBER, _NUMBER, _NUMBER, _MEMORY, _SIZE, _MEMORY, _TEXT],
    "dv_packed_apply_mask": [_TEXT, _TEXT, _MEMORY, _SIZE, _MEMORY, _MEMORY, _TEXT],
}

_lock = threading.Lock()
_loaded: Optional[ctypes.CDLL] = None


def library() -> ctypes.CDLL:
    """The library, loaded at the first call."""
    global _loaded
    with _lock:
        if _loaded is None:
            opened = _open()
            opened.dv_version.restype = ctypes.c_char_p
            if opened.dv_abi() != ABI:
                raise LibraryError(f"the library has ABI {opened.dv_abi()}, this package needs {ABI}: install both anew")
            for name, arguments in _FUNCTIONS.items():
                getattr(opened, name).argtypes = arguments
            _loaded = opened
    return _loaded


def version() -> str:
    """The version of the library in use."""
    return library().dv_version().decode()


# ---- calls -----------------------------------------------------------------------------------------------------------


def _call(name: str, *arguments) -> None:
    message = ctypes.create_string_buffer(_MESSAGE_BYTES)
    status = getattr(_loaded or library(), name)(*arguments, message)
    if status != 0:
        kind = NotFiniteError if status == _NOT_FINITE else DivisionError
        raise kind(message.value.decode("utf-8", "replace"))


_sizes: Dict[Tuple[str, str], int] = {}


def packed_bytes(codec: str, map_text: str) -> int:
    """Bytes of the packed form of a map ("f32 nhwc 32x64x56x56")."""
    known = _sizes.get((codec, map_text))
    if known is None:
        bytes_ = ctypes.c_size_t()
        _call("dv_packed_bytes", codec.encode(), map_text.encode(), ctypes.byref(bytes_))
        known = bytes_.value
        if len(_sizes) > 10000:
            _sizes.clear()
        _sizes[codec, map_text] = known
    return known


def encode(codec: str, map_text: str, key: Tuple[int, int, int], source: int, packed: int, size: int) -> None:
    """Packs the dense map at address `source` into `packed`, aligned to ALIGNMENT."""
    _call("dv_packed_encode", codec.encode(), map_text.encode(), *key, source, packed, size)


def decode(codec: str, map_text: str, key: Tuple[int, int, int], packed: int, size: int, destination: int) -> None:
    _call("dv_packed_decode", codec.encode(), map_text.encode(), *key, packed, size, destination)


def apply_mask(codec: str, map_text: str, packed: int, size: int, gradient: int, destination: int) -> None:
    """`destination` becomes `gradient` where the packed map is positive, else zero."""
    _call("dv_packed_apply_mask", codec.encode(), map_text.encode(), packed, size, gradient, destination)
