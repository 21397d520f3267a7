"""Ctrl-C where Python alone acts too late or too early: in searches, in long calls into C, while files are written."""

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
_MOMENT = 0.05  # seconds until one looks again
_STOPPING = b"\nstopping; Ctrl-C again to discard\n"


class Discarded(BaseException):
    """A second Ctrl-C: what a search has found is not wanted either. No KeyboardInterrupt, which searches catch."""


@dataclass
class _Searches:
    """What a signal finds: how many searches are under way, and whether they were told to stop."""

    running: int = 0
    are_stopping: bool = False


_searches = _Searches()


@contextmanager
def keeping_best() -> Iterator[None]:
    """A search inside it catches KeyboardInterrupt and gives the best it has found."""
    _searches.running += 1
    try:
        yield
    finally:
        _searches.running -= 1


def on_interrupt(_number: int, _frame: FrameType | None) -> None:
    """The command's handler: a search is said to stop at once; a second Ctrl-C ends it with nothing."""
    if _searches.are_stopping:
        raise Discarded
    if _searches.running:
        _searches.are_stopping = True
        with suppress(OSError):
            os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, _STOPPING)
    raise KeyboardInterrupt


def interruptible(call: Callable[[], _T], stop: Callable[[], object]) -> _T:
    """What a long call into C gives, made in a thread of its own: an interrupt stops it, and waits for no end.

    Waits are short, since a signal that comes just before one does not end it; `stop` is asked again and again, since a
    call that has not quite begun does not hear it.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    found: list[_T] = []
    errors: list[BaseException] = []
    ended = threading.Event()  # not Thread.join, after whose interruption Python takes the thread for ended
    is_wanted, has_begun = True, False

    def work() -> None:
        nonlocal has_begun
        has_begun = True
        try:
            if is_wanted:
                found.append(call())
        except BaseException as error:  # told to whoever waits
            errors.append(error)
        ended.set()

    try:
        threading.Thread(target=work, name="edgewright-call", daemon=True).start()
        while not ended.wait(_MOMENT):
            pass
    except BaseException:  # an interrupt, or whatever else a signal raises
        is_wanted = False
        while has_begun and not ended.is_set():
            stop()
            ended.wait(_MOMENT)
        raise
    if errors:
        raise errors[0]
    return found[0]


@contextmanager
def redeliver_interrupts() -> Iterator[None]:
    """Interrupts that Python drops, since they come while it calls back for an object that goes, come again."""
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
