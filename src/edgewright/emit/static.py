"""The `static const` objects of a schedule as data again: what type each has, which of them are used, and new ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..kernels.module import Module

DEFINITION = re.compile(
    r"static const (?P<type>.+?) (?P<name>\w+)(?P<sizes>(?:\[\d+\])*) = (?P<body>.*);", re.DOTALL
)
INTEGERS = {"int8_t": 1, "int16_t": 2, "int32_t": 4}  # types of looked-up numbers, smallest first: bytes


@dataclass(frozen=True, slots=True)
class Static:
    """One definition: a struct, or an array of something."""

    name: str
    ctype: str
    sizes: tuple[int, ...]
    body: str


def statics(unit: Module) -> dict[str, Static]:
    """What the schedule defines so far, by name."""
    found = [match for match in map(DEFINITION.fullmatch, unit.tables) if match]
    made = [
        Static(m["name"], m["type"], tuple(map(int, re.findall(r"\d+", m["sizes"]))), m["body"]) for m in found
    ]
    return {static.name: static for static in made}


def define(unit: Module, letter: str, ctype: str, sizes: tuple[int, ...], body: str) -> str:
    """The name of an array with these elements; equal ones once."""
    for static in statics(unit).values():
        if (static.ctype, static.sizes, static.body) == (ctype, sizes, body):
            return static.name
    name = f"{unit.prefix}_{letter}{len(unit.tables)}"
    unit.tables.append(f"static const {ctype} {name}{''.join(f'[{n}]' for n in sizes)} = {body};")
    return name


def in_use(tables: Sequence[str], lines: Iterable[str]) -> list[str]:
    """The definitions that the code needs, itself or through another of them."""
    known = set(re.findall(r"\w+", "\n".join(lines)))
    kept: list[str] = []
    for text in reversed(tables):  # each stands behind what it uses
        match = DEFINITION.fullmatch(text)
        if match is None or match["name"] in known:
            kept.append(text)
            known |= set(re.findall(r"\w+", match["body"] if match else text))
    return kept[::-1]
