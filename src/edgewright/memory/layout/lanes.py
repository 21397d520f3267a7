"""A heuristic for many special pairs: buffers that replace each other at nearly the same address share a lane.

Where each output overlaps its dying input, the buffers of a chain lie almost on top of each other. First fit places
single buffers and lets such a chain drift through memory; as one box it stays together.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from .problem import Item, LayoutProblem, Placement, align_up

_ALIKE = 0.75  # the smaller of two neighbours in a lane has at least this share of the larger one's size


@dataclass(frozen=True)
class Lanes:
    """A problem with fewer, larger buffers, and the places of the original ones in them."""

    problem: LayoutProblem
    inside: dict[str, tuple[str, int]]  # buffer -> its lane and its offset there

    def refine(self, placement: Placement, original: LayoutProblem) -> Placement:
        """The placement of the lanes, as a placement of the original buffers; its bound does not carry over."""
        offsets = {name: placement.offsets[lane] + at for name, (lane, at) in self.inside.items()}
        peak = max((offsets[i.name] + i.size for i in original.items), default=0)
        return Placement(offsets, peak, 0, f"lanes, {placement.method}")


def to_lanes(problem: LayoutProblem) -> Lanes:
    """Every chain of overlapping buffers as one buffer that holds all of them."""
    items = {item.name: item for item in problem.items}
    follower = _followers(problem, items)
    inside: dict[str, tuple[str, int]] = {}
    lanes = []
    for item in problem.items:
        if item.name in follower.values():
            continue
        chain = [item]
        while (after := follower.get(chain[-1].name)) is not None:
            chain.append(items[after])
        places = _arranged(problem, chain)
        low = min(places)
        size = max(at + i.size for at, i in zip(places, chain, strict=True)) - low
        lanes.append(Item(item.name, chain[0].start, max(i.end for i in chain), size, item.fixed))
        inside |= {i.name: (item.name, at - low) for i, at in zip(chain, places, strict=True)}
    alone = {lane.name for lane in lanes if lane.name not in follower}
    gaps = {pair: gap for pair, gap in problem.gaps.items() if set(pair) <= alone}
    return Lanes(LayoutProblem(tuple(lanes), gaps, problem.alignment), inside)


def _followers(problem: LayoutProblem, items: dict[str, Item]) -> dict[str, str]:
    """For each buffer the one that replaces it: similar in size, and closest to it."""
    follower: dict[str, str] = {}
    taken: set[str] = set()
    for (x, y), gap in sorted(problem.gaps.items(), key=lambda entry: (max(0, min(entry[1])), entry[0])):
        small, large = sorted((items[x].size, items[y].size))
        free = items[x].fixed is None and items[y].fixed is None
        in_turn = items[x].end == items[y].start + 1
        close = small >= _ALIKE * large and min(gap) <= large - small * _ALIKE
        if close and free and in_turn and x not in follower and y not in taken:
            follower[x] = y
            taken.add(y)
    return follower


def _arranged(problem: LayoutProblem, chain: list[Item]) -> list[int]:
    """Offsets along a chain, each as close to the middle of the lane as its gap to the previous one allows."""
    places = [0]
    low, high = 0, chain[0].size
    for before, item in pairwise(chain):
        above = align_up(problem.gap(before, item), problem.alignment)
        below = align_up(problem.gap(item, before), problem.alignment)
        moves = [above, -below, *([0] if above <= 0 or below <= 0 else [])]
        at = min(
            (places[-1] + move for move in moves),
            key=lambda at: (max(high, at + item.size) - min(low, at), abs(at)),
        )
        places.append(at)
        low, high = min(low, at), max(high, at + item.size)
    return places
