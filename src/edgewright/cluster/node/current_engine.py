"""The engine of the epoch that a device is in, and the connections of other devices that belong to it."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable

from .engine import Engine
from .messages import Disconnected, Hello

EPOCH_S = 10.0  # that a device waits for its own order to begin, when another has begun


class CurrentEngine:
    """At most one engine at a time."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._replacing = threading.Lock()
        self._engine: Engine | None = None
        self._is_over = False

    @property
    def engine(self) -> Engine | None:
        return self._engine

    def replace(self, begin: Callable[[], Engine] | None) -> Engine | None:
        """Ends the engine at work before the next begins, so that their memory is never held at the same time."""
        with self._replacing:
            with self._changed:
                old, self._engine = self._engine, None
            if old:
                old.close()
                del old
            if begin is None or self._is_over:
                return None
            engine = begin()
            with self._changed:
                self._engine = engine
                self._changed.notify_all()
            engine.start()
            return engine

    def end(self) -> None:
        """Ends the engine at work, and refuses all later ones."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        self.replace(None)

    def serve(self, connection: ssl.SSLSocket, device: str, greeting: Hello) -> None:
        """Takes tensors or credits of another device, once this one is in the same epoch; Disconnected at the end.

        A device of an earlier epoch is disconnected.
        """
        epoch = greeting.epoch
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_over or (self._engine is not None and self._engine.epoch >= epoch), EPOCH_S
            )
            engine = self._engine
        if engine is None or engine.epoch != epoch:
            raise Disconnected(f"it is in epoch {epoch}, which is not this one")
        if greeting.purpose == "tensors":
            engine.take_tensors(connection, device)
        else:
            engine.take_credits(connection, device)
