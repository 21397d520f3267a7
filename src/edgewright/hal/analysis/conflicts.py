"""The conflict graph of the bit field accesses of a function (S 6.4.2): every pair judged, with reasons for people.

Merged reads happen at the first of them and merged writes at the last; accesses conflict where that move is not
allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from ..language.cursors import spelling
from ..language.description import Description
from ..language.semantics import Nature
from .accesses import Access, Kind
from .functions import Assigned, Barrier, Conflict, Event, Function
from .paths import Paths


def may_alias(first: Access, second: Access) -> bool:
    """Whether both may be the same element of the same field: a[i] and a[j] may, a[1] and a[2] are not."""
    if (first.owner, first.field) != (second.owner, second.field):
        return False
    if first.device and second.device and first.device != second.device:
        return False
    is_same_start = first.device == second.device and _is_same_base(first, second)
    if not is_same_start or len(first.hops) != len(second.hops):
        return True
    for one, other in zip(first.hops, second.hops, strict=True):
        if one.member != other.member:
            return False
        values = [hop.index.value for hop in (one, other) if hop.index is not None]
        if None not in values and len(set(values)) == 2:
            return False
    return True


REACH = 128  # events between two accesses beyond which they stay apart: a value is not kept for so long
FAR = "too much code lies between them"
Stops = Callable[[Event, Access], str | None]


def names_of(access: Access) -> frozenset[str]:
    """The variables that the access's pointer and indices are made of."""
    return access.base.names.union(*(hop.index.names for hop in access.hops if hop.index))


@dataclass(frozen=True)
class Conflicts:
    """Judges pairs of accesses of one function."""

    function: Function
    description: Description
    _devices: dict[str, frozenset[str]] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def paths(self) -> Paths:
        return Paths(self.function.flow)

    def all(self) -> list[Conflict]:
        """The whole graph: as many pairs as there are accesses, squared. `colouring` does without most of them."""
        accesses = self.function.accesses
        pairs = ((first, second) for second in accesses for first in accesses[: second.number])
        return [Conflict(one.number, other.number, why) for one, other in pairs if (why := self.reason(one, other))]

    def nature(self, access: Access) -> Nature:
        return self.description.nature(access.owner, access.field)

    def acts(self, access: Access) -> bool:
        """Whether the access does something in the device beyond the value read or stored."""
        return self.is_never_merged(access) or self.is_flag(access)

    def is_never_merged(self, access: Access) -> bool:
        """Whether the access has an effect whatever its value, so that it is never merged with another."""
        nature = self.nature(access)
        return nature.reading_acts if access.kind is Kind.READ else nature.writing_acts

    def is_flag(self, access: Access) -> bool:
        """Whether it writes a field of which only ones act (w1c, w1s): such writes in a row may become one."""
        return access.kind is Kind.WRITE and self.nature(access).neutral and not self.is_never_merged(access)

    def reason(self, first: Access, second: Access) -> str | None:
        """Why the two must not become one; None where they may."""
        if first.kind is not second.kind:
            return self._mixed(first, second)
        is_alike = self.is_flag(first) and self.is_flag(second)
        if not is_alike and (self.acts(first) or self.acts(second)):
            acting = first if self.acts(first) else second
            return f"{'reading' if acting.kind is Kind.READ else 'writing'} {acting.field} has a side effect"
        if self.has_unordered and self.devices_of(first) != self.devices_of(second):
            return "they are of different devices, and what passes one may stop at another"
        if self.bond(first) != self.bond(second):
            return "only one of them is together with others"
        if self.leader(first) != self.leader(second):
            return "one is in a snapshot that the other is not in"
        if self.leader(first) is not None:
            return self._reads(first, second)
        if may_alias(first, second):
            same = self.same_field(first)
            if same is not None:
                return same
        if self.paths.guard(first.number) != self.paths.guard(second.number):
            return "one stands under a condition, ?: or loop of its own"
        if self.paths.loop(first.number) != self.paths.loop(second.number):
            return "one is in a loop that the other is not in"
        if second.number - first.number > REACH:
            return FAR
        return self._reads(first, second) if first.kind is Kind.READ else self._writes(first, second)

    def changes(self, access: Access) -> bool:
        """Whether two reads may differ though the function writes nothing in between."""
        return self.nature(access).may_differ

    def same_field(self, first: Access) -> str | None:
        """Why two accesses to the field of this one must not become one."""
        if first.kind is Kind.WRITE:
            return f"both write {first.field}"
        if self.changes(first) and self.leader(first) is None:
            return f"{first.field} may change between two reads"
        return None

    def _mixed(self, first: Access, second: Access) -> str | None:
        """A read and a write: they are never one access; the graph shows what also keeps their order."""
        if may_alias(first, second):
            return f"{second.field} is {_done(second)} after it was {_done(first)}"
        if second.kind is Kind.WRITE and first.number in self.paths.governed(second.number):
            return f"{first.field} decides whether {second.field} is written"
        for acting, other in ((first, second), (second, first)):
            if self.acts(acting) and self.touches(acting, other):
                return f"{_doing(acting)} {acting.field} affects {other.field}"
        return None

    def _reads(self, first: Access, second: Access) -> str | None:
        """Reads of which neither comes always before the other are not made one, but both may join a third."""
        if not self.paths.is_always_before(first.number, second.number):
            return None
        return self._hindered(self.stops_read, first, second, second)

    def _hindered(self, stops: Stops, first: Access, second: Access, moved: Access) -> str | None:
        """The reason of the first event between the two that the moved one cannot pass."""
        between = self.paths.between(first.number, second.number)
        reason = next((why for event in between if (why := stops(event, moved)) is not None), None)
        if reason is None and self.paths.distance(first.number, second.number) > REACH:
            return FAR
        return reason

    def stops_read(self, event: Event, access: Access) -> str | None:
        """Why a read cannot move up across the event."""
        if access.snapshot is not None and self.changes(access):
            return self._stops_in_snapshot(event, access)
        if not isinstance(event, Access):
            return self._stops(event, access)
        if event.kind is Kind.WRITE and may_alias(event, access):
            return f"{access.field} is written in between (line {event.place.line})"
        if self.are_unordered_devices(event, access):
            return self._affected(event, access) or self.ordered(event, access)
        if event.kind is Kind.WRITE and self.nature(access).by_hardware:
            return f"{event.field} is written in between, and {access.field} may depend on it (line {event.place.line})"
        if event.kind is Kind.READ and may_alias(event, access) and self.changes(access):
            return f"{access.field} may change, and is read in between (line {event.place.line})"
        if self.acts(event) and self.touches(event, access):
            return f"{_doing(event)} {event.field} in between affects {access.field} (line {event.place.line})"
        return self.ordered(event, access)

    def alters(self, event: Event, access: Access) -> bool:
        """Whether a field that only software changes may hold something else after the event, or be another one."""
        if not isinstance(event, Access):
            return self._stops(event, access) is not None
        is_written = event.kind is Kind.WRITE and may_alias(event, access)
        return is_written or (self.acts(event) and self.touches(event, access))

    def _stops_in_snapshot(self, event: Event, access: Access) -> str | None:
        """Why a read cannot be taken for one before the event: the function itself changes the field or the pointer."""
        if isinstance(event, Barrier) and not event.is_text:
            reached = names_of(access) & self._reached_by_pointers
            return f"{event.reason} in between may change {spelling(min(reached))}" if reached else None
        if not isinstance(event, Access):
            return self._stops(event, access)
        if event.kind is Kind.WRITE and may_alias(event, access):
            return f"{access.field} is written in between (line {event.place.line})"
        return self._affected(event, access)

    def leader(self, access: Access) -> int | None:
        """The read that opens the access's snapshot, by number; None outside of one.

        An access that cannot be taken for an earlier one opens a snapshot of its own, and each loop has its own.
        """
        return self.leaders.get(access.number)

    @cached_property
    def leaders(self) -> dict[int, int]:
        found: dict[int, int] = {}
        opened: dict[object, list[Access]] = {}
        for access in self.function.accesses:
            if access.snapshot is None or self.acts(access):
                continue
            near = opened.setdefault((access.snapshot, self.paths.loop(access.number)), [])
            first = next((one for one in near if self._is_served(one, access)), None)
            if first is None:
                near.append(access)
            found[access.number] = (first or access).number
        return found

    def _is_served(self, first: Access, second: Access) -> bool:
        """Whether a snapshot that the first opens serves the second too."""
        is_near = second.number - first.number <= REACH
        return (
            is_near
            and self.paths.is_always_before(first.number, second.number)
            and self._hindered(self.stops_read, first, second, second) is None
        )

    def _writes(self, first: Access, second: Access) -> str | None:
        number = first.number, second.number
        if not (self.paths.is_always_before(*number) and self.paths.is_always_after(*number)):
            return "one can happen without the other"
        return self._hindered(self.stops_write, first, second, first)

    def stops_write(self, event: Event, access: Access) -> str | None:
        """Why a write cannot move down across the event."""
        if not isinstance(event, Access):
            return self._stops(event, access)
        if may_alias(event, access):
            return f"{access.field} is {_done(event)} in between (line {event.place.line})"
        if self.are_unordered_devices(event, access):
            return self._affected(event, access) or self.ordered(event, access)
        if self.is_flag(access) and not self.is_flag(event):
            return f"{access.field} acts, and {event.field} is {_done(event)} in between (line {event.place.line})"
        is_setting = event.kind is Kind.WRITE and not self.stops_writes(event)
        if self.nature(access).by_hardware and is_setting and not self.are_together(event, access):
            return (
                f"{access.field} may start something, and {event.field} is written in between (line {event.place.line})"
            )
        is_passed = self.is_flag(access) or self.are_together(event, access) or self.may_go_along(event, access)
        if self.stops_writes(event) and not is_passed:
            return f"{_doing(event)} {event.field} in between may need it (line {event.place.line})"
        return self.ordered(event, access)

    def are_together(self, first: Access, second: Access) -> bool:
        """Whether both are accesses of one kind to fields of one set that are accessed at once."""
        known = self.description.field(first.owner, first.field).together
        is_beside = first.kind is second.kind and first.owner == second.owner and second.field in known
        is_pinned_beside = self._pinned_word(first) == self._pinned_word(second) != ()
        return (is_beside or is_pinned_beside) and _way(first) == _way(second)

    def may_go_along(self, event: Access, access: Access) -> bool:
        """Whether a write of what hardware changes too can be one access with an earlier write and a later one.

        Then none of the three passes another. It is a gate: where it is not part of their access the two stay apart.
        """
        are_stored = event.kind is access.kind is Kind.WRITE and not (self.acts(event) or self.acts(access))
        are_beside = _way(event) == _way(access) and _element(event) == _element(access)
        return are_stored and self.nature(event).by_hardware and are_beside

    def is_gate(self, access: Access) -> bool:
        """Whether a write keeps its order to all those that it can be one access with."""
        nature = self.nature(access)
        return self.is_flag(access) or nature.is_shared or nature.by_hardware

    def is_gate_for(self, event: Access, access: Access) -> bool:
        """Whether an earlier write can move down across the event only together with it."""
        is_written = event.kind is access.kind is Kind.WRITE
        return is_written and (self.may_go_along(event, access) or self.is_seen_with(event, access))

    def _pinned_word(self, access: Access) -> tuple[object, ...]:
        """The register that a write has to fill, because pins put fields there that hardware changes too."""
        if access.kind is Kind.READ or self.acts(access):
            return ()
        words = self.description.pinned_words.get(access.owner, {})
        word = words.get(access.field)
        is_changed = any(
            other == word and nature.by_hardware and nature.kept and not nature.acts
            for name, other in words.items()
            if (nature := self.description.nature(access.owner, name))
        )
        return (access.owner, word) if is_changed else ()

    def bond(self, access: Access) -> tuple[object, ...]:
        """The set of fields that the access's is together with, if any: they become one before all others."""
        known = self.description.field(access.owner, access.field).together
        return (access.owner, *known) if known else self._pinned_word(access)

    def stops_writes(self, event: Access) -> bool:
        """Whether no write can move down across an access, whatever it writes."""
        return self.acts(event) or self.nature(event).by_hardware

    def ordered(self, event: Access, moved: Access) -> str | None:
        """Why an access keeps its place to another one that has nothing to do with its field."""
        if self.is_shared(event) != self.is_shared(moved):
            shared = event if self.is_shared(event) else moved
            return f"an interrupt routine looks at {shared.field} (line {event.place.line})"
        if not self.is_one_device(event, moved) and not self._may_be_reordered(event, moved):
            return f"another device is accessed in between (line {event.place.line})"
        return None

    def is_seen_with(self, first: Access, second: Access) -> bool:
        """Whether the order of the two can be observed from outside."""
        if (self.is_shared(first) and self.is_shared(second)) or (self.is_flag(first) and self.is_flag(second)):
            return True
        are_reads = (
            first.kind is Kind.READ and second.kind is Kind.READ and not self.are_unordered_devices(first, second)
        )
        return are_reads and self.nature(first).by_hardware and self.nature(second).by_hardware

    def is_shared(self, access: Access) -> bool:
        return self.nature(access).is_shared

    def is_one_device(self, first: Access, second: Access) -> bool:
        """Whether both are certain to be accesses of one device."""
        if _is_same_base(first, second):  # what it means has not changed, or nothing would move
            return True
        return len(self.devices_of(first) | self.devices_of(second)) < 2

    def are_unordered_devices(self, first: Access, second: Access) -> bool:
        """Whether the two certainly access different devices, of which one is declared unordered."""
        if not self.has_unordered:
            return False
        return self.devices_of(first).isdisjoint(self.devices_of(second)) and self._may_be_reordered(first, second)

    def _may_be_reordered(self, first: Access, second: Access) -> bool:
        """Whether the order of the two does not matter if they access different devices."""
        pairs = [(one, other) for one in self.devices_of(first) for other in self.devices_of(second)]
        return all(one == other or self._unordered & {one, other} for one, other in pairs)

    @property
    def has_unordered(self) -> bool:
        return bool(self._unordered)

    @cached_property
    def has_exceptions(self) -> bool:
        """Whether some write may pass what stops all others."""
        groups = self.description.groups.values()
        natures = [self.description.nature(group.name, f.name) for group in groups for f in group.fields]
        is_any_open = any(nature.by_hardware and nature.kept and not nature.acts for nature in natures)
        is_any_bound = any(f.together or f.pinned for group in groups for f in group.fields)
        return self.has_unordered or is_any_open or is_any_bound

    @cached_property
    def _unordered(self) -> frozenset[str]:
        return frozenset(device.name for device in self.description.devices if device.unordered)

    def _affected(self, event: Access, access: Access) -> str | None:
        """Why an access of another device matters all the same: it says that it touches the field."""
        field = self.description.field(event.owner, event.field)
        targets = field.rse if event.kind is Kind.READ else field.wse
        if self.description.touched(targets, access.owner, access.field):
            return f"{_doing(event)} {event.field} in between affects {access.field} (line {event.place.line})"
        return None

    def devices_of(self, access: Access) -> frozenset[str]:
        """The devices that the access may be one of."""
        if access.device is not None:
            return frozenset({access.device})
        if access.group not in self._devices:
            description = self.description
            self._devices[access.group] = frozenset(
                device.name for device in description.devices if access.group in description.inside(device.group)
            )
        return self._devices[access.group]

    def _stops(self, event: Barrier | Assigned, access: Access) -> str | None:
        if isinstance(event, Barrier):
            return f"{event.reason} in between (line {event.place.line})"
        if reached := names_of(access) & self.assigned(event):
            return f"{spelling(min(reached)).replace('*', 'memory')} changes in between"
        return None

    def assigned(self, event: Assigned) -> frozenset[str]:
        """The variables that may have another value after the event."""
        return self._reached_by_pointers if event.name == "*" else frozenset({event.name})

    @cached_property
    def _reached_by_pointers(self) -> frozenset[str]:
        return self.function.escaping | {"*"}

    def touches(self, acting: Access, other: Access) -> bool:
        """Whether an acting access may change, or depend on the order of, the other."""
        field = self.description.field(acting.owner, acting.field)
        targets = field.rse if acting.kind is Kind.READ else field.wse
        is_open = not targets or any(
            (target.group, target.member) == (acting.owner, acting.field) for target in targets
        )
        if is_open and acting.kind is Kind.WRITE:
            return True
        return self.nature(other).by_hardware or self.description.touched(targets, other.owner, other.field)


def _is_same_base(first: Access, second: Access) -> bool:
    return (first.base.text, first.base.names) == (second.base.text, second.base.names)


def _way(access: Access) -> tuple[object, ...]:
    """How an access gets to the group that declares its field."""
    hops = [(hop.member, hop.index and hop.index.text) for hop in access.hops[:-1]]
    return access.base.text, access.base.names, *hops


def _element(access: Access) -> str | None:
    index = access.hops[-1].index
    return None if index is None else index.text


def _done(access: Access) -> str:
    return "read" if access.kind is Kind.READ else "written"


def _doing(access: Access) -> str:
    return "reading" if access.kind is Kind.READ else "writing"
