"""Compares a network with its reference layer by layer: each layer is computed from the reference's values of its
inputs.

End to end, single steps of quantised layers accumulate; so do those of the reference itself, with and without its
optimisations. The result of a layer on given inputs does not depend on the layers before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .interface import file_outputs, stored_inputs
from .kernels import execute, run_layer
from .network import Network
from .reference import OutputDifference, Reference, badness, compare, difference
from .tensor import Array


@dataclass(frozen=True)
class LayerDifference:
    """A layer whose output differs from the reference's although its inputs are equal."""

    layer: str
    difference: OutputDifference


@dataclass(frozen=True)
class Layerwise:
    """The result of a layer-by-layer comparison."""

    outputs: Mapping[str, Array]  # of our kernels, end to end, in the file's form
    plain: Mapping[str, Array]  # of the reference without its optimisations
    compared: int  # number of layers
    first: LayerDifference | None  # the first layer that differs
    worst: LayerDifference | None  # the layer with the largest difference relative to its tolerance
    itself: OutputDifference  # the reference without its optimisations, compared with itself with them

    @property
    def passes(self) -> bool:
        return self.worst is None or self.worst.difference.passes


def compare_layers(
    network: Network, reference: Reference, inputs: Mapping[str, Array], expected: Mapping[str, Array]
) -> Layerwise:
    """Compares the layers on these inputs, which are in the file's form; `expected` are the reference's usual
    outputs."""
    theirs = reference.trace(inputs)
    given = stored_inputs(network, inputs)
    values: dict[str, Array] = {**network.constants, **given}
    last = {name: i for i, layer in enumerate(network.layers) for name in layer.inputs}
    differences: list[LayerDifference] = []
    compared = 0
    for i, layer in enumerate(network.layers):
        mine = run_layer(network, layer, values)
        known = theirs.get(layer.output)
        if known is not None and known.shape == mine.shape and known.dtype == mine.dtype:
            compared += 1
            gap = difference(network, layer.output, mine, known)
            if gap.largest > 0:
                differences.append(LayerDifference(layer.name, gap))
        else:
            known = mine
        values[layer.output] = known
        for name in {*layer.inputs, layer.output} - set(network.constants):
            if last.get(name, i) == i:
                values.pop(name, None)
    plain = {name: theirs[name] for name in network.outputs}
    return Layerwise(
        outputs=file_outputs(network, execute(network, given)),
        plain=plain,
        compared=compared,
        first=next((gap for gap in differences if not _is_rounding(gap)), None),
        worst=max(differences, key=lambda gap: badness(gap.difference), default=None),
        itself=compare(network, plain, expected),
    )


def _is_rounding(gap: LayerDifference) -> bool:
    """Whether real numbers differ within the tolerance."""
    return gap.difference.passes and gap.difference.unit == ""
