"""The network as executed: stages of steps over regions. Where data lies is said by a Plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

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
