"""Pipelines with slots, early release and rings of rows: their graphs are as fast as a simulation of their turns."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import inf
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.dataflow.deployments.phases import PartTimes
from edgewright.dataflow.deployments.timed import TimedDeployment
from edgewright.errors import InputError
from edgewright.network import Region
from edgewright.network.parts import TensorRegion
from edgewright.program.deployment import Fifo, Reader, Worker


def worker(*parts: str, name: str = "", replica: tuple[int, int] = (0, 1)) -> Worker:
    return Worker(name or parts[0], "", "cpu", (), parts, replica)


def fifo(source: str, *readers: str, slots: int = 1, rows: int = 0, stage: int | None = None) -> Fifo:
    what = TensorRegion("net", f"{source} to {readers[0]}", Region(()))
    return Fifo(what, source, tuple(Reader(reader, stage) for reader in readers), slots, rows)


def timed(times: dict[str, PartTimes], *fifos: Fifo, workers: tuple[Worker, ...] = ()) -> TimedDeployment:
    workers = workers or tuple(map(worker, times))
    by_worker = {(one.name, part): times[part] for one in workers for part in one.parts}
    return TimedDeployment("pipeline", workers, fifos, by_worker)


def test_a_slot_is_free_after_the_stage_that_its_reader_names():
    times = {"a": PartTimes(((4,),)), "b": PartTimes(((1,), (2,), (3,)))}
    periods = {stage: timed(times, fifo("a", "b", stage=stage)).period for stage in (-1, 0, 1, 2, None)}
    # 4 for `a`, then as much of `b` as reads the slot; `b` alone takes 6.
    assert periods == {-1: 6, 0: 6, 1: 7, 2: 10, None: 10}
    assert timed(times, fifo("a", "b", slots=2, stage=None)).period == 6


def test_without_times_by_stage_a_slot_is_released_when_its_reader_has_run():
    times = {"a": PartTimes(((4,),)), "b": PartTimes(((6,),))}
    assert timed(times, fifo("a", "b", stage=1)).period == 10
    with pytest.raises(InputError, match=r"'a to b' \[\] crosses by rows: give times of 'a' and 'b' turn by turn"):
        assert timed(times, fifo("a", "b", rows=1)).period


def test_nobody_waits_in_phases_that_are_joined():
    times = {"a": PartTimes(((4,),)), "b": PartTimes(((1,), (2,), (3,)))}
    graph = timed(times, fifo("a", "b", stage=1)).graph
    assert graph.by_name["b"].times == (3, 3)
    assert timed(times, fifo("a", "b", stage=-1)).graph.by_name["b"].times == (0, 6)


@pytest.mark.parametrize(
    ("rows", "pulled", "period"),
    [
        (1, (1, 1, 1, 1), 21),  # the last row takes 9, and waits until the third was taken
        (4, (1, 1, 1, 1), 16),  # as long as `b` runs
        (1, (0, 2, 0, 2), inf),  # `b` wants two rows at once, and there is a place for one
    ],
)
def test_the_two_ends_of_a_ring_wait_for_each_other(rows: int, pulled: tuple[int, ...], period: float):
    times = {
        "a": PartTimes(((1, 1, 1, 9),), pushed=(1, 1, 1, 1)),
        "b": PartTimes(((4, 4, 4, 4),), pulled=pulled),
    }
    ring = timed(times, fifo("a", "b", rows=rows, stage=-1))
    assert ring.period == period == simulated(ring)


def test_equal_replicas_are_one_actor_that_fires_several_times_at_once():
    times = {"a": PartTimes(((2,),)), "b": PartTimes(((6,),))}
    workers = (worker("a"), *(worker("b", name=f"b{n}", replica=(n, 3)) for n in range(3)))
    for slots, period in ((1, 8), (3, Fraction(8, 3)), (4, 2)):
        found = timed(times, fifo("a", "b", slots=slots), workers=workers)
        assert found.period == period and len(found.graph.actors) == 2
        unequal = {**found.times, ("b1", "b"): PartTimes(((6 - Fraction(1, 10**9),),))}
        assert float(replace(found, times=unequal).period) == pytest.approx(float(period))
        assert len(replace(found, times=unequal).graph.actors) == 4


class Simulation:
    """When each turn of each part of a pipeline starts, by the rules of rings and slots alone; one worker a part."""

    def __init__(self, pipeline: TimedDeployment) -> None:
        self.fifos = pipeline.fifos
        self.times = {part: times for (_, part), times in pipeline.times.items()}
        self.flat = {part: [time for stage in times.stages for time in stage] for part, times in self.times.items()}
        self.starts: dict[tuple[str, int, int], float] = {}

    def start(self, part: str, frame: int, turn: int) -> float:
        """Infinite where it is asked for while it is being worked out: turns wait for each other."""
        key = part, frame, turn
        if key not in self.starts:
            self.starts[key] = inf
            self.starts[key] = max([0, *self.causes(part, frame, turn)])
        return self.starts[key]

    def end(self, part: str, frame: int, turn: int = -1) -> float:
        turn %= len(self.flat[part])
        return self.start(part, frame, turn) + self.flat[part][turn]

    def causes(self, part: str, frame: int, turn: int):
        if turn:
            yield self.end(part, frame, turn - 1)
        elif frame:
            yield self.end(part, frame - 1)
        for one in self.fifos:
            for reader in one.readers:
                if part == reader.part and not one.rows and not turn:
                    yield self.end(one.source, frame)
                if part == one.source and not turn and frame >= one.slots:
                    yield self.released(reader, frame - one.slots)
                if one.rows and part == reader.part and turn < len(self.times[part].pulled):
                    wanted = sum(self.times[part].pulled[: turn + 1])
                    yield self.end(one.source, frame, self.pushing(one.source, wanted)) if wanted else 0
                if one.rows and part == one.source and self.made_by(part, turn):
                    free = sum(self.made_by(part, n) for n in range(turn + 1)) - one.rows
                    if free > 0:
                        yield self.start(reader.part, frame, self.pulling(reader.part, free))
                    elif frame:
                        all_rows = sum(self.times[reader.part].pulled)
                        yield self.start(reader.part, frame - 1, self.pulling(reader.part, all_rows))

    def released(self, reader: Reader, frame: int) -> float:
        if reader.stage == -1:
            return self.start(reader.part, frame, 0)
        if reader.stage is None:
            return self.end(reader.part, frame)
        turns = sum(len(stage) for stage in self.times[reader.part].stages[: reader.stage + 1])
        return self.end(reader.part, frame, turns - 1)

    def pulling(self, part: str, rows: int) -> int:
        return next(n for n, taken in enumerate(accumulate(self.times[part].pulled)) if taken >= rows)

    def made_by(self, part: str, turn: int) -> int:
        turn -= len(self.flat[part]) - len(self.times[part].stages[-1])
        return self.times[part].pushed[turn] if turn >= 0 and self.times[part].pushed else 0

    def pushing(self, part: str, rows: int) -> int:
        made = accumulate(self.made_by(part, turn) for turn in range(len(self.flat[part])))
        return next(n for n, there in enumerate(made) if there >= rows)


def simulated(pipeline: TimedDeployment, frames: int = 60) -> Fraction | float:
    """The time from frame to frame after a while; infinite where the parts wait for each other."""
    simulation, ends = Simulation(pipeline), []
    for frame in range(3 * frames):
        ends.append([simulation.end(part, frame) for part in simulation.flat])
    if inf in ends[-1]:
        return inf
    return max(Fraction(late - early, frames) for early, late in zip(ends[-1 - frames], ends[-1], strict=True))


class RandomPipeline:
    """Two to four parts in a row, each on a worker: rows or frames go to the next one, frames to later ones."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.names = "abcd"[: random.randint(2, 4)]
        self.is_ring = [random.random() < 0.5 for _ in self.names[1:]]
        self.heights = [random.randint(1, 6) for _ in self.names]

    @cached_property
    def times(self) -> dict[str, PartTimes]:
        return {name: self.part(n) for n, name in enumerate(self.names)}

    def part(self, number: int) -> PartTimes:
        pulls = number > 0 and self.is_ring[number - 1]
        pushes = number < len(self.is_ring) and self.is_ring[number]
        stages = [self.turns(1) for _ in range(self.random.randint(1, 3))]
        if pulls or (pushes and len(stages) == 1):
            stages[0] = self.turns(self.random.randint(1, 5))
        if pushes and len(stages) > 1:
            stages[-1] = self.turns(self.random.randint(1, 5))
        pulled = self.shares(self.heights[number - 1], len(stages[0])) if pulls else ()
        pushed = self.shares(self.heights[number], len(stages[-1])) if pushes else ()
        return PartTimes(tuple(stages), pulled, pushed)

    def turns(self, count: int) -> tuple[int, ...]:
        return tuple(self.random.randint(0, 9) for _ in range(count))

    def shares(self, rows: int, turns: int) -> tuple[int, ...]:
        cuts = sorted(self.random.randint(0, rows) for _ in range(turns - 1))
        return tuple(b - a for a, b in zip([0, *cuts], [*cuts, rows], strict=True))

    def reader(self, name: str) -> Reader:
        stages = range(-1, len(self.times[name].stages))
        return Reader(name, self.random.choice([*stages, None]))

    def made(self) -> TimedDeployment:
        fifos = []
        for n, is_ring in enumerate(self.is_ring):
            rows = self.random.randint(-(-self.heights[n] // 2), self.heights[n]) if is_ring else 0
            readers = [self.names[n + 1]]
            if not rows:
                readers += [later for later in self.names[n + 2 :] if self.random.random() < 0.3]
            slots = 1 if rows else self.random.randint(1, 3)
            made = fifo(self.names[n], *readers, slots=slots, rows=rows)
            fifos.append(replace(made, readers=tuple(map(self.reader, readers))))
        return timed(self.times, *fifos)


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 1 << 30))
def test_random_pipelines_run_as_fast_as_a_simulation_of_their_turns(seed: int):
    pipeline = RandomPipeline(Random(seed)).made()
    period, found = pipeline.period, simulated(pipeline)
    assert float(found) == pytest.approx(float(period), rel=0.02)
