"""`edgewright flow`: from data, a front or a model to firmware, reported on one page."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from .. import text
from ..files import write_atomic
from ..flow.augmenting import plan_path
from ..flow.design_flow import AUGMENTED, DesignFlow, FlowOutcome
from ..flow.stages import key_of
from ..memory import critical_buffers
from ..program import load_plan
from ..report import plan_page
from ..report.flow_page import flow_page
from ..search.front import pareto
from .common import console, print_json, print_notes, print_written, shown, table, working_on
from .select import point_cells, point_heads

PAGE = "report.html"
MOST_NOTES = 12
PLAN_PAGES, MOST_PAGES = "plan-pages", 40


def flow(flow: Path, output: Path | None, workers: int | None, verify: bool, as_json: bool) -> None:
    with working_on("reading the flow") as told:
        design = DesignFlow(flow, output, workers, told)
        outcome = design.run(verify)
        page = write_atomic(outcome.folder / PAGE, flow_page(outcome, _plan_pages(design, outcome)))
    if as_json:
        print_json({**outcome.to_dict(), "page": str(page)})
        return
    console.print(_selections(outcome))
    notes = [*outcome.notes, *outcome.left_out[:MOST_NOTES]]
    if len(outcome.left_out) > MOST_NOTES:
        notes.append(f"and {len(outcome.left_out) - MOST_NOTES} more points were left out")
    if outcome.reused:
        notes.append(f"results that were there: {', '.join(outcome.reused)}")
    print_notes(notes)
    print_written([page])
    if outcome.firmware is not None:
        console.print(shown(outcome.sentence), style="green" if verify else "yellow", soft_wrap=True)


def _plan_pages(design: DesignFlow, outcome: FlowOutcome) -> dict[str, str]:
    """Paths of the plan pages by point name: the selected points, and other undominated ones."""
    front = outcome.augmented
    chosen = {one.point.name: one.point for one in outcome.selections}
    chosen |= {one.name: one for one in pareto(front.points, front.measures)}
    plans = {name: path for name, one in chosen.items() if (path := plan_path(one))}
    shown = dict(list(plans.items())[:MOST_PAGES])
    pages = {name: f"{PLAN_PAGES}/{Path(path).stem}.html" for name, path in shown.items()}

    def write(folder: Path) -> None:
        for name, path in shown.items():
            plan = load_plan(design.stages.path(AUGMENTED) / path)
            page = plan_page(plan, critical=critical_buffers(plan), title=name)
            (folder / Path(pages[name]).name).write_text(page, encoding="utf-8")

    design.stages.make(PLAN_PAGES, key_of(front.text(), pages), write)
    return pages


def _selections(outcome: FlowOutcome) -> Table:
    metric, points = outcome.points.metric, outcome.augmented.points
    has_energy = any(point.energy_j is not None for point in points)
    made = table(
        f"{shown(outcome.file.name)} on {shown(outcome.board)}: "
        f"{text.plural(len(outcome.points.points), 'network')}, {text.plural(len(points), 'point')}",
        "selection",
        "requirement",
        *point_heads(metric, has_energy),
        "without other manners",
    )
    for one in outcome.selections:
        before = "the same"
        if one.is_better:
            before = shown(one.before.best.name) if one.before else "none keeps the limits"
        wanted = ", ".join([str(one.entry.requirement), *map(str, one.entry.figure_limits)])
        made.add_row(shown(one.entry.name), shown(wanted), *point_cells(one.point, metric, has_energy), before)
    return made
