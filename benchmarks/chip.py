"""Emitted code on the virtual board: instructions per MAC, code, RAM and stack, checked against the reference.

    python benchmarks/chip.py [MODEL ...] [--target cortex-m4] [--json FILE] [--layers]

MODELs are .tflite or .onnx files; by default the four of MLPerf Tiny in $EDGEWRIGHT_CORPUS/models, else bundled ones.
Figures of others in the same unit (instructions counted by QEMU's -icount, whole network, Cortex-M4) are quoted, since
neither can be installed from a package: TFLM with CMSIS-NN, and TFLM's reference kernels.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

import edgewright
from edgewright.emit import TARGETS, emit
from edgewright.emit.firmware import measure
from edgewright.kernels.select import close_plan
from edgewright.network import random_inputs
from edgewright.network.reference import compare, reference

# Instructions per MAC on a Cortex-M4 under -icount: TFLM with CMSIS-NN, TFLM with reference kernels.
QUOTED = {
    "mlperf_vww96_int8": (3.02, 13.4),
    "mlperf_ic_resnet8_int8": (2.28, 8.6),
    "mlperf_kws_ref_int8": (2.72, 16.2),
    "mlperf_ad01_int8": (2.17, 7.4),
}
BUNDLED = ("mobilenet_v1_int8", "resnet8_int8", "ds_cnn_int8", "autoencoder_int8")
CORES = ("cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55", "cortex-m0plus", "rv32imc")


def row(path: Path, core: str, optimise: str) -> dict[str, Any]:
    """One model on one core."""
    network = edgewright.read_model(path)
    plan = edgewright.plan(network, explain=False)
    library = emit(close_plan(plan, TARGETS[core]), path.stem)
    inputs = random_inputs(network, seed=1)
    measured = measure(library, inputs, profile=True, optimise=optimise)
    verdict = compare(network, measured.outputs, reference(path, network).run(inputs))
    macs = max(1, plan.macs)
    return {
        "model": path.stem,
        "core": core,
        "optimise": optimise,
        "agrees": verdict.passes,
        "macs": plan.macs,
        "instructions": measured.instructions,
        "per_mac": (measured.instructions or 0) / macs,
        "flash_code": measured.flash_code,
        "flash_weights": measured.flash_weights,
        "ram_predicted": plan.peak_bytes,
        "ram_linked": measured.ram_linked,
        "stack": measured.stack_bytes,
        "layers": _layers(plan, measured.stages),
    }


def _layers(plan: edgewright.Plan, counts: Mapping[str, int]) -> list[dict[str, Any]]:
    network = plan.network
    found = [(network.by_name[name], count) for name, count in counts.items() if name in network.by_name]
    return [
        {
            "layer": layer.name,
            "operator": type(layer.op).__name__,
            "macs": network.macs(layer),
            "instructions": count,
        }
        for layer, count in found
    ]


def models(given: tuple[Path, ...], folder: Path) -> list[Path]:
    root = os.environ.get("EDGEWRIGHT_CORPUS")
    found = [Path(root) / "models" / f"{name}.tflite" for name in QUOTED] if root else []
    if given or (found and all(path.exists() for path in found)):
        return list(given) or found
    return [edgewright.samples.write(name, folder) for name in BUNDLED]


def table(rows: list[dict[str, Any]]) -> Table:
    result = Table(title="emitted code on the virtual board", title_justify="left")
    result.add_column("model")
    result.add_column("core")
    headings = (
        "instr / MAC",
        "TFLM + CMSIS-NN",
        "TFLM reference",
        "code B",
        "weights B",
        "RAM B",
        "linked B",
        "stack B",
    )
    for heading in headings:
        result.add_column(heading, justify="right")
    result.add_column("agrees")
    for r in rows:
        quoted = QUOTED.get(r["model"]) if r["core"] == "cortex-m4" else None
        others = [f"{q:.2f}" for q in quoted] if quoted else ["", ""]
        sizes = ("flash_code", "flash_weights", "ram_predicted", "ram_linked", "stack")
        numbers = [f"{r[key]:,}" if r[key] is not None else "–" for key in sizes]
        result.add_row(r["model"], r["core"], f"{r['per_mac']:.2f}", *others, *numbers, "yes" if r["agrees"] else "NO")
    return result


def layer_table(entry: dict[str, Any]) -> Table:
    result = Table(title=f"{entry['model']} on {entry['core']}", title_justify="left")
    for heading in ("layer", "operator", "MACs", "instructions", "per MAC"):
        result.add_column(heading, justify="left" if heading in ("layer", "operator") else "right")
    for layer in entry["layers"]:
        per_mac = f"{layer['instructions'] / layer['macs']:.2f}" if layer["macs"] else ""
        numbers = (f"{layer['macs']:,}", f"{layer['instructions']:,}", per_mac)
        result.add_row(layer["layer"][-40:], layer["operator"], *numbers)
    return result


@click.command()
@click.argument("given", nargs=-1, type=click.Path(path_type=Path))
@click.option("--target", "targets", multiple=True, default=("cortex-m4", "rv32imc"), type=click.Choice(CORES))
@click.option("--optimise", default="-Os", help="The compiler's optimisation, such as -O2.")
@click.option("--layers", is_flag=True, help="Also a table of every layer.")
@click.option("--json", "output", type=click.Path(path_type=Path), help="Write the rows to this file.")
def main(given: tuple[Path, ...], targets: tuple[str, ...], optimise: str, layers: bool, output: Path | None) -> None:
    console = Console(width=150)
    folder = Path("out")
    folder.mkdir(exist_ok=True)
    rows = [row(path, core, optimise) for path in models(given, folder) for core in targets]
    console.print(table(rows))
    if layers:
        for entry in rows:
            console.print(layer_table(entry))
    if output:
        output.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
