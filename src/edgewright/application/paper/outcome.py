"""Applications planned by the paper's algorithms, with the figures of a joint plan."""

from __future__ import annotations

from ... import text
from ...errors import Infeasible
from ..draft import Application
from ..outcome import AppOutcome, NetworkFigures, available_ram, check_flash, flash_bytes, flash_notes
from .edges import paper_application
from .reduction import reduce_buffers
from .reuse import exact, naive, reuse, total


def paper_outcome(application: Application, ram: int | None = None, *, is_exact: bool = False) -> AppOutcome:
    """Algorithms 8 to 10, or the least memory for the same edges and phases."""
    there = ram if ram is not None else available_ram(application)
    paper = paper_application(application)
    whole = paper.edges({})
    point, fits = reduce_buffers(paper, there)
    reused = exact(whole, paper.meet).peak if is_exact else total(reuse(whole, paper.meet))
    parts = exact(point.edges, paper.meet).peak if is_exact else point.memory
    peak, edges = (reused, whole) if there is None or reused <= there else (parts, point.edges)
    if not fits and there is not None and peak > there:
        raise Infeasible(
            f"does not fit: layers by parts need {text.size(peak)} of RAM at least, and {text.size(there)} are there; "
            "leave --method out, or raise the limit"
        )
    check_flash(application)
    alone = {name: [edge for edge in edges if edge.network == name] for name in application.networks}
    sizes = {name: exact(x, paper.meet).peak if is_exact else total(reuse(x, paper.meet)) for name, x in alone.items()}
    return AppOutcome(
        application,
        "exact" if is_exact else "paper",
        peak,
        exact(edges, paper.meet).bound,
        sum(sizes.values()),
        flash_bytes(application),
        {
            name: NetworkFigures(
                sizes[name],
                network.total_macs,
                network.total_macs,
                dict(zip(application.networks, point.slowdowns, strict=True))[name] if edges is not whole else 0.0,
            )
            for name, network in application.networks.items()
        },
        ram=there,
        notes=flash_notes(application),
        paper={"none_bytes": naive(whole), "reuse_bytes": reused, "parts_bytes": parts},
        phases={name: tuple(sorted(genes)) for name, genes in point.genes.items() if genes},
    )
