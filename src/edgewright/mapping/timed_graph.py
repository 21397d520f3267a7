"""A mapping as a timed dataflow graph: an actor for each stage, a phase for each of its parts, and what follows.

The graph says how many frames a second leave the board, also where parts of one worker wait for others; how long a
frame is underway when frames come as fast as they are taken; and how few slots each FIFO needs for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite

from ..dataflow import Actor, Channel, Graph, Rates, SelfTimed, latency, pareto, period, self_timed
from ..errors import InputError
from ..memory.layout.problem import align_up
from .board_mapping import BoardMapping
from .problem import JoiningTensor

GRAIN = 1000  # units of time in the slowest stage: finer ones make no measurable difference
EFFORT = 20_000_000  # entries of tables that the search for slots looks at


@dataclass(frozen=True)
class FifoNeed:
    """A tensor that leaves its part: who computes it, who reads it, how many frames of it must have room."""

    tensor: str
    bytes: int
    source: tuple[int, int] | None  # stage and part; None: it comes from outside
    readers: tuple[tuple[int, int], ...]
    is_output: bool
    slots: int

    @property
    def slot_bytes(self) -> int:
        """Slots begin on cache lines."""
        return align_up(self.bytes, 64)


@dataclass(frozen=True)
class MappingTiming:
    """What the graph of a mapping says."""

    period: float  # seconds
    latency: float  # seconds
    fifos: tuple[FifoNeed, ...]
    least: bool  # the slots are proven least, in bytes together

    @property
    def fifo_bytes(self) -> int:
        return sum(fifo.slots * fifo.slot_bytes for fifo in self.fifos)


def timing_of(mapping: BoardMapping) -> MappingTiming:
    """Period, latency and least slots of a mapping."""
    if not all(isfinite(seconds) for stage in mapping.stages for seconds in stage.seconds):
        raise InputError("the profile has times with which nothing can be reckoned; measure it anew")
    unit = mapping.load_period / GRAIN or 1.0
    graph = timed_graph(mapping, unit)
    joined = _joined(mapping)
    capacities, least = _capacities(mapping, graph)
    found = float(period(graph, capacities))
    steady = latency(graph, capacities)
    longest = steady.steady if steady.steady is not None else steady.first
    # What times add up to exactly, not in units, where stages wait for nobody.
    exact = mapping.load_period if found <= GRAIN else found * unit
    fifos = tuple(_fifo(mapping, tensor, joined, capacities) for tensor in _leaving(mapping, joined))
    return MappingTiming(exact, float(longest) * unit, fifos, least)


def frames_over_time(mapping: BoardMapping, timing: MappingTiming, frames: int) -> tuple[SelfTimed, float]:
    """The firings of the first frames, and how many seconds their unit of time is."""
    unit = mapping.load_period / GRAIN or 1.0
    graph = timed_graph(mapping, unit)
    slots = {fifo.tensor: fifo.slots for fifo in timing.fifos}
    capacities = {channel.name: slots[channel.note] for channel in graph.channels if channel.note in slots}
    return self_timed(graph, capacities, frames), unit


def timed_graph(mapping: BoardMapping, unit: float) -> Graph:
    """Actors are stages, named by their number; a token is a tensor, its channel's note the tensor's name."""
    actors: list[Actor] = []
    channels: list[Channel] = []
    for number, stage in enumerate(mapping.stages):
        count = len(stage.parts)
        assert count == 1 or stage.replicas == 1, "replicas take whole frames"
        times = tuple(Fraction(round(seconds / unit)) for seconds in stage.seconds)
        actors.append(Actor(str(number), count, times))
        ones = Rates((1,) * count)
        channels.append(Channel(f"{number}.busy", str(number), str(number), ones, ones, stage.replicas, 0))
    joined = _joined(mapping)
    for tensor in _leaving(mapping, joined):
        if tensor.producer is None:
            continue
        source = joined[tensor.producer]
        for reader in _reading(tensor, joined):
            channels.append(
                Channel(
                    f"{tensor.name}>{reader[0]}.{reader[1]}",
                    str(source[0]),
                    str(reader[0]),
                    Rates.only(source[1], len(mapping.stages[source[0]].parts)),
                    Rates.only(reader[1], len(mapping.stages[reader[0]].parts)),
                    token_bytes=tensor.bytes,
                    note=tensor.name,
                )
            )
    return Graph(mapping.problem.name, tuple(actors), tuple(channels))


Places = Mapping[int, tuple[int, int]]  # the stage and the part of each layer


def _joined(mapping: BoardMapping) -> Places:
    return {
        layer: (number, place)
        for number, stage in enumerate(mapping.stages)
        for place, part in enumerate(stage.parts)
        for layer in part
    }


def _reading(tensor: JoiningTensor, places: Places) -> tuple[tuple[int, int], ...]:
    """The parts that read a tensor which another computes."""
    found = dict.fromkeys(places[layer] for layer in tensor.readers)
    return tuple(part for part in found if tensor.producer is None or part != places[tensor.producer])


def _leaving(mapping: BoardMapping, places: Places) -> Iterator[JoiningTensor]:
    """Tensors that go through FIFOs."""
    for tensor in mapping.problem.tensors:
        if _reading(tensor, places) or tensor.is_output:
            yield tensor


def _capacities(mapping: BoardMapping, graph: Graph) -> tuple[dict[str, int], bool]:
    """Of each channel, the least that keep the period; where the search is too long, one for each who may hold one."""
    front = pareto(graph, in_bytes=True, effort=EFFORT)
    if front.complete:
        return dict(front.points[-1].capacities), True
    depth = len(mapping.stages)
    replicas = [stage.replicas for stage in mapping.stages]
    return {
        channel.name: (replicas[int(channel.source)] + replicas[int(channel.target)]) * max(1, depth - 1)
        for channel in graph.channels
        if channel.note
    }, False


def _fifo(mapping: BoardMapping, tensor: JoiningTensor, places: Places, capacities: Mapping[str, int]) -> FifoNeed:
    """With the slots that its slowest reader needs; the outside fills or empties one while the others are in use."""
    readers = _reading(tensor, places)
    source = None if tensor.producer is None else places[tensor.producer]
    needs = [1]
    if source is None:
        needs += [1 + mapping.stages[stage].replicas for stage, _ in readers]
    else:
        needs += [capacities[f"{tensor.name}>{stage}.{part}"] for stage, part in readers]
        needs += [1 + mapping.stages[source[0]].replicas] if tensor.is_output else []
    return FifoNeed(tensor.name, tensor.bytes, source, readers, tensor.is_output, max(needs))
