"""How the layers of a plan run: one row for each fusion group and for each run of whole layers between groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.table import Table

from .. import text
from ..program import Plan, Stage
from ..program.legal import AXES
from ..program.techniques import Technique, technique
from .common import shown, table

_WHOLE = (Technique.WHOLE, Technique.IN_PLACE, Technique.LANES)


@dataclass(frozen=True, slots=True)
class FusionGroupRow:
    """Consecutive stages and their memory and work."""

    stages: tuple[int, int]  # first and last
    name: str
    layers: int
    how: str
    kept: str  # rows or tiles of the inner tensors that stay in memory
    extra: int  # MACs
    macs: int  # without the extra ones
    live: int  # peak of the bytes in use


def fusion_group_rows(plan: Plan) -> tuple[FusionGroupRow, ...]:
    numbered = list(enumerate(plan.program.stages))
    groups = groupby(numbered, lambda entry: technique(plan, entry[1]) in _WHOLE)
    return tuple(row for is_whole, group in groups for row in _rows(plan, is_whole, list(group)))


def _rows(plan: Plan, is_whole: bool, stages: Sequence[tuple[int, Stage]]) -> Iterator[FusionGroupRow]:
    if is_whole:
        yield _row(plan, stages, "whole")
    else:
        for entry in stages:
            yield _row(plan, [entry], how(plan, entry[1]))


def _row(plan: Plan, stages: Sequence[tuple[int, Stage]], how: str) -> FusionGroupRow:
    network = plan.network
    layers = [network.by_name[name] for _, stage in stages for name in stage.layers]
    macs = sum(network.macs(layer) for layer in layers)
    done = macs if how == "whole" else sum(plan.program.macs_of(stage) for _, stage in stages)
    first, last = stages[0], stages[-1]
    return FusionGroupRow(
        (first[0], last[0]),
        first[1].name if first is last else f"{first[1].name} .. {last[1].name}",
        len(layers),
        how,
        "" if how == "whole" else _kept(plan, [layer.output for layer in layers]),
        done - macs,
        macs,
        max(plan.live_bytes[at] for at, _ in stages),
    )


def how(plan: Plan, stage: Stage) -> str:
    """The technique and the number of parts, such as "FFMT, 2 × 3 tiles"."""
    kind, schedule = technique(plan, stage), stage.schedule
    counts = [text.count(len(split.ends)) for split in schedule.splits]
    match kind:
        case Technique.STRIPES if schedule.is_banded:
            stripes = f"{counts[1]} stripes" if len(counts) > 1 else "all columns"
            return f"{counts[0]} bands of {stripes} by rows"
        case Technique.STRIPES:
            return f"{counts[0]} stripes by rows"
        case Technique.FFMT:
            return f"FFMT, {' × '.join(counts)} {_along(schedule.axes)}"
        case Technique.FDT:
            return f"FDT, {' × '.join(counts)} parts" + (", by rows" if schedule.streamed else "")
        case _:
            return kind.label


def _along(axes: Sequence[int]) -> str:
    return f"tiles of {AXES[axes[0]]}" if len(axes) == 1 else "tiles"


def _kept(plan: Plan, tensors: Sequence[str]) -> str:
    """Describes the buffers of the inner tensors: rows, tiles or whole tensors."""
    views = [plan.views[name] for name in tensors if name in plan.views]
    windows = sorted(view.window[1] for view in views if view.window)
    tiles = sum(1 for view in views if view.tiled and not view.window)
    parts = []
    if windows:
        low, high = windows[0], windows[-1]
        rows = text.plural(high, "row") if low == high else f"{low} to {high} rows"
        parts.append(f"{rows} of {text.plural(len(windows), 'tensor')}")
    if tiles:
        parts.append(f"a tile of {text.plural(tiles, 'tensor')}")
    return ", ".join(parts)


def fusion_group_table(plan: Plan, most: int = 30) -> Table:
    rows = fusion_group_rows(plan)
    made = table("what runs together", ">#", "layers", "how", "kept inside", ">extra MACs", ">in use")
    peak = max((row.live for row in rows), default=0)
    for row in rows[:most]:
        made.add_row(
            text.stage_range(*row.stages),
            f"{shown(row.name)} ({row.layers})" if row.layers > 1 else shown(row.name),
            row.how,
            row.kept,
            f"{text.count(row.extra)} ({row.extra / row.macs:.1%})" if row.extra else "",
            text.count(row.live),
            style="bold" if row.live == peak else None,
        )
    if len(rows) > most:
        made.add_row("", f"… {len(rows) - most} after; the plan file and --page have all")
    return made
