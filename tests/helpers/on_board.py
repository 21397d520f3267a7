"""Emitted C on an emulated chip against the reference semantics: what is written for one processor alone."""

from __future__ import annotations

import numpy as np

from edgewright.emit import TARGETS, emit
from edgewright.emit.firmware import measure
from edgewright.memory import plan as make_plan
from edgewright.network import Network, random_inputs
from edgewright.network.kernels import execute
from edgewright.program import Plan
from tests.helpers.tools import needs_board


def check_on_board(
    network: Network,
    target: str = "cortex-m4",
    plan: Plan | None = None,
) -> None:
    """The chip's outputs are those of the numpy kernels, bit for bit, in the RAM that was planned."""
    library = emit(plan or make_plan(network), TARGETS[target], network)
    needs_board(target)
    inputs = random_inputs(network, 5)
    measured = measure(library, inputs)
    for name, expected in execute(network, inputs).items():
        np.testing.assert_array_equal(measured.outputs[name], expected, err_msg=f"{network.name}: {name}")
