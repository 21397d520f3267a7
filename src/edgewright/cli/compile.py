"""`edgewright compile`: builds the model as a C library, runs it and compares the outputs."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """The options of `edgewright compile`, as parsed."""

    model: Path
    board: str | None
    target: str | None
    plan_file: Path | None
    rounding: str
    fixed_point: bool | None
    optimise: str | None
    asked: PlanOptions
    output: Path | None
    name: str | None
    renames: dict[str, str]
    kernels: str
    verify: bool
    inputs: tuple[Path, ...]
    force: bool
    quantised_input: bool
    quantised_output: bool
    shapes: dict[str, Shape]
    as_json: bool


def compile_(options: CompileOptions) -> None:
    options.asked.check(plan=options.plan_file is not None)
    if options.output is not None:
        check_folder(options.output, options.force)
    network = read_model(options.model, options.shapes, options.quantised_input, options.quantised_output)
    name = library_name(network, options.name)
    folder = options.output or Path(name)
    check_folder(folder, options.force)
    given = load_inputs(network, options.inputs) if options.inputs else []
    wanted = Optimise(options.optimise) if options.optimise else None
    settings = Options(
        Rounding(options.rounding),
        options.fixed_point,
        Kernels(options.kernels),
        wanted,
        renamed(network, options.renames),
    )
    request = options.asked.request(network)
    with working(f"compiling {network.name}"):
        library, hardware = make_library(
            network, options.board, options.target, options.plan_file, name, settings, request
        )
    with working(f"verifying {network.name}"):
        figures = (
            run_and_compare(library, options.model, given, board=hardware)
            if options.verify
            else predicted(library, hardware)
        )
    before = plain_plan(library.plan, network, hardware)
    package(library, figures, hardware, options.asked.ram, before).write(folder, options.force)
    if options.as_json:
        print_json({**figures.to_dict(), "output": str(folder)})
        return
    console.print(costs_table(figures, "report.html"))
    console.print(figures_table(figures))
    print_notes((*plan_notes(library.plan, None if options.plan_file else request), *figures.notes, *network.notes))
    print_written([folder])
    is_clear = figures.verified and not figures.missing
    console.print(shown(sentence(figures)), style="green" if is_clear else "yellow", soft_wrap=True)
