"""Layout for an arbitrary conflict graph: conflicts are given pair by pair, not by lifetimes.

Such graphs arise when several programs interrupt each other or run side by side. The solvers for lifetimes handle them
too: all buffers are live at one moment, and pairs without a conflict may have any distance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from ...errors import InputError
from ...lazy import lazy_module
from .exact import minimise
from .first_fit import best_first_fit
from .grid import addresses, to_grid
from .optimal import LayoutEffort
from .problem import Item, LayoutProblem, Placement, align_up, conflicts

nx = lazy_module("networkx")  # slow to load, and few layouts are graphs
Pair = tuple[str, str]
NEVER = (0, 0)  # gaps of two buffers that never conflict: any distance is allowed


@dataclass(frozen=True)
class ConflictGraph:
    """Buffers by name with their sizes, and the pairs that are in use at the same time.

    In a pair in `gaps`, one buffer may lie inside the other as far as the gap allows (`LayoutProblem`).
    """

    sizes: Mapping[str, int]
    pairs: frozenset[Pair]
    gaps: Mapping[Pair, tuple[int, int]] = field(default_factory=dict)
    alignment: int = 1

    def __post_init__(self) -> None:
        for x, y in (*self.pairs, *self.gaps):
            if x == y or x not in self.sizes or y not in self.sizes:
                raise InputError(f"the pair ({x!r}, {y!r}) must name two different buffers")

    def meets(self, x: str, y: str) -> bool:
        return (x, y) in self.pairs or (y, x) in self.pairs

    def gap(self, below: str, above: str) -> int:
        """The least distance in bytes from the start of `below` to the start of `above`."""
        if (below, above) in self.gaps:
            return self.gaps[below, above][0]
        return self.gaps[above, below][1] if (above, below) in self.gaps else self.sizes[below]

    def part(self, names: frozenset[str]) -> ConflictGraph:
        """The subgraph of these buffers."""
        return ConflictGraph(
            {name: size for name, size in self.sizes.items() if name in names},
            frozenset(pair for pair in self.pairs if names.issuperset(pair)),
            {pair: gap for pair, gap in self.gaps.items() if names.issuperset(pair)},
            self.alignment,
        )

    def problem(self) -> LayoutProblem:
        """The same problem for the solvers and the judge of lifetimes."""
        gaps = {(x, y): NEVER for x, y in combinations(self.sizes, 2) if not self.meets(x, y)} | {
            pair: gap for pair, gap in self.gaps.items() if self.meets(*pair)
        }
        items = tuple(Item(name, 0, 1, size) for name, size in self.sizes.items())
        return LayoutProblem(items, gaps, self.alignment)


def place_graph(graph: ConflictGraph, bound: int = 0, effort: LayoutEffort = LayoutEffort.NORMAL) -> Placement:
    """The placement with the least peak; connected components are placed independently.

    `bound` bytes are needed in any case, so no lower peak is sought. `optimal` means proven.
    """
    offsets: dict[str, int] = {}
    peak, least, methods = 0, 0, []
    parts = sorted(components(graph), key=lambda part: -sum(part.sizes.values()))
    for part in parts:
        placed = _place_part(part, max(bound, peak), effort)
        offsets |= placed.offsets
        peak, least = max(peak, placed.peak), max(least, placed.bound)
        methods += [] if placed.method in methods else [placed.method]
    placement = Placement(offsets, peak, min(least, peak), "; ".join(methods))
    assert not (bad := conflicts(graph.problem(), placement)), f"placed wrongly: {bad[:5]}"
    return placement


def _place_part(graph: ConflictGraph, enough: int, effort: LayoutEffort) -> Placement:
    """Any peak of at most `enough` is good enough, since another component needs that much."""
    known = list(cliques(graph))
    clique = max((sum(align_up(graph.sizes[name], graph.alignment) for name in each) for each in known), default=0)
    low = max(enough, clique - (graph.alignment - 1))
    problem = graph.problem()
    place = {name: n for n, name in enumerate(graph.sizes)}
    groups = [[place[name] for name in each] for each in known if len(each) > 2]
    grid = to_grid(problem)
    offsets, method = best_first_fit(grid, low, climb=True)
    bound = clique - (graph.alignment - 1)
    if grid.peak(offsets) > low and effort is not LayoutEffort.QUICK:
        better, proven = minimise(grid, offsets, low, effort.proof, groups)
        bound = max(bound, proven if proven > low else bound)
        if grid.peak(better) < grid.peak(offsets):
            offsets, method = better, "search for the least peak"
    return Placement(addresses(problem, grid, offsets), grid.peak(offsets), min(bound, grid.peak(offsets)), method)


def components(graph: ConflictGraph) -> Iterator[ConflictGraph]:
    """The connected components of the graph."""
    joined = nx.Graph(graph.pairs)
    joined.add_nodes_from(graph.sizes)
    place = {name: at for at, name in enumerate(graph.sizes)}
    for part in sorted(nx.connected_components(joined), key=lambda part: min(place[name] for name in part)):
        yield graph.part(frozenset(part))


def cliques(graph: ConflictGraph) -> Iterator[tuple[str, ...]]:
    """Cliques found greedily from every buffer, without duplicates, the largest first. Each proves a lower bound."""
    names = sorted(graph.sizes, key=lambda name: (-graph.sizes[name], name))
    bit = {name: 1 << n for n, name in enumerate(names)}
    beside = dict.fromkeys(names, 0)
    for x, y in graph.pairs:
        if graph.gap(x, y) == graph.sizes[x] and graph.gap(y, x) == graph.sizes[y]:
            beside[x] |= bit[y]
            beside[y] |= bit[x]
    seen: set[frozenset[str]] = set()
    for start in names:
        clique, allowed = [start], beside[start]
        for name in names:
            if allowed & bit[name]:
                clique.append(name)
                allowed &= beside[name]
        if frozenset(clique) not in seen:
            seen.add(frozenset(clique))
            yield tuple(clique)
