"""The network as executed: stages of steps over regions. Where data lies is said by a Plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ..errors import ModelError
from ..network import Interval, Network, Region
from ..network.operators.shares import share_macs, share_needs
from .shares import restricted
from .steps import Item, Loop, Stage, Step, Stream, Tiles
from .stream import Flow
from .tiling import Tiling

Parts = tuple[tuple[int, Interval], ...]  # along which axes a layer is cut to what


@dataclass(frozen=True)
class Program:
    network: Network
    stages: tuple[Stage, ...]

    @classmethod
    def of_layers(cls, network: Network, names: Iterable[str]) -> Program:
        """Layer by layer: one stage each, the whole output at once, in this order."""
        stages = []
        for name in names:
            shape = network.tensors[network.by_name[name].output].shape
            stages.append(Stage(name, (Step(name, Region.whole(shape)),)))
        return cls(network, tuple(stages))

    def steps(self, stage: Stage) -> Iterator[Step]:
        """The stage's steps in the order in which they run, with loops written out and borders clipped."""
        return self._expand(stage.body, (), {})

    def needs(self, step: Step) -> tuple[Region, ...]:
        """The region of each input that the step reads."""
        layer = self.network.by_name[step.layer]
        shapes = self.network.shapes(layer)
        if step.share is not None:
            return share_needs(layer.op, step.region, shapes, step.share)
        return layer.op.needs(step.region, shapes)

    def macs(self) -> int:
        """Multiply-accumulates that are really executed, recomputed ones included."""
        return sum(self.macs_of(stage) for stage in self.stages)

    def macs_of(self, stage: Stage) -> int:
        total = 0
        for step in self.steps(stage):
            layer = self.network.by_name[step.layer]
            shapes = self.network.shapes(layer)
            if step.share is not None:
                total += share_macs(layer.op, step.region, shapes, step.share)
            else:
                total += layer.op.macs(step.region, shapes)
        return total

    def _expand(
        self, body: Iterable[Item], counters: tuple[int, ...], parts: Mapping[str, Parts]
    ) -> Iterator[Step]:
        for item in body:
            match item:
                case Stream():
                    for step in Flow(self.network, item).steps():
                        yield from self._cut(step, parts)
                case Tiles():
                    for inner in tile_parts(Tiling(self.network, item), parts):
                        yield from self._expand(item.body, counters, inner)
                case Loop():
                    for i in range(item.count):
                        yield from self._expand(item.body, (*counters, i), parts)
                case Step():
                    region = item.region
                    for i, move in zip(counters, item.moves, strict=True):
                        region = region.moved([i * d for d in move])
                    region = region.clipped(self.network.tensors[self.network.by_name[item.layer].output].shape)
                    yield from self._cut(replace(item, region=region, moves=()), parts)

    def _cut(self, step: Step, parts: Mapping[str, Parts]) -> Iterator[Step]:
        """The step cut to the tile at hand, unless nothing is left of it."""
        for axis, part in parts.get(step.layer, ()):
            step = restricted(self.network, step, axis, part)
        if not step.region.is_empty and not (step.share is not None and step.share.is_empty):
            yield step


def tile_parts(tiling: Tiling, around: Mapping[str, Parts]) -> Iterator[Mapping[str, Parts]]:
    """For each tile what every layer is cut to, tiles around it included."""
    for index in range(tiling.count):
        yield {
            layer: (*around.get(layer, ()), (tiling.tiles.axis, intervals[index]))
            for layer, intervals in tiling.intervals.items()
        }


def _cover(parts: list[Region], region: Region) -> None:
    """Adds a region; one that continues the last along one axis is joined to it, as rows of a stream do."""
    if parts:
        pairs = list(zip(parts[-1].bounds, region.bounds, strict=True))
        differing = [axis for axis, (a, b) in enumerate(pairs) if a != b]
        if len(differing) == 1 and pairs[differing[0]][0][1] == pairs[differing[0]][1][0]:
            axis = differing[0]
            _cover(parts, parts.pop().with_axis(axis, (pairs[axis][0][0], pairs[axis][1][1])))
            return
        if not differing:
            return
    parts.append(region)


def check(program: Program, free: Iterable[str] = ()) -> Program:
    """The program itself, when each step finds what it reads computed before, and every output is complete.

    Layers in `free` cost nothing (a reshape, a concat whose parts lie in place): they are done as soon as their
    inputs are. Counting elements of boxes is exact for disjoint parts and for whole layers; parts that overlap
    (recomputed halos) are left to the interpreter.
    """
    network = program.network
    aliases = set(free)
    covered: dict[str, list[Region]] = {}

    def is_ready(tensor: str, region: Region) -> bool:
        if tensor in network.constants or tensor in network.inputs or region.is_empty:
            return True
        layer = network.producers[tensor]
        parts = covered.get(tensor, [])
        if any(region in part for part in parts):
            return True
        if layer.name in aliases:
            needed = layer.op.needs(region, network.shapes(layer))
            inputs = zip(layer.inputs, needed, strict=True)
            return all(
                is_ready(name, part) or any((region & done) == region for done in parts) for name, part in inputs
            )
        return sum((region & part).size for part in parts) >= region.size

    for stage in program.stages:
        for step in program.steps(stage):
            layer = network.by_name[step.layer]
            for name, needed in zip(layer.inputs, program.needs(step), strict=True):
                if not is_ready(name, needed):
                    raise ModelError(f"step '{step.layer}' {step.region} reads {needed} of '{name}' too early")
            if step.share is None:
                _cover(covered.setdefault(layer.output, []), step.region)
        for name in stage.summing:
            output = network.by_name[name].output
            covered[output] = [Region.whole(network.tensors[output].shape)]
    for name in network.outputs:
        if not is_ready(name, Region.whole(network.tensors[name].shape)):
            raise ModelError(f"output '{name}' is never completed")
    return program
