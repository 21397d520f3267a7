"""The page of a compiled model: verdict, figures, cost of each layer, memory map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from .. import text
from ..emit.figures import Figures, LayerCost, difference, verdict
from ..platform.chip_time import ERROR
from ..program import Plan
from .charts import asset, html_page
from .graph import network_graph_svg
from .memory_map import memory_map_svg, side_by_side
from .page import Gauge, plan_style, ram_gauge


@dataclass(frozen=True, slots=True)
class CostRow:
    position: int
    cost: LayerCost
    share: float  # of the most expensive layer's instructions, 0..1
    rate: float  # instructions per MAC as a share of the highest, 0..1


def compiled_page(
    plan: Plan,
    figures: Figures,
    *,
    critical: Sequence[str] = (),
    ram: int | None = None,
    flash: int | None = None,
    before: Plan | None = None,
) -> str:
    """A self-contained HTML document without a script; the same figures give the same bytes.

    With `before`, a simpler plan of the same network, the two maps are drawn side by side.
    """
    code = (figures.flash_code or 0) + (figures.flash_runtime or 0)
    return html_page(
        "compiled.html",
        figures.model,
        plan_style() + asset("compiled.css"),
        plan=plan,
        figures=figures,
        verdict=text.printable(verdict(figures)),
        difference=difference,
        notes=[text.printable(note) for note in (*_missing(figures), *figures.notes, *plan.network.notes)],
        gauges=(
            ram_gauge(plan, ram),
            Gauge("Flash" if figures.flash_code is not None else "Weights", figures.flash_weights + code, flash),
        ),
        proof=plan.quality if plan.optimal else "",
        split=_split(figures),
        time_error=ERROR,
        rows=cost_rows(figures),
        memory_map=Markup(memory_map_svg(plan, critical=critical, ram=ram, standalone=False)),
        graph=Markup(network_graph_svg(plan, standalone=False)),
        before=before,
        sides=[Markup(svg) for svg in side_by_side(before, plan)] if before else (),
    )


def _missing(figures: Figures) -> list[str]:
    return [f"not compared with the model's own runtime: {figures.missing}"] if figures.missing else []


def cost_rows(figures: Figures) -> tuple[CostRow, ...]:
    most = max((cost.instructions or 0 for cost in figures.layers), default=0) or 1
    highest = max((cost.per_mac or 0.0 for cost in figures.layers), default=0.0) or 1.0
    return tuple(
        CostRow(i, cost, (cost.instructions or 0) / most, (cost.per_mac or 0.0) / highest)
        for i, cost in enumerate(figures.layers)
    )


def _split(figures: Figures) -> tuple[tuple[str, int, float], ...]:
    """The contents of flash: (name, bytes, share)."""
    parts = [
        ("weights", figures.flash_weights),
        ("code", figures.flash_code or 0),
        ("runtime", figures.flash_runtime or 0),
    ]
    total = sum(size for _, size in parts) or 1
    return tuple((name, size, size / total) for name, size in parts if size)
