"""Clean-up of a network after reading: each pass is a function from network to network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..network import Network, check
from .affine import fold_affine, fuse_activations
from .channels_last import to_channels_last
from .constants import fold_constants, fold_dequantised
from .flatten import fold_flatten
from .identities import drop_dead, drop_identities, merge_reshapes
from .padding import fold_padding
from .quantise import quantise_layers
from .recognise import recognise_activations, recognise_shuffles

Pass = Callable[[Network], Network]


def name_tensors(network: Network) -> Network:
    """Names inner tensors after the layer that writes them; inputs and outputs keep their names.

    Files use names like "117", or join the names of all fused operators.
    """
    renamed: dict[str, str] = {}
    taken = set(network.tensors)
    for layer in network.layers:
        if layer.output not in network.outputs and layer.name not in taken:
            renamed[layer.output] = layer.name
            taken.add(layer.name)
    tensors = {
        renamed.get(name, name): replace(tensor, name=renamed.get(name, name))
        for name, tensor in network.tensors.items()
    }
    layers = tuple(
        replace(
            layer,
            inputs=tuple(renamed.get(name, name) for name in layer.inputs),
            output=renamed.get(layer.output, layer.output),
        )
        for layer in network.layers
    )
    origins = {renamed.get(name, name): origin for name, origin in network.origins.items()}
    return replace(network, tensors=tensors, layers=layers, origins=origins)


PASSES: Mapping[str, Pass] = {
    "drop dead layers": drop_dead,
    "fold constants": fold_constants,
    "drop identities": drop_identities,
    "images channels last": to_channels_last,
    "merge reshapes": merge_reshapes,
    "recognise pixel shuffles": recognise_shuffles,
    "fold flattening into dense weights": fold_flatten,
    "recognise activations": recognise_activations,
    "quantise layers": quantise_layers,
    "fold stored constants": fold_dequantised,
    "drop identities of stored values": drop_identities,
    "fold scale and shift": fold_affine,
    "fold padding": fold_padding,
    "fuse activations": fuse_activations,
    "name tensors after their layers": name_tensors,
}


def run(network: Network, passes: Mapping[str, Pass] = PASSES) -> Network:
    """The network after the passes, checked after each; an error carries the name of the pass that caused it."""
    for name, function in passes.items():
        try:
            network = check(function(network))
        except Exception as error:
            error.add_note(f"in pass '{name}'")
            raise
    return network


__all__ = ["PASSES", "Pass", "run"]
