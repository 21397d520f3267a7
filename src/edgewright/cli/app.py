"""`edgewright app`: several networks in one memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import click
from rich.table import Table

from .. import text
from ..application.blocking import BlockingTrade
from ..application.combinations import JointPlan
from ..application.compiled import CompiledApplication, compile_outcome
from ..application.draft import Application, load_application
from ..application.host_run import MeasuredNetwork, check_throughput, run_application
from ..application.outcome import AppOutcome, available_ram, outcome_of, plan_application
from ..application.paper.outcome import paper_outcome
from ..application.plan_file import load_application_plan, save_application_plan
from ..application.precisions import compare_precisions
from ..application.search import JointSearch
from ..emit.packaging import check_folder, write_folder
from ..files import write_atomic
from ..platform.chip_time import ERROR
from ..report.application_page import application_page
from .common import console, print_json, print_notes, print_written, shown, table, working


@dataclass(frozen=True, slots=True)
class AppOptions:
    """The options of `edgewright app`, as parsed."""

    application: Path
    ram: int | None
    pull_input: bool
    asked_front: bool
    method: str
    page: Path | None
    is_run: bool
    frames: int
    asked_precisions: bool
    compiles: bool
    plan: Path | None
    output: Path | None
    force: bool
    verify: bool
    as_json: bool


def app(options: AppOptions) -> None:
    is_paper = options.method != "joint"
    is_several = options.asked_front or is_paper
    for is_wrong, why in (
        (
            options.asked_front and is_paper,
            "--pareto and --method contradict each other: the front is one of joint plans.",
        ),
        (
            options.asked_front and options.ram,
            "--pareto and --ram contradict each other: --pareto shows every trade; choose a point.",
        ),
        (options.compiles and is_several, "--compile takes one plan: leave --pareto and --method out."),
        (options.is_run and is_several, "--run takes one plan: leave --pareto and --method out."),
        (
            options.asked_precisions
            and (is_several or options.compiles or options.is_run or options.page or options.ram),
            "--quantise compares plans and runs them: leave other options out.",
        ),
        (options.page and is_paper, "--page shows a joint plan: leave --method out."),
        (options.page and options.asked_front, "--page shows the front too: leave --pareto out."),
        (options.output and is_several, "-o takes one plan: leave --pareto and --method out."),
        (options.plan and (options.ram or is_several), "--plan brings a plan: leave --ram, --pareto and --method out."),
    ):
        if is_wrong:
            raise click.UsageError(why)
    if options.asked_precisions:
        _precisions(options.application, options.frames, options.as_json)
        return
    with working("reading the networks"):
        application = load_application(options.application, options.pull_input)
    folder = options.output or Path(application.file.name)
    if options.compiles:
        check_folder(folder, options.force)
    if options.asked_front:
        _front(application, options.as_json)
        return
    search = JointSearch(application)
    with working("planning all networks"), interrupted_with(search):
        if options.plan is not None:
            layout = load_application_plan(application, options.plan)
            outcome = outcome_of(search, search.of_layout(layout), available_ram(application))
        elif options.method == "joint":
            outcome = plan_application(application, options.ram, search=search)
        else:
            outcome = paper_outcome(application, options.ram, is_exact=options.method == "exact")
    if options.output is not None and not options.compiles and outcome.joint is not None:
        save_application_plan(outcome.joint.layout, options.output)
    if options.page is not None:
        with working("seeking what less RAM costs"):
            write_atomic(options.page, application_page(outcome, search.front()))
    measured = _measured(outcome, options.frames) if options.is_run else ()
    compiled = _compiled(outcome, options.verify) if options.compiles else None
    if compiled is not None:
        about = {"edgewright": version("edgewright"), "name": application.file.name, "target": application.target.name}
        write_folder(folder, compiled.files, about, options.force)
    if options.as_json:
        more = {**compiled.to_dict(), "output": str(folder)} if compiled else {}
        more |= {"measured": {one.name: one.to_dict() for one in measured}} if measured else {}
        print_json({**outcome.to_dict(), **more})
        check_throughput(measured)
        return
    console.print(networks_table(outcome))
    console.print(summary_table(outcome))
    print_notes(outcome.notes)
    if outcome.responses:
        console.print(responses_table(outcome))
    if outcome.cascades:
        console.print(cascades_table(outcome))
    if outcome.joint is not None:
        console.print(buffers_table(outcome.joint))
        if outcome.next:
            console.print(next_table(outcome))
    if measured:
        console.print(measured_table(measured))
    if compiled is not None:
        console.print(compiled_table(compiled))
    print_written([options.page, folder if compiled else options.output])
    if compiled is not None:
        console.print(shown(compiled.sentence), style="green" if options.verify else "yellow", soft_wrap=True)
    check_throughput(measured)


@contextmanager
def interrupted_with(search: JointSearch) -> Iterator[None]:
    """Adds the smallest arena so far to a KeyboardInterrupt."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if search.made:
            interrupt.add_note(f"best so far: {min(one.peak_bytes for one in search.made):,} B for all networks")
        raise


def _measured(outcome: AppOutcome, frames: int) -> Sequence[MeasuredNetwork]:
    assert outcome.joint is not None
    with working("compiling and running all networks"):
        return run_application(outcome.application, outcome.joint.layout, frames)


def measured_table(measured: Sequence[MeasuredNetwork]) -> Table:
    """Measured frames per second, and the limit in the file."""
    made = table("on this machine, one arena for all", "network", ">frames/s", ">wanted", ">one frame", "beside")
    for one in measured:
        made.add_row(
            shown(one.name),
            f"{one.statistics.frames_per_s:.1f}",
            "" if one.wanted is None else f"{one.wanted:.1f}",
            text.duration(one.statistics.latency_s),
            shown(", ".join(one.beside)),
            style=None if one.is_met else "red",
        )
    return made


def compiled_table(compiled: CompiledApplication) -> Table:
    """RAM of the compiled library, stack included, compared with the RAM available."""
    made = table("RAM of the compiled library", "", ">bytes", "")
    made.add_row("arena", text.count(compiled.outcome.peak_bytes), "")
    made.add_row("state", text.count(compiled.library.state_bytes), "who runs, and what waits")
    stack = "not measured" if compiled.stack_bytes is None else text.count(compiled.stack_bytes)
    made.add_row("stack", stack, "the most that runs inside of runs took on the virtual board")
    ram, total = compiled.outcome.ram, compiled.ram_bytes
    there = "" if ram is None else f"of {text.size(ram)}"
    made.add_row("in all", text.count(total), there, style="red" if ram is not None and total > ram else None)
    return made


def _precisions(application: Path, frames: int, as_json: bool) -> None:
    with working("quantising, planning and running all networks"):
        rows = list(compare_precisions(application, frames))
    if as_json:
        print_json({"precisions": [row.to_dict() for row in rows]})
        return
    made = table(
        "precisions", "precision", ">RAM", ">weights", "network", ">frames/s", ">outputs differ by", ">same class"
    )
    for row in rows:
        head = (row.precision.value, text.size(row.ram_bytes), text.size(row.flash_bytes))
        for name, one in row.differences.items():
            figures = (f"{row.frames_per_s[name]:.1f}", f"{one.mean:.2%}, at most {one.largest:.2%}")
            made.add_row(*head, shown(name), *figures, f"{one.same_class:.0%}")
            head = ("", "", "")
    console.print(made)


def _compiled(outcome: AppOutcome, verify: bool) -> CompiledApplication:
    with working("compiling and running all networks"):
        return compile_outcome(outcome, verify)


def _front(application: Application, as_json: bool) -> None:
    with working("planning all networks"):
        search = JointSearch(application)
        plans, trades = search.front(), search.blocking_front()
    if as_json:
        points = {"front": [_point(search, plan) for plan in plans]}
        print_json({**points, **({"waiting": [trade.to_dict() for trade in trades]} if trades else {})})
        return
    made = table("RAM against slow-down", ">RAM", ">slow-down, summed", "who pays")
    for plan in plans:
        made.add_row(text.size(plan.peak_bytes), f"{plan.slowdown:.1%}", _payers(plan))
    console.print(made)
    if trades:
        console.print(waiting_table(trades))


def waiting_table(trades: Sequence[BlockingTrade]) -> Table:
    """RAM and worst waiting time for each choice of preemption points."""
    made = table("RAM against waiting", "who waits for whom", ">RAM", ">waits at most", "where it interrupts")
    for trade in trades:
        pair = f"{trade.high} for {trade.low}"
        made.add_row(shown(pair), text.size(trade.peak_bytes), text.duration(trade.wait), trade.where)
    return made


def _point(search: JointSearch, plan: JointPlan) -> dict[str, object]:
    figures = outcome_of(search, plan, None).to_dict()
    return {"slowdown": round(plan.slowdown, 4), "payers": list(plan.payers), **figures}


def networks_table(outcome: AppOutcome) -> Table:
    made = table("networks", "network", ">RAM alone", ">MACs", ">extra MACs", ">slow-down", "")
    for name, one in outcome.networks.items():
        extra = one.macs - one.macs_plain
        made.add_row(
            shown(name),
            text.size(one.peak_bytes),
            text.count(one.macs),
            text.count(extra),
            f"{max(0.0, one.slowdown):.1%}",
            "sets the peak" if name in outcome.setters else "",
        )
    return made


def summary_table(outcome: AppOutcome) -> Table:
    arenas = outcome.joint.layout.arenas if outcome.joint else {}
    title = "one arena for all" if len(arenas) <= 1 else "one arena in each memory for all"
    made = table(title, "", "")
    for key, label in (
        ("none_bytes", "a buffer for each edge"),
        ("reuse_bytes", "buffers shared, whole layers"),
        ("parts_bytes", "and layers by parts"),
    ):
        if key in outcome.paper:
            made.add_row(label, text.size(outcome.paper[key]))
    made.add_row("RAM", f"{text.size(outcome.peak_bytes)} ({outcome.quality})")
    if outcome.joint is not None and outcome.joint.layout.homes:
        sizes = outcome.application.memories
        for memory, size in arenas.items():
            made.add_row(f"in {shown(memory)}", f"{text.size(size)} of {text.size(sizes[memory])}")
    made.add_row("separate arenas", f"{text.size(outcome.separate_bytes)} (the same plans)")
    made.add_row("weights", text.size(outcome.flash_bytes))
    if outcome.ram is not None:
        made.add_row("free", f"{text.size(outcome.ram - outcome.peak_bytes)} of {text.size(outcome.ram)}")
    if outcome.setters:
        made.add_row("set by", shown(", ".join(outcome.setters)))
    for name, layers in outcome.phases.items():
        made.add_row(f"by parts in {shown(name)}", shown(", ".join(layers)))
    return made


def buffers_table(plan: JointPlan) -> Table:
    """The largest buffers and their addresses."""
    layout = plan.layout
    made = table("the largest buffers", "buffer", *(("memory",) if layout.homes else ()), ">at", ">bytes")
    for buffer in sorted(layout.buffers, key=lambda b: (-b.size, b.name))[:12]:
        home = (shown(layout.home(buffer.name)),) if layout.homes else ()
        made.add_row(shown(buffer.name), *home, text.count(layout.at(buffer.name)), text.count(buffer.size))
    return made


def responses_table(outcome: AppOutcome) -> Table:
    """Worst-case response times of networks that have a period, the most urgent first."""
    made = table(
        f"response times, from estimated or measured instructions; cycles are estimated, ± {ERROR:.0%}",
        "network",
        ">one run",
        ">waits",
        ">worst",
        ">deadline",
    )
    for one in outcome.responses:
        made.add_row(
            shown(one.task.name),
            text.duration(one.task.run),
            one.waits_said,
            one.worst_said,
            text.duration(one.task.deadline or 0.0),
            style=None if one.is_met else "yellow",
        )
    return made


def cascades_table(outcome: AppOutcome) -> Table:
    """The worst-case latency of each cascade."""
    made = table("cascades, from the release of the first network to the end of the last", "networks", ">worst")
    for one in outcome.cascades:
        made.add_row(shown(one.name), one.said)
    return made


def next_table(outcome: AppOutcome) -> Table:
    made = table("what each next KiB costs", ">RAM", ">slow-down, summed", "who pays")
    for ram, plan in outcome.next:
        cells: Sequence[str] = (f"{plan.slowdown:.1%}", _payers(plan)) if plan else ("", "not possible")
        made.add_row(text.size(ram), *cells)
    return made


def _payers(plan: JointPlan) -> str:
    owners = {name: plan.owner(name) for name in plan.slowdowns}
    slow = [f"{owners[name]} {share:+.1%}" for name, share in plan.slowdowns.items() if owners[name] in plan.payers]
    return shown(", ".join(slow)) or "nobody"
