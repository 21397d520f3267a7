"""The choice of a driver's layout: by the optimiser, the paper's heuristic or a lock file; judged before use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from ..errors import Infeasible
from .analysis.accesses import Kind
from .analysis.inlining import inlinable
from .analysis.interrupts import guarded
from .analysis.spaces import Joint, Space, Spaces, parted
from .design import Analysis, Design, totals
from .design_flow import designed, naive, real_joints
from .language.description import Refusal, Refused
from .layout.cost import Cost, LayoutGoal, cost_of
from .layout.judge import faults
from .layout.layout import Layout, Register
from .layout.optimal import PATIENCE, lay_out_optimal
from .layout.packing import as_read, side_by_side, with_spare_bits
from .layout.paper import lay_out_paper
from .lock.lock_file import RELOCK, Lock
from .lock.locked_layout import contradicted, locked, with_new_views

# Bytes of each function of a design as a compiler makes it; None where it cannot.
Measure = Callable[[Design], Mapping[str, int] | None]


def chosen_design(
    analysis: Analysis,
    method: str = "optimal",
    goal: LayoutGoal | None = None,
    lock: Lock | None = None,
    measure: Measure | None = None,
) -> Design:
    """The driver laid out by `method` ("optimal" or "paper"), with all that `lock` knows left where it was.

    A balanced layout is the best of several: it takes no more accesses than a register for each field unless the map is
    limited, and no larger map where one of the several has neither. None that is best at one thing is better in
    everything; with `measure`, by the code that they come to.
    """
    goal = goal or LayoutGoal()
    made = _laid_out(analysis, method, goal, lock, measure)
    if measure is None:
        return made
    made = _inlined(made, measure)
    if goal.minimise == "code" and method == "optimal" and lock is None:
        balanced = _laid_out(analysis, method, replace(goal, minimise="balanced"), lock, measure)
        made = _smaller(made, _inlined(balanced, measure), measure)
    return made


def _smaller(made: Design, balanced: Design, measure: Measure) -> Design:
    """The design with less code as a compiler makes it; of two alike, the one with fewer accesses or a smaller map."""
    found = []
    for one in (made, balanced):
        if (sizes := measure(one)) is None:
            return made
        map_bytes = one.layout.map_bytes(one.analysis.description)
        found.append((sum(sizes.values()), total_accesses(one), map_bytes))
    return balanced if found[1] < found[0] else made


def _inlined(made: Design, measure: Measure) -> Design:
    """The design with those static functions at their callers that make the code smaller so.

    Where a function is called with constants, most of what it does to them is done by the compiler, which does not know
    that when it decides.
    """
    callable_ = [f for f in inlinable(made.analysis.functions) if f.accesses]
    if not callable_ or (sizes := measure(made)) is None:
        return made
    least = sum(sizes.values())
    for function in callable_[:MOST_INLINED]:
        other = replace(made, inlined=made.inlined | {function.name})
        sizes = measure(other)
        if sizes is not None and sum(sizes.values()) < least:
            made, least = other, sum(sizes.values())
    return made


MANY = 2500  # accesses of a driver beyond which local search alone has to do
MOST_INLINED = 12  # functions of a driver that are tried


def _laid_out(analysis: Analysis, method: str, goal: LayoutGoal, lock: Lock | None, measure: Measure | None) -> Design:
    """The driver with the best of several layouts; code is measured where that can be.

    A large one gets a single layout without views, whose map is no larger than that of one register for each field.
    """
    is_large = len(analysis.uses) > MANY and goal.max_map is None
    goal = replace(goal, views=goal.views and not is_large)
    try:
        first = designed(analysis, lambda joints: chosen_layout(analysis, joints, method, goal, lock))
    except Infeasible:
        _refuse_unmarked(analysis, method, goal, lock)
        raise
    if method != "optimal" or lock is not None or is_large:
        return first
    spaces = with_spare_bits(analysis.spaces, loose_slots(analysis))
    is_small = len(analysis.uses) <= FEW
    made = [first] if goal.minimise != "balanced" else [first, *_others(analysis, goal, first)]
    if goal.minimise == "balanced" and is_small and measure and spaces != analysis.spaces:
        made.append(designed(analysis, _lay_out(replace(analysis, spaces=spaces), goal)))
    plain = naive(analysis)
    most, naive_map = total_accesses(plain), plain.layout.map_bytes(analysis.description)
    if goal.minimise == "balanced" and goal.views:
        made = _with_small_maps(made, goal, naive_map)
        if all(total_accesses(one) > most for one in made):
            made.append(designed(analysis, _lay_out(analysis, replace(goal, minimise="accesses", views=False))))
    designs = _different([one for design in made for one in _arranged(design, spaces, goal)] if is_small else made)
    sizes = [measure(one) for one in designs] if measure and len(designs) > 1 else []
    known = sizes if sizes and None not in sizes else [None] * len(designs)
    found = [_Candidate.of(one, goal, size) for one, size in zip(designs, known, strict=True)]
    spare = [one for one in found if one.accesses <= most] or found
    best, *rest = [one for one in spare if one.cost.map_bytes <= naive_map or goal.minimise != "balanced"] or spare
    for other in rest:
        best = other if other.is_cheaper_than(best) else best
    for other in rest:
        best = other if other.is_safer_than(best) else best
    if measure is None or goal.minimise != "balanced":
        return best.design
    for twin in [one for one in found if one.is_twin_of(best)]:
        best = _mixed(best, twin, measure, goal)
    return best.design


def _with_small_maps(designs: Sequence[Design], goal: LayoutGoal, naive_map: int) -> list[Design]:
    """The designs without those whose map views make half as large again, or larger than with a register for each
    field, and one instead that keeps to this limit."""
    analysis = designs[0].analysis

    def size(made: Design) -> int:
        return made.layout.map_bytes(analysis.description)

    def has_views(made: Design) -> bool:
        return any(space.views for space in made.layout.spaces.values())

    most = min(max(size(made) for made in designs if not has_views(made)) * 3 // 2, naive_map)
    small = [made for made in designs if size(made) <= most or not has_views(made)]
    if len(small) < len(designs):
        limit = most if goal.max_map is None else min(most, goal.max_map)
        with suppress(Infeasible):
            small.append(designed(analysis, _lay_out(analysis, replace(goal, max_map=limit))))
    return small


FEW = 400  # accesses of a driver for which every layout is compiled with its bits in two orders


def _moved(made: Design, layout: Layout, goal: LayoutGoal) -> Design:
    """The design with fields at other bits; what was proven of it holds where they cost no more by the estimate."""
    if layout is made.layout:
        return made
    analysis, joints = made.analysis, real_joints(made)
    before, now = (
        cost_of(analysis.description, analysis.spaces, one, joints, goal.sizes).score(goal.weights)
        for one in (made.layout, layout)
    )
    cost = None if layout.cost is None else layout.cost + now - before
    return replace(made, layout=replace(layout, optimal=layout.optimal and now <= before, cost=cost))


def _arranged(made: Design, spaces: Spaces, goal: LayoutGoal) -> Iterator[Design]:
    """The design as it is, and with fields of registers side by side: as they are declared, without room and with it,
    and as they are read.

    Where code takes flags apart and puts them together again in that order, a compiler takes all of them at once.
    """
    read = as_read(made.analysis.spaces, made.analysis.joints)
    for some in (made.analysis.spaces, spaces, read):
        yield _moved(made, side_by_side(made.layout, some), goal)
    yield made


def loose_slots(analysis: Analysis) -> frozenset[tuple[str, str]]:
    """The slots of several bits that are assigned numbers which may not fit: these are cut off."""
    return frozenset(
        (use.space, use.slot)
        for use in analysis.uses.values()
        if use.access.kind is Kind.WRITE
        and not use.access.spot.is_known
        and analysis.spaces[use.space].slot(use.slot).field.bits > 1
    )


def _mixed(best: _Candidate, twin: _Candidate, measure: Measure, goal: LayoutGoal) -> _Candidate:
    """The design with each register as that of the two has it whose functions become smaller, if that pays."""
    if best.sizes is None or twin.sizes is None:
        return best
    users: dict[tuple[str, str], set[str]] = {}
    for (function, _), use in best.design.analysis.uses.items():
        users.setdefault((use.space, use.slot), set()).add(function)

    def better(space: str, one: Register, other: Register) -> Register:
        functions = set[str]().union(*(users.get((space, piece.slot), ()) for piece in one.pieces))
        ours, theirs = (sum(sizes.get(name, 0) for name in functions) for sizes in (best.sizes, twin.sizes) if sizes)
        return one if ours <= theirs else other

    layout, other = best.design.layout, twin.design.layout
    mixed = {
        name: replace(of, registers=tuple(map(partial(better, name), of.registers, other.spaces[name].registers)))
        for name, of in layout.spaces.items()
    }
    if mixed == layout.spaces:
        return best
    made = _moved(best.design, replace(layout, spaces=mixed), goal)
    sizes = measure(made)
    is_smaller = sizes is not None and sum(sizes.values()) < sum(best.sizes.values())
    return _Candidate.of(made, goal, sizes) if is_smaller else best


def _without_bits(layout: Layout) -> object:
    return {
        name: (of.views, [(register.offset, register.slots) for register in of.registers])
        for name, of in layout.spaces.items()
    }


def _different(designs: Sequence[Design]) -> list[Design]:
    """The designs, each layout once."""
    found: list[Design] = []
    for made in designs:
        if all(made.layout.spaces != other.layout.spaces for other in found):
            found.append(made)
    return found


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A design with what it comes to."""

    design: Design
    accesses: int  # in its code
    unnamed: int  # fields that accesses touch because they share a register with those that are meant
    cost: Cost  # its code measured, or by estimate
    weights: tuple[int, int, int]
    sizes: Mapping[str, int] | None  # of its functions, where they were measured

    @classmethod
    def of(cls, made: Design, goal: LayoutGoal, sizes: Mapping[str, int] | None) -> _Candidate:
        """A design judged by what it really accesses at once."""
        analysis, joints = made.analysis, real_joints(made)
        cost = cost_of(analysis.description, analysis.spaces, made.layout, joints, goal.sizes)
        cost = cost if sizes is None else replace(cost, code=sum(sizes.values()))
        unnamed = sum(
            len(register.slots.difference(joint.slots))
            for joint in joints
            for register in made.layout.spaces[joint.space].holding_any(joint.slots)
        )
        return cls(made, total_accesses(made), unnamed, cost, goal.weights, sizes)

    def is_twin_of(self, other: _Candidate) -> bool:
        """Whether it has the same fields in the same registers, at other bits."""
        ours, theirs = (_without_bits(one.design.layout) for one in (self, other))
        return self is not other and ours == theirs

    def is_cheaper_than(self, other: _Candidate) -> bool:
        """Whether its score is lower, and not for its map alone: fields that nobody accesses at once stay apart."""
        code, access, _ = self.weights
        ours, theirs = (code * one.cost.code + access * one.cost.accesses for one in (self, other))
        return ours < theirs and self.cost.score(self.weights) < other.cost.score(self.weights)

    def is_safer_than(self, other: _Candidate) -> bool:
        """Whether it is no worse in anything: where code is estimated, fewer accesses make up for some of it.

        Where nothing was compiled, a smaller map alone is no reason to let accesses touch fields that they do not name.
        """
        mine, theirs = ((one.accesses, one.cost.code) for one in (self, other))
        if mine == theirs:
            is_no_guess = self.sizes is not None or self.unnamed <= other.unnamed
            return self.cost.map_bytes < other.cost.map_bytes and is_no_guess
        error = ERROR if self.sizes is None and self.accesses < other.accesses else 1
        is_no_worse = self.accesses <= other.accesses and self.cost.map_bytes <= other.cost.map_bytes
        return is_no_worse and self.cost.code <= error * other.cost.code


ERROR = 1.2  # estimated bytes of code that lie closer together may be ranked the other way round by a compiler


def _others(analysis: Analysis, goal: LayoutGoal, first: Design) -> Iterator[Design]:
    """Designs without views and with three quarters of the map, and those that are best at one thing.

    Estimates miss what a compiler makes of a smaller map; the others are what `--minimise` gives.
    """
    if goal.views:
        yield designed(analysis, _lay_out(analysis, replace(goal, views=False)))
    with suppress(Infeasible):
        limit = first.layout.map_bytes(analysis.description) * 3 // 4
        yield designed(analysis, _lay_out(analysis, replace(goal, max_map=limit)))
    for minimise in ("accesses", "code", "map"):
        yield designed(analysis, _lay_out(analysis, replace(goal, minimise=minimise)))


def _refuse_unmarked(analysis: Analysis, method: str, goal: LayoutGoal, lock: Lock | None) -> None:
    """Raises Refused where a limit could be kept if the fields that interrupt routines write were marked."""
    marked = replace(analysis, description=guarded(analysis.description))
    fields = [f for group in analysis.description.groups.values() for f in group.fields if f.unguarded]
    if not fields:
        return
    with suppress(Infeasible):
        chosen_layout(marked, marked.joints, method, goal, lock)
        what = f"is written by an interrupt routine, and in {goal.max_map} bytes other writes would have to put it back"
        hint = "mark it shared_with_isr, for critical sections around these, or allow a larger map"
        raise Refused([Refusal(field.place, f"'{field.name}' {what}", hint) for field in fields])


def _lay_out(analysis: Analysis, goal: LayoutGoal) -> Callable[[Sequence[Joint]], Layout]:
    return lambda joints: chosen_layout(analysis, joints, "optimal", goal)


def total_accesses(made: Design) -> int:
    """Accesses in the code of a driver."""
    return sum(totals(made).values())


def chosen_layout(
    analysis: Analysis, joints: Sequence[Joint], method: str, goal: LayoutGoal, lock: Lock | None = None
) -> Layout:
    """The layout for these joints, judged."""
    description, spaces = analysis.description, analysis.spaces

    def arrange(some: Spaces, theirs: Sequence[Joint]) -> Layout:
        if method == "paper":
            return lay_out_paper(description, some, theirs)
        free = replace(goal, max_map=None if lock else goal.max_map)
        return lay_out_optimal(description, some, theirs, free, 0 if len(analysis.uses) > MANY else PATIENCE)

    if lock is None:
        layout = arrange(spaces, joints)
    else:
        # Whoever lays out wants to know of every space; those without new slots are empty.
        nothing = {name: Space(name, ()) for name in spaces}
        layout = locked(description, spaces, lock, lambda new: arrange({**nothing, **new}, _among(joints, new)))
        if goal.views and not lock.is_fixed:
            layout = with_new_views(description, spaces, layout, joints)
    _check(analysis, joints, layout, goal, lock)
    return layout


def _check(analysis: Analysis, joints: Sequence[Joint], layout: Layout, goal: LayoutGoal, lock: Lock | None) -> None:
    """Raises where the layout breaks a rule or its limit: a lock may ask for what the source no longer allows."""
    description = analysis.description
    if lock and (found := faults(description, analysis.spaces, layout, joints)):
        raise contradicted(lock, "; ".join(found))
    size = layout.map_bytes(description)
    if goal.max_map is not None and size > goal.max_map:
        kept = f" as lock file '{lock.path}' has it; {RELOCK}" if lock else f" by method {layout.made_by}"
        raise Infeasible(f"the register map needs {size} bytes, --max-map allows {goal.max_map}:{kept}")


def _among(joints: Sequence[Joint], spaces: Spaces) -> list[Joint]:
    """The joints of some slots alone."""
    known = {name: frozenset(slot.name for slot in space.slots) for name, space in spaces.items()}
    return [
        replace(joint, slots=tuple(slot for slot in joint.slots if slot in run))
        for joint in joints
        for run in parted(joint.legs, known.get(joint.space, frozenset()))
    ]
