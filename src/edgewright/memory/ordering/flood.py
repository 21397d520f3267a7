"""All executed sets within a budget, level by level, as arrays of 64-bit masks; decides what `beam` leaves open.

It answers yes or no for one budget; `solve` and `probe` choose budgets and narrow the graph.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .lattice import Lattice, bits

WORD = 64  # steps that fit into a mask

Masks = NDArray[np.uint64]
Bytes = NDArray[np.int64]


@dataclass(frozen=True)
class FloodResult:
    """An order within the budget or None, and whether None means that there is none."""

    order: tuple[int, ...] | None
    complete: bool
    states: int  # executed sets that were kept


def flood(lattice: Lattice, budget: int, follows: Sequence[int], states: int) -> FloodResult:
    """An order within the budget, if one exists and no more than `states` sets have to be kept.

    The same dynamic programme and the same rule for free moves as `beam.sweep`, where the rule is proven.
    """
    assert lattice.count <= WORD
    done = np.zeros(1, np.uint64)
    held = np.array([lattice.held(0)], np.int64)
    levels, kept = [done], 1
    for _ in range(lattice.count):
        done, held = _advance(lattice, budget, follows, done, held)
        kept += len(done)
        if not len(done) or kept > states:
            return FloodResult(None, kept <= states, kept)
        levels.append(done)
    return FloodResult(_trace_back(lattice, budget, levels), True, kept)


def _advance(lattice: Lattice, budget: int, follows: Sequence[int], done: Masks, held: Bytes) -> tuple[Masks, Bytes]:
    """All sets one step larger, sorted, with the bytes held by each."""
    settled = np.zeros(len(done), np.bool_)  # sets that have a free move, and so need no other
    froms, nexts, afters, frees = [], [], [], []
    for step in range(lattice.count):
        me, before = np.uint64(1 << step), np.uint64(follows[step])
        at = np.flatnonzero(((done & (before | me)) == before) & ~settled)
        if not len(at):
            continue
        need, after = _run(lattice, step, done[at], held[at])
        fits = need <= budget
        free = fits & (after <= held[at])
        settled[at[free]] = True
        froms.append(at[fits])
        nexts.append(done[at[fits]] | me)
        afters.append(after[fits])
        frees.append(free[fits])
    if not froms:
        return np.zeros(0, np.uint64), np.zeros(0, np.int64)
    keep = np.concatenate(frees) | ~settled[np.concatenate(froms)]
    following, first = np.unique(np.concatenate(nexts)[keep], return_index=True)
    return following, np.concatenate(afters)[keep][first]


def _run(lattice: Lattice, step: int, done: Masks, held: Bytes) -> tuple[Bytes, Bytes]:
    """`Lattice.run` for many sets at once."""
    move = lattice.moves[step]
    need = held + move.always
    after = held + move.born
    nothing = np.uint64(0)
    for others, size in move.joins:
        starts = np.where((done & np.uint64(others)) == nothing, size, 0)
        need += starts
        after += starts
    for others, size in move.frees:
        after -= np.where((~done & np.uint64(others)) == nothing, size, 0)
    for size, parts in move.shares:
        saved = np.zeros(len(done), np.int64)
        for others, part in parts:
            saved += np.where((~done & np.uint64(others)) == nothing, part, 0)
        need -= np.minimum(saved, size)
    return need, after


def _trace_back(lattice: Lattice, budget: int, levels: list[Masks]) -> tuple[int, ...]:
    """An order through the levels, reconstructed from the end."""
    done = lattice.full
    order = []
    for level in reversed(levels[:-1]):
        for step in bits(done):
            earlier = done & ~(1 << step)
            at = int(np.searchsorted(level, np.uint64(earlier)))
            if at < len(level) and int(level[at]) == earlier:
                need, _ = lattice.run(earlier, lattice.held(earlier), step)
                if need <= budget and not lattice.pred[step] & ~earlier:
                    order.append(step)
                    done = earlier
                    break
    assert len(order) == lattice.count
    return tuple(reversed(order))
