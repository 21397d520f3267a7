"""The main entry: cuts the problem into segments and orders each with the cheapest method that proves its result."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import lru_cache

from .beam import LARGE, sweep
from .branches import find_branches
from .contract import contract
from .cuts import MinCuts
from .flood import WORD, flood
from .lattice import Lattice
from .model import MOST_STEPS, improve
from .pivots import interleave
from .probe import Precedence, probe, step_bound
from .problem import Order, OrderProblem, is_valid, peak, profile
from .waists import Segment, cut_at_waists


@dataclass(frozen=True, slots=True)
class OrderEffort:
    """The effort for a segment, counted in states, cuts and CP-SAT's deterministic time, so that results repeat.

    Widths and cuts are those of a segment of up to `LARGE` steps; larger segments get fewer, since each costs more.
    """

    width: int = 200  # executed sets per level in a quick sweep
    states: int = 3_000_000  # executed sets in all exhaustive floods
    flows: int = 20_000  # minimum cuts in all probes
    model: float = 1.0  # deterministic seconds for each integer programme


DEFAULT = OrderEffort()
_CLOSE = 100  # bisection ends when the open range is less than one part in this many of the peak


@lru_cache(maxsize=64)
def order(problem: OrderProblem, effort: OrderEffort = DEFAULT, below: int | None = None) -> Order:
    """The order of steps that needs the least memory, with the bound that proves it (or shows the gap).

    With `below`, only an order that needs less is of interest; if none is found soon, any order is returned.

    Answers are cached, because a network is planned several times with similar problems.

    This is the flow of S fig. 4.7 with proofs in place of time limits: merge steps that belong together, cut at waists,
    then for each segment sweeps, chains, cuts and probes. Work on a segment stops when another segment needs as much in
    any case.
    """
    smaller = contract(problem)
    smaller_order = _order(smaller.problem, effort, below)
    steps = smaller.expand(smaller_order.steps)
    assert is_valid(problem, steps)
    assert peak(problem, steps) == smaller_order.peak, "merging changed the memory"
    return replace(smaller_order, steps=steps)


def _order(problem: OrderProblem, effort: OrderEffort, below: int | None) -> Order:
    pieces = cut_at_waists(problem)
    alike: dict[Hashable, _Work] = {}  # repeated segments, as in unrolled loops, are ordered once
    works = {}
    for at, part in enumerate(pieces.parts):
        if isinstance(part, Segment):
            works[at] = alike.get(part.pattern) or alike.setdefault(part.pattern, _Work(part, effort))
    bound = max([pieces.fixed_peak, *(work.bound for work in alike.values())])
    for work in sorted(alike.values(), key=lambda work: -work.peak):
        if below is not None and not work.may_be_below(below):
            break
        work.refine(bound)
        bound = max(bound, work.bound)

    steps: list[int] = []
    for at, part in enumerate(pieces.parts):
        steps += [part.steps[step] for step in works[at].order] if isinstance(part, Segment) else [part]
    cost = peak(problem, steps)
    assert bound <= cost
    methods = {work.method for work in alike.values()} or {"forced"}
    return Order(tuple(steps), cost, bound, "+".join(sorted(methods)))


class _Work:
    """A segment and the state of its search; bytes include those that lie across it."""

    def __init__(self, segment: Segment, effort: OrderEffort) -> None:
        self.segment, self.effort = segment, effort
        self.lattice = Lattice(segment.problem)
        self.branches = find_branches(self.lattice)
        self.width = -(-effort.width * LARGE // max(LARGE, self.lattice.count))
        self.flows = effort.flows * LARGE**2 // max(LARGE, self.lattice.count) ** 2
        # Parallel chains have their own method; a narrow sweep is a sufficient start.
        swept = sweep(self.lattice, 4 if self.branches else self.width, cap=self.lattice.most + 1)
        assert swept.order is not None
        self.method = "sweep"
        self.order = swept.order
        self.local_peak = peak(segment.problem, self.order)
        self.local_bound = self.local_peak
        if not swept.complete:
            self.known = Precedence(self.lattice)
            self.cuts = MinCuts(self.lattice)
            needs = dict(zip(self.order, profile(segment.problem, self.order), strict=True))
            in_order = [needs[step] for step in range(self.lattice.count)]
            self.local_bound = step_bound(self.cuts, self.known, in_order, max(1, self.flows))

    @property
    def peak(self) -> int:
        """Bytes of the best order so far."""
        return self.local_peak + self.segment.base

    @property
    def bound(self) -> int:
        """Lower bound for all orders of the segment."""
        return self.local_bound + self.segment.base

    def may_be_below(self, limit: int) -> bool:
        """Whether searching further for a lower peak pays: in a large segment only if the sweep found a lower one."""
        return (self.peak if self.lattice.count > LARGE else self.bound) < limit

    def refine(self, enough: int) -> None:
        """Narrows the gap between bound and peak until it is closed, the peak is `enough`, or the effort is used up."""
        enough -= self.segment.base
        if self.local_peak <= max(enough, self.local_bound):
            return
        if self.branches is not None:
            self.method = "chains"
            result = interleave(self.lattice, self.branches, self.local_bound, self.local_peak, self.effort.model)
            self._take(result.order)
            self.local_bound = max(self.local_bound, result.bound)
            if self.local_peak <= max(enough, self.local_bound):
                return
            self._take(sweep(self.lattice, self.width, self.local_peak, self.local_bound).order)
        self.method = "probe"
        self._probe(enough)
        if self.local_peak > max(enough, self.local_bound) and self.lattice.count <= MOST_STEPS:
            self.method = "model"
            better, bound = improve(self.segment.problem, self.order, self.local_bound, self.effort.model)
            self._take(better)
            self.local_bound = max(self.local_bound, bound)

    def _take(self, better: tuple[int, ...] | None) -> None:
        if better is not None and (cost := peak(self.segment.problem, better)) < self.local_peak:
            self.order, self.local_peak = better, cost

    def _probe(self, enough: int) -> None:
        """Probes budgets between bound and peak: each is refuted, met by a quick sweep, or left open.

        Cuts are often tight, so the bound is probed first; then the budget just below each new best order, then
        bisection. Exhaustive floods settle what is still open, if they can.
        """
        unit = self.lattice.unit
        flows = self.flows
        budget = missed = self.local_bound  # quick sweeps found nothing below `missed`
        asked_top = False  # about the budget just below the best order
        while flows > 0 and self.local_peak > max(enough, self.local_bound):
            best = self.local_peak
            known = self.known.copy()
            feasible, used = probe(self.cuts, known, budget, flows)
            flows -= used
            if not feasible:
                self.local_bound = max(self.local_bound, budget + unit)
            else:
                self._sweep(budget, known)
            asked_top = budget == best - unit
            if self.local_peak < best:
                budget = self.local_peak - unit
                continue
            if not asked_top:
                missed = max(missed, budget + unit)
            is_close = best - missed <= max(unit, best // _CLOSE)
            if is_close and asked_top:
                break
            budget = best - unit if is_close else (missed + best - unit) // 2 // unit * unit
        if self.local_peak > max(enough, self.local_bound):
            self._settle(enough, flows)

    def _settle(self, enough: int, flows: int) -> None:
        """Bisects with exhaustive floods; a budget that is too large for a flood stays open."""
        unit, states = self.lattice.unit, self.effort.states
        closed_from = self.local_peak  # budgets from here on are settled
        while self.lattice.count <= WORD and states > 0 and closed_from > max(enough, self.local_bound):
            budget = (self.local_bound + closed_from - unit) // 2 // unit * unit
            known = self.known.copy()
            feasible, used = probe(self.cuts, known, budget, flows)
            flows -= used
            if not feasible:
                self.local_bound = budget + unit
                continue
            flooded = flood(self.lattice, budget, known.direct, states)
            states -= flooded.states
            if flooded.order is not None:
                self._take(flooded.order)
                closed_from = self.local_peak
            elif flooded.complete:
                self.local_bound = budget + unit
            else:
                closed_from = budget

    def _sweep(self, budget: int, known: Precedence) -> None:
        """Takes an order within the budget if the sweep finds one; raises the bound if there is none."""
        swept = sweep(self.lattice, self.width, cap=budget + 1, floor=budget, follows=known.direct)
        self._take(swept.order)
        if swept.order is None and swept.complete:
            self.local_bound = max(self.local_bound, budget + self.lattice.unit)
