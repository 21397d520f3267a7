"""`edgewright select`: picks the point of a front that best serves a set of requirements."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from .. import text
from ..search.chosen import MOST_ACCURATE, PointChoice, choose_from
from ..search.front import DesignFront, DesignPoint, read_front
from ..search.selection import FigureLimit, Objective, Requirement, SelectionMethod
from .common import console, print_json, print_notes, shown, table

MOST_ROWS = 30


def select(
    front: Path, requirement: Requirement | None, limits: Sequence[FigureLimit], method: str, as_json: bool
) -> None:
    points = read_front(front)
    choice = choose_from(points, requirement or MOST_ACCURATE, limits, method=SelectionMethod(method))
    if as_json:
        print_json(choice.to_dict())
        return
    console.print(_table(points, choice))
    for names, why in ((choice.beyond, "breaks a limit"), (choice.dominated, "is dominated by another point")):
        if names:
            listed = ", ".join(names[:MOST_ROWS]) + ("" if len(names) <= MOST_ROWS else ", …")
            print_notes([f"{why}: {listed}"])
    console.print(f"selected: {shown(choice.best.name)}", style="green")
    console.print(f"compile it:  {shown(choice.best.command)}", style="dim", soft_wrap=True)


def _table(front: DesignFront, choice: PointChoice) -> Table:
    weighed = [one for one in Objective if choice.requirement.weight(one)]
    what = "weighted sum of ranks" if choice.method is SelectionMethod.DOMINANCE else "largest weighted distance"
    titles = ", ".join([str(choice.requirement), *map(str, choice.limits)])
    has_energy = any(point.energy_j is not None for point in choice.points)
    heads = point_heads(front.metric, has_energy)
    made = table(
        f"{shown(front.task)} on {shown(front.board)}: {titles}",
        *heads,
        *(f">rank: {one.value}" for one in weighed),
        f">{what}",
    )
    for point, rated in list(zip(choice.points, choice.rated, strict=True))[:MOST_ROWS]:
        made.add_row(
            *point_cells(point, front.metric, has_energy),
            *(str(rated.ranks[one]) for one in weighed),
            f"{float(rated.score):.4g}",
            style="bold" if point is choice.best else None,
        )
    if len(choice.points) > MOST_ROWS:
        made.caption = f"and {len(choice.points) - MOST_ROWS} more points"
    return made


def point_heads(metric: str, has_energy: bool) -> list[str]:
    return ["point", "manner", f">{metric}", ">frames/s", ">RAM", *([">energy"] if has_energy else [])]


def point_cells(point: DesignPoint, metric: str, has_energy: bool) -> tuple[str, ...]:
    """Name, execution mode, accuracy, frames per second, RAM, and energy per frame where it is known."""
    energy = "–" if point.energy_j is None else f"{text.three_digits(1e3 * point.energy_j)} mJ"
    return (
        shown(point.name),
        shown(point.manner),
        f"{getattr(point, metric):.2%}",
        text.three_digits(point.throughput),
        text.size(point.ram_bytes),
        *((energy,) if has_energy else ()),
    )
