"""The virtual board: emitted code built as firmware and run under an emulator, measured as on a real board.

from edgewright.emit import TARGETS, emit
from edgewright.emit.firmware import measure
from edgewright.kernels.select import close_plan

library = emit(close_plan(plan, TARGETS["cortex-m4"]))
measured = measure(library, random_inputs(plan.network, seed=0), profile=True, optimise="-O2")
measured.outputs, measured.instructions, measured.stages, measured.stack_bytes, measured.flash_code
"""

from .measurement import Emulator, Measurement, chosen_emulator, link, measure, trace

__all__ = ["Emulator", "Measurement", "chosen_emulator", "link", "measure", "trace"]
