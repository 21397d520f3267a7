"""The judge of layouts: a slow and plain check that shares no code with those who make layouts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise, product

from ...errors import Infeasible
from ..analysis.spaces import Joint, Space, Spaces
from ..language.description import Bus, Description
from ..language.semantics import Nature
from .layout import Layout, Piece, Register, SpaceLayout

Extent = tuple[int, int, str]  # first byte, one past the last, what lies there
Written = tuple[frozenset[str], frozenset[str]]  # slots that a place writes, and those that it knows beside them


def faults(description: Description, spaces: Spaces, layout: Layout, joints: Sequence[Joint]) -> list[str]:
    """What is wrong with a layout, as sentences; none for a correct one."""
    missing = [f"{name} has no layout" for name in spaces if name not in layout.spaces]
    if missing:
        return missing
    found = []
    for name, space in spaces.items():
        here = [joint for joint in joints if joint.space == name]
        found += [f"{name}: {fault}" for fault in _space_faults(description, space, layout, here)]
    return [*found, *_device_faults(description, layout)]


def checked(description: Description, spaces: Spaces, layout: Layout, joints: Sequence[Joint]) -> Layout:
    """The layout itself if it is correct; an error where pins or device addresses allow none."""
    found = faults(description, spaces, layout, joints)
    if found:
        raise Infeasible(
            f"the layout breaks a rule: {found[0]}. "
            f"Change the pins or the stride of these fields, or the addresses of the devices."
        )
    return layout


def _space_faults(description: Description, space: Space, layout: Layout, joints: Sequence[Joint]) -> Iterator[str]:
    writers = [joint for joint in joints if joint.writes]
    reads = [frozenset(joint.slots) for joint in joints if not joint.writes]
    placed = layout.spaces[space.name]
    bus = description.bus_of(space.name)
    known = {slot.name for slot in space.slots}
    strangers = frozenset[str]().union(*(register.slots for register in placed.registers)) - known
    if strangers:
        yield f"unknown slots {', '.join(sorted(strangers))}"
        return
    places: dict[str, list[int]] = {}  # by slot, the joints that write it
    for number, joint in enumerate(writers):
        for slot in joint.slots:
            places.setdefault(slot, []).append(number)
    for register in placed.registers:
        yield from _register_faults(space, register, bus)
        here = [writers[number] for number in sorted({n for slot in register.slots for n in places.get(slot, ())})]
        writes = [(part, frozenset(joint.known)) for joint in here for part in _at_once(joint, register)]
        if layout.is_fixed:
            yield from _use_faults(description, space, register, reads, writes)
        else:
            whole = [write for write in writes if not _is_viewed(placed, register, write)]
            yield from _rule_faults(description, space, register, whole)
    yield from _view_faults(placed)
    if (stride := description.stride_of(space.name)) not in (None, placed.size):
        yield f"its elements lie {placed.size} bytes apart, and a stride of {stride} is stated"
    if placed.views and not description.may_have_views(space.name):
        yield f"{len(placed.views)} views of memory or of elements with a stride, which have no second addresses"
    yield from _slot_faults(space, placed)
    yield from _together_faults(space, placed)
    yield from _area_faults(space, placed, layout)
    yield from _extent_faults(space, placed, layout, bus)


def _at_once(joint: Joint, register: Register) -> Iterator[frozenset[str]]:
    """What a joint writes of a register, cut at writes of other registers that nothing of it may pass."""
    inside = register.slots
    cuts = [n for n, slot in enumerate(joint.slots) if slot in joint.gates and slot not in inside]
    for first, last in pairwise([0, *cuts, len(joint.slots)]):
        if part := inside.intersection(joint.slots[first:last]):
            yield part


def _is_viewed(placed: SpaceLayout, register: Register, write: Written) -> bool:
    """Whether a write has an address at which it reaches nothing else of the register."""
    return any(register.slots & write[0] == set(view.slots) for view in placed.views)


def _view_faults(placed: SpaceLayout) -> Iterator[str]:
    """A view shows some fields of one register, and there is but one of its kind."""
    seen: set[frozenset[str]] = set()
    for view in placed.views:
        what = f"the view at 0x{view.offset:x}"
        shown = frozenset(view.slots)
        homes = [r for r in placed.registers if shown & r.slots]
        if len(homes) != 1 or not shown < homes[0].slots or homes[0].lanes > 1:
            yield f"{what} does not show part of one register"
        elif view.offset * 8 % homes[0].width:
            yield f"{what} is not aligned to its {homes[0].width} bits"
        if shown in seen:
            yield f"{what} shows what another does"
        seen.add(shown)


def _register_faults(space: Space, register: Register, bus: Bus) -> Iterator[str]:
    """Widths, alignment and the bits inside."""
    what = _named(register)
    if not bus.narrowest <= register.width <= bus.width or register.width & (register.width - 1):
        yield f"{what} is {register.width} bits wide; the bus does {bus.narrowest} to {bus.width}"
    for distance in (register.offset, *register.strides):
        if distance < 0 or distance * 8 % register.width:
            yield f"{what} is not aligned to its {register.width} bits"
    if len({space.slot(piece.slot).field.protection for piece in register.pieces}) > 1:
        yield f"{what} has fields of different protection"
    used: set[int] = set()
    for piece in register.pieces:
        bits = range(piece.bit, piece.bit + piece.size * piece.lanes)
        if bits.start < 0 or bits.stop > register.width or not piece.size:
            yield f"{piece.slot} does not fit in {what}"
        if used & set(bits):
            yield f"{piece.slot} overlaps another field in {what}"
        used |= set(bits)
        yield from _shape_faults(space, register, piece)


def _shape_faults(space: Space, register: Register, piece: Piece) -> Iterator[str]:
    """Elements: as many registers as the slot has elements, or enough lanes for all of them."""
    counts = space.slot(piece.slot).counts
    lanes = piece.lanes
    if lanes < 1 or lanes & (lanes - 1):
        yield f"{piece.slot} has {lanes} lanes, which is not a power of two"
        return
    if lanes > 1 and (not counts or len(register.pieces) > 1):
        yield f"{piece.slot} has lanes but is no array, or not alone in its register"
        return
    wanted = (*counts[:-1], (counts[-1] + lanes - 1) // lanes) if counts else ()
    if register.counts != wanted or len(register.strides) != len(wanted):
        yield f"{piece.slot} needs {wanted} registers, not {register.counts}"


def _rule_faults(
    description: Description, space: Space, register: Register, writes: Sequence[Written]
) -> Iterator[str]:
    """Side effects, and what read-modify-write would do to the neighbours."""
    inside = _natures(description, space, register)
    for (a, first), (b, second) in combinations(inside.items(), 2):
        if (first.reading_acts and second.readable) or (second.reading_acts and first.readable):
            yield f"{a} and {b} share a register, and reading one of them acts"
        if first.writable and second.writable and (_acts_written(first) or _acts_written(second)):
            yield f"{a} and {b} share a register, and writing one of them acts"
    if register.lanes > 1 and any(nature.acts for nature in inside.values()):
        yield f"{register.pieces[0].slot} has lanes, and accessing it acts"
    for written, known in dict.fromkeys(writes):
        yield from _rewrite_faults(register, inside, written, known)


def _natures(description: Description, space: Space, register: Register) -> dict[str, Nature]:
    slots = [space.slot(piece.slot) for piece in register.pieces]
    return {slot.name: description.nature(slot.group, slot.field.name) for slot in slots}


def _use_faults(
    description: Description,
    space: Space,
    register: Register,
    reads: Sequence[frozenset[str]],
    writes: Sequence[Written],
) -> Iterator[str]:
    """What accesses of the code would do to the other fields of a register of existing hardware."""
    inside = _natures(description, space, register)
    for read in dict.fromkeys(used for used in reads if used & set(inside)):
        for name, nature in inside.items():
            if nature.reading_acts and (name not in read or register.lanes > 1):
                yield f"reading {', '.join(sorted(read & set(inside)))} would read {name} too, which acts"
    for written, known in dict.fromkeys(used for used in writes if used[0] & set(inside)):
        beside = {
            name: nature
            for name, nature in inside.items()
            if nature.writable and not nature.neutral and (name not in written | known or register.lanes > 1)
        }
        what = f"writing {', '.join(sorted(written & set(inside)))} is a read-modify-write"
        for name, nature in beside.items():
            if not nature.restorable:
                yield f"{what} that cannot put back {name}{_LOCKED if nature.is_locked else ''}"
        for name, nature in inside.items():
            if beside and nature.reading_acts:
                yield f"{what}, and reading {name} acts"


def _rewrite_faults(
    register: Register, inside: dict[str, Nature], written: frozenset[str], known: frozenset[str]
) -> Iterator[str]:
    if not written & set(inside):
        return
    beside = {name for name, n in inside.items() if n.writable and not n.neutral and name not in written | known}
    if register.lanes == 1 and not beside:
        return
    what = f"writing {', '.join(sorted(written & set(inside)))} is a read-modify-write"
    for name, nature in inside.items():
        if nature.by_hardware:
            yield f"{what} of a register with {name}{_LOCKED if nature.is_locked else ', which the hardware changes'}"
        if nature.unguarded:
            yield f"{what} of a register with {name}, which an interrupt routine writes, unmarked"
        if nature.reading_acts or (name in beside and not nature.restorable):
            yield f"{what} that cannot put back {name}"


_LOCKED = ", which may be written only while another field is 0"


def _acts_written(nature: Nature) -> bool:
    return nature.writable and (nature.writing_acts or not nature.readable)


def _slot_faults(space: Space, placed: SpaceLayout) -> Iterator[str]:
    """Every slot is there, every bit of it once, pins where they say."""
    places: dict[str, list[tuple[Register, Piece]]] = {}
    for register in placed.registers:
        for piece in register.pieces:
            places.setdefault(piece.slot, []).append((register, piece))
    for slot in space.slots:
        held = places.get(slot.name, [])
        bits = sorted(bit for _, piece in held for bit in range(piece.low, piece.low + piece.size))
        if bits != list(range(slot.field.bits)):
            yield f"{slot.name} is not placed once with all its {slot.field.bits} bits"
        if len(held) > 1 and not slot.field.split:
            yield f"{slot.name} lies in {len(held)} registers and is not declared split"
        if slot.field.pinned is not None:
            byte, bit = slot.field.pinned
            at = [register.offset * 8 + piece.bit for register, piece in held if piece.low == 0]
            if at != [byte * 8 + bit]:
                yield f"{slot.name} is pinned to byte {byte}, bit {bit}, and lies elsewhere"


def _together_faults(space: Space, placed: SpaceLayout) -> Iterator[str]:
    """Fields of one group that are together share a register."""
    for first, second in combinations([slot for slot in space.slots if slot.field.together], 2):
        is_beside = first.group == second.group and first.steps[:-1] == second.steps[:-1]
        are_bound = is_beside and second.field.name in first.field.together
        if are_bound and placed.holding(first.name) != placed.holding(second.name):
            yield f"{first.name} and {second.name} are together, and lie in different registers"


def _area_faults(space: Space, placed: SpaceLayout, layout: Layout) -> Iterator[str]:
    if sorted(place.area for place in placed.areas) != sorted(area.name for area in space.areas):
        yield "its areas are not each placed once"
        return
    places = {place.area: place for place in placed.areas}
    for area in space.areas:
        place, inner = places[area.name], layout.spaces[area.space]
        if len(place.strides) != len(area.counts):
            yield f"{area.name} needs a stride for each of {area.counts}"
        if area.counts and place.strides and place.strides[-1] != inner.size:
            yield f"{area.name} has stride {place.strides[-1]}, and {area.space} has {inner.size} bytes"
        widest = max((register.width // 8 for register in inner.registers), default=1)
        if place.offset % widest or inner.size % widest:
            yield f"{area.name} is not aligned to {widest} bytes"


def _extent_faults(space: Space, placed: SpaceLayout, layout: Layout, bus: Bus) -> Iterator[str]:
    """Registers and areas lie apart, inside the space."""
    extents = sorted(_extents(space, placed, layout))
    for (_, end, name), (start, _, other) in pairwise(extents):
        if start < end:
            yield f"{name} and {other} overlap at byte {start}"
    last = max((end for _, end, _ in extents), default=0)
    if last > placed.size or (extents and extents[0][0] < 0):
        yield f"its registers end at byte {last}, and it has {placed.size}"
    if placed.size % (bus.width // 8):
        yield f"its size of {placed.size} bytes is no multiple of the bus width"


def _extents(space: Space, placed: SpaceLayout, layout: Layout) -> Iterator[Extent]:
    for register in placed.registers:
        for offset in (register.offset, *(view.offset for view in placed.views if view.slots[0] in register.slots)):
            for start in _starts(offset, register.counts, register.strides):
                yield start, start + register.width // 8, _named(register)
    places = {place.area: place for place in placed.areas}
    for area in space.areas:
        if area.name in places:
            place = places[area.name]
            for start in _starts(place.offset, area.counts, place.strides):
                yield start, start + layout.spaces[area.space].size, area.name


def _starts(offset: int, counts: Sequence[int], strides: Sequence[int]) -> Iterator[int]:
    for element in product(*map(range, counts)):
        yield offset + sum(index * stride for index, stride in zip(element, strides, strict=False))


def _device_faults(description: Description, layout: Layout) -> Iterator[str]:
    extents = sorted((d.address, d.address + layout.spaces[d.group].size, d.name) for d in description.devices)
    for (_, end, name), (start, _, other) in pairwise(extents):
        if start < end:
            yield f"devices {name} and {other} overlap at 0x{start:x}: {name} ends at 0x{end:x}"
    for device in description.devices:
        if device.address % (device.bus.width // 8):
            yield f"device {device.name} at 0x{device.address:x} is not aligned to its bus"


def _named(register: Register) -> str:
    return f"the register at 0x{register.offset:x} ({', '.join(piece.slot for piece in register.pieces)})"
