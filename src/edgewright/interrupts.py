"""Ctrl-C where Python alone acts too late or too early: in long calls into C, and while related files are written."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

_T = TypeVar("_T")
_MOMENT = 0.05  # seconds until one looks again


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
        if dropped.exc_type is not KeyboardInterrupt:
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
