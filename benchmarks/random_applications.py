"""Random applications as C: up to six networks with all kinds of relations, thousands of calls each, none goes wrong.

    python benchmarks/random_applications.py [--applications 1000] [--moves 10000] [--first SEED] [--jobs 2]

Each application is planned, judged, written to a plan file and read again, and printed as C. The library is built with
the address and undefined-behaviour sanitizers, and called at random: in any order, and inside other runs where these
may be interrupted. Results are compared with each network alone, and these with onnxruntime. A call that the library
refuses though it is legal, or allows though it is not, counts as wrong too. Troubles must be 0.
"""

import json
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import onnxruntime
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

from edgewright.application.draft import Application
from edgewright.application.library import emit_application
from edgewright.application.plan_file import load_application_plan, save_application_plan
from edgewright.application.search import JointSearch
from edgewright.board.toolchain import toolchain
from edgewright.emit.deployment.trial import LibraryTrial, TrialScript
from edgewright.errors import EdgewrightError
from edgewright.network import random_inputs
from edgewright.network.kernels import execute
from edgewright.network.reference import to_file_layout
from edgewright.platform.target import TARGETS
from tests.application.cases import random_application

SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g")
STARTS = 5  # calls of an interleaving
TOLERANCE = 1e-4


def examine(seed: int, moves: int) -> dict[str, object]:
    """What came of one application."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        row: dict[str, object] = {"seed": seed, "runs": 0, "nested": 0, "refused": 0, "troubles": []}
        try:
            application = random_application(seed, folder)
            layout = JointSearch(application).least.layout
        except EdgewrightError as error:
            return row | {"not_planned": str(error)}
        try:
            save_application_plan(layout, folder / "app.json")
            library = emit_application(application, load_application_plan(application, folder / "app.json"))
            tools = toolchain(TARGETS["host"])
            tools = replace(tools, flags=(*tools.flags, *SANITIZERS))
            script = TrialScript(interleavings=-(-moves // STARTS), starts=STARTS, seed=seed)
            result = LibraryTrial(library).run(script, tools)
            wrong = [*result.wrong[:3], *differing(application, folder)]
            shared = max((len(fifo.readers) for fifo in application.deployment.shared), default=0)
            return row | {
                "runs": result.runs,
                "nested": result.nested,
                "refused": result.refused,
                "parties": shared + 1,
                "networks": len(application.networks),
                "troubles": wrong,
            }
        except Exception as error:  # whatever it is, it is a trouble of this application
            return row | {"troubles": [f"{type(error).__name__}: {str(error)[-500:]}"]}


def differing(application: Application, folder: Path) -> list[str]:
    """Networks that give something else than onnxruntime does."""
    troubles = []
    for name, network in application.networks.items():
        session = onnxruntime.InferenceSession(folder / application.file.network(name).file)
        inputs = random_inputs(network, 0)
        feed = {x: np.ascontiguousarray(to_file_layout(network, x, value)) for x, value in inputs.items()}
        ours = execute(network, inputs)
        for output, value in zip(session.get_outputs(), session.run(None, feed), strict=True):
            own = to_file_layout(network, output.name, ours[output.name])
            if not np.allclose(own, value, rtol=TOLERANCE, atol=TOLERANCE * float(np.abs(value).max())):
                troubles.append(f"network '{name}' differs from onnxruntime")
    return troubles


@click.command()
@click.option("--applications", default=1000, show_default=True)
@click.option("--moves", default=10_000, show_default=True, help="Calls of run functions, beside those inside others.")
@click.option("--first", default=0, show_default=True, help="The first seed.")
@click.option("--jobs", default=2, show_default=True)
@click.option("--json", "file", type=click.Path(path_type=Path))
def main(applications: int, moves: int, first: int, jobs: int, file: Path | None) -> None:
    seeds = range(first, first + applications)
    work = Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(examine)(seed, moves) for seed in seeds)
    console, rows, sums = Console(width=120), [], Counter[str]()
    for row in work:
        rows.append(row)
        sums.update({key: value for key, value in row.items() if key in ("runs", "nested", "refused")})
        for trouble in row["troubles"]:
            console.print(f"seed {row['seed']}: {trouble}", style="red", markup=False)
    planned = [row for row in rows if "not_planned" not in row]
    table = Table(
        "applications", "planned", "three parties or more", "runs", "inside others", "refused", "with trouble"
    )
    troubled = sum(bool(row["troubles"]) for row in rows)
    many = sum(row.get("parties", 0) > 2 for row in planned)
    table.add_row(*map(str, (len(rows), len(planned), many, sums["runs"], sums["nested"], sums["refused"], troubled)))
    console.print(table)
    if file is not None:
        file.write_text(json.dumps({"rows": rows, **sums}, indent=1) + "\n")
    sys.exit(1 if troubled else 0)


if __name__ == "__main__":
    main()
