"""The same calls of a driver's functions in two worlds: its source on this machine, generated code on the prototype.

Both have models of the peripherals that know fields alone; what the two do must be the same, event by event.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from edgewright.hal.design import Design
from edgewright.hal.generate.calls import names_of, needed_calls
from edgewright.hal.layout.layout import elaborate
from edgewright.hal.verify.abi import Type
from edgewright.hal.verify.addresses import instances_of
from edgewright.hal.verify.build import BUFFERS, build, free_window, target_named
from edgewright.hal.verify.bus import ModelBus
from edgewright.hal.verify.machine import Machine
from edgewright.hal.verify.peripheral import ModelField, Peripheral, fields_of_models, seeded
from edgewright.hal.verify.requests import Request, asked_by, requests_of
from tests.hal.host import Hooks, on_host
from tests.hal.host_machine import HostMachine
from tests.hal.random_code import UNKNOWN
from tests.hal.random_drivers import Program
from tests.hal.random_groups import ChildDecl, World
from tests.hal.random_text import Made

TYPES = {
    "void": Type(0),
    "int": Type(32, True),
    "uint8_t": Type(8),
    "uint16_t": Type(16),
    "uint32_t": Type(32),
    "uint64_t": Type(64),
}
HOST = "host"  # the target that is this machine
OPTIMISATIONS = ("-O0", "-O2")
HOOKS = ("HAL_ENTER_CRITICAL()=", "HAL_EXIT_CRITICAL()=")
BUFFER = bytes(range(1, 65))
Event = tuple[str, str, int, Mapping[tuple[str, str], tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Call:
    made: Made
    pointers: tuple[tuple[str, str], ...]  # device and path: ("dev0", "part0[1]")
    numbers: tuple[int, ...]

    def __str__(self) -> str:
        words = [".".join(filter(None, where)) for where in self.pointers] + [str(n) for n in self.numbers]
        return f"{self.made.name}({', '.join(words)})"


@dataclass(slots=True)
class Outcome:
    """All that calls did, in order."""

    results: list[int] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)  # events before each call's end
    state: dict[str, int] = field(default_factory=dict)
    buffers: list[bytes] = field(default_factory=list)


def draw_calls(program: Program, seed: int, each: int = 3) -> list[Call]:
    """Calls of all functions that can be called from outside, in random order."""
    rng = Random(seed)
    open_ones = [made for made in program.functions if not made.static]
    return [_call(rng, program.world, made) for made in rng.sample(open_ones * each, len(open_ones) * each)]


def _call(rng: Random, world: World, made: Made) -> Call:
    pointers = tuple(rng.choice(instances(world, group)) for _, group, _ in made.pointers)
    bits = [rng.choice((1, 2, 4, 8, 16, 31)) for _ in made.numbers]
    return Call(
        made,
        pointers,
        tuple(rng.getrandbits(min(b, TYPES[k].bits)) for b, (k, _) in zip(bits, made.numbers, strict=True)),
    )


def instances(world: World, group: str) -> list[tuple[str, str]]:
    return [(d.name, path) for d in world.devices for own, path in _inside(world, d.group, "") if own == group]


def _inside(world: World, group: str, path: str) -> list[tuple[str, str]]:
    found = [(group, path)]
    for member in world.group(group).members:
        if isinstance(member, ChildDecl):
            names = [member.name] if member.count is None else [f"{member.name}[{i}]" for i in range(member.count)]
            for name in names:
                found += _inside(world, member.group, f"{path}.{name}" if path else name)
    return found


class Known:
    """Models of a driver's devices, with the events they saw."""

    def __init__(self, design: Design, seed: int, is_still: bool = False) -> None:
        analysis = design.analysis
        self.unordered = {device.name for device in analysis.description.devices if device.unordered}
        registers = elaborate(analysis.description, analysis.spaces, design.layout)
        self.model_fields = fields_of_models(analysis.description, registers)
        kind = Still if is_still else Peripheral
        self.models = {name: kind(name, wires, seed) for name, wires in self.model_fields.items()}
        self.seed = seed
        self.events: list[Event] = []
        self.config: dict[tuple[str, str], tuple[int, int]] = {}
        self.calls: Counter[str] = Counter()

    def read(self, device: str, name: str) -> int:
        wire = self.model_fields[device][name]
        value = self.models[device].read(name) & wire.mask
        if wire.nature.reading_acts:
            self.events.append(("read", f"{device}.{name}", value, {}))
        return value

    def write(self, device: str, name: str, value: int) -> None:
        wire = self.model_fields[device][name]
        if wire.nature.neutral and not value:
            return
        if wire.nature.writing_acts:
            stored = self.stored()
            seen = {key for key in stored if key[0] == device or not self.unordered & {key[0], device}}
            self.events.append(("write", f"{device}.{name}", value, {key: stored[key] for key in seen}))
        else:
            self.note(device, wire, value)
        self.models[device].write(name, value)

    def note(self, device: str, wire: ModelField, value: int) -> None:
        """Keeps what software stored, where it differs from reset."""
        key = device, wire.name
        count = self.config.get(key, (0, 0))[0] + 1 if wire.nature.by_hardware else 0
        self.config[key] = count, value
        if self.config[key] == (0, wire.field.reset & wire.mask):
            del self.config[key]

    def stored(self) -> dict[tuple[str, str], tuple[int, int]]:
        """What the driver stored; of fields that a read changes, what they hold."""
        found = dict(self.config)
        for device, wires in self.model_fields.items():
            for name in {name for wire in wires.values() for name in wire.on_read if wires[name].nature.restorable}:
                value = self.models[device].state[name]
                found[device, name] = 0, value
                if value == wires[name].field.reset & wires[name].mask:
                    del found[device, name]
        return found

    def whole(self, config: Mapping[tuple[str, str], tuple[int, int]]) -> dict[tuple[str, str], tuple[int, int]]:
        """What was stored, without how often where a field is written in parts."""
        is_split = {key: self.model_fields[key[0]][key[1]].field.split for key in config}
        return {key: (0 if is_split[key] else count, value) for key, (count, value) in config.items()}

    def call(self, name: str, value: int) -> int:
        self.events.append(("call", name, value, self.stored()))
        return self.answer(name)

    def answer(self, name: str) -> int:
        self.calls[name] += 1
        return seeded(32, self.seed, name, self.calls[name])

    def state(self) -> dict[str, int]:
        return final_state(self.models)


class Still(Peripheral):
    """A device that nothing changes but what the driver does: how often a flag is read cannot be told."""

    def read(self, name: str) -> int:
        value = super().read(name)
        self.reads.clear()
        return value

    def _arrived(self, wire: ModelField) -> int:
        return self.state[wire.name]


def final_state(models: Mapping[str, Peripheral]) -> dict[str, int]:
    """What the devices hold, and how often changing fields were asked for."""
    found = {f"{d}.{name}": value for d, model in models.items() for name, value in model.state.items()}
    for device, model in models.items():
        counted = {n: c for n, c in model.reads.items() if model.model_fields[n].nature.changes}
        found |= {f"reads of {device}.{name}": count for name, count in counted.items()}
    return found


def run_source(program: Program, design: Design, calls: Sequence[Call], folder: Path, seed: int = 0) -> Outcome:
    """The calls on this machine; of the design only the description of the fields is used."""
    known = Known(design, seed, program.has_snapshots)
    host = on_host(program, folder, Hooks(known.read, known.write, known.call))
    outcome = Outcome()
    for call in calls:
        buffer = ctypes.create_string_buffer(BUFFER, len(BUFFER))
        firsts = [_first_field(program.world, where) for where in call.pointers]
        pointers = {name: first for (name, _, _), first in zip(call.made.pointers, firsts, strict=True)}
        numbers = {name: value for (_, name), value in zip(call.made.numbers, call.numbers, strict=True)}
        outcome.results.append(host.call(call.made, pointers, numbers, buffer))
        outcome.buffers.append(buffer.raw)
        outcome.marks.append(len(known.events))
    outcome.events = [(kind, what, value, known.whole(config)) for kind, what, value, config in known.events]
    outcome.state = known.state()
    return outcome


def _first_field(world: World, where: tuple[str, str]) -> tuple[str, str]:
    device = next(d for d in world.devices if d.name == where[0])
    prefix = f"{where[1]}." if where[1] else ""
    return device.name, next(name for name, _ in world.elements(device.group) if name.startswith(prefix))


class Board:
    """The generated code of a design, every HAL function kept apart: on the virtual prototype, or on this machine."""

    def __init__(
        self, design: Design, files: Mapping[str, str], target: str, seed: int = 0, is_still: bool = False
    ) -> None:
        analysis = design.analysis
        self.known = Known(design, seed, is_still)
        registers = elaborate(analysis.description, analysis.spaces, design.layout)
        self.bus = ModelBus(analysis.description, registers, self.known.models)
        self.instances = instances_of(analysis.description, analysis.spaces, design.layout)
        watched = {name: self._unknown(name) for name in UNKNOWN}
        for request in requests_of(analysis.spaces, names_of(needed_calls(design))).values():
            watched[request.name] = self._asks(request, design)
        self.machine: Machine | HostMachine
        if target == HOST:
            self.machine = HostMachine(files, self.bus.pages, watched, UNKNOWN, OPTIMISATIONS[seed % 2])
            self.buffer = self.machine.buffer
        else:
            base = free_window(analysis.description.devices)
            built = build(files, target_named(target), base, inline=False, defines=HOOKS)
            self.machine = Machine(built, self.bus.pages, watched)
            self.buffer = base + BUFFERS
        self.machine.bus = self.bus

    def _unknown(self, name: str) -> Callable[[], None]:
        def entered() -> None:
            self.bus.record("call", name, self.machine.argument(0))
            self.machine.answer(self.known.answer(name))

        return entered

    def _asks(self, request: Request, design: Design) -> Callable[[], None]:
        def entered() -> None:
            self.bus.asked = asked_by(request, design.layout, self.instances, self.machine.argument)

        return entered

    def run(self, calls: Sequence[Call]) -> Outcome:
        outcome = Outcome()
        for call in calls:
            self.machine.store(self.buffer, BUFFER)
            outcome.results.append(self._result(call))
            outcome.buffers.append(self.machine.load(self.buffer, len(BUFFER)))
            outcome.marks.append(len(self.bus.events))
        outcome.events = [(e.kind, e.what, int(str(e.value)), self.known.whole(e.config)) for e in self.bus.events]
        outcome.state = final_state(self.known.models)
        return outcome

    def _result(self, call: Call) -> int:
        made = call.made
        types = [Type(group=group) for _, group, _ in made.pointers] + [TYPES[kind] for kind, _ in made.numbers]
        values = [self._address(group, w) for (_, group, _), w in zip(made.pointers, call.pointers, strict=True)]
        values += call.numbers
        if made.buffer:
            types, values = [*types, Type(pointee=4)], [*values, self.buffer]
        ones = (1 << TYPES[made.result].bits) - 1
        return self.machine.call(made.name, types, values) & ones

    def _address(self, group: str, where: tuple[str, str]) -> int:
        name = ".".join(filter(None, where))
        return next(address for address, own in self.instances[group].items() if own == name)


def differences(calls: Sequence[Call], expected: Outcome, found: Outcome) -> list[str]:
    """What the two worlds do not agree on, in words; the first of each kind."""
    story = []
    for number, (one, other) in enumerate(zip(expected.events, found.events, strict=False)):
        if one != other:
            at = next(i for i, mark in enumerate(expected.marks) if number < mark)
            story.append(f"{calls[at]}: event {number} is {_told(other, one)} instead of {_told(one, other)}")
            break
    if len(expected.events) != len(found.events):
        story.append(f"{len(found.events)} events instead of {len(expected.events)}")
    masks = [(1 << TYPES[call.made.result].bits) - 1 for call in calls]
    for call, mask, want, got in zip(calls, masks, expected.results, found.results, strict=True):
        if want & mask != got & mask:
            story.append(f"{call} gives {got & mask} instead of {want & mask}")
            break
    wrong = [n for n in expected.state | found.state if expected.state.get(n) != found.state.get(n)]
    story += [f"{n} is {found.state.get(n)} instead of {expected.state.get(n)} at the end" for n in wrong[:3]]
    if expected.buffers != found.buffers:
        story.append("a buffer holds other values")
    return story


def _told(event: Event, other: Event) -> str:
    kind, what, value, config = event
    differing = {".".join(k): v for k, v in config.items() if other[3].get(k) != v}
    return f"{kind} of {what} ({value})" + (f" with {differing}" if differing else "")
