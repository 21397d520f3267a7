"""The network as executed: stages of steps over regions. Where data lies is said by a Plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ..errors import ModelError
from ..network import Network, Region
from .steps import Item, Loop, Stage, Step, Stream
from .stream import Flow


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
        return self._expand(stage.body, ())

    def macs(self) -> int:
        """Multiply-accumulates that are really executed, recomputed ones included."""
        total = 0
        for stage in self.stages:
            for step in self.steps(stage):
                layer = self.network.by_name[step.layer]
                total += layer.op.macs(step.region, self.network.shapes(layer))
        return total

    def _expand(self, body: Iterable[Item], counters: tuple[int, ...]) -> Iterator[Step]:
        for item in body:
            if isinstance(item, Stream):
                yield from Flow(self.network, item).steps()
                continue
            if isinstance(item, Loop):
                for i in range(item.count):
                    yield from self._expand(item.body, (*counters, i))
                continue
            region = item.region
            for i, move in zip(counters, item.moves, strict=True):
                region = region.moved([i * d for d in move])
            region = region.clipped(self.network.tensors[self.network.by_name[item.layer].output].shape)
            if not region.is_empty:
                yield replace(item, region=region, moves=())


def _cover(parts: list[Region], region: Region) -> None:
    """Adds a region; one that continues the last along one axis is joined to it, as rows of a stream do."""
    if parts:
        pairs = list(zip(parts[-1].bounds, region.bounds, strict=True))
        differing = [axis for axis, (a, b) in enumerate(pairs) if a != b]
        if len(differing) == 1 and pairs[differing[0]][0][1] == pairs[differing[0]][1][0]:
            axis = differing[0]
            parts[-1] = region.with_axis(axis, (pairs[axis][0][0], pairs[axis][1][1]))
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
            for name, needed in zip(layer.inputs, layer.op.needs(step.region, network.shapes(layer)), strict=True):
                if not is_ready(name, needed):
                    raise ModelError(f"step '{step.layer}' {step.region} reads {needed} of '{name}' too early")
            _cover(covered.setdefault(layer.output, []), step.region)
    for name in network.outputs:
        if not is_ready(name, Region.whole(network.tensors[name].shape)):
            raise ModelError(f"output '{name}' is never completed")
    return program
