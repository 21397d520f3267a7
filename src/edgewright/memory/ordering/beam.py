"""Orders built level by level: all sets of k executed steps, then of k + 1, keeping the most promising.

If nothing is dropped this is the exact dynamic programme over executed sets; `cuts` and `probe` prove bounds for wide
graphs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .lattice import Lattice, bits


@dataclass(frozen=True)
class BeamResult:
    """The best order found below the cap, and whether every order below the cap was considered."""

    order: tuple[int, ...] | None
    complete: bool


LARGE = 100  # steps; up to this size all levels have one width
_READY = 10  # ready steps of a larger problem from which on levels become narrower


def sweep(lattice: Lattice, width: int, cap: int, floor: int = 0, follows: Sequence[int] | None = None) -> BeamResult:
    """The order with the least peak among those below `cap` that survive `width` sets per level.

    Peaks up to `floor` count as equally good. In a large problem, fewer sets survive where many steps are ready.

    The dynamic programme over executed sets of Ahn et al. 2020 ("Ordering Chaos", 3.1), thinned by one rule: a
    ready step s that needs no more than the peak so far and does not raise what is held runs at once.
    Nothing is lost by that. Take any completion, and move s to its front. (a) s itself fits. (b) For a step t
    that s overtakes, each store that s frees here is still held at t without the move, and each store that s
    starts at t it also starts here; so the bytes at t change by at most what s changes here, which is not above
    zero. (c) What t shares with its dying inputs depends only on which other steps have run: more have run, so
    it shares no less. Hence no step of the completion needs more than it did.

    `follows` may give, for each step, a mask of steps it must follow in every order below the cap (from
    `probe`). A move to the front keeps to them, since its result is again an order below the cap.
    """
    pred = lattice.pred if follows is None else follows
    succ: list[list[tuple[int, int]]] = [[] for _ in pred]  # (step, its predecessors)
    for step, before in enumerate(pred):
        for p in bits(before):
            succ[p].append((step, before))
    one = [1 << step for step in range(lattice.count)]
    is_large = lattice.count > LARGE
    start = tuple(step for step, before in enumerate(pred) if not before)
    level: dict[int, tuple[int, int, tuple[int, ...]]] = {0: (floor, lattice.held(0), start)}  # peak, held, ready
    levels: list[dict[int, int]] = []  # by executed set: the step that was last
    complete = True
    for _ in pred:
        reached: dict[int, tuple[int, int, int, int]] = {}  # peak, held, step, from
        for done, (peak, held, ready) in level.items():
            moves = []
            for step in ready:
                need, after = lattice.run(done, held, step)
                if need <= peak and after <= held:
                    moves = [(need, after, step)]
                    break
                if need < cap:
                    moves.append((need, after, step))
            for need, after, step in moves:
                now = done | one[step]
                top = need if need > peak else peak
                known = reached.get(now)
                if known is None or top < known[0]:
                    reached[now] = (top, after, step, done)
        kept = width
        if is_large and len(reached) > 1:
            most = _READY
            for now, (_, _, step, done) in reached.items():
                still, count = ~now, len(level[done][2]) - 1
                for _, before in succ[step]:
                    count += not before & still
                if count > most:
                    most = count
            kept = max(1, width * _READY // most)
        if len(reached) > kept:
            complete = False
            best = sorted(reached.items(), key=lambda item: (item[1][0] + item[1][1], item[0]))
            reached = dict(best[:kept])
        following = {}
        for now, (top, after, step, done) in reached.items():
            opened = [s for s, before in succ[step] if not before & ~now]
            following[now] = (top, after, tuple(sorted([*(s for s in level[done][2] if s != step), *opened])))
        levels.append({now: step for now, (_, _, step, _) in reached.items()})
        level = following
    if not level:
        return BeamResult(None, complete)

    done, order = lattice.full, []
    for states in reversed(levels):
        step = states[done]
        order.append(step)
        done ^= 1 << step
    return BeamResult(tuple(reversed(order)), complete)
