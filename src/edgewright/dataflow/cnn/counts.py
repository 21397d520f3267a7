"""The number of phases of each layer of a CNN: by rows wherever that can save memory (M 4.5.1)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ...network import Layer, Network
from ...network.operators import AvgPool2d, Conv2d, MaxPool2d, Pair
from ...program.steps import row_count
from .rows import reads


def phases(network: Network) -> dict[str, int]:
    """Phases of each actor of a network: its inputs, its layers and its outputs, in this order (M Algorithm 3).

    As many as the output has rows; one for a layer that needs its whole input at once, and for an output, which is
    passed on whole. The paper speaks of windows; here the operator's needs decide.
    """
    counts = {name: row_count(network.tensors[tensor].shape) for tensor, name in input_actors(network).items()}
    counts |= {layer.name: _by_rows(network, layer) for layer in network.layers}
    return counts | dict.fromkeys(output_actors(network).values(), 1)


def input_actors(network: Network) -> Mapping[str, str]:
    """The actor of each input."""
    return {tensor: _free_name(tensor, ".in", network.by_name) for tensor in network.inputs}


def output_actors(network: Network) -> Mapping[str, str]:
    """The actor of each computed output."""
    taken = {*network.by_name, *input_actors(network).values()}
    computed = [tensor for tensor in dict.fromkeys(network.outputs) if tensor not in network.constants]
    return {tensor: _free_name(f"{tensor}.out", "'", taken) for tensor in computed}


def _free_name(name: str, mark: str, taken: Collection[str]) -> str:
    while name in taken:
        name += mark
    return name


def _by_rows(network: Network, layer: Layer) -> int:
    rows = row_count(network.tensors[layer.output].shape)
    return 1 if rows > 1 and _needs_all_at_once(network, layer, rows) else rows


def _needs_all_at_once(network: Network, layer: Layer, rows: int) -> bool:
    """Whether the window is as large as the image, or the first row reads every image to its end."""
    kernel = _kernel(network, layer)
    if kernel is not None and kernel == network.shapes(layer)[0][1:3]:
        return True
    images = [name for name in network.activations(layer) if row_count(network.tensors[name].shape) > 1]
    read = [(reads(network, layer, name, rows)[0], row_count(network.tensors[name].shape)) for name in images]
    return bool(read) and all(first == (0, whole) for first, whole in read)


def _kernel(network: Network, layer: Layer) -> Pair | None:
    match layer.op:
        case Conv2d():
            _, height, width, _ = network.shapes(layer)[1]
            return height, width
        case MaxPool2d() | AvgPool2d():
            return layer.op.kernel
    return None
