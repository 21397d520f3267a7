"""What given calls cost: instructions, bus accesses and bytes of code, of any driver whose registers are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ...errors import EdgewrightError, InputError
from ..design import Design
from ..generate import generate
from ..language.description import Description
from ..layout.layout import RegisterAt
from .abi import Type
from .build import HOOKS, Built, build, free_window, target_named
from .bus import ModelBus
from .machine import LIMIT, Machine
from .peripheral import Peripheral, fields_of_models, fresh_models
from .verification import Fault


@dataclass(frozen=True, slots=True)
class Measured:
    instructions: int
    accesses: int
    code_bytes: int
    results: tuple[int, ...]  # of each call, 32 bits
    code: Mapping[str, int]  # bytes of each function


def measure(
    files: Mapping[str, str],
    description: Description,
    registers: Sequence[RegisterAt],
    calls: Sequence[tuple[str, tuple[int, ...]]],
    target: str = "rv32imc",
    models: Mapping[str, type[Peripheral]] | None = None,
    seed: int = 0,
    defines: Sequence[str] = (),
) -> Measured:
    """The calls one after the other on one state; arguments are words: numbers, or addresses of devices."""
    base = free_window(description.devices)
    built = build(files, target_named(target), base, defines=defines)
    model_fields = fields_of_models(description, registers)
    bus = ModelBus(description, registers, fresh_models(description, model_fields, models or {}, seed))
    machine = Machine(built, bus.pages, {})
    machine.bus = bus
    results, instructions = [], 0
    for name, words in calls:
        results.append(_call(machine, built, name, words))
        instructions += machine.instructions
    return Measured(instructions, len(bus.log), built.code_bytes, tuple(results), built.code)


def code_sizes_of(
    design: Design, target: str, includes: Sequence[Path] = (), defines: Sequence[str] = ()
) -> Mapping[str, int] | None:
    """Bytes of each function of a design at -Os, and of all constants; None where no compiler takes it."""
    base = free_window(design.analysis.description.devices)
    with suppress(EdgewrightError):
        files, defined = generate(design, "driver"), [*HOOKS, *defines]
        built = build(files, target_named(target), base, includes=includes, defines=defined)
        return {**built.code, "": built.constants}
    return None


def _call(machine: Machine, built: Built, name: str, words: tuple[int, ...]) -> int:
    if name not in built.code:
        raise InputError(f"the driver has no function '{name}'; it has {', '.join(sorted(built.code))}")
    try:
        return machine.call(name, [Type()] * len(words), words, LIMIT) & 0xFFFF_FFFF
    except Fault as fault:
        raise InputError(f"{name}{words} on the virtual prototype: {fault}") from fault
