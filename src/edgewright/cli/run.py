"""`edgewright run`: runs a model's compiled code once, on the virtual board or on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
from rich.table import Table

from ..compiling import make_library
from ..emit import Optimise, Options, Rounding
from ..emit.inputs import load_inputs
from ..emit.verify import run_once
from ..errors import InputError
from ..files import write_atomic
from ..fusion.request import plan_notes
from ..network import Array, Shape, describe, random_inputs
from ..network.reference import to_file_layout
from .common import console, print_json, print_notes, print_written, read_model, shown, table, working
from .costs import costs_table, figures_table
from .plan_options import PlanOptions

# Figures of comparisons, which `run` does not make.
COMPARED = frozenset(["verified", "max_difference", "unit", "reference", "missing", "checks", "by_layers"])


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of `edgewright run`, as parsed."""

    model: Path
    board: str | None
    target: str | None
    plan_file: Path | None
    rounding: str
    fixed_point: bool | None
    optimise: str | None
    asked: PlanOptions
    inputs: tuple[Path, ...]
    output: Path | None
    quantised_input: bool
    quantised_output: bool
    shapes: dict[str, Shape]
    as_json: bool


def run(options: RunOptions) -> None:
    options.asked.check(plan=options.plan_file is not None)
    network = read_model(options.model, options.shapes, options.quantised_input, options.quantised_output)
    given = load_inputs(network, options.inputs) if options.inputs else [random_inputs(network)]
    if len(given) != 1:
        raise InputError(f"{len(given)} samples were given; `run` takes one")
    request = options.asked.request(network)
    with working(f"compiling and running {network.name}"):
        wanted = Optimise(options.optimise) if options.optimise else None
        settings = Options(Rounding(options.rounding), options.fixed_point, optimise=wanted)
        library, hardware = make_library(
            network, options.board, options.target, options.plan_file, None, settings, request
        )
        outputs, figures = run_once(library, given[0], hardware)
    theirs = {name: to_file_layout(network, name, value) for name, value in outputs.items()}
    if options.output:
        _save(options.output, theirs)
    if options.as_json:
        record = {key: value for key, value in figures.to_dict().items() if key not in COMPARED}
        print_json({**record, "outputs": {name: value.tolist() for name, value in theirs.items()}})
        return
    console.print(costs_table(figures, "--json"))
    console.print(figures_table(figures))
    console.print(_outputs(theirs))
    print_notes(plan_notes(library.plan, None if options.plan_file else request))
    print_written([options.output])


def _save(path: Path, outputs: Mapping[str, Array]) -> None:
    buffer = BytesIO()
    np.savez(buffer, **outputs)  # type: ignore[arg-type]
    write_atomic(path, buffer.getvalue())


def _outputs(outputs: Mapping[str, Array], most: int = 10) -> Table:
    """The first values of each output, and the index of the largest."""
    made = table("outputs", "output", "shape", "values", "largest")
    for name, value in outputs.items():
        flat = value.reshape(-1)
        values = " ".join(f"{v:.5g}" for v in flat[:most].tolist()) + (" …" if flat.size > most else "")
        best = f"{flat.max():.5g} at {int(flat.argmax())}" if flat.size else ""
        made.add_row(shown(name), describe.shape(value.shape), values, best)
    return made
