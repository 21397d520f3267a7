"""Many emitted libraries in one shared object: one call of the compiler, and proof that their names do not clash."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from edgewright.emit import TARGETS, Library, emit
from edgewright.emit.native import Native
from edgewright.memory import plan as make_plan
from edgewright.network import Array, Network, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.reference import compare
from edgewright.program import Plan
from tests.helpers.emitting import WARNINGS
from tests.helpers.tools import command

PLAIN = ("rv32gc", "rv32imc")  # with and without an FPU: no vectors, so that the operators' own nests are seen


def libraries(
    networks: Sequence[Network], targets: Sequence[str] = PLAIN, plans: Sequence[Plan] | None = None
) -> list[Library]:
    """A library for each network, under names that differ; targets take turns."""
    made = plans or [make_plan(network) for network in networks]
    return [
        emit(plan, TARGETS[targets[i % len(targets)]], network, name=f"n{i}")
        for i, (network, plan) in enumerate(zip(networks, made, strict=True))
    ]


def build_together(made: Sequence[Library], flags: Sequence[str] = WARNINGS, cc: str = "gcc") -> list[Native]:
    """All libraries, compiled as one translation unit and loaded."""
    folder = tempfile.TemporaryDirectory(prefix="edgewright-")
    where = Path(folder.name)
    sources = []
    for library in made:
        for name, content in library.files.items():
            (where / name).write_bytes(content.encode() if isinstance(content, str) else content)
        sources += library.sources
    (where / "all.c").write_text("".join(f'#include "{name}"\n' for name in sources))
    output = ["-shared", "-fPIC", "-I", str(where), "-o", str(where / "all.so")]
    done = subprocess.run([*command(cc), *flags, *output, "all.c", "-lm"], cwd=where, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-6000:]
    return [Native(library, where / "all.so", folder) for library in made]


def check_together(
    networks: Sequence[Network],
    targets: Sequence[str] = PLAIN,
    plans: Sequence[Plan] | None = None,
    inputs: Sequence[dict[str, Array]] | None = None,
    flags: Sequence[str] = WARNINGS,
) -> None:
    """Every network's emitted code gives what the numpy kernels give."""
    for i, native in enumerate(build_together(libraries(networks, targets, plans), flags)):
        network = native.network
        given = inputs[i] if inputs else random_inputs(network, i)
        agree(network, native.run(given, poison=0xFF if i % 2 else 0x55), execute(network, given))


def agree(network: Network, actual: dict[str, Array], expected: dict[str, Array]) -> None:
    """Integers bit for bit, floats within the tolerance."""
    for name in network.outputs:
        if not network.tensors[name].dtype.is_float:
            np.testing.assert_array_equal(actual[name], expected[name], err_msg=f"{network.layers}: {name}")
    verdict = compare(network, actual, expected)
    assert verdict.passes, (network.layers, verdict)
