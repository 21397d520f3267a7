"""The architecture of a candidate: blocks, as people and searches see them, and the layers that they stand for.

The layers are the one description from which weights, the ONNX model, the PyTorch module and prices follow.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields
from enum import Enum
from functools import cached_property
from typing import Any

from ..errors import InputError

Shape3 = tuple[int, int, int]  # height, width, channels; sensor data are of width 1, with time as their height
Pair = tuple[int, int]  # of height and width

INPUT = "input"  # the tensor that holds a candidate's input
SQUEEZE = 4  # channels of a block's input per channel of its squeeze-excite
MOST_CHANNELS = 1 << 14


@dataclass(frozen=True, slots=True)
class PlainBlock:
    """A convolution, and a max pool where `pool` is more than 1 × 1."""

    channels: int
    kernel: Pair
    stride: Pair = (1, 1)
    pool: Pair = (1, 1)


@dataclass(frozen=True, slots=True)
class SeparableBlock:
    """A depthwise convolution and a pointwise one (DS-CNN, MobileNet), and perhaps a max pool."""

    channels: int
    kernel: Pair
    stride: Pair = (1, 1)
    pool: Pair = (1, 1)


@dataclass(frozen=True, slots=True)
class ResidualBlock:
    """Two convolutions and a shortcut, which is a convolution 1 × 1 where shapes differ (ResNet)."""

    channels: int
    kernel: Pair
    stride: Pair = (1, 1)


@dataclass(frozen=True, slots=True)
class InvertedBlock:
    """An inverted bottleneck (MobileNetV2), with squeeze-excite where asked for (MobileNetV3)."""

    channels: int
    kernel: Pair
    stride: Pair = (1, 1)
    expansion: int = 4
    squeeze: bool = False


Block = PlainBlock | SeparableBlock | ResidualBlock | InvertedBlock
BLOCKS: dict[str, type[Block]] = {
    "plain": PlainBlock,
    "separable": SeparableBlock,
    "residual": ResidualBlock,
    "inverted": InvertedBlock,
}
KIND_OF = {kind: name for name, kind in BLOCKS.items()}


class FinalPooling(Enum):
    """How the last feature map becomes the vector that dense layers read."""

    MEAN = "mean"
    MAX = "max"
    NONE = "none"  # all of its values


class PrimitiveKind(Enum):
    """What a primitive layer computes."""

    CONVOLUTION = "convolution"
    DEPTHWISE = "depthwise"
    DENSE = "dense"
    MAX_POOL = "max pool"
    MEAN = "mean"  # of every channel
    MAX = "max"  # of every channel
    ADD = "add"
    MULTIPLY = "multiply"  # by one factor per channel
    SIGMOID = "sigmoid"


@dataclass(frozen=True, slots=True)
class PrimitiveLayer:
    """One layer of a candidate; its output carries its name. Convolutions are padded SAME, as TensorFlow does."""

    name: str
    kind: PrimitiveKind
    inputs: tuple[str, ...]
    source: Shape3  # shape of the first input
    shape: Shape3  # of the output
    kernel: Pair = (1, 1)
    stride: Pair = (1, 1)
    relu: bool = False
    is_normalised: bool = False  # by a batch normalisation, in place of a bias

    @property
    def weight_shape(self) -> tuple[int, int, int, int] | None:
        """Outputs, inputs, height, width; a dense layer reads its whole input. None for layers without weights."""
        match self.kind:
            case PrimitiveKind.CONVOLUTION:
                return (self.shape[2], self.source[2], *self.kernel)
            case PrimitiveKind.DEPTHWISE:
                return (self.shape[2], 1, *self.kernel)
            case PrimitiveKind.DENSE:
                return (self.shape[2], self.source[2], self.source[0], self.source[1])
        return None


@dataclass(frozen=True)
class CnnArchitecture:
    """A candidate: blocks, hidden dense layers, and a dense layer with one output per class."""

    input: Shape3
    blocks: tuple[Block, ...]
    classes: int
    dense: tuple[int, ...] = ()  # units of the hidden ones
    pooling: FinalPooling = FinalPooling.MEAN

    def __post_init__(self) -> None:
        sizes = [*self.input, self.classes, *self.dense]
        for block in self.blocks:
            sizes += [block.channels, *block.kernel, *block.stride, *getattr(block, "pool", ())]
            sizes.append(getattr(block, "expansion", 1))
        if not self.blocks or min(sizes) < 1 or max(sizes) > MOST_CHANNELS:
            raise InputError(
                f"an architecture needs at least one block, and sizes from 1 to {MOST_CHANNELS}; it has "
                f"{len(self.blocks)} blocks and sizes from {min(sizes)} to {max(sizes)}"
            )

    def text(self) -> str:
        """One line of JSON that `parse` reads; equal for equal architectures alone."""
        return json.dumps(
            {
                "input": self.input,
                "blocks": [_entry(block) for block in self.blocks],
                "dense": self.dense,
                "classes": self.classes,
                "pooling": self.pooling.value,
            },
            separators=(",", ":"),
            sort_keys=True,
        )

    @staticmethod
    def parse(text: str) -> CnnArchitecture:
        """The architecture of a text; an error names what is wrong with it."""
        try:
            data = json.loads(text)
            return CnnArchitecture(
                (int(data["input"][0]), int(data["input"][1]), int(data["input"][2])),
                tuple(_block(entry) for entry in data["blocks"]),
                int(data["classes"]),
                tuple(int(units) for units in data["dense"]),
                FinalPooling(data["pooling"]),
            )
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise InputError(f"is not an architecture ({error}); expected the text that a search wrote") from error

    @cached_property
    def key(self) -> str:
        """The first 12 hexadecimal digits of the text's SHA-256: a short name of the candidate."""
        return hashlib.sha256(self.text().encode()).hexdigest()[:12]

    def layers(self) -> tuple[PrimitiveLayer, ...]:
        """The layers in order. Those of block 2 are named `block2.…`; then `pool`, `dense0` …, `classes`."""
        return self._layers

    @cached_property
    def _layers(self) -> tuple[PrimitiveLayer, ...]:
        draft = _LayerDraft(self.input)
        for index, block in enumerate(self.blocks):
            draft.block(f"block{index}", block)
        if self.pooling is not FinalPooling.NONE:
            draft.add("pool", PrimitiveKind(self.pooling.value), (1, 1, draft.shape[2]))
        for index, units in enumerate(self.dense):
            draft.add(f"dense{index}", PrimitiveKind.DENSE, (1, 1, units), relu=True)
        draft.add("classes", PrimitiveKind.DENSE, (1, 1, self.classes))
        return tuple(draft.layers)

    @property
    def parameters(self) -> int:
        """Weights and biases, batch normalisations folded."""
        shapes = [layer.weight_shape for layer in self.layers()]
        return sum(o * i * h * w + o for o, i, h, w in filter(None, shapes))

    @property
    def macs(self) -> int:
        """Multiply-accumulates of convolutions and dense layers."""
        total = 0
        for layer in self.layers():
            if shape := layer.weight_shape:
                o, i, h, w = shape
                total += layer.shape[0] * layer.shape[1] * o * i * h * w
        return total


def _entry(block: Block) -> dict[str, object]:
    return {"kind": KIND_OF[type(block)], **{field.name: getattr(block, field.name) for field in fields(block)}}


def _block(entry: dict[str, Any]) -> Block:
    kind = BLOCKS[entry["kind"]]
    values: dict[str, Any] = {}
    for name, value in entry.items():
        if name != "kind":
            values[name] = (int(value[0]), int(value[1])) if isinstance(value, list) else value
            if not isinstance(values[name], int | tuple):
                raise ValueError(f"{name} of a block is no whole number")
    return kind(**values)


class _LayerDraft:
    """Layers under construction: each new one reads the last unless told otherwise."""

    def __init__(self, shape: Shape3) -> None:
        self.layers: list[PrimitiveLayer] = []
        self.tensor, self.shape = INPUT, shape

    def add(self, name: str, kind: PrimitiveKind, shape: Shape3, *others: str, **options: Any) -> str:
        self.layers.append(PrimitiveLayer(name, kind, (self.tensor, *others), self.shape, shape, **options))
        self.tensor, self.shape = name, shape
        return name

    def convolution(self, name: str, channels: int, kernel: Pair = (1, 1), stride: Pair = (1, 1), **how: Any) -> str:
        kind = PrimitiveKind.DEPTHWISE if how.pop("is_depthwise", False) else PrimitiveKind.CONVOLUTION
        how = {"relu": True, "is_normalised": True, **how}
        return self.add(name, kind, (*_strided(self.shape, stride), channels), kernel=kernel, stride=stride, **how)

    def block(self, name: str, block: Block) -> None:
        match block:
            case PlainBlock():
                self.convolution(f"{name}.conv", block.channels, block.kernel, block.stride)
                self.pool(name, block.pool)
            case SeparableBlock():
                self.depthwise(f"{name}.depthwise", block.kernel, block.stride)
                self.convolution(f"{name}.pointwise", block.channels)
                self.pool(name, block.pool)
            case ResidualBlock():
                self.residual(name, block)
            case InvertedBlock():
                self.inverted(name, block)

    def depthwise(self, name: str, kernel: Pair, stride: Pair) -> None:
        self.convolution(name, self.shape[2], kernel, stride, is_depthwise=True)

    def pool(self, name: str, size: Pair) -> None:
        height, width = min(size[0], self.shape[0]), min(size[1], self.shape[1])
        if (height, width) != (1, 1):
            shape = (self.shape[0] // height, self.shape[1] // width, self.shape[2])
            self.add(f"{name}.pool", PrimitiveKind.MAX_POOL, shape, kernel=(height, width), stride=(height, width))

    def residual(self, name: str, block: ResidualBlock) -> None:
        source = self.tensor, self.shape
        self.convolution(f"{name}.first", block.channels, block.kernel, block.stride)
        self.convolution(f"{name}.second", block.channels, block.kernel, relu=False)
        last = self.tensor, self.shape
        self.tensor, self.shape = source
        if self.shape != last[1]:
            self.convolution(f"{name}.shortcut", block.channels, stride=block.stride, relu=False)
        shortcut = self.tensor
        self.tensor, self.shape = last
        self.add(f"{name}.add", PrimitiveKind.ADD, self.shape, shortcut, relu=True)

    def inverted(self, name: str, block: InvertedBlock) -> None:
        source, shape = self.tensor, self.shape
        if block.expansion > 1:
            self.convolution(f"{name}.expand", shape[2] * block.expansion)
        self.depthwise(f"{name}.depthwise", block.kernel, block.stride)
        if block.squeeze:
            scaled, wide = self.tensor, self.shape
            self.add(f"{name}.mean", PrimitiveKind.MEAN, (1, 1, wide[2]))
            self.convolution(f"{name}.squeeze", max(1, shape[2] // SQUEEZE), is_normalised=False)
            self.convolution(f"{name}.excite", wide[2], relu=False, is_normalised=False)
            factor = self.add(f"{name}.gate", PrimitiveKind.SIGMOID, self.shape)
            self.tensor, self.shape = scaled, wide
            self.add(f"{name}.scale", PrimitiveKind.MULTIPLY, wide, factor)
        self.convolution(f"{name}.project", block.channels, relu=False)
        if self.shape == shape:
            self.add(f"{name}.add", PrimitiveKind.ADD, shape, source)


def _strided(shape: Shape3, stride: Pair) -> Pair:
    return -(-shape[0] // stride[0]), -(-shape[1] // stride[1])
