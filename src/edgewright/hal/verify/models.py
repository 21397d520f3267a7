"""Models that users write: classes derived from Peripheral in a Python file."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from os.path import isfile
from pathlib import Path

from ...errors import InputError
from ..language.description import Description
from .peripheral import Peripheral

Models = tuple[type[Peripheral], ...]


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
