"""The tables of `tiling.py`: rows as in S table 4.1, bars, competitors, large networks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from rich.table import Table

from tiling_bars import (
    INSTRUCTIONS,
    LARGE_FACTOR,
    LARGE_OVERHEAD,
    LARGE_SECONDS,
    MSF_CNN,
    PAPER,
    SECONDS,
    published,
    ram_bar,
)
from tiling_measures import COMPILED, Point, Row

HEADINGS = {
    "untiled": "untiled",
    "ffmt": "FFMT only",
    "fdt": "FDT only",
    "joint_5": "joint\n<= 5 % MACs",
    "joint_40": "joint\n<= 40 % MACs",
    "joint_5_pulled": "joint <= 5 %,\ninput pulled",
    "joint_40_pulled": "joint <= 40 %,\ninput pulled",
}
YES, NO = "[green]✓[/]", "[red]✗[/]"


@dataclass(frozen=True)
class Bar:
    """A figure and what it may come to at most; None where one of them is missing."""

    value: float | None
    limit: float | None

    @property
    def is_met(self) -> bool | None:
        return None if self.value is None or self.limit is None else self.value <= self.limit

    @property
    def mark(self) -> str:
        return {True: YES, False: NO, None: ""}[self.is_met]


def new_table(title: str, headings: Sequence[str], left: Sequence[str] = ("model",)) -> Table:
    result = Table(title=title, title_justify="left", caption_justify="left", show_lines=False)
    for heading in headings:
        result.add_column(heading, justify="left" if heading in left else "right", overflow="fold")
    return result


def savings_table(rows: Sequence[Row]) -> Table:
    """One row for each model, as S table 4.1 has them."""
    title = "Total RAM in bytes, input and output counted; saved, MACs added; seconds of search"
    result = new_table(title, ("model", *HEADINGS.values()))
    for row in rows:
        result.add_row(row.model, *(_cell(row, way) for way in HEADINGS), end_section=True)
    result.add_row("mean saving", *(_mean_saving(rows, way) for way in HEADINGS))
    return result


def _mean_saving(rows: Sequence[Row], way: str) -> str:
    found = [row.saving(way) for row in rows if way in row.points]
    return f"{mean(found):.1%}" if found and way != "untiled" else ""


def _cell(row: Row, way: str) -> str:
    point = row.points.get(way)
    if point is None:
        return "–"
    figures = f"{point.peak_bytes:,}"
    if way == "untiled":
        return figures
    return f"{figures}\n-{row.saving(way):.1%} {_added(point)}\n{point.seconds:.1f} s"


def _added(point: Point) -> str:
    return f"{point.overhead:+.1%}" if point.overhead else "+0 %"


def small_bars(row: Row, way: str) -> dict[str, Bar]:
    """What is asked of a plan of a model for microcontrollers.

    Instructions are compared at equal MACs: extra ones are taken out. Fewer, where nobody reads the last rows of a
    layer and so they are not computed, are left as they are.
    """
    point, whole = row.points[way], row.untiled
    ratio = instructions_ratio(row, way)
    limit = ram_bar(row.model, whole.peak_bytes, way.endswith("pulled")) if way.startswith("joint_5") else None
    return {
        "ram": Bar(point.peak_bytes, limit),
        "wrong_outputs": _wrong(point),
        "instructions": Bar(None if ratio is None else ratio / (1 + max(0.0, point.overhead)), INSTRUCTIONS),
        "seconds": Bar(point.seconds, SECONDS),
    }


def _wrong(point: Point) -> Bar:
    return Bar(None if point.checked is None else float(not point.checked.is_right), 0)


def instructions_ratio(row: Row, way: str) -> float | None:
    """Instructions over those of the untiled build."""
    mine, whole = row.points[way].checked, row.untiled.checked
    if mine is None or whole is None or not mine.instructions or not whole.instructions:
        return None
    return mine.instructions / whole.instructions


def bars_table(rows: Sequence[Row]) -> Table:
    """Every plan of the joint search beside what is asked of it."""
    title = "The joint search on a virtual Cortex-M4, against its bars"
    headings = ["model", "plan", "RAM", "bar", "", "MACs", "outputs", "instructions\nover untiled"]
    headings += [f"at equal MACs\n<= {INSTRUCTIONS}", " ", f"search s\n<= {SECONDS:.0f}", "  "]
    result = new_table(title, headings, ("model", "plan", "outputs", "", " ", "  "))
    for row in rows:
        ways = [way for way in COMPILED if way in row.points and way != "untiled"]
        for way in ways:
            result.add_row(row.model if way == ways[0] else "", *_bar_cells(row, way), end_section=way == ways[-1])
    result.caption = met(small_bars(row, way) for row in rows for way in COMPILED[1:] if way in row.points)
    return result


def met(found: Iterable[Mapping[str, Bar]]) -> str:
    """How many of all bars are met."""
    marks = [bar.is_met for bars in found for bar in bars.values() if bar.is_met is not None]
    return f"bars met: {marks.count(True)} of {len(marks)}"


def _bar_cells(row: Row, way: str) -> list[str]:
    point, bars, ratio = row.points[way], small_bars(row, way), instructions_ratio(row, way)
    limit, equal = bars["ram"].limit, bars["instructions"]
    return [
        HEADINGS[way].replace("\n", " "),
        f"{point.peak_bytes:,}",
        f"{limit:,.0f}" if limit is not None else "–",
        bars["ram"].mark,
        _added(point),
        _verdict(point),
        f"{ratio:.3f}" if ratio else "–",
        f"{equal.value:.3f}" if equal.value else "–",
        equal.mark,
        f"{point.seconds:.1f}",
        bars["seconds"].mark,
    ]


def _verdict(point: Point) -> str:
    if point.checked is None:
        return "–"
    return point.checked.verdict if point.checked.is_right else f"{NO} {point.checked.verdict}"


def competitors_table(rows: Sequence[Row], obstacle: str) -> Table:
    """Ours beside TiGrIS, measured in the same run, and what others have printed."""
    title = "Others: TiGrIS measured in this run (fast and slow memory together), the rest as published"
    headings = (
        "model",
        "joint\n<= 5 % MACs",
        "input\npulled",
        "TiGrIS\nbest total",
        "ours of\nTiGrIS",
        "published",
    )
    result = new_table(title, headings, ("model", "published"))
    for row in rows:
        ours, pulled = row.points.get("joint_5"), row.points.get("joint_5_pulled")
        result.add_row(
            row.model,
            f"{ours.peak_bytes:,}" if ours else "–",
            f"{pulled.peak_bytes:,}" if pulled else "–",
            f"{row.tigris_bytes:,}" if row.tigris_bytes else "–",
            f"{ours.peak_bytes / row.tigris_bytes:.0%}" if ours and row.tigris_bytes else "–",
            ", ".join(f"{tool} {size:,}" for tool, size in published(row.model).items()),
        )
    others = ", ".join(f"{size:,} at {macs:.2f}x" for macs, size in MSF_CNN)
    result.caption = f"published, workspace only: msf-CNN on MobileNetV2 0.35 at 144x144: {others} MACs"
    told = obstacle or "counts inputs of int8 networks as int8, also where the file has real numbers"
    result.caption += f"\nTiGrIS: {told}"
    return result


def paper_table(rows: Sequence[Row]) -> Table:
    """S table 4.1 as printed, with ours for the two networks that are the same."""
    title = "Published: S table 4.1, RAM in kB with TVM and its wide intermediate types"
    headings = ("model", "untiled", "FFMT", "saved", "MACs", "FDT", "saved ", "MACs ", "here")
    result = new_table(title, headings, ("model", "here"))
    found = {row.model: row for row in rows}
    for line in PAPER:
        ffmt = (f"{line.ffmt:,g}", f"{line.saved[0]} %", f"+{line.overhead:g} %")
        fdt = (f"{line.fdt:,g}", f"{line.saved[1]} %", "+0 %")
        result.add_row(line.name, f"{line.untiled:,g}", *ffmt, *fdt, _here(found.get(line.like)))
    return result


def _here(row: Row | None) -> str:
    if row is None:
        return ""
    told = [
        f"{HEADINGS[way].splitlines()[0]} {row.points[way].peak_bytes / 1000:,.1f}"
        for way in ("untiled", "ffmt", "fdt", "joint_5")
        if way in row.points
    ]
    return f"{row.model}: {', '.join(told)}"


def large_bars(row: Row, way: str) -> dict[str, Bar]:
    """What is asked of a plan of a large network."""
    point = row.points[way]
    return {
        "ram": Bar(point.peak_bytes * LARGE_FACTOR, row.untiled.peak_bytes),
        "overhead": Bar(point.overhead, LARGE_OVERHEAD),
        "wrong_outputs": _wrong(point),
        "seconds": Bar(point.seconds, LARGE_SECONDS),
    }


def large_table(rows: Sequence[Row]) -> Table:
    """Large networks: how many times less RAM."""
    title = f"Large networks: total RAM in bytes, joint search at <= {LARGE_OVERHEAD:.0%} MACs"
    headings = [
        "model",
        "layers",
        "untiled",
        "input",
        "joint",
        f"less\n>= {LARGE_FACTOR:g}x",
        "",
        "MACs",
        "outputs",
    ]
    headings += [f"search s\n<= {LARGE_SECONDS:.0f}", " ", "TiGrIS\nbest total"]
    result = new_table(title, headings, ("model", "input", "outputs", "", " "))
    for row in rows:
        for way, name in (("joint", "held whole"), ("joint_pulled", "pulled")):
            if way in row.points:
                result.add_row(*_large_cells(row, way, name))
    result.caption = met(large_bars(row, way) for row in rows for way in row.points if way != "untiled")
    return result


def _large_cells(row: Row, way: str, name: str) -> list[str]:
    point, bars, is_first = row.points[way], large_bars(row, way), way == "joint"
    return [
        row.model if is_first else "",
        str(row.layers) if is_first else "",
        f"{row.untiled.peak_bytes:,}" if is_first else "",
        name,
        f"{point.peak_bytes:,}",
        f"{row.untiled.peak_bytes / point.peak_bytes:.2f}x",
        bars["ram"].mark,
        _added(point),
        _verdict(point),
        f"{point.seconds:.1f}",
        bars["seconds"].mark,
        f"{row.tigris_bytes:,}" if row.tigris_bytes and is_first else "" if not is_first else "–",
    ]
