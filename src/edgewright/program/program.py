"""The network as executed: stages and their steps. A Plan adds the addresses of data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

from ..network import Network, Region
from ..network.operators import Concat
from ..network.operators.partial_sums import partial_macs, partial_needs
from .fusion import FusedLayers, FusionSchedule
from .row_trace import RowTrace
from .steps import Step, Sweep, restricted
from .tiling import Tiling


@dataclass(frozen=True, slots=True)
class Stage:
    """One layer, or several fused into loops. Lifetimes of buffers are counted in stages."""

    name: str
    schedule: FusionSchedule
    sweep: Sweep = Sweep.FORWARD

    @classmethod
    def whole(cls, layer: str, sweep: Sweep = Sweep.FORWARD) -> Stage:
        return cls(layer, FusionSchedule((layer,)), sweep)

    @property
    def layers(self) -> tuple[str, ...]:
        return self.schedule.layers


@dataclass(frozen=True)
class Program:
    network: Network
    stages: tuple[Stage, ...]
    free: tuple[str, ...] = ()  # layers that execute nothing, since their output lies where their inputs do
    # Of a concat that runs whole, the inputs that are still to be copied, where the others lie in place.
    copied: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Program('{self.network.name}', {len(self.stages):,} stages)"

    def fused(self, stage: Stage) -> FusedLayers:
        """The stage's schedule with what follows from the operators."""
        return FusedLayers(self.network, stage.schedule, self.free)

    def partial(self, stage: Stage) -> tuple[str, ...]:
        """The layers of a stage that are summed part by part; their output is complete when the stage ends."""
        return self.fused(stage).partial

    def steps(self, stage: Stage) -> Iterator[Step]:
        """The stage's steps in the order in which they run, tile by tile."""
        return (step for _, step in self._tiled_steps(stage))

    def lane_steps(self, stage: Stage, lane: int) -> Iterator[Step]:
        """The steps of one of the stage's lanes in the order in which it runs them."""
        return (step for tile, step in self._tiled_steps(stage) if tile % stage.schedule.lanes == lane)

    def turns(self, stage: Stage) -> Iterator[tuple[Step, ...]]:
        """The steps of a stage, grouped into the pieces between two points at which the run could be interrupted."""
        return (turn for _, turn in self._tiled_turns(stage))

    def _tiled_steps(self, stage: Stage) -> Iterator[tuple[int, Step]]:
        """The stage's steps, each with the number of the outermost tile that it belongs to."""
        return ((tile, step) for tile, turn in self._tiled_turns(stage) for step in turn)

    def _tiled_turns(self, stage: Stage) -> Iterator[tuple[int, tuple[Step, ...]]]:
        fused = self.fused(stage)
        tilings = [Tiling(fused, split, stage.sweep is Sweep.BACKWARD) for split in stage.schedule.splits]
        inside: list[Iterable[tuple[Step, ...]]]  # of each band of rows
        if stage.schedule.streamed:
            trace = RowTrace(fused)
            inside = [trace.turns(band) for band in range(len(trace.rounds_of))]
            inside = inside if not tilings else [list(turns) for turns in inside]
        else:
            inside = [(tuple(self.whole_steps(fused)),)]
        for tile in product(*(range(len(tiling.split.ends)) for tiling in tilings)):
            for turn in inside[tile[0] if stage.schedule.is_banded else 0]:
                yield (tile[0] if tile else 0), tuple(self._cut(stage, turn, tilings, tile))

    def _cut(self, stage: Stage, turn: Iterable[Step], tilings: list[Tiling], tile: tuple[int, ...]) -> Iterator[Step]:
        """The steps restricted to a tile. Rows of a band are left out here, since `turns` has followed them already."""
        cut = slice(1, None) if stage.schedule.is_banded else slice(None)
        for step in turn:
            for tiling, at in zip(tilings[cut], tile[cut], strict=True):
                step = restricted(self.network, step, tiling.split.axis, tiling.intervals[step.layer][at])
            if not step.region.is_empty and not (step.partial is not None and step.partial.is_empty):
                yield step if step.sweep is stage.sweep else replace(step, sweep=stage.sweep)

    def whole_steps(self, fused: FusedLayers) -> tuple[Step, ...]:
        """One step for each layer; for a concat, only the parts that are not already in place."""
        steps: list[Step] = []
        for name, step in fused.wholes.items():
            copied = self.copied.get(name) if fused.schedule.is_whole else None
            steps += [step] if copied is None else self._parts(step, copied)
        return tuple(steps)

    def _parts(self, step: Step, inputs: Iterable[int]) -> Iterator[Step]:
        """The parts of a concat's output that come from these inputs."""
        layer = self.network.by_name[step.layer]
        assert isinstance(layer.op, Concat)
        axis = layer.op.axis % len(step.region.bounds)
        start = 0
        for position, shape in enumerate(self.network.shapes(layer)):
            if position in inputs:
                yield replace(step, region=step.region.with_axis(axis, (start, start + shape[axis])))
            start += shape[axis]

    def needs(self, step: Step) -> tuple[Region, ...]:
        """The region of each input that the step reads."""
        layer = self.network.by_name[step.layer]
        shapes = self.network.shapes(layer)
        if step.partial is not None:
            return partial_needs(layer.op, step.region, shapes, step.partial)
        return layer.op.needs(step.region, shapes)

    def macs(self) -> int:
        """Executed multiply-accumulates, including recomputed ones."""
        return sum(self.macs_of(stage) for stage in self.stages)

    def macs_of(self, stage: Stage) -> int:
        total = 0
        for step in self.steps(stage):
            layer = self.network.by_name[step.layer]
            shapes = self.network.shapes(layer)
            if step.partial is not None:
                total += partial_macs(layer.op, step.region, shapes, step.partial)
            else:
                total += layer.op.macs(step.region, shapes)
        return total
