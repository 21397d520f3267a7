"""Memory of the paper's model: a buffer for each edge of the supergraph, parameters once per layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .layers import ScenarioGraph
from .supergraph import IO_PAR_SHARE, IO_SHARE, NO_SHARE, derive_supergraph


@dataclass(frozen=True, slots=True)
class PaperBytes:
    """Bytes for A = {}, {I, O} and {I, O, par}, and with arbitrary addresses."""

    none: int
    io: int
    io_par: int
    exact: int


def shared_bytes(scenarios: Sequence[ScenarioGraph], arenas: Sequence[int]) -> tuple[PaperBytes, PaperBytes]:
    """Bytes of buffers, and of weights. `arenas` are those of the scenarios planned alone.

    Under `finish` nothing of two scenarios is in memory together, so the largest arena serves all. Equal weights are
    then stored once, wherever they are used.
    """
    none, io, io_par = (derive_supergraph(scenarios, share) for share in (NO_SHARE, IO_SHARE, IO_PAR_SHARE))
    blocks = {
        digest: size
        for scenario in scenarios
        for layer in scenario.layers
        for digest, size in layer.parameters.blocks.items()
    }
    return (
        PaperBytes(none.size, io.size, io_par.size, max(arenas)),
        PaperBytes(none.weight_bytes, io.weight_bytes, io_par.weight_bytes, sum(blocks.values())),
    )
