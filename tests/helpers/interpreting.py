"""Plans judged: by what they do to memory, and by the interpreter, whose outputs are those of the network."""

from __future__ import annotations

import numpy as np

from edgewright.network import Network, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.reference import compare
from edgewright.program import Plan, faults, interpret


def check_interpreted(network: Network, made: Plan) -> None:
    """Integers agree bit for bit, real numbers within what reordered sums may differ by."""
    assert next(faults(made), None) is None
    inputs = random_inputs(network, 3)
    expected, actual = execute(network, inputs), interpret(made, inputs)
    for name in network.outputs:
        if not network.tensors[name].dtype.is_float:
            np.testing.assert_array_equal(actual[name], expected[name])
    assert compare(network, actual, expected).passes
