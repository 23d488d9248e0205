"""The heap of the C library, from which PyTorch has its own tensors: holes in it are given back to the system.

glibc asks for aligned memory with some bytes to spare. So the hole that a map has left does not fit the next map of the
same shape, and the heap grows with each of them. In plain training that is little beside what is kept for backward;
here it would be half of the peak. malloc_trim gives the pages of all holes back, and has others cleared when a hole is
used after all: it is called when more memory is resident than the process has ever had in use, by some slack.
"""
import ctypes
import os
import threading

from .memory import mapped_bytes

LEAST_ELEMENTS = 1 << 18  # tensors that are smaller do not make the peak
_SLACK_BYTES = 192 << 20


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
        return library if os.path.exists("/proc/self/statm") else None
    except (AttributeError, OSError):
        return None


class Heap:
    """Knows how much memory was in use at most."""

    def __init__(self):
        self._library, self._lock, self._page = _c_library(), threading.Lock(), os.sysconf("SC_PAGE_SIZE")
        self._most = 0  # bytes that were in use at once
        self._else = 0  # of these, what is neither the heap's nor ours: code, files, stacks
        self.trims = 0  # so far

    def _resident(self) -> int:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * self._page

    def _allocated(self) -> int:
        counts = self._library.mallinfo2()
        return counts.uordblks + counts.hblkhd + mapped_bytes()

    def _tend(self) -> None:
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
