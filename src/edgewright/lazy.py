"""Modules and attributes that are imported on first use, so that slow imports cost only those who need them."""

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
    """Stands for a module until one of its attributes is looked at.

    It stays out of `sys.modules`: there, an import statement would load it and lose an interrupt that comes meanwhile.
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
    """What to say where a package of an extra is needed and not there."""
    return f"this needs {_PEOPLE_SAY.get(package, package)}, which is not installed: pip install 'edgewright[{extra}]'"


def load_package(name: str, extra: str) -> Any:
    """The module; where it is of an extra and missing, an error that names the extra."""
    try:
        return import_module(name)
    except ImportError as error:
        if not extra:
            raise
        raise InputError(missing_package(name.partition(".")[0], extra)) from error


def is_installed(package: str) -> bool:
    """Whether a top-level package could be imported; nothing is loaded."""
    return find_spec(package) is not None


def lazy_module(name: str, extra: str = "") -> ModuleType:
    """The module, which is loaded at the first look at one of its attributes.

    A module of an `extra` may be missing: then using it is an error that says how to install it.
    """
    return _LazyModule(name, extra)


def lazy_attributes(
    package: str, homes: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose names are loaded at the first look (PEP 562).

    `homes` lists, for each module inside, the names that come from it: `name`, or `name=its name there`. A module with
    no names is given itself.
    """
    found: dict[str, tuple[str, str]] = {}
    for home, names in homes.items():
        for text in names:
            name, _, theirs = text.partition("=")
            found[name] = home, theirs or name
        if not names:
            found[home] = home, ""

    def load(name: str) -> object:
        if name not in found:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home, theirs = found[name]
        module = import_module(f".{home}", package)
        value = getattr(module, theirs) if theirs else module
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted({*vars(sys.modules[package]), *found})
