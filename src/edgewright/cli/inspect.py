"""`edgewright inspect`: shows what a model file contains."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from .. import text
from ..network import Network, Shape, describe
from ..network.summary import constant_bytes, summary
from .common import console, facts, print_json, print_notes, read_model, shown, table


def inspect(model: Path, shapes: dict[str, Shape], everything: bool, as_json: bool) -> None:
    network = read_model(model, shapes)
    if as_json:
        print_json(summary(network))
        return
    console.print(_headline(network))
    console.print(_layers(network, len(network.layers) if everything else 40))
    console.print(_dominant(network))
    print_notes(network.notes)


def _headline(network: Network) -> Table:
    grid = facts()
    for label, names in (("input", network.inputs), ("output", network.outputs)):
        for name in names:
            tensor = network.tensors[name]
            grid.add_row(label, shown(tensor), f"{text.count(tensor.bytes)} B")
    grid.add_row("layers", text.count(len(network.layers)))
    grid.add_row("weights", f"{text.count(network.weight_bytes)} B", text.rounded_size(network.weight_bytes))
    grid.add_row("work", f"{text.count(network.total_macs)} MACs")
    return grid


def _layers(network: Network, most: int) -> Table:
    made = table(shown(network.name), ">#", "layer", "operator", "output", ">RAM out", ">weights", ">MACs")
    for index, layer in enumerate(network.layers[:most]):
        tensor = network.tensors[layer.output]
        weights = constant_bytes(network, layer.inputs)
        macs = network.macs(layer)
        made.add_row(
            str(index),
            shown(layer.name),
            shown(describe.operator(layer.op, network.shapes(layer))),
            f"{'x'.join(map(str, tensor.shape)) or 'scalar'} {tensor.dtype.value}",
            text.count(tensor.bytes),
            text.count(weights) if weights else "",
            text.rounded_count(macs) if macs else "",
        )
    if len(network.layers) > most:
        made.add_row("", f"… {len(network.layers) - most} more; --all shows them", "", "", "", "", "")
    return made


def _dominant(network: Network) -> Table:
    """The layers with the most input and output bytes: no plan of whole layers needs less."""
    title = "what dominates memory: input and output of one layer"
    made = table(title, "layer", "reads and writes", ">bytes")
    rows = sorted(network.layers, key=lambda layer: -_pair(network, layer.name))
    for layer in rows[:5]:
        names = (*network.activations(layer), layer.output)
        parts = [f"{shown(name)} {text.count(network.tensors[name].bytes)}" for name in names]
        made.add_row(shown(layer.name), "\n".join(parts), text.count(_pair(network, layer.name)))
    return made


def _pair(network: Network, name: str) -> int:
    layer = network.by_name[name]
    return sum(network.tensors[n].bytes for n in (*network.activations(layer), layer.output))
