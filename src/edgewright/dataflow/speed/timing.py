"""What every analysis of time asks of a graph first."""

from __future__ import annotations

from ...errors import ModelError
from ..graph import Graph, quoted


def check_times(graph: Graph) -> None:
    """Refuses a graph in which an actor has no execution times."""
    missing = [actor.name for actor in graph.actors if actor.times is None]
    if missing:
        raise ModelError(
            f"graph {quoted(graph.name)}: no execution time is given for {len(missing)} of its {len(graph.actors)} "
            f"actors, first {quoted(missing[0])}; throughput needs one for each. Give times, or ask only for what "
            "needs none"
        )
