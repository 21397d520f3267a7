"""Interleaves parallel chains exactly, for any number of chains.

Executed sets explode here, while hills and valleys (`hills`) order independent chains at once. The chains depend on
each other through a fork store that dies with its last reader and a join store that starts with its first writer. These
two moments are the pivots; a small integer programme chooses the position of each chain at them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations, product

from ...cpsat import cp_model, has_solver, repeatable_solver, solve
from .branches import Branches
from .hills import Chain, Climb, climbs, resting_places
from .lattice import Lattice

_MOST_OPTIONS = 4000  # of all chains; beyond it the programme would not be small
_LONGEST_PAIRED = 64  # steps of a chain when places at two pivots are paired


@dataclass(frozen=True, slots=True)
class Pivot:
    """A moment that all chains share: the fork store's last use, the join store's first, or both at once."""

    ends_fork: bool
    starts_join: bool


@dataclass(frozen=True, slots=True)
class ChainSegment:
    """The part of a chain between two pivots: `steps[begin:end]`."""

    phase: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class PivotPlaces:
    """The position of a chain at each pivot, and the pivots at which its next step acts."""

    at: tuple[int, ...]
    acts: tuple[bool, ...]

    def legs(self, length: int) -> list[ChainSegment]:
        """The sections between the pivots, without the acting steps."""
        begins = (0, *(at + acts for at, acts in zip(self.at, self.acts, strict=True)))
        return [ChainSegment(phase, a, b) for phase, (a, b) in enumerate(zip(begins, (*self.at, length), strict=True))]


@dataclass(frozen=True)
class Interleaved:
    """A better order than the known one, if any, and a lower bound for all orders."""

    order: tuple[int, ...] | None
    bound: int


def interleave(lattice: Lattice, branches: Branches, least: int, known: int, effort: float) -> Interleaved:
    """The best interleaving of the chains that needs less than `known` bytes; `least` is a lower bound.

    Given the position of every chain at the pivots, each phase between them is a set of independent chains with fixed
    ends, which `Climb.rank` orders optimally (Liu 1987). So only these positions must be chosen. The pivots come in
    either order, or are one step; the best case counts. `effort` bounds each case, in CP-SAT's deterministic seconds.
    """
    events = [Pivot(True, False)] if branches.fork is not None else []
    events += [Pivot(False, True)] if branches.join is not None else []
    cases: list[tuple[Pivot, ...]] = list(permutations(events))
    if len(events) == 2:
        cases.append((Pivot(True, True),))
    order, bound = None, known
    for case in cases:
        programme = _Programme(lattice, branches, case)
        better, peak, proven = programme.solve(least, known, effort)
        bound = min(bound, proven)
        if better is not None:
            order, known = better, peak
        if known == least:
            break
    return Interleaved(order, min(bound, known))


class _Programme:
    """The choice of positions for one sequence of pivots."""

    def __init__(self, lattice: Lattice, branches: Branches, pivots: tuple[Pivot, ...]) -> None:
        self.branches, self.pivots = branches, pivots
        fork = lattice.size[branches.fork] if branches.fork is not None else 0
        join = lattice.size[branches.join] if branches.join is not None else 0
        # Shared bytes in each phase, and at the pivot that ends it.
        alive_fork, alive_join = fork, 0
        self.phase_bytes, self.pivot_bytes = [branches.base + alive_fork], []
        for pivot in pivots:
            alive_join = join if pivot.starts_join else alive_join
            self.pivot_bytes.append(branches.base + alive_fork + alive_join)
            alive_fork = 0 if pivot.ends_fork else alive_fork
            self.phase_bytes.append(branches.base + alive_fork + alive_join)
        longest = max(len(chain.steps) for chain in branches.chains)
        self.is_small = len(pivots) < 2 or longest <= _LONGEST_PAIRED
        self.options = [self._options(i, chain) for i, chain in enumerate(branches.chains) if self.is_small]
        self.is_small = self.is_small and sum(map(len, self.options)) <= _MOST_OPTIONS

    def _options(self, i: int, chain: Chain) -> list[PivotPlaces]:
        """The useful positions of a chain, for each role it may play."""
        count = len(chain.steps)
        last_touch, first_write = self.branches.last_touch.get(i), self.branches.first_write.get(i)
        options = []
        for acts in product((False, True), repeat=len(self.pivots)):
            ranges = []
            for pivot, acting in zip(self.pivots, acts, strict=True):
                low, high = 0, count
                if pivot.ends_fork and last_touch is not None:
                    low = last_touch + 1
                if pivot.starts_join and first_write is not None:
                    high = first_write
                if acting:
                    steps = {last_touch} if pivot.ends_fork else {first_write}
                    steps &= {first_write} if pivot.starts_join else steps
                    at = steps.pop() if steps else None
                    low, high = (at, at) if at is not None else (1, 0)
                ranges.append((low, high))
            options += [PivotPlaces(at, acts) for at in _places(chain, ranges, acts)]
            if len(options) > _MOST_OPTIONS:
                return options
        return options

    def solve(self, least: int, known: int, effort: float) -> tuple[tuple[int, ...] | None, int, int]:
        """(order or None, its peak, bound): the best with a peak of at least `least` and below `known`."""
        chains = self.branches.chains
        if not self.is_small or not has_solver():
            return None, known, least

        # Variables: an option for each chain, the legs that follow from it, and the peak.
        model = cp_model.CpModel()
        peak = model.new_int_var(least, known - 1, "peak")
        takes = [[model.new_bool_var("") for _ in options] for options in self.options]
        legs: list[dict[ChainSegment, cp_model.IntVar]] = []
        for chain, options, take in zip(chains, self.options, takes, strict=True):
            users: dict[ChainSegment, list[cp_model.IntVar]] = {}
            for option, taken in zip(options, take, strict=True):
                for leg in option.legs(len(chain.steps)):
                    users.setdefault(leg, []).append(taken)
            legs.append({leg: model.new_bool_var("") for leg in users})
            for leg, taken_by in users.items():
                model.add(sum(taken_by) == legs[-1][leg])
        paths = [{leg: climbs(chain, leg.begin, leg.end) for leg in of} for chain, of in zip(chains, legs, strict=True)]

        # Constraints: one option each, one actor at each pivot, and nothing above the peak: pivots, then climbs.
        for take in takes:
            model.add_exactly_one(take)
        every = [
            (i, option, taken)
            for i, (options, take) in enumerate(zip(self.options, takes, strict=True))
            for option, taken in zip(options, take, strict=True)
        ]
        for k, shared in enumerate(self.pivot_bytes):
            model.add_exactly_one(taken for _, option, taken in every if option.acts[k])
            model.add(shared + sum(self._bytes_at(i, option, k) * taken for i, option, taken in every) <= peak)
        for i, of in enumerate(paths):
            for phase, shared in enumerate(self.phase_bytes):
                for climb in {climb for leg, path in of.items() if leg.phase == phase for climb in path}:
                    runs = model.new_bool_var("")
                    for leg, path in of.items():
                        if leg.phase == phase and climb in path:
                            model.add_implication(legs[i][leg], runs)
                    others = sum(
                        _held(chains[j], leg, path, climb.rank, j < i) * legs[j][leg]
                        for j, theirs in enumerate(paths)
                        if j != i
                        for leg, path in theirs.items()
                        if leg.phase == phase
                    )
                    model.add(shared + climb.start + climb.rise + others <= peak).only_enforce_if(runs)

        # Objective.
        model.minimize(peak)
        solver = repeatable_solver(effort, linearization_level=2)  # rows are knapsacks: their relaxation is what prunes
        status = solve(solver, model)
        if status == cp_model.INFEASIBLE:
            return None, known, known
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None, known, max(least, round(solver.best_objective_bound))
        chosen = [
            next(option for option, taken in zip(options, take, strict=True) if solver.boolean_value(taken))
            for options, take in zip(self.options, takes, strict=True)
        ]
        return self._order(chosen), round(solver.objective_value), round(solver.best_objective_bound)

    def _bytes_at(self, i: int, option: PivotPlaces, k: int) -> int:
        """The bytes that the chain holds at pivot k, or needs if the pivot is its step."""
        chain, at = self.branches.chains[i], option.at[k]
        if not option.acts[k]:
            return chain.level[at]
        return self.branches.last_need[i] if self.pivots[k].ends_fork else chain.need[at]

    def _order(self, chosen: list[PivotPlaces]) -> tuple[int, ...]:
        """The steps, phase by phase, climbs by rank."""
        chains = self.branches.chains
        order: list[int] = []
        for phase in range(len(self.phase_bytes)):
            runs: list[tuple[tuple[int, int], int, Climb]] = []
            for i, (chain, option) in enumerate(zip(chains, chosen, strict=True)):
                leg = option.legs(len(chain.steps))[phase]
                runs += [(climb.rank, i, climb) for climb in climbs(chain, leg.begin, leg.end)]
            for _, i, climb in sorted(runs, key=lambda run: run[:2]):
                order += chains[i].steps[climb.begin : climb.end]
            if phase < len(self.pivots):
                actor = next(i for i, option in enumerate(chosen) if option.acts[phase])
                order.append(chains[actor].steps[chosen[actor].at[phase]])
        return tuple(order)


def _places(
    chain: Chain, ranges: list[tuple[int, int]], acts: tuple[bool, ...], begin: int = 0
) -> list[tuple[int, ...]]:
    """All combinations of positions at the pivots, from `begin` on, where waiting can pay."""
    if not ranges:
        return [()]
    (low, high), later = ranges[0], ranges[1:]
    places = []
    for at in range(max(low, begin), high + 1):
        for rest in _places(chain, later, acts[1:], at + acts[0]):
            # The next pivot's position bounds this one.
            top = min(high, rest[0]) if rest else high
            if acts[0] or at in resting_places(chain, max(low, begin), top):
                places.append((at, *rest))
    return places


def _held(chain: Chain, leg: ChainSegment, path: list[Climb], rank: tuple[int, int], wins_ties: bool) -> int:
    """The bytes that the chain holds in this phase when another chain's climb with this rank runs."""
    held = chain.level[leg.begin]
    for climb in path:
        if climb.rank < rank or (wins_ties and climb.rank == rank):
            held += climb.change
    return held
