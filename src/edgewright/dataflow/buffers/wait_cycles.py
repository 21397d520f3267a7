"""A lower bound on the weighted sum of capacities, from a cycle of waits.

Let the cycle go v0 -> v1 -> ... -> v0, and let the k-th firing of v0 wait for the m1-th of v1, that for the m2-th of
v2, and so on; the graph is live only if the last number is below k, for every k. Each wait has the form `filled(m') >=
asked(m) - c`: for space, `asked` counts what is produced, `filled` what is consumed, and c is the capacity; for tokens
it is the other way round, and c = 0. Divide each by the tokens Q of an iteration. Where one wait ends and the next
begins, asked(m)/Q is at least filled'(m)/Q' plus the least difference of the two at that actor, a constant. Adding up,
with v0 alone taken exactly:

sum of c/Q over the waits for space >= max over k of (asked(k)/Q - filled'(k-1)/Q') at v0 + the other constants

which holds for each v0 of the cycle. One such sum replaces very many choices if a detour holds a whole image.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd, lcm

from .deadlock_conditions import Circle
from .untimed import Untimed


@dataclass(frozen=True)
class LeastSum:
    """A lower bound on a weighted sum of capacities."""

    factors: tuple[tuple[int, int], ...]  # line, factor
    least: int

    def allows(self, capacity: Sequence[int]) -> bool:
        return sum(factor * capacity[at] for at, factor in self.factors) >= self.least


@dataclass(frozen=True)
class _CircleEdge:
    """A wait for space, or several consecutive waits for tokens, as tables over the firings at its two ends."""

    actor: int
    asked: Sequence[int]
    filled: Sequence[int]
    each: int  # Q
    line: int | None  # the line whose space it waits for


def least_sum(graph: Untimed, circle: Circle) -> LeastSum | None:
    """The sum required by the cycle; None if a wait concerns only tokens of initial phases."""
    steps = _steps(graph, circle)
    if any(step.each == 0 for step in steps):
        return None
    scale = lcm(*(step.each for step in steps))
    constants = []
    exact = []
    for before, after in zip((steps[-1], *steps), steps, strict=False):
        asked, filled = scale // after.each, scale // before.each
        pairs = list(zip(after.asked, before.filled, strict=True))
        constants.append(min(a * asked - f * filled for a, f in _risen(pairs)))
        ahead = zip(after.asked[1 : graph.goal[after.actor] + 1], before.filled, strict=False)
        exact.append(max(a * asked - f * filled for a, f in ahead))
    least = sum(constants) + max(e - c for e, c in zip(exact, constants, strict=True))
    return _reduced([(step.line, scale // step.each) for step in steps if step.line is not None], least)


def _steps(graph: Untimed, circle: Circle) -> list[_CircleEdge]:
    """Merges consecutive waits for tokens, without loss."""
    last = max(at for at, wait in enumerate(circle) if wait.is_space)
    steps = []
    start, asked = -1, list[int]()
    for wait in circle[last + 1 :] + circle[: last + 1]:
        line = graph.lines[wait.line]
        if not wait.is_space:
            needed = [min(bisect_left(line.produced, need), graph.limit[line.source]) for need in line.consumed]
            start, asked = (wait.actor, needed) if start < 0 else (start, [needed[firing] for firing in asked])
            continue
        if start >= 0:
            steps.append(_CircleEdge(start, asked, range(graph.limit[wait.actor] + 1), graph.each[wait.actor], None))
            start = -1
        each = line.channel.production.total * graph.each[wait.actor] // len(line.channel.production.cycle)
        steps.append(_CircleEdge(wait.actor, line.produced, line.consumed, each, wait.line))
    return steps


def _risen(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Drops firings that fill nothing: no one waits for those."""
    return [pairs[0], *(after for before, after in pairwise(pairs) if after[1] > before[1])]


def _reduced(factors: Sequence[tuple[int, int]], least: int) -> LeastSum:
    total: dict[int, int] = {}
    for at, factor in factors:
        total[at] = total.get(at, 0) + factor
    divisor = gcd(*total.values())
    return LeastSum(tuple(sorted((at, factor // divisor) for at, factor in total.items())), -(-least // divisor))
