"""A network as the papers on several devices see it: layers with their inputs, outputs, weights and work, in values.

S 5.3 calls them M, K, Q and R. S counts convolutions only, and float32 values of four bytes; T counts every layer.
Biases count nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from ...network import Layer, Network
from ...network.operators import Conv2d, ConvTranspose2d, Dense, Reshape, SpaceToDepth

FLOAT32_BYTES = 4
SHUFFLE_NODES = 3  # ONNX has no node for SpaceToDepth: files say Reshape, Transpose, Reshape


class LayerKind(StrEnum):
    CONVOLUTION = "convolution"
    DENSE = "dense"
    OTHER = "other"


class Counting(StrEnum):
    """Which layers of a network count."""

    CONVOLUTIONS = "convolutions"  # as in S 5.5
    EVERYTHING = "everything"


@dataclass(frozen=True, slots=True)
class PaperLayer:
    """One layer, in values. `previous` is the number of the layer that it reads, where no other layer reads that."""

    number: int  # from 1, as the papers count
    name: str
    kind: LayerKind
    inputs: int  # M
    outputs: int  # K
    weights: int = 0  # Q
    macs: int = 0  # R
    previous: int | None = None

    @property
    def features(self) -> int:
        return self.inputs + self.outputs

    @property
    def values(self) -> int:
        """All that a device stores for this layer: T's rules (2) to (4), and S's sequential mapping."""
        return self.weights + self.features


def counted(layers: Iterable[PaperLayer], counting: Counting) -> tuple[PaperLayer, ...]:
    """The layers that count."""
    return tuple(layer for layer in layers if counting is Counting.EVERYTHING or layer.kind is LayerKind.CONVOLUTION)


def follows(layer: PaperLayer, before: PaperLayer | None) -> bool:
    """Whether a layer reads exactly what the layer before it in the list writes: only such layers share data.

    Any layer between two convolutions separates them in S's figures.
    """
    return before is not None and layer.previous == before.number and layer.inputs == before.outputs


def node_layers(network: Network) -> tuple[PaperLayer, ...]:
    """T's layers where each ONNX node is one: activations, reshapes and each step of a pixel shuffle count too."""
    found: list[PaperLayer] = []
    for layer in network.layers:
        one = _paper_layer(network, layer)
        repeats = SHUFFLE_NODES if isinstance(layer.op, SpaceToDepth) else 1
        found += [one] * repeats
        if getattr(layer.op, "activation", None) is not None:
            name = f"{layer.name}.activation"
            found.append(PaperLayer(0, name, LayerKind.OTHER, one.outputs, one.outputs))
    return tuple(replace(layer, number=number) for number, layer in enumerate(found, start=1))


def folded_layers(network: Network) -> tuple[PaperLayer, ...]:
    """T's layers where activations, reshapes and pixel shuffles belong to the layer that they follow."""
    return tuple(_wired(network, [layer for layer in network.layers if not _only_moves(layer)]))


def _wired(network: Network, layers: Sequence[Layer]) -> Iterator[PaperLayer]:
    numbers: dict[str, int] = {}
    for number, layer in enumerate(layers, start=1):
        inputs = network.activations(layer)
        alone = len(inputs) == 1 and network.sole_reader(inputs[0]) is layer
        yield replace(_paper_layer(network, layer), number=number, previous=numbers.get(inputs[0]) if alone else None)
        numbers[layer.output] = number


def _paper_layer(network: Network, layer: Layer) -> PaperLayer:
    constants = [network.tensors[name] for name in layer.inputs if name in network.constants]
    kind = LayerKind.OTHER
    if isinstance(layer.op, Conv2d | ConvTranspose2d):
        kind = LayerKind.CONVOLUTION
    elif isinstance(layer.op, Dense):
        kind = LayerKind.DENSE
    return PaperLayer(
        number=0,
        name=layer.name,
        kind=kind,
        inputs=sum(network.tensors[name].size for name in network.activations(layer)),
        outputs=network.tensors[layer.output].size,
        weights=sum(tensor.size for tensor in constants if len(tensor.shape) > 1),  # a bias has one axis
        macs=network.macs(layer),
    )


def _only_moves(layer: Layer) -> bool:
    return isinstance(layer.op, Reshape | SpaceToDepth)
