"""Describes the errors in the paper's printed algorithms and their effect on one application."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ... import text
from .protocol import PaperTransition
from .supergraph import Supergraph, derive_supergraph

MOST_NAMED = 4  # edges or switches listed in a sentence

PRINTED = (
    "Algorithm 5, line 6, numbers layers from 0, while all that follows counts from 1.",
    "Equation 5.2 compares the source of one edge with the target of the other; source with source is meant.",
)


def findings(graph: Supergraph, transitions: Sequence[PaperTransition]) -> tuple[str, ...]:
    """Misprints, and the effect of each on this application."""
    return (*PRINTED, *_literal(graph), *_races(transitions), *_lost_steps(graph, transitions))


def _literal(graph: Supergraph) -> Iterator[str]:
    """Layers of one scenario that line 4, taken literally, would merge."""
    literal = derive_supergraph(graph.scenarios, graph.share, is_literal=True)
    merged = len(graph.layers) - len(literal.layers)
    if not merged:
        return
    loops = [edge.name for edge in literal.edges if edge.ends[0] == edge.ends[1]]
    tail = f"; {listed(loops)} would be read and written in the same step" if loops else ""
    yield (
        f"Algorithm 5, line 4, taken literally, lets layers of one scenario share: {text.plural(merged, 'layer')} fewer"
        f"{tail}. Here a supergraph layer captures at most one layer of each scenario."
    )


def _races(transitions: Sequence[PaperTransition]) -> Iterator[str]:
    """Edges that both scenarios use at once under the printed X."""
    racing = [
        f"{one.old} → {one.new} on {listed([f'{hazard.edge} at φ{hazard.control_step}' for hazard in one.hazards])}"
        for one in transitions
        if one.hazards
    ]
    if racing:
        yield f"Algorithm 6 looks at layers alone, so switches race on edges that both use: {listed(racing, '; ')}."


def _lost_steps(graph: Supergraph, transitions: Sequence[PaperTransition]) -> Iterator[str]:
    losing = [
        f"{one.old} → {one.new} loses step {len(graph.sequences[one.new])}"
        for one in transitions
        if one.loses_last_step
    ]
    if losing:
        yield (
            "Algorithm 7, line 6, wraps with (i + 1) mod |L|, which comes to step 0, so that the new scenario begins "
            f"again: {listed(losing, '; ')}. i + 1 is meant."
        )


def listed(names: Sequence[str], separator: str = ", ") -> str:
    """The first few, and the number of the rest."""
    more = len(names) - MOST_NAMED
    return separator.join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
