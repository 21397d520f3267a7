"""Tables about the cost of compiled code: totals, the most expensive layers, estimated times."""

from __future__ import annotations

from rich.table import Table

from .. import text
from ..board.toolchain import builds_with_zig
from ..emit.figures import Figures, difference, verdict
from ..kernels.cost.estimate import Estimate, estimate, modelled
from ..platform import Board
from ..platform.chip_time import ERROR
from ..platform.target import TARGETS, chosen_target
from ..program import Plan
from .common import facts, shown, table

_COMPILERS = {"gcc": "GCC", "zig": "Zig"}


def sentence(figures: Figures) -> str:
    """The verdict as a sentence."""
    if figures.verified and figures.missing:
        return f"{verdict(figures)}; not compared with the model's own runtime: {figures.missing}"
    return f"verified: {verdict(figures)}" if figures.verified else f"{verdict(figures)}: nothing was run"


def figures_table(figures: Figures) -> Table:
    grid = facts()
    grid.add_row("target", figures.target, shown(figures.board or ""))
    linked = "not linked" if figures.ram_linked is None else f"{text.count(figures.ram_linked)} B linked"
    quality = f"; {figures.ram_quality}" if figures.ram_quality else ""
    grid.add_row("RAM", f"{text.count(figures.ram_predicted)} B", f"{linked}{quality}")
    if (less := figures.cheaper) and less.peak_bytes < figures.ram_predicted:
        grid.add_row("less", f"{text.count(less.peak_bytes)} B", less.words)
    if figures.stack_bytes is not None:
        bound = "" if figures.stack_bound is None else f"; never more than {text.count(figures.stack_bound)} B"
        grid.add_row("stack", f"{text.count(figures.stack_bytes)} B", f"high-water mark of a run{bound}")
    elif figures.stack_bound is not None:
        grid.add_row("stack", f"{text.count(figures.stack_bound)} B", "at most")
    if figures.stack_bound is not None:
        cores = 1 if figures.critical_path is None else 2
        needed, whose = figures.ram_predicted + cores * figures.stack_bound, " on each core" if cores > 1 else ""
        grid.add_row("RAM in all", f"{text.count(needed)} B", f"with the most stack that a run takes{whose}")
    grid.add_row("flash", f"{text.count(figures.flash_weights)} B", "weights")
    if figures.flash_code is not None:
        grid.add_row("", f"{text.count(figures.flash_code)} B", f"code, {shown(figures.compiler or '')}")
    if figures.flash_runtime:
        grid.add_row("", f"{text.count(figures.flash_runtime)} B", "what the code calls: memcpy, mathematics")
    rate = "" if figures.per_mac is None else f"{figures.per_mac:.2f} per MAC, {figures.emulator}"
    if figures.instructions is not None:
        grid.add_row("instructions", text.count(figures.instructions), rate)
    if figures.seconds is not None:
        known = f"at the highest clock, ± {ERROR:.0%}: cycles of each instruction are estimated"
        grid.add_row("time", text.duration(figures.seconds), known)
    if figures.critical_path is not None:
        shared = "one after the other: between two barriers those of the core that does more"
        grid.add_row("", text.count(figures.critical_path), shared)
    grid.add_row("work", f"{text.rounded_count(figures.macs)} MACs", text.plural(len(figures.layers), "stage"))
    for check in figures.checks:
        grid.add_row("checked", shown(check.where), f"{text.plural(check.runs, 'input')}: {difference(check)}")
    return grid


def costs_table(figures: Figures, source: str, most: int = 12) -> Table:
    """The most expensive layers, by instructions or else by MACs. `source` names where all of them are listed."""
    title = f"{shown(figures.model)}: the dearest layers"
    made = table(title, ">#", "layer", "operator", "output", ">MACs", ">instructions", ">per MAC", ">share", ">time")
    rows = sorted(enumerate(figures.layers), key=lambda row: (-(row[1].instructions or 0), -row[1].macs, row[0]))
    whole = sum(cost.instructions or 0 for cost in figures.layers)
    for position, cost in rows[:most]:
        known, time = cost.instructions is not None, figures.time_of(cost.instructions)
        made.add_row(
            str(position),
            shown(cost.name),
            shown(cost.operator),
            cost.output,
            text.count(cost.macs),
            text.count(cost.instructions or 0) if known else "–",
            f"{cost.per_mac:.2f}" if cost.per_mac is not None else "–",
            text.percent(cost.instructions or 0, whole) if known else "–",
            "–" if time is None else text.duration(time),
        )
    if len(rows) > most:
        made.add_row("", f"… {len(rows) - most} cheaper; {source} has all")
    return made


def core_of(board: Board | None, target: str | None) -> str | None:
    """The target that was given, or the board's."""
    core = chosen_target(board, target)
    return core.name if core else None


def estimated(plan: Plan, core: str | None) -> Estimate | None:
    """The estimate for the compiler at hand; None without a core, or if the core has no cost model."""
    return estimate(plan, core, zig=builds_with_zig(TARGETS[core])) if core in modelled() else None


def estimate_words(cost: Estimate, core: str, whole: Estimate | None) -> str:
    """The estimate and its error, relative to whole layers if these are known."""
    more = f", {cost.instructions / whole.instructions - 1:+.1%} against whole layers" if whole else ""
    guessed = f"; {text.plural(len(cost.guessed), 'layer')} of a kind never counted" if cost.guessed else ""
    near = f"of plans that {_COMPILERS[cost.compiler]} built nine in ten were within {cost.error.total:.0%}"
    return f"estimated for {core}{more}; {near}{guessed}"
