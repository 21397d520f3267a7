"""One layout for the buffers of all plans of a deployment, and the deployment with these addresses."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from ...errors import InputError
from ...program import ROWS, Buffer, Plan
from ...program.deployment import ArenaLayout, Deployment, Fifo
from ...program.plan import slot_name
from ..layout import ConflictGraph, LayoutEffort, Placement
from ..layout.graph import components
from ..layout.problem import align_up
from .conflicts import JointBuffer, JointProblem, slot_buffer
from .placing import place

ARENA = "ram"  # the common memory


@dataclass(frozen=True)
class JointLayout:
    """The addresses of all buffers. The plans of `problem` keep the addresses that they were planned with."""

    problem: JointProblem
    buffers: tuple[JointBuffer, ...]
    graph: ConflictGraph
    placement: Placement
    homes: Mapping[str, str] = field(default_factory=dict)  # the memory of each buffer, if memories are named
    memories: tuple[str, ...] = (ARENA,)  # the fastest first

    @cached_property
    def deployment(self) -> Deployment:
        """The deployment with its arenas, and every plan at the common addresses."""
        deployment = self.problem.deployment
        plans = {name: self._moved(name, plan) for name, plan in deployment.plans.items()}
        device = deployment.workers[0].device
        arenas = {(device, memory): self._arena(memory, size) for memory, size in self.arenas.items()}
        return replace(deployment.with_plans(plans), arenas=arenas)

    @property
    def plans(self) -> Mapping[str, Plan]:
        return self.deployment.plans

    @property
    def rings(self) -> tuple[Fifo, ...]:
        return self.problem.deployment.rings

    @property
    def peak_bytes(self) -> int:
        """Bytes of the arena, or of the arenas of all memories, in whole words."""
        return sum(self.arenas.values())

    @cached_property
    def arenas(self) -> Mapping[str, int]:
        """Bytes of each memory, the fastest first."""
        ends = dict.fromkeys(self.memories, 0)
        for name, end in self._ends.items():
            ends[self.home(name)] = max(ends[self.home(name)], align_up(end, self.graph.alignment))
        return {memory: size for memory, size in ends.items() if size} or {ARENA: 0}

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
        """The networks, and firmware buffers, that determine the arena's size: one of them must shrink before it
        can."""
        parts = self.problem.deployment.part_named
        return tuple(sorted({parts[name].owner if name in parts else name for name in self.exceeding()}))

    def exceeding(self, limit: int | None = None, among: Collection[str] | None = None) -> tuple[str, ...]:
        """The parts, and firmware buffers, that need more than the limit, or fill an arena together with those outside
        `among`."""
        names: list[str] = []
        for memory, size in self.arenas.items():
            here = self.graph.part(frozenset(name for name in self.graph.sizes if self.home(name) == memory))
            highest = max(components(here), key=lambda piece: max(self._ends[name] for name in piece.sizes))
            names += self._exceeding(highest, size - 1 if limit is None else limit, among)
        return tuple(dict.fromkeys(names))

    def _exceeding(self, piece: ConflictGraph, limit: int, among: Collection[str] | None) -> list[str]:
        buffers = {buffer.name: buffer for buffer in self.buffers}
        users = {name: self._users(buffers[name]) for name in piece.sizes}

        def exceeds(those: frozenset[str]) -> bool:
            """Slots depend on all partitions; a tensor that is passed on is in memory with each of its networks."""
            own = (n for n in users if (users[n] <= those if buffers[n].fifo is not None else users[n] & those))
            graph = piece.part(frozenset(own))
            if max((self._ends[name] for name in graph.sizes), default=0) <= limit:
                return False  # the current layout
            for effort in (LayoutEffort.QUICK, LayoutEffort.NORMAL):
                placement = place(graph, buffers, self.problem.plans, 0, effort)
                if placement.peak <= limit or placement.bound > limit:
                    break
            return placement.peak > limit

        everyone = frozenset[str]().union(*users.values())
        needed = everyone if among is None else everyone & frozenset(among)
        others = everyone - needed
        sizes = {user: sum(piece.sizes[name] for name in users if user in users[name]) for user in needed}
        for user in sorted(needed, key=lambda user: (-sizes[user], user)) if len(needed) > 1 else ():
            if exceeds(frozenset({user})):
                return [user]
        for user in sorted(needed, key=lambda user: (sizes[user], user)):
            if exceeds(others | needed - {user}):
                needed -= {user}
        return sorted(needed)

    @staticmethod
    def _users(buffer: JointBuffer) -> frozenset[str]:
        """The parts that use a buffer, or the buffer itself if it belongs to the firmware."""
        parts = frozenset(use.part for use in buffer.uses)
        return parts or (buffer.during if buffer.fifo is not None else frozenset({buffer.name}))

    def at(self, name: str) -> int:
        """The address of a buffer in its arena."""
        return self.placement.offsets[name]

    def home(self, name: str) -> str:
        """The memory of a buffer."""
        return self.homes.get(name, ARENA)

    def _arena(self, memory: str, size: int) -> ArenaLayout:
        deployment = self.problem.deployment
        in_slots = {buffer.fifo for buffer in self.buffers if buffer.fifo is not None and not buffer.uses}
        return ArenaLayout(
            size,
            {worker.name: 0 for worker in deployment.workers},
            {
                fifo.what: tuple(self.at(slot_buffer(fifo, n)) for n in range(fifo.slots))
                for fifo in deployment.queues
                if fifo in in_slots and self.home(slot_buffer(fifo)) == memory
            },
            {b.name: self.at(b.name) for b in deployment.buffers if self.home(b.name) == memory},
        )

    def _moved(self, part: str, plan: Plan) -> Plan:
        """The plan with its buffers at their common addresses; each tensor in slots has its own memory.

        A tensor that crosses row by row lies in its ring.
        """
        joint_names = {use.buffer: buffer.name for buffer in self.buffers for use in buffer.uses if use.part == part}
        slots: dict[str, str] = {}
        views, sizes = dict(plan.views), dict[str, int]()
        for buffer in self.buffers:
            fifo = buffer.fifo
            if fifo is None or part not in fifo.ends:
                continue
            tensor = self.problem.deployment.part_named[part].own(fifo)
            if fifo.rows and fifo.source == part:
                view = plan.views[tensor]
                views[tensor] = replace(view, window=(ROWS, fifo.rows))
                sizes[view.buffer] = buffer.size
            if not buffer.uses:
                slots[plan.views[tensor].buffer] = tensor

        def moved(own: Buffer) -> Buffer:
            if own.name not in joint_names:
                return replace(own, offset=0, memory=slot_name(slots[own.name]))
            name = joint_names[own.name]
            return replace(own, offset=self.at(name), memory=self.home(name), size=sizes.get(own.name, own.size))

        changed = replace(plan, views=views, outside=tuple(sorted(slots.values())))
        return with_buffers(changed, tuple(map(moved, plan.buffers)))


def lay_out_jointly(deployment: Deployment, effort: LayoutEffort = LayoutEffort.NORMAL) -> JointLayout:
    """The smallest arena for the plans of a deployment. Networks without conflicts keep their plans' addresses."""
    problem = JointProblem(deployment)
    buffers = problem.buffers()
    graph = problem.graph(buffers)
    # A network that runs alone needs its whole plan, and so do all together.
    whole = [name for name in problem.plans if len(deployment.parts_of(deployment.part_named[name].owner)) == 1]
    bound = max((problem.plans[name].bound_bytes for name in whole), default=0)
    placement = place(graph, {b.name: b for b in buffers}, problem.plans, bound, effort)
    return JointLayout(problem, buffers, graph, placement)


def proven(layout: JointLayout) -> JointLayout:
    """The layout, proven optimal or improved by a longer search if possible."""
    if layout.is_optimal or layout.homes:
        return layout
    longer = lay_out_jointly(layout.problem.deployment, LayoutEffort.THOROUGH)
    return min(layout, longer, key=lambda one: (one.peak_bytes, -one.bound_bytes))


def layout_of(deployment: Deployment, memories: Collection[str]) -> JointLayout:
    """The layout stored in a deployment's plans and arenas, in these memories or in one common arena."""
    problem = JointProblem(deployment)
    buffers = problem.buffers()
    places = {
        buffer.name: (own.offset, own.memory)
        for buffer in buffers
        for use in buffer.uses
        if use.buffer
        for own in (problem.plans[use.part].buffer_named[use.buffer],)
    }
    for (_, memory), arena in deployment.arenas.items():
        for fifo in deployment.queues:
            starts = enumerate(arena.slots.get(fifo.what, ()))
            places |= {slot_buffer(fifo, number): (at, memory) for number, at in starts}
        places |= {name: (at, memory) for name, at in arena.buffers.items()}
    if missing := [buffer.name for buffer in buffers if buffer.name not in places]:
        raise InputError(f"'{missing[0]}' has no address; plan it again")
    homes = {name: memory for name, (_, memory) in places.items()}
    if not set(homes.values()) <= {ARENA, *memories}:
        raise InputError("its memories are not those of the application; plan it again")
    graph = problem.graph(buffers)
    peak = max(places[buffer.name][0] + graph.sizes[buffer.name] for buffer in buffers)
    placement = Placement({name: at for name, (at, _) in places.items()}, peak, 0, "from a file")
    if set(homes.values()) <= set(memories):
        return JointLayout(problem, buffers, graph, placement, homes, tuple(memories))
    return JointLayout(problem, buffers, graph, placement)


def with_buffers(plan: Plan, buffers: tuple[Buffer, ...]) -> Plan:
    """The plan with other buffers, and the resulting peak."""
    changed = replace(plan, buffers=tuple(sorted(buffers, key=lambda b: (b.first, b.offset, b.name))))
    peak = sum(changed.arenas.values())
    return replace(changed, peak_bytes=peak, bound_bytes=min(plan.bound_bytes, peak), savings=())
