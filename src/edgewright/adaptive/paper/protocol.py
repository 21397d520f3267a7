"""The paper's transition protocol (M 5.9, Algorithms 6 and 7): its delays, its races, and a race-free X.

Steps are numbered from 1, as in the paper. x_i is the number of old steps that must have ended before new step i
starts. The printed protocol is simulated, never executed: it races on edges that both scenarios use, since Algorithm 6
considers layers only, and line 6 of Algorithm 7 loses the last step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import floor

from .supergraph import ControlStep, Supergraph

Sequenced = Sequence[ControlStep]
Times = Sequence[float]
Pair = tuple[int | None, int | None]  # the old and the new step of a control step


@dataclass(frozen=True, slots=True)
class EdgeHazard:
    """Data that the printed protocol destroys."""

    edge: str
    control_step: int  # q of Algorithm 7: the request comes at 1
    old_step: int | None
    new_step: int | None
    problem: str


@dataclass(frozen=True, slots=True)
class DoubledEdges:
    """Edges with a buffer for each scenario: the X that is then safe, and its delays."""

    edges: tuple[str, ...]
    extra_bytes: int
    x: tuple[int, ...]
    delay: float
    delay_without_barrier: float  # each new step starts when its layer and its buffers are free
    delay_without_layers: float  # and layers may serve both scenarios at once


@dataclass(frozen=True)
class PaperTransition:
    """A switch between two scenarios, for one request time."""

    old: str
    new: str
    x: tuple[int, ...]  # as printed
    naive_delay: float
    paper_delay: float  # of the printed X, with i + 1 in line 6
    hazards: tuple[EdgeHazard, ...]
    loses_last_step: bool
    safe: DoubledEdges  # with one buffer per edge
    doubled: tuple[DoubledEdges, ...]  # with more buffers


@dataclass(frozen=True, slots=True)
class RequestMoment:
    """A request time in the old scenario's frame."""

    step: int  # in progress at the request
    time: float  # seconds since the frame began

    @classmethod
    def at(cls, position: float, times: Times) -> RequestMoment:
        """The request at a position in steps: 0.5 is in the middle of the first step."""
        done = floor(position)
        return cls(done + 1, sum(times[:done]) + (position - done) * times[done])


def printed_x(old: Sequenced, new: Sequenced) -> tuple[int, ...]:
    """Algorithm 6."""
    found, x = [], 0
    for step in new:
        for j, other in enumerate(old, start=1):
            if other.layer == step.layer and j >= x:
                x = j
        found.append(x)
        x += 1
    return tuple(found)


def safe_x(old: Sequenced, new: Sequenced, doubled: Collection[str] = ()) -> tuple[int, ...]:
    """The least race-free X: a new step also waits for the last old step that touches an edge that it writes.

    Edges in `doubled` have a buffer for each scenario.
    """
    found, x = [], 0
    for needed in needed_steps(old, new, doubled):
        x = max(x, needed)
        found.append(x)
        x += 1
    return tuple(found)


def needed_steps(
    old: Sequenced, new: Sequenced, doubled: Collection[str] = (), has_own_layers: bool = False
) -> tuple[int, ...]:
    """For each new step, the last old step that uses its layer, or touches an edge that it writes; 0 for none.

    With `has_own_layers`, a layer may serve both scenarios at once.
    """
    user = {} if has_own_layers else {step.layer: j for j, step in enumerate(old, start=1)}
    touched = {edge: j for j, step in enumerate(old, start=1) for edge in step.reads | step.writes}
    return tuple(
        max(
            user.get(step.layer, 0),
            max((touched.get(edge, 0) for edge in step.writes if edge not in doubled), default=0),
        )
        for step in new
    )


def control_steps(x: Sequence[int], old_count: int, request_step: int) -> Iterator[Pair]:
    """Yields, for each control step, the old step and the new step that Algorithm 7 (M 5.9) starts; None for neither.

    Line 6 of the algorithm prints (i + 1) mod |L^n|; this is i + 1, which does not lose the last step.
    """
    i = 1
    yield request_step, None
    for q, j in enumerate(range(request_step + 1, old_count + 1), start=2):
        if i <= len(x) and q >= x[i - 1] - request_step + 2:
            yield j, i
            i += 1
        else:
            yield j, None
    for rest in range(i, len(x) + 1):
        yield None, rest


def loses_last_step(x: Sequence[int], old_count: int, request_step: int) -> bool:
    """Whether (i + 1) mod |L^n|, as printed, becomes step 0: the step before the last starts beside an old one."""
    return any(j is not None and i == len(x) - 1 for j, i in control_steps(x, old_count, request_step))


def naive_delay(old: Times, new: Times, request: RequestMoment) -> float:
    """From the request to the first new output, if the new scenario starts after the old frame."""
    return sum(old) + sum(new) - request.time


def barrier_delay(x: Sequence[int], old: Times, new: Times, request: RequestMoment) -> float:
    """The delay of Algorithm 7, which waits at the end of each control step for all steps that it started."""
    end = sum(old[: request.step - 1])
    for j, i in control_steps(x, len(old), request.step):
        end += max(old[j - 1] if j else 0.0, new[i - 1] if i else 0.0)
    return end - request.time


def free_delay(needed: Sequence[int], old: Times, new: Times, request: RequestMoment) -> float:
    """The delay without barriers: a new step starts when the previous one and the old steps that it needs have
    ended."""
    ends = [0.0, *accumulate(old)]
    now = request.time
    for steps, time in zip(needed, new, strict=True):
        now = max(now, ends[steps]) + time
    return now - request.time


def hazards(old: Sequenced, new: Sequenced, x: Sequence[int], request_step: int) -> tuple[EdgeHazard, ...]:
    """The races of an X, by tracking which scenario's data each edge holds, control step by control step."""
    is_new: dict[str, bool] = {}
    found: list[EdgeHazard] = []
    nothing = ControlStep(0, {}, frozenset(), frozenset())
    for q, (j, i) in enumerate(control_steps(x, len(old), request_step), start=1):
        one, other = old[j - 1] if j else nothing, new[i - 1] if i else nothing
        problems = {
            **dict.fromkeys(other.writes & one.reads, "the new scenario writes it while the old one reads it"),
            **dict.fromkeys(one.writes & other.reads, "the old scenario writes it while the new one reads it"),
            **dict.fromkeys(one.writes & other.writes, "both scenarios write it"),
        }
        for edge in one.reads - problems.keys():
            if is_new.get(edge, False):
                problems[edge] = "the old scenario reads what the new one has written"
        for edge in other.reads - problems.keys():
            if not is_new.get(edge, False):
                problems[edge] = "the new scenario reads what the old one has written"
        found += [EdgeHazard(edge, q, j, i, problems[edge]) for edge in sorted(problems)]
        is_new |= dict.fromkeys(one.writes, False) | dict.fromkeys(other.writes, True)
    return tuple(found)


def transition(graph: Supergraph, old: str, new: str, times: tuple[Times, Times], position: float) -> PaperTransition:
    """The switch from `old` to `new`, whose layers take these times; the request comes at a position in old steps."""
    before, after = graph.sequences[old], graph.sequences[new]
    request = RequestMoment.at(position, times[0])
    x = printed_x(before, after)
    return PaperTransition(
        old,
        new,
        x,
        naive_delay(*times, request),
        barrier_delay(x, *times, request),
        hazards(before, after, x, request.step),
        loses_last_step(x, len(before), request.step),
        with_doubled(graph, old, new, (), times, request),
        tuple(_worth_doubling(graph, old, new, times, request)),
    )


def with_doubled(
    graph: Supergraph, old: str, new: str, edges: Collection[str], times: tuple[Times, Times], request: RequestMoment
) -> DoubledEdges:
    """The safe X and its delays if these edges have two buffers."""
    before, after = graph.sequences[old], graph.sequences[new]
    x = safe_x(before, after, edges)
    return DoubledEdges(
        tuple(edge.name for edge in graph.edges if edge.name in edges),
        sum(edge.size for edge in graph.edges if edge.name in edges),
        x,
        barrier_delay(x, *times, request),
        free_delay(needed_steps(before, after, edges), *times, request),
        free_delay(needed_steps(before, after, edges, has_own_layers=True), *times, request),
    )


def _worth_doubling(
    graph: Supergraph, old: str, new: str, times: tuple[Times, Times], request: RequestMoment
) -> Iterator[DoubledEdges]:
    """Two choices: few edges that achieve the printed X's delay, and all edges that keep the safe X above the printed
    one."""
    before, after = graph.sequences[old], graph.sequences[new]
    touched = {edge: j for j, step in enumerate(before, start=1) for edge in step.reads | step.writes}
    pairs = zip(after, printed_x(before, after), strict=True)
    late = {edge for step, x in pairs for edge in step.writes if touched.get(edge, 0) > x}
    if not late:
        return
    everything = with_doubled(graph, old, new, late, times, request)
    few = everything
    for edge in sorted((one for one in graph.edges if one.name in late), key=lambda one: (-one.size, one.ends)):
        fewer = with_doubled(graph, old, new, {*few.edges} - {edge.name}, times, request)
        if fewer.delay <= everything.delay:
            few = fewer
    if few != everything and few.edges:
        yield few
    yield everything
