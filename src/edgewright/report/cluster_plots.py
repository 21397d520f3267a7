"""Charts that compare cluster plans: speed-up and memory over the number of devices, or over each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape

from .. import text
from ..cluster.planning import ClusterPlan
from ..cluster.strategies import HYBRID
from .charts import FOOT, LEFT, RIGHT, TOP, Axis, ChartPoint, dots, grid, opening

WIDTH, HEIGHT, LABELS = 1060.0, 400.0, 120.0  # px; LABELS is the margin for the names of the lines
APART = 13.0  # px, minimum distance of two names


def speedup_svg(plans: Sequence[ClusterPlan]) -> str:
    """Frames per second relative to one device."""
    return _plot(plans, "speed-up over one device", lambda plan: plan.speedup, float, "as fast as all together")


def fullest_svg(plans: Sequence[ClusterPlan]) -> str:
    """Memory of the fullest device relative to one device with whole layers."""

    def share(plan: ClusterPlan) -> float:
        return 100 * plan.fullest / plan.single_bytes

    return _plot(plans, "fullest device, % of one device", share, lambda count: 100 / count, "an equal share")


def exchange_svg(plans: Sequence[ClusterPlan]) -> str:
    """Speed-up over memory, for plans with one number of devices."""
    shares = [100 * plan.fullest / plan.single_bytes for plan in plans]
    across = Axis(0.0, 1.12 * max(shares), LEFT, WIDTH - RIGHT)
    up = Axis(0.0, 1.12 * max(plan.speedup for plan in plans), HEIGHT - FOOT, TOP)
    points = (
        ChartPoint(
            across.at(share),
            up.at(plan.speedup),
            f"{plan.strategy}: {share:.3g} %, {plan.speedup:.3g} ×",
            plan.strategy,
            "point" if plan.strategy == HYBRID else "point open",
        )
        for share, plan in sorted(zip(shares, plans, strict=True), key=lambda pair: pair[0])
    )
    titles = "fullest device, % of one device", "speed-up over one device"
    return "".join(
        (
            *opening("front", WIDTH, HEIGHT, "speed-up against memory", False),
            *grid(across, up, titles),
            *dots(points, across.end),
            "</svg>",
        )
    )


def _plot(
    plans: Sequence[ClusterPlan],
    title: str,
    figure: Callable[[ClusterPlan], float],
    ideal: Callable[[int], float],
    ideal_words: str,
) -> str:
    strategies = list(dict.fromkeys(plan.strategy for plan in plans))
    sizes = sorted({len(plan.cluster.devices) for plan in plans})
    most = max(*map(figure, plans), *map(ideal, sizes))
    across = Axis(sizes[0] - 0.3, sizes[-1] + 0.3, LEFT, WIDTH - RIGHT - LABELS)
    up = Axis(0.0, 1.06 * most, HEIGHT - FOOT, TOP)
    lines = {
        name: sorted((len(plan.cluster.devices), figure(plan)) for plan in plans if plan.strategy == name)
        for name in strategies
    }
    return "".join(
        (
            *opening("sizes", WIDTH, HEIGHT, escape(title), False),
            *_grid(across, up, sizes, title),
            *_ideal(across, up, sizes, ideal),
            *(part for name in strategies for part in _line(name, strategies.index(name), lines[name], across, up)),
            *_names(strategies, lines, (ideal_words, ideal(sizes[-1])), across, up),
            "</svg>",
        )
    )


def _grid(across: Axis, up: Axis, sizes: Sequence[int], title: str) -> Iterator[str]:
    every = -(-len(sizes) // 24)
    for size in sizes[::every]:
        x = across.at(size)
        yield f'<path class="grid" d="M{x:.1f} {TOP:g}V{up.start + 4:g}"/>'
        yield f'<text class="middle" x="{x:.1f}" y="{up.start + 18:g}">{size}</text>'
    for value, label in up.ticks(7):
        y = up.at(value)
        yield f'<path class="grid" d="M{LEFT:g} {y:.1f}H{across.end:g}"/>'
        yield f'<text class="end" x="{LEFT - 8:g}" y="{y + 4:.1f}">{label}</text>'
    yield f'<text class="middle" x="{(LEFT + across.end) / 2:.0f}" y="{up.start + 38:g}">devices</text>'
    place = f"translate({LEFT - 58:g} {(TOP + up.start) / 2:.0f}) rotate(-90)"
    yield f'<text class="middle" transform="{place}">{escape(title)}</text>'


def _ideal(across: Axis, up: Axis, sizes: Sequence[int], ideal: Callable[[int], float]) -> Iterator[str]:
    points = " ".join(f"{across.at(size):.1f},{up.at(ideal(size)):.1f}" for size in sizes)
    yield f'<polyline class="ideal" points="{points}"/>'


def _line(name: str, number: int, figures: Sequence[tuple[int, float]], across: Axis, up: Axis) -> Iterator[str]:
    style = "hybrid" if name == HYBRID else f"c{number % 8}"
    yield f'<g class="{style}">'
    points = " ".join(f"{across.at(size):.1f},{up.at(value):.1f}" for size, value in figures)
    yield f'<polyline class="line" points="{points}"/>'
    for size, value in figures:
        told = escape(f"{name}, {text.plural(size, 'device')}: {value:.3g}")
        yield f'<circle cx="{across.at(size):.1f}" cy="{up.at(value):.1f}" r="3.2"><title>{told}</title></circle>'
    yield "</g>"


def _names(
    strategies: Sequence[str],
    lines: dict[str, list[tuple[int, float]]],
    ideal: tuple[str, float],
    across: Axis,
    up: Axis,
) -> Iterator[str]:
    """The names at the ends of the lines, moved apart so that they do not overlap."""
    wanted = [
        (up.at(lines[name][-1][1]), name, "hybrid" if name == HYBRID else f"c{number % 8}")
        for number, name in enumerate(strategies)
    ]
    wanted = sorted([*wanted, (up.at(ideal[1]), ideal[0], "ideal")])
    room = up.start + 8 - APART * len(wanted)
    y = -APART
    for number, (height, name, style) in enumerate(wanted):
        y = max(y + APART, min(height, room + APART * number))
        yield f'<text class="{style}" x="{across.end + 10:.1f}" y="{y + 4:.1f}">{escape(name)}</text>'
