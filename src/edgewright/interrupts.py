"""Ctrl-C where Python alone would be late or early: calls into C that take long, and files that belong together."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

_T = TypeVar("_T")


def interruptible(call: Callable[[], _T], stop: Callable[[], object]) -> _T:
    """What a long call into C gives, made in a thread of its own: an interrupt stops it, and waits for no end."""
    if threading.current_thread() is not threading.main_thread():
        return call()
    with ThreadPoolExecutor(1) as pool:
        try:
            return pool.submit(call).result()
        except KeyboardInterrupt:
            stop()
            raise


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Interrupts wait until the block has ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: arrived.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if arrived:
        signal.raise_signal(signal.SIGINT)
