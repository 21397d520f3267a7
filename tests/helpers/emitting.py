"""Emitted C against the reference semantics: built for this machine, run, compared."""

from __future__ import annotations

import numpy as np

from edgewright.emit import TARGETS, Options, emit
from edgewright.emit.native import Native, build
from edgewright.memory import plan as make_plan
from edgewright.network import Network, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.reference import compare
from edgewright.program import Plan

# Every warning is an error: an embedded engineer compiles with them on. Optimised a little, since tests are many.
WARNINGS = (
    *("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-Werror"),
    *("-Og", "-ffp-contract=off", "-fno-strict-aliasing"),
)


def native(network: Network, target: str = "host", plan: Plan | None = None, options: Options | None = None) -> Native:
    library = emit(plan or make_plan(network), TARGETS[target], network, options=options)
    return build(library, flags=WARNINGS)


def check_emitted(
    network: Network,
    target: str = "host",
    plan: Plan | None = None,
    options: Options | None = None,
    seeds: int = 2,
    exact: bool | None = None,
) -> None:
    """The emitted code gives what the numpy kernels give: integers bit for bit, floats within the tolerance."""
    library = native(network, target, plan, options)
    for seed in range(seeds):
        inputs = random_inputs(network, seed)
        expected = execute(network, inputs)
        actual = library.run(inputs, poison=0xFF if seed % 2 == 0 else 0x55)
        for name in network.outputs:
            whole = not network.tensors[name].dtype.is_float
            if whole if exact is None else exact:
                np.testing.assert_array_equal(actual[name], expected[name], err_msg=f"{network.name}: {name}")
        verdict = compare(network, actual, expected)
        assert verdict.passes, (network.name, verdict)
