"""The page of a plan as one HTML document; pictures and rows come from other modules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from .. import text
from ..kernels.cost.run_time import RunTime
from ..program import Plan
from .charts import asset, html_page
from .graph import network_graph_svg, technique_class, technique_style
from .memory_map import memory_map_svg, side_by_side
from .occupancy import Occupancy
from .rows import critical_rows, saving_rows, stage_rows, tensor_rows
from .tiles_view import fusion_group_views


@dataclass(frozen=True, slots=True)
class Gauge:
    """A need against a limit, drawn as a bar."""

    name: str
    need: int
    limit: int | None
    parts: str = ""  # the components of the need
    proven: str = ""  # the part of the need that a proof covers, as the beginning of a phrase; empty: all of it
    less: str = ""  # a cheaper alternative

    @property
    def fits(self) -> bool:
        return self.limit is None or self.need <= self.limit

    @property
    def verdict(self) -> str:
        """The margin or the excess; empty without a limit."""
        if self.limit is None:
            return ""
        if self.fits:
            return f"{text.size(self.limit - self.need)} of {text.size(self.limit)} stay free"
        missing = self.need - self.limit
        share = text.percent(missing, self.limit)
        return f"{text.size(missing)} ({share}) more than the {text.size(self.limit)} there are"

    @property
    def bar(self) -> tuple[float, float]:
        """The fill of the bar and the position of the limit, in percent."""
        most = max(self.need, self.limit or 0, 1)
        return 100 * self.need / most, 100 * (self.limit or 0) / most


def plan_page(
    plan: Plan,
    *,
    critical: Sequence[str] = (),
    ram: int | None = None,
    flash: int | None = None,
    title: str | None = None,
    before: Plan | None = None,
    not_counted: str = "",
    time: RunTime | None = None,
) -> str:
    """A self-contained HTML document.

    `critical` names the buffers that set the peak (S 4.3.3); `ram` and `flash` are the board's limits in bytes. With
    `before`, a simpler plan of the same network, the two maps are drawn side by side. `not_counted` says why code and
    stack are missing, `time` is the estimated time of a run.
    """
    occupancy = Occupancy(plan)
    return html_page(
        "page.html",
        title or plan.network.name,
        plan_style(),
        script=asset("page.js") + asset("tiles.js"),
        plan=plan,
        model=text.printable(plan.network.name),
        notes=[text.printable(note) for note in (*plan.notes, *plan.network.notes)],
        free=[text.printable(name) for name in plan.free],
        proof=plan.quality,
        gauges=(ram_gauge(plan, ram), flash_gauge(plan, flash, not_counted)),
        savings=saving_rows(plan),
        critical=critical_rows(occupancy, critical),
        stages=stage_rows(occupancy),
        time=time,
        tensors=tensor_rows(occupancy),
        memories=tuple(plan.arenas.items()),
        graph=Markup(network_graph_svg(plan, standalone=False, work=occupancy.work)),
        groups=fusion_group_views(occupancy),
        technique_class=technique_class,
        before=before,
        sides=[Markup(svg) for svg in side_by_side(before, plan)] if before else (),
        memory_map=Markup(memory_map_svg(plan, critical=critical, ram=ram, interactive=True)),
    )


def ram_gauge(plan: Plan, limit: int | None) -> Gauge:
    """The arenas, plus the stack if it is known."""
    stack, less = plan.stack_bytes, " ".join(filter(None, plan.less_ram))
    if stack is None:
        return Gauge("Peak RAM", plan.peak_bytes, limit, less=less)
    parts = f"arenas {text.size(plan.peak_bytes)}, stack at most {text.size(stack)}"
    return Gauge("RAM", plan.peak_bytes + stack, limit, parts, "arenas: ", less)


def flash_gauge(plan: Plan, limit: int | None, not_counted: str = "") -> Gauge:
    """Everything that is linked, or the weights alone."""
    linked = plan.linked
    if linked is None:
        parts = f"weights alone; code and stack are not counted: {text.printable(not_counted)}" if not_counted else ""
        return Gauge("Flash", plan.flash_bytes, limit, parts)
    parts = (
        f"weights {text.size(linked.weights_bytes)}, code {text.size(linked.code_bytes)}, what it calls "
        f"{text.size(linked.runtime_bytes)}, with {text.printable(linked.compiler)}"
    )
    return Gauge("Flash", linked.flash_bytes, limit, parts)


def plan_style() -> str:
    """The CSS of pages that show plans."""
    sheets = ("page.css", "map.css", "graph.css", "tiles.css")
    return "".join(map(asset, sheets)) + technique_style()
