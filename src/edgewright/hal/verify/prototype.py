"""A driver with one layout on the virtual prototype, and what each call of a function comes to.

Every call runs twice: with no function inlined, so that it is known what each access asks for, and as it is delivered,
with functions inlined, fed the same answers: C's rules for volatile say that the accesses must be the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from ..analysis.spaces import Spaces
from ..language.description import Description
from ..layout.layout import Layout, RegisterAt, elaborate
from .abi import Signature
from .addresses import instances_of
from .build import Built, Image
from .bus import Event, Happening, ModelBus, Promise, Replay
from .caller import Caller, Pointers
from .calls import DrawnCall
from .order import BusEvent
from .peripheral import Peripheral, fields_of_models, fresh_models
from .requests import Request, asked_by
from .verification import Fault, StopReason

CRITICAL = ("prototype_enter_critical", "prototype_exit_critical")


@dataclass(frozen=True, slots=True)
class Variant:
    """A driver with one layout: the registers, the HAL functions, and the image with functions called and inlined."""

    description: Description
    spaces: Spaces
    layout: Layout
    requests: Mapping[str, Request]
    outlined: Image
    inlined: Image | None = None
    foreign: frozenset[int] = frozenset()  # pages of peripherals that the driver reaches by address
    watched: frozenset[str] = frozenset()  # variables every access to which counts
    pointers: Pointers = field(default_factory=dict)


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
    log: tuple[Happening, ...] = ()  # all of it in order
    memory: Mapping[str, object] | None = None  # the part of `final` that is not of devices


class Prototype:
    def __init__(
        self,
        variant: Variant,
        outlined: Built,
        inlined: Built | None,
        signatures: Mapping[str, Signature],
        models: Mapping[str, type[Peripheral]] | None = None,
    ) -> None:
        self.variant = variant
        self.built = inlined or outlined  # as it is delivered, if there is that
        self.instances = instances_of(variant.description, variant.spaces, variant.layout)
        self._models = models or {}
        self._registers = elaborate(variant.description, variant.spaces, variant.layout)
        self._model_fields = fields_of_models(variant.description, self._registers)
        self.reached: set[str] = set()  # HAL functions that were called
        self.entered: set[str] = set()  # the driver's own functions that were
        self._halves: list[int] = []  # steps that were made when half of the time of a call was over
        self._bus = self._fresh_bus(0)
        pages, known = self._bus.pages, dict(signatures)
        entered: dict[str, Callable[[], None]] = {
            name: partial(self.entered.add, name) for _, _, name in outlined.elf.functions
        }
        entered |= {name: partial(self._ask, request) for name, request in variant.requests.items()}
        entered |= {name: partial(self._critical, sign) for name, sign in zip(CRITICAL, (1, -1), strict=True)}
        stubs = outlined.stubs - set(CRITICAL)
        half = partial(self._note_half)
        self._outlined = Caller(
            replace(outlined, stubs=stubs),
            self.instances,
            known,
            pages,
            self._called,
            entered,
            half,
            pointers=variant.pointers,
        )
        for name in variant.watched:
            self._outlined.machine.watch(name, partial(self._touched, name))
        self._inlined = (
            Caller(inlined, self.instances, known, pages, _ignored, pointers=variant.pointers) if inlined else None
        )

    @property
    def registers(self) -> Mapping[int, RegisterAt]:
        """The registers by address."""
        devices = {device.name: device.address for device in self.variant.description.devices}
        return {devices[one.device] + one.offset: one for one in self._registers}

    def reset(self, seed: int, is_used: bool = False) -> None:
        """Devices and memory as after power-on; what hardware and unknown functions answer depends on the seed.

        Fields of devices that were used before hold something.
        """
        self._bus = self._fresh_bus(seed)
        if is_used:
            self._bus.use(seed)
        for caller in filter(None, (self._outlined, self._inlined)):
            caller.reset(seed)

    def run(self, call: DrawnCall) -> Outcome:
        bus, caller = self._bus, self._outlined
        first_event, first_access, first_step = len(bus.events), len(bus.log), len(bus.steps)
        caller.machine.bus, bus.asked, bus.written, bus.critical, bus.promise = bus, None, None, 0, Promise()
        self._halves.clear()
        result, fault = caller.call(call)
        events, steps = tuple(bus.events[first_event:]), tuple(bus.steps[first_step:])
        log = tuple(bus.log[first_access:])
        if fault:
            half = self._halves[0] - first_step if self._halves else 0
            certain = len(steps) if half == len(steps) else half // 2
            return Outcome(None, events, {}, fault=fault, steps=steps, certain=certain, log=log)
        replay = Replay(log, bus.pages)
        instructions = caller.machine.instructions
        if self._inlined:
            fault = self._replay(self._inlined, call, result, replay)
            instructions = self._inlined.machine.instructions
        memory = caller.memory(call)
        count = len(replay.log)
        return Outcome(result, events, bus.final() | memory, instructions, count, fault, steps, log=log, memory=memory)

    def _replay(self, inlined: Caller, call: DrawnCall, result: object, replay: Replay) -> Fault | None:
        inlined.machine.bus = replay
        again, fault = inlined.call(call)
        if again != result and fault is None:
            fault = Fault(StopReason.WRONG, f"returns {again} instead of {result} once functions are inlined")
        return fault or replay.missing()

    def _note_half(self) -> None:
        self._halves.append(len(self._bus.steps))

    def _touched(self, name: str, is_write: bool, value: int) -> None:
        self._bus.record("foreign", f"variable {name}", value if is_write else "read")

    def _called(self, name: str, arguments: tuple[object, ...]) -> None:
        self._bus.record("call", name, arguments)

    def _critical(self, sign: int) -> None:
        self._bus.critical += sign

    def _ask(self, request: Request) -> None:
        argument = self._outlined.machine.argument
        asked = asked_by(request, self.variant.layout, self.instances, argument)
        self._bus.asked, self._bus.written = ({}, asked) if request.is_write else (asked, {})
        mark = request.mark
        first = replace(request, slots=(mark.opens,)) if mark.opens else None
        opening = asked_by(first, self.variant.layout, self.instances, argument) if first else {}
        self._bus.promise = Promise(mark.moment, mark.snapshot, mark.is_flush, opening)
        self.reached.add(request.name)

    def _fresh_bus(self, seed: int) -> ModelBus:
        models = fresh_models(self.variant.description, self._model_fields, self._models, seed)
        return ModelBus(self.variant.description, self._registers, models, self.variant.foreign)


def _ignored(name: str, arguments: tuple[object, ...]) -> None:
    """Calls are compared where no function is inlined."""
