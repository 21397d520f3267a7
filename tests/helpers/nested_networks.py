"""Scenarios that share weights: slices of one network in width and in depth, and applications made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from unittest.mock import patch

import numpy as np

from edgewright.adaptive import scenarios
from edgewright.adaptive.scenarios import AdaptiveApplication
from edgewright.application import draft
from edgewright.application.draft import Application
from edgewright.network import Layer, Network, Region, check
from edgewright.network.operators import AvgPool2d, Conv2d, Dense, Reshape
from edgewright.network.part_draft import tensor_part

LEAST = 4  # channels: widths are multiples of it


def narrowed(network: Network, width: float, seed: int | None = None) -> Network:
    """The network with the first channels of every layer, as large a part of all as `width` says.

    Products that no other one follows keep all their outputs. Weights are slices of the whole network's, and so are
    biases; with `seed`, biases are other ones, as training each width gives them.
    """
    followed: set[str] = set()  # tensors that lead to a product
    for layer in reversed(network.layers):
        if layer.output in followed or isinstance(layer.op, Conv2d | Dense):
            followed.update(layer.inputs)
    rng = None if seed is None else np.random.default_rng(seed)
    tensors, constants = dict(network.tensors), dict(network.constants)
    layers = []

    def part(name: str, counts: Mapping[int, int]) -> None:
        """Cuts a constant to its first entries along some axes."""
        tensor = network.tensors[name]
        region = Region(tuple((0, counts.get(axis, n)) for axis, n in enumerate(tensor.shape)))
        tensors[name] = tensor_part(tensor, region)
        constants[name] = np.ascontiguousarray(network.constants[name][tuple(slice(*b) for b in region.bounds)])

    for layer in network.layers:
        op, product = layer.op, isinstance(layer.op, Conv2d | Dense)
        depth = tensors[layer.inputs[0]].shape[-1]
        if product:
            weights = network.tensors[layer.inputs[1]].shape
            is_depthwise = isinstance(op, Conv2d) and op.groups > 1
            whole = weights[0]
            count = whole if layer.output not in followed else depth if is_depthwise else _width(whole, width)
            op = replace(op, groups=depth) if is_depthwise else op
            part(layer.inputs[1], {0: count} if is_depthwise else {0: count, len(weights) - 1: depth})
            for bias in layer.inputs[2:]:
                part(bias, {0: count})
                if rng is not None and width < 1:
                    values = constants[bias]
                    constants[bias] = values + rng.integers(-500, 500, values.shape).astype(values.dtype)
        elif isinstance(op, Reshape):
            was = network.tensors[layer.inputs[0]].shape
            assert op.shape[-1] == was[-1], f"{layer.name} moves channels elsewhere"
            op = replace(op, shape=(*op.shape[:-1], depth))
        made = replace(layer, op=op)
        shape = op.output_shape([tensors[name].shape for name in layer.inputs])
        tensors[layer.output] = replace(tensors[layer.output], shape=shape)
        layers.append(made)
    name = f"{network.name}_{round(100 * width)}"
    return check(replace(network, name=name, layers=tuple(layers), tensors=tensors, constants=constants))


def _width(whole: int, part: float) -> int:
    return min(whole, LEAST * ceil(whole * part / LEAST))


def shortened(network: Network, blocks: Sequence[tuple[int, int]]) -> Network:
    """The network without some blocks of layers: each from its first layer to one past its last.

    What comes before a block writes what the block wrote, which has the same shape: later layers stay as they are.
    """
    writes, left_out = {}, set()
    for first, end in blocks:
        before, after = network.layers[first].inputs[0], network.layers[end - 1].output
        readers = [layer for layer in network.layers if before in layer.inputs]
        assert network.tensors[before].shape == network.tensors[after].shape and before not in network.inputs
        assert all(layer in network.layers[first:end] for layer in readers)
        writes[before] = after
        left_out.update(range(first, end))
    layers = []
    for layer in (layer for at, layer in enumerate(network.layers) if at not in left_out):
        output = layer.output
        while output in writes:  # blocks that follow each other
            output = writes[output]
        layers.append(replace(layer, output=output))
    used = {name for layer in layers for name in (*layer.inputs, layer.output)} | {*network.inputs}
    tensors = {name: tensor for name, tensor in network.tensors.items() if name in used}
    constants = {name: value for name, value in network.constants.items() if name in used}
    return check(replace(network, layers=tuple(layers), tensors=tensors, constants=constants))


def early_exit(network: Network, count: int) -> Network:
    """The first layers of the network, which end in averages over the image."""
    kept = network.layers[:count]
    x = network.tensors[kept[-1].output]
    batch, height, width, channels = x.shape
    y = replace(x, name="exit", shape=(batch, 1, 1, channels))
    head = Layer("exit", AvgPool2d((height, width)), (x.name,), y.name)
    made = replace(network, name=f"{network.name}_{count}", outputs=(y.name,))
    return check(made.with_layers((*kept, head), [y]))


def application_of(networks: Sequence[Network], target: str, folder: Path, keys: str = "") -> Application:
    """An application whose networks are these, in place of those in files; `keys` are of each entry."""
    entries = "".join(f'[[network]]\nname = "n{at}"\nfile = "given"\n{keys}\n' for at in range(len(networks)))
    (folder / "app.toml").write_text(f'target = "{target}"\n{entries}')
    with patch.object(draft, "read_network", side_effect=networks):
        return draft.load_application(folder / "app.toml")


def scenarios_of(networks: Sequence[Network], target: str, folder: Path, keys: str = "") -> AdaptiveApplication:
    """The same as scenarios that switch, the first one at the start."""
    entries = "".join(
        f'[[network]]\nname = "n{at}"\nfile = "given"\n{keys}\n[[scenario]]\nname = "n{at}"\n'
        for at in range(len(networks))
    )
    (folder / "app.toml").write_text(f'target = "{target}"\n[adapt]\nstart = "n0"\n{entries}')
    with patch.object(scenarios, "read_network", side_effect=networks):
        return scenarios.load_adaptive(folder / "app.toml")
