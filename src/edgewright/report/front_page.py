"""The page of a search: RAM against MACs, and every point with its memory map, its graph and how to compile it."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import ceil
from shlex import quote

from markupsafe import Markup

from .. import text
from ..program import Plan
from ..program.techniques import Technique, layer_techniques
from .assets import asset
from .front_plot import front_svg, overhead
from .graph import network_graph_svg, technique_class
from .memory_map import memory_map_svg
from .page import environment, plan_style

MAP_HEIGHT = 260  # px
HIGHEST = 3  # times its own peak: a plain plan above that does not set the scale of a point's map


@dataclass(frozen=True, slots=True)
class PointRow:
    """One point of the front as its table and its panel show it."""

    number: int
    peak: int
    share: str  # of the plain plan's peak
    load: float  # the same, 0..1
    macs: int
    overhead: str
    techniques: tuple[tuple[Technique, int], ...]  # with the number of layers
    time: str
    proof: str
    command: str
    memory_map: Markup
    graph: Markup


def front_page(
    plans: Sequence[Plan],
    *,
    plain: Plan,
    title: str | None = None,
    model: str | None = None,
    commands: Sequence[str] | None = None,
    estimates: Sequence[float] | None = None,
) -> str:
    """One self-contained HTML document; the same plans give the same bytes.

    `plain` is what points are compared with, `model` the file that command lines name, `commands` those lines where
    they are known better, `estimates` seconds for one run of each point.
    """
    highest = (
        plain.peak_bytes if plain.peak_bytes <= HIGHEST * max((p.peak_bytes for p in plans), default=0) else 0
    )
    rows = tuple(
        _row(plan, number, plain, highest, estimates, commands, model) for number, plan in enumerate(plans)
    )
    script = asset("front.js")
    return (
        environment()
        .get_template("front.html")
        .render(
            text=text,
            plain=plain,
            rows=rows,
            title=text.printable(title or plain.network.name),
            model=text.printable(plain.network.name),
            board=text.printable(plain.board) if plain.board else "",
            least=min(plans, key=lambda plan: (plan.peak_bytes, plan.macs), default=plain),
            overhead=_percent,
            technique_class=technique_class,
            plot=Markup(front_svg(plans, plain=plain, width=1120, standalone=False)),
            same_scale=bool(highest),
            plain_map=Markup(_map(plain, highest or plain.peak_bytes)),
            style=Markup(plan_style() + asset("charts.css") + asset("front.css")),
            script=Markup(script),
            script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        )
    )


def compile_command(plan: Plan, model: str | None = None) -> str:
    """The command line that arrives at a plan as small with as little work."""
    return f"edgewright compile {quote(model or plan.network.name)} {limits(plan)}"


def limits(plan: Plan) -> str:
    """The options that ask for a plan as small with as little work."""
    extra = ceil(10 * overhead(plan) - 1e-9) / 10
    board = f"--board {quote(plan.board)} " if plan.board else ""
    return f"{board}--ram {plan.peak_bytes} --max-overhead {extra:g}%"


def _row(
    plan: Plan,
    number: int,
    plain: Plan,
    highest: int,
    estimates: Sequence[float] | None,
    commands: Sequence[str] | None,
    model: str | None,
) -> PointRow:
    used = Counter(layer_techniques(plan).values())
    return PointRow(
        number,
        plan.peak_bytes,
        text.percent(plan.peak_bytes, plain.peak_bytes),
        plan.peak_bytes / plain.peak_bytes if plain.peak_bytes else 0.0,
        plan.macs,
        _percent(plan),
        tuple((kind, used[kind]) for kind in Technique if used[kind] and kind is not Technique.FREE),
        _time(estimates[number]) if estimates else "",
        plan.standing,
        text.printable(commands[number] if commands else compile_command(plan, model)),
        Markup(_map(plan, highest)),
        Markup(network_graph_svg(plan, standalone=False, light=True)),
    )


def _map(plan: Plan, highest: int) -> str:
    return memory_map_svg(plan, width=570, height=MAP_HEIGHT, standalone=False, highest=highest)


def _percent(plan: Plan) -> str:
    return f"{overhead(plan):+.1f} %" if plan.macs != plan.macs_plain else "0 %"


def _time(seconds: float) -> str:
    """A time with three digits in the unit that suits it."""
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / 1e-6:.3g} µs"
