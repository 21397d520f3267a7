"""The problem as a path through sets of executed steps: bit masks, bytes held between steps, bytes needed by a step.

An order is a path through the lattice of executed sets from none to all; its peak is the largest edge. `beam`, `flood`
and `pivots` choose the path.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd
from operator import or_

import numpy as np
from numpy.typing import NDArray

from .problem import OrderProblem


def bits(mask: int) -> Iterator[int]:
    """The indices of the ones in a mask, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def indices(mask: int) -> NDArray[np.int64]:
    """The indices of the ones in a mask as an array: faster than `bits` where there are many."""
    octets = np.frombuffer(mask.to_bytes((mask.bit_length() + 7) // 8, "little"), np.uint8)
    return np.flatnonzero(np.unpackbits(octets, bitorder="little"))


def mask_of(numbers: NDArray[np.int64], count: int) -> int:
    """The mask with ones at these indices, all below `count`."""
    ones = np.zeros(count, np.uint8)
    ones[numbers] = 1
    return int.from_bytes(np.packbits(ones, bitorder="little").tobytes(), "little")


@dataclass(frozen=True, slots=True)
class StepEffects:
    """The memory effects of one step, as masks and sizes."""

    always: int  # scratch and stores that no other step can have started
    born: int  # of `always`, the bytes that the step starts (without scratch)
    joins: tuple[tuple[int, int], ...]  # (other writers, size): started here unless one of them ran
    frees: tuple[tuple[int, int], ...]  # (other steps that touch it, size): freed here once all of them ran
    # For each y: (size y, ((others of x, saved), ...)).
    shares: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]


class Lattice:
    """Masks for all steps; searches need only `held` and `run`."""

    def __init__(self, problem: OrderProblem) -> None:
        self.count = len(problem.steps)
        self.full = (1 << self.count) - 1
        self.pred = list(map(_mask, problem.before))
        self.succ = [0] * self.count
        for step, before in enumerate(problem.before):
            for p in before:
                self.succ[p] |= 1 << step
        stores = problem.stores
        self.writers = [_mask(store.writers) for store in stores]
        self.touch = [_mask(store.writers + store.readers) for store in stores]
        self.size = [store.size for store in stores]
        self.is_input = [store.is_input for store in stores]
        self.is_output = [store.is_output for store in stores]
        self.touched: list[list[int]] = [[] for _ in range(self.count)]
        for x, touch in enumerate(self.touch):
            for step in bits(touch):
                self.touched[step].append(x)
        self.most = sum(self.size) + sum(problem.scratch)  # an upper bound for every order
        # All peaks are multiples of this.
        self.unit = max(1, gcd(*self.size, *problem.scratch, *problem.savings.values()))
        savings: list[list[tuple[int, int, int]]] = [[] for _ in range(self.count)]  # by step: (x, y, bytes)
        for (step, x, y), saved in problem.savings.items():
            savings[step].append((x, y, saved))
        self.moves = [self._moves(step, problem.scratch[step], savings[step]) for step in range(self.count)]
        self._near = [self._others(move) for move in self.moves]
        self._changes: list[dict[int, tuple[int, int]]] = [{} for _ in self.moves]  # by what has run of those near

    def _moves(self, step: int, scratch: int, savings: Sequence[tuple[int, int, int]]) -> StepEffects:
        me = 1 << step
        born = 0
        joins: list[tuple[int, int]] = []
        frees: list[tuple[int, int]] = []
        for x in self.touched[step]:
            others, size = self.touch[x] & ~me, self.size[x]
            if not self.is_input[x] and self.writers[x] == me:
                born += size
            elif not self.is_input[x] and self.writers[x] & me:
                joins.append((self.writers[x] & ~me, size))
            if not self.is_output[x]:
                frees.append((others, size))
        shares: dict[int, list[tuple[int, int]]] = {}
        for x, y, saved in savings:
            if self.writers[y] == me and not self.is_output[x]:
                shares.setdefault(y, []).append((self.touch[x] & ~me, saved))
        return StepEffects(
            always=scratch + born,
            born=born,
            joins=tuple(joins),
            frees=tuple(frees),
            shares=tuple((self.size[y], tuple(parts)) for y, parts in sorted(shares.items())),
        )

    def held(self, done: int) -> int:
        """Bytes of the stores that are started and still needed when exactly `done` has run."""
        return sum(
            size
            for size, writers, touch, is_input, is_output in zip(
                self.size, self.writers, self.touch, self.is_input, self.is_output, strict=True
            )
            if (is_input or writers & done) and (is_output or touch & ~done)
        )

    def run(self, done: int, held: int, step: int) -> tuple[int, int]:
        """(bytes while the step runs, bytes held after it), when it runs directly after `done`."""
        near = done & self._near[step]
        change = self._changes[step].get(near)
        if change is None:
            change = self._changes[step][near] = self._change(near, self.moves[step])
        return held + change[0], held + change[1]

    @staticmethod
    def _others(move: StepEffects) -> int:
        """The steps that influence the memory effects of this one."""
        parts = (part for _, shared in move.shares for part in shared)
        return reduce(or_, (others for others, _ in (*move.joins, *move.frees, *parts)), 0)

    @staticmethod
    def _change(done: int, move: StepEffects) -> tuple[int, int]:
        """(bytes more while the step runs, bytes more after it)."""
        need, after = move.always, move.born
        for others, size in move.joins:
            if not others & done:
                need += size
                after += size
        for others, size in move.frees:
            if not others & ~done:
                after -= size
        for size, parts in move.shares:
            saved = 0
            for others, part in parts:
                if not others & ~done:
                    saved += part
            need -= saved if saved < size else size
        return need, after


def _mask(steps: Iterable[int]) -> int:
    return sum(1 << step for step in set(steps))
