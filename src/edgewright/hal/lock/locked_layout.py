"""The layout that a lock file asks for: known fields stay where they are, new ones come after all that was there.

A lock names fields by their paths, so that it holds however groups are flattened now: each space is fitted again to the
places of its elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from ...errors import InputError
from ..analysis.spaces import Area, Joint, Slot, Space, Spaces
from ..language.description import Description
from ..layout.assembly import space_size
from ..layout.layout import AreaPlace, Layout, Register, SpaceLayout, WriteView, elaborate, offset_of
from ..layout.rules import Rules
from .lock_file import RELOCK, Lock, LockedPiece, pattern
from .register_fit import ElementPlace, Irregular, KnownPlaces, fit_area, fit_slot, prefix_of

Arrange = Callable[[Spaces], Layout]  # for spaces of new slots alone


def locked(description: Description, spaces: Spaces, lock: Lock, arrange: Arrange) -> Layout:
    """The layout of `spaces` with everything that `lock` knows in its place; `arrange` lays out what is new."""
    if troubles := list(contradictions(description, lock)):
        raise contradicted(lock, "; ".join(troubles))
    try:
        return _Locking(description, spaces, lock, arrange).layout()
    except Irregular as trouble:
        raise contradicted(lock, str(trouble)) from trouble


def contradicted(lock: Lock, trouble: str) -> InputError:
    """The error for a source that does not go with the lock."""
    if lock.is_fixed:
        return InputError(f"the register map in '{lock.path}' does not allow what the source does: {trouble}")
    return InputError(f"lock file '{lock.path}' contradicts the source: {trouble}; {RELOCK}")


def contradictions(description: Description, lock: Lock) -> Iterator[str]:
    """What the source says otherwise: devices that moved or changed, fields of another size, longer arrays."""
    for device in description.devices:
        group, address = lock.devices.get(device.name, (device.group, device.address))
        if group != device.group:
            yield f"{device.place}: device '{device.name}' is a {device.group}, not a {group}"
        if address != device.address and not device.is_mapped:
            yield f"{device.place}: device '{device.name}' is at 0x{device.address:X}, not 0x{address:X}"
    for name, group_now in description.groups.items():
        for field in group_now.fields:
            bits, count = lock.fields.get(name, {}).get(field.name, (field.bits, field.count))
            if bits != field.bits:
                yield f"{field.place}: '{name}::{field.name}' has {field.bits} bits, not {bits}"
            if (count is None) != (field.count is None) or (field.count or 0) > (count or 0):
                yield f"{field.place}: '{name}::{field.name}' has {_elements(field.count)}, not {_elements(count)}"


def _elements(count: int | None) -> str:
    return "no elements (it is no array)" if count is None else f"{count} elements"


@dataclass(frozen=True)
class _Locking:
    description: Description
    spaces: Spaces
    lock: Lock
    arrange: Arrange

    def layout(self) -> Layout:
        """All spaces, children before parents: these must know how large the children are."""
        found: dict[str, SpaceLayout] = {}
        for name, space in self.spaces.items():
            found[name] = self._space(space, self._known(name) or KnownPlaces(), found)
        layout = Layout(found, "lock", is_fixed=self.lock.is_fixed)
        self._check(layout)
        return layout

    def _known(self, name: str) -> KnownPlaces | None:
        """Where the fields of a space lie from its start; None for a space that the lock knows nothing of."""
        if name in self.lock.spaces:
            return expanded(self.lock, name)
        for parent in self.spaces.values():
            for area in parent.areas:
                if area.space == name and (around := self._known(parent.name)):
                    return around.inside(prefix_of(area, (0,) * len(area.counts)))
        return None

    def _space(self, space: Space, known: KnownPlaces, placed: Mapping[str, SpaceLayout]) -> SpaceLayout:
        fitted = {slot.name: fit_slot(slot, known) for slot in space.slots}
        registers = _joined([register for found in fitted.values() for register in found])
        areas = [p for area in space.areas if (p := fit_area(area, placed[area.space].size, known))]
        end = self._end(space, registers, areas, placed)
        added = self._added(space, tuple(slot for slot in space.slots if not fitted[slot.name]), end)
        end = max([end, *(register.end for register in added)])
        for area in (area for area in space.areas if area.name not in {place.area for place in areas}):
            areas.append(_appended(area, end, placed))
            end = _area_end(area, areas[-1], placed)
        words = space_size(end, self.description.bus_of(space.name), False)
        size = max(words, self._distance(space.name), self.description.stride_of(space.name) or 0)
        views = tuple(self._views(space, registers))
        return SpaceLayout(space.name, (*registers, *added), tuple(areas), size, views)

    def _views(self, space: Space, registers: Sequence[Register]) -> Iterator[WriteView]:
        """The views of a space whose fields are there and reached as before; the places of others stay free."""
        slots = {pattern(slot.steps): slot.name for slot in space.slots}
        known = self.lock.spaces[space.name].views if space.name in self.lock.spaces else ()
        for offset, names in known:
            found = tuple(slots[name] for name in names if name in slots)
            is_there = found and len(found) == len(names) and self.description.may_have_views(space.name)
            if is_there and any(register.lanes == 1 and set(found) < register.slots for register in registers):
                yield WriteView(offset, found)

    def _distance(self, name: str) -> int:
        """How far apart elements of a group lie where it is an array in another; 0 where it is in none."""
        found = [0]
        for parent in self.spaces.values():
            for area in parent.areas:
                if area.space == name and area.counts and area.counts[-1] > 1 and (around := self._known(parent.name)):
                    first = (0,) * len(area.counts)
                    starts = [around.start(prefix_of(area, (*first[:-1], i))) for i in range(2)]
                    found.append((starts[1] or 0) - (starts[0] or 0))
        return max(found)

    def _check(self, layout: Layout) -> None:
        """Nothing has moved: every field of every device, one by one."""
        groups = {device.name: device.group for device in self.description.devices}
        known = {name: expanded(self.lock, name).fields for name in set(groups.values()) & set(self.lock.spaces)}
        for register in elaborate(self.description, self.spaces, layout):
            if register.is_view:
                continue
            before = known.get(groups[register.device], {})
            for at in register.fields:
                place = register.offset, register.width, at.bit, at.size, at.low
                parts = [(p.offset, p.width, p.bit, p.size, p.low) for p in before.get(at.name, ())]
                if parts and place not in parts:
                    raise Irregular(f"'{at.name}' of {register.device} cannot stay where it was")

    def _end(
        self, space: Space, registers: Sequence[Register], areas: Sequence[AreaPlace], placed: Mapping[str, SpaceLayout]
    ) -> int:
        """One past all that is or was in a space."""
        before = self.lock.spaces[space.name].size if space.name in self.lock.spaces else 0
        by_name = {area.name: area for area in space.areas}
        ends = [_area_end(by_name[place.area], place, placed) for place in areas]
        return max([before, *ends, *(register.end for register in registers)])

    def _added(self, space: Space, new: tuple[Slot, ...], end: int) -> tuple[Register, ...]:
        """Registers for new slots, laid out by themselves and moved behind the rest."""
        if not new:
            return ()
        if self.lock.is_fixed:
            raise Irregular(f"'{new[0].name}' of {space.name} is not in the map, and nothing can be added to it")
        made = self.arrange({space.name: Space(space.name, new)}).spaces[space.name]
        start = space_size(end, self.description.bus_of(space.name), False) if end else 0
        return tuple(replace(register, offset=start + register.offset) for register in made.registers)


def with_new_views(description: Description, spaces: Spaces, layout: Layout, joints: Sequence[Joint]) -> Layout:
    """The layout with views behind all else for writes that must not put back what is beside them.

    Only what lies in no array can grow: the elements of others have their distance.
    """
    inner = {area.space for space in spaces.values() for area in space.areas}
    placed = dict(layout.spaces)
    for name, space in ((name, space) for name, space in spaces.items() if name not in inner):
        rules = Rules.of(description, space, joints, views=True)
        for register in layout.spaces[name].registers:
            slots = [piece.slot for piece in register.pieces]
            is_ours = register.lanes == 1 and len(slots) > 1 and not any(rules.slots[s].field.pinned for s in slots)
            if not (rules.views and is_ours) or not any(map(rules.frail, slots)):
                continue
            for written in rules.partial(slots):
                found = placed[name]
                if found.view_of(register, written) is None:
                    view, end = WriteView(found.size, written), replace(register, offset=found.size).end
                    placed[name] = replace(found, views=(*found.views, view), size=space_size(end, rules.bus, False))
    return replace(layout, spaces=placed)


def expanded(lock: Lock, name: str) -> KnownPlaces:
    """Every element of every field of a locked space, with the places of its parts."""
    found: dict[str, list[ElementPlace]] = {}
    starts: dict[str, int] = {}
    _expand(lock, name, 0, "", found, starts)
    return KnownPlaces({path: tuple(sorted(parts, key=lambda part: part.low)) for path, parts in found.items()}, starts)


def _expand(
    lock: Lock, name: str, start: int, prefix: str, found: dict[str, list[ElementPlace]], starts: dict[str, int]
) -> None:
    for register in lock.spaces[name].registers:
        for element in product(*map(range, register.counts)):
            offset = start + register.offset + offset_of(element, register.strides)
            for piece in register.pieces:
                for path, bit in _lanes(piece, element):
                    at = ElementPlace(offset, register.width, bit, piece.size, piece.low, piece.lanes)
                    found.setdefault(prefix + path, []).append(at)
    for area in lock.spaces[name].areas:
        for element in product(*map(range, area.counts)):
            inner = f"{prefix}{_numbered(area.name, element)}."
            starts[inner] = start + area.offset + offset_of(element, area.strides)
            _expand(lock, area.group, starts[inner], inner, found, starts)


def _lanes(piece: LockedPiece, element: tuple[int, ...]) -> Iterator[tuple[str, int]]:
    """The elements in one register: path and first bit."""
    for lane in range(piece.lanes):
        index = element if piece.lanes == 1 else (*element[:-1], element[-1] * piece.lanes + lane)
        if all(i < count for i, count in zip(index, piece.counts, strict=True)):
            yield _numbered(piece.name, index), piece.bit + lane * piece.size


def _numbered(name: str, index: Sequence[int]) -> str:
    """The path with numbers for its empty brackets."""
    for number in index:
        name = name.replace("[]", f"[{number}]", 1)
    return name


def _joined(registers: Sequence[Register]) -> tuple[Register, ...]:
    """Pieces of the same registers put together; registers that overlap otherwise cannot be told apart any more."""
    found: dict[object, Register] = {}
    for register in registers:
        key = register.offset, register.width, register.counts, register.strides, register.lanes
        same = found.get(key)
        found[key] = replace(register, pieces=(*same.pieces, *register.pieces)) if same else register
    bytes_of: dict[int, Register] = {}
    for register in found.values():
        for byte in _bytes(register):
            if (other := bytes_of.setdefault(byte, register)) is not register:
                names = f"'{other.pieces[0].slot}' and '{register.pieces[0].slot}'"
                raise Irregular(f"{names} share a register, and only one of them is indexed at run time now")
    return tuple(sorted(found.values(), key=lambda register: register.offset))


def _bytes(register: Register) -> Iterator[int]:
    for element in product(*map(range, register.counts)):
        start = register.offset + offset_of(element, register.strides)
        yield from range(start, start + register.width // 8)


def _appended(area: Area, end: int, placed: Mapping[str, SpaceLayout]) -> AreaPlace:
    size = placed[area.space].size
    stride, strides = size, list[int]()
    for count in reversed(area.counts):
        strides.insert(0, stride)
        stride *= count
    return AreaPlace(area.name, -(-end // size) * size if end else 0, tuple(strides))


def _area_end(area: Area, place: AreaPlace, placed: Mapping[str, SpaceLayout]) -> int:
    last = offset_of([count - 1 for count in area.counts], place.strides)
    return place.offset + last + placed[area.space].size
