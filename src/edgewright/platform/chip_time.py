"""Time of instructions on a microcontroller: cycles by instruction class and flash wait states, at the core's highest
clock.

Arm documents the cycles of each class for Cortex-M0+ (TRM DDI 0484, 3.3), M3 (TRM 100165, 3.3) and M4 (TRM 100166, 3.3;
FPU 7.2.3): loads and stores take one cycle for the instruction and one for each word, unless another load precedes;
taken branches refill the pipeline. There is no such table for the other cores: their cycles follow from pipelines,
issue width and branch prediction as described by their makers. The frequency of each class in kernels was counted on
the virtual board (`benchmarks/instruction_mix.py`): networks differ by 5 % in cycles per instruction. A cache miss of
weights waits for flash once every 16 bytes; code is assumed to run from the cache or accelerator that all boards of the
catalogue have, and a flash without stated wait states to have none. These times have not been compared with boards.
"""

from __future__ import annotations

from dataclasses import dataclass

from .board import Board
from .processor import Processor, ProcessorKind

ERROR = 0.3  # assumed relative error, in addition to that of the instructions


@dataclass(frozen=True, slots=True)
class InstructionMix:
    """The frequency of instruction classes, per executed instruction."""

    loads: float  # words that do not follow another load
    stores: float  # words beyond the first of a store, which the write buffer takes
    branches: float  # taken
    multiply_adds: float  # of real numbers
    divisions: float
    lines: float  # 16 bytes of weights that miss a small cache


# Bytes: the median of mlperf_ad01_int8, mlperf_kws_ref_int8 and tflm_micro_speech_int8; reals: lenet5. With GCC -Os.
_WITH_PAIRS = InstructionMix(0.31, 0.014, 0.074, 0.0, 0.0, 0.026)  # kernels for Cortex-M4, M7, M33
_REALS = InstructionMix(0.27, 0.017, 0.10, 0.166, 0.005, 0.044)
_PLAIN = InstructionMix(0.27, 0.05, 0.027, 0.0, 0.0, 0.025)  # plain C, including software floats


@dataclass(frozen=True, slots=True)
class CoreCycles:
    """Cycles per instruction, and the additional cycles of instruction classes."""

    issue: float
    load: float = 1.0
    store: float = 1.0
    branch: float = 2.0
    multiply_add: float = 2.0
    division: float = 12.0
    least: float = 1.0  # lower bound of cycles per instruction
    has_pairs: bool = True  # kernels with pairs of products

    def per_instruction(self, mix: InstructionMix, wait_states: int) -> float:
        return (
            self.issue
            + self.load * mix.loads
            + self.store * mix.stores
            + self.branch * mix.branches
            + self.multiply_add * mix.multiply_adds
            + self.division * mix.divisions
            + wait_states * mix.lines
        )


_M4 = CoreCycles(1.0)
_CORES = {
    ProcessorKind.CORTEX_M0PLUS: CoreCycles(1.0, branch=1.0, has_pairs=False),
    ProcessorKind.CORTEX_M3: CoreCycles(1.0, has_pairs=False),
    ProcessorKind.CORTEX_M4: _M4,
    ProcessorKind.CORTEX_M4F: _M4,
    ProcessorKind.CORTEX_M33: CoreCycles(0.95, load=0.7, branch=1.5, least=0.5),
    # Two independent instructions per cycle, and predicted branches.
    ProcessorKind.CORTEX_M7: CoreCycles(0.6, load=0.3, store=0.5, branch=0.5, multiply_add=0.5, least=0.5),
    ProcessorKind.CORTEX_M85: CoreCycles(0.6, load=0.3, store=0.5, branch=0.5, multiply_add=0.5, least=0.5),
    # Vectors take two cycles, and the next one overlaps one of them.
    ProcessorKind.CORTEX_M55: CoreCycles(1.0, load=0.5, branch=1.0, multiply_add=1.0, least=0.5),
    ProcessorKind.RV32IMC: CoreCycles(1.0, load=0.5, store=0.0, has_pairs=False),
    ProcessorKind.RV32GC: CoreCycles(1.0, load=0.5, store=0.0, has_pairs=False),
}


def instruction_time(board: Board, processor: Processor, is_real: bool = False) -> float | None:
    """Seconds per instruction in a network on bytes, or on real numbers; None if cycles are unknown."""
    core = _CORES.get(processor.kind)
    if core is None:
        return None
    mix = (_REALS if is_real else _WITH_PAIRS) if core.has_pairs else _PLAIN
    waits = next((memory.wait_states or 0 for memory in board.flash), 0)
    return core.per_instruction(mix, waits) / processor.clock


def board_instruction_time(board: Board | None, is_real: bool = False) -> float | None:
    """Seconds per instruction on the board's first core with known cycles."""
    times = (instruction_time(board, processor, is_real) for processor in board.processors) if board else ()
    return next((time for time in times if time), None)


def assumed_instruction_time(board: Board, is_real: bool = False) -> float:
    """Like `board_instruction_time`; if cycles are unknown, one per instruction at the first processor's clock."""
    return board_instruction_time(board, is_real) or 1 / board.processors[0].clock


def least_instruction_time(board: Board) -> float:
    """A lower bound of the seconds per instruction on the board's first core."""
    processor = board.processors[0]
    core = _CORES.get(processor.kind)
    return (core.least if core else 1.0) / processor.clock
