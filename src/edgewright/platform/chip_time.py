"""How long instructions take on a microcontroller: so many cycles each, at the core's highest clock.

Cycles per instruction were set by hand from the makers' tables of instruction timing, for loops like those of our
kernels, with weights that come as fast as the core asks for them. Nobody has measured them on boards.
"""

from __future__ import annotations

from .board import Board
from .processor import Processor, ProcessorKind

ERROR = 0.3  # what such a time may well be off, beside the error of the instructions
# Loads take two cycles on a Cortex-M0+, M3 and M4, or one after another load; the M7, M55 and M85 do up to two
# instructions a cycle. A taken branch takes two to four cycles everywhere but on those that predict it.
_CYCLES = {
    ProcessorKind.CORTEX_M0PLUS: 1.4,
    ProcessorKind.CORTEX_M3: 1.3,
    ProcessorKind.CORTEX_M4: 1.25,
    ProcessorKind.CORTEX_M4F: 1.25,
    ProcessorKind.CORTEX_M7: 0.75,
    ProcessorKind.CORTEX_M33: 1.2,
    ProcessorKind.CORTEX_M55: 1.2,
    ProcessorKind.CORTEX_M85: 0.8,
    ProcessorKind.RV32IMC: 1.3,
    ProcessorKind.RV32GC: 1.2,
}


def instruction_time(processor: Processor) -> float | None:
    """Seconds of an instruction; None where that is not known."""
    cycles = _CYCLES.get(processor.kind)
    return cycles / processor.clock if cycles else None


def board_instruction_time(board: Board | None) -> float | None:
    """Seconds of an instruction on the board's first core whose figure is known."""
    times = (instruction_time(processor) for processor in board.processors) if board else ()
    return next((time for time in times if time), None)
