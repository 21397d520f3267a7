"""Clean-up of a network as read: each pass a function from network to network. Files are the readers' affair."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..network import Network, check
from .affine import fold_affine, fuse_activations
from .channels_last import to_channels_last
from .constants import fold_constants, fold_dequantised
from .flatten import fold_flatten
from .identities import drop_dead, drop_identities, merge_reshapes
from .names import name_tensors
from .padding import fold_padding
from .quantise import quantise_layers
from .recognise import recognise_activations, recognise_shuffles

Pass = Callable[[Network], Network]

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
    """The network after the passes, checked after each; an error carries the name of the pass it came from."""
    for name, function in passes.items():
        try:
            network = check(function(network))
        except Exception as error:
            error.add_note(f"in pass '{name}'")
            raise
    return network


__all__ = ["PASSES", "Pass", "run"]
