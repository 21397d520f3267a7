"""The page of an application: one memory map over all networks, their needs, and the cost of less RAM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from .. import text
from ..application.combinations import JointPlan
from ..application.outcome import AppOutcome
from ..memory.joint.layout import ARENA
from ..platform.chip_time import ERROR
from .application_map import application_map_svg, buffer_kind
from .charts import FOOT, LEFT, RIGHT, TOP, Axis, Card, ChartPoint, asset, dots, grid, html_page, opening

WIDE = 16  # characters of a card's figure


@dataclass(frozen=True, slots=True)
class AppNetworkRow:
    """The needs of a network, drawn as bars relative to the largest."""

    name: str
    ram: int
    share: float  # of the largest need, 0..1
    weights: int
    weight_share: float
    macs: int
    extra: str
    slowdown: str
    note: str


def application_page(outcome: AppOutcome, front: Sequence[JointPlan] = ()) -> str:
    """One self-contained HTML document without a script."""
    assert outcome.joint is not None, "only joint plans have a map"
    layout, application = outcome.joint.layout, outcome.application
    sizes = application.memories if layout.homes else {ARENA: outcome.ram}
    styles = ("page.css", "map.css", "charts.css", "dataflow.css", "application.css")
    return html_page(
        "application.html",
        application.file.name,
        "".join(map(asset, styles)),
        about=" · ".join(
            (
                text.plural(len(outcome.networks), "network"),
                text.plural(len(application.file.relations), "relation"),
                text.plural(len(layout.buffers), "buffer"),
                application.target.name,
                *((text.printable(application.board.name),) if application.board else ()),
            )
        ),
        cards=tuple(_cards(outcome)),
        notes=[text.printable(note) for note in outcome.notes],
        maps=[
            (memory if layout.homes else "", Markup(application_map_svg(outcome, memory, sizes.get(memory))))
            for memory in layout.arenas
        ],
        rows=tuple(_network_rows(outcome)),
        buffers=[
            (text.printable(b.name), buffer_kind(b), layout.home(b.name), layout.at(b.name), b.size)
            for b in sorted(layout.buffers, key=lambda b: (-b.size, b.name))
        ],
        responses=outcome.responses,
        board=text.printable(application.board.name) if application.board else "",
        time_error=ERROR,
        cascades=outcome.cascades,
        front=[(plan, _payers(plan)) for plan in front],
        plot=Markup("".join(_front_plot(front, outcome.peak_bytes))) if front else "",
    )


def _cards(outcome: AppOutcome) -> Iterator[Card]:
    assert outcome.joint is not None
    arenas = outcome.joint.layout.arenas
    where = "one arena for all" if len(arenas) == 1 else " + ".join(arenas)
    yield Card(f"RAM, {where}", text.size(outcome.peak_bytes), outcome.quality, outcome.optimal, _less(outcome))
    saved = text.percent(max(0, outcome.separate_bytes - outcome.peak_bytes), max(1, outcome.separate_bytes))
    yield Card("Separate arenas", text.size(outcome.separate_bytes), f"one arena saves {saved}")
    yield Card("Weights", text.rounded_size(outcome.flash_bytes), "what networks have in common is stored once")
    if outcome.ram is not None:
        free = outcome.ram - outcome.peak_bytes
        yield Card("Free", text.size(free), f"of {text.size(outcome.ram)}")
    setters = text.printable(", ".join(outcome.setters))
    figure = setters if len(setters) <= WIDE else text.plural(len(outcome.setters), "owner")
    told = "must shrink before the arena can"
    yield Card("Set by", figure, told if figure == setters else f"one of {setters} {told}")


def _less(outcome: AppOutcome) -> str:
    """The next plan with less RAM, and what it costs; empty: none is known."""
    plan = next((plan for _, plan in outcome.next if plan is not None), None)
    if plan is None:
        return ""
    return f"{text.size(plan.peak_bytes)} with a slow-down of {plan.slowdown:.1%} ({_payers(plan)})"


def _network_rows(outcome: AppOutcome) -> Iterator[AppNetworkRow]:
    assert outcome.joint is not None
    weights = {name: n.weight_bytes for name, n in outcome.application.networks.items()}
    most, heaviest = max(1, outcome.peak_bytes), max(1, *weights.values())
    for name, one in outcome.networks.items():
        yield AppNetworkRow(
            text.printable(name),
            one.peak_bytes,
            min(1.0, one.peak_bytes / most),
            weights[name],
            weights[name] / heaviest,
            one.macs,
            f"{one.macs / max(1, one.macs_plain) - 1:.1%}",
            f"{max(0.0, one.slowdown):.1%}",
            "sets the peak" if name in outcome.setters else "",
        )


def _payers(plan: JointPlan) -> str:
    return text.printable(", ".join(plan.payers)) or "nobody"


def _percent(plan: JointPlan) -> float:
    return 100 * max(0.0, plan.slowdown)


def _front_plot(front: Sequence[JointPlan], chosen: int, width: int = 860, height: int = 340) -> Iterator[str]:
    """Slow-down over RAM; the filled dot is the plan of the page."""
    across = Axis.around([plan.peak_bytes for plan in front], LEFT, width - RIGHT)
    up = Axis(0.0, 1.12 * (max(map(_percent, front)) or 1.0), height - FOOT, TOP)
    yield from opening("front", width, height, "RAM against slow-down", False)
    yield from grid(across, up, ("RAM, bytes", "slow-down of all networks, summed"), labels=("{}", "{} %"), most=6)
    points = [
        ChartPoint(
            across.at(plan.peak_bytes),
            up.at(_percent(plan)),
            f"{text.size(plan.peak_bytes)}\nslow-down {plan.slowdown:.1%}\n{_payers(plan)}",
            text.count(plan.peak_bytes),
            "point" if plan.peak_bytes == chosen else "point open",
        )
        for plan in sorted(front, key=lambda plan: (plan.peak_bytes, plan.slowdown))
    ]
    steps = "".join(f"H{point.x:.1f}V{point.y:.1f}" for point in points)
    yield f'<path class="front" d="M{points[0].x:.1f} {TOP:g}{steps}H{across.end:g}"/>'
    yield from dots(points, width)
    yield "</svg>"
