"""How a node's process keeps its memory small: the C library's heap, which Python and OpenSSL take memory from.

Each connection has a thread. glibc gives threads heaps of their own, up to eight for each core, and each of them keeps
what was freed between two blocks that are in use. So a node would grow by some tens of bytes with each message that
somebody sends, although it keeps nothing of them.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress

_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # of malloc.h
_LARGE_BYTES = 1 << 20  # blocks of this size are apart, and returned when they are freed
_LIBRARY = ctypes.CDLL(None)


def use_one_heap() -> None:
    """For all threads that begin from now on; they rarely wait for it, since Python runs one of them at a time."""
    with suppress(AttributeError):  # a C library without it, such as musl
        _LIBRARY.mallopt(_M_ARENA_MAX, 1)
        _LIBRARY.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)


def return_free_memory() -> None:
    """Gives pages that nothing lies in back to the system."""
    with suppress(AttributeError):
        _LIBRARY.malloc_trim(ctypes.c_size_t(0))
