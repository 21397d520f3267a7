"""What the C of a library calls itself, its arenas, its inputs and its outputs: names that clash with nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..errors import InputError
from ..kernels.printing.source import identifier
from ..network import Network
from ..text import shortened
from .reserved import FILES, is_reserved

LONGEST = 100  # letters of a library's name: its files' names have some more
# What begins names within the run function, or those of kernels.
_NONE: Mapping[str, str] = {}
_LOCAL = re.compile(r"(in|out|arena|slot|next|ew)(_|$)")


@dataclass(frozen=True)
class Parameters:
    """The C parameter of each arena, input and output, all different. Macros and functions are called after them."""

    arenas: Mapping[str, str]  # by memory
    inputs: Mapping[str, str]  # by tensor
    outputs: Mapping[str, str]


def library_name(network: Network, given: str | None = None) -> str:
    """The prefix of a library's files and functions: the name given, or else the model's."""
    if given is not None and len(given) > LONGEST:
        raise InputError(
            f"the name '{shortened(given, 24)}' has {len(given)} letters, and files and functions begin with it; "
            f"give one of at most {LONGEST} with --name"
        )
    return safe_prefix(given or network.name)


def safe_prefix(text: str) -> str:
    """The prefix for a library of this name: in lower case, neither a header's name nor one that our C begins names
    with."""
    name = identifier(text).lower()
    if name in FILES:  # headers are looked for in the library's folder before the system's
        name = f"{name}_model"
    elif _LOCAL.match(name):
        name = f"net_{name}"
    return name[:LONGEST].strip("_")


def parameters(
    prefix: str, network: Network, memories: Iterable[str], renamed: Iterable[tuple[str, str]] = ()
) -> Parameters:
    """Names as the header shows them. The C of the run function has its own: see `local_names`."""
    arenas = arena_names(memories)
    used = {*arenas.values()}
    chosen = dict(renamed)
    inputs = _named(prefix, network.inputs, used, chosen)
    return Parameters(arenas, inputs, _named(prefix, dict.fromkeys(network.outputs), used, chosen))


def renamed(network: Network, wanted: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Inputs and outputs with the names they are to have in C; `wanted` calls them by the file's name, or `input:0`."""
    ends = {"input": network.inputs, "output": network.outputs}
    by_place = {f"{way}:{i}": name for way, names in ends.items() for i, name in enumerate(names)}
    known = {name: name for names in ends.values() for name in names}
    found = {}
    for given, name in wanted.items():
        tensor = known.get(given) or by_place.get(given)
        if tensor is None:
            there = ", ".join(f"{place} ('{shortened(name, 40)}')" for place, name in by_place.items())
            raise InputError(f"--rename: the model has no input or output '{shortened(given, 40)}'; it has {there}")
        if identifier(name).lower() != name:
            raise InputError(
                f"--rename: '{shortened(name, 40)}' is no name for C; use small letters, digits and single "
                "underscores, a letter first"
            )
        if is_reserved(name):
            raise InputError(f"--rename: '{name}' is taken in C or in the library; choose another, such as '{name}_x'")
        found[tensor] = name
    twice = [name for name, count in Counter(found.values()).items() if count > 1]
    if twice:
        raise InputError(f"--rename: '{twice[0]}' is given to two tensors")
    return tuple(found.items())


def arena_names(memories: Iterable[str]) -> dict[str, str]:
    """The parameter of each memory's arena, all different, whatever library it is of."""
    return _named("", memories, set())


def local_names(names: Parameters) -> Parameters:
    """The same under names that none of the variables, functions and types of the C code have."""
    return Parameters(
        {memory: f"arena_{name}" for memory, name in names.arenas.items()},
        {tensor: f"in_{name}" for tensor, name in names.inputs.items()},
        {tensor: f"out_{name}" for tensor, name in names.outputs.items()},
    )


def _named(prefix: str, names: Iterable[str], used: set[str], chosen: Mapping[str, str] = _NONE) -> dict[str, str]:
    found = {}
    for name in names:
        base = text = identifier(chosen.get(name, name)).lower()
        if prefix and base.startswith(f"{prefix}_pull_"):  # types of the header begin so
            base = text = f"x_{base}"
        count = 1
        while is_reserved(text) or {text, f"{text}_context"} & used:  # a pulled input has a context
            count += 1
            text = f"{base}_{count}"
        used |= {text, f"{text}_context"}
        found[name] = text
    return found
