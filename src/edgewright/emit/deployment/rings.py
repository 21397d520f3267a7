"""Rings of rows as the C sees them: what the part that fills one asks and says around each row.

One thread is enough: a run that finds its ring full returns, and goes on from there whenever the reader finds it empty.
Where parts have a thread each, they wait for each other instead.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...kernels.printing.constants import C_TYPES
from ...network import Tensor
from ...program.deployment import Fifo
from ..streaming import paused_words
from .c_deployment import CDeployment
from .calls import PartCall


@dataclass(frozen=True)
class CRing:
    number: int
    fifo: Fifo
    call: PartCall  # of the part that fills it

    @property
    def code(self) -> CDeployment:
        return self.call.code

    @property
    def words(self) -> int:
        """Words of RAM: rows made and taken, where the producer stands, and whom it asks for rows."""
        return 2 + self.paused + 2 * len(self.asked)

    @property
    def paused(self) -> int:
        return paused_words(self.call.plan)

    @property
    def asked(self) -> list[str]:
        """The parameters that bring rows to the producer."""
        return [self.call.names.inputs[tensor] for tensor in self.call.asked]

    @property
    def tensor(self) -> Tensor:
        return self.code.deployment.tensor(self.fifo)

    @property
    def ctype(self) -> str:
        return C_TYPES[self.tensor.dtype.value]

    @property
    def row_bytes(self) -> int:
        return self.tensor.bytes // self.fifo.frame_rows

    @property
    def row_made(self) -> str:
        """C of the number of a row that the producer has made, counted over all frames."""
        return f"{self.code.frame(self.fifo.source)} * {self.fifo.frame_rows}u + (uint32_t)stop"

    @property
    def row_wanted(self) -> str:
        """C of the number of the row that the reader asks for."""
        return f"{self.code.frame(self.fifo.reading[0])} * {self.fifo.frame_rows}u + (uint32_t)row"

    @property
    def place(self) -> str:
        return self.code.address(self.code.slots(self.fifo)[0])
