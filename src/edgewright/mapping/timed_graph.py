"""The timing of a mapping, by the dataflow graph of its workers and FIFOs.

The graph gives the throughput even if parts of one worker wait for others, the latency of a frame when frames arrive as
fast as possible, and the least slots of each FIFO for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from ..dataflow import Graph, SelfTimed, latency, pareto, period, self_timed
from ..dataflow.deployments.phases import PartTimes
from ..dataflow.deployments.timed import TimedDeployment
from ..errors import InputError
from ..memory.layout.problem import align_up
from ..network import Region
from ..network.parts import TensorRegion
from ..program.deployment import OUTSIDE, SLOT_ALIGNMENT, Fifo, Reader
from .board_mapping import BoardMapping

GRAIN = 1000  # time units in the slowest stage; finer ones make no measurable difference
EFFORT = 20_000_000  # table entries examined in the search for slots


@dataclass(frozen=True)
class MappingTiming:
    """The results of a mapping's dataflow graph."""

    period: float  # seconds
    latency: float  # seconds
    fifos: tuple[Fifo, ...]
    fifo_bytes: int
    least: bool  # the total bytes of slots are proven least


def timing_of(mapping: BoardMapping) -> MappingTiming:
    """Period, latency and least slots of a mapping."""
    if not all(isfinite(seconds) for stage in mapping.stages for seconds in stage.seconds):
        raise InputError("the profile has times with which nothing can be reckoned; measure it again")
    fifos, unit = tuple(_fifos(mapping)), _unit(mapping)
    graph = timed_graph(mapping, fifos)
    capacities, least = _capacities(mapping, graph)
    frame_period = float(period(graph, capacities))
    steady = latency(graph, capacities)
    longest = steady.steady if steady.steady is not None else steady.first
    # The exact sum of times rather than units, if no stage waits.
    exact = mapping.load_period if frame_period <= GRAIN else frame_period * unit
    sized = tuple(replace(fifo, slots=_slots(mapping, fifo, graph, capacities)) for fifo in fifos)
    size = sum(fifo.slots * slot_bytes(mapping, fifo) for fifo in sized)
    return MappingTiming(exact, float(longest) * unit, sized, size, least)


def slot_bytes(mapping: BoardMapping, fifo: Fifo) -> int:
    """The stride of slots in bytes."""
    return align_up(mapping.problem.bytes_of[fifo.what.tensor], SLOT_ALIGNMENT)


def frames_over_time(mapping: BoardMapping, timing: MappingTiming, frames: int) -> tuple[Graph, SelfTimed, float]:
    """The graph, the firings of the first frames, and the seconds of its time unit."""
    graph = timed_graph(mapping, timing.fifos)
    return graph, self_timed(graph, iterations=frames), _unit(mapping)


def timed_graph(mapping: BoardMapping, fifos: Sequence[Fifo]) -> Graph:
    """The workers of a mapping with these FIFOs, without the outside; an actor for each stage, in order."""
    inside = [replace(fifo, readers=tuple(r for r in fifo.readers if r.part)) for fifo in fifos if fifo.source]
    times = {
        (worker.name, part): PartTimes(((round(seconds / _unit(mapping)),),))
        for worker in mapping.workers
        for part, seconds in zip(worker.parts, mapping.stage_of(worker.parts[0]).seconds, strict=True)
    }
    sizes = {fifo.what: mapping.problem.bytes_of[fifo.what.tensor] for fifo in fifos}
    return TimedDeployment(mapping.problem.name, mapping.workers, tuple(inside), times, sizes).graph


def _unit(mapping: BoardMapping) -> float:
    """The seconds of a time unit."""
    return mapping.load_period / GRAIN or 1.0


def _fifos(mapping: BoardMapping) -> Iterator[Fifo]:
    """The tensors that leave their part, as FIFOs without slots."""
    home = {
        layer: part for part, (stage, place) in mapping.places.items() for layer in mapping.stages[stage].parts[place]
    }
    for tensor in mapping.problem.tensors:
        source = OUTSIDE if tensor.producer is None else home[tensor.producer]
        parts = [part for part in dict.fromkeys(home[layer] for layer in tensor.readers) if part != source]
        readers = [*parts, OUTSIDE] if tensor.is_output else parts
        if readers:
            what = TensorRegion(mapping.problem.name, tensor.name, Region.whole(tensor.shape))
            yield Fifo(what, source, tuple(map(Reader, readers)), slots=0)


def _capacities(mapping: BoardMapping, graph: Graph) -> tuple[dict[str, int], bool]:
    """The least capacity of each channel that keeps the period; if the search takes too long, a sufficient one."""
    front = pareto(graph, in_bytes=True, effort=EFFORT)
    if front.complete:
        return dict(front.points[-1].capacities), True
    depth = len(mapping.stages)
    replicas = {actor.name: stage.replicas for actor, stage in zip(graph.actors, mapping.stages, strict=True)}
    return {
        channel.name: (replicas[channel.source] + replicas[channel.target]) * max(1, depth - 1)
        for channel in graph.channels
        if channel.note in mapping.problem.bytes_of
    }, False


def _slots(mapping: BoardMapping, fifo: Fifo, graph: Graph, capacities: Mapping[str, int]) -> int:
    """The slots for the slowest reader; the outside fills or empties one while the others are in use."""
    needs = [1, *(capacities[channel.name] for channel in graph.channels if channel.note == fifo.what.tensor)]
    outer = fifo.reading if fifo.source == OUTSIDE else (fifo.source,) if OUTSIDE in fifo.reading else ()
    return max([*needs, *(1 + mapping.stage_of(part).replicas for part in outer if part != OUTSIDE)])
