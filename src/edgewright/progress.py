"""Progress of long computations, reported to a listener without passing it through every function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, float | None], object]  # (description, share done or None)

_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


def tell(what: str, share: float | None = None) -> None:
    """Reports what begins now, and the share that is done if it is known."""
    if (listener := _LISTENER.get()) is not None:
        listener(what, share)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Calls the listener while the block runs."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)
