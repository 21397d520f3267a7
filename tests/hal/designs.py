"""A small design, made by hand: fields of every nature, arrays as registers, lanes, areas and expanded elements."""

from __future__ import annotations

from dataclasses import replace

from edgewright.hal.analysis.accesses import Access, Expression, Form, Hop, Kind, Spot
from edgewright.hal.analysis.functions import Conflict, Flow, Function, Regions
from edgewright.hal.analysis.spaces import Area, Slot, Space, Use
from edgewright.hal.design import Analysis, Design
from edgewright.hal.language.description import (
    Bus,
    Child,
    Description,
    Device,
    EffectTarget,
    Field,
    Group,
    Mode,
    Place,
)
from edgewright.hal.language.source import Source
from edgewright.hal.layout.layout import AreaPlace, Layout, Piece, Register, SpaceLayout
from edgewright.hal.merge import Merge, Merging

HERE = Place("uart.c", 3, 5)


def field(name, bits=1, **more):
    return Field(name, bits, HERE, **more)


CHANNEL = Group("Channel", (field("level", 7), field("go", wse=(EffectTarget("Uart", "busy"),))), HERE)
PAD = Group("Pad", (field("dir"), field("out")), HERE)
UART = Group(
    "Uart",
    (
        field("enable"),
        field("parity", 2, reset=2),
        field("divider", 16, reset=0xABC),
        field("busy", mode=Mode.RO),
        field("data", 8, fifo=True),
        field("errors", 4, clear_on_read=True, mode=Mode.RO),
        field("pending", 3, w1c=True),
        field("raise", 3, w1s=True, shared_with_isr=True),
        field("command", 8, mode=Mode.WO, wse=(EffectTarget("Uart", "busy"),)),
        field("stamp", 48, split=True, mode=Mode.RO),
        field("mask", count=40),
        field("limit", 5, count=3),
        Child("pads", "Pad", HERE, 4),
        Child("channels", "Channel", HERE, 3),
    ),
    HERE,
)
DESCRIPTION = Description(
    {group.name: group for group in (CHANNEL, PAD, UART)},
    (Device("uart0", "Uart", 0x40000000, HERE, Bus()), Device("uart1", "Uart", 0x40001000, HERE, Bus())),
)


def plain(name):
    return Slot(name, ((name, None),), "Uart", DESCRIPTION.field("Uart", name))


def limit(index):
    return Slot(f"limit_{index}", (("limit", index),), "Uart", DESCRIPTION.field("Uart", "limit"))


def pad(name):
    return Slot(f"pads_{name}", (("pads", -1), (name, None)), "Pad", DESCRIPTION.field("Pad", name), (4,))


NAMES = ("enable", "parity", "divider", "busy", "data", "errors", "pending", "raise", "command", "stamp")
SPACES = {
    "Channel": Space(
        "Channel",
        tuple(Slot(n, ((n, None),), "Channel", DESCRIPTION.field("Channel", n)) for n in ("level", "go")),
    ),
    "Uart": Space(
        "Uart",
        (
            *map(plain, NAMES),
            Slot("mask", (("mask", -1),), "Uart", DESCRIPTION.field("Uart", "mask"), (40,)),
            *map(limit, range(3)),
            pad("dir"),
            pad("out"),
        ),
        (Area("channels", (("channels", -1),), "Channel", (3,)),),
    ),
}


def register(offset, *pieces, counts=(), strides=()):
    return Register(offset, 32, tuple(pieces), counts, strides)


LAYOUT = Layout(
    {
        "Channel": SpaceLayout("Channel", (register(0, Piece("level", 0, 7)), register(4, Piece("go", 0, 1))), (), 8),
        "Uart": SpaceLayout(
            "Uart",
            (
                register(0, Piece("enable", 0, 1), Piece("parity", 1, 2), Piece("divider", 16, 16)),
                register(4, Piece("busy", 0, 1)),
                register(8, Piece("data", 0, 8)),
                register(12, Piece("errors", 0, 4)),
                register(16, Piece("pending", 0, 3), Piece("raise", 8, 3)),
                register(20, Piece("command", 0, 8)),
                register(24, Piece("stamp", 0, 32)),
                register(28, Piece("stamp", 0, 16, low=32)),
                register(32, Piece("mask", 0, 1, lanes=32), counts=(2,), strides=(4,)),
                register(40, *(Piece(f"limit_{i}", 5 * i, 5) for i in range(3))),
                register(64, Piece("pads_dir", 0, 1), counts=(4,), strides=(8,)),
                register(68, Piece("pads_out", 0, 1), counts=(4,), strides=(8,)),
            ),
            (AreaPlace("channels", 96, (8,)),),
            128,
        ),
    },
    "paper",
)


def access(number, kind, *members, function="start", base="uart"):
    spot = Spot("uart.c", Form.READ, (0, 0), None, "", (0, 0), False, True, True)
    hops = tuple(Hop(member) for member in members)
    place = Place("uart.c", 10 + number, 5)
    return Access(number, function, kind, "Uart", Expression((0, 0), base), None, hops, "Uart", place, spot, 0)


ACCESSES = (
    access(0, Kind.WRITE, "enable"),
    access(1, Kind.WRITE, "parity"),
    access(2, Kind.WRITE, "divider"),
    access(3, Kind.READ, "busy"),
    access(4, Kind.WRITE, "parity"),
)
USES = {("start", a.number): Use(a, "Uart", "uart", a.field, (), frozenset({"uart"}), True) for a in ACCESSES}
FUNCTION = Function("start", "uart.c", Place("uart.c", 8, 1), (0, 0), (), ACCESSES, Flow((), ()))
REGIONS = Regions(
    (Conflict(0, 3, "reads cannot be combined with writes"), Conflict(1, 4, "the first must happen before")),
    ((0, 1, 2), (3,), (4,)),
)


def design(layout=LAYOUT):
    source = Source((), {}, (), {})
    analysis = Analysis(source, DESCRIPTION, (FUNCTION,), {"start": REGIONS}, SPACES, USES, ())
    use = [USES["start", number] for number in range(5)]
    merges = (Merge(Kind.WRITE, tuple(use[:3])), Merge(Kind.READ, (use[3],)), Merge(Kind.WRITE, (use[4],)))
    return Design(analysis, layout, {"start": Merging(merges, (Conflict(0, 4, "the value of 1 is needed <first>"),))})


def with_field(description, group, new):
    """The description with a field added to a group, or exchanged for one of its name."""
    old = description.groups[group]
    members = [m for m in old.members if m.name != new.name]
    changed = replace(old, members=(*members, new))
    return replace(description, groups={**description.groups, group: changed})
