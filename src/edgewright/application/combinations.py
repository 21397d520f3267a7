"""Finds the best combination of plans, one for each part of an application.

Every part has a ladder of plans, from the fastest to the smallest. The search visits combinations in the order of their
slow-down. A combination that does not fit yields a refutation: the parts whose buffers alone need too much must change,
so only combinations that change one of them follow. The result equals that of trying all combinations, unless the
application is so large that TRIES is reached; then the lowest combination is made as fast as fits, part by part.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush

from ..errors import Infeasible
from ..memory.joint.layout import JointLayout, lay_out_jointly
from ..program import Plan
from .blocking import choose_points
from .draft import Application
from .planning import PartPlanner
from .preemption_points import with_points
from .response_time import check_deadlines
from .slots import minimise_slots

TRIES = 6000  # buffers in the combinations tried for one query: 300 combinations of 20 buffers
MISSES = 40  # combinations per query that miss a deadline or cannot be laid out
REFINED = 2  # budgets of a part that one query adds to its ladder
UNLIMITED = sys.maxsize


@dataclass(frozen=True)
class JointPlan:
    """A plan for every part in one arena, and its cost for each."""

    layout: JointLayout
    slowdowns: Mapping[str, float]  # of each part: extra estimated instructions over its fastest plan, as a share

    @property
    def peak_bytes(self) -> int:
        return self.layout.peak_bytes

    @property
    def slowdown(self) -> float:
        return sum(self.slowdowns.values())

    def owner(self, part: str) -> str:
        """The network of a part."""
        return self.layout.problem.deployment.part_named[part].owner

    def pace_of(self, part: str) -> float:
        """The slow-down of a part's network: that of its slowest partition."""
        return max(slow for name, slow in self.slowdowns.items() if self.owner(name) == self.owner(part))

    @property
    def payers(self) -> tuple[str, ...]:
        """The networks that run slower than with their fastest plan."""
        return tuple(dict.fromkeys(self.owner(name) for name, slow in self.slowdowns.items() if slow > 0.0005))


@dataclass(frozen=True)
class Refutation:
    """Plans of some parts that no layout puts into `beyond` bytes; of all parts, if they miss a deadline."""

    plans: Mapping[str, Plan]
    names: frozenset[str]  # parts of which one must change its plan
    beyond: int

    def holds(self, plans: Mapping[str, Plan], ram: int) -> bool:
        return ram <= self.beyond and all(plans[name] is plan for name, plan in self.plans.items())


@dataclass(frozen=True)
class Combinations:
    """The combinations of the parts' plans, with cached layouts."""

    application: Application
    planners: Mapping[str, PartPlanner]
    made: list[JointPlan] = field(default_factory=list, compare=False)  # all combinations laid out so far
    refutations: list[Refutation] = field(default_factory=list, compare=False)

    def lowest(self, is_free: bool) -> JointPlan | None:
        """The least arena, and the least slow-down in it; with `is_free` without extra MACs. None if deadlines are
        missed."""
        best = self.fastest_within(UNLIMITED, is_free)
        lowered = set[str]()
        while best is not None and (names := set(best.layout.exceeding(among=self.planners.keys() - lowered))):
            lowered |= names
            small = {name: one.least if is_free else one.smallest for name in names if (one := self.planners[name])}
            trial = self.tried({**best.layout.problem.plans, **small})
            best = trial if trial is not None and trial.peak_bytes < best.peak_bytes else best
        while best is not None and (lower := self.fastest_within(best.peak_bytes - 1, is_free, refined=0)) is not None:
            best = lower
        return best and (self.fastest_within(best.peak_bytes, is_free) or best)

    def fastest_within(self, ram: int, is_free: bool, refined: int = REFINED) -> JointPlan | None:
        """The combination with the least slow-down that fits and meets all deadlines; None if there is none.

        The ladder of a part that must change may be extended by up to `refined` plans for other budgets.
        """
        ladders = Ladders(self.planners, is_free, refined)
        queue, seen, tries = [(0.0, ladders.start)], {ladders.start}, 0
        best: JointPlan | None = None
        while queue:
            slow, at = heappop(queue)
            if best is not None and best.slowdown <= slow:
                return best
            plans = ladders.plans(at)
            names = next((one.names for one in self.refutations if one.holds(plans, ram)), None)
            if names is None or ladders.may_grow(names):
                tries += sum(len(plan.buffers) for plan in plans.values())
                if tries > TRIES:
                    return self._relaxed(ladders, ram, best)
                joint = self.tried(plans)
                tries += TRIES // MISSES if joint is None else 0
                if joint is not None and joint.peak_bytes <= ram:
                    if joint.slowdown <= slow:
                        return joint
                    best, names = min(best or joint, joint, key=lambda one: one.slowdown), frozenset(plans)
                else:
                    names = self._refuted(plans, joint, ram, ladders.changing) if names is None else names
                    if ladders.grow(plans, names, joint.peak_bytes - ram if joint is not None else 0, ram):
                        queue, seen = [(0.0, ladders.start)], {ladders.start}
                        continue
            for later in ladders.after(at, names):
                if later not in seen:
                    seen.add(later)
                    heappush(queue, (self._slowdown(ladders.plans(later)), later))
        return best

    def _refuted(
        self, plans: Mapping[str, Plan], joint: JointPlan | None, ram: int, changing: frozenset[str]
    ) -> frozenset[str]:
        """The parts of which one must have another plan; cached, so that other combinations need not be laid out."""
        names = changing
        if joint is not None:
            parts = self.application.deployment.parts
            names &= set(joint.layout.exceeding(ram, changing))
            owners = [part.owner for part in parts if part.name in names]
            # The slots of a pipeline, and who takes turns, depend on all its partitions.
            names |= {part.name for part in parts if part.name in changing and owners.count(part.owner) > 1}
        used = {name: plan for name, plan in plans.items() if name in names or name not in changing}
        self.refutations.append(Refutation(used, names, UNLIMITED if joint is None else ram))
        return names

    def _relaxed(self, ladders: Ladders, ram: int, best: JointPlan | None) -> JointPlan | None:
        """The lowest combination, with a faster plan for each part that has space for one; `best` if that is better."""
        plans = ladders.lowest
        joint = self.tried(plans)
        if joint is None or joint.peak_bytes > ram:
            return best
        for name, slow in sorted(joint.slowdowns.items(), key=lambda entry: -entry[1]):
            for plan in ladders.plans_of[name] if slow > 0 else ():
                trial = self.tried({**plans, name: plan})
                if trial is not None and trial.peak_bytes <= ram and trial.slowdown < joint.slowdown:
                    joint, plans = trial, {**plans, name: plan}
                    break
        return min(best or joint, joint, key=lambda one: one.slowdown)

    def _slowdown(self, plans: Mapping[str, Plan]) -> float:
        """The summed slow-down; for partitions that wait for each other's rows a lower bound."""
        slow = {name: planner.slowdown(plans[name]) for name, planner in self.planners.items()}
        for owner in dict.fromkeys(ring.what.network for ring in self.application.deployment.rings):
            slow |= self._of_pipeline(owner, max(self._costs(owner, plans)))
        return sum(slow.values())

    def _of_pipeline(self, owner: str, period: float) -> dict[str, float]:
        """The slow-down of partitions that wait for each other, by the period of the pipeline."""
        alone = max(self._costs(owner, {name: one.fastest for name, one in self.planners.items()}))
        names = [part.name for part in self.application.deployment.parts_of(owner)]
        return dict.fromkeys(names, max(0.0, period / max(1.0, alone) - 1))

    def _costs(self, owner: str, plans: Mapping[str, Plan]) -> list[float]:
        return [self.planners[one.name].cost(plans[one.name]) for one in self.application.deployment.parts_of(owner)]

    def tried(self, plans: Mapping[str, Plan]) -> JointPlan | None:
        """The joint layout of the plans; None if impossible, or if a deadline is missed."""
        try:
            return self.laid_out(plans)
        except Infeasible:
            return None

    def laid_out(self, plans: Mapping[str, Plan], is_hasty: bool = False) -> JointPlan:
        """The joint layout of the plans, cached for each combination; an error if impossible, or if a deadline is
        missed."""
        key = is_hasty, *(id(plans[name]) for name in self.planners)
        if key not in self._known:
            try:
                self.made.append(self._lay_out(plans, is_hasty))
                self._known[key] = plans, self.made[-1]
            except Infeasible as error:
                self._known[key] = plans, error
        joint = self._known[key][1]
        if isinstance(joint, Infeasible):
            raise joint
        return joint

    @cached_property
    def _known(self) -> dict[tuple[int, ...], tuple[Mapping[str, Plan], JointPlan | Infeasible]]:
        return {}

    def _lay_out(self, plans: Mapping[str, Plan], is_hasty: bool) -> JointPlan:
        times = {name: planner.times(plans[name]) for name, planner in self.planners.items()}
        draft = self.application.deployment.with_plans(plans)
        sized, periods = minimise_slots(draft, times, is_hasty)
        deployment = with_points(self.application, sized, choose_points(self.application, sized))
        if self.application.board is not None:
            check_deadlines(self.application, deployment)
        slow = {name: planner.slowdown(plans[name]) for name, planner in self.planners.items()}
        for owner in dict.fromkeys(ring.what.network for ring in deployment.rings):
            slow |= self._of_pipeline(owner, periods[owner])
        return JointPlan(lay_out_jointly(deployment), slow)


State = tuple[int, ...]  # for each part, the index of its plan in its ladder


class Ladders:
    """The plans of each part that a query considers, the fastest first: initially one, more when it must change."""

    def __init__(self, planners: Mapping[str, PartPlanner], is_free: bool, refined: int) -> None:
        self.planners, self.is_free, self.refined = planners, is_free, refined
        self.plans_of: dict[str, Sequence[Plan]] = {name: (one.fastest,) for name, one in planners.items()}
        self._complete = {name for name, one in planners.items() if one.is_fixed}
        self._budgets = dict.fromkeys(planners, 0)  # budgets added to each ladder

    @property
    def start(self) -> State:
        return (0,) * len(self.planners)

    @property
    def lowest(self) -> dict[str, Plan]:
        return {name: min(plans, key=self.planners[name].peak) for name, plans in self.plans_of.items()}

    def plans(self, at: State) -> dict[str, Plan]:
        return {name: plans[n] for (name, plans), n in zip(self.plans_of.items(), at, strict=True)}

    def after(self, at: State, names: Iterable[str]) -> Iterable[State]:
        """The states with the next plan for one of these parts."""
        for n, (name, plans) in enumerate(self.plans_of.items()):
            if name in names and at[n] + 1 < len(plans):
                yield (*at[:n], at[n] + 1, *at[n + 1 :])

    @property
    def changing(self) -> frozenset[str]:
        """The parts that have other plans."""
        return frozenset(name for name, plans in self.plans_of.items() if len(plans) > 1 or name not in self._complete)

    def may_grow(self, names: Iterable[str]) -> bool:
        return any(name not in self._complete or self._budgets[name] < self.refined for name in names)

    def grow(self, plans: Mapping[str, Plan], names: Iterable[str], excess: int, ram: int) -> bool:
        """Adds plans of these parts, which exceed the memory by `excess` bytes; returns whether there are any."""
        is_grown = False
        for name in sorted(names):
            planner, own = self.planners[name], self.plans_of[name]
            more = [] if name in self._complete else [*(planner.free_ladder if self.is_free else planner.ladder)]
            alone = planner.peak(plans[name])
            budget = (ram if alone > ram else alone - excess) if excess else 0
            if 0 < budget < alone and self._budgets[name] < self.refined:
                more += [plan] if (plan := planner.fitted(budget, self.is_free)) is not None else []
            self._budgets[name] += 1
            self._complete.add(name)
            self.plans_of[name] = sorted(planner.distinct([*own, *more]), key=planner.slowdown)
            is_grown |= len(self.plans_of[name]) > len(own)
        return is_grown
