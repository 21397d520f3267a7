"""Plans of single networks for an application: the fastest, the smallest, or the fastest within a limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from ..errors import Infeasible
from ..fusion.choice import is_interrupted
from ..fusion.request import PlanRequest, make_plan
from ..fusion.search import PlanSearch
from ..fusion.timing import TimedPlan, Timing
from ..memory.joint.conflicts import last_use
from ..memory.joint.layout import with_buffers
from ..memory.problems import RESERVED
from ..network import Network
from ..program import Plan
from ..program.deployment import Deployment, Fifo, Part
from .description import AppNetworkEntry, PreemptionPoints
from .draft import Application
from .preemption_points import turns_needed, with_turns
from .rings import pushing_rows, reading_rows, ring_ends
from .slots import SPARE

RUNGS = 3  # plans of a ladder between the fastest and the least, and between that and the smallest
EARLIER = 1.2  # on top of SPARE: the next plan may finish its last layers earlier


def held_inputs(deployment: Deployment, part: str) -> frozenset[str]:
    """Inputs that the part must not overwrite, because others read them later or fill them meanwhile."""
    fills_slots = any(fifo.source == part for fifo in deployment.queues)

    def is_held(fifo: Fifo) -> bool:
        if fifo in deployment.queues:
            return not fifo.rows and (fills_slots or len(fifo.readers) > 1)
        return fifo.is_kept or (fifo.keeps_latest and not deployment.is_last(fifo, part))

    return frozenset(own for own, fifo in deployment.reads[part].items() if is_held(fifo))


@dataclass(frozen=True)
class PartPlanner:
    """The plans of one part. Inputs that others still need are kept to the end of the run."""

    application: Application
    part: Part
    everyone: Mapping[str, PartPlanner] = field(default_factory=dict, repr=False)  # by part, including this one

    @cached_property
    def held(self) -> frozenset[str]:
        return held_inputs(self.application.deployment, self.part.name)

    @cached_property
    def crossing(self) -> tuple[str, ...]:
        """The inputs that other partitions make."""
        reads, queues = self.application.deployment.reads[self.part.name], self.application.deployment.queues
        return tuple(own for own, fifo in reads.items() if fifo in queues)

    @cached_property
    def sources(self) -> tuple[PartPlanner, ...]:
        """The planners of partitions that make this one's inputs, if it may overwrite these."""
        if self.held or any(self.ring_ends):
            return ()
        makers = [fifo.source for fifo in self.application.deployment.queues if self.part.name in fifo.reading]
        return tuple(self.everyone[name] for name in dict.fromkeys(makers))

    @cached_property
    def network(self) -> Network:
        """The network for planning: an input that must stay intact counts as an output too."""
        network, pulled = self.part.network, self.ring_ends[0]
        network = network if pulled is None else reading_rows(network, pulled)
        return replace(network, outputs=(*network.outputs, *sorted(self.held))) if self.held else network

    @cached_property
    def ring_ends(self) -> tuple[str | None, str | None]:
        """The input that comes out of a ring of rows, and the output that goes into one."""
        return ring_ends(self.application.deployment, self.part)

    @cached_property
    def entry(self) -> AppNetworkEntry:
        return self.application.file.network(self.part.name)

    @property
    def _pulls(self) -> bool:
        """Whether images are pulled row by row: from a ring, or by the first partition if the file says so."""
        return self.ring_ends[0] is not None or (self.entry.pull_input and not self.crossing)

    @property
    def is_fixed(self) -> bool:
        """Whether the file determines how layers run."""
        return self.entry.plain or self.entry.phases

    @cached_property
    def fastest(self) -> Plan:
        """Whole layers in little RAM, or what the file asks for."""
        if not self.is_fixed:
            is_alone = not self.application.is_pipelined(self.part.owner)
            search = self._least_search if is_alone else self._search(self._request)
            return self._found(search, search.whole.plan)
        request = PlanRequest(plain=self.entry.plain, phases=self.entry.phases, pull_rows=self._pulls)
        return self._own(make_plan(self.network, request, target=self.application.target))

    @cached_property
    def least(self) -> Plan:
        """The least RAM within the limits of the file, by default without extra MACs."""
        return self.fastest if self.is_fixed else self._found(self._least_search, self._least_search.least().plan)

    @cached_property
    def smallest(self) -> Plan:
        """The least RAM at any cost within the limits of the file."""
        return self.fastest if self.is_fixed else self._found(self._smallest_search, self._smallest_search.least().plan)

    @cached_property
    def reserved(self) -> tuple[str, int] | None:
        """The layer from which on the producers of its only slot may run beside it, and the bytes they need.

        None if too little of its run remains after it has read the slot.
        """
        if not self.sources or self.is_fixed:
            return None
        stages, times = self.fastest.program.stages, self.times(self.fastest)
        wanted = SPARE * EARLIER * max(source.cost(source.least) for source in self.sources)
        for at in range(len(stages) - 1, last_use(self.fastest, self.crossing), -1):
            if sum(times[at:]) >= wanted:
                return stages[at].layers[0], sum(source.least.peak_bytes for source in self.sources)
        return None

    def peak(self, plan: Plan) -> int:
        """The memory of the plan and of parts that run beside it."""
        layer, size = self.reserved or ("", 0)
        at = next((n for n, stage in enumerate(plan.program.stages) if layer in stage.layers), None)
        return plan.peak_bytes if at is None else max(plan.peak_bytes, size + max(plan.live_bytes[at:]))

    def within(self, ram: int) -> Plan:
        """The plan with the least extra work that fits; if there is none, an error gives the least RAM possible."""
        if self.is_fixed or self.fastest.peak_bytes <= ram:
            return self.fastest
        if self.least.peak_bytes <= ram:
            return self._found(self._least_search, self._least_search.fitting(ram).plan)
        return self._found(self._smallest_search, self._smallest_search.fitting(ram).plan)

    def fitted(self, ram: int, is_free: bool) -> Plan | None:
        """Like `within`, but None if no plan fits; `is_free`: without extra MACs."""
        if is_free and ram < self.peak(self.least):
            return None
        if ram not in self._fitted:
            try:
                self._fitted[ram] = self.within(ram)
            except Infeasible:
                self._fitted[ram] = None
        return self._fitted[ram]

    @cached_property
    def _fitted(self) -> dict[int, Plan | None]:
        return {}

    @cached_property
    def free_ladder(self) -> tuple[Plan, ...]:
        """Plans without extra MACs, from the fastest to the least RAM."""
        return self._ladder((self.fastest,), self.least, is_free=True)

    @cached_property
    def ladder(self) -> tuple[Plan, ...]:
        """All plans considered for applications, from the fastest to the smallest."""
        return self._ladder(self.free_ladder, self.smallest, is_free=False)

    def _ladder(self, above: tuple[Plan, ...], last: Plan, is_free: bool) -> tuple[Plan, ...]:
        """The plans above, the last one, and useful ones in between."""
        high, low = self.peak(above[-1]), self.peak(last)
        budgets = [round(high * (low / max(1, high)) ** (n / (RUNGS + 1))) for n in range(1, RUNGS + 1)]
        between = [plan for ram in budgets if low < ram < high and (plan := self.fitted(ram, is_free)) is not None]
        ends = (*above, last)
        useful = [plan for plan in between if not any(self._dominates(one, plan) for one in (*ends, *between))]
        return self.distinct((*above, *useful, last))

    def _dominates(self, one: Plan, other: Plan) -> bool:
        mine, others = ((self.peak(plan), self.slowdown(plan)) for plan in (one, other))
        return mine != others and all(x <= y for x, y in zip(mine, others, strict=True))

    def distinct(self, plans: Iterable[Plan]) -> tuple[Plan, ...]:
        """The plans without those that equal an earlier one in buffers and stages."""
        return tuple({(plan.buffers, plan.program.stages): plan for plan in [*plans][::-1]}.values())[::-1]

    def slowdown(self, plan: Plan) -> float:
        """Extra estimated instructions over the fastest plan, as a share."""
        return max(0.0, self.cost(plan) / max(1.0, self.cost(self.fastest)) - 1)

    def cost(self, plan: Plan) -> float:
        """Estimated instructions of one run."""
        return sum(self.times(plan))

    def times(self, plan: Plan) -> tuple[float, ...]:
        """Estimated instructions of each stage."""
        known = self._known.get(id(plan))
        if known is None:
            known = self._known[id(plan)] = (plan, TimedPlan(plan, self._timing.costs(plan.network)).stages)
        return known[1]

    @cached_property
    def _known(self) -> dict[int, tuple[Plan, tuple[float, ...]]]:
        return {}

    @cached_property
    def _timing(self) -> Timing:
        return Timing(self.application.target, vectors=True)

    @property
    def _alignment(self) -> int | None:
        return self.application.board.alignment if self.application.board else None

    @cached_property
    def _request(self) -> PlanRequest:
        """What every search asks for; limits on extra work are added."""
        outside = () if self.ring_ends[1] is None else (self.ring_ends[1],)
        return PlanRequest(alignment=self._alignment, pull_rows=self._pulls, outside=outside)

    @property
    def _limited(self) -> PlanRequest:
        """The request with the limits of the file."""
        return replace(self._request, max_overhead=self.entry.max_overhead, max_slowdown=self.entry.max_slowdown)

    def _in_pipeline(self, request: PlanRequest) -> PlanRequest:
        """A partition may slow down until it takes as long as the slowest one of its pipeline, which sets the rate."""
        others = [one for one in self.everyone.values() if one.part.owner == self.part.owner and one is not self]
        if request.max_slowdown is None or not others:
            return request
        share = max(one.cost(one.fastest) for one in others) / max(1.0, self.cost(self.fastest))
        return replace(request, max_slowdown=request.max_slowdown * max(1.0, share))

    @cached_property
    def _least_search(self) -> PlanSearch:
        """The search for the least RAM: its routes are priced once, up to the peak of whole layers, for all budgets."""
        return self._search(self._in_pipeline(self._limited.with_usual_limits), reserved=self.reserved)

    @cached_property
    def _smallest_search(self) -> PlanSearch:
        """The search within the limits of the file; its routes are priced once, for all budgets below the least."""
        return self._search(self._in_pipeline(self._limited), self.least.peak_bytes, self.reserved)

    def _search(self, request: PlanRequest, room: int = 0, reserved: tuple[str, int] | None = None) -> PlanSearch:
        target, timing = self.application.target, self._timing
        return PlanSearch(self.network, request, target=target, room=room, reserved=reserved, timing=timing)

    def _found(self, search: PlanSearch, plan: Plan) -> Plan:
        """The plan as this part's own. If it fills a ring, but not row by row, another plan of the search is used."""
        if self.ring_ends[1] is None:
            return self._own(plan)
        others = sorted((one for one in (search.by_rows, search.whole) if search.allows(one)), key=lambda one: one.peak)
        for one in (plan, *(other.plan for other in others)):
            try:
                return pushing_rows(self._own(one), self.ring_ends[1])
            except Infeasible as error:
                reason = error
        raise reason

    def _own(self, plan: Plan) -> Plan:
        """The plan for the network itself, whose held inputs are not outputs; layers added by planning stay.

        It runs by rows if it may be interrupted between them. Ctrl-C in a search ends the whole planning.
        """
        if is_interrupted(plan):
            raise KeyboardInterrupt
        outputs = plan.network.outputs[: len(self.part.network.outputs)]
        network = replace(plan.network, outputs=outputs) if outputs != plan.network.outputs else plan.network
        own = replace(plan, program=replace(plan.program, network=network))
        if any(buffer.name == RESERVED for buffer in own.buffers):
            own = with_buffers(own, tuple(buffer for buffer in own.buffers if buffer.name != RESERVED))
        if not self._has_rows:
            return own
        return with_turns(own, turns_needed(own, TimedPlan(own, self._timing.costs(network))))

    @cached_property
    def _has_rows(self) -> bool:
        preemptions = [one for one in self.application.deployment.preemptions if one.parts[1] == self.part.name]
        return any(self.application.preempting(one).points is PreemptionPoints.ROWS for one in preemptions)


def planners(application: Application, known: Mapping[str, PartPlanner] | None = None) -> Mapping[str, PartPlanner]:
    """A planner for every part; `known` ones of unchanged networks are reused."""
    planners: dict[str, PartPlanner] = {}
    for part in application.deployment.parts:
        planners[part.name] = (known or {}).get(part.name) or PartPlanner(application, part, planners)
    return planners
