"""Conditions on all capacities that follow from one deadlocked state."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .untimed import State, Untimed

Need = tuple[int, int]  # a line, and its minimum capacity
Choice = tuple[tuple[Need, ...], ...]  # alternatives; capacities must meet all needs of one of them


@dataclass(frozen=True)
class Wait:
    """An actor that cannot fire before another one does, for lack of tokens or space on a line."""

    actor: int
    line: int
    is_space: bool
    other: int


Circle = tuple[Wait, ...]  # each waits for the actor of the next


def remedies(graph: Untimed, state: State, capacity: Sequence[int]) -> Mapping[int, tuple[Need, ...]]:
    """For each actor of a deadlocked state that lacks only space, the capacities that would let it fire.

    All live capacities meet one of these choices, whether they are larger than the current ones or not. A live run goes
    beyond the deadlocked state, with some actor firing first; it then finds no more tokens and no more space than in
    the deadlocked state, since the others have not gone further. So its actor had its tokens in that state too, and the
    capacities are at least what it lacked there.
    """
    remedies = {}
    for actor in range(len(graph.actors)):
        if graph.has_tokens(actor, state):
            needs = [(at, graph.lines[at].space(state)) for at in graph.outputs[actor]]
            remedies[actor] = tuple((at, need) for at, need in needs if need > capacity[at])
    return remedies


def circles(graph: Untimed, state: State, capacity: Sequence[int]) -> Iterator[Circle]:
    """For each wait for space in a deadlocked state, a cycle of waits through it with as few waits for space as
    possible."""
    waits = [_waits(graph, actor, state, capacity) for actor in range(len(graph.actors))]
    for first in (wait for each in waits for wait in each if wait.is_space):
        circle = _close(waits, first)
        if circle:
            yield circle


def _waits(graph: Untimed, actor: int, state: State, capacity: Sequence[int]) -> list[Wait]:
    following = state[actor] + 1
    if following > graph.limit[actor]:
        return []
    ins = [(at, graph.lines[at]) for at in graph.inputs[actor]]
    outs = [(at, graph.lines[at]) for at in graph.outputs[actor]]
    return [
        *(
            Wait(actor, at, False, one.source)
            for at, one in ins
            if one.produced[state[one.source]] < one.consumed[following]
        ),
        *(Wait(actor, at, True, one.target) for at, one in outs if one.space(state) > capacity[at]),
    ]


def _close(waits: Sequence[Sequence[Wait]], first: Wait) -> Circle | None:
    """The path back from the end of a wait to its beginning; None if there is none."""
    cost = {first.other: 0}
    came: dict[int, Wait] = {}
    waiting = deque([first.other])
    while waiting:
        here = waiting.popleft()
        if here == first.actor:
            break
        for wait in waits[here]:
            if cost[here] + wait.is_space < cost.get(wait.other, len(waits)):
                cost[wait.other] = cost[here] + wait.is_space
                came[wait.other] = wait
                (waiting.append if wait.is_space else waiting.appendleft)(wait.other)
    return _trace(came, first) if first.actor in came else None


def _trace(came: Mapping[int, Wait], first: Wait) -> Circle:
    circle = []
    here = first.actor
    while here != first.other:
        circle.append(came[here])
        here = came[here].actor
    return (first, *reversed(circle))
