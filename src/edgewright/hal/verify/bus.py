"""The bus between the processor and the models: registers to fields, and a trace of all that acts.

A register is read and written whole: every readable field in it answers, every writable field takes its bits. A field
that shares a register it should not share shows that way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..generate.c_text import ones
from ..language.description import Description
from ..layout.layout import FieldAt, RegisterAt
from .order import BusEvent
from .peripheral import ModelField, Peripheral, seeded
from .verification import Fault, StopReason

Config = dict[tuple[str, str], tuple[int, int]]  # device and field: how often written (by hardware fields), value


@dataclass(frozen=True, slots=True)
class Event:
    """Something that acts: an access to a field with side effects, or a call of unknown code.

    `config` is what software had stored by then, where it differs from reset: a trigger comes after its settings.
    """

    kind: str  # "read", "write", "call"
    what: str  # "uart.data", "delay"
    value: object
    config: Mapping[tuple[str, str], tuple[int, int]] = field(default_factory=dict)

    def __str__(self) -> str:
        match self.kind:
            case "call":
                return f"call of {self.what}{self.value}"
            case "write":
                return f"write of {self.value} to {self.what}"
            case "foreign":
                return f"access to {self.what} ({self.value})"
        return f"read of {self.what} ({self.value})"


@dataclass(frozen=True, slots=True)
class BusAccess:
    """One access of the processor to a register."""

    is_write: bool
    address: int
    bits: int
    value: int

    def __str__(self) -> str:
        return f"{'write' if self.is_write else 'read'} of {self.bits} bits at {self.address:#010x}"


@dataclass(frozen=True, slots=True)
class Noted:
    """What is no access to a register: a call of unknown code, or an access to a volatile variable."""

    kind: str  # "call", "foreign"
    what: str
    value: object

    def __str__(self) -> str:
        return str(Event(self.kind, self.what, self.value))


Happening = BusAccess | Noted


@dataclass(frozen=True, slots=True)
class Promise:
    """What the source promises of the accesses that the running HAL function makes."""

    moment: str = ""  # it happens with all of its moment
    snapshot: str = ""  # it is as of the read that opens the snapshot
    is_flush: bool = False  # it lets earlier writes arrive
    opening: Mapping[int, frozenset[int]] = field(default_factory=dict)  # that read: first bits, by address


class ModelBus:
    def __init__(
        self,
        description: Description,
        registers: Sequence[RegisterAt],
        models: Mapping[str, Peripheral],
        foreign: frozenset[int] = frozenset(),
    ) -> None:
        self.models = models
        self.events: list[Event] = []
        self.log: list[Happening] = []
        self.config: Config = {}
        # Bits (first of each field) that the running HAL function asks for, by address; None: all of any register.
        self.asked: Mapping[int, frozenset[int]] | None = None
        self.written: Mapping[int, frozenset[int]] | None = None  # the same for what it is to write
        self.promise = Promise()
        self.steps: list[BusEvent] = []
        self.critical = 0  # critical sections that are open
        self._now = 0
        self._foreign = foreign  # pages of other peripherals: they keep what is written, and all accesses count
        self._kept: dict[int, int] = {}
        self._devices = {device.name: device for device in description.devices}
        self._registers = {self._devices[r.device].address + r.offset: r for r in registers}
        self._split = Counter((r.device, at.name) for r in registers if not r.is_view for at in r.fields)
        self._moved = tuple(_moved(models))
        self._parts: dict[tuple[bool, str, str], tuple[int, frozenset[int]]] = {}
        self._taken: dict[str, dict[tuple[str, str], int]] = {}  # by snapshot, what changing fields held then
        self._opened: Counter[str] = Counter()

    def use(self, seed: int) -> None:
        """Leaves drawn values in all fields that software alone changes, as if it had written them before.

        Devices with a model of their own are left as they are after power-on.
        """
        for device, model in self.models.items():
            for name, model_field in model.model_fields.items() if type(model) is Peripheral else ():
                if model_field.nature.restorable:
                    value = seeded(model_field.field.bits, seed, device, name, "used")
                    model.state[name] = value
                    if value != model_field.field.reset & model_field.mask:
                        self.config[device, name] = 0, value

    @property
    def pages(self) -> frozenset[int]:
        """Addresses of the 4 KiB pages that hold registers."""
        return frozenset(address & ~0xFFF for address in self._registers) | self._foreign

    def read(self, address: int, bits: int) -> int:
        self._now += 1
        if self._is_foreign(address):
            kept = self._kept.get(address, 0) & ones(bits)
            self.record("foreign", f"{bits} bits at {address:#x}", "read")
            self.log.append(BusAccess(False, address, bits, kept))
            return kept
        register = self._register(address, bits, "read")
        asked = None if self.asked is None else self.asked.get(address, frozenset())
        value = 0
        first = self.promise.opening.get(address, frozenset())
        if first:
            self._take_snapshot()
        for at in register.fields:
            wanted = asked is None or at.bit in asked
            model_field = self._wire(register.device, at)
            taken = self._taken.get(self.promise.snapshot, {}) if wanted and at.bit not in first else {}
            known = taken.get((register.device, at.name))
            part = self._answer(register.device, at, wanted, asked is not None) if known is None else known
            if at.bit in first:
                self._taken[self.promise.snapshot][register.device, at.name] = part
            part = part >> at.low & ones(at.size)
            value |= part << at.bit
            self._outdate(register.device, model_field.on_read)
            is_seen = model_field.nature.may_differ or self.promise.is_flush
            if model_field.nature.reading_acts or (wanted and known is None and is_seen):
                self._step("read", register.device, at, model_field, part)
        self.log.append(BusAccess(False, address, bits, value))
        return value

    def _take_snapshot(self) -> None:
        """What every field that may change by itself holds from here on, for whoever reads it in the snapshot."""
        snapshot = self.promise.snapshot
        self._opened[snapshot] += 1
        self._taken[snapshot] = {
            (device, name): model.sample(name, snapshot, self._opened[snapshot])
            for device, model in self.models.items()
            for name, model_field in model.model_fields.items()
            if model_field.nature.may_differ and not model_field.nature.reading_acts
        }

    def _outdate(self, device: str, names: Iterable[str]) -> None:
        """What was changed since is in no snapshot any more."""
        for taken in self._taken.values():
            for name in names:
                taken.pop((device, name), None)

    def write(self, address: int, bits: int, value: int) -> None:
        self._now += 1
        if self._is_foreign(address):
            self._kept[address] = value
            self.record("foreign", f"{bits} bits at {address:#x}", value)
            self.log.append(BusAccess(True, address, bits, value))
            return
        register = self._register(address, bits, "write")
        self.log.append(BusAccess(True, address, bits, value))
        for at in register.fields:
            model_field = self._wire(register.device, at)
            part = value >> at.bit & ones(at.size)
            wanted = self.written is None or at.bit in self.written.get(address, frozenset())
            if wanted:
                self._outdate(register.device, (at.name, *model_field.on_write))
                self._step("write", register.device, at, model_field, part)
            elif model_field.field.shared_with_isr and model_field.nature.kept and not self.critical:
                what = f"{register.device}.{at.name} is read and put back outside a critical section"
                raise Fault(StopReason.WRONG, f"{what}: an interrupt in between is undone")
            if model_field.nature.writable and (part or not model_field.nature.neutral):
                self._take(register.device, at, model_field, part)

    def _step(self, kind: str, device: str, at: FieldAt, model_field: ModelField, value: int) -> None:
        name = f"{device}.{at.name}" + (f" from bit {at.low}" if at.size < model_field.field.bits else "")
        nature = model_field.nature
        acts = nature.writing_acts or nature.neutral
        is_plain = kind == "write" and not (acts or model_field.field.shared_with_isr)
        is_loose = self._devices[device].unordered and not model_field.field.shared_with_isr
        is_changed = is_plain and nature.by_hardware
        moment = self.promise.moment
        self.steps.append(BusEvent(kind, name, value, device, is_plain, self._now, is_loose, moment, is_changed))

    def _is_foreign(self, address: int) -> bool:
        return address not in self._registers and address & ~0xFFF in self._foreign

    def record(self, kind: str, what: str, value: object, device: str = "") -> None:
        if kind in ("call", "foreign"):
            self._now += 1
            self.log.append(Noted(kind, what, value))
            self.steps.append(BusEvent(kind, what, value, "", False, self._now))
        self.events.append(Event(kind, what, value, self._stored_for(device) if kind != "read" else {}))

    def _stored_for(self, device: str) -> Config:
        """What was stored before an event: of an unordered device, only what it or a call could tell."""
        found = self.stored()
        if not device:
            return found
        unordered = {name for name, one in self._devices.items() if one.unordered}
        return {key: value for key, value in found.items() if key[0] == device or not unordered & {key[0], device}}

    def stored(self) -> Config:
        """What software has stored, where it differs from reset; where a read moves a field, what it now holds.

        Such a field may be read and put back, which is no store of the driver's.
        """
        found = dict(self.config)
        for device, name in self._moved:
            model = self.models[device]
            found[device, name] = 0, model.peek(name)
            if found[device, name][1] == model.model_fields[name].field.reset & model.model_fields[name].mask:
                del found[device, name]
        return found

    def final(self) -> dict[str, object]:
        """What a call leaves behind: what was stored, the models' state, how often changing fields were asked for."""
        found: dict[str, object] = {f"{device}.{name} as written": v for (device, name), v in self.stored().items()}
        for model in self.models.values():
            found |= {f"{model.name}.{name}": value for name, value in model.state.items()}
            found |= {
                f"reads of {model.name}.{name}": count
                for name, count in model.reads.items()
                if model.model_fields[name].nature.changes
            }
        return found

    def _register(self, address: int, bits: int, verb: str) -> RegisterAt:
        register = self._registers.get(address)
        if register is None:
            raise Fault(StopReason.WRONG, f"{verb} of {bits} bits at {address:#010x}: access to no register")
        bus = self._devices[register.device].bus
        if bits != register.width or not bus.narrowest <= bits <= bus.width or address % (bits // 8):
            place = f"{register.device} + {register.offset:#x}"
            raise Fault(StopReason.WRONG, f"{verb} of {bits} bits at {place}, a register of {register.width} bits")
        return register

    def _wire(self, device: str, at: FieldAt) -> ModelField:
        return self.models[device].model_fields[at.name]

    def _answer(self, device: str, at: FieldAt, wanted: bool, is_exact: bool) -> int:
        model_field, model = self._wire(device, at), self.models[device]
        if not model_field.nature.readable:
            if wanted and is_exact:
                raise Fault(StopReason.WRONG, f"read of {device}.{at.name}, which is write-only")
            return 0
        if not (wanted or model_field.nature.reading_acts):
            return model.peek(at.name) & model_field.mask
        return self._read_whole(device, at, model_field)

    def _read_whole(self, device: str, at: FieldAt, model_field: ModelField) -> int:
        """The field's value, read from the model once for all of its parts."""
        key = False, device, at.name
        value, parts = self._parts.get(key, (0, frozenset()))
        if not parts or at.low in parts:
            value, parts = self.models[device].read(at.name) & model_field.mask, frozenset()
            if model_field.nature.reading_acts:
                self.record("read", f"{device}.{at.name}", value)
        parts |= {at.low}
        self._parts[key] = value, parts if at.size < model_field.field.bits else frozenset()
        return value

    def _take(self, device: str, at: FieldAt, model_field: ModelField, part: int) -> None:
        if model_field.nature.writing_acts:
            self._act(device, at, part)
            return
        key, model = (device, at.name), self.models[device]
        before = self.stored().get(key, (0, model_field.field.reset & model_field.mask))[1]
        kept = 0 if model_field.nature.neutral else before & ~(ones(at.size) << at.low)
        value = kept | part << at.low
        count = self.config.get(key, (0, 0))[0] + 1 if model_field.nature.by_hardware else 0
        self.config[key] = count, value
        if self.config[key] == (0, model_field.field.reset & model_field.mask):
            del self.config[key]
        model.write(at.name, value)

    def _act(self, device: str, at: FieldAt, part: int) -> None:
        """Writes a field with side effects once all of its parts have been written."""
        key = True, device, at.name
        value, parts = self._parts.get(key, (0, frozenset()))
        value, parts = value | part << at.low, parts | {at.low}
        if len(parts) < self._split[device, at.name]:
            self._parts[key] = value, parts
            return
        self._parts.pop(key, None)
        self.record("write", f"{device}.{at.name}", value, device)
        self.models[device].write(at.name, value)


class Replay:
    """A bus that gives the answers of an earlier run, and insists on the same accesses."""

    def __init__(self, log: Sequence[Happening], pages: frozenset[int]) -> None:
        self.pages = pages
        self.accesses = 0
        self.log = [access for access in log if isinstance(access, BusAccess)]

    def read(self, address: int, bits: int) -> int:
        return self._next(BusAccess(False, address, bits, 0)).value

    def write(self, address: int, bits: int, value: int) -> None:
        expected = self._next(BusAccess(True, address, bits, value))
        if expected.value != value:
            raise Fault(
                StopReason.WRONG, f"{expected}: {value:#x} instead of {expected.value:#x} once functions are inlined"
            )

    def missing(self) -> Fault | None:
        """The first access that the earlier run made and this one did not."""
        if self.accesses == len(self.log):
            return None
        return Fault(StopReason.WRONG, f"{self.log[self.accesses]} is missing once functions are inlined")

    def _next(self, access: BusAccess) -> BusAccess:
        if self.accesses == len(self.log):
            raise Fault(StopReason.WRONG, f"{access} once functions are inlined, and none without")
        expected = self.log[self.accesses]
        if (expected.is_write, expected.address, expected.bits) != (access.is_write, access.address, access.bits):
            raise Fault(StopReason.WRONG, f"{access} instead of {expected} once functions are inlined")
        self.accesses += 1
        return expected


def _moved(models: Mapping[str, Peripheral]) -> Iterator[tuple[str, str]]:
    """Fields that keep what is stored, except that some read changes them."""
    for device, model in models.items():
        touched = {name for model_field in model.model_fields.values() for name in model_field.on_read}
        yield from (
            (device, name)
            for name in model.model_fields
            if name in touched and model.model_fields[name].nature.restorable
        )
