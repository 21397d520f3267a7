"""Rings of rows in C: what a partition that fills one asks and says around each row, and how the next one pulls them.

One thread is enough: a run that finds its ring full returns, and goes on from there whenever the reader finds it empty.
Where partitions have a thread each, they wait for each other instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..emit.library import Library
from ..emit.names import parameters
from ..emit.streaming import RowOutlet, paused_words
from ..kernels.printing.constants import C_TYPES
from ..kernels.printing.source import CWriter
from ..program import Plan
from ..program.deployment import Deployment, Fifo
from .app_gate import AppGate

WAITING = """\
/* Rows cross in rings. Where partitions have a thread or a core each, define APP_WAIT() as what one does while it waits
 * for the other: sched_yield(), for example. Without it one thread does everything: a run that finds its ring full
 * returns, and goes on when the next partition wants rows. */
#ifndef APP_WAIT
#define APP_ALONE 1u
#define APP_ORDER()
#elif defined(__GNUC__)
#define APP_ALONE 0u
#define APP_ORDER() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#else
#error "threads need a fence of memory, which is not known for this compiler"
#endif"""


def row_outlet(prefix: str, deployment: Deployment, member: str) -> RowOutlet | None:
    """Where the rows of a member's output leave, if it fills a ring."""
    for number, ring in enumerate(deployment.rings):
        if ring.source == member:
            tensor = deployment.part_named[member].own(ring)
            return RowOutlet(tensor, f"{prefix}_room_{number}({{stop}})", f"{prefix}_made_{number}({{stop}})")
    return None


def asked_inputs(deployment: Deployment, plan: Plan, member: str) -> tuple[str, ...]:
    """The inputs whose rows a member asks its caller for, and not a ring."""
    own = deployment.part_named[member].own
    out_of_rings = {own(ring) for ring in deployment.rings if member in ring.reading}
    return tuple(name for name in plan.network.inputs if plan.is_by_rows(name) and name not in out_of_rings)


@dataclass(frozen=True)
class AppRings:
    """The rings of an application's library: of each, C of where it begins, and of the call that goes on filling it."""

    gate: AppGate
    places: Mapping[str, str]
    resumed: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.gate.name

    @property
    def rings(self) -> tuple[Fifo, ...]:
        return self.gate.deployment.rings

    @property
    def words(self) -> int:
        """Words of RAM: rows made and taken, where each producer stands, and whom it asks for rows."""
        return sum(2 + self._paused(ring) + 2 * len(self._pulled(ring)) for ring in self.rings)

    def _pulled(self, ring: Fifo) -> tuple[str, ...]:
        return asked_inputs(self.gate.deployment, self._producer_of(ring).plan, ring.source)

    def _paused(self, ring: Fifo) -> int:
        return paused_words(self._producer_of(ring).plan)

    def _producer_of(self, ring: Fifo) -> Library:
        return self.gate.libraries[ring.source]

    def prototypes(self) -> Iterator[str]:
        """What the producers call."""
        for number in range(len(self.rings)):
            yield f"int32_t {self.name}_room_{number}(int32_t stop);"
            yield f"void {self.name}_made_{number}(int32_t stop);"

    def declared(self) -> Iterator[str]:
        """Macros and variables."""
        if self.rings:
            yield from WAITING.replace("APP", self.name.upper()).splitlines()
            yield f"static volatile uint32_t made[{len(self.rings)}], taken[{len(self.rings)}]; /* rows of each ring */"
        for number, ring in enumerate(self.rings):
            yield f"static int32_t paused_{number}[{self._paused(ring)}]; /* where its producer stopped */"
            if self._pulled(ring):
                library = self._producer_of(ring)
                names = parameters(library.name, library.network, library.plan.arenas).inputs
                for name in self._pulled(ring):
                    yield f"static {library.name}_pull_{names[name]} kept_{number}_{names[name]}; /* whom it asks */"
                    yield f"static void *kept_{number}_{names[name]}_context;"

    def write(self, c: CWriter) -> None:
        for number, ring in enumerate(self.rings):
            self._producer(c, number, ring)
            self._reader(c, number, ring)

    def _producer(self, c: CWriter, number: int, ring: Fifo) -> None:
        name, guard = self.name, self.name.upper()
        row = f"{self.gate.frame(ring.source)} * {ring.frame_rows}u + (uint32_t)stop"
        with c.block(f"int32_t {name}_room_{number}(int32_t stop)"):
            c.line(f"/* No more than {ring.rows} rows that were not taken, and none of the frame before. */")
            c.line(f"const uint32_t most = stop < {ring.rows} ? (uint32_t)stop : {ring.rows}u;")
            with c.block(f"while ({row} - taken[{number}] > most)"):
                c.lines += [f"#ifdef {guard}_WAIT", f"        {guard}_WAIT();", "#else", "        return 0;", "#endif"]
            c.line(f"{guard}_ORDER();")
            c.line("return 1;")
        c.line()
        with c.block(f"void {name}_made_{number}(int32_t stop)"):
            c.line(f"{guard}_ORDER();")
            c.line(f"made[{number}] = {row};")
        c.line()

    def _reader(self, c: CWriter, number: int, ring: Fifo) -> None:
        guard, frame = self.name.upper(), self.gate.frame(ring.readers[0].part)
        source, tensor = self.gate.index[ring.source], self.gate.deployment.tensor(ring)
        ctype, row_bytes = C_TYPES[tensor.dtype.value], tensor.bytes // ring.frame_rows
        with c.block(f"static void pull_{number}(void *context, int32_t row, {ctype} *target)"):
            c.line(f"const uint32_t at = {frame} * {ring.frame_rows}u + (uint32_t)row;")
            c.line("(void)context;")
            with c.block(f"while (made[{number}] == at)"):
                c.lines += [f"#ifdef {guard}_WAIT", f"        {guard}_WAIT();", "#else"]
                c.line(f"mark(&running, 1u << {source}, 1u);")
                c.line(f"(void){self.resumed[ring.name]};")
                c.line(f"mark(&running, 1u << {source}, 0u);")
                c.lines += ["#endif"]
            c.line(f"{guard}_ORDER();")
            place = f"{self.places[ring.name]} + row % {ring.rows} * {row_bytes}"
            c.line(f"memcpy(target, {place}, {row_bytes});")
            c.line(f"{guard}_ORDER();")
            c.line(f"taken[{number}] = at + 1u;")
        c.line()
