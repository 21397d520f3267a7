"""A linked driver whose functions are called one by one: arguments, unknown functions, and what calls leave behind."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product

from .abi import Signature, Type, places_of
from .addresses import Instances
from .build import BUFFERS, DATA, Built
from .calls import Argument, ArgumentKind, DrawnCall
from .machine import LIMIT, Machine
from .peripheral import seeded
from .verification import Fault

BUFFER = 1 << 14  # bytes of a buffer that are compared
ELEMENTS = 4  # of what a parameter points to that hold pointers which lead somewhere
_TRUTHS = bytes(byte & 1 for byte in range(256))
_APART = 1 << 17
CALLBACKS = tuple(f"prototype_callback_{number}" for number in range(8))
Record = Callable[[str, tuple[object, ...]], None]  # told of calls of unknown functions
Watch = Mapping[str, Callable[[], None]]


@dataclass(frozen=True, slots=True)
class Pointer:
    """A word that may be the address of a group: equal to the same word, and to the address of the same group."""

    word: int
    groups: frozenset[str]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Pointer):
            return self.word == other.word or bool(self.groups & other.groups)
        return self.word == other

    def __hash__(self) -> int:
        return 0

    def __str__(self) -> str:
        return " = ".join(sorted(self.groups))


Pointers = Mapping[str, tuple[tuple[int, str], ...]]  # by variable: bytes where it points to a group, and which


class Caller:
    """`entered` is called when one of these functions begins, `record` when an unknown function is called."""

    def __init__(
        self,
        built: Built,
        instances: Instances,
        signatures: dict[str, Signature],
        pages: frozenset[int],
        record: Record,
        entered: Watch | None = None,
        half: Callable[[], object] | None = None,
        pointers: Pointers | None = None,
    ) -> None:
        self._pointers = pointers or {}
        self.instances = instances
        self._names = {a: n for of_group in instances.values() for a, n in of_group.items()}
        self._addresses = {group: {n: a for a, n in found.items()} for group, found in instances.items()}
        self._signatures = signatures
        self._record = record
        self._answers: Counter[str] = Counter()
        self._seed = 0
        watched: dict[str, Callable[[], None]] = {name: partial(self._unknown, name) for name in built.stubs}
        watched = {**(entered or {}), **watched}
        self.machine = Machine(built, pages, watched, half)

    def reset(self, seed: int) -> None:
        """Memory as after power-on; what unknown functions answer depends on the seed."""
        self._seed = seed
        self._answers.clear()
        self.machine.reset()
        for number in range(len(CALLBACKS)):
            self.machine.store(self._buffer(number), _filling(seed, number))
        if seed % 4:  # else they are NULL, as before the first call
            self._set_pointers()

    def _set_pointers(self) -> None:
        """Lets the driver's own pointers to groups that are NULL lead somewhere, as an earlier call would have."""
        for name, pointers in self._pointers.items():
            start = self.machine.built.elf.symbols.get(name, (0, 0))[0]
            for at, known in ((start + offset, self._addresses.get(group)) for offset, group in pointers):
                if start and known and not any(self.machine.load(at, 4)):
                    self.machine.store(at, struct.pack("<I", known[min(known)]))

    def call(self, call: DrawnCall, limit: int = LIMIT) -> tuple[object, Fault | None]:
        signature = call.signature
        types = [type_ for _, type_ in signature.parameters]
        for number, type_ in enumerate(types):
            if type_.callback:
                self._signatures[CALLBACKS[number]] = type_.callback
        words = [self._word(t, a) for t, a in zip(types, call.arguments, strict=True)]
        for type_, argument, word in zip(types, call.arguments, words, strict=True):
            if argument.kind is not ArgumentKind.OBJECT:
                self._fill(type_, word)
        try:
            return self._seen(signature.result, self.machine.call(signature.name, types, words, limit)), None
        except Fault as fault:
            return None, fault

    def memory(self, call: DrawnCall) -> dict[str, object]:
        """Buffers that the call was given, and the driver's own variables."""
        machine = self.machine
        found: dict[str, object] = {}
        for (name, type_), argument in zip(call.signature.parameters, call.arguments, strict=True):
            if argument.kind is ArgumentKind.BUFFER:
                address = self._buffer(int(argument.value))
                rest = machine.load(address + type_.pointee, BUFFER)
                found[f"buffer of {name}"] = self._variable(machine.load(address, type_.pointee)), rest
        start = machine.built.base + DATA
        for name, (address, size) in machine.built.elf.symbols.items():
            if size and "." not in name and start <= address < start + DATA:
                found[f"variable {name}"] = self._variable(machine.load(address, size))
        return found

    def _unknown(self, name: str) -> None:
        """A call of a function that the driver does not define: it is told of, and answers something."""
        signature = self._signatures.get(name, Signature(name, Type(64)))
        self._record(name, self._arguments(signature))
        self._answers[name] += 1
        result = seeded(signature.result.bits or 32, self._seed, name, self._answers[name])
        if signature.result.group is not None:  # one of its devices, or sometimes none
            known = sorted(self._addresses.get(signature.result.group, {}).items())
            result = known[result // 8 % len(known)][1] if known and result % 8 else 0
        self.machine.answer(signature.result.held(result))

    def _arguments(self, signature: Signature) -> tuple[object, ...]:
        types = [type_ for _, type_ in signature.parameters]
        places = places_of(self.machine.built.target.architecture, types)
        words = [sum(self.machine.argument(at) << 32 * part for part, at in enumerate(where)) for where in places]
        return tuple(self._seen(type_, word) for type_, word in zip(types, words, strict=True))

    def _word(self, type_: Type, argument: Argument) -> int:
        match argument.kind:
            case ArgumentKind.GROUP:
                assert type_.group is not None
                return self._addresses[type_.group][str(argument.value)]
            case ArgumentKind.BUFFER:
                return self._buffer(int(argument.value))
            case ArgumentKind.OBJECT:
                return self.machine.built.elf.symbols[str(argument.value)][0]
            case ArgumentKind.CALLBACK:
                return self.machine.built.elf.symbols[CALLBACKS[int(argument.value)]][0]
        return int(argument.value)

    def _fill(self, type_: Type, address: int) -> None:
        """Puts pointers that lead somewhere into a struct that a call is given, and truth values where it has these."""
        machine = self.machine
        if type_.flags:
            content = bytearray(machine.load(address, BUFFER))
            for flag in type_.flags:
                content[flag :: type_.pointee] = content[flag :: type_.pointee].translate(_TRUTHS)
            machine.store(address, bytes(content))
        elements = range(ELEMENTS) if type_.inside else ()
        for start, (offset, inner) in product((address + type_.pointee * n for n in elements), type_.inside):
            if inner.group is not None:
                argument = Argument(ArgumentKind.GROUP, min(self._addresses[inner.group]))
            else:
                argument = Argument(
                    ArgumentKind.CALLBACK if inner.callback else ArgumentKind.BUFFER, len(CALLBACKS) - 1
                )
            if inner.callback:
                self._signatures[CALLBACKS[-1]] = inner.callback
            word = self._word(inner, argument)
            self._fill(replace(inner, inside=()), word)
            machine.store(start + offset, struct.pack("<I", word))

    def _seen(self, type_: Type, word: int) -> object:
        """A result or an argument as it can be compared: layouts and stacks differ in their addresses."""
        if type_.group is not None:
            return self.instances.get(type_.group, {}).get(word & 0xFFFF_FFFF, self._names.get(word & 0xFFFF_FFFF))
        if type_.is_pointer:
            return self._pointed(type_, word & 0xFFFF_FFFF)
        return word & ((1 << type_.bits) - 1)

    def _pointed(self, type_: Type, address: int) -> object:
        base = self.machine.built.base
        if base + BUFFERS <= address < base + BUFFERS + _APART * len(CALLBACKS):
            return f"buffer + {address - base - BUFFERS:#x}"
        if type_.is_const and base <= address < base + BUFFERS * 2:
            return self.machine.load(address, min(type_.pointee, 64)).hex()
        return "pointer" if address else 0

    def _variable(self, data: bytes) -> object:
        if len(data) % 4:
            return data
        words = struct.unpack(f"<{len(data) // 4}I", data)
        return tuple(self._pointing(word) for word in words)

    def _pointing(self, word: int) -> object:
        groups = frozenset(names[word] for names in self.instances.values() if word in names)
        return Pointer(word, groups) if groups else word

    def _buffer(self, number: int) -> int:
        return self.machine.built.base + BUFFERS + number * _APART


@lru_cache(maxsize=256)
def _filling(seed: int, number: int) -> bytes:
    return b"".join(seeded(64, seed, number, word).to_bytes(8, "little") for word in range(64)) * (BUFFER // 512)
