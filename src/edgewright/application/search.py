"""The plans of all networks under one budget: only those that set the peak are slowed down, by as little as
possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from .. import text
from ..dataflow.deployments.phases import pulled_rows
from ..errors import Infeasible
from ..memory.joint.layout import JointLayout
from ..memory.joint.memories import in_memories
from ..program.deployment import Fifo
from .blocking import BlockingTrade, blocking_front, undominated
from .combinations import UNLIMITED, Combinations, JointPlan
from .draft import Application
from .planning import PartPlanner, planners
from .rings import possible_rings, with_rings

STEPS = 8  # budgets between the fastest and the smallest plan of a front
NO_LOSS = 0.005  # of a network's time: not worth another search
KEPT = 0.05  # of a pipeline's time: largest cost of rows instead of frames
KIB = 1024


@dataclass(frozen=True)
class JointSearch:
    """Chooses a plan for every part."""

    application: Application
    made: list[JointPlan] = field(default_factory=list, compare=False)  # all that were laid out
    known: Mapping[str, PartPlanner] = field(default_factory=dict, compare=False, repr=False)  # for some parts

    @cached_property
    def planners(self) -> Mapping[str, PartPlanner]:
        return planners(self.application, self.known)

    @cached_property
    def combinations(self) -> Combinations:
        return Combinations(self.application, self.planners, self.made)

    @cached_property
    def fastest(self) -> JointPlan:
        return self.combinations.laid_out({name: one.fastest for name, one in self.planners.items()})

    @cached_property
    def by_rows(self) -> JointSearch | None:
        """The search with rings of rows between partitions of pipelines; None if no ring is possible, or the
        application already has rings."""
        chosen = possible_rings(self.application) if not self.application.deployment.rings else ()
        if len(chosen) > 1:  # an impossible one does not affect the others
            chosen = tuple(ring for ring in chosen if self._can_cross_in_rows(ring))
        if not chosen:
            return None
        owners = {ring.what.network for ring in chosen}
        others = {name: one for name, one in self.planners.items() if one.part.owner not in owners}
        return JointSearch(with_rings(self.application, chosen), self.made, others)

    def _can_cross_in_rows(self, fifo: Fifo) -> bool:
        """Whether both partitions have plans that push and pull rows of this tensor."""
        both = planners(with_rings(self.application, (fifo,)))
        try:
            _, pulling = (both[name].fastest for name in fifo.ends)
            pulled_rows(pulling, self.application.deployment.part_named[fifo.ends[1]].own(fifo))
        except Infeasible:
            return False
        return True

    def _in_rows(self, asked: Callable[[JointSearch], JointPlan | None]) -> JointPlan | None:
        """The result of the search with rings, if any."""
        try:
            return asked(self.by_rows) if self.by_rows is not None else None
        except Infeasible:
            return None

    @cached_property
    def least(self) -> JointPlan:
        """The least arena without extra MACs, each network as fast as that allows."""
        best, rows = self.as_given, self._in_rows(lambda search: search.as_given)
        for _ in range(2):  # with little memory, or else quickly
            if rows is None or self.by_rows is None or rows.peak_bytes >= best.peak_bytes:
                break
            if all(slow <= best.pace_of(name) + KEPT for name, slow in rows.slowdowns.items()):
                return rows
            rows = self.by_rows.combinations.laid_out(rows.layout.problem.plans, is_hasty=True)
        return best

    @cached_property
    def as_given(self) -> JointPlan:
        """Like `least`, but tensors cross partitions as this application says."""
        return self.combinations.lowest(is_free=True) or self._smallest_as_given

    @cached_property
    def smallest(self) -> JointPlan:
        """The least arena at any cost."""
        best, rows = self._smallest_as_given, self._in_rows(lambda search: search.smallest)
        return best if rows is None or rows.peak_bytes >= best.peak_bytes else rows

    @cached_property
    def _smallest_as_given(self) -> JointPlan:
        return self.combinations.lowest(is_free=False) or self.fastest  # raises the error that describes the problem

    def within(self, ram: int) -> JointPlan:
        """The least slow-down that fits; if nothing fits, an error gives the least RAM possible and what sets it."""
        plan = self._fitting(ram)
        if plan is None and self.smallest.peak_bytes <= ram:
            plan = self.smallest
        if plan is None:
            raise Infeasible(self._refusal(ram))
        return plan

    def _fitting(self, ram: int) -> JointPlan | None:
        """The least slow-down that fits, with or without rings; None if none was found."""
        plan = self.combinations.fastest_within(ram, is_free=False)
        rows = self._in_rows(lambda search: search._fitting(ram)) if plan is None or plan.slowdown > NO_LOSS else None
        return min((one for one in (plan, rows) if one is not None), key=lambda one: one.slowdown, default=None)

    def in_memories(self, memories: Mapping[str, int]) -> JointPlan:
        """The least arena in the first of these memories that holds it, or spread over them; with slower plans if
        needed."""
        try:
            return replace(self.least, layout=in_memories(self.least.layout, memories))
        except Infeasible:
            smallest, most = self.smallest.peak_bytes, sum(memories.values())
        if smallest > most:
            raise Infeasible(self._refusal(most))
        low, high = max(smallest, max(memories.values())), min(most, self.least.peak_bytes)
        for step in range(1, STEPS + 1):
            try:
                joint = self.within(round(high * (low / high) ** (step / STEPS)))
                return replace(joint, layout=in_memories(joint.layout, memories))
            except Infeasible:
                continue
        listed = ", ".join(f"{name} ({text.size(size)})" for name, size in memories.items())
        raise Infeasible(
            f"does not fit: the application needs {text.size(smallest)} of RAM at least, and no way was found to "
            f"spread it over {listed}; enlarge one of them, or let fewer networks run together"
        )

    def front(self) -> tuple[JointPlan, ...]:
        """RAM against slow-down, by descending RAM."""
        plans = [self.within(UNLIMITED)]
        high, low = plans[0].peak_bytes, self.smallest.peak_bytes
        budgets = [round(low * (high / max(1, low)) ** (n / STEPS)) for n in range(STEPS - 1, -1, -1)]
        for ram in budgets:
            try:
                plans.append(self.within(ram))
            except Infeasible:
                continue
        return undominated([*plans, self.least, self.smallest], lambda plan: (plan.peak_bytes, plan.slowdown))

    def blocking_front(self) -> tuple[BlockingTrade, ...]:
        """RAM against the worst wait, if networks interrupt others and a board says how fast they are."""
        if self.application.board is None:
            return ()
        return blocking_front(self.application, self.least.layout.problem.deployment)

    def of_layout(self, layout: JointLayout) -> JointPlan:
        """An existing layout, with its cost for each part."""
        plans = layout.problem.plans
        return JointPlan(layout, {name: one.slowdown(plans[name]) for name, one in self.planners.items()})

    def next_steps(self, joint: JointPlan, most: int = 2) -> Iterator[tuple[int, JointPlan | None]]:
        """The cost of each further KiB: the budget, and the plan within it, or None."""
        for step in range(1, most + 1):
            ram = joint.peak_bytes - step * KIB
            yield ram, (plan := self._fitting(ram))
            if plan is None:
                return

    def _refusal(self, ram: int) -> str:
        least = self.smallest
        names = " and ".join(f"'{name}'" for name in least.layout.setters)
        ends = {
            part.name: sum(part.network.tensors[t].bytes for t in (*part.network.inputs, *part.network.outputs))
            for part in self.application.deployment.parts
        }
        largest = max(ends, key=ends.__getitem__)
        entries = self.application.file.networks
        is_timed = self.application.board is not None and any(one.period or one.throughput for one in entries)
        aim = " to meet all deadlines" if is_timed else ""
        because = f", and the ends of '{largest}' alone are {text.size(ends[largest])}" if ends[largest] > ram else ""
        return (
            f"does not fit: the application needs {text.size(least.peak_bytes)} of RAM at least{aim}, which {names} "
            f"{'set' if len(least.layout.setters) > 1 else 'sets'}, and {text.size(ram)} are there{because}; raise the "
            "limit, pull an input by rows, or let fewer networks run together"
        )
