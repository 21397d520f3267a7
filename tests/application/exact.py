"""The smallest arena for given plans of an application, by an exact model that shares no code with layouts.

**The question.** Fixed are the parts with their plans (stages, sizes and reservations of buffers, which buffers of one
plan may share bytes at all: those that do in the plan alone), the slots and rings of FIFOs, the relations with their
points of interruption, kept ends, and buffers of the firmware. Free is where each buffer begins.

**The answer.** For every two things with an address (a buffer, or several that are one where a frame is handed over in
place; a slot; a buffer of the firmware) the distances at which they would destroy each other are found cell by cell:
one holds a value (`application_trace`) in a cell that the other writes at a time that relations and FIFOs allow. All
other distances are allowed. CP-SAT minimises the peak over all these distances.

With `is_free`, buffers of one plan may share bytes wherever their calls allow it, also where the plan alone keeps them
apart: what a layout could gain that also chose how layers work in place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise, product
from math import gcd

import networkx as nx
import numpy as np
from ortools.sat.python import cp_model

from edgewright.memory.joint.layout import JointLayout
from edgewright.network import Array
from edgewright.program import Plan
from edgewright.program.deployment import (
    OUTSIDE,
    ArenaLayout,
    Deployment,
    Fifo,
    FirmwareBuffer,
    InterruptionPoints,
    Relation,
    RelationKind,
)
from edgewright.program.deployment_check import checked_deployment, deployment_faults
from tests.application.trace import PlanTrace, cell_bytes

Role = tuple[str, str]  # a part, and a buffer of its plan
Cells = tuple[Array, Array]  # of two things: pairs that must not be the same byte


@dataclass(frozen=True, eq=False)
class Thing:
    """What has one address in the arena."""

    name: str
    bytes: int
    roles: tuple[Role, ...] = ()
    frames: tuple[Fifo, ...] = ()  # that lie in it in place
    slot: Fifo | None = None  # that it is a slot of
    firmware: FirmwareBuffer | None = None

    @property
    def parts(self) -> frozenset[str]:
        return frozenset(part for part, _ in self.roles)

    @property
    def is_kept(self) -> bool:
        return any(fifo.is_kept for fifo in self.frames)


@dataclass(frozen=True)
class ExactLayout:
    """The best layout that was found."""

    peak: int
    bound: int  # no layout needs less: the peak itself where the search was completed
    offsets: Mapping[str, int]


class ExactProblem:
    """A deployment in one memory; `planned` are the plans of its parts as they were laid out alone."""

    def __init__(self, deployment: Deployment, planned: Mapping[str, Plan], is_free: bool = False) -> None:
        self.deployment, self.planned, self.is_free = deployment, planned, is_free
        ((self.home, self.arena),) = deployment.arenas.items()
        plans = [part.plan for part in deployment.parts if part.plan is not None]
        self.alignment = max(plan.alignment for plan in plans)
        self.cell = gcd(*map(cell_bytes, plans), *(buffer.bytes for buffer in deployment.buffers))
        self.traces = {part.name: self._trace(part.name, part.plan) for part in deployment.parts if part.plan}
        self.things = tuple(self._things())

    # Who holds what, when.

    def _trace(self, part: str, plan: Plan) -> PlanTrace:
        reads = self.deployment.reads[part]
        given = [own for own, fifo in reads.items() if fifo.source != OUTSIDE or fifo.readers[0].part != part]
        held = [own for own, fifo in reads.items() if fifo.keeps_latest and not self._is_last(fifo, part)]
        return PlanTrace(plan, self.cell, given, held, self.is_free)

    def _is_last(self, fifo: Fifo, reader: str) -> bool:
        """Whether all others have read a frame by the time that this reader begins."""
        others = set(fifo.reading) - {reader}
        orders = [one.parts for one in self.deployment.relations if one.kind is RelationKind.SAME_INPUT]
        before, new = set[str](), {reader}
        while new:
            new = {x for order in orders for n, y in enumerate(order) if y in new for x in order[:n]} - before
            before |= new
        return others <= before and not any(self._may_meet(reader, x) for x in others)

    @cached_property
    def _relations(self) -> Mapping[frozenset[str], Relation]:
        beside = (RelationKind.PARALLEL, RelationKind.PIPELINED, RelationKind.PREEMPTS)
        return {frozenset(one.parts): one for one in self.deployment.relations if one.kind in beside}

    def _may_meet(self, a: str, b: str) -> bool:
        return frozenset((a, b)) in self._relations

    def _pipeline(self, fifo: Fifo) -> frozenset[str]:
        """The parts of the network whose frames a FIFO carries."""
        parts = self.deployment.parts
        return frozenset(x.name for x in parts if any(e.network == fifo.what.network for e in x.outputs.values()))

    def _is_beside(self, part: str, fifo: Fifo) -> bool:
        """Whether a part may run while frames of the FIFO's pipeline are under way."""
        own = self._pipeline(fifo)
        return part in own or any(self._may_meet(part, other) for other in own)

    def _things(self) -> Iterator[Thing]:
        graph = nx.Graph()
        frames: dict[Role, list[Fifo]] = {}
        slotted = set(self.arena.slots)
        for part, trace in self.traces.items():
            own = {trace.plan.views[name].buffer for name in trace.plan.outside}
            graph.add_nodes_from((part, b.name) for b in trace.plan.buffers if b.name not in own)
        for fifo in self.deployment.fifos:
            if fifo.what in slotted:
                for n in range(fifo.slots):
                    yield Thing(f"{fifo.what.tensor} [{n}]", self.deployment.slot_size(fifo), slot=fifo)
                continue
            ends = [name for name in fifo.ends if name != OUTSIDE][: 1 if fifo.rows else None]
            roles = [(name, self.traces[name].plan.views[self._own(fifo, name)].buffer) for name in ends]
            graph.add_edges_from(pairwise(roles))
            frames.setdefault(roles[0], []).append(fifo)
        for group in nx.connected_components(graph):
            roles = sorted(group)
            inside = tuple(fifo for role in roles for fifo in frames.get(role, ()))
            size = max(self.traces[part].plan.buffer_named[name].size for part, name in roles)
            yield Thing(" = ".join(map(":".join, roles)), size, tuple(roles), inside)
        for buffer in self.deployment.buffers:
            yield Thing(buffer.name, buffer.bytes, firmware=buffer)

    def _own(self, fifo: Fifo, part: str) -> str:
        own = self.deployment.part_named[part]
        ends = own.outputs if part == fifo.source else own.inputs
        return next(own for own, what in ends.items() if what == fifo.what)

    # Which cells of two things must be different bytes.

    def clashes(self, x: Thing, y: Thing) -> Iterator[Array]:
        """The distances in cells from `x` to `y` that one cause forbids."""
        for one, other, sign in ((x, y, 1), (y, x, -1)):
            for mine, theirs in self._one_way(one, other):
                yield sign * np.subtract.outer(np.flatnonzero(mine), np.flatnonzero(theirs)).ravel()
            for (a, mine), (b, theirs) in product(one.roles, other.roles):
                if a == b:
                    yield sign * self._of_one_run(a, mine, theirs)

    def _one_way(self, x: Thing, y: Thing) -> Iterator[Cells]:
        """Cells of `x` that hold something while the cells of `y` are written, or the same things twice."""
        everything = self._cells(x)
        if x.is_kept or (x.firmware is not None and x.firmware.parts is None):
            yield everything, self._cells(y)
        elif x.firmware is not None:
            yield from self._of_firmware(x, x.firmware, y)
        elif x.slot is not None:
            yield from self._of_slot(x, x.slot, y)
        for fifo in x.frames:
            yield from self._of_frame(x, fifo, y)
        for one, other in product(x.roles, y.roles):
            if one[0] != other[0]:
                yield from self._of_runs(one, other)

    def _cells(self, thing: Thing) -> Array:
        """All cells that a thing ever uses."""
        if not thing.roles:
            return np.ones(-(-thing.bytes // self.cell), bool)
        found = np.zeros(-(-thing.bytes // self.cell), bool)
        for part, buffer in thing.roles:
            used = self.traces[part].used(buffer)
            found[: len(used)] |= used
        return found

    def _of_firmware(self, x: Thing, own: FirmwareBuffer, y: Thing) -> Iterator[Cells]:
        parts, whole = own.parts or (), self._cells(x)
        if y.firmware is not None and y.firmware.parts is not None:
            if any(a == b or self._may_meet(a, b) for a in parts for b in y.firmware.parts):
                yield whole, self._cells(y)
        elif y.slot is not None and any(self._is_beside(part, y.slot) for part in parts):
            yield whole, self._cells(y)
        for part, buffer in y.roles:
            for other in parts:
                relation = self._relations.get(frozenset((part, other)))
                if part == other or (relation is not None and relation.kind is not RelationKind.PREEMPTS):
                    yield whole, self.traces[part].used(buffer)
                elif relation is not None and relation.parts[1] == part and relation.points is not None:
                    yield whole, self._live_at(part, buffer, relation.points)
                elif relation is not None:
                    yield whole, self.traces[part].used(buffer)

    def _of_slot(self, x: Thing, fifo: Fifo, y: Thing) -> Iterator[Cells]:
        """Frames of a pipeline are under way: they lie in slots, while its parts run and others beside it."""
        whole = self._cells(x)
        if y.slot is not None and any(self._is_beside(part, fifo) for part in self._pipeline(y.slot)):
            yield whole, self._cells(y)
        for part, buffer in y.roles:
            if self._is_beside(part, fifo):
                yield whole, self.traces[part].used(buffer)

    def _of_frame(self, x: Thing, fifo: Fifo, y: Thing) -> Iterator[Cells]:
        """A frame that waits for its readers where its writer left it."""
        frame = np.zeros(-(-x.bytes // self.cell), bool)
        frame[: self.deployment.slot_size(fifo) // self.cell] = True
        if fifo.keeps_latest:
            yield from ((frame, self.traces[p].used(b)) for p, b in y.roles if p not in fifo.ends)
            others = [other for other in y.frames if other.keeps_latest]
            if others or y.slot is not None or y.firmware is not None:
                yield frame, self._cells(y)
            return
        if OUTSIDE in fifo.ends:
            return
        if y.firmware is not None and any(self._is_beside(part, fifo) for part in y.firmware.parts or ()):
            yield frame, self._cells(y)
        if y.slot is not None and any(self._is_beside(part, fifo) for part in self._pipeline(y.slot)):
            yield frame, self._cells(y)
        for part, buffer in y.roles:
            trace = self.traces[part]
            if part in fifo.reading:
                released = self._released(fifo, part)
                yield frame, trace.used(buffer, range(released + 1, len(trace.plan.program.stages)))
                if fifo.rows:
                    yield frame, trace.used(buffer, range(self._pulling(fifo, part) + 1))
            elif part == fifo.source:
                if fifo.rows:
                    touched = self._touched(part, x)
                    early = self._released(fifo, fifo.readers[0].part) < self._pulling(fifo, fifo.readers[0].part)
                    yield frame, trace.used(buffer, range(0 if early else touched, len(trace.plan.program.stages)))
            elif self._is_beside(part, fifo):
                yield frame, trace.used(buffer)

    def _touched(self, part: str, thing: Thing) -> int:
        """The first stage that writes the thing."""
        trace, own = self.traces[part], dict(thing.roles)[part]
        return next(n for n in range(len(trace.plan.program.stages)) if trace.used(own, (n,)).any())

    def _released(self, fifo: Fifo, reader: str) -> int:
        stage = next(one.stage for one in fifo.readers if one.part == reader)
        return len(self.traces[reader].plan.program.stages) - 1 if stage is None else stage

    def _pulling(self, fifo: Fifo, reader: str) -> int:
        """The last stage that takes rows out of a ring."""
        plan, own = self.traces[reader].plan, self._own(fifo, reader)
        return max(
            n
            for n, stage in enumerate(plan.program.stages)
            if any(own in plan.network.by_name[layer].inputs for layer in stage.layers)
        )

    def _of_runs(self, one: Role, other: Role) -> Iterator[Cells]:
        """What one part holds while the other writes, both being in progress."""
        (a, x), (b, y) = one, other
        mine, theirs = self.traces[a], self.traces[b]
        relation = self._relations.get(frozenset((a, b)))
        if relation is None:
            return
        if relation.kind is RelationKind.PREEMPTS and relation.points is not None:
            if relation.parts[1] == a:
                yield self._live_at(a, x, relation.points), theirs.wrote(y)
            return
        for stages, others in self._together(a, b):
            yield mine.used(x, stages), theirs.wrote(y, others)

    def _live_at(self, part: str, buffer: str, points: InterruptionPoints) -> Array:
        return self.traces[part].live_after(buffer, points.after, points.rows)

    def _together(self, a: str, b: str) -> Iterator[tuple[Collection[int] | None, Collection[int] | None]]:
        """The stages of two parts that run at the same time: a source waits until its only slot is released."""
        for source, reader in ((a, b), (b, a)):
            only = [
                fifo
                for fifo in self.deployment.fifos
                if fifo.source == source and reader in fifo.reading and fifo.slots == 1 and not fifo.keeps_latest
            ]
            if not only:
                continue
            last = len(self.traces[source].plan.program.stages) - 1
            released = max(self._released(fifo, reader) for fifo in only)
            late = range(released + 1, len(self.traces[reader].plan.program.stages))
            pairs = [(None, late)] + [
                (range(last, last + 1), range(self._pulling(fifo, reader) + 1)) for fifo in only if fifo.rows
            ]
            yield from pairs if source == a else (pair[::-1] for pair in pairs)
            return
        yield None, None

    def _of_one_run(self, part: str, x: str, y: str) -> Array:
        """Two buffers of one plan: cell by cell where the plan lets them share bytes, else by their reservations."""
        plan, trace = self.planned[part], self.traces[part]
        one, two = plan.buffer_named[x], plan.buffer_named[y]
        is_shared = one.memory == two.memory and one.offset < two.end and two.offset < one.end
        if not self.is_free and not is_shared and one.first <= two.last and two.first <= one.last:
            return np.arange(1 - len(trace.live[y]), len(trace.live[x]))
        both = trace.live[x].astype(np.float32) @ trace.written[y].T.astype(np.float32) > 0
        mine, theirs = np.nonzero(both)
        return mine - theirs

    def forbidden(self, x: Thing, y: Thing) -> Array:
        """The distances in cells from `x` to `y` that are not allowed; the first entry stands for -(cells of y)."""
        cells = [-(-thing.bytes // self.cell) for thing in (x, y)]
        found = np.zeros(sum(cells) + 1, bool)
        for distances in self.clashes(x, y):
            found[distances + cells[1]] = True
        return found

    def wrong(self) -> Iterator[str]:
        """What is wrong with the addresses that the deployment has."""
        at: dict[str, int] = {}
        for thing in self.things:
            if thing.roles:
                found = {self.traces[part].plan.buffer_named[name].offset for part, name in thing.roles}
            elif thing.slot is not None:
                found = {self.arena.slots[thing.slot.what][self._slots_of(thing.slot).index(thing)]}
            else:
                found = {self.arena.buffers[thing.name]}
            if len(found) > 1 or min(found) < 0 or max(found) + thing.bytes > self.arena.bytes:
                yield f"'{thing.name}' has no address of its own in the arena"
            at[thing.name] = min(found)
        for x, y in combinations(self.things, 2):
            apart = at[y.name] - at[x.name]
            if not -y.bytes < apart < x.bytes:
                continue
            if self.forbidden(x, y)[apart // self.cell - (-y.bytes // self.cell)]:
                yield f"'{x.name}' and '{y.name}' destroy each other"

    def _slots_of(self, fifo: Fifo) -> list[Thing]:
        return [thing for thing in self.things if thing.slot == fifo]

    # The least peak.

    def solve(self, limit: int, seconds: float = 60.0) -> ExactLayout | None:
        """The least peak of at most `limit` bytes, in which a layout is known; None where none was found in time."""
        unit, a = self.alignment, self.alignment // self.cell
        sizes = {thing.name: -(-thing.bytes // unit) for thing in self.things}
        model = cp_model.CpModel()
        top = limit // unit
        offset = {name: model.new_int_var(0, top - size, name) for name, size in sizes.items()}
        peak = model.new_int_var(0, top, "peak")
        for name, size in sizes.items():
            model.add(offset[name] + size <= peak)
        apart = nx.Graph()
        apart.add_nodes_from((name, {"weight": size}) for name, size in sizes.items())
        for x, y in combinations(self.things, 2):
            forbidden, below = self.forbidden(x, y), -(-y.bytes // self.cell)
            high = len(forbidden) // a + 1
            allowed = [
                d
                for d in range(-high, high + 1)
                if not 0 <= d * a + below < len(forbidden) or not forbidden[d * a + below]
            ]
            if len(allowed) == 2 * high + 1:
                continue
            gap = [d for d in range(-high, high + 1) if d not in set(allowed)]
            if gap == list(range(1 - sizes[y.name], sizes[x.name])):
                apart.add_edge(x.name, y.name)
            far = 2 * top + 2
            intervals = [[-far, -high]] + [[d, d] for d in allowed] + [[high, far]]
            domain = cp_model.Domain.from_intervals(intervals)
            model.add_linear_expression_in_domain(offset[y.name] - offset[x.name], domain)
        _, weight = nx.max_weight_clique(apart)
        model.add(peak >= weight)
        rooms = {n: model.new_fixed_size_interval_var(offset[n], size, n) for n, size in sizes.items()}
        for group in {self._clique_around(apart, name) for name in sizes}:
            if len(group) > 2:
                model.add_no_overlap([rooms[name] for name in sorted(group)])
        model.minimize(peak)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_time_in_seconds = seconds
        status = solver.solve(model)
        assert status != cp_model.INFEASIBLE, "the model forbids the layout that is there"
        if status == cp_model.UNKNOWN:
            return None
        offsets = {name: solver.value(var) * unit for name, var in offset.items()}
        return ExactLayout(solver.value(peak) * unit, round(solver.best_objective_bound) * unit, offsets)

    @staticmethod
    def _clique_around(graph: nx.Graph, start: str) -> frozenset[str]:
        found = {start}
        for name in sorted(graph[start], key=lambda n: -graph.nodes[n]["weight"]):
            if found <= set(graph[name]):
                found.add(name)
        return frozenset(found)

    def placed(self, layout: ExactLayout) -> Deployment:
        """The deployment with everything at these addresses."""
        at = {role: layout.offsets[thing.name] for thing in self.things for role in thing.roles}
        parts = []
        for part in self.deployment.parts:
            assert part.plan is not None
            buffers = [
                replace(b, offset=at[part.name, b.name]) if (part.name, b.name) in at else b for b in part.plan.buffers
            ]
            plan = replace(part.plan, buffers=tuple(sorted(buffers, key=lambda b: (b.first, b.offset, b.name))))
            peak = sum(plan.arenas.values())
            parts.append(replace(part, plan=replace(plan, peak_bytes=peak, bound_bytes=min(plan.bound_bytes, peak))))
        slots = {
            fifo.what: tuple(layout.offsets[f"{fifo.what.tensor} [{n}]"] for n in range(fifo.slots))
            for fifo in self.deployment.fifos
            if fifo.what in self.arena.slots
        }
        own = {buffer.name: layout.offsets[buffer.name] for buffer in self.deployment.buffers}
        arena = ArenaLayout(layout.peak, self.arena.workers, slots, own)
        return replace(self.deployment, parts=tuple(parts), arenas={self.home: arena})


def compared(layout: JointLayout, seconds: float = 60.0, is_free: bool = False) -> dict[str, object]:
    """What a layout says of its size, and what is true of it: `verdict` is true, false (less than its bound is enough),
    loose (more is needed than its bound), undecided, or refused (the product's judge refuses the exact layout)."""
    problem = ExactProblem(checked_deployment(layout.deployment), layout.problem.plans, is_free)
    exact = problem.solve(layout.peak_bytes, seconds)
    row = {
        "things": len(problem.things),
        "peak": layout.peak_bytes,
        "bound": layout.bound_bytes,
        "is_proven": layout.is_optimal,
        "exact": exact and exact.peak,
    }
    if exact is None or (exact.peak > layout.bound_bytes >= exact.bound):
        return row | {"verdict": "undecided"}
    if (fault := next(deployment_faults(problem.placed(exact)), None)) is not None:
        return row | {"verdict": "refused", "why": fault.message}
    verdict = "false" if exact.peak < layout.bound_bytes else "loose" if layout.bound_bytes < exact.bound else "true"
    return row | {"verdict": verdict}
