"""Inputs of a part that arrive in pieces, and outputs of which others read a piece.

A part reads bounding boxes of regions (`parts.cut`). If a region comes from several sources, or is a piece of a source,
the part joins and slices it with its own layers, most of which become views when it is planned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..errors import Unsupported
from .builder import unused_name
from .network import Layer, leading_to
from .operators import Concat, Slice
from .part_draft import tensor_part
from .parts import NetworkPart, TensorRegion
from .region import Region
from .tensor import Tensor


def with_inputs(part: NetworkPart, given: Mapping[str, Sequence[TensorRegion]]) -> NetworkPart:
    """The part with inputs that arrive in these pieces, which together contain all that it reads."""
    editor = _Editor(part)
    for own, pieces in given.items():
        if tuple(pieces) != (part.inputs[own],):
            editor.join(own, pieces)
    return editor.part()


def with_outputs(part: NetworkPart, outputs: Sequence[TensorRegion]) -> NetworkPart:
    """The part with exactly these outputs, each one of its outputs or a piece of one."""
    editor = _Editor(part)
    editor.outputs = {editor.piece_of_output(what): what for what in outputs}
    return editor.part()


class _Editor:
    """The network of a part, with layers added before its inputs and after its outputs."""

    def __init__(self, given: NetworkPart) -> None:
        self.given = given
        self.tensors: dict[str, Tensor] = dict(given.network.tensors)
        self.before: list[Layer] = []
        self.behind: list[Layer] = []
        self.inputs: dict[str, TensorRegion] = dict(given.inputs)
        self.outputs: dict[str, TensorRegion] = dict(given.outputs)
        self.renamed: dict[str, str] = {}  # inputs that arrive in pieces -> the joined tensor

    def part(self) -> NetworkPart:
        network = self.given.network
        if not self.before and not self.behind and list(self.outputs) == list(self.given.outputs):
            return self.given
        kept = (replace(old, inputs=tuple(self.renamed.get(i, i) for i in old.inputs)) for old in network.layers)
        layers = (*self.before, *kept, *self.behind)
        changed = replace(network, outputs=tuple(self.outputs), inputs=tuple(self.inputs), tensors=self.tensors)
        left = changed.with_layers(leading_to(layers, self.outputs)[0])
        inputs = {name: what for name, what in self.inputs.items() if left.readers[name]}
        ends = {*inputs, *self.outputs}
        final = replace(
            left,
            inputs=tuple(inputs),
            tensors={
                name: tensor for name, tensor in left.tensors.items() if name in inputs or name not in self.inputs
            },
            layouts={name: axes for name, axes in network.layouts.items() if name in ends},
            file_tensors={name: tensor for name, tensor in network.file_tensors.items() if name in ends},
        )
        return replace(self.given, network=final, inputs=inputs, outputs=dict(self.outputs))

    def join(self, own: str, pieces: Sequence[TensorRegion]) -> None:
        """Replaces an input by new ones: a slice of each, joined."""
        wanted, kind = self.inputs.pop(own), self.tensors.pop(own)
        parts = {}
        for what in pieces:
            name = self._fresh(own)
            self.tensors[name] = _kind(kind, wanted.region, what.region, name)
            self.inputs[name] = what
            inside = what.region & wanted.region
            parts[inside] = self._slice(self.before, name, what.region, inside, kind, wanted.region)
        self.renamed[own] = self._joined(parts, wanted, kind)

    def _joined(self, parts: Mapping[Region, str], wanted: TensorRegion, kind: Tensor) -> str:
        """The tensor that contains all parts, joined along one axis after the other."""
        if len(parts) == 1:
            return next(iter(parts.values()))
        hull = next(iter(parts))
        for region in parts:
            hull |= region
        axis, at = _cut_between(parts, wanted)
        below = {region: name for region, name in parts.items() if region.bounds[axis][1] <= at}
        above = {region: name for region, name in parts.items() if region not in below}
        names = tuple(self._joined(group, wanted, kind) for group in (below, above))
        output = self._fresh(f"{kind.name}.joined")
        self.tensors[output] = _kind(kind, wanted.region, hull, output)
        self.before.append(Layer(output, Concat(axis), names, output))
        return output

    def piece_of_output(self, what: TensorRegion) -> str:
        """The part's tensor with this region: an output, or a slice of one."""
        for own, held in self.given.outputs.items():
            if held == what:
                return own
        for own, held in self.given.outputs.items():
            alike = (held.network, held.tensor, held.share) == (what.network, what.tensor, what.share)
            if alike and what.region in held.region:
                kind = self.tensors[own]
                return self._slice(self.behind, own, held.region, what.region, kind, held.region)
        raise Unsupported(f"'{self.given.network.name}' has no output that holds {what.region} of '{what.tensor}'")

    def _slice(self, layers: list[Layer], source: str, have: Region, want: Region, kind: Tensor, of: Region) -> str:
        """The tensor of region `want` from one of `have`; `kind` is the tensor of region `of`."""
        if have == want:
            return source
        starts = tuple(a - b for (a, _), (b, _) in zip(want.bounds, have.bounds, strict=True))
        output = self._fresh(f"{kind.name}.piece")
        self.tensors[output] = _kind(kind, of, want, output)
        layers.append(Layer(output, Slice(starts, want.shape, (1,) * len(starts)), (source,), output))
        return output

    def _fresh(self, name: str) -> str:
        layers = {layer.name for layer in (*self.given.network.layers, *self.before, *self.behind)}
        return unused_name(name, self.tensors, layers)


def _kind(kind: Tensor, of: Region, want: Region, name: str) -> Tensor:
    """A region of a tensor of which a possibly larger one is available; scales for each channel must be the same."""
    if kind.quant is not None and kind.quant.is_per_channel:
        axis = (kind.quant.axis or 0) % len(kind.shape)
        if want.bounds[axis] != of.bounds[axis]:
            raise Unsupported(f"'{kind.name}' has scales along axis {axis}, and cannot come in pieces along it")
        return replace(kind, name=name, shape=want.shape)
    return tensor_part(kind, Region.whole(want.shape), name)


def _cut_between(parts: Mapping[Region, str], wanted: TensorRegion) -> tuple[int, int]:
    """An axis and an index at which no part crosses."""
    for axis in range(len(wanted.region.bounds)):
        for at in sorted({region.bounds[axis][1] for region in parts})[:-1]:
            if not any(region.bounds[axis][0] < at < region.bounds[axis][1] for region in parts):
                return axis, at
    raise Unsupported(
        f"{wanted.region} of '{wanted.tensor}' comes in pieces that cannot be joined along one axis after the other"
    )
