"""Ctrl-C during searches, long calls into C and file writes, where Python's own handling is too late or too early."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import TypeVar

_T = TypeVar("_T")
_MOMENT = 0.05  # seconds between checks
_STOPPING = b"\nstopping; Ctrl-C again to discard\n"


class Discarded(BaseException):
    """A second Ctrl-C: discard the results of the search too. Not a KeyboardInterrupt, because searches catch these."""


@dataclass
class _Searches:
    """The number of running searches, and whether they were asked to stop."""

    running: int = 0
    are_stopping: bool = False


_searches = _Searches()


@contextmanager
def keeping_best() -> Iterator[None]:
    """A search inside the block catches KeyboardInterrupt and returns its best result."""
    _searches.running += 1
    try:
        yield
    finally:
        _searches.running -= 1


def on_interrupt(_number: int, _frame: FrameType | None) -> None:
    """The command's signal handler: announces that the search stops; a second Ctrl-C discards its results."""
    if _searches.are_stopping:
        raise Discarded
    if _searches.running:
        _searches.are_stopping = True
        with suppress(OSError):
            os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, _STOPPING)
    raise KeyboardInterrupt


def interruptible(call: Callable[[], _T], stop: Callable[[], object]) -> _T:
    """The result of a long call into C, which runs in its own thread so that an interrupt can stop it.

    The main thread waits in short intervals, because a signal just before a wait does not end it. `stop` is called
    repeatedly, because a call that has not fully started ignores it.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    results: list[_T] = []
    errors: list[BaseException] = []
    ended = threading.Event()  # not Thread.join: after an interrupt Python considers the thread finished
    is_wanted, has_begun = True, False

    def work() -> None:
        nonlocal has_begun
        has_begun = True
        try:
            if is_wanted:
                results.append(call())
        except BaseException as error:  # passed on to the waiting thread
            errors.append(error)
        ended.set()

    try:
        threading.Thread(target=work, name="edgewright-call", daemon=True).start()
        while not ended.wait(_MOMENT):
            pass
    except BaseException:  # an interrupt, or another exception from a signal handler
        is_wanted = False
        while has_begun and not ended.is_set():
            stop()
            ended.wait(_MOMENT)
        raise
    if errors:
        raise errors[0]
    return results[0]


@contextmanager
def redeliver_interrupts() -> Iterator[None]:
    """Re-raises a KeyboardInterrupt that Python swallowed inside a destructor."""
    before = sys.unraisablehook

    def again(dropped: sys.UnraisableHookArgs) -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt | Discarded):
            before(dropped)
            return
        timer = threading.Timer(_MOMENT, os.kill, (os.getpid(), signal.SIGINT))
        timer.daemon = True
        timer.start()

    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = before


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delays interrupts until the block has ended."""
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
