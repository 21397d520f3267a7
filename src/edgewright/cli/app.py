"""`edgewright app`: several networks in one memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.table import Table

from .. import text
from ..application.members import Application, load_application
from ..application.outcome import AppOutcome, outcome_of, paper_outcome, plan_application
from ..application.search import JointPlan, JointSearch
from .common import console, print_json, shown, working


def app(application: Path, ram: int | None, asked_front: bool, method: str, as_json: bool) -> None:
    if asked_front and method != "joint":
        raise click.UsageError("--pareto and --method contradict each other: the front is one of joint plans.")
    if asked_front and ram is not None:
        raise click.UsageError(
            "--pareto and --ram contradict each other: --pareto shows every trade; choose a point."
        )
    with working("reading the networks"):
        found = load_application(application)
    if asked_front:
        _front(found, as_json)
        return
    with working("planning all networks"):
        outcome = (
            plan_application(found, ram)
            if method == "joint"
            else paper_outcome(found, ram, is_exact=method == "exact")
        )
    if as_json:
        print_json(outcome.to_dict())
        return
    console.print(networks_table(outcome))
    console.print(summary_table(outcome))
    for note in outcome.notes:
        console.print(f"note: {shown(note)}", style="dim")
    if outcome.joint is not None:
        console.print(buffers_table(outcome.joint))
        if outcome.next:
            console.print(next_table(outcome))


def _front(application: Application, as_json: bool) -> None:
    with working("planning all networks"):
        search = JointSearch(application)
        plans = search.front()
    if as_json:
        print_json({"front": [_point(search, plan) for plan in plans]})
        return
    table = Table(title="RAM against slow-down", title_justify="left")
    for column in ("RAM", "slow-down, summed", "who pays"):
        table.add_column(column, justify="left" if column == "who pays" else "right")
    for plan in plans:
        table.add_row(text.size(plan.peak_bytes), f"{plan.slowdown:.1%}", _payers(plan))
    console.print(table)


def _point(search: JointSearch, plan: JointPlan) -> dict[str, object]:
    figures = outcome_of(search, plan, None).to_dict()
    return {"slowdown": round(plan.slowdown, 4), "payers": list(plan.payers), **figures}


def networks_table(outcome: AppOutcome) -> Table:
    table = Table(title="networks", title_justify="left")
    for column in ("network", "RAM alone", "MACs", "extra MACs", "slow-down", ""):
        table.add_column(column, justify="left" if column in ("network", "") else "right")
    for name, one in outcome.networks.items():
        extra = one.macs - one.macs_plain
        table.add_row(
            shown(name),
            text.size(one.peak_bytes),
            text.count(one.macs),
            text.count(extra),
            f"{max(0.0, one.slowdown):.1%}",
            "sets the peak" if name in outcome.setters else "",
        )
    return table


def summary_table(outcome: AppOutcome) -> Table:
    table = Table(title="one arena for all", title_justify="left", show_header=False)
    table.add_column("what")
    table.add_column("how much")
    for key, label in (
        ("none_bytes", "a buffer for each edge"),
        ("reuse_bytes", "buffers shared, whole layers"),
        ("parts_bytes", "and layers by parts"),
    ):
        if key in outcome.paper:
            table.add_row(label, text.size(outcome.paper[key]))
    standing = "proven least" if outcome.optimal else f"none needs less than {text.size(outcome.bound_bytes)}"
    table.add_row("RAM", f"{text.size(outcome.peak_bytes)} ({standing})")
    table.add_row("separate arenas", text.size(outcome.separate_bytes))
    table.add_row("weights", text.size(outcome.flash_bytes))
    if outcome.ram is not None:
        table.add_row("free", f"{text.size(outcome.ram - outcome.peak_bytes)} of {text.size(outcome.ram)}")
    if outcome.setters:
        table.add_row("set by", shown(", ".join(outcome.setters)))
    for name, layers in outcome.phases.items():
        table.add_row(f"by parts in {shown(name)}", shown(", ".join(layers)))
    return table


def buffers_table(plan: JointPlan) -> Table:
    """The largest buffers, with where they lie."""
    layout = plan.layout
    table = Table(title="the largest buffers", title_justify="left")
    for column in ("buffer", "at", "bytes"):
        table.add_column(column, justify="left" if column == "buffer" else "right")
    for buffer in sorted(layout.buffers, key=lambda b: (-b.size, b.name))[:12]:
        table.add_row(shown(buffer.name), text.count(layout.at(buffer.name)), text.count(buffer.size))
    return table


def next_table(outcome: AppOutcome) -> Table:
    table = Table(title="what each next KiB costs", title_justify="left")
    for column in ("RAM", "slow-down, summed", "who pays"):
        table.add_column(column, justify="left" if column == "who pays" else "right")
    for ram, plan in outcome.next:
        cells: Sequence[str] = (f"{plan.slowdown:.1%}", _payers(plan)) if plan else ("", "not possible")
        table.add_row(text.size(ram), *cells)
    return table


def _payers(plan: JointPlan) -> str:
    owners = plan.layout.application.by_name
    slow = [
        f"{owners[name].owner} {share:+.1%}"
        for name, share in plan.slowdowns.items()
        if owners[name].owner in plan.payers
    ]
    return shown(", ".join(slow)) or "nobody"
