"""Modules and attributes that are imported on first use, so that slow imports cost only those who need them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import LazyLoader, find_spec, module_from_spec
from types import ModuleType


def lazy_module(name: str) -> ModuleType:
    """The module, whose code runs at the first look at one of its attributes."""
    if name in sys.modules:
        return sys.modules[name]
    spec = find_spec(name)
    assert spec is not None and spec.loader is not None, f"{name} is not installed"
    loader = LazyLoader(spec.loader)
    spec.loader = loader
    module = module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
    return module


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
