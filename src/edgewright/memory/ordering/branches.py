"""Recognises segments that are parallel chains between one fork and one join.

`pivots` orders them.
"""

from dataclasses import dataclass

from .hills import Chain
from .lattice import Lattice, bits


@dataclass(frozen=True)
class Branches:
    """Parallel chains, the stores they share, and the bytes held in any case."""

    chains: tuple[Chain, ...]
    fork: int | None
    join: int | None
    base: int
    # For each chain that touches it: position of the last touch of the fork, of the first write of the join.
    last_touch: dict[int, int]
    first_write: dict[int, int]
    last_need: dict[int, int]  # bytes of the step at `last_touch` when the fork store dies there


def find_branches(lattice: Lattice) -> Branches | None:
    """The lattice as parallel chains with at most one fork and one join store; None if it has another shape."""
    parts = _components(lattice)
    orders = [_as_chain(lattice, part) for part in parts]
    forks: list[int] = []
    joins: list[int] = []
    for x, touch in enumerate(lattice.touch):
        if sum(1 for part in parts if part & touch) > 1 and lattice.is_input[x] != lattice.is_output[x]:
            (forks if lattice.is_input[x] else joins).append(x)
    if len(parts) < 2 or None in orders or len(forks) > 1 or len(joins) > 1:
        return None

    fork, join = (stores[0] if stores else None for stores in (forks, joins))
    shared = forks + joins
    chains: list[Chain] = []
    last_touch: dict[int, int] = {}
    first_write: dict[int, int] = {}
    last_need: dict[int, int] = {}
    for i, steps in enumerate(orders):
        assert steps is not None
        done, level, need = 0, [0], []
        for at, step in enumerate(steps):
            me = 1 << step
            others = lattice.full & ~parts[i]
            away = others & ~lattice.touch[fork] if fork is not None else others  # the fork store lives on
            bytes_at, after = lattice.run(done | away, level[-1], step)
            if join is not None and lattice.writers[join] & me and not lattice.writers[join] & (done | away):
                bytes_at -= lattice.size[join]  # counted by the phase, not by the chain
                after -= lattice.size[join]
            if fork is not None and lattice.touch[fork] & me:
                last_touch[i] = at
                last_need[i] = lattice.run(done | others, level[-1], step)[0]
                if join is not None and lattice.writers[join] & me and not lattice.writers[join] & (done | others):
                    last_need[i] -= lattice.size[join]
            if join is not None and lattice.writers[join] & me:
                first_write.setdefault(i, at)
            need.append(bytes_at)
            level.append(after)
            done |= me
        chains.append(Chain(steps, tuple(level), tuple(need)))
    base = lattice.held(0) - sum(lattice.size[x] for x in shared if lattice.is_input[x])
    return Branches(tuple(chains), fork, join, base, last_touch, first_write, last_need)


def _components(lattice: Lattice) -> list[int]:
    """Masks of connected steps: by constraints or by stores that live inside the segment only."""
    parts: list[int] = []
    ties = [lattice.pred[s] | 1 << s for s in range(lattice.count)]
    ties += [
        touch
        for touch, is_input, is_output in zip(lattice.touch, lattice.is_input, lattice.is_output, strict=True)
        if not is_input and not is_output and touch
    ]
    for tie in ties:
        met = [part for part in parts if part & tie]
        for part in met:
            tie |= part
        parts = [part for part in parts if not part & tie] + [tie]
    return sorted(parts, key=lambda part: part & -part)


def _as_chain(lattice: Lattice, part: int) -> tuple[int, ...] | None:
    """The steps of the part in their only order; None if there are several."""
    steps, done = [], lattice.full & ~part
    ready = [s for s in bits(part) if not lattice.pred[s] & ~done]
    while len(ready) == 1:
        steps.append(ready[0])
        done |= 1 << ready[0]
        ready = [s for s in bits(lattice.succ[ready[0]]) if not lattice.pred[s] & ~done]
    return tuple(steps) if done == lattice.full else None
