"""Modules and attributes that are imported on first use, because they are slow to load."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from .errors import InputError

_PEOPLE_SAY = {"ai_edge_litert": "LiteRT", "ortools": "OR-Tools"}


class _LazyModule(ModuleType):
    """A placeholder that imports its module when an attribute is accessed.

    It is not in `sys.modules`: there, an import statement would load the module and swallow an interrupt meanwhile.
    """

    def __init__(self, name: str, extra: str) -> None:
        super().__init__(name)
        self._extra = extra

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        value = getattr(load_package(self.__name__, self._extra), attribute)
        setattr(self, attribute, value)
        return value


def missing_package(package: str, extra: str) -> str:
    """The error message for a missing package of an extra."""
    return f"this needs {_PEOPLE_SAY.get(package, package)}, which is not installed: pip install 'edgewright[{extra}]'"


def load_package(name: str, extra: str) -> Any:
    """The imported module; if it belongs to an extra and is missing, an error names the extra."""
    try:
        return import_module(name)
    except ImportError as error:
        if not extra:
            raise
        raise InputError(missing_package(name.partition(".")[0], extra)) from error


def is_installed(package: str) -> bool:
    """Whether a top-level package can be imported; does not load it."""
    return find_spec(package) is not None


def lazy_module(name: str, extra: str = "") -> ModuleType:
    """A module that is loaded when one of its attributes is first accessed.

    With `extra`, a missing module is an error that says how to install it.
    """
    return _LazyModule(name, extra)


def lazy_attributes(
    package: str, homes: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package whose names are loaded on first use (PEP 562).

    `homes` lists the names of each inner module: `name`, or `name=its name there`. A module without names is itself the
    value.
    """
    places: dict[str, tuple[str, str]] = {}
    for home, names in homes.items():
        for text in names:
            name, _, theirs = text.partition("=")
            places[name] = home, theirs or name
        if not names:
            places[home] = home, ""

    def load(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home, theirs = places[name]
        module = import_module(f".{home}", package)
        value = getattr(module, theirs) if theirs else module
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted({*vars(sys.modules[package]), *places})
