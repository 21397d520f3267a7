"""A driver with one layout on the virtual prototype, and what each call of a function comes to.

Every call runs twice: with no function inlined, so that it is known what each access asks for, and as it is delivered,
with functions inlined, fed the same answers: C's rules for volatile say that the accesses must be the same.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from ..analysis.spaces import Spaces
from ..language.description import Description
from ..layout.layout import Layout, elaborate
from .abi import Signature, Type, places_of
from .addresses import Addresses, instances_of
from .build import BUFFERS, DATA, Built
from .bus import Event, ModelBus, Promise, Replay
from .calls import Argument, ArgumentKind, DrawnCall
from .machine import Machine
from .order import BusEvent
from .peripheral import Peripheral, fields_of_models, fresh_models, seeded
from .requests import Request, asked_by
from .verification import Fault, StopReason

BUFFER = 1 << 14  # bytes of a buffer that are compared
_TRUTHS = bytes(byte & 1 for byte in range(256))
_APART = 1 << 17
CRITICAL = ("prototype_enter_critical", "prototype_exit_critical")
CALLBACKS = tuple(f"prototype_callback_{number}" for number in range(8))


@dataclass(frozen=True, slots=True)
class Variant:
    """A driver with one layout: the registers, the HAL functions, and the image with functions called and inlined."""

    description: Description
    spaces: Spaces
    layout: Layout
    requests: Mapping[str, Request]
    outlined: Built
    inlined: Built | None = None
    foreign: frozenset[int] = frozenset()  # pages of peripherals that the driver reaches by address
    watched: frozenset[str] = frozenset()  # variables every access to which counts


@dataclass(frozen=True, slots=True)
class Pointers:
    """A word that is an address: equal to one that is the address of the same group, function or object elsewhere."""

    names: frozenset[str]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pointers) and bool(self.names & other.names)

    def __hash__(self) -> int:
        return 0

    def __str__(self) -> str:
        return " = ".join(sorted(self.names))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call did. All of it is compared between layouts, except the counts."""

    result: object
    events: tuple[Event, ...]
    final: Mapping[str, object]  # fields, memory
    instructions: int = 0
    accesses: int = 0
    fault: Fault | None = None
    steps: tuple[BusEvent, ...] = ()
    certain: int | None = None  # of a call that does not end: so many steps are surely made in any layout


class Prototype:
    def __init__(
        self,
        variant: Variant,
        signatures: Mapping[str, Signature],
        models: Mapping[str, type[Peripheral]] | None = None,
    ) -> None:
        self.variant = variant
        self.instances = instances_of(variant.description, variant.spaces, variant.layout)
        self._names = {a: n for of_space in self.instances.values() for a, n in of_space.items()}
        self._addresses = {s: {n: a for a, n in found.items()} for s, found in self.instances.items()}
        self._signatures = dict(signatures)
        self._models = models or {}
        self._registers = elaborate(variant.description, variant.spaces, variant.layout)
        self._model_fields = fields_of_models(variant.description, self._registers)
        self._seed = 0
        self.reached: set[str] = set()  # HAL functions that were called
        self._halves: list[int] = []  # steps that were made when half of the time of a call was over
        self._bus = self._fresh_bus()
        self._calls: dict[str, Counter[str]] = {}
        self._inside = Addresses(variant.outlined)
        self._outlined = self._machine(variant.outlined, "outlined")
        self._inlined = self._machine(variant.inlined, "inlined") if variant.inlined else None

    def reset(self, seed: int) -> None:
        """Devices and memory as after power-on; what hardware and unknown functions answer depends on the seed."""
        self._seed = seed
        self._bus = self._fresh_bus()
        for machine in filter(None, (self._outlined, self._inlined)):
            machine.reset()
            for number in range(len(CALLBACKS)):
                machine.store(self._buffer(machine, number), _filling(seed, number))
        self._calls.clear()

    def run(self, call: DrawnCall) -> Outcome:
        bus, machine = self._bus, self._outlined
        first_event, first_access, first_step = len(bus.events), len(bus.log), len(bus.steps)
        machine.bus, bus.asked, bus.written, bus.critical, bus.promise = bus, None, None, 0, Promise()
        self._halves.clear()
        result, fault = self._call(machine, call)
        events, steps = tuple(bus.events[first_event:]), tuple(bus.steps[first_step:])
        if fault:
            half = self._halves[0] - first_step if self._halves else 0
            certain = len(steps) if half == len(steps) else half // 2
            return Outcome(None, events, {}, fault=fault, steps=steps, certain=certain)
        count = len(bus.log) - first_access
        instructions = machine.instructions
        if self._inlined:
            fault = self._replay(call, result, Replay(bus.log[first_access:], bus.pages))
            instructions = self._inlined.instructions
        return Outcome(result, events, bus.final() | self._memory(call), instructions, count, fault, steps)

    def _replay(self, call: DrawnCall, result: object, replay: Replay) -> Fault | None:
        assert self._inlined is not None
        self._inlined.bus = replay
        again, fault = self._call(self._inlined, call)
        if again != result and fault is None:
            fault = Fault(StopReason.WRONG, f"returns {again} instead of {result} once functions are inlined")
        return fault or replay.missing()

    def _call(self, machine: Machine, call: DrawnCall) -> tuple[object, Fault | None]:
        signature = call.signature
        types = [type_ for _, type_ in signature.parameters]
        for number, type_ in enumerate(types):
            if type_.callback:
                self._signatures[CALLBACKS[number]] = type_.callback
        words = [self._word(machine, t, a) for t, a in zip(types, call.arguments, strict=True)]
        for type_, word in zip(types, words, strict=True):
            self._fill(machine, type_, word)
        try:
            return self._seen(machine, signature.result, machine.call(signature.name, types, words)), None
        except Fault as fault:
            return None, fault

    def _word(self, machine: Machine, type_: Type, argument: Argument) -> int:
        match argument.kind:
            case ArgumentKind.GROUP:
                assert type_.group is not None
                return self._addresses[type_.group][str(argument.value)]
            case ArgumentKind.BUFFER:
                return self._buffer(machine, int(argument.value))
            case ArgumentKind.CALLBACK:
                return machine.built.elf.symbols[CALLBACKS[int(argument.value)]][0]
        return int(argument.value)

    def _fill(self, machine: Machine, type_: Type, address: int) -> None:
        """Puts pointers that lead somewhere into a struct that a call is given, and truth values where it has these."""
        if type_.flags:
            content = bytearray(machine.load(address, BUFFER))
            for flag in type_.flags:
                content[flag :: type_.pointee] = content[flag :: type_.pointee].translate(_TRUTHS)
            machine.store(address, bytes(content))
        for offset, inner in type_.inside:
            if inner.group is not None:
                argument = Argument(ArgumentKind.GROUP, next(iter(self._addresses[inner.group])))
            else:
                argument = Argument(
                    ArgumentKind.CALLBACK if inner.callback else ArgumentKind.BUFFER, len(CALLBACKS) - 1
                )
            if inner.callback:
                self._signatures[CALLBACKS[-1]] = inner.callback
            word = self._word(machine, inner, argument)
            self._fill(machine, replace(inner, inside=()), word)
            machine.store(address + offset, struct.pack("<I", word))

    def _seen(self, machine: Machine, type_: Type, word: int) -> object:
        """A result or an argument as it can be compared: layouts and stacks differ in their addresses."""
        if type_.group is not None:
            return self.instances.get(type_.group, {}).get(word & 0xFFFF_FFFF, self._names.get(word & 0xFFFF_FFFF))
        if type_.is_pointer:
            return self._pointed(machine, type_, word & 0xFFFF_FFFF)
        return word & ((1 << type_.bits) - 1)

    def _pointed(self, machine: Machine, type_: Type, address: int) -> object:
        base = machine.built.base
        if base + BUFFERS <= address < base + BUFFERS + _APART * len(CALLBACKS):
            return f"buffer + {address - base - BUFFERS:#x}"
        if type_.is_const and base <= address < base + BUFFERS * 2:
            return machine.load(address, min(type_.pointee, 64)).hex()
        return "pointer" if address else 0

    def _machine(self, built: Built, key: str) -> Machine:
        watched: dict[str, Callable[[], None]] = {}
        if key == "outlined":
            watched = {name: partial(self._ask, request) for name, request in self.variant.requests.items()}
        watched |= {name: partial(self._unknown, key, name) for name in built.stubs}
        half = (lambda: self._halves.append(len(self._bus.steps))) if key == "outlined" else None
        machine = Machine(built, self._bus.pages, watched, half)
        for name in self.variant.watched if key == "outlined" else ():
            machine.watch(name, partial(self._touched, name))
        return machine

    def _touched(self, name: str, is_write: bool, value: int) -> None:
        self._bus.record("foreign", f"variable {name}", value if is_write else "read")

    def _ask(self, request: Request) -> None:
        asked = asked_by(request, self.variant.layout, self.instances, self._outlined.argument)
        self._bus.asked, self._bus.written = ({}, asked) if request.is_write else (asked, {})
        mark = request.mark
        first = replace(request, slots=(mark.opens,)) if mark.opens else None
        opening = asked_by(first, self.variant.layout, self.instances, self._outlined.argument) if first else {}
        self._bus.promise = Promise(mark.moment, mark.snapshot, opening)
        self.reached.add(request.name)

    def _unknown(self, key: str, name: str) -> None:
        """A call of a function that the driver does not define: it is an event, and answers something."""
        machine = self._outlined if key == "outlined" or self._inlined is None else self._inlined
        if name in CRITICAL:
            self._bus.critical += 1 if name == CRITICAL[0] else -1
            return
        signature = self._signatures.get(name, Signature(name, Type(64)))
        if machine is self._outlined:
            self._bus.record("call", name, self._arguments(machine, signature))
        count = self._calls.setdefault(key, Counter())
        count[name] += 1
        machine.answer(signature.result.held(seeded(signature.result.bits or 32, self._seed, name, count[name])))

    def _arguments(self, machine: Machine, signature: Signature) -> tuple[object, ...]:
        types = [type_ for _, type_ in signature.parameters]
        places = places_of(machine.built.target.architecture, types)
        words = [sum(machine.argument(at) << 32 * part for part, at in enumerate(where)) for where in places]
        return tuple(self._seen(machine, type_, word) for type_, word in zip(types, words, strict=True))

    def _memory(self, call: DrawnCall) -> dict[str, object]:
        """Buffers that the call was given, and the driver's own variables."""
        machine = self._outlined
        found: dict[str, object] = {}
        for (name, type_), argument in zip(call.signature.parameters, call.arguments, strict=True):
            if argument.kind is ArgumentKind.BUFFER:
                address = self._buffer(machine, int(argument.value))
                rest = machine.load(address + type_.pointee, BUFFER)
                found[f"buffer of {name}"] = self._variable(machine.load(address, type_.pointee)), rest
        start = machine.built.base + DATA
        for name, (address, size) in machine.built.elf.symbols.items():
            if size and "." not in name and start <= address < start + DATA:
                found[f"variable {name}"] = self._variable(machine.load(address, size))
        return found

    def _variable(self, data: bytes) -> object:
        if len(data) % 4:
            return data
        words = struct.unpack(f"<{len(data) // 4}I", data)
        found = [self._pointing(word) for word in words]
        return tuple(Pointers(names) if names else word for names, word in zip(found, words, strict=True))

    def _pointing(self, word: int) -> frozenset[str]:
        groups = frozenset(names[word] for names in self.instances.values() if word in names)
        inside = self._inside.named(word)
        return groups if inside is None else groups | {inside}

    def _buffer(self, machine: Machine, number: int) -> int:
        return machine.built.base + BUFFERS + number * _APART

    def _fresh_bus(self) -> ModelBus:
        models = fresh_models(self.variant.description, self._model_fields, self._models, self._seed)
        return ModelBus(self.variant.description, self._registers, models, self.variant.foreign)


@lru_cache(maxsize=256)
def _filling(seed: int, number: int) -> bytes:
    return b"".join(seeded(64, seed, number, word).to_bytes(8, "little") for word in range(64)) * (BUFFER // 512)
