"""The page of a design flow: the selected points, all augmented points in plots and a table, the firmware."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote

from markupsafe import Markup

from .. import text
from ..flow.design_flow import FlowOutcome, FlowSelection, network_of
from ..search.front import DesignPoint
from ..search.pricing import Manner
from .charts import FOOT, LEFT, RIGHT, TOP, Axis, Card, ChartPoint, asset, dots, grid, html_page, opening

WIDTH, HEIGHT = 620.0, 380.0
ORDER = {manner.value: number for number, manner in enumerate(Manner)}


@dataclass(frozen=True, slots=True)
class FlowPointRow:
    """A row of the table of augmented points."""

    name: str
    manner: str
    figures: tuple[str, ...]
    selected_for: str
    plan_page: str  # empty without a page
    command: str


@dataclass(frozen=True, slots=True)
class FlowSelectionRow:
    """A requirement set, the point selected for it, and the point selected without augmentation."""

    name: str
    requirement: str
    point: str
    figures: tuple[str, ...]
    before: str
    before_figures: tuple[str, ...]
    command: str


def flow_page(outcome: FlowOutcome, plan_pages: Mapping[str, str] = {}) -> str:
    """The page, a self-contained HTML document; `plan_pages` maps point names to the paths of their plans' pages."""
    metric = outcome.points.metric
    has_energy = any(point.energy_j is not None for point in outcome.augmented.points)
    selected: dict[str, list[str]] = {}
    for one in outcome.selections:
        selected.setdefault(one.point.name, []).append(one.entry.name)
    return html_page(
        "flow.html",
        outcome.file.name,
        asset("page.css") + asset("charts.css") + asset("flow.css"),
        board=text.printable(outcome.board),
        task=text.printable(outcome.points.task),
        metric=metric.replace("_", "-"),
        has_energy=has_energy,
        cards=_cards(outcome),
        notes=outcome.notes,
        selections=[_selection(one, metric, has_energy) for one in outcome.selections],
        better=sum(one.is_better for one in outcome.selections),
        plots=[Markup(plot) for plot in _plots(outcome.augmented.points, metric, selected)],
        rows=[_row(point, metric, has_energy, selected, plan_pages) for point in outcome.augmented.points],
        manners=[one for one in ORDER if any(point.manner == one for point in outcome.augmented.points)],
        order=ORDER,
        left_out=outcome.left_out,
        firmware=outcome.sentence if outcome.firmware is not None else "",
        again=f"edgewright flow FLOW.TOML -o {quote(str(outcome.folder))}",
    )


def _cards(outcome: FlowOutcome) -> list[Card]:
    points = outcome.augmented.points
    metric = outcome.points.metric
    best = max(getattr(point, metric) for point in points)
    least = min(points, key=lambda point: point.ram_bytes)
    manners = len({point.manner for point in points})
    cards = [
        Card("networks", text.count(len(outcome.points.points)), f"of task {text.printable(outcome.points.task)}"),
        Card("augmented points", text.count(len(points)), f"{text.plural(manners, 'manner')} of execution"),
        Card(f"highest {metric.replace('_', '-')}", f"{best:.1%}", "on the validation data"),
        Card("least RAM", text.size(least.ram_bytes), text.printable(least.name)),
    ]
    arena = (outcome.firmware or {}).get("ram_bytes") or (outcome.firmware or {}).get("arena_bytes")
    if arena:
        verified = bool((outcome.firmware or {}).get("verified"))
        cards.append(
            Card("firmware", text.size(int(arena)), "of RAM, verified" if verified else "of RAM", is_proven=verified)
        )
    return cards


def _figures(point: DesignPoint, metric: str, has_energy: bool) -> tuple[str, ...]:
    energy = "–" if point.energy_j is None else f"{text.three_digits(1e3 * point.energy_j)} mJ"
    return (
        f"{getattr(point, metric):.2%}",
        text.count(point.ram_bytes),
        text.count(point.flash_bytes),
        text.rounded_count(point.instructions),
        text.duration(point.latency_s),
        text.three_digits(point.throughput),
        *((energy,) if has_energy else ()),
    )


def _selection(one: FlowSelection, metric: str, has_energy: bool) -> FlowSelectionRow:
    before = one.before.best if one.before else None
    return FlowSelectionRow(
        text.printable(one.entry.name),
        text.printable(", ".join([str(one.entry.requirement), *map(str, one.entry.figure_limits)])),
        text.printable(one.point.name),
        _figures(one.point, metric, has_energy),
        "none keeps the limits" if before is None else text.printable(before.name) if one.is_better else "the same",
        _figures(before, metric, has_energy) if before and one.is_better else (),
        text.printable(one.point.command),
    )


def _row(
    point: DesignPoint, metric: str, has_energy: bool, selected: Mapping[str, Sequence[str]], pages: Mapping[str, str]
) -> FlowPointRow:
    return FlowPointRow(
        text.printable(network_of(point)),
        text.printable(point.manner),
        _figures(point, metric, has_energy),
        text.printable(", ".join(selected.get(point.name, ()))),
        pages.get(point.name, ""),
        text.printable(point.command),
    )


def _plots(points: Sequence[DesignPoint], metric: str, selected: Mapping[str, Sequence[str]]) -> Iterator[str]:
    title = metric.replace("_", "-")
    yield _scatter(points, metric, selected, "ram_bytes", ("RAM, B", title))
    yield _scatter(points, metric, selected, "latency_s", ("time of a frame, ms", title), 1e3)
    if all(point.energy_j is not None for point in points):
        yield _scatter(points, metric, selected, "energy_j", ("energy of a frame, mJ", title), 1e3)


def _scatter(
    points: Sequence[DesignPoint],
    metric: str,
    selected: Mapping[str, Sequence[str]],
    measure: str,
    titles: tuple[str, str],
    factor: float = 1.0,
) -> str:
    """All points by accuracy and one other measure; lines connect the points of one network."""
    across = [factor * getattr(point, measure) for point in points]
    up = [100 * getattr(point, metric) for point in points]
    x = _axis(across, LEFT, WIDTH - RIGHT)
    y = _axis(up, HEIGHT - FOOT, TOP)
    lines = [*opening("front flow", WIDTH, HEIGHT, f"{titles[1]} against {titles[0]}", False)]
    lines += grid(x, y, titles, labels=("{}", "{} %"))
    networks: dict[str, list[int]] = {}
    for at, point in enumerate(points):
        networks.setdefault(network_of(point), []).append(at)
    for members in networks.values():
        left, right = min(across[at] for at in members), max(across[at] for at in members)
        lines.append(f'<path class="network" d="M{x.at(left):.1f} {y.at(up[members[0]]):.1f}H{x.at(right):.1f}"/>')
    chosen = [at for at, point in enumerate(points) if point.name in selected]
    drawn = [at for at in range(len(points)) if at not in chosen]
    for group, radius in ((drawn, 4.0), *(([at], 6.5) for at in chosen)):
        lines += dots(
            (
                ChartPoint(
                    x.at(across[at]),
                    y.at(up[at]),
                    text.printable(f"{points[at].name}: {text.three_digits(across[at])}, {up[at]:.2f} %"),
                    ", ".join(selected.get(points[at].name, ())),
                    f"point m{ORDER.get(points[at].manner, 0)}" + (" selected" if at in chosen else ""),
                    radius,
                )
                for at in group
            ),
            WIDTH - RIGHT,
        )
    return "".join([*lines, "</svg>"])


def _axis(values: Sequence[float], start: float, end: float) -> Axis:
    low, high = min(values), max(values)
    margin = 0.08 * (high - low) or max(0.5, 0.1 * abs(high)) or 1.0
    return Axis(low - margin, high + margin, start, end)
