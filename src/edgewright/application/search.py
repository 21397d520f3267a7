"""The plans of all networks under one budget: only those that set the peak are slowed down, as little as is enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from .. import text
from ..errors import Infeasible
from ..program import Plan
from .blocking import BlockingTrade, blocking_front, choose_points, undominated
from .joint import JointLayout, lay_out_jointly
from .members import Application, CrossingTensor
from .memories import in_memories
from .pace import pulled_steps
from .planning import MemberPlanner, planners
from .rings import possible_rings, with_rings
from .slots import with_few_slots

ROUNDS = 40  # plans that are exchanged at most until everything fits
STEPS = 8  # budgets between the fastest and the smallest for which a front is sought
NO_LOSS = 0.005  # of a network's time: not worth another search
KEPT = 0.05  # of a pipeline's time: what rows in place of frames may cost at most
KIB = 1024


@dataclass(frozen=True)
class JointPlan:
    """A plan for every member in one arena, and what it costs each."""

    layout: JointLayout
    slowdowns: Mapping[str, float]  # of each member: estimated instructions beyond its fastest plan's, as a share

    @property
    def peak_bytes(self) -> int:
        return self.layout.peak_bytes

    @property
    def slowdown(self) -> float:
        return sum(self.slowdowns.values())

    def pace_of(self, member: str) -> float:
        """By how much the network of a member is slower than it could be: as much as the slowest of its partitions."""
        owners = self.layout.application.by_name
        return max(slow for name, slow in self.slowdowns.items() if owners[name].owner == owners[member].owner)

    @property
    def payers(self) -> tuple[str, ...]:
        """The networks that are slower than they could be."""
        owners = self.layout.application.by_name
        return tuple(dict.fromkeys(owners[name].owner for name, slow in self.slowdowns.items() if slow > 0.0005))


@dataclass(frozen=True)
class JointSearch:
    """Chooses a plan for every member."""

    application: Application
    made: list[JointPlan] = field(default_factory=list, compare=False)  # all that were laid out
    known: Mapping[str, MemberPlanner] = field(default_factory=dict, compare=False, repr=False)  # of some members

    @cached_property
    def planners(self) -> Mapping[str, MemberPlanner]:
        return planners(self.application, self.known)

    @cached_property
    def fastest(self) -> JointPlan:
        return self._joint({name: one.fastest for name, one in self.planners.items()})

    @cached_property
    def by_rows(self) -> JointSearch | None:
        """The search with rings of rows between partitions of pipelines; None where no ring is possible, or the
        application has rings already."""
        chosen = possible_rings(self.application) if not self.application.rings else ()
        if len(chosen) > 1:  # one that cannot be leaves the others
            chosen = tuple(ring for ring in chosen if self._can_cross_in_rows(ring))
        if not chosen:
            return None
        owners = {ring.owner for ring in chosen}
        others = {name: one for name, one in self.planners.items() if one.member.owner not in owners}
        return JointSearch(with_rings(self.application, chosen), self.made, others)

    def _can_cross_in_rows(self, crossing: CrossingTensor) -> bool:
        """Whether there are plans of both partitions that push rows of this tensor, and pull them."""
        both = planners(with_rings(self.application, (crossing,)))
        (source, _), ((reader, tensor),) = crossing.source, crossing.readers
        try:
            _, pulling = both[source].fastest, both[reader].fastest
            pulled_steps(pulling, tensor, 1.0)
        except Infeasible:
            return False
        return True

    def _in_rows(self, asked: Callable[[JointSearch], JointPlan]) -> JointPlan | None:
        """What the search with rings finds, if anything."""
        try:
            return asked(self.by_rows) if self.by_rows is not None else None
        except Infeasible:
            return None

    @cached_property
    def least(self) -> JointPlan:
        """The least arena without extra MACs, each network as fast as that allows."""
        found, rows = self.as_given, self._in_rows(lambda search: search.as_given)
        for _ in range(2):  # with little memory, or else in haste
            if rows is None or self.by_rows is None or rows.peak_bytes >= found.peak_bytes:
                break
            if all(slow <= found.pace_of(name) + KEPT for name, slow in rows.slowdowns.items()):
                return rows
            rows = self.by_rows._joint(rows.layout.problem.plans, is_hasty=True)
        return found

    @cached_property
    def as_given(self) -> JointPlan:
        """The same without another search by rows: tensors cross partitions as this application says."""
        found = self._lowest_free()
        for name, slow in sorted(found.slowdowns.items(), key=lambda entry: -entry[1]):
            if slow > NO_LOSS:
                found = self._hastened(found, name)
        return found

    def _hastened(self, found: JointPlan, name: str) -> JointPlan:
        """A plan within the same arena in which this member is faster without extra MACs, where there is one."""
        planner, plans = self.planners[name], found.layout.problem.plans
        least = planner.peak(planner.least)
        for room in (room for room in (found.peak_bytes, plans[name].peak_bytes) if room >= least):
            try:
                trial = self._joint({**plans, name: planner.within(room)})
            except Infeasible:  # what is reserved for others leaves gaps
                continue
            is_free = trial.layout.plans[name].macs <= planner.least.macs
            if is_free and trial.peak_bytes <= found.peak_bytes and trial.slowdown < found.slowdown:
                return trial
        return found

    def _lowest_free(self) -> JointPlan:
        """The networks that set the peak in the least RAM without extra MACs, the others in their fastest plans."""
        found = self.fastest
        lowered: set[str] = set()
        while True:
            setters = [
                name
                for name, one in self.planners.items()
                if one.member.owner in found.layout.setters and name not in lowered
            ]
            if not setters:
                return found
            lowered |= set(setters)
            trial = self._joint({**found.layout.problem.plans, **{name: self.planners[name].least for name in setters}})
            found = trial if trial.peak_bytes < found.peak_bytes else found

    @cached_property
    def smallest(self) -> JointPlan:
        """The least arena whatever it costs."""
        found, rows = self._smallest_as_given, self._in_rows(lambda search: search.smallest)
        return found if rows is None or rows.peak_bytes >= found.peak_bytes else rows

    @cached_property
    def _smallest_as_given(self) -> JointPlan:
        return self._joint({name: one.smallest for name, one in self.planners.items()})

    def within(self, ram: int) -> JointPlan:
        """The least slow-down that fits; an error that says the least possible and who sets it where nothing does."""
        found, reason = list[JointPlan](), None
        if self.by_rows is None or ram >= self._smallest_as_given.peak_bytes:
            try:
                found.append(self._within(ram))
            except Infeasible as error:
                reason = error
        rows = self._in_rows(lambda search: search.within(ram)) if not found or found[0].slowdown > NO_LOSS else None
        found += [] if rows is None else [rows]
        if not found:
            raise reason or Infeasible(self._refusal(ram))
        return min(found, key=lambda plan: plan.slowdown)

    def _within(self, ram: int) -> JointPlan:
        plans = {name: one.fastest for name, one in self.planners.items()}
        stuck: set[str] = set()
        for _ in range(ROUNDS):
            found = self._joint(plans)
            if found.peak_bytes <= ram:
                return self._relaxed(found, ram)
            lower = self._lowered(found, plans, ram, stuck)
            if lower is None:
                break
            plans = lower
        raise Infeasible(self._refusal(ram))

    def in_memories(self, memories: Mapping[str, int]) -> JointPlan:
        """The least arena in the first of these memories that holds it, or spread over them; slower plans where not."""
        try:
            return replace(self.least, layout=in_memories(self.least.layout, memories))
        except Infeasible:
            smallest, most = self.smallest.peak_bytes, sum(memories.values())
        if smallest > most:
            raise Infeasible(self._refusal(most))
        low, high = max(smallest, max(memories.values())), min(most, self.least.peak_bytes)
        for step in range(1, STEPS + 1):
            try:
                found = self.within(round(high * (low / high) ** (step / STEPS)))
                return replace(found, layout=in_memories(found.layout, memories))
            except Infeasible:
                continue
        listed = ", ".join(f"{name} ({text.size(size)})" for name, size in memories.items())
        raise Infeasible(
            f"does not fit: the application needs {text.size(smallest)} of RAM at least, and no way was found to "
            f"spread it over {listed}; enlarge one of them, or let fewer networks run together"
        )

    def _lowered(
        self, found: JointPlan, plans: Mapping[str, Plan], ram: int, stuck: set[str]
    ) -> dict[str, Plan] | None:
        """The plans with one of those that set the peak made smaller: the one that loses least by it.

        One that does not even fit alone is made to, before it is asked for what is missing beside others.
        """
        trials: list[tuple[float, str, Plan]] = []
        for name, planner in self.planners.items():
            if planner.member.owner not in found.layout.setters or name in stuck:
                continue
            alone = planner.peak(plans[name])
            try:
                smaller = planner.within(ram if alone > ram else max(1, alone - (found.peak_bytes - ram)))
            except Infeasible:
                smaller = planner.smallest
            if planner.peak(smaller) >= alone:
                stuck.add(name)
                continue
            trials.append((planner.cost(smaller) / max(1.0, planner.cost(planner.fastest)), name, smaller))
        if not trials:
            return None
        _, name, smaller = min(trials, key=lambda trial: trial[:2])
        return {**plans, name: smaller}

    def _relaxed(self, found: JointPlan, ram: int) -> JointPlan:
        """The plan with the fastest plan of every member for which there is room after all."""
        best = found
        for name, slow in sorted(found.slowdowns.items(), key=lambda entry: -entry[1]):
            if slow > 0:
                plans = {**best.layout.problem.plans, name: self.planners[name].fastest}
                trial = self._joint(plans)
                if trial.peak_bytes <= ram:
                    best = trial
        return best

    def front(self) -> tuple[JointPlan, ...]:
        """RAM against slow-down, from most RAM to least."""
        high, low = self.fastest.peak_bytes, self.smallest.peak_bytes
        found = [self.fastest]
        budgets = [round(low * (high / max(1, low)) ** (n / STEPS)) for n in range(STEPS - 1, -1, -1)]
        for ram in budgets:
            try:
                found.append(self.within(ram))
            except Infeasible:
                continue
        return undominated([*found, self.least, self.smallest], lambda plan: (plan.peak_bytes, plan.slowdown))

    def blocking_front(self) -> tuple[BlockingTrade, ...]:
        """RAM against the worst wait, where networks interrupt others and a board says how fast they are."""
        if self.application.board is None:
            return ()
        return blocking_front(self.least.layout.application, self.least.layout.problem.plans)

    def next_steps(self, found: JointPlan, most: int = 2) -> Iterator[tuple[int, JointPlan | None]]:
        """What each KiB less would cost: the budget, and the plan within it, or None where there is none."""
        for step in range(1, most + 1):
            ram = found.peak_bytes - step * KIB
            try:
                yield ram, self.within(ram)
            except Infeasible:
                yield ram, None
                return

    def _joint(self, plans: Mapping[str, Plan], is_hasty: bool = False) -> JointPlan:
        """The plans laid out together, once for each combination of plans."""
        key = is_hasty, *(id(plans[name]) for name in self.planners)
        if key not in self._laid_out:
            self._laid_out[key] = plans, self._lay_out(plans, is_hasty)
        return self._laid_out[key][1]

    @cached_property
    def _laid_out(self) -> dict[tuple[int, ...], tuple[Mapping[str, Plan], JointPlan]]:
        return {}

    def _lay_out(self, plans: Mapping[str, Plan], is_hasty: bool) -> JointPlan:
        times = {name: planner.times(plans[name]) for name, planner in self.planners.items()}
        application, paces = with_few_slots(self.application, plans, times, is_hasty)
        layout = lay_out_jointly(application, plans, choose_points(application, plans))
        slow = {
            name: planner.cost(plans[name]) / max(1.0, planner.cost(planner.fastest)) - 1
            for name, planner in self.planners.items()
        }
        for owner in dict.fromkeys(ring.owner for ring in layout.rings):  # partitions wait for each other
            names = [member.name for member in application.members_of(owner)]
            alone = max(self.planners[name].cost(self.planners[name].fastest) for name in names)
            slow |= dict.fromkeys(names, paces[owner].period() / max(1.0, alone) - 1)
        self.made.append(JointPlan(layout, slow))
        return self.made[-1]

    def _refusal(self, ram: int) -> str:
        least = self.smallest
        names = " and ".join(f"'{name}'" for name in least.layout.setters)
        ends = {
            member.name: sum(member.network.tensors[t].bytes for t in (*member.network.inputs, *member.network.outputs))
            for member in self.application.members
        }
        largest = max(ends, key=ends.__getitem__)
        because = f", and the ends of '{largest}' alone are {text.size(ends[largest])}" if ends[largest] > ram else ""
        return (
            f"does not fit: the application needs {text.size(least.peak_bytes)} of RAM at least, which {names} "
            f"{'set' if len(least.layout.setters) > 1 else 'sets'}, and {text.size(ram)} are there{because}; raise the "
            "limit, pull an input by rows, or let fewer networks run together"
        )
