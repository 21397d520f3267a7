"""Which buffers of an application conflict, that is may be in use together, derived from the relations of its networks.

A buffer of a plan is in use from its first stage to its last. A tensor that one network hands to another is a single
buffer, which stays in use in between. A buffer that is kept, or belongs to the firmware, is always in use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from ..errors import Infeasible, InputError
from ..memory.layout import ConflictGraph
from ..memory.layout.problem import align_up
from ..program import Plan, Sweep
from ..program.deployment import Fifo, InterruptionPoints
from .description import ALWAYS, PreemptionPoints
from .members import Application, slot_name
from .preemption_points import Liveness, Span
from .relations import Relations
from .slots import given_back, last_use


@dataclass(frozen=True, slots=True)
class BufferUse:
    """A buffer of a member's plan, and the stages during which it is in use."""

    member: str
    buffer: str
    first: int
    last: int


@dataclass(frozen=True)
class JointBuffer:
    """A buffer of the common arena, with all its uses."""

    name: str
    size: int
    uses: tuple[BufferUse, ...] = ()
    during: frozenset[str] = frozenset()  # members during whose whole runs it is in use
    is_waiting: bool = False  # between the runs of the members that use it
    is_always: bool = False
    fifo: Fifo | None = None  # of a slot; with uses, the only one, which is a buffer of both partitions
    planned: int | None = None  # its address in the plan of the one member that uses it


@dataclass(frozen=True)
class JointProblem:
    """The plans of all networks with their preemption points, and the conflicts between their buffers.

    `points` holds the preemption points of members that may not be interrupted everywhere their relations allow.
    """

    application: Application
    plans: Mapping[str, Plan]
    points: Mapping[str, InterruptionPoints] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "relations", Relations(self.application))
        object.__setattr__(self, "freed", given_back(self.application, self.plans))

    relations: Relations = field(init=False)
    freed: Mapping[str, int] = field(init=False)  # the stage at whose end each partition gives its slots back
    _liveness: dict[str, Liveness] = field(init=False, default_factory=dict)
    _spans: dict[tuple[str, PreemptionPoints], Mapping[str, Span]] = field(init=False, default_factory=dict)

    def buffers(self) -> tuple[JointBuffer, ...]:
        ends = [
            end for fifo in self.application.fifos for end in self.application.ends(fifo)[: 1 if fifo.rows else None]
        ]
        in_slots = {(member, self._buffer(member, tensor)) for member, tensor in ends}
        shared = self._handed_over()
        kept = {(name, self._buffer(name, tensor)) for name, tensor in self._kept_ends()}
        groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for member, plan in self.plans.items():
            for buffer in plan.buffers:
                key = (member, buffer.name)
                if key not in in_slots:
                    groups.setdefault(shared.get(key, key), []).append(key)
        found = [self._joint(keys, is_kept=bool(kept & set(keys))) for keys in groups.values()]
        for fifo in self.application.fifos:
            members = frozenset(member.name for member in self.application.members_of(fifo.what.network))
            uses = tuple(self._slot_uses(fifo)) if fifo.rows or self._is_fixed(fifo) else ()
            size = fifo.rows * self.application.row_bytes(fifo) or self.application.tensor(fifo).bytes
            found += [JointBuffer(slot_name(fifo, n), size, uses, during=members, fifo=fifo) for n in range(fifo.slots)]
        for own in self.application.file.buffers:
            if own.alive == ALWAYS:
                found.append(JointBuffer(own.name, own.size, is_always=True))
            else:
                members = frozenset(m.name for name in own.alive for m in self.application.members_of(name))
                found.append(JointBuffer(own.name, own.size, during=members))
        return tuple(found)

    def _is_fixed(self, fifo: Fifo) -> bool:
        """Whether what crosses lies at one address, in a buffer of each side that holds no other end."""
        ends = self.application.ends(fifo)
        return fifo.slots == 1 and len(fifo.readers) == 1 and all(self._has_own(*end) for end in ends)

    def _has_own(self, member: str, tensor: str) -> bool:
        plan, network = self.plans[member], self.application.by_name[member].network
        view = plan.views[tensor]
        others = {plan.views[x].buffer for x in (*network.inputs, *network.outputs) if x in plan.views and x != tensor}
        is_dense = view.offset == 0 and network.tensors[tensor].is_dense(view.strides) and view.window is None
        size = plan.buffer_named[view.buffer].size
        return is_dense and size == network.tensors[tensor].bytes and view.buffer not in others

    def _slot_uses(self, fifo: Fifo) -> Iterator[BufferUse]:
        """The stages of each side; a reader that pulls rows out of a ring knows it by no name."""
        for member, tensor in self.application.ends(fifo):
            buffer = self.plans[member].buffer_named[self._buffer(member, tensor)]
            is_pulled = fifo.rows and member != fifo.source
            yield BufferUse(member, "" if is_pulled else buffer.name, buffer.first, buffer.last)

    def _joint(self, keys: list[tuple[str, str]], is_kept: bool) -> JointBuffer:
        own = {(member, name): self.plans[member].buffer_named[name] for member, name in keys}
        uses = tuple(BufferUse(member, name, b.first, b.last) for (member, name), b in own.items())
        joined = " = ".join(f"{member}:{name}" for member, name in keys)
        planned = own[keys[0]].offset if len(keys) == 1 else None
        size = max(buffer.size for buffer in own.values())
        return JointBuffer(joined, size, uses, is_waiting=len(keys) > 1, is_always=is_kept, planned=planned)

    def graph(self, buffers: tuple[JointBuffer, ...]) -> ConflictGraph:
        """The conflict graph over all buffers: the layout problem."""
        alignment = max(plan.alignment for plan in self.plans.values())
        sizes = {buffer.name: align_up(buffer.size, alignment) for buffer in buffers}
        conflicting, gaps = set(), {}
        for x, y in combinations(buffers, 2):
            causes = list(self.causes(x, y))
            if causes:
                conflicting.add((x.name, y.name))
            if len(causes) == 1 and (part := self._partly(x, y, sizes, alignment)) is not None:
                gaps[x.name, y.name] = part
            if len(causes) == 1 and causes[0] is not None:
                a, b = causes[0]
                gap = trailing(self.plans[a.member], a.buffer, b.buffer, alignment)
                if gap is not None:
                    gaps[x.name, y.name] = gap
        return ConflictGraph(sizes, frozenset(conflicting), gaps, alignment)

    def causes(self, x: JointBuffer, y: JointBuffer) -> Iterator[tuple[BufferUse, BufferUse] | None]:
        """Why the two buffers conflict: pairs of uses. Two uses by one member are left to its plan, which knows how
        they may share."""
        if x.is_always or y.is_always or (x.is_waiting and y.is_waiting):
            yield None
            return
        for slot, own in ((x, y), (y, x)):
            if slot.fifo is not None and slot.uses and own.uses and own.fifo is None:
                inside = {use.member for use in own.uses} <= {use.member for use in slot.uses}
                if inside:
                    yield from (pair if slot is x else pair and pair[::-1] for pair in self._slot_causes(slot, own))
                    return
        if x.during & y.during:
            yield None
        for one, other in ((x, y), (y, x)):
            members = {use.member for use in other.uses}
            if one.during & members or any(self.relations.may_run_together(a, b) for a in one.during for b in members):
                yield None
            if one.is_waiting and not members <= {use.member for use in one.uses}:
                yield None
            if one.is_waiting and other.during:
                yield None
        if any(self.relations.may_run_together(a, b) for a in x.during for b in y.during):
            yield None
        for a in x.uses:
            for b in y.uses:
                if a.member == b.member:
                    if a.first <= b.last and b.first <= a.last:
                        yield a, b
                elif self._meet(a, b) or self._meet(b, a):
                    yield None

    def _slot_causes(self, slot: JointBuffer, own: JointBuffer) -> Iterator[tuple[BufferUse, BufferUse] | None]:
        """Why a partition's buffer meets the only slot: while it is in use, and when the producer may fill it again."""
        assert slot.fifo is not None
        for ours in own.uses:
            for use in slot.uses:
                if use.member == ours.member and use.first <= ours.last and ours.first <= use.last:
                    yield (use, ours) if use.buffer else None
            freed = self.freed[slot.fifo.readers[0].part]
            is_early = slot.fifo.rows > 0 and freed < 0  # the next frame begins before all rows have been read
            if is_early if ours.member == slot.fifo.source else ours.last > freed:
                yield None

    def _take_turns(self, a: BufferUse, b: BufferUse) -> bool:
        """Whether the use of `b` ends before its member gives back the only slot that the member of `a` fills.

        The two buffers are never in use together then, except while rows cross in a ring: the last stage of the
        producer runs beside the first of the reader.
        """
        return any(
            fifo.slots == 1
            and fifo.source == a.member
            and b.member in fifo.reading
            and b.last <= self.freed[b.member]
            and not (fifo.rows and self._is_pushing(a) and self._is_pulling(b, fifo))
            for fifo in self.application.fifos
        )

    def _is_pushing(self, use: BufferUse) -> bool:
        return use.last == len(self.plans[use.member].program.stages) - 1

    def _is_pulling(self, use: BufferUse, ring: Fifo) -> bool:
        return use.first <= last_use(self.plans[use.member], [self.application.by_name[use.member].own(ring)])

    def _meet(self, high: BufferUse, low: BufferUse) -> bool:
        if self.relations.are_parallel(high.member, low.member):
            return not (self._take_turns(high, low) or self._take_turns(low, high))
        preemption = self.relations.preemptions.get((high.member, low.member))
        if preemption is None:
            return False
        if preemption.points is PreemptionPoints.ANYWHERE:
            return True
        return low.buffer in self.spans(low.member, preemption.points)

    def _partly(
        self, x: JointBuffer, y: JointBuffer, sizes: Mapping[str, int], alignment: int
    ) -> tuple[int, int] | None:
        """The gaps at which the two buffers may overlap because the shared bytes of one are dead whenever it is
        interrupted."""
        if len(x.uses) != 1 or len(y.uses) != 1 or x.is_always or y.is_always:
            return None
        for low, high in ((x, y), (y, x)):
            own, other = low.uses[0], high.uses[0]
            preemption = self.relations.preemptions.get((other.member, own.member))
            if preemption is None or preemption.points is PreemptionPoints.ANYWHERE:
                continue
            first, end = self.spans(own.member, preemption.points)[own.buffer]
            above, below = align_up(end, alignment), sizes[high.name] - first // alignment * alignment
            return (above, below) if low is x else (below, above)
        return None

    def allowed(self, member: str, kind: PreemptionPoints) -> InterruptionPoints:
        """The points at which the member may be interrupted, for preemption at points of this kind."""
        every, chosen = self.live(member).points(kind), self.points.get(member)
        if chosen is None:
            return every
        return InterruptionPoints(every.after & chosen.after, every.rows & chosen.rows)

    def spans(self, member: str, kind: PreemptionPoints) -> Mapping[str, Span]:
        """The bytes of each of the member's buffers that are live at those points."""
        if (member, kind) not in self._spans:
            self._spans[member, kind] = self.live(member).spans(self.allowed(member, kind))
        return self._spans[member, kind]

    def live(self, member: str) -> Liveness:
        if member not in self._liveness:
            self._liveness[member] = Liveness(self.plans[member])
        return self._liveness[member]

    def _handed_over(self) -> dict[tuple[str, str], tuple[str, str]]:
        """(member, buffer) -> the first of the buffers that share its bytes, since one is handed over as the other."""
        first: dict[tuple[str, str], tuple[str, str]] = {}
        for fifo in self.application.shared:
            ends = self.application.ends(fifo)
            for member, tensor in ends:
                self._check_dense(member, tensor)
            keys = [(member, self._buffer(member, tensor)) for member, tensor in ends]
            roots = {first.get(key, key) for key in keys}
            root = next(first.get(key, key) for key in keys)
            for key in {*keys, *(key for key, value in first.items() if value in roots)}:
                first[key] = root
        return first

    def _check_dense(self, member: str, tensor: str) -> None:
        """Raises an error where a tensor is handed over that does not lie densely in a buffer."""
        view = self.plans[member].views[tensor]
        strides = self.application.by_name[member].network.tensors[tensor].strides
        if view.window is not None or view.offset or view.strides != strides:
            raise Infeasible(
                f"'{tensor}' of '{member}' does not lie densely in a buffer of its own: it cannot be shared"
            )

    def _kept_ends(self) -> Iterator[tuple[str, str]]:
        for name, tensor in sorted(self.relations.kept):
            if self.application.is_pipelined(name):
                raise InputError(f"network '{name}' is pipelined, and its ends cannot be kept; run it whole")
            if tensor not in self.application.networks[name].constants:
                yield name, tensor

    def _buffer(self, member: str, tensor: str) -> str:
        return self.plans[member].views[tensor].buffer


def held_inputs(application: Application, member: str) -> frozenset[str]:
    """Inputs that the member must not overwrite, since others read them later or fill them meanwhile."""
    relations = Relations(application)
    found = {tensor for name, tensor in relations.kept if name == member}
    own = application.by_name[member].own
    found |= {own(x) for x in application.shared if member in x.reading and relations.holds(x, member)}
    makes_slots = any(fifo.source == member for fifo in application.fifos)
    for fifo in (fifo for fifo in application.fifos if not fifo.rows and member in fifo.reading):
        if makes_slots or len(fifo.readers) > 1:
            found.add(application.by_name[member].own(fifo))
    return frozenset(found & set(application.by_name[member].network.inputs))


def trailing(plan: Plan, x: str, y: str, alignment: int) -> tuple[int, int] | None:
    """The gaps (x below y, y below x) at which two buffers of a plan may share bytes; None where they may not.

    A plan lets them share at one distance where an output trails its dying input; further into the direction of the
    sweep is as safe, so that the distance is rounded up to the alignment. Those that come and go with the same stages
    share by their calls, which nobody knows here, unless they are an input and an output.
    """
    one, two = plan.buffer_named[x], plan.buffer_named[y]
    if one.memory != two.memory or not (one.offset < two.end and two.offset < one.end):
        return None
    if (one.first, one.last) == (two.first, two.last):
        inputs, outputs = ({plan.views[name].buffer for name in ends} for ends in _own_ends(plan))
        if {x, y} & inputs & outputs or not ({x, y} & inputs and {x, y} & outputs):
            return None
        is_swapped = y in inputs
    else:
        is_swapped = (one.first, one.last) > (two.first, two.last)
    if is_swapped:
        gap = trailing(plan, y, x, alignment)
        return gap and (gap[1], gap[0])
    distance = two.offset - one.offset
    sweep = plan.program.stages[max(one.first, two.first)].sweep
    if sweep is Sweep.BACKWARD:
        return align_up(distance, alignment), align_up(two.size, alignment)
    return align_up(one.size, alignment), align_up(-distance, alignment)


def _own_ends(plan: Plan) -> tuple[list[str], list[str]]:
    """The inputs and outputs that lie in memory."""
    network = plan.network
    return [x for x in network.inputs if x in plan.views], [x for x in network.outputs if x in plan.views]
