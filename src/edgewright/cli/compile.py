"""`edgewright compile`: the model as a C library that has been built, run and compared."""

from __future__ import annotations

from pathlib import Path

from ..compiling import make_library, package, plain_plan
from ..emit import Kernels, Optimise, Options, Rounding
from ..emit.inputs import load_inputs
from ..emit.names import library_name, renamed
from ..emit.packaging import check_folder
from ..emit.verify import predicted
from ..emit.verify import verify as run_and_compare
from ..fusion.request import plan_notes
from ..network import Shape
from .common import console, print_json, print_notes, print_written, read_model, shown, working
from .costs import costs_table, figures_table, sentence
from .plan_options import PlanOptions


def compile_(
    model: Path,
    board: str | None,
    target: str | None,
    plan_file: Path | None,
    rounding: str,
    fixed_point: bool | None,
    optimise: str | None,
    asked: PlanOptions,
    output: Path | None,
    name: str | None,
    renames: dict[str, str],
    kernels: str,
    verify: bool,
    inputs: tuple[Path, ...],
    force: bool,
    quantised_input: bool,
    quantised_output: bool,
    shapes: dict[str, Shape],
    as_json: bool,
) -> None:
    asked.check(plan=plan_file is not None)
    if output is not None:
        check_folder(output, force)
    network = read_model(model, shapes, quantised_input, quantised_output)
    name = library_name(network, name)
    folder = output or Path(name)
    check_folder(folder, force)
    given = load_inputs(network, inputs) if inputs else []
    wanted = Optimise(optimise) if optimise else None
    options = Options(Rounding(rounding), fixed_point, Kernels(kernels), wanted, renamed(network, renames))
    request = asked.request(network)
    with working(f"compiling {network.name}"):
        library, hardware = make_library(network, board, target, plan_file, name, options, request)
    with working(f"verifying {network.name}"):
        figures = run_and_compare(library, model, given, board=hardware) if verify else predicted(library, hardware)
    before = plain_plan(library.plan, network, hardware)
    package(library, figures, hardware, asked.ram, before).write(folder, force)
    if as_json:
        print_json({**figures.to_dict(), "output": str(folder)})
        return
    console.print(costs_table(figures, "report.html"))
    console.print(figures_table(figures))
    print_notes((*plan_notes(library.plan, None if plan_file else request), *figures.notes, *network.notes))
    print_written([folder])
    is_clear = figures.verified and not figures.missing
    console.print(shown(sentence(figures)), style="green" if is_clear else "yellow", soft_wrap=True)
