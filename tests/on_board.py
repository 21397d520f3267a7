"""Emitted C on an emulated chip against the reference semantics: what is written for one processor alone."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from edgewright.emit import TARGETS, emit
from edgewright.emit.board import measure
from edgewright.emit.board.machine import machine_for
from edgewright.emit.board.qemu import has_qemu
from edgewright.memory import plan as make_plan
from edgewright.network import Network, random_inputs
from edgewright.network.kernels import execute
from edgewright.program import Plan


def check_on_board(
    network: Network,
    target: str = "cortex-m4",
    compiler: str = "arm-none-eabi-gcc",
    plan: Plan | None = None,
) -> None:
    """The chip's outputs are those of the numpy kernels, bit for bit, in the RAM that was planned."""
    library = emit(plan or make_plan(network), TARGETS[target], network)
    if not has_qemu(machine_for(library.target)) or not shutil.which(compiler):
        pytest.skip(f"no emulator or compiler for {target} here")
    inputs = random_inputs(network, 5)
    measured = measure(library, inputs)
    for name, expected in execute(network, inputs).items():
        np.testing.assert_array_equal(measured.outputs[name], expected, err_msg=f"{network.name}: {name}")
