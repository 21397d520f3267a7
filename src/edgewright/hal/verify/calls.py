"""Calls of driver functions with drawn arguments, independent of any layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from random import Random

from ..analysis.functions import Function
from ..language.cursors import spelling
from ..language.description import Description, Field
from .abi import Signature, Type

_INTERESTING = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 31, 32, 100, 127, 128, 255, 256, 0x7FFF, 0xFFFF, 0x10000)


ANY, EDGE = -1, -2  # instead of how small numbers are to be: every value is as likely, or 0 and others at an end
_OWN_OBJECTS = 0.8  # of calls that take a pointer to a struct of which the driver has variables


class ArgumentKind(Enum):
    NUMBER = "number"
    GROUP = "group"  # a pointer to an instance of a group, by its name
    BUFFER = "buffer"  # a pointer to memory of its own
    CALLBACK = "callback"  # a pointer to an unknown function
    OBJECT = "object"  # a pointer to a variable of the driver, by its name


@dataclass(frozen=True, slots=True)
class Argument:
    kind: ArgumentKind
    value: int | str

    def __str__(self) -> str:
        match self.kind:
            case ArgumentKind.NUMBER:
                return str(self.value)
            case ArgumentKind.GROUP | ArgumentKind.OBJECT:
                return f"&{self.value}"
        return f"{self.kind.value} {self.value}"


@dataclass(frozen=True, slots=True)
class DrawnCall:
    signature: Signature
    arguments: tuple[Argument, ...]

    def __str__(self) -> str:
        names = [name for name, _ in self.signature.parameters]
        given = (f"{name}={argument}" for name, argument in zip(names, self.arguments, strict=True))
        return f"{self.signature.name}({', '.join(given)})"


def draw_call(
    signature: Signature, bounds: Mapping[str, int], instances: Mapping[str, list[str]], random: Random, small: int
) -> DrawnCall:
    """A call with drawn arguments; the higher `small`, the smaller the numbers; or ANY or EDGE."""
    arguments = tuple(
        _draw(number, type_, bounds.get(name), instances, random, small)
        for number, (name, type_) in enumerate(signature.parameters)
    )
    return DrawnCall(signature, arguments)


def _draw(
    number: int, type_: Type, bound: int | None, instances: Mapping[str, list[str]], random: Random, small: int
) -> Argument:
    if type_.group is not None:
        return Argument(ArgumentKind.GROUP, random.choice(instances[type_.group]))
    if type_.objects and random.random() < _OWN_OBJECTS:
        return Argument(ArgumentKind.OBJECT, random.choice(type_.objects))
    if type_.is_pointer:
        return Argument(ArgumentKind.CALLBACK if type_.callback else ArgumentKind.BUFFER, number)
    if type_.values and bound is None:
        return Argument(ArgumentKind.NUMBER, random.choice(type_.values) & ((1 << type_.bits) - 1))
    return Argument(ArgumentKind.NUMBER, _number(type_.bits, bound, random, small))


def _number(bits: int, bound: int | None, random: Random, small: int) -> int:
    if bound is not None:
        return random.randrange(bound)
    if small in (ANY, EDGE):
        return random.getrandbits(bits) if small == ANY else random.choice((0, 0, 1, (1 << bits) - 1))
    if small:
        return random.randrange(max(8 >> small, 2))
    ones = (1 << bits) - 1
    drawn = random.choice((random.choice(_INTERESTING), random.randrange(8), ones, random.getrandbits(bits)))
    return drawn & ones


def bounds_of(function: Function, description: Description) -> dict[str, int]:
    """For parameters that are used as indices, the smallest count of what they index."""
    found: dict[str, int] = {}
    parameters = {parameter.name for parameter in function.parameters}
    for _, hop, member in (step for access in function.accesses for step in access.members(description)):
        count = member.count or (member.bits if isinstance(member, Field) else 1)  # of a word, its bits
        for name in parameters.intersection(map(spelling, hop.index.names if hop.index else ())):
            found[name] = min(count, found.get(name, count))
    return found
