"""The layout of spaces as a constraint model (CP-SAT): which slots share registers, at least cost.

A register is named by its first slot: x[f, r] says that slot f lies in the register of slot r, with f not before r.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

from ...cpsat import cp_model
from ..analysis.spaces import Slot, Space
from .assembly import shaped
from .cells import Cell, width_for
from .cost import AccessPattern, LayoutGoal
from .layout import Piece
from .rules import Rules

Literal: TypeAlias = "cp_model.IntVar"
Linear: TypeAlias = "cp_model.LinearExprT"


@dataclass(frozen=True, slots=True)
class LayoutPart:
    """A space in the model: the slots to place, and what is settled about it."""

    space: Space
    rules: Rules
    patterns: tuple[AccessPattern, ...]
    free: tuple[str, ...]  # slots to place: neither pinned nor wider than the bus
    settled: int  # bytes of all other registers
    least_end: int  # one past the last pinned byte, and the stride where one is stated
    padded: bool  # its size is a power of two


@dataclass(slots=True)
class PartVariables:
    """The variables of one part."""

    part: LayoutPart
    x: dict[tuple[str, str], Literal] = field(default_factory=dict)
    lane: dict[str, Literal] = field(default_factory=dict)
    width: dict[tuple[str, int], Literal] = field(default_factory=dict)
    zero: dict[tuple[str, str], Literal] = field(default_factory=dict)  # begins at bit 0
    top: dict[tuple[str, str], Literal] = field(default_factory=dict)  # ends at the last bit
    inside: dict[str, list[str]] = field(default_factory=dict)  # slots that may lie in the register of r
    views: dict[tuple[str, frozenset[str], int], Literal] = field(default_factory=dict)  # of a register: writes, part


@dataclass(slots=True)
class Model:
    """A model under construction, with its objective in parts."""

    goal: LayoutGoal
    cp: cp_model.CpModel = field(default_factory=lambda: cp_model.CpModel())
    terms: list[tuple[int, Literal]] = field(default_factory=list)

    def new(self, name: str) -> Literal:
        return self.cp.new_bool_var(name)

    def pay(self, variable: Literal, code: int = 0, accesses: int = 0) -> None:
        weights = self.goal.weights
        self.terms.append((weights[0] * code + weights[1] * accesses, variable))

    def any_of(self, causes: Sequence[Literal]) -> Literal:
        """Whether one of them is true."""
        if len(causes) == 1:
            return causes[0]
        result = self.new("any")
        self.cp.add_max_equality(result, causes)
        return result

    def at_least_all(self, result: Literal, causes: Iterable[Literal]) -> None:
        """All causes together force the result."""
        self.cp.add_bool_or([result, *(cause.negated() for cause in causes)])


def add_part(model: Model, part: LayoutPart) -> PartVariables:
    """The variables and rules of one space."""
    chosen = PartVariables(part)
    _assign(model, chosen)
    _bind(model, chosen)
    _separate(model, chosen)
    _lanes(model, chosen)
    _capacity(model, chosen)
    _positions(model, chosen)
    _touches(model, chosen)
    return chosen


def _assign(model: Model, chosen: PartVariables) -> None:
    free, rules = chosen.part.free, chosen.part.rules
    chosen.inside = {r: [] for r in free}
    for n, f in enumerate(free):
        for r in free[: n + 1]:
            if f == r or rules.pair(f, r):
                chosen.x[f, r] = model.new(f"{f} in {r}")
                chosen.inside[r].append(f)
        model.cp.add_exactly_one(chosen.x[f, r] for r in free[: n + 1] if (f, r) in chosen.x)
    for (f, r), x in chosen.x.items():
        if f != r:
            model.cp.add_implication(x, chosen.x[r, r])


def _bind(model: Model, chosen: PartVariables) -> None:
    """Slots of one bond are in the same register."""
    free = chosen.part.free
    for bond in chosen.part.rules.bonds:
        inside = [slot for slot in free if slot in bond]
        for r in free:
            here = [chosen.x.get((f, r)) for f in inside]
            for one in here:
                other = here[0]
                if one is not None and other is not None:
                    model.cp.add(one == other)
                elif one is not None or other is not None:
                    model.cp.add((one if one is not None else other) == 0)


def _separate(model: Model, chosen: PartVariables) -> None:
    """Slots that must not share a register, and registers that must not be written by read-modify-write."""
    rules = chosen.part.rules
    for r in chosen.part.free:
        inside = chosen.inside[r]
        for n, f in enumerate(inside):
            for g in inside[n + 1 :]:
                if not rules.pair(f, g):
                    model.cp.add_at_most_one(chosen.x[f, r], chosen.x[g, r])


def _capacity(model: Model, chosen: PartVariables) -> None:
    """The bits of a register fit its width, which is the bus's unless narrower accesses are declared."""
    rules = chosen.part.rules
    for r in chosen.part.free:
        widths = [rules.bus.narrowest]
        while widths[-1] < rules.bus.width:
            widths.append(widths[-1] * 2)
        for width in widths:
            chosen.width[r, width] = model.new(f"{r} has {width} bits")
        used = sum(rules.slots[f].room * chosen.x[f, r] for f in chosen.inside[r])
        lane = chosen.lane.get(r, 0)
        model.cp.add(used <= sum(width * chosen.width[r, width] for width in widths) + rules.bus.width * lane)
        model.cp.add(sum(chosen.width[r, width] for width in widths) + lane == chosen.x[r, r])


def _lanes(model: Model, chosen: PartVariables) -> None:
    """Arrays of narrow fields may have several elements side by side in a register, which then holds nothing else."""
    for r in chosen.part.free:
        lanes = chosen.part.rules.lanes(r)
        if lanes == 1:
            continue
        lane = chosen.lane[r] = model.new(f"{r} in lanes")
        model.cp.add_implication(lane, chosen.x[r, r])
        for f in chosen.inside[r]:
            if f != r:
                model.cp.add_at_most_one(lane, chosen.x[f, r])
        for pattern in chosen.part.patterns:
            if r in pattern.slots:
                _pay_lane(model, lane, pattern, chosen.part.rules.slots[r], lanes)


def _pay_lane(model: Model, lane: Literal, pattern: AccessPattern, slot: Slot, lanes: int) -> None:
    """What lanes cost beyond an element in its own register, shifts and masks apart."""
    words = prod(slot.counts[:-1]) * -(-slot.counts[-1] // lanes)
    index = model.goal.sizes.lane_words if words > 1 else -model.goal.sizes.index
    if pattern.writes:
        critical = model.goal.sizes.critical if slot.field.shared_with_isr else 0
        model.pay(lane, pattern.indexed * (model.goal.sizes.lane_write + index), pattern.weight)
        model.pay(lane, pattern.times * (model.goal.sizes.rewrite + model.goal.sizes.far + critical))
    else:
        model.pay(lane, pattern.indexed * (model.goal.sizes.lane_read + index))


def _positions(model: Model, chosen: PartVariables) -> None:
    """Which slot begins at bit 0, ends at the top bit or is alone: each of these saves shifts or masks."""
    x = chosen.x
    for r in chosen.part.free:
        inside = chosen.inside[r]
        alone = model.new(f"{r} alone")
        chosen.top |= {(f, r): model.new(f"{f} on top of {r}") for f in inside}
        chosen.zero |= {(f, r): model.new(f"{f} at 0 of {r}") for f in inside}
        model.cp.add_implication(alone, x[r, r])
        for f in inside:
            zero, top = chosen.zero[f, r], chosen.top[f, r]
            model.cp.add_implication(zero, x[f, r])
            model.cp.add_implication(top, x[f, r])
            model.cp.add_at_most_one(zero, top)
            if f != r:
                model.cp.add_at_most_one(alone, x[f, r])
            reads = sum(pattern.times for pattern in chosen.part.patterns if f in pattern.slots and not pattern.writes)
            uses = sum(pattern.times for pattern in chosen.part.patterns if f in pattern.slots)
            model.pay(zero, -model.goal.sizes.shift * uses)
            model.pay(top, -model.goal.sizes.mask * reads)
            if f == r:
                model.pay(alone, -model.goal.sizes.mask * reads)
        model.cp.add(sum(chosen.zero[f, r] for f in inside) <= x[r, r])
        model.cp.add(sum((alone, *(chosen.top[f, r] for f in inside))) <= x[r, r])
        if r in chosen.lane:
            for variable in (alone, chosen.zero[r, r], chosen.top[r, r]):
                model.cp.add_at_most_one(variable, chosen.lane[r])


def _touches(model: Model, chosen: PartVariables) -> None:
    """Accesses of every pattern, read-modify-write where something else in the register must be kept."""
    rules, x = chosen.part.rules, chosen.x
    for pattern in chosen.part.patterns:
        for r in chosen.part.free:
            inside = chosen.inside[r]
            hit = [f for f in inside if f in pattern.slots]
            if not hit:
                continue
            touched = model.new("touched")
            for f in hit:
                model.cp.add_implication(x[f, r], touched)
            several = prod(rules.slots[r].counts) > 1
            join = model.goal.sizes.join if pattern.writes else 0
            code = pattern.times * (model.goal.sizes.access - join) + (
                pattern.indexed * model.goal.sizes.index if several else 0
            )
            model.pay(touched, code, pattern.weight)
            beside = [g for g in inside if g not in pattern.slots and rules.kept(g)] if pattern.writes else []
            kept = [g for g in beside if g not in pattern.known]
            again = _again(model, chosen, pattern, r)
            for more in again:
                model.pay(more, code, pattern.weight)
            parts = again if any(map(rules.kept, hit)) else []
            partial = _view if rules.views else _rewrite
            write = _PartialWrite(pattern, r, touched, kept, parts)
            rewrite = partial(model, chosen, write) if kept or parts else None
            for g in [g for g in beside if g in pattern.known]:
                known = model.new("known")
                model.at_least_all(known, (touched, x[g, r], *([rewrite.negated()] if rewrite is not None else [])))
                model.pay(known, pattern.times * model.goal.sizes.join)


def _again(model: Model, chosen: PartVariables, pattern: AccessPattern, r: str) -> list[Literal]:
    """Further accesses of a pattern to a register: of what comes after a gate that lies elsewhere."""
    found: list[Literal] = []
    before: list[Literal] = []  # slots of earlier legs
    beside: list[Literal] = []  # of these, what nothing parts from the next leg
    for number, leg in enumerate(pattern.legs if len(pattern.legs) > 1 else ()):
        here = [chosen.x[f, r] for f in sorted(leg) if (f, r) in chosen.x]
        if here and before:
            found.append(model.new("again"))
            earlier = model.any_of(before)
            joined = [model.any_of(beside).negated()] if beside else []
            for one in here:
                model.at_least_all(found[-1], (one, earlier, *joined))
        before += here
        beside = here if number % 2 else [*beside, *here]
    return found


@dataclass(frozen=True)
class _PartialWrite:
    """Writes of a pattern to part of a register: whether there is one, what must be kept, and further writes to it."""

    pattern: AccessPattern
    register: str
    touched: Literal
    kept: Sequence[str]
    again: Sequence[Literal]


def _rewrite(model: Model, chosen: PartVariables, write: _PartialWrite) -> Literal:
    """A write of part of a register reads it first and puts the rest back."""
    rules, x, pattern, r, again = chosen.part.rules, chosen.x, write.pattern, write.register, write.again
    rewrite = model.new("rmw")
    for g in write.kept:
        model.at_least_all(rewrite, (write.touched, x[g, r]))
    guarded = [f for f in chosen.inside[r] if rules.slots[f].field.shared_with_isr]
    for more in again:
        model.cp.add_implication(more, rewrite)
    for one in (rewrite, *again):
        model.pay(one, pattern.times * model.goal.sizes.rewrite, pattern.weight)
        if guarded:
            critical = model.new("critical")
            model.pay(critical, pattern.times * model.goal.sizes.critical)
            for f in guarded:
                model.at_least_all(critical, (one, x[f, r]))
    for f in chosen.inside[r]:
        if rules.frail(f):
            model.cp.add_at_most_one(rewrite, x[f, r])
        if f in pattern.slots:
            model.cp.add_at_most_one(rewrite, chosen.top[f, r])  # a mask up there is a long constant
            far = model.new("far")
            model.at_least_all(far, (rewrite, x[f, r], chosen.zero[f, r].negated()))
            model.pay(far, pattern.times * model.goal.sizes.far)
    return rewrite


def _view(model: Model, chosen: PartVariables, write: _PartialWrite) -> Literal:
    """A write of part of a register goes to a view address of its own, which costs only address space.

    Equal sets of slots share one view; where different sets hit a register in the same slots, two are counted.
    """
    r = write.register
    slots = write.pattern.slots & frozenset(chosen.inside[r])
    view, *others = (_view_variable(model, chosen, (r, slots, number)) for number in range(1 + len(write.again)))
    for more, other in zip(write.again, others, strict=True):
        model.cp.add_implication(more, view)
        model.cp.add_implication(more, other)
    is_no_lane = [chosen.lane[r].negated()] if r in chosen.lane else []
    for g in write.kept:
        model.at_least_all(view, (write.touched, chosen.x[g, r], *is_no_lane))
    return view


def _view_variable(model: Model, chosen: PartVariables, key: tuple[str, frozenset[str], int]) -> Literal:
    if key not in chosen.views:
        chosen.views[key] = model.new("view")
    return chosen.views[key]


def content(model: Model, chosen: PartVariables) -> Linear:
    """Bytes of all registers of a part."""
    rules = chosen.part.rules
    total: Linear = chosen.part.settled
    for (r, width), variable in chosen.width.items():
        total += _bytes(rules.slots[r], width, 1, model.goal.power_of_two) * variable
    for r, lane in chosen.lane.items():
        lanes = rules.lanes(r)
        width = width_for(lanes * rules.slots[r].field.bits, rules.bus)
        total += _bytes(rules.slots[r], width, lanes, model.goal.power_of_two) * lane
    for (r, _, _), view in chosen.views.items():
        total += _bytes(rules.slots[r], rules.bus.width, 1, model.goal.power_of_two) * view
    return total


def _bytes(slot: Slot, width: int, lanes: int, power_of_two: bool) -> int:
    return shaped((Piece(slot.name, 0, slot.field.bits, 0, lanes),), width, slot.counts, power_of_two).end


def add_size(model: Model, chosen: PartVariables, areas: Linear, most: int) -> Literal:
    """Bytes of a space: bus words and areas, which may lie between pins; a power of two where it is padded."""
    part = chosen.part
    word = part.rules.bus.width // 8
    words = model.cp.new_int_var(0, most // word, f"words of {part.space.name}")
    size = model.cp.new_int_var(word, most, f"size of {part.space.name}")
    model.cp.add(word * words >= content(model, chosen))
    model.cp.add(size >= word * words + areas)
    model.cp.add(size >= part.least_end)
    if not part.padded:
        return size
    powers = [1 << k for k in range(most.bit_length()) if word <= 1 << k <= most]
    taken = [model.new(f"{power} bytes") for power in powers]
    model.cp.add_exactly_one(taken)
    model.cp.add(size == sum(power * one for power, one in zip(powers, taken, strict=True)))
    return size


def cells_of(chosen: PartVariables, solver: cp_model.CpSolver) -> tuple[Cell, ...]:
    """The cells that a solution describes."""
    cells = []
    for r in chosen.part.free:
        names = tuple(f for f in chosen.inside[r] if solver.value(chosen.x[f, r]))
        if names:
            in_lanes = r in chosen.lane and solver.value(chosen.lane[r])
            cells.append(Cell(names, chosen.part.rules.lanes(r) if in_lanes else 1))
    return tuple(cells)


def hint(model: Model, chosen: PartVariables, cells: Sequence[Cell]) -> None:
    """Starts the search at these cells."""
    order = {name: n for n, name in enumerate(chosen.part.free)}
    where: Mapping[str, str] = {
        name: min(cell.slots, key=lambda s: order[s]) for cell in cells if cell.slots[0] in order for name in cell.slots
    }
    for (f, r), x in chosen.x.items():
        model.cp.add_hint(x, where[f] == r)
    in_lanes = {cell.slots[0] for cell in cells if cell.lanes > 1}
    for r, lane in chosen.lane.items():
        model.cp.add_hint(lane, r in in_lanes)
