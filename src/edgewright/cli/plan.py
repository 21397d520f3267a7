"""`edgewright plan`: order, addresses and peak; whether the plan fits, and if not, why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote

from rich.table import Table

from .. import text
from ..compiling import plain_plan
from ..errors import Infeasible
from ..files import write_together
from ..fusion.choice import FoundPlan, TradeOff, is_interrupted
from ..fusion.request import PlanRequest, plan_notes
from ..fusion.whole import find_whole_layers
from ..kernels.cost.estimate import modelled
from ..kernels.cost.run_time import RunTime, run_time
from ..memory import Fit, critical_buffers, fit
from ..network import Shape
from ..planning import advising, planned
from ..platform import Board, load_board
from ..program import Plan, plan_text, plan_to_dict
from ..program.techniques import techniques
from ..report import plan_page, refusal
from .common import INTERRUPTED_STATUS, console, print_json, print_notes, print_written, read_model, working
from .costs import core_of, estimated
from .front import show_front
from .fusion_groups import fusion_group_table
from .plan_options import PlanOptions
from .plan_tables import savings_table, stages_table, summary_table, trades_table


@dataclass(frozen=True, slots=True)
class PlanVerbOptions:
    """The options of `edgewright plan`, as parsed."""

    model: Path
    board: str | None
    target: str | None
    asked: PlanOptions
    pareto: bool
    page: Path | None
    output: Path | None
    quantised_input: bool
    quantised_output: bool
    shapes: dict[str, Shape]
    as_json: bool


def plan(options: PlanVerbOptions) -> None:
    options.asked.check(pareto=options.pareto)
    hardware = load_board(options.board) if options.board else None
    core = core_of(hardware, options.target)
    network = read_model(options.model, options.shapes, options.quantised_input, options.quantised_output)
    if options.pareto:
        command = _compile_command(options.model, options.shapes, options.quantised_input, options.quantised_output)
        show_front(network, options.asked, hardware, core, command, options.page, options.output, options.as_json)
        return
    request = options.asked.request(network)
    with working(f"planning {network.name}"):
        with advising(network, request, hardware, options.target):
            answer = planned(network, request, hardware, options.target)
        result, chosen, not_counted = answer.search_result, answer.plan, answer.not_counted
        plain = plain_plan(chosen, network, hardware)
        whole = estimated(_whole(result, request, hardware, core), core) if plain and core in modelled() else None
    verdict = fit(chosen, hardware, options.asked.ram)
    critical = critical_buffers(chosen)
    time = run_time(chosen, estimated(chosen, core), hardware)
    files: dict[Path, str | bytes] = {options.output: plan_text(chosen)} if options.output else {}
    if options.page:
        files[options.page] = plan_page(
            chosen,
            critical=critical,
            ram=verdict.ram,
            flash=verdict.flash,
            before=plain,
            not_counted=not_counted,
            time=time,
        )
    write_together(files)
    if options.as_json:
        print_json(
            _json(chosen, verdict, critical, plain, core, result.trades)
            | {"not_counted": not_counted}
            | ({"seconds": time.seconds, "stage_seconds": list(time.stages)} if time else {})
        )
    else:
        _print(chosen, time, list(files), summary_table(chosen, hardware, plain, core, whole, not_counted))
        if len(result.trades) > 1:
            console.print(trades_table(result, core))
        for note in plan_notes(chosen, request):
            console.print(note, style="yellow", soft_wrap=True)
    if not verdict.fits:
        with advising(network, request, hardware, options.target):
            raise Infeasible(refusal(chosen, verdict, critical))
    if not options.as_json:
        console.print(_fitting(verdict), style="green")
    if is_interrupted(chosen):
        raise SystemExit(INTERRUPTED_STATUS)


def _whole(result: FoundPlan, request: PlanRequest, board: Board | None, core: str | None) -> Plan:
    """The plan with whole layers, the baseline of a limit on slowdown."""
    if result.whole:
        return result.whole
    network = result.plan.network
    return find_whole_layers(network, board, request, target=core).plan


def _compile_command(model: Path, shapes: Mapping[str, Shape], quantised_input: bool, quantised_output: bool) -> str:
    """The command that compiles the same network."""
    given = [f"{name}={','.join(map(str, shape))}" for name, shape in shapes.items()]
    flags = [f"--shape {quote(text)}" for text in given]
    ends = (("--quantised-input", quantised_input), ("--quantised-output", quantised_output))
    return " ".join(["edgewright compile", quote(str(model)), *flags, *(flag for flag, is_set in ends if is_set)])


def _json(
    plan: Plan,
    verdict: Fit,
    critical: Sequence[str],
    plain: Plan | None,
    core: str | None,
    trades: Sequence[TradeOff],
) -> dict[str, object]:
    cost = estimated(plan, core)
    about = {"target": core, "instructions": cost.instructions, "error": asdict(cost.error)} if cost else None
    return {
        **plan_to_dict(plan),
        "fits": verdict.fits,
        "ram_needed": verdict.ram_needed,
        "flash_needed": verdict.flash_needed,
        "critical": list(critical),
        "techniques": {name: kind.label for name, kind in techniques(plan).items()},
        "notes": [*plan.notes, *plan.network.notes],
        "plain_peak_bytes": plain.peak_bytes if plain else None,
        "estimate": about,
        "trades": [[trade.peak_bytes, round(1 + trade.slowdown, 4), trade.macs] for trade in trades],
        "interrupted": is_interrupted(plan),
    }


def _print(plan: Plan, time: RunTime | None, written: Sequence[Path], summary: Table) -> None:
    console.print(stages_table(plan, time=time))
    if plan.is_in_parts:
        console.print(fusion_group_table(plan))
    console.print(summary)
    if len(plan.savings) > 1:
        console.print(savings_table(plan))
    print_notes((*plan.notes, *plan.network.notes))
    print_written(written)


def _fitting(verdict: Fit) -> str:
    if verdict.ram is None:
        return "no --board or --ram given: nothing to compare with"
    free = f"{text.count(verdict.ram - verdict.ram_needed)} B of {text.count(verdict.ram)} B RAM"
    if verdict.flash is not None:
        free += f" and {text.count(verdict.flash - verdict.flash_needed)} B of {text.count(verdict.flash)} B flash"
    return f"fits: {free} stay free{'' if verdict.stack is not None else ', code and stack apart'}"
