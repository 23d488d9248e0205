"""The heap of the C library, from which PyTorch has its own tensors: holes in it are given back to the system.

glibc asks for aligned memory with some bytes to spare. So the hole that a map has left does not fit the next map of the
same shape, and the heap grows with each of them. In plain training that is little beside what is kept for backward;
here it would be half of the peak. malloc_trim gives the pages of all holes back, and has others cleared when a hole is
used after all: it is called when more memory is resident than the process has ever had in use, by some slack.

Every page that is cleared is a fault: half a million a step, in ResNet-50. So the heap lies in large pages, where the system
has them, and takes maps of all sizes, which otherwise come from a mapping each and go with it.
"""
import ctypes
import os
import threading
from typing import Optional

from .memory import mapped_bytes

LEAST_ELEMENTS = 1 << 18  # tensors that are smaller do not make the peak
_SLACK_BYTES = 192 << 20
_ROOM_BYTES = 512 << 20  # of addresses at the heap's end, for maps to come
_M_TRIM_THRESHOLD, _M_MMAP_MAX, _MADV_HUGEPAGE = -1, -4, 14  # as malloc.h and mman.h have them


class _Counts(ctypes.Structure):
    """struct mallinfo2."""

    _names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in _names.split()]


def _c_library():
    """glibc from 2.33 on, with large numbers in its counts; where there is another one, or DIVISION_TRIM=0, None."""
    if os.environ.get("DIVISION_TRIM") == "0":
        return None
    try:
        library = ctypes.CDLL(None)
        library.mallinfo2.restype = _Counts
        library.malloc_trim.argtypes = [ctypes.c_size_t]
        library.malloc.argtypes, library.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
        library.free.argtypes = [ctypes.c_void_p]
        library.sbrk.argtypes, library.sbrk.restype = [ctypes.c_ssize_t], ctypes.c_void_p
        library.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        return library if os.path.exists("/proc/self/statm") else None
    except (AttributeError, OSError):
        return None


class LargePages:
    """Large pages for the heap that grows by sbrk: for what it has, and for room at its end before that is touched."""

    def __init__(self, library):
        self._library, self._begin, self._end = library, _begin_of_heap(), None
        library.mallopt(_M_MMAP_MAX, 0)
        library.mallopt(_M_TRIM_THRESHOLD, -1)  # Heap does that

    def ask(self) -> None:
        """Asks again where the heap has grown or was trimmed."""
        if self._begin is None or self._library.sbrk(0) == self._end:
            return
        self._library.free(self._library.malloc(_ROOM_BYTES))
        self._end = self._library.sbrk(0)
        self._library.madvise(self._begin, self._end - self._begin, _MADV_HUGEPAGE)  # a system without them refuses


def _begin_of_heap() -> Optional[int]:
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        return next((int(line.split("-")[0], 16) for line in maps if line.endswith("[heap]\n")), None)


class Heap:
    """Knows how much memory was in use at most."""

    def __init__(self):
        self._library, self._lock, self._page = _c_library(), threading.Lock(), os.sysconf("SC_PAGE_SIZE")
        self._most = 0  # bytes that were in use at once
        self._else = 0  # of these, what is neither the heap's nor ours: code, files, stacks
        self.trims = 0  # so far
        self._pages: Optional[LargePages] = None  # from the first large tensor on

    def _resident(self) -> int:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * self._page

    def _allocated(self) -> int:
        counts = self._library.mallinfo2()
        return counts.uordblks + counts.hblkhd + mapped_bytes()

    def _tend(self) -> None:
        self._trim()
        self._pages = self._pages or LargePages(self._library)
        self._pages.ask()

    def _trim(self) -> None:
        resident = self._resident()
        if resident <= self._most + _SLACK_BYTES:
            return
        allocated = self._allocated()
        self._most = max(self._most, min(resident, self._else + allocated))
        if resident > self._most + _SLACK_BYTES:
            self._library.malloc_trim(0)
            self.trims += 1
            self._else = max(self._resident() - allocated, 0)

    def tend(self) -> None:
        """Gives holes back if they make a peak. A thread that finds another one at it goes on."""
        if self._library is not None and self._lock.acquire(blocking=False):
            try:
                self._tend()
            finally:
                self._lock.release()


heap = Heap()
