"""What a driver's source says about its peripherals: groups of bit fields, their attributes, the devices (S 6.3).

Where a field lies is not part of it: that is a Layout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

from ...errors import EdgewrightError
from .semantics import Nature

Span = tuple[int, int]  # bytes of a source file, half open


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place in a source file, as compilers write it."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Mode(Enum):
    """What software may do with a field."""

    RW = "rw"
    RO = "ro"
    WO = "wo"


class Protection(Enum):
    """Which software may access a field, in the words of CMSIS-SVD."""

    SECURE = "secure"
    NON_SECURE = "non_secure"
    PRIVILEGED = "privileged"

    def __str__(self) -> str:
        return self.value.replace("_", "-")


@dataclass(frozen=True, slots=True)
class EffectTarget:
    """What a side effect touches: a field of a group, or with no member all of the group."""

    group: str
    member: str | None = None

    def __str__(self) -> str:
        return self.group if self.member is None else f"{self.group}::{self.member}"


@dataclass(frozen=True, slots=True)
class Field:
    """A bit field, or an array of them; `rse` and `wse` are what reading and writing it touches (S 6.3.2)."""

    name: str
    bits: int
    place: Place
    count: int | None = None  # elements, for an array
    mode: Mode = Mode.RW
    rse: tuple[EffectTarget, ...] = ()
    wse: tuple[EffectTarget, ...] = ()
    while_zero: tuple[EffectTarget, ...] = ()  # it may be written only while these fields are 0
    w1c: bool = False  # writing 1 clears
    w1s: bool = False  # writing 1 sets
    clear_on_read: bool = False
    fifo: bool = False  # reading takes the next value, writing appends one
    by_hardware: bool = False  # `hw`: the peripheral writes it too
    reset: int = 0
    shared_with_isr: bool = False
    unguarded: bool = False  # an interrupt routine was found to write it, and nothing marks it
    pinned: tuple[int, int] | None = None  # byte from the start of its group, bit
    split: bool = False  # wider than the bus, and may be accessed in parts
    together: tuple[str, ...] = ()  # all fields of its group that are accessed at once, itself included
    gathers: tuple[str, ...] = ()  # a word with one bit of each element: the array, and the field of its groups
    protection: Protection | None = None  # of its register: fields that differ in it never share one
    is_gathered: bool = False  # its elements are bits of a word, and have no other place
    about: str = field(default="", compare=False)  # the comment beside it


@dataclass(frozen=True, slots=True)
class Child:
    """A group inside a group, or an array of them."""

    name: str
    group: str
    place: Place
    count: int | None = None
    stride: int | None = None  # bytes from one element to the next, where the source states it


@dataclass(frozen=True)
class Group:
    name: str
    members: tuple[Field | Child, ...]
    place: Place
    about: str = field(default="", compare=False)  # the comment above it

    def member(self, name: str) -> Field | Child:
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> Mapping[str, Field | Child]:
        return {member.name: member for member in reversed(self.members)}

    @property
    def fields(self) -> Iterator[Field]:
        return (member for member in self.members if isinstance(member, Field))

    @property
    def children(self) -> Iterator[Child]:
        return (member for member in self.members if isinstance(member, Child))

    def with_fields(self, changed: Callable[[Field], Field]) -> Group:
        """The group with its own fields changed; groups inside stay."""
        return replace(self, members=tuple(changed(m) if isinstance(m, Field) else m for m in self.members))


@dataclass(frozen=True, slots=True)
class Bus:
    """How registers can be accessed: whole words, and down to `narrowest` bits where byte lanes are declared."""

    width: int = 32
    narrowest: int = 32


@dataclass(frozen=True, slots=True)
class Device:
    """A peripheral at an address: what make_device declares."""

    name: str
    group: str
    address: int
    place: Place
    bus: Bus = Bus()
    unordered: bool = False  # its accesses need not keep their order to those of other devices
    is_mapped: bool = False  # its address is known at run time: this one stands for it in documents and verification
    in_memory: bool = False  # it is memory: what is written at an address is read there, and nowhere else

    @property
    def where(self) -> str:
        return "where it is mapped" if self.is_mapped else f"at 0x{self.address:08x}"


@dataclass(frozen=True)
class Description:
    groups: Mapping[str, Group]  # in the order of their definitions: children before parents
    devices: tuple[Device, ...]
    _natures: dict[tuple[str, str], Nature] = field(init=False, default_factory=dict, compare=False, repr=False)

    def field(self, group: str, name: str) -> Field:
        member = self.groups[group].member(name)
        assert isinstance(member, Field)
        return member

    def device(self, name: str) -> Device:
        return next(device for device in self.devices if device.name == name)

    @cached_property
    def pinned_words(self) -> Mapping[str, Mapping[str, int]]:
        """By group, the registers that pins put fields into, counted from the start of the group."""
        found = {}
        for name, group in self.groups.items():
            if pinned := [(field.name, field.pinned) for field in group.fields if field.pinned]:
                width = self.bus_of(name).width
                found[name] = {field: (8 * byte + bit) // width for field, (byte, bit) in pinned}
        return found

    def bus_of(self, group: str) -> Bus:
        """The bus that every device holding such a group can do: the narrowest width, the widest least access."""
        buses = [device.bus for device in self.devices if group in self.inside(device.group)] or [Bus()]
        return Bus(min(bus.width for bus in buses), max(bus.narrowest for bus in buses))

    def may_have_views(self, group: str) -> bool:
        """Whether registers may have second addresses: not in memory, nor where a stride leaves no room for them."""
        is_memory = any(device.in_memory and group in self.inside(device.group) for device in self.devices)
        return not is_memory and self.stride_of(group) is None

    def stride_of(self, group: str) -> int | None:
        """The bytes from one such group to the next in an array, where some array states it."""
        children = (child for home in self.groups.values() for child in home.children if child.group == group)
        return next((child.stride for child in children if child.stride is not None), None)

    def inside(self, group: str) -> frozenset[str]:
        """The group and all groups in it."""
        found = {group}
        for child in self.groups[group].children:
            found |= self.inside(child.group)
        return frozenset(found)

    def touched(self, targets: tuple[EffectTarget, ...], group: str, name: str) -> bool:
        """Whether a field is among the targets of a side effect, by itself or with its group."""
        return any(
            name == target.member if target.member else group in self.inside(target.group)
            for target in targets
            if target.member is None or target.group == group
        )

    def nature(self, group: str, name: str) -> Nature:
        """What accesses to a field do, given its attributes and those of all others."""
        if (group, name) not in self._natures:
            self._natures[group, name] = self._nature(group, name)
        return self._natures[group, name]

    def _nature(self, group: str, name: str) -> Nature:
        field, own = self.field(group, name), EffectTarget(group, name)
        flags = field.w1c or field.w1s
        changes = field.by_hardware or flags or field.clear_on_read or field.fifo or field.mode is Mode.RO
        changes = changes or own in field.rse
        return Nature(
            reading_acts=any(target != own for target in field.rse) or field.clear_on_read or field.fifo,
            writing_acts=bool(field.wse) or field.fifo,
            changes=changes,
            by_hardware=changes or bool(field.while_zero) or self._is_written_for(group, name),
            neutral=field.mode is Mode.RO or flags,
            readable=field.mode is not Mode.WO,
            writable=field.mode is not Mode.RO,
            is_locked=bool(field.while_zero),
            unguarded=field.unguarded,
            is_shared=field.shared_with_isr,
        )

    def _is_written_for(self, group: str, name: str) -> bool:
        """Whether some write makes the peripheral change the field, at once or later.

        A read that touches it (rse) acts there and then, so that what is read and put back afterwards is its new value.
        """
        return any(
            self.touched(other.wse, group, name)
            for home in self.groups.values()
            for other in home.fields
            if other.wse and (home.name, other.name) != (group, name)
        )


@dataclass(frozen=True, slots=True, order=True)
class Refusal:
    """One thing in the source that cannot be laid out or rewritten."""

    place: Place
    what: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.what}" + (f"; {self.hint}" if self.hint else "")


class Refused(EdgewrightError):
    """A driver that breaks a rule of the language; `refusals` has every place."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        self.refusals = tuple(sorted(set(refusals)))
        super().__init__("\n".join(map(str, self.refusals)))
