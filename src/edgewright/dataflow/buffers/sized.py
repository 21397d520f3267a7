"""What both measures of memory share: a schedule, its size, and how far below it any other may lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ...errors import ModelError
from ..checks.consistency import repetitions
from ..checks.liveness import blocked
from ..graph import Channel, Graph
from .schedule import Schedule
from .untimed import check_size

Weight = Literal["tokens", "bytes"]  # what a token counts as: one, or its bytes


def price(channel: Channel, weight: Weight) -> int:
    """Of one token."""
    return channel.token_bytes if weight == "bytes" else 1


@dataclass(frozen=True)
class Sized:
    """A size in both measures, least in one of them (`weight`), where nothing goes below `bound`."""

    tokens: int
    size_bytes: int
    weight: Weight
    bound: int
    schedule: Schedule

    @property
    def is_optimal(self) -> bool:
        return self.bound == (self.tokens if self.weight == "tokens" else self.size_bytes)


def live_firings(graph: Graph) -> Mapping[str, int]:
    """The repetition vector of a graph that is live and small enough; an error that says why if it is not."""
    firings = repetitions(graph)
    check_size(graph, firings)
    dead = blocked(graph)
    if dead is not None:
        raise ModelError(str(dead))
    return firings
