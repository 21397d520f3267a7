"""A call of a kernel as it is printed: the site in C's words, with its region, its pointers and its scratch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from ..network import Array
from .module import Module
from .printing.constants import ALIGNMENT
from .printing.source import CWriter, Expr
from .printing.tensor import CTensor
from .site import ChannelRange, Site


@dataclass(frozen=True)
class CCall(Site):
    module: Module
    region: tuple[tuple[Expr, Expr], ...]  # of the output: half-open, already clipped; may be empty at run time
    inputs: tuple[CTensor, ...]  # constants included, as they are in the network: the module not yet told
    output: CTensor
    which: Expr = 0  # of the ranges of channels
    partial: tuple[tuple[Expr, Expr], ...] | None = None  # part of input 0 that is added to running sums
    # C of those sums (int32_t *, or float *: the output), in the order of the whole output
    sums: str | None = None
    room: str | None = None  # C (uint8_t *, 8-aligned) of the scratch in an arena; None: on the stack
    plane_at: str | None = None  # C (uint8_t *) of the plane that the plan reserves

    @classmethod
    def of(cls, site: Site, **given: Any) -> CCall:
        """The site with what C needs besides."""
        return cls(**{field.name: getattr(site, field.name) for field in fields(Site)} | given)

    def use(self, *kernels: str) -> None:
        """Takes kernel files (`c/NAME.h`, and `NAME.c` where there is one) into the library."""
        self.module.kernels.update(kernels)

    def table(self, ctype: str, fields: Callable[[ChannelRange], Sequence[Expr]]) -> str:
        """C of a `static const` struct with these fields for the channels of the call."""
        return self.module.one_table(ctype, [fields(channels) for channels in self.ranges], self.which)

    def pointer(self, name: Callable[[ChannelRange], str]) -> str:
        """C of the constant that belongs to the channels of the call."""
        return self.module.one_pointer([name(channels) for channels in self.ranges], self.which)

    def number(self, value: Callable[[ChannelRange], int]) -> Expr:
        """The number that belongs to the channels of the call."""
        return self.module.one_number([value(channels) for channels in self.ranges], self.which)

    def add(self, values: Array, note: str, alignment: int = ALIGNMENT) -> str:
        """The name of a constant in flash."""
        return self.module.constants.add(values, f"{self.layer.name}: {note}", alignment)

    def scratch(self, c: CWriter, ctype: str, count: int, name: str = "scratch") -> str:
        """C of a pointer (`ctype *`) to the scratch: in an arena, or declared here as a local array of so many."""
        if self.room is None:
            c.line(f"{ctype} {name}[{count}];")
            return name
        return self.room if ctype == "uint8_t" else f"({ctype} *)(void *){self.room}"

    def constant(self, which: int) -> CTensor:
        """Input `which`, a constant, as it lies in flash in its own layout."""
        place = self.inputs[which]
        values = self.network.constants[place.tensor.name]
        name = self.module.constants.add(values, f"{self.layer.name}: {place.tensor.name}")
        return replace(place, pointer=name)

    def place(self, which: int) -> CTensor:
        """Input `which` wherever it lies; a constant is put into flash as it is."""
        return self.constant(which) if self.inputs[which].is_constant else self.inputs[which]
