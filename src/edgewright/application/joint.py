"""One layout for the buffers of all plans of an application, and the plans with their buffers at these addresses."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ..memory.layout import ConflictGraph, LayoutEffort, Placement, conflicts, place_graph
from ..memory.layout.graph import components
from ..memory.layout.problem import align_up
from ..program import ROWS, Buffer, Plan
from ..program.deployment import Fifo, InterruptionPoints
from ..program.plan import slot_name
from .conflicts import JointBuffer, JointProblem
from .members import Application

ARENA = "ram"  # the common memory


@dataclass(frozen=True)
class JointLayout:
    """Where everything lies, and each member's plan with these addresses."""

    problem: JointProblem
    buffers: tuple[JointBuffer, ...]
    graph: ConflictGraph
    placement: Placement
    plans: Mapping[str, Plan]
    homes: Mapping[str, str] = field(default_factory=dict)  # the memory of each buffer, where it is a named one

    @property
    def application(self) -> Application:
        return self.problem.application

    @property
    def rings(self) -> tuple[Fifo, ...]:
        return self.application.rings

    @property
    def peak_bytes(self) -> int:
        """Bytes of the arena, or of the arenas of all memories, in whole words."""
        return sum(self.arenas.values())

    @cached_property
    def arenas(self) -> Mapping[str, int]:
        """Bytes of each memory, the fastest first."""
        found = dict.fromkeys(self.application.memories, 0) if self.homes else {ARENA: 0}
        for name, end in self._ends.items():
            found[self.home(name)] = max(found[self.home(name)], align_up(end, self.graph.alignment))
        return {memory: size for memory, size in found.items() if size} or {ARENA: 0}

    @cached_property
    def _ends(self) -> Mapping[str, int]:
        return {name: self.placement.offsets[name] + size for name, size in self.graph.sizes.items()}

    @property
    def bound_bytes(self) -> int:
        return min(self.peak_bytes, align_up(self.placement.bound, self.graph.alignment))

    @property
    def is_optimal(self) -> bool:
        return self.peak_bytes == self.bound_bytes

    @cached_property
    def setters(self) -> tuple[str, ...]:
        """The networks, and buffers of the firmware, that determine the size of the arena: one of them must shrink
        first."""
        members = self.application.by_name
        names = self.exceeding()
        return tuple(sorted({members[name].owner if name in members else name for name in names}))

    def exceeding(self, limit: int | None = None, among: Collection[str] | None = None) -> tuple[str, ...]:
        """Members, and buffers of the firmware, that take more than the limit, or all of an arena, with those that are
        not `among` the given ones: without any one of them the others take less."""
        names: list[str] = []
        for memory, size in self.arenas.items():
            here = self.graph.part(frozenset(name for name in self.graph.sizes if self.home(name) == memory))
            part = max(components(here), key=lambda part: max(self._ends[name] for name in part.sizes))
            names += self._exceeding(part, size - 1 if limit is None else limit, among)
        return tuple(dict.fromkeys(names))

    def _exceeding(self, part: ConflictGraph, limit: int, among: Collection[str] | None) -> list[str]:
        buffers = {buffer.name: buffer for buffer in self.buffers}
        users = {name: self._users(buffers[name]) for name in part.sizes}

        def exceeds(those: frozenset[str]) -> bool:
            """Slots depend on all partitions, a tensor that is handed over lies in memory with each of its networks."""
            own = (n for n in users if (users[n] <= those if buffers[n].fifo is not None else users[n] & those))
            graph = part.part(frozenset(own))
            if max((self._ends[name] for name in graph.sizes), default=0) <= limit:
                return False  # as it lies
            for effort in (LayoutEffort.QUICK, LayoutEffort.NORMAL):
                placement = _place(graph, buffers, self.problem.plans, 0, effort)
                if placement.peak <= limit or placement.bound > limit:
                    break
            return placement.peak > limit

        everyone = frozenset[str]().union(*users.values())
        needed = everyone if among is None else everyone & frozenset(among)
        others = everyone - needed
        sizes = {user: sum(part.sizes[name] for name in users if user in users[name]) for user in needed}
        for user in sorted(needed, key=lambda user: (-sizes[user], user)) if len(needed) > 1 else ():
            if exceeds(frozenset({user})):
                return [user]
        for user in sorted(needed, key=lambda user: (sizes[user], user)):
            if exceeds(others | needed - {user}):
                needed -= {user}
        return sorted(needed)

    @staticmethod
    def _users(buffer: JointBuffer) -> frozenset[str]:
        """The members that a buffer is of, or the buffer itself where it is the firmware's."""
        members = frozenset(use.member for use in buffer.uses)
        return members or (buffer.during if buffer.fifo is not None else frozenset({buffer.name}))

    def at(self, name: str) -> int:
        """Where a buffer begins in its arena."""
        return self.placement.offsets[name]

    def home(self, name: str) -> str:
        """The memory that a buffer lies in."""
        return self.homes.get(name, ARENA)


def lay_out_jointly(
    application: Application,
    plans: Mapping[str, Plan],
    points: Mapping[str, InterruptionPoints] | None = None,
    effort: LayoutEffort = LayoutEffort.NORMAL,
) -> JointLayout:
    """The smallest arena for these plans. Networks without conflicts keep the addresses of their own plans."""
    problem = JointProblem(application, plans, points or {})
    buffers = problem.buffers()
    graph = problem.graph(buffers)
    bound = max((plan.bound_bytes for plan in _standalone(application, plans)), default=0)
    placement = _place(graph, {b.name: b for b in buffers}, plans, bound, effort)
    return JointLayout(problem, buffers, graph, placement, moved_plans(problem, buffers, placement))


def proven(layout: JointLayout) -> JointLayout:
    """The layout, proven least or made smaller where a longer search can."""
    if layout.is_optimal or layout.homes:
        return layout
    problem = layout.problem
    longer = lay_out_jointly(problem.application, problem.plans, problem.points, LayoutEffort.THOROUGH)
    return min(layout, longer, key=lambda one: (one.peak_bytes, -one.bound_bytes))


def _place(
    graph: ConflictGraph,
    buffers: Mapping[str, JointBuffer],
    plans: Mapping[str, Plan],
    bound: int,
    effort: LayoutEffort,
) -> Placement:
    """The joint placement, part by part; a part that belongs to one plan stays as it was planned."""
    offsets: dict[str, int] = {}
    peak, methods = 0, []
    for part in sorted(components(graph), key=lambda part: -sum(part.sizes.values())):
        planned = _as_planned(part, buffers)
        if planned is not None:
            trying = effort if effort is LayoutEffort.THOROUGH else LayoutEffort.QUICK
            again = _placed_together(part, buffers, peak, trying)
            planned = again if again.peak < planned.peak else planned
            offsets |= planned.offsets
            peak, bound, method = max(peak, planned.peak), max(bound, min(again.bound, planned.peak)), planned.method
        else:
            found = _placed_together(part, buffers, peak, effort)
            around = _around_the_largest(part, buffers, plans)
            if around is not None and around.peak < found.peak and _is_conflict_free(part, buffers, around):
                found = replace(around, bound=min(found.bound, around.peak))
            offsets |= found.offsets
            peak, bound, method = max(peak, found.peak), max(bound, found.bound), found.method
        methods += [] if method in methods else [method]
    return Placement(offsets, peak, min(bound, peak), "; ".join(methods))


def _placed_together(
    graph: ConflictGraph, buffers: Mapping[str, JointBuffer], bound: int, effort: LayoutEffort
) -> Placement:
    """The placement of a part. Buffers of one plan that share bytes by their calls inside a stage stay as they lie."""
    whole, home = grouped_by_calls(graph, buffers)
    found = place_graph(whole, bound=bound, effort=effort)
    return replace(found, offsets={name: found.offsets[first] + at for name, (first, at) in home.items()})


def grouped_by_calls(
    graph: ConflictGraph, buffers: Mapping[str, JointBuffer]
) -> tuple[ConflictGraph, Mapping[str, tuple[str, int]]]:
    """The graph in which buffers that share bytes by their calls are one; of each buffer, the first of its group and
    the offset from it."""
    home: dict[str, tuple[str, int]] = {}
    sizes: dict[str, int] = {}
    starts = {name: buffers[name].planned or 0 if _life(buffers[name]) else 0 for name in graph.sizes}
    for name, at in sorted(starts.items(), key=lambda entry: entry[::-1]):
        for first in sizes:
            is_alike = _life(buffers[name]) is not None and _life(buffers[first]) == _life(buffers[name])
            inside = at - starts[first]
            if is_alike and not {(name, first), (first, name)} & graph.gaps.keys() and inside < sizes[first]:
                home[name], sizes[first] = (first, inside), max(sizes[first], inside + graph.sizes[name])
                break
        else:
            home[name], sizes[name] = (name, 0), graph.sizes[name]
    alone = {name for name in sizes if sizes[name] == graph.sizes[name]}
    conflicting = {(home[x][0], home[y][0]) for x, y in graph.pairs if home[x][0] != home[y][0]}
    gaps = {pair: gap for pair, gap in graph.gaps.items() if alone.issuperset(pair)}
    return ConflictGraph(sizes, frozenset(conflicting), gaps, graph.alignment), home


def _life(buffer: JointBuffer) -> tuple[str, int, int] | None:
    """The member that alone uses the buffer, and from which stage to which."""
    if len(buffer.uses) != 1 or buffer.is_always:
        return None
    return buffer.uses[0].member, buffer.uses[0].first, buffer.uses[0].last


def _around_the_largest(
    graph: ConflictGraph, buffers: Mapping[str, JointBuffer], plans: Mapping[str, Plan]
) -> Placement | None:
    """The largest plan as it was laid out alone, and the others around it: as blocks, or buffer by buffer.

    So everything that it shares by its calls stays shared. None where buffers belong to several members, or none.
    """
    own: dict[str, dict[str, int]] = {}
    for name in graph.sizes:
        if (at := buffers[name].planned) is None:
            return None
        own.setdefault(buffers[name].uses[0].member, {})[name] = at
    first, *others = sorted(own, key=lambda member: (-plans[member].peak_bytes, member))
    block = _stacked_blocks(graph, own[first], [own[member] for member in others])
    rest = sorted((name for member in others for name in own[member]), key=lambda name: (-graph.sizes[name], name))
    single = _stacked_blocks(graph, own[first], [{name: 0} for name in rest])
    found = min((single, block), key=lambda offsets: _peak(graph, offsets))
    return Placement(found, _peak(graph, found), 0, "around the largest plan")


def _is_conflict_free(graph: ConflictGraph, buffers: Mapping[str, JointBuffer], placement: Placement) -> bool:
    """Whether conflicting buffers do not overlap. Buffers that share bytes by calls inside a stage may, unless they are
    kept."""
    return all(
        _life(buffers[x]) is not None and _life(buffers[x]) == _life(buffers[y])
        for x, y in conflicts(graph.problem(), placement)
    )


def _stacked_blocks(
    graph: ConflictGraph, there: Mapping[str, int], blocks: Sequence[Mapping[str, int]]
) -> dict[str, int]:
    """Places the blocks one after the other, each as a whole at the lowest address where it overlaps no conflicting
    buffer."""
    placed = dict(there)
    for block in blocks:
        near = [(mine, other) for mine in block for other in placed if graph.meets(mine, other)]
        steps = {0, *(placed[other] + graph.gap(other, mine) - block[mine] for mine, other in near)}
        by = min(
            step
            for step in steps
            if step >= 0
            and not any(
                -graph.gap(mine, other) < block[mine] + step - placed[other] < graph.gap(other, mine)
                for mine, other in near
            )
        )
        placed |= {name: at + by for name, at in block.items()}
    return placed


def _peak(graph: ConflictGraph, offsets: Mapping[str, int]) -> int:
    return max(at + graph.sizes[name] for name, at in offsets.items())


def _standalone(application: Application, plans: Mapping[str, Plan]) -> list[Plan]:
    """The plans of networks that run as a whole: what one needs by itself, all need together."""
    return [plan for name, plan in plans.items() if not application.is_pipelined(application.by_name[name].owner)]


def _as_planned(part: ConflictGraph, buffers: Mapping[str, JointBuffer]) -> Placement | None:
    """The addresses that one plan has for these buffers; None where others use them, or some are kept from others."""
    offsets = {name: at for name in part.sizes if (at := buffers[name].planned) is not None}
    if len(offsets) < len(part.sizes) or len({buffers[name].uses[0].member for name in offsets}) > 1:
        return None
    peak = max(offsets[name] + size for name, size in part.sizes.items())
    found = Placement(offsets, peak, 0, "as planned")
    is_kept = any(buffers[name].is_always for name in part.sizes)
    return None if is_kept and conflicts(part.problem(), found) else found


def moved_plans(
    problem: JointProblem,
    buffers: tuple[JointBuffer, ...],
    placement: Placement,
    homes: Mapping[str, str] | None = None,
) -> Mapping[str, Plan]:
    """Every plan with its buffers at their common addresses; `homes` are their memories, where there are several."""
    return {name: _moved(problem, name, buffers, placement, homes or {}) for name in problem.plans}


def _moved(
    problem: JointProblem,
    member: str,
    buffers: tuple[JointBuffer, ...],
    placement: Placement,
    homes: Mapping[str, str],
) -> Plan:
    """The plan with its buffers at their common addresses; tensors that cross partitions in a memory of their own.

    One that crosses row by row lies in its ring.
    """
    plan, application = problem.plans[member], problem.application
    home = {
        use.buffer: (placement.offsets[buffer.name], homes.get(buffer.name, ARENA))
        for buffer in buffers
        for use in buffer.uses
        if use.member == member
    }
    slots: dict[str, str] = {}
    views, sizes = dict(plan.views), dict[str, int]()
    for buffer in buffers:
        fifo = buffer.fifo
        if fifo is None or member not in fifo.ends:
            continue
        tensor = application.by_name[member].own(fifo)
        if fifo.rows and fifo.source == member:
            view = plan.views[tensor]
            views[tensor] = replace(view, window=(ROWS, fifo.rows))
            sizes[view.buffer] = buffer.size
        if not buffer.uses:
            slots[plan.views[tensor].buffer] = tensor
    moved = tuple(
        replace(
            buffer,
            offset=home[buffer.name][0],
            memory=home[buffer.name][1],
            size=sizes.get(buffer.name, buffer.size),
        )
        if buffer.name in home
        else replace(buffer, offset=0, memory=slot_name(slots[buffer.name]))
        for buffer in plan.buffers
    )
    return with_buffers(replace(plan, views=views, outside=tuple(sorted(slots.values()))), moved)


def with_buffers(plan: Plan, buffers: tuple[Buffer, ...]) -> Plan:
    """The plan with other buffers, and the peak that these come to."""
    changed = replace(plan, buffers=tuple(sorted(buffers, key=lambda b: (b.first, b.offset, b.name))))
    peak = sum(changed.arenas.values())
    return replace(changed, peak_bytes=peak, bound_bytes=min(plan.bound_bytes, peak), savings=())
