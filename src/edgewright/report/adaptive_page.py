"""The page of scenarios that switch at run time: the worst switch over time, all delays, the arena, delay against
memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from .. import text
from ..adaptive.delays import DelayOutcome, PolicyDelays
from ..adaptive.front import SwitchLayout
from ..program.switching import SwitchPolicy
from .charts import FOOT, LEFT, RIGHT, TOP, Axis, Card, ChartPoint, asset, dots, grid, html_page, opening
from .switch_map import switch_map_svg
from .switch_timeline import switch_timeline_svg

MEANINGS = {
    SwitchPolicy.FINISH: "the frame under way ends, then the new scenario starts",
    SwitchPolicy.OVERLAP: "the frame under way ends while the new scenario starts on another processor",
    SwitchPolicy.OVERTAKE: "the new scenario runs first, where the old frame keeps its memory",
    SwitchPolicy.ABORT: "the new scenario computes the frame under way instead",
}


@dataclass(frozen=True, slots=True)
class SwitchMatrix:
    """Worst delays under a policy: a row for each old scenario, a column for each new one."""

    policy: str
    meaning: str
    rows: tuple[tuple[str, tuple[tuple[str, float], ...]], ...]  # the delay as a share of the largest one on the page


def adaptive_page(outcome: DelayOutcome) -> str:
    """One self-contained HTML document without a script."""
    application = outcome.application
    chosen = next(one for one in outcome.policies if one.policy is application.file.adapt.policy)
    layout = chosen.layout
    old, new = max(layout.delays, key=lambda pair: layout.delays[pair])
    worst = layout.transitions[old, new]
    arrival = max(worst.old.critical_arrivals, key=worst.delay)
    styles = ("page.css", "map.css", "charts.css", "application.css", "adaptive.css")
    return html_page(
        "adaptive.html",
        application.file.name,
        "".join(map(asset, styles)),
        about=" · ".join(
            (
                text.plural(len(application.scenarios), "scenario"),
                f'policy "{chosen.policy.value}"',
                text.plural(application.file.adapt.processors, "processor"),
                application.target.name,
            )
        ),
        cards=tuple(_cards(chosen)),
        notes=[*map(text.printable, application.notes), outcome.judged],
        policy=chosen.policy.value,
        meaning=MEANINGS[chosen.policy],
        pair=(text.printable(old), text.printable(new)),
        timeline=Markup(switch_timeline_svg(worst.timeline(arrival))),
        names=[text.printable(one.name) for one in application.scenarios],
        matrices=tuple(_matrices(outcome)),
        left_out=[f"{policy.value} {why}" for policy, why in outcome.left_out.items()],
        map=Markup(switch_map_svg(layout)),
        plot=Markup("".join(_front_plot(outcome.policies, layout))),
        front=[(one.policy.value, each) for one in outcome.policies for each in one.switching.layouts],
        largest=_largest(chosen),
        paper=outcome.paper,
    )


def _largest(chosen: PolicyDelays) -> int:
    return max(1, *(one.plan.peak_bytes for one in chosen.switching.plans))


def _cards(chosen: PolicyDelays) -> Iterator[Card]:
    layout, largest = chosen.layout, _largest(chosen)
    proof = "least for these plans and this limit"
    bound = f"no layout for this limit takes less than {text.size(layout.bound_bytes)}"
    yield Card(
        "Arena for all scenarios", text.size(layout.arena_bytes), proof if layout.is_least else bound, layout.is_least
    )
    yield Card(
        "Of the largest scenario", f"{layout.arena_bytes / largest:.2f}", f"which takes {text.size(largest)} alone"
    )
    yield Card(
        "Worst switching delay", text.duration(layout.worst_delay), "of any switch, for any moment of the request"
    )
    separate = sum(one.plan.peak_bytes for one in chosen.switching.plans)
    yield Card("Separate arenas", text.size(separate), "if every scenario had its own")


def _matrices(outcome: DelayOutcome) -> Iterator[SwitchMatrix]:
    names = [one.name for one in outcome.application.scenarios]
    most = max((delay.worst for one in outcome.policies for delay in one.delays.values()), default=0.0) or 1.0
    for one in outcome.policies:
        rows = []
        for old in names:
            delays = [one.delays.get((old, new)) for new in names]
            cells = tuple(("", 0.0) if d is None else (text.duration(d.worst), d.worst / most) for d in delays)
            rows.append((text.printable(old), cells))
        yield SwitchMatrix(one.policy.value, MEANINGS[one.policy], tuple(rows))


def _front_plot(
    policies: Sequence[PolicyDelays], chosen: SwitchLayout, width: int = 860, height: int = 380
) -> Iterator[str]:
    """Worst delay over arena size, with a line for each policy that has several layouts."""
    layouts = [each for one in policies for each in one.switching.layouts]
    unit, name = (1.0, "s") if max(one.worst_delay for one in layouts) >= 1 else (1e-3, "ms")
    across = Axis.around([one.arena_bytes for one in layouts], LEFT, width - RIGHT)
    up = Axis(0.0, 1.12 * max(one.worst_delay for one in layouts) / unit, height - FOOT, TOP)
    yield from opening("front", width, height, "arena size against the worst switching delay", False)
    yield from grid(across, up, ("arena, bytes", f"worst delay, {name}"), most=6)
    for number, one in enumerate(policies):
        points = [
            ChartPoint(
                across.at(each.arena_bytes),
                up.at(each.worst_delay / unit),
                f"{one.policy.value}\n{text.size(each.arena_bytes)}\n{text.duration(each.worst_delay)}",
                one.policy.value if each is one.switching.layouts[0] else "",
                f"point p{number}"
                if each.arena_bytes == chosen.arena_bytes and one.policy is chosen.policy
                else f"point open p{number}",
            )
            for each in sorted(one.switching.layouts, key=lambda each: each.arena_bytes)
        ]
        if len(points) > 1:
            steps = "".join(f"H{point.x:.1f}V{point.y:.1f}" for point in points)
            yield f'<path class="front p{number}" d="M{points[0].x:.1f} {TOP:g}{steps}H{across.end:g}"/>'
        yield from dots(points, width)
    yield "</svg>"
