"""A conventional driver of the same functions, with a register map of its own, measured beside the generated one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from ...errors import InputError
from ..design import Design
from ..generate import generate
from ..language.description import Description
from ..layout.layout import RegisterAt, elaborate
from .abi import Signature, Type
from .addresses import Instances, instances_of
from .build import HOOKS, Built, compile_image, free_window, link, target_named
from .bus import BusAccess, ModelBus
from .caller import CALLBACKS, Caller
from .calls import DrawnCall, bounds_of, draw_call
from .compare import SEQUENCE
from .peripheral import Models, Peripheral, fields_of_models, fresh_models, models_for
from .signatures import exported, foreign_pages, signatures_of, weak_functions
from .twin_map import map_bytes_of, read_twin_map
from .verification import Counts, Fault


@dataclass(frozen=True, slots=True)
class TwinFunction:
    """What the calls of a function came to that ended in both drivers."""

    function: str
    calls: int
    other_results: int  # calls that returned something else; expected where hardware answers each read again
    twin: Counts
    ours: Counts
    left_out: str = ""  # why there are no calls


@dataclass(frozen=True, slots=True)
class TwinComparison:
    target: str
    compiler: str
    functions: tuple[TwinFunction, ...]
    twin: Counts  # of all functions; code with constants and static functions
    ours: Counts
    twin_map_bytes: int
    map_bytes: int

    @property
    def dearer(self) -> tuple[TwinFunction, ...]:
        """The functions that access the bus more often than the twin's."""
        return tuple(one for one in self.functions if one.ours.accesses > one.twin.accesses)


def compare_with_twin(
    design: Design,
    twin: Path,
    *,
    target: str = "rv32imc",
    model: Models | None = None,
    calls: int = 32,
    seed: int = 0,
    includes: Sequence[Path] = (),
    defines: Sequence[str] = (),
) -> TwinComparison:
    """Both drivers with the same drawn calls; NAME.toml beside the twin's NAME.c says where it has the fields."""
    description, source = design.analysis.description, design.analysis.source
    maps = (
        read_twin_map(twin.with_suffix(".toml"), description),
        elaborate(description, design.analysis.spaces, design.layout),
    )
    try:
        sources = ({twin.name: twin.read_text()}, generate(design, "driver"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read '{twin}': {error}") from error
    stubs, folders = (*CALLBACKS, *sorted(weak_functions(source))), ((twin.parent, *includes), includes)
    images = [
        compile_image(files, target_named(target), True, where, [*HOOKS, *defines], stubs)
        for files, where in zip(sources, folders, strict=True)
    ]
    built = link(images, free_window(description.devices, max(map(map_bytes_of, maps)) + 4096))
    callable_ = exported(source)
    functions = [f for f in design.analysis.functions if f.accesses and f.name in callable_]
    if missing := [f.name for f in functions if f.name not in built[0].code]:
        raise InputError(
            f"'{twin}' has no function '{missing[0]}', which the driver has; a twin has the same functions"
        )
    at_start: Instances = {name: {} for name in description.groups}
    for device in description.devices:
        at_start[device.group][device.address] = device.name
    places = (at_start, instances_of(description, design.analysis.spaces, design.layout))
    signatures, models = signatures_of(source, description), models_for(model or (), description)
    foreign = foreign_pages(source)
    sides = [
        _Side(*one, signatures, description, maps, models, foreign) for one in zip(built, places, maps, strict=True)
    ]
    found = []
    for function in functions:
        signature = signatures.get(function.name, Signature(function.name, Type(0)))
        found.append(_measured(signature, bounds_of(function, description), sides, at_start, calls, seed))
    was, now = _sum(one.twin for one in found), _sum(one.ours for one in found)
    return TwinComparison(
        built[0].target.name,
        built[0].compiler,
        tuple(found),
        replace(was, code_bytes=built[0].code_bytes),
        replace(now, code_bytes=built[1].code_bytes),
        map_bytes_of(maps[0]),
        design.layout.map_bytes(description),
    )


def _measured(
    signature: Signature, bounds: Mapping[str, int], sides: Sequence[_Side], there: Instances, calls: int, seed: int
) -> TwinFunction:
    name, codes = signature.name, [side.built.code.get(signature.name, 0) for side in sides]
    problem = signature.problem or next(
        (f"the twin has no '{type_.group}' by itself" for _, type_ in signature.parameters if not _has(there, type_)),
        "",
    )
    random, small, other, last = Random(f"{seed} {name}"), 0, 0, ""
    counts: tuple[list[Counts], list[Counts]] = ([], [])
    for number in range(0 if problem else -(-calls // SEQUENCE)):
        for side in sides:
            side.reset(seed * 1000 + number)
        names = {group: list(found.values()) for group, found in there.items()}
        for _ in range(SEQUENCE):
            call = draw_call(signature, bounds, names, random, small)
            try:
                ends = [side.run(call) for side in sides]
            except Fault as fault:
                last = str(fault)  # an index out of range, a wait without end, or a register that nobody told of
                small = min(small + 1, 2)
                break
            other += ends[0][0] != ends[1][0]
            for of, (_, count) in zip(counts, ends, strict=True):
                of.append(count)
    twin, ours = (
        Counts(one.instructions, one.accesses, code) for one, code in zip(map(_sum, counts), codes, strict=True)
    )
    return TwinFunction(name, len(counts[0]), other, twin, ours, problem or ("" if counts[0] else last))


def _has(there: Instances, type_: Type) -> bool:
    return type_.group is None or bool(there.get(type_.group))


def _sum(counts: Iterable[Counts]) -> Counts:
    known = list(counts)
    return Counts(sum(one.instructions for one in known), sum(one.accesses for one in known))


@dataclass(slots=True)
class _Side:
    """One of the two drivers on the prototype."""

    built: Built
    instances: Instances
    registers: tuple[RegisterAt, ...]
    signatures: Mapping[str, Signature]
    description: Description
    maps: tuple[tuple[RegisterAt, ...], ...]
    models: Mapping[str, type[Peripheral]]
    foreign: frozenset[int]
    caller: Caller = field(init=False)
    bus: ModelBus = field(init=False)

    def __post_init__(self) -> None:
        self.bus = self._fresh(0)
        self.caller = Caller(self.built, self.instances, dict(self.signatures), self.bus.pages, lambda *_: None)

    def _fresh(self, seed: int) -> ModelBus:
        known = fields_of_models(self.description, [one for of in self.maps for one in of])
        models = fresh_models(self.description, known, self.models, seed)
        return ModelBus(self.description, self.registers, models, self.foreign)

    def reset(self, seed: int) -> None:
        self.bus = self.caller.machine.bus = self._fresh(seed)
        self.caller.reset(seed)

    def run(self, call: DrawnCall) -> tuple[object, Counts]:
        before = len(self.bus.log)
        result, fault = self.caller.call(call)
        if fault:
            raise fault
        accesses = sum(isinstance(one, BusAccess) for one in self.bus.log[before:])
        return result, Counts(self.caller.machine.instructions, accesses)
