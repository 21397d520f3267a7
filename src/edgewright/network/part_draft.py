"""A part under construction: layers on regions of tensors, and slices where a layer reads less than what is
available."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..errors import Unsupported
from .builder import Builder
from .network import Layer, Network
from .operators import Concat, Conv2d, ConvTranspose2d, Dense, DynamicProduct, Op, PartialSum, Slice
from .operators.base import RestrictedOperator, WidenedRegion
from .region import Region
from .restrict import restrict
from .tensor import Quant, Tensor

_PRODUCTS = (Conv2d, ConvTranspose2d, Dense, DynamicProduct, PartialSum)


@dataclass(frozen=True, slots=True)
class RestrictedPiece:
    """A region of a layer's output, and the operator that computes it."""

    region: Region
    how: RestrictedOperator


@dataclass(frozen=True, slots=True)
class JoinedPieces:
    """A region that no single operator computes: its parts, joined along an axis."""

    region: Region
    axis: int
    parts: tuple[RestrictedPiece | JoinedPieces, ...]


def pieces(network: Network, layer: Layer, region: Region) -> RestrictedPiece | JoinedPieces:
    """How to compute the region: one piece, or several that are joined along an axis.

    A whole output is computed by the layer itself, from whole inputs.
    """
    shapes = network.shapes(layer)
    if region == Region.whole(network.tensors[layer.output].shape):
        return RestrictedPiece(region, RestrictedOperator(layer.op, tuple(map(Region.whole, shapes))))
    answer = restrict(layer.op, region, shapes, network.tensors[layer.inputs[0]].dtype)
    assert not isinstance(answer, WidenedRegion), f"{layer.name}: {region} is not computable alone"
    if isinstance(answer, RestrictedOperator):
        return RestrictedPiece(region, answer)
    return JoinedPieces(region, answer.axis, tuple(pieces(network, layer, part) for part in answer.regions))


def reads(piece: RestrictedPiece | JoinedPieces) -> Iterator[tuple[int, Region]]:
    """The index of each input that is read, and the region that is read of it."""
    if isinstance(piece, JoinedPieces):
        for part in piece.parts:
            yield from reads(part)
        return
    for i, region in enumerate(piece.how.reads):
        if region is not None:
            yield i, region


def tensor_part(tensor: Tensor, region: Region, name: str | None = None) -> Tensor:
    """A region as a separate tensor, with the scales of its channels."""
    quant = tensor.quant
    if quant is not None and quant.is_per_channel:
        start, stop = region.bounds[(quant.axis or 0) % len(tensor.shape)]
        quant = Quant(quant.scale[start:stop], quant.zero[start:stop], quant.axis)
    return Tensor(name or tensor.name, region.shape, tensor.dtype, quant)


class PartDraft:
    """The part, layer by layer. `wanted` is the region of each tensor that is available in it, computed or read."""

    def __init__(self, network: Network, name: str, wanted: Mapping[str, Region]) -> None:
        self.whole = network
        self.wanted = wanted
        self.builder = Builder(name, network.arithmetic)
        self.inputs: dict[str, tuple[str, Region]] = {}  # input of the part -> tensor and region of the whole network
        self._held: dict[
            str, tuple[str, Region]
        ] = {}  # tensor of the whole network -> the part's tensor and its region
        self._slices: dict[tuple[str, Region], str] = {}

    def read(self, tensor: str, region: Region) -> str:
        """The part's tensor with exactly this region: a constant, an available tensor, or a slice of one."""
        if (tensor, region) in self._slices:
            return self._slices[tensor, region]
        if tensor in self.whole.constants:
            name = self._constant(tensor, region)
        else:
            name = self._activation(tensor, region)
        self._slices[tensor, region] = name
        return name

    def _constant(self, tensor: str, region: Region) -> str:
        value, kind = self.whole.constants[tensor], self.whole.tensors[tensor]
        if region == Region.whole(kind.shape):
            return self.builder.constant(tensor, value, kind.quant)
        return self.builder.constant(tensor, value[region.slices], tensor_part(kind, region).quant)

    def _activation(self, tensor: str, region: Region) -> str:
        kind = self.whole.tensors[tensor]
        if tensor not in self._held:
            hull = tensor_part(kind, self.wanted[tensor], self.builder.fresh(tensor))
            name = self.builder.input(hull.name, hull.shape, hull.dtype, hull.quant)
            self.inputs[name] = tensor, self.wanted[tensor]
            self._held[tensor] = name, self.wanted[tensor]
        name, have = self._held[tensor]
        if have == region:
            return name
        inside = region.moved([-start for start, _ in have.bounds])
        return self._slice(name, inside, tensor_part(kind, region), f"{tensor}.cut")

    def _slice(self, source: str, inside: Region, kind: Tensor, name: str) -> str:
        starts = tuple(start for start, _ in inside.bounds)
        op = Slice(starts, inside.shape, (1,) * len(starts))
        return self.builder.layer(op, [source], name, dtype=kind.dtype, quant=kind.quant)

    def hold(self, tensor: str, name: str, region: Region) -> None:
        """From now on the tensor is read from `name`."""
        self._held[tensor] = name, region

    def compute(self, layer: Layer, region: Region) -> None:
        """Computes the region of the layer's output with a restricted operator."""
        name = self._made(layer, pieces(self.whole, layer, region), layer.name, layer.output)
        self.hold(layer.output, name, region)

    def _made(self, layer: Layer, piece: RestrictedPiece | JoinedPieces, name: str, output: str) -> str:
        if isinstance(piece, RestrictedPiece):
            return self._piece(layer, piece, name, output)
        names = [self._made(layer, part, f"{name}.{i}", f"{output}.{i}") for i, part in enumerate(piece.parts)]
        made = tensor_part(self.whole.tensors[layer.output], piece.region)
        return self.add(Concat(piece.axis), names, name, output, made)

    def _piece(self, layer: Layer, piece: RestrictedPiece, name: str, output: str) -> str:
        result, how = self.whole.tensors[layer.output], piece.how
        operands = [(layer.inputs[i], region) for i, region in reads(piece)]
        if not isinstance(how.op, _PRODUCTS):
            for tensor, region in (*operands, (layer.output, piece.region)):
                self._check_scales(layer, tensor, region)
        inputs = [self.read(tensor, region) for tensor, region in operands]
        if how.keep is None:
            made = tensor_part(result, piece.region)
            return self.add(how.op, inputs, name, output, made)
        shape = how.op.output_shape([self.builder.shape(i) for i in inputs])
        shift = [start - kept for (start, _), (kept, _) in zip(piece.region.bounds, how.keep.bounds, strict=True)]
        more = tensor_part(result, Region.whole(shape).moved(shift))
        source = self.add(how.op, inputs, name, f"{output}.more", more)
        kept_part = tensor_part(result, piece.region)
        return self._slice(source, how.keep, kept_part, output)

    def add(self, op: Op, inputs: list[str], name: str, output: str, made: Tensor) -> str:
        """Adds a layer whose output has the type of `made`."""
        output = self.builder.layer(op, inputs, name, output=output, dtype=made.dtype, quant=made.quant)
        assert self.builder.shape(output) == made.shape, f"{op}: {self.builder.shape(output)}, not {made.shape}"
        return output

    def _check_scales(self, layer: Layer, tensor: str, region: Region) -> None:
        """A single one of several scales would look like a per-tensor scale, for which other kernels are chosen."""
        kind = self.whole.tensors[tensor]
        if kind.quant is None or not kind.quant.is_per_channel:
            return
        left = tensor_part(kind, region).quant
        if left is None or not left.is_per_channel:
            raise Unsupported(
                f"layer '{layer.name}' ({type(layer.op).__name__}) cannot be cut to {region} of '{tensor}': "
                f"of its scales along axis {kind.quant.axis or 0} a single one would be left"
            )
