"""The page of a driver: registers bit by bit, savings per function, and why some accesses could not be merged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from .. import text
from ..hal.analysis.functions import Function, Regions
from ..hal.design import Act, Design, acts, total, totals
from ..hal.export.table import tables
from ..hal.layout.front import FrontPoint
from ..hal.verify import Verification
from .charts import Card, asset, html_page
from .pareto_plot import layout_plot_svg
from .register_map import COLOURS, KINDS, conflict_graph_svg, region_numbers, register_map_svg


@dataclass(frozen=True, slots=True)
class RegisterMapView:
    group: str
    devices: str
    size: int
    picture: Markup


@dataclass(frozen=True, slots=True)
class AccessRow:
    number: int
    kind: str
    name: str
    place: str
    region: int
    colour: int
    done: str  # what the accesses became


@dataclass(frozen=True, slots=True)
class FunctionView:
    anchor: str
    name: str
    place: str
    before: int
    after: int
    merged: int
    updates: int
    share: float  # of the most accesses that a function had, 0..1
    graph: Markup
    accesses: tuple[AccessRow, ...]
    conflicts: tuple[str, ...]
    kept: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckedRow:
    function: str
    calls: str
    accesses: str
    instructions: str
    code: str
    result: str


def hal_page(
    design: Design,
    before: Design,
    *,
    name: str,
    front: Sequence[FrontPoint] = (),
    verification: Verification | None = None,
) -> str:
    """One self-contained HTML document without a script; `before` has a register for each field."""
    return html_page(
        "hal.html",
        name,
        asset("page.css") + asset("charts.css") + asset("hal.css"),
        about=about(design),
        cards=(*cards(design, before), verification_card(verification)),
        verification=verification,
        checked=tuple(checked_rows(verification)) if verification else (),
        maps=tuple(map_views(design)),
        kinds=KINDS,
        functions=tuple(function_views(design, before)),
        front=front,
        plot=Markup(layout_plot_svg(front, standalone=False)) if front else "",
    )


def about(design: Design) -> str:
    """The driver in one line."""
    analysis = design.analysis
    fields = sum(len(list(group.fields)) for group in analysis.description.groups.values())
    parts = (
        text.plural(len(analysis.description.devices), "device"),
        text.plural(fields, "field"),
        text.plural(len(analysis.functions), "function"),
    )
    return " · ".join(parts)


def cards(design: Design, before: Design) -> Iterator[Card]:
    description, layout = design.analysis.description, design.layout
    was, now = sum(totals(before).values()), sum(totals(design).values())
    yield Card("Bus accesses in the code", f"{was} → {now}", f"{text.percent(now, was)} of one register per field")
    size, plain = layout.map_bytes(description), before.layout.map_bytes(description)
    yield Card("Register map", text.size(size), f"one register per field: {text.size(plain)}")
    updates = sum(act.is_update for f in design.analysis.functions for act in acts(design, f.name))
    yield Card("Read-modify-writes", text.count(updates), "writes that must keep other bits")
    proof = "least by estimate, proven of the estimate" if layout.optimal else "least by estimate that was found"
    about = proof if layout.made_by == "optimal" else "no estimate was minimised"
    yield Card("Layout", layout.made_by, about, layout.optimal)


def verification_card(verification: Verification | None) -> Card:
    if verification is None:
        return Card("Verification", "not run", "give --verify to run both on a virtual prototype")
    if verification.differences:
        return Card("Verification", "differs", text.plural(len(verification.differences), "difference"))
    if not verification.is_equal:
        return Card("Verification", "nothing compared", "no access was reached")
    told = f"registers see the same in {text.plural(verification.calls, 'call')} on {verification.target}"
    return Card("Verification", "same", text.printable(told), is_proven=True)


def checked_rows(verification: Verification) -> Iterator[CheckedRow]:
    different = {difference.function for difference in verification.differences}
    for one in verification.functions:
        was, now = one.naive, one.optimised
        result = "differs" if one.function in different else "same" if one.calls else "not compared"
        notes = [result, *filter(None, [one.left_out])]
        if one.unreached and one.calls:
            notes.append(f"never reached: {', '.join(one.unreached)}")
        yield CheckedRow(
            text.printable(one.function),
            text.count(one.calls),
            f"{was.accesses:,} → {now.accesses:,}",
            f"{was.instructions:,} → {now.instructions:,}",
            f"{was.code_bytes:,} → {now.code_bytes:,}",
            text.printable("; ".join(notes)),
        )


def map_views(design: Design) -> Iterator[RegisterMapView]:
    for table in tables(design):
        own = [d for d in design.analysis.description.devices if d.group == table.group]
        told = ", ".join(f"{device.name} {device.where}" for device in own)
        picture = Markup(register_map_svg(table))
        yield RegisterMapView(text.printable(table.group), text.printable(told), table.size, picture)


def function_views(design: Design, before: Design) -> Iterator[FunctionView]:
    was = totals(before)
    most = max(was.values(), default=0) or 1
    for n, function in enumerate(design.analysis.functions):
        regions, merging = design.analysis.regions[function.name], design.merging[function.name]
        now = acts(design, function.name)
        yield FunctionView(
            f"f{n}",
            text.printable(function.name),
            text.printable(f"{Path(function.place.file).name}:{function.place.line}"),
            was[function.name],
            total(now),
            sum(len(act.numbers) > 1 for act in now),
            sum(act.is_update for act in now),
            total(now) / most,
            Markup(conflict_graph_svg(function, regions)),
            tuple(access_rows(function, design, now)),
            conflicts(function, regions),
            pairs(function, [(k.first, k.second, k.reason) for k in merging.kept]),
        )


def access_rows(function: Function, design: Design, now: Sequence[Act]) -> Iterator[AccessRow]:
    regions = region_numbers(design.analysis.regions[function.name])
    became = {number: act for act in now for number in act.numbers}
    for access in function.accesses:
        region = regions.get(access.number, 0)
        yield AccessRow(
            access.number,
            access.kind.value,
            text.printable(access.name),
            f"line {access.place.line}",
            region,
            region % COLOURS,
            _replacement(became[access.number], access.number),
        )


def _replacement(act: Act, number: int) -> str:
    others = [str(other) for other in act.numbers if other != number]
    together = f"one access with {', '.join(others)}" if others else "by itself"
    return f"{together}, read-modify-write" if act.is_update else together


def conflicts(function: Function, regions: Regions) -> tuple[str, ...]:
    """The conflicts grouped by reason, or why they are not listed."""
    if regions.conflicts is None:
        return (regions.unlisted,)
    return pairs(function, [(c.first, c.second, c.reason) for c in regions.conflicts])


def pairs(function: Function, accesses: Sequence[tuple[int, int, str]]) -> tuple[str, ...]:
    """The reasons with the pairs of accesses they apply to."""
    names = {access.number: access.name for access in function.accesses}
    by_reason: dict[str, list[str]] = {}
    for first, second, reason in accesses:
        by_reason.setdefault(reason, []).append(f"{first} {names[first]} and {second} {names[second]}")
    return tuple(text.printable(f"{reason}: {'; '.join(those)}") for reason, those in by_reason.items())
