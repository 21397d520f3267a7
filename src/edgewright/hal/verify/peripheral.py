"""Models of peripherals: they know fields by name, not registers, so that one model serves every layout.

What a field answers is fixed by what the driver asked for, not by where the field lies:

- a plain field keeps what was written;
- a field that hardware changes (ro, hw, rse of itself) has a new value for every read that the driver *asks* for, and
  after every side effect that touches it. Two such reads made one therefore give other values afterwards, and a read
  too many shifts those that follow. A read of the register for the sake of a neighbour only peeks, and changes nothing;
- a field whose reading acts (rse of others, clear_on_read, fifo) is read by every access to its register, as in
  hardware: here a read for a neighbour's sake is a difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from importlib.util import module_from_spec, spec_from_file_location
from os.path import isfile
from pathlib import Path
from typing import ClassVar

from ...errors import InputError
from ..language.description import Description, EffectTarget, Field, Mode
from ..language.semantics import Nature
from ..layout.layout import FieldAt, RegisterAt


@lru_cache(maxsize=1 << 16)
def seeded(bits: int, *key: object) -> int:
    """A value of so many bits for the key; small values, 0 and all ones come often, for loops and comparisons."""
    digest = blake2b(repr(key).encode(), digest_size=16).digest()
    ones = (1 << bits) - 1
    drawn = int.from_bytes(digest[:8], "little") & ones
    return (drawn, drawn, drawn % 4, ones, drawn % 16, 0)[digest[8] % 6] & ones


@dataclass(frozen=True, slots=True)
class ModelField:
    """A field of a device as a model knows it, and the fields that reading or writing it touches."""

    name: str  # "pads[3].dir"
    group: str
    field: Field
    nature: Nature
    on_read: tuple[str, ...] = ()
    on_write: tuple[str, ...] = ()

    @property
    def mask(self) -> int:
        return (1 << self.field.bits) - 1


def fields_of_models(description: Description, registers: Iterable[RegisterAt]) -> dict[str, dict[str, ModelField]]:
    """The fields of every device, by name."""
    found: dict[str, dict[str, FieldAt]] = {device.name: {} for device in description.devices}
    for register in registers:
        found[register.device].update((at.name, at) for at in register.fields)
    return {
        device: {name: _model_field(at, fields, description) for name, at in fields.items()}
        for device, fields in found.items()
    }


def _model_field(at: FieldAt, fields: Mapping[str, FieldAt], description: Description) -> ModelField:
    # Reading a field that has itself among its targets is what `read` does anyway.
    rest = tuple(target for target in at.field.rse if target != EffectTarget(at.group, at.field.name))
    on_read, on_write = _touched(at, rest, fields, description), _touched(at, at.field.wse, fields, description)
    return ModelField(at.name, at.group, at.field, description.nature(at.group, at.field.name), on_read, on_write)


def _touched(
    at: FieldAt, targets: tuple[EffectTarget, ...], fields: Mapping[str, FieldAt], description: Description
) -> tuple[str, ...]:
    """The fields that a side effect touches: of its own group, those beside it; of others, all in the device."""
    home = at.name.rpartition(".")[0]
    return tuple(
        other.name
        for other in fields.values()
        if description.touched(targets, other.group, other.field.name)
        and (other.group != at.group or other.name.rpartition(".")[0] == home)
    )


class Peripheral:
    """A device that does what its attributes say. A model of one's own derives from it and overrides `read`, `write`.

    `device` (or `group`) says which devices a derived class models; with neither it models all.
    """

    device: ClassVar[str | None] = None
    group: ClassVar[str | None] = None

    def __init__(self, name: str, model_fields: Mapping[str, ModelField], seed: int = 0) -> None:
        self.name = name
        self.model_fields = model_fields
        self.seed = seed
        self.reads: Counter[str] = Counter()
        self.touches: Counter[str] = Counter()
        self.state = {model_field.name: self._initial(model_field) for model_field in model_fields.values()}

    def read(self, name: str) -> int:
        """What a read that the driver asked for gives; it may act."""
        model_field = self.model_fields[name]
        self.reads[name] += 1
        value = self._arrived(model_field)
        self.state[name] = 0 if model_field.field.clear_on_read else value
        for other in model_field.on_read:
            self.touch(other)
        return value

    def write(self, name: str, value: int) -> None:
        """Takes a value of as many bits as the field has; one that writing 1 clears or sets never sees 0."""
        model_field = self.model_fields[name]
        if model_field.field.w1c:
            self.state[name] &= ~value
        elif model_field.field.w1s:
            self.state[name] |= value
        elif not model_field.field.fifo:
            self.state[name] = value
        for other in model_field.on_write:
            self.touch(other)

    def peek(self, name: str) -> int:
        """What lies on the bus when a neighbour is read: it must change nothing."""
        return self.state.get(name, 0)

    def sample(self, name: str, snapshot: str, number: int) -> int:
        """What a field holds when a snapshot is taken, which changes nothing; models of one's own are peeked at."""
        model_field = self.model_fields[name]
        is_own = type(self).read is not Peripheral.read or type(self).peek is not Peripheral.peek
        if is_own or not model_field.nature.changes:
            return self.peek(name) & model_field.mask
        return self._changed(model_field, self._drawn(model_field, "snapshot", snapshot, number))

    def touch(self, name: str) -> None:
        """Hardware changes a field, as a side effect of another access."""
        model_field = self.model_fields[name]
        self.touches[name] += 1
        value = self._drawn(model_field, "touched", self.touches[name])
        sticky = model_field.field.w1c or model_field.field.clear_on_read
        if model_field.field.mode is not Mode.WO:
            self.state[name] = self.state[name] | value if sticky else value

    def _initial(self, model_field: ModelField) -> int:
        """The value at reset, and what hardware has done before the first access."""
        reset = model_field.field.reset & model_field.mask
        return reset | self._drawn(model_field, "first") if model_field.nature.changes else reset

    def _arrived(self, model_field: ModelField) -> int:
        """The field's value after what hardware did to it since it was last asked for."""
        if not model_field.nature.changes:
            return self.state[model_field.name]
        name = model_field.name
        return self._changed(model_field, self._drawn(model_field, "read", self.reads[name], self.touches[name]))

    def _changed(self, model_field: ModelField, new: int) -> int:
        """The field's value after hardware did this: flags that are cleared stay set till then, and the reverse."""
        if model_field.field.w1c or model_field.field.clear_on_read:
            return self.state[model_field.name] | new
        return self.state[model_field.name] & new if model_field.field.w1s else new

    def _drawn(self, model_field: ModelField, *key: object) -> int:
        return seeded(model_field.field.bits, self.seed, self.name, model_field.name, *key)


Models = tuple[type[Peripheral], ...]


def fresh_models(
    description: Description,
    model_fields: Mapping[str, Mapping[str, ModelField]],
    models: Mapping[str, type[Peripheral]],
    seed: int,
) -> dict[str, Peripheral]:
    """The devices of a driver as after power-on, each with a model of its own or one that follows its attributes."""
    names = [device.name for device in description.devices]
    return {name: models.get(name, Peripheral)(name, model_fields[name], seed) for name in names}


def load_model(path: str | Path) -> Models:
    """The classes of a file that are models."""
    path = Path(path)
    if not isfile(path):
        raise InputError(f"no model at '{path}': there is no such file")
    spec = spec_from_file_location(f"edgewright_model_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"'{path}' is no Python file; a model is a class derived from Peripheral in a .py file")
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(f"the model '{path}' cannot be loaded: {type(error).__name__}: {error}") from error
    found = tuple(
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Peripheral) and value.__module__ == module.__name__
    )
    if not found:
        raise InputError(
            f"'{path}' has no model; derive a class: from edgewright.hal.verify import Peripheral; "
            "class Uart(Peripheral): device = 'uart'"
        )
    return found


def models_for(models: Models, description: Description) -> dict[str, type[Peripheral]]:
    """The model of each device that has one: by its name, else by its group, else one that names neither."""
    devices = {device.name for device in description.devices}
    for model in models:
        _check(model.device, devices, model, "device")
        _check(model.group, set(description.groups), model, "group")
    found: dict[str, type[Peripheral]] = {}
    for device in description.devices:
        for model in sorted(models, key=lambda m: (m.device is not None, m.group is not None)):
            if model.device in (device.name, None) and model.group in (device.group, None):
                found[device.name] = model
    return found


def _check(name: str | None, known: set[str], model: type[Peripheral], kind: str) -> None:
    if name is not None and name not in known:
        there = ", ".join(sorted(known))
        raise InputError(f"model '{model.__name__}' is for {kind} '{name}', which the driver lacks; it has {there}")
