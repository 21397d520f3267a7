"""`edgewright plan --pareto`: RAM against extra work as a table, a page, and one plan file for each point."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from os.path import isdir
from pathlib import Path
from shlex import quote

from rich.table import Table

from .. import text
from ..errors import Infeasible
from ..files import write_together
from ..fusion import Front, front
from ..fusion.choice import INTERRUPTED, is_interrupted
from ..kernels.cost.run_time import run_time
from ..memory import critical_buffers, fit
from ..memory.request import PlanRequest
from ..network import Network
from ..platform import Board
from ..platform.chip_time import ERROR
from ..program import Plan, plan_text
from ..program.techniques import Technique, techniques
from ..report import front_page, refusal
from ..report.front_page import limits
from .common import INTERRUPTED_STATUS, console, print_json, print_written, shown, table, working
from .costs import estimated
from .plan_options import PlanOptions
from .plan_tables import overhead


def show_front(
    network: Network,
    asked: PlanOptions,
    board: Board | None,
    core: str | None,
    command: str,
    page: Path | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Prints the plans, and writes them if there is an `output`; raises an error if none of them fits the board.

    `command` compiles the model; each point completes it with its own plan file.
    """
    with working(f"searching {network.name}"):
        request = PlanRequest(alignment=asked.alignment, pull_rows=asked.pull_rows, max_overhead=asked.max_overhead)
        points = front(network, board, request, target=core)
    paths = [point_path(output, plan.peak_bytes) for plan in points.plans] if output else []
    commands = [f"{command} --plan {quote(str(path))}" for path in paths] or [
        f"{command} {limits(plan)}" for plan in points.plans
    ]
    files: dict[Path, str | bytes] = {
        path: plan_text(plan) for path, plan in zip(paths, points.plans, strict=bool(paths))
    }
    if page:
        estimates = [estimate for plan in points.plans if (estimate := estimated(plan, core))]
        runs = zip(points.plans, estimates, strict=bool(estimates))
        times = [time for plan, estimate in runs if (time := run_time(plan, estimate, board))]
        files[page] = front_page(points.plans, plain=points.plain, commands=commands, estimates=estimates, times=times)
    write_together(files)
    if as_json:
        print_json([[plan.peak_bytes, plan.macs] for plan in points.plans])
    else:
        console.print(_table(points, board, core, paths))
        print_written([page])
        console.print(f"compile a point:  {shown(commands[-1])}", style="dim", soft_wrap=True)
    least = points.plans[-1]
    verdict = fit(least, board)
    if not verdict.fits:
        raise Infeasible(refusal(least, verdict, critical_buffers(least)))
    if is_interrupted(least):
        if not as_json:
            console.print(f"the search was {INTERRUPTED}", style="yellow")
        raise SystemExit(INTERRUPTED_STATUS)


def point_path(output: Path, peak: int) -> Path:
    """The path of a point's plan, with the peak in its name: beside `output`, or in it if it is a folder."""
    if isdir(output):
        output = output / "plan.json"
    return output.with_name(f"{output.stem}-{peak}{output.suffix or '.json'}")


def _table(points: Front, board: Board | None, core: str | None, paths: Sequence[Path]) -> Table:
    ends = (*((f"on {board.name}",) if board else ()), *(("plan",) if paths else ()))
    title = f"{shown(points.plain.network.name)}: RAM against work"
    costs = [estimated(plan, core) for plan in (points.plain, *points.plans)]
    times = [run_time(plan, cost, board) for plan, cost in zip((points.plain, *points.plans), costs, strict=True)]
    if any(times):
        ends = (f">time, ± {ERROR:.0%}", *ends)
    made = table(title, ">peak RAM", ">of plain", ">MACs", ">extra", "stages", ">instructions", *ends)
    files = ["plain", *map(str, paths)] if paths else [""] * (1 + len(points.plans))
    rows = zip(files, (points.plain, *points.plans), costs, times, strict=True)
    for name, plan, estimate, time in rows:
        made.add_row(
            text.count(plan.peak_bytes),
            text.percent(plan.peak_bytes, points.plain.peak_bytes),
            text.count(plan.macs),
            overhead(plan),
            _mixture(plan),
            f"≈ {text.rounded_count(estimate.instructions)}" if estimate else "–",
            *((f"≈ {text.duration(time.seconds)}" if time else "–",) if any(times) else ()),
            *(("fits" if fit(plan, board).fits else "too large",) if board else ()),
            *((shown(name),) if paths else ()),
            style="dim" if plan is points.plain else None,
        )
    return made


_IN = {
    Technique.ROWS: "by rows",
    Technique.STRIPES: "in stripes",
    Technique.FFMT: "in tiles",
    Technique.FDT: "by channels",
}


def _mixture(plan: Plan) -> str:
    """The number of stages per execution mode, such as "9 whole, 1 by rows"."""
    used = Counter(techniques(plan).values())
    whole = used.pop(Technique.WHOLE, 0) + used.pop(Technique.IN_PLACE, 0)
    parts = [f"{used[kind]} {how}" for kind, how in _IN.items() if used[kind]]
    return ", ".join([*([f"{whole} whole"] if whole else []), *parts])
