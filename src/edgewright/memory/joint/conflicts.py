"""Finds which buffers of a deployment conflict, that is, may be in use together, from relations and FIFOs.

A buffer of a plan is in use from its first stage to its last. A tensor passed between parts is a single buffer that
stays in use in between. A FIFO that is kept, or a buffer of the firmware, is always in use. All parts are on one
device, have plans, and have one worker each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from ...errors import Infeasible
from ...program import Plan, Sweep
from ...program.deployment import OUTSIDE, Deployment, Fifo, InterruptionPoints, RelationKind
from ..layout import ConflictGraph
from ..layout.problem import align_up
from ..overlap import Distance
from ..trailing import least_distance
from .liveness import Liveness, Span

Key = tuple[str, str]  # a part, and a buffer of its plan


@dataclass(frozen=True, slots=True)
class BufferUse:
    """A buffer of a part's plan, and the stages in which it is in use."""

    part: str
    buffer: str
    first: int
    last: int


@dataclass(frozen=True)
class JointBuffer:
    """A buffer of the common arena, with all its uses."""

    name: str
    size: int
    uses: tuple[BufferUse, ...] = ()
    during: frozenset[str] = frozenset()  # parts during whose complete runs it is in use
    is_waiting: bool = False  # in use between the runs of its parts
    is_always: bool = False
    fifo: Fifo | None = None  # for a slot or ring; with uses, the only slot, which is a buffer of both parts
    planned: int | None = None  # its address in the plan of the only part that uses it


def slot_buffer(fifo: Fifo, number: int = 0) -> str:
    """The name of the buffer of a slot or a ring."""
    return f"{fifo.name}[{f'{fifo.rows} of {fifo.frame_rows} rows' if fifo.rows else number}]"


def last_use(plan: Plan, tensors: Sequence[str]) -> int:
    """The last stage that reads these inputs or touches their memory."""
    buffers = {plan.views[tensor].buffer for tensor in tensors}
    last = 0
    for number, stage in enumerate(plan.program.stages):
        layers = [plan.network.by_name[name] for name in stage.layers]
        touched = {name for layer in layers for name in (*layer.inputs, layer.output)}
        if any(name in plan.views and plan.views[name].buffer in buffers for name in touched):
            last = number
    return last


@dataclass(frozen=True)
class JointProblem:
    """The buffers of a deployment whose parts have plans, and their conflicts."""

    deployment: Deployment
    _liveness: dict[str, Liveness] = field(init=False, default_factory=dict, compare=False)
    _spans: dict[tuple[str, InterruptionPoints], Mapping[str, Span]] = field(
        init=False, default_factory=dict, compare=False
    )

    @property
    def plans(self) -> Mapping[str, Plan]:
        return self.deployment.plans

    def buffers(self) -> tuple[JointBuffer, ...]:
        queues = self.deployment.queues
        in_slots = {key for fifo in queues for key in self._keys(fifo)[: 1 if fifo.rows else None]}
        shared = self._handed_over()
        kept = {key for fifo in self.deployment.fifos if fifo.is_kept for key in self._keys(fifo)}
        groups: dict[Key, list[Key]] = {}
        for part, plan in self.plans.items():
            for buffer in plan.buffers:
                key = (part, buffer.name)
                if key not in in_slots:
                    groups.setdefault(shared.get(key, key), []).append(key)
        joint = [self._joint(keys, is_kept=bool(kept & set(keys))) for keys in groups.values()]
        for fifo in queues:
            parts = frozenset(part.name for part in self.deployment.parts_of(fifo.what.network))
            uses = tuple(self._slot_uses(fifo)) if fifo.rows or self._is_fixed(fifo) else ()
            size = self.deployment.slot_size(fifo)
            joint += [JointBuffer(slot_buffer(fifo, n), size, uses, during=parts, fifo=fifo) for n in range(fifo.slots)]
        for own in self.deployment.buffers:
            during = frozenset(own.parts or ())
            joint.append(JointBuffer(own.name, own.bytes, during=during, is_always=own.parts is None))
        return tuple(joint)

    def _tensors(self, fifo: Fifo) -> tuple[Key, ...]:
        """The FIFO's tensor in each part's plan, the producer first: (part, tensor)."""
        ends = [(name, self.deployment.part_named[name].own(fifo)) for name in fifo.ends if name != OUTSIDE]
        return tuple((name, tensor) for name, tensor in ends if tensor in self.plans[name].views)

    def _keys(self, fifo: Fifo) -> tuple[Key, ...]:
        """The buffers that hold it in the plans of these parts."""
        return tuple((name, self.plans[name].views[tensor].buffer) for name, tensor in self._tensors(fifo))

    def _is_fixed(self, fifo: Fifo) -> bool:
        """Whether the transferred tensor has one fixed address, in a buffer of each side that holds no other input or
        output."""
        return fifo.slots == 1 and len(fifo.readers) == 1 and all(self._has_own(*end) for end in self._tensors(fifo))

    def _has_own(self, part: str, tensor: str) -> bool:
        plan = self.plans[part]
        network, view = plan.network, plan.views[tensor]
        others = {plan.views[x].buffer for x in (*network.inputs, *network.outputs) if x in plan.views and x != tensor}
        is_dense = view.offset == 0 and network.tensors[tensor].is_dense(view.strides) and view.window is None
        size = plan.buffer_named[view.buffer].size
        return is_dense and size == network.tensors[tensor].bytes and view.buffer not in others

    def _slot_uses(self, fifo: Fifo) -> Iterator[BufferUse]:
        """The stages of each side; a reader that pulls rows from a ring has no tensor for it."""
        for part, name in self._keys(fifo):
            buffer = self.plans[part].buffer_named[name]
            is_pulled = fifo.rows and part != fifo.source
            yield BufferUse(part, "" if is_pulled else name, buffer.first, buffer.last)

    def _joint(self, keys: list[Key], is_kept: bool) -> JointBuffer:
        own = {(part, name): self.plans[part].buffer_named[name] for part, name in keys}
        uses = tuple(BufferUse(part, name, b.first, b.last) for (part, name), b in own.items())
        joined = " = ".join(f"{part}:{name}" for part, name in keys)
        planned = own[keys[0]].offset if len(keys) == 1 else None
        size = max(buffer.size for buffer in own.values())
        return JointBuffer(joined, size, uses, is_waiting=len(keys) > 1, is_always=is_kept, planned=planned)

    def graph(self, buffers: tuple[JointBuffer, ...]) -> ConflictGraph:
        """The conflict graph over all buffers, which is the layout problem."""
        alignment = max(plan.alignment for plan in self.plans.values())
        sizes = {buffer.name: align_up(buffer.size, alignment) for buffer in buffers}
        conflicting, gaps = set(), {}
        for x, y in combinations(buffers, 2):
            causes = list(self.causes(x, y))
            if causes:
                conflicting.add((x.name, y.name))
            match causes:  # a single cause may allow the two to overlap partly
                case [None]:
                    gap = self._gap_of_preemption(x, y, sizes, alignment)
                case [(one, two)]:
                    gap = trailing(self.plans[one.part], one.buffer, two.buffer, alignment)
                case _:
                    gap = None
            if gap is not None:
                gaps[x.name, y.name] = gap
        return ConflictGraph(sizes, frozenset(conflicting), gaps, alignment)

    def causes(self, x: JointBuffer, y: JointBuffer) -> Iterator[tuple[BufferUse, BufferUse] | None]:
        """The pairs of uses that make the two buffers conflict. Two uses by one part are left to its plan, which knows
        how they may overlap."""
        if x.is_always or y.is_always or (x.is_waiting and y.is_waiting):
            yield None
            return
        for slot, own in ((x, y), (y, x)):
            if slot.fifo is not None and slot.uses and own.uses and own.fifo is None:
                inside = {use.part for use in own.uses} <= {use.part for use in slot.uses}
                if inside:
                    yield from (pair if slot is x else pair and pair[::-1] for pair in self._slot_causes(slot, own))
                    return
        for one, other in ((x, y), (y, x)):
            parts = {use.part for use in other.uses}
            is_frame = one.fifo is not None or other.fifo is not None  # a frame waits between runs
            if any(self._is_in_use_beside(name, use, is_frame) for name in one.during for use in other.uses):
                yield None
            if one.is_waiting and (other.during or not parts <= {use.part for use in one.uses}):
                yield None
        if self._may_meet(x.during, y.during):
            yield None
        for a in x.uses:
            for b in y.uses:
                if a.part == b.part:
                    if a.first <= b.last and b.first <= a.last:
                        yield a, b
                elif self._meet(a, b):
                    yield None

    def _is_in_use_beside(self, part: str, use: BufferUse, is_frame: bool) -> bool:
        """Whether a buffer is in use while a part runs. If that part may only interrupt the buffer's owner, this counts
        its live bytes at preemption points."""
        points = None if is_frame else self._points(part, use.part)
        if points is None:
            return self.deployment.may_meet(part, use.part)
        return use.buffer in self.spans(use.part, points)

    def _points(self, high: str, low: str) -> InterruptionPoints | None:
        """The points at which the first part may interrupt the second, if it can run beside it nowhere else."""
        relation = self.deployment.concurrency(high, low) if high != low else None
        is_high = relation is not None and relation.kind is RelationKind.PREEMPTS and relation.parts[0] == high
        return relation.points if relation is not None and is_high else None

    def _may_meet(self, some: frozenset[str], others: set[str] | frozenset[str]) -> bool:
        return any(self.deployment.may_meet(a, b) for a in some for b in others)

    def _slot_causes(self, slot: JointBuffer, own: JointBuffer) -> Iterator[tuple[BufferUse, BufferUse] | None]:
        """Why a part's buffer conflicts with the only slot: while it is in use, and when the producer may refill it."""
        assert slot.fifo is not None
        for ours in own.uses:
            for use in slot.uses:
                if use.part == ours.part and use.first <= ours.last and ours.first <= use.last:
                    yield (use, ours) if use.buffer else None
            released = self.deployment.release_stage(slot.fifo, slot.fifo.readers[0].part)
            is_early = slot.fifo.rows > 0 and released < 0  # the next frame begins before all rows have been read
            if is_early if ours.part == slot.fifo.source else ours.last > released:
                yield None

    def _take_turns(self, a: BufferUse, b: BufferUse) -> bool:
        """Whether `b` is no longer used when its part releases the only slot that the part of `a` fills.

        The two buffers are then never in use together, except while rows cross in a ring: the last stage of the
        producer runs beside the first of the reader.
        """
        return any(
            fifo.slots == 1
            and fifo.source == a.part
            and b.part in fifo.reading
            and b.last <= self.deployment.release_stage(fifo, b.part)
            and not (fifo.rows and self._is_pushing(a) and self._is_pulling(b, fifo))
            for fifo in self.deployment.queues
        )

    def _is_pushing(self, use: BufferUse) -> bool:
        return use.last == len(self.plans[use.part].program.stages) - 1

    def _is_pulling(self, use: BufferUse, ring: Fifo) -> bool:
        return use.first <= last_use(self.plans[use.part], [self.deployment.part_named[use.part].own(ring)])

    def _meet(self, a: BufferUse, b: BufferUse) -> bool:
        """Whether buffers of two parts may be in use together."""
        relation = self.deployment.concurrency(a.part, b.part)
        if relation.kind is RelationKind.PREEMPTS:
            low = b if relation.parts[1] == b.part else a
            return relation.points is None or low.buffer in self.spans(low.part, relation.points)
        is_parallel = relation.kind is not RelationKind.EXCLUSIVE
        return is_parallel and not (self._take_turns(a, b) or self._take_turns(b, a))

    def _gap_of_preemption(
        self, x: JointBuffer, y: JointBuffer, sizes: Mapping[str, int], alignment: int
    ) -> tuple[int, int] | None:
        """The distances at which two buffers may overlap because the shared bytes of one are dead whenever it is
        interrupted."""
        for low, high in ((x, y), (y, x)):
            is_simple = low.fifo is None and high.fifo is None and not (low.is_always or high.is_always)
            if not is_simple or len(low.uses) != 1 or len(high.uses) > 1:
                continue
            own, others = low.uses[0], {use.part for use in high.uses} | high.during
            met = {other for other in others if self.deployment.may_meet(other, own.part)}
            moments = {self._points(other, own.part) for other in met}
            if own.part in others or len(moments) != 1 or None in moments:
                continue
            (points,) = moments
            assert points is not None
            first, end = self.spans(own.part, points)[own.buffer]
            above, below = align_up(end, alignment), sizes[high.name] - first // alignment * alignment
            return (above, below) if low is x else (below, above)
        return None

    def spans(self, part: str, points: InterruptionPoints) -> Mapping[str, Span]:
        """The live bytes of each of the part's buffers at these points."""
        if (part, points) not in self._spans:
            live = self._liveness.setdefault(part, Liveness(self.plans[part]))
            self._spans[part, points] = live.spans(points)
        return self._spans[part, points]

    def _handed_over(self) -> dict[Key, Key]:
        """For each buffer that continues another buffer's bytes, the first of them."""
        first: dict[Key, Key] = {}
        for fifo in self.deployment.shared:
            for part, tensor in self._tensors(fifo):
                self._check_dense(part, tensor)
            keys = self._keys(fifo)
            roots = {first.get(key, key) for key in keys}
            root = next(first.get(key, key) for key in keys)
            for key in {*keys, *(key for key, value in first.items() if value in roots)}:
                first[key] = root
        return first

    def _check_dense(self, part: str, tensor: str) -> None:
        """Raises an error if a transferred tensor does not lie densely in a buffer."""
        view = self.plans[part].views[tensor]
        strides = self.plans[part].network.tensors[tensor].strides
        if view.window is not None or view.offset or view.strides != strides:
            raise Infeasible(f"'{tensor}' of '{part}' does not lie densely in a buffer of its own: it cannot be shared")


def trailing(plan: Plan, x: str, y: str, alignment: int) -> tuple[int, int] | None:
    """The distances (x below y, y below x) at which two buffers of a plan may share bytes; None if they may not.

    An output may overlap its dying input at the plan's distance, further in the direction of the sweep, and as close as
    the stage allows. Buffers that live and die within the same stage overlap according to the calls that need them.
    """
    one, two = plan.buffer_named[x], plan.buffer_named[y]
    if one.memory != two.memory or not (one.offset < two.end and two.offset < one.end):
        return None
    if (one.first, one.last) == (two.first, two.last):
        inputs, outputs = ({plan.views[name].buffer for name in ends} for ends in _own_ends(plan))
        if {x, y} & inputs & outputs or not ({x, y} & inputs and {x, y} & outputs):
            inside = least_distance(plan, x, y) if one.first == one.last else None
            return (align_up(inside.above, alignment), align_up(inside.below, alignment)) if inside else None
        is_swapped = y in inputs
    else:
        is_swapped = (one.first, one.last) > (two.first, two.last)
    if is_swapped:
        gap = trailing(plan, y, x, alignment)
        return gap and (gap[1], gap[0])
    delta = two.offset - one.offset
    safe = least_distance(plan, x, y) or Distance(-delta, delta)
    if plan.program.stages[max(one.first, two.first)].sweep is Sweep.BACKWARD:
        return align_up(min(delta, safe.above), alignment), align_up(two.size, alignment)
    return align_up(one.size, alignment), align_up(min(-delta, safe.below), alignment)


def _own_ends(plan: Plan) -> tuple[list[str], list[str]]:
    """The inputs and outputs that lie in the plan's own memory."""
    network = plan.network
    return [x for x in network.inputs if x in plan.views], [x for x in network.outputs if x in plan.views]
