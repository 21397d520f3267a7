"""Large drivers in the bfGroup language: hundreds of fields and functions, the same for the same seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

BITS = (*(1,) * 10, 2, 2, 3, 4, 4, 5, 8, 8, 12, 16, 16, 24, 32)
MARKS = (*("",) * 14, "ro", "ro", "ro", "hw", "w1c", "wo", "shared_with_isr", "reset_value(1)")
COUNTS = (*(0,) * 15, 4, 8)
LONE = ("w1c", "shared_with_isr")  # never arrays here


@dataclass(frozen=True, slots=True)
class Shape:
    """How many fields and functions there are, in how many groups, and how far apart a function's fields lie."""

    fields: int = 260
    functions: int = 230
    groups: int = 1
    reach: int = 12  # fields; 0: anywhere in the group
    most: int = 5  # accesses of a function


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    bits: int
    mark: str
    count: int

    def __str__(self) -> str:
        kind = "bit" if self.bits == 1 else f"uint{self.bits}"
        return f"    {kind} {self.mark} {self.name}{f'[{self.count}]' if self.count else ''};"


def draw_large(seed: int, shape: Shape) -> str:
    """The source of a driver."""
    rng = Random(seed)
    sizes = [shape.fields // shape.groups + (n < shape.fields % shape.groups) for n in range(shape.groups)]
    groups = [[_field(rng, n) for n in range(size)] for size in sizes]
    lines = ['#include "edgewright_hal.h"', ""]
    for number, fields in enumerate(groups):
        lines += [f"bfGroup Block{number} {{", *map(str, fields), "};"]
        lines += [f"make_device(Block{number}, block{number}, {0x40000000 + number * 0x1000:#x});", ""]
    for number in range(shape.functions):
        lines += _function(rng, number, groups, shape)
    return "\n".join(lines)


def _field(rng: Random, number: int) -> _Field:
    bits, mark, count = rng.choice(BITS), rng.choice(MARKS), rng.choice(COUNTS)
    return _Field(f"f{number}", bits, mark, 0 if mark in LONE else count)


def _function(rng: Random, number: int, groups: list[list[_Field]], shape: Shape) -> Iterator[str]:
    """Some fields near each other, written or read and summed up."""
    group = rng.randrange(len(groups))
    reach = shape.reach or len(groups[group])
    start = rng.randrange(max(1, len(groups[group]) - reach)) if shape.reach else 0
    near = groups[group][start : start + reach]
    read = []
    yield f"uint32_t drive{number}(struct Block{group} *b, uint32_t value, uint32_t i)"
    yield "{"
    yield "    (void)value; (void)i;"
    for field in rng.sample(near, rng.randint(1, min(shape.most, len(near)))):
        place = f"b->{field.name}" + (f"[i % {field.count}u]" if field.count else "")
        if field.mark == "ro" or (field.mark != "wo" and rng.random() < 0.4):
            read.append(f"(uint32_t){place}")
        else:
            yield f"    {place} = {rng.choice(('value', str(rng.randrange(1 << min(field.bits, 8)))))};"
    yield f"    return {' + '.join(read) or '0u'};"
    yield "}"
    yield ""
