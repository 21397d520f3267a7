"""Rings of rows in C: what a part that fills one asks and says around each row, and how the next one pulls them.

One thread is enough: a run that finds its ring full returns, and goes on from there whenever the reader finds it empty.
Where parts have a thread each, they wait for each other instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...kernels.printing.constants import C_TYPES
from ...program import ROWS
from ...program.deployment import Fifo, Part
from ..streaming import RowOutlet, paused_words
from .c_deployment import CDeployment
from .gate import Gate


def row_outlet(code: CDeployment, part: Part) -> RowOutlet | None:
    """Where the rows of a part's output leave, if it fills a ring."""
    for number, ring in enumerate(code.rings):
        if ring.source == part.name:
            room, made = (f"{code.name}_{asked}_{number}({{stop}})" for asked in ("room", "made"))
            return RowOutlet(part.own(ring), room, made)
    return None


def asked_inputs(code: CDeployment, part: Part) -> tuple[str, ...]:
    """The inputs whose rows a part asks its caller for, and not a ring."""
    out_of_rings = {part.own(ring) for ring in code.rings if part.name in ring.reading}
    is_by_rows = code.plans[part.name].is_by_rows
    return tuple(name for name in part.network.inputs if is_by_rows(name) and name not in out_of_rings)


@dataclass(frozen=True)
class CRings:
    """The rings of a library, with C of the call that goes on filling each."""

    gate: Gate
    resumed: Mapping[Fifo, str]

    @property
    def code(self) -> CDeployment:
        return self.gate.code

    @property
    def words(self) -> int:
        """Words of RAM: rows made and taken, where each producer stands, and whom it asks for rows."""
        return sum(2 + self._paused(ring) + 2 * len(self._pulled(ring)) for ring in self.code.rings)

    def _source(self, ring: Fifo) -> Part:
        return self.code.deployment.part_named[ring.source]

    def _pulled(self, ring: Fifo) -> tuple[str, ...]:
        return asked_inputs(self.code, self._source(ring))

    def _paused(self, ring: Fifo) -> int:
        return paused_words(self.code.plans[ring.source])

    def prototypes(self) -> Iterator[str]:
        """What the producers call."""
        for number in range(len(self.code.rings)):
            yield f"int32_t {self.code.name}_room_{number}(int32_t stop);"
            yield f"void {self.code.name}_made_{number}(int32_t stop);"

    def declared(self) -> Iterator[str]:
        """Macros and variables."""
        rings = self.code.rings
        if rings:
            yield from self.code.text("rings.h")
            yield f"static volatile uint32_t made[{len(rings)}], taken[{len(rings)}]; /* rows of each ring */"
        for number, ring in enumerate(rings):
            yield f"static int32_t paused_{number}[{self._paused(ring)}]; /* where its producer stopped */"
            prefix, source = self.code.prefix(self._source(ring)), self._source(ring)
            names = self.code.parameters(source).inputs
            for name in map(names.__getitem__, self._pulled(ring)):
                yield f"static {prefix}_pull_{name} kept_{number}_{name}; /* whom it asks */"
                yield f"static void *kept_{number}_{name}_context;"

    def text(self) -> Iterator[str]:
        """C of what the producer of each ring calls, and of what its reader does."""
        code = self.code
        for number, ring in enumerate(code.rings):
            rows, tensor = ring.what.region.shape[ROWS], code.deployment.tensor(ring)
            yield code.render(
                "ring.c",
                number=number,
                most=ring.rows,
                row=f"{self.gate.frame(ring.source)} * {rows}u + (uint32_t)stop",
                first=f"{self.gate.frame(ring.reading[0])} * {rows}u",
                source=code.index[ring.source],
                resumed=self.resumed[ring],
                ctype=C_TYPES[tensor.dtype.value],
                place=code.address(code.slots(ring)[0]),
                row_bytes=tensor.bytes // rows,
            )
