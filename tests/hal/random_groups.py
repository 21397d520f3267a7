"""Random bit field groups and devices for driver sources; what functions do with them is left to hal_random_code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

T = TypeVar("T")
FIRST_DEVICE = 0x50000000  # below, a Python that is not position independent may have its heap
# Attributes of a field, with how often they are drawn; {own} is the field, {other} one beside it, {far} one elsewhere.
FLAVOURS: dict[tuple[str, ...], int] = {
    (): 60,
    ("reset_value({reset})",): 8,
    ("shared_with_isr",): 3,
    ("hw",): 4,
    ("ro",): 5,
    ("ro", "hw"): 1,
    ("rse({own})",): 4,
    ("ro", "rse({own})"): 3,
    ("ro", "rse({other})"): 2,
    ("rse({other})",): 2,
    ("ro", "rse({far})"): 1,
    ("wse({own})",): 3,
    ("wse({other})",): 3,
    ("wse({own}, {other})",): 1,
    ("wse({far})",): 2,
    ("rse({own})", "wse({other})"): 1,
    ("wo",): 3,
    ("wo", "wse({own})"): 2,
    ("w1c",): 3,
    ("w1s",): 2,
    ("clear_on_read",): 1,
    ("ro", "clear_on_read"): 2,
    ("fifo",): 1,
    ("ro", "fifo"): 1,
    ("wo", "fifo"): 1,
}
BITS = {1: 14, 2: 6, 3: 5, 4: 5, 5: 2, 7: 2, 8: 8, 9: 1, 12: 3, 15: 1, 16: 4, 17: 1, 20: 1, 24: 2, 31: 1, 32: 4}
WORDS = (
    "mode",
    "div",
    "en",
    "sel",
    "len",
    "irq",
    "level",
    "cfg",
    "data",
    "state",
    "mask",
    "gain",
    "out",
    "in",
    "go",
)
BUSES = {(32, 32): 12, (32, 8): 2, (32, 16): 1, (16, 16): 1}
_NEVER_UPDATED = ("w1c", "w1s", "clear_on_read", "fifo", "shared_with_isr")


@dataclass(frozen=True, slots=True)
class FieldDecl:
    name: str
    bits: int
    marks: tuple[str, ...] = ()  # attributes as written
    count: int | None = None

    @property
    def readable(self) -> bool:
        return "wo" not in self.marks

    @property
    def writable(self) -> bool:
        return "ro" not in self.marks

    @property
    def reading_acts(self) -> bool:
        return self._has("clear_on_read", "fifo") or any(m.startswith("rse") for m in self.marks)

    @property
    def is_quiet(self) -> bool:
        """Reading it twice, or beside another, can make no difference."""
        return self.readable and not self.reading_acts and not self._has("ro", "hw", "w1c", "w1s")

    @property
    def is_flag(self) -> bool:
        """Hardware changes it, and reading it does nothing."""
        acts = any(mark.startswith("rse") and mark != f"rse({self.name})" for mark in self.marks)
        return self.readable and not self.is_quiet and not acts and not self._has("clear_on_read", "fifo")

    @property
    def is_updatable(self) -> bool:
        """Whether it may stand left of |= or ++."""
        acts = any(mark.startswith("rse") and mark != f"rse({self.name})" for mark in self.marks)
        return self.readable and self.writable and not acts and not self._has(*_NEVER_UPDATED)

    @property
    def is_plain(self) -> bool:
        return all(mark.startswith(("reset_value", "shared", "pin", "split")) for mark in self.marks)

    def _has(self, *marks: str) -> bool:
        return any(mark in self.marks for mark in marks)

    def __str__(self) -> str:
        kind = "bit" if self.bits == 1 else f"uint{self.bits}"
        array = "" if self.count is None else f"[{self.count}]"
        return " ".join((kind, *self.marks, self.name + array)) + ";"


@dataclass(frozen=True, slots=True)
class ChildDecl:
    name: str
    group: str
    count: int | None = None

    def __str__(self) -> str:
        return f"bfGroup {self.group} {self.name}" + ("" if self.count is None else f"[{self.count}]") + ";"


@dataclass(frozen=True, slots=True)
class GroupDecl:
    name: str
    members: tuple[FieldDecl | ChildDecl, ...]

    def __str__(self) -> str:
        inside = "".join(f"    {member}\n" for member in self.members)
        return f"bfGroup {self.name} {{\n{inside}}};\n"


@dataclass(frozen=True, slots=True)
class DeviceDecl:
    name: str
    group: str
    address: int
    bus: tuple[int, int] = (32, 32)
    is_unordered: bool = False

    def __str__(self) -> str:
        free = f"unordered({self.name});\n" if self.is_unordered else ""
        lane = "" if self.bus == (32, 32) else f"bus({self.name}, {self.bus[0]}, {self.bus[1]});\n"
        return f"make_device({self.group}, {self.name}, {self.address:#x});\n{lane}{free}"


@dataclass(frozen=True, slots=True)
class World:
    """The peripherals of a driver."""

    groups: tuple[GroupDecl, ...]
    devices: tuple[DeviceDecl, ...]

    def group(self, name: str) -> GroupDecl:
        return next(group for group in self.groups if group.name == name)

    def inside(self, name: str) -> set[str]:
        children = (m for m in self.group(name).members if isinstance(m, ChildDecl))
        return {name}.union(*(self.inside(child.group) for child in children))

    def reachable(self) -> list[str]:
        """Groups that some device holds."""
        return sorted(set().union(*(self.inside(device.group) for device in self.drawn)))

    @property
    def drawn(self) -> tuple[DeviceDecl, ...]:
        """The devices whose fields may be accessed in any way: not those of which some are together."""
        return tuple(device for device in self.devices if device.group != CLOCK)

    def elements(self, name: str, prefix: str = "") -> list[tuple[str, FieldDecl]]:
        """Every field of a group as "pads[3].dir", in the order of the declarations."""
        found = []
        for member in self.group(name).members:
            for text in _spelled(prefix + member.name, member.count):
                match member:
                    case FieldDecl():
                        found.append((text, member))
                    case ChildDecl(group=inner):
                        found += self.elements(inner, f"{text}.")
        return found


def _spelled(name: str, count: int | None) -> list[str]:
    return [name] if count is None else [f"{name}[{i}]" for i in range(count)]


def pick(rng: Random, weights: dict[T, int]) -> T:
    return rng.choices(list(weights), list(weights.values()))[0]


CLOCK = "Clock"


def with_words(rng: Random, world: World) -> World:
    """The world with a device whose fields are together, and some whose accesses keep no order to others."""
    kind = rng.choice(((), ("hw",)))
    fields = [FieldDecl("hours", 4, (*kind, "together(minutes, seconds)"))]
    fields += [FieldDecl("minutes", 6, kind), FieldDecl("seconds", 6, kind), FieldDecl("running", 1)]
    fields += [FieldDecl("low", 8, ("ro",)), FieldDecl("high", 8, ("ro", "together(low)"))]
    rng.shuffle(fields)
    clock = DeviceDecl("clk", CLOCK, FIRST_DEVICE + 0x10000 * len(world.devices), world.devices[0].bus)
    devices = [replace(device, is_unordered=rng.random() < 0.4) for device in (*world.devices, clock)]
    return World((*world.groups, GroupDecl(CLOCK, tuple(fields))), tuple(devices))


def draw_world(rng: Random, plain: bool = False) -> World:
    """One to three devices over two to five groups; with `plain`, all fields just hold what was written."""
    bus = pick(rng, BUSES)
    quiet = 1.0 if plain else rng.choice((0.0, 0.0, 0.5, 0.9))
    groups: list[GroupDecl] = []
    for number in range(rng.randint(2, 5)):
        groups.append(_group(rng, f"G{number}", groups, bus[0], quiet))
    roots = [rng.choice(groups[-2:]) for _ in range(rng.choice((1, 1, 2, 2, 3)))]
    devices = [DeviceDecl(f"dev{n}", root.name, FIRST_DEVICE + 0x10000 * n, bus) for n, root in enumerate(roots)]
    return World(tuple(groups), tuple(devices))


def _group(rng: Random, name: str, earlier: list[GroupDecl], width: int, quiet: float) -> GroupDecl:
    names = _names(rng, rng.randint(2, 9))
    members: list[FieldDecl | ChildDecl] = []
    for own in names:
        others = [other for other in names if other != own]
        members.append(_field(rng, own, others, _far(rng, earlier), width, quiet))
    for number, child in enumerate(rng.sample(earlier, min(len(earlier), rng.choice((0, 1, 1, 2))))):
        count = rng.choice((None, None, 2, 3, 4))
        if _size(earlier, child) * (count or 1) <= 60:
            members.insert(rng.randint(0, len(members)), ChildDecl(f"part{number}", child.name, count))
    return GroupDecl(name, _pinned(rng, tuple(members)))


def _names(rng: Random, count: int) -> list[str]:
    """Names of fields; some look like what flattening makes of nested ones."""
    found = [f"{word}{rng.choice(('', '', '_a', '2'))}" for word in rng.sample(WORDS, count)]
    if rng.random() < 0.1:
        found[0] = f"part0_{rng.choice(('0_', ''))}{found[-1]}"
    return found


def _far(rng: Random, earlier: list[GroupDecl]) -> str | None:
    """A target in another group: a field of it, or all of it."""
    if not earlier:
        return None
    group = rng.choice(earlier)
    fields = [member.name for member in group.members if isinstance(member, FieldDecl)]
    return rng.choice((group.name, f"{group.name}::{rng.choice(fields)}"))


def _field(rng: Random, own: str, others: list[str], far: str | None, width: int, quiet: float) -> FieldDecl:
    bits = pick(rng, BITS) if rng.random() < 0.97 else rng.choice((33, 40, 48, 64))
    flavour = () if rng.random() < quiet else pick(rng, FLAVOURS)
    words = {
        "own": own,
        "other": rng.choice(others),
        "far": far or own,
        "reset": f"{rng.getrandbits(min(bits, 31))}u",
    }
    marks = tuple(mark.format(**words) for mark in flavour)
    if bits > width:
        marks = ("split",)  # parts of a field that acts would act one by one
    count = rng.choice((2, 3, 4, 8)) if rng.random() < 0.15 else None
    return FieldDecl(own, bits, marks, count)


def _pinned(rng: Random, members: tuple[FieldDecl | ChildDecl, ...]) -> tuple[FieldDecl | ChildDecl, ...]:
    """Now and then one field gets a fixed place."""
    fit = [m for m in members if isinstance(m, FieldDecl) and m.count is None and not m.marks and m.bits <= 8]
    if not fit or rng.random() > 0.1:
        return members
    chosen = rng.choice(fit)
    pin = FieldDecl(chosen.name, chosen.bits, (f"pin({4 * rng.randint(0, 3)}, {rng.choice((0, 4, 8))})",))
    return tuple(pin if member is chosen else member for member in members)


def _size(earlier: list[GroupDecl], group: GroupDecl) -> int:
    return len(World(tuple(earlier), ()).elements(group.name))
