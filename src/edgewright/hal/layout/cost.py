"""The cost of a layout (after S table 6.1) in code bytes, bus accesses and map size, and which of these is minimised.

Every joint is one place in the code. For each register it touches it pays one access, for each field a shift unless it
begins at bit 0, and when reading a mask unless it is alone or ends at the top. A write that must keep other bits is a
read-modify-write. How many bytes each of these takes depends on the target: the numbers in `costs/` are fitted by
benchmarks/hal_costs.py, which compiles the same drivers with many layouts. Strides of areas are not counted: C computes
them where a pointer is made.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib import resources

from ..analysis.spaces import Joint, Legs, Space, Spaces, parted
from ..language.description import Description
from .layout import Layout, Piece, Register
from .rules import put_back

DEFAULT = "rv32imc"


@dataclass(frozen=True, slots=True)
class CodeBytes:
    """Bytes of code that accesses take on a target."""

    access: int  # load or store, and its share of the address
    shift: int  # a field that does not begin at bit 0
    mask: int  # a field that is read, unless it is alone or ends at the top
    join: int  # or, for every field of a combined write after the first
    rewrite: int  # what read-modify-write adds to a store: load, and, or; some of it is shared
    far: int  # a mask that may not fit an instruction: of a rewritten field that does not begin at bit 0
    index: int  # shift and add
    lane_read: int  # shift by a variable
    lane_write: int
    lane_words: int  # which word, where the lanes need several
    critical: int  # interrupts off and on again


@cache
def code_bytes(target: str = DEFAULT) -> CodeBytes:
    """The bytes of a target; of one that nothing is known about, those of RV32IMC."""
    folder = resources.files(__package__) / "costs"
    file = folder / f"{target}.json"
    known = json.loads((file if file.is_file() else folder / f"{DEFAULT}.json").read_text())
    return CodeBytes(**{field.name: int(known[field.name]) for field in fields(CodeBytes)})


LOOP = 10  # how often a loop is taken to run


@dataclass(frozen=True, slots=True)
class Cost:
    code: int  # bytes
    accesses: int  # on the bus, those in loops ten times for each
    map_bytes: int

    def score(self, weights: tuple[int, int, int]) -> int:
        """One number: the weights are those of a byte of code, an access and a byte of the map."""
        return weights[0] * self.code + weights[1] * self.accesses + weights[2] * self.map_bytes


@dataclass(frozen=True, slots=True)
class AccessPattern:
    """All joints that read, or write, the same slots: counted together, since a layout costs each of them the same."""

    space: str
    slots: frozenset[str]
    writes: bool
    times: int  # places in the code
    indexed: int  # of these, with an index that is no constant
    weight: int  # with loops
    known: frozenset[str] = frozenset()  # slots that it puts back without reading them
    legs: Legs = ()  # the slots, where gates part them

    def inside(self, names: frozenset[str]) -> Iterator[AccessPattern]:
        """What it does to a register with these slots, access by access."""
        if len(self.legs) < 2:
            yield self
        else:
            yield from (replace(self, slots=run, legs=()) for run in parted(self.legs, names))


def access_patterns(joints: Iterable[Joint]) -> tuple[AccessPattern, ...]:
    """The patterns of the joints: those that read or write the same slots are counted together."""
    times: Counter[_PatternKey] = Counter()
    indexed: Counter[_PatternKey] = Counter()
    weight: Counter[_PatternKey] = Counter()
    for joint in joints:
        key = joint.space, frozenset(joint.slots), joint.writes, frozenset(joint.known), joint.legs
        times[key] += 1
        indexed[key] += joint.dynamic
        weight[key] += LOOP ** min(joint.depth, 3)
    return tuple(AccessPattern(*key[:3], times[key], indexed[key], weight[key], *key[3:]) for key in times)


# Space, slots, whether they are written, what is known, the slots between gates.
_PatternKey = tuple[str, frozenset[str], bool, frozenset[str], Legs]


def touching_slots(patterns: Iterable[AccessPattern]) -> dict[tuple[str, str], list[AccessPattern]]:
    """The patterns that access a slot, by space and slot."""
    found: dict[tuple[str, str], list[AccessPattern]] = {}
    for pattern in patterns:
        for slot in pattern.slots:
            found.setdefault((pattern.space, slot), []).append(pattern)
    return found


def cost_of(
    description: Description, spaces: Spaces, layout: Layout, joints: Sequence[Joint], sizes: CodeBytes | None = None
) -> Cost:
    """The cost of all joints with this layout, for a target whose code has these sizes."""
    sizes = sizes or code_bytes()
    code = accesses = 0
    touching = touching_slots(access_patterns(joints))
    for name, placed in layout.spaces.items():
        for register in placed.registers:
            patterns = dict.fromkeys(w for piece in register.pieces for w in touching.get((name, piece.slot), ()))
            costs = RegisterCosts.of(description, spaces[name], register, sizes)
            for pattern in (part for whole in patterns for part in whole.inside(register.slots)):
                has_view = placed.view_of(register, pattern.slots) is not None
                here, bus = costs.of_pattern(pattern, has_view)
                code, accesses = code + here, accesses + bus
    return Cost(code, accesses, layout.map_bytes(description))


@dataclass(frozen=True, slots=True)
class RegisterCosts:
    """What patterns cost that touch a register: what does not depend on the pattern is found once."""

    sizes: CodeBytes
    slots: frozenset[str]
    kept: frozenset[str]  # slots that a write must put back unless it writes them
    is_in_lanes: bool  # then other elements lie there too
    is_shared: bool  # with an interrupt routine
    reading: Mapping[str, int]  # bytes of the shifts and masks of each slot
    writing: Mapping[str, int]
    rewriting: Mapping[str, int]
    read_index: int  # bytes of an index
    write_index: int

    @classmethod
    def of(cls, description: Description, space: Space, register: Register, sizes: CodeBytes) -> RegisterCosts:
        slots = register.slots
        return cls(
            sizes,
            slots,
            put_back(register, (), space, description),
            register.lanes > 1,
            any(space.slot(slot).field.shared_with_isr for slot in slots),
            {piece.slot: _shift_bytes(register, piece, False, False, sizes) for piece in register.pieces},
            {piece.slot: _shift_bytes(register, piece, True, False, sizes) for piece in register.pieces},
            {piece.slot: _shift_bytes(register, piece, True, True, sizes) for piece in register.pieces},
            _indexing(register, False, sizes),
            _indexing(register, True, sizes),
        )

    def of_pattern(self, pattern: AccessPattern, has_view: bool) -> tuple[int, int]:
        """Bytes of code and bus accesses."""
        sizes, once = self.sizes, self.sizes.access
        hit = pattern.slots & self.slots
        if not pattern.writes:
            once += sum(self.reading[slot] for slot in hit)
            return once * pattern.times + self.read_index * pattern.indexed, pattern.weight
        is_partial = bool(self.kept if self.is_in_lanes else self.kept - pattern.slots - pattern.known)
        known = 0 if is_partial else len(self.slots & pattern.known)
        once += sizes.join * (len(hit) + known - 1)
        is_rewritten = is_partial and not has_view
        if is_rewritten:
            once += sizes.rewrite + (sizes.critical if self.is_shared else 0)
        shifts = self.rewriting if is_rewritten else self.writing
        once += sum(shifts[slot] for slot in hit)
        return once * pattern.times + self.write_index * pattern.indexed, (2 if is_rewritten else 1) * pattern.weight


def _shift_bytes(register: Register, piece: Piece, writes: bool, is_rewritten: bool, sizes: CodeBytes) -> int:
    """Bytes of the shifts and masks that move a field to or from its bits."""
    shift = 0 if piece.bit == 0 and piece.lanes == 1 else sizes.shift + (sizes.far if is_rewritten else 0)
    alone = len(register.pieces) == 1 and piece.lanes == 1
    top = piece.bit + piece.size == register.width and piece.lanes == 1
    return shift + (0 if writes or alone or top else sizes.mask)


def _indexing(register: Register, writes: bool, sizes: CodeBytes) -> int:
    several = any(count > 1 for count in register.counts)
    if register.lanes == 1:
        return sizes.index if several else 0
    return (sizes.lane_write if writes else sizes.lane_read) + (sizes.index + sizes.lane_words if several else 0)


# What one byte of code, one bus access (ten for each loop around it) and one byte of the map weigh. Where one is
# asked for, the others only break ties. Balanced: an access is worth six bytes of code (two or three instructions, as
# long as many a bus takes for it) and a little more, since bytes are estimated. Three bytes of the map weigh nearly as
# much as one: at ten, a few bytes of code in what one compiler makes of a driver decided over a third of its map.
WEIGHTS = {
    "balanced": (100, 601, 30),
    "code": (1000, 10, 1),
    "accesses": (10, 1000, 1),
    "map": (10, 5, 100_000),
}


@dataclass(frozen=True, slots=True)
class LayoutGoal:
    """What a layout should minimise, and the limits that it must keep."""

    max_map: int | None = None  # bytes, all devices together
    minimise: str = "balanced"  # "code", "accesses", "map"
    target: str = DEFAULT  # whose code is estimated
    power_of_two: bool = True  # strides of what is indexed at run time, where the limit allows it
    views: bool = True  # further addresses of registers, for writes that reach some of their fields alone

    @property
    def has_views(self) -> bool:
        """Whether views may be used: they take room, so that the smallest map has none."""
        return self.views and self.minimise != "map"

    @property
    def sizes(self) -> CodeBytes:
        return code_bytes(self.target)

    @property
    def weights(self) -> tuple[int, int, int]:
        """The weights of a byte of code, an access and a byte of the map."""
        return WEIGHTS[self.minimise]
