"""What long computations are doing, told to whoever listens: nothing is passed through the functions between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, float | None], object]  # (what is done, the share that is done or None)

_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


def tell(what: str, share: float | None = None) -> None:
    """Says what begins now, and which share of it is done where that is known."""
    if (listener := _LISTENER.get()) is not None:
        listener(what, share)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Has the listener called while the block runs."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)
