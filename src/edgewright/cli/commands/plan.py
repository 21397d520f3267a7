"""The options of `edgewright plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..options import TARGETS, interface_options, json_option, model_argument, shape_option
from ..outputs import OutFile, Verb
from ..plan_options import planning_options


class OutPlan(OutFile):
    """A plan file; with --pareto the name, or the folder, of several."""

    def check(self, path: Path, given: dict[str, Any]) -> None:
        if not given["pareto"]:
            super().check(path, given)
            return
        from ..front import point_path

        super().check(point_path(path, 10**12), given)  # no peak takes more digits


@click.command(cls=Verb)
@model_argument
@click.option("--board", help="A name from `edgewright boards`, or a board file (.toml).")
@click.option(
    "--target",
    type=click.Choice(TARGETS),
    help="Whose code is counted, and whose instructions are estimated.  [default: the board's]",
)
@planning_options
@click.option(
    "--pareto", is_flag=True, help="RAM against extra MACs: every plan worth having, each in its own file."
)
@click.option("--page", type=OutFile(), help="Write a self-contained page that shows the plan.")
@click.option(
    "-o",
    "--output",
    type=OutPlan(),
    help="Write the plan, for `compile --plan`. With --pareto a file for each point: plan.json becomes plan-PEAK.json.",
)
@interface_options
@shape_option
@json_option
def command(**given: Any) -> None:
    """The plan for MODEL that needs the least RAM: order of layers, address of every buffer, proof or gap.

    Where whole layers do not fit the board or --ram, layers run in parts, with the least extra work. Ends with status 1
    when no plan fits, and with status 130 when an interrupt ended a search: then the plan is the best so far.
    """
    from ..plan import plan

    plan(**given)
