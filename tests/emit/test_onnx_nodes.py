"""The ONNX project's own node tests, through emitted C: read, planned, compiled many at a time, run.

Which pass and which are refused, and why, stands in docs/onnx-node-tests.md; EDGEWRIGHT_UPDATE_DOCS=1 rewrites it.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest

from edgewright.emit import TARGETS, emit
from edgewright.emit.native import Native
from edgewright.memory import plan as make_plan
from edgewright.network import Network
from edgewright.network.onnx_format.table import STANDARD
from edgewright.network.reference import to_file_layout, to_our_layout
from tests.helpers.emitting import WARNINGS
from tests.helpers.emitting_batch import build_together
from tests.helpers.onnx_node_cases import NodeCase, array, node_cases, read_case

PAGE = Path(__file__).parents[2] / "docs" / "onnx-node-tests.md"
FAMILIES = ("cortex-m7", "rv32imc", "host")  # all run on this machine; vector code takes the compiler minutes
TOGETHER = 60  # models in one shared object
FLAGS = [*(flag for flag in WARNINGS if flag != "-Og"), "-O0"]  # the compiler's time is what counts here

pytestmark = (
    pytest.mark.slow
)  # all models of the suite are read; `tests/network/test_onnx_reader.py` computes what they say

# Where onnxruntime, whose arithmetic ours follows, gives another result than the suite expects.
DIFFERENT = {
    f"test_resize_downsample_scales_{mode}_align_corners": "computed as onnxruntime does, which differs"
    for mode in ("linear", "cubic")
}
# Nothing of these is left; most give constants, take shapes at run time, or have outputs that we lack.
UNTESTED = {
    *("Affine", "Crop", "ImageScaler", "ScaledTanh"),  # withdrawn from the standard
    "Constant",
    "ConstantOfShape",
    "ConvInteger",
    "EyeLike",
    "LayerNormalization",
    "MatMulInteger",
    "Range",
    "Shape",
    "Size",
}


INTRODUCTION = (
    "The ONNX project ships tests for every operator (here those of version {}): a model of one node, or of the nodes "
    "that a function expands to, with inputs and expected outputs. Those whose nodes are all among the "
    "[operators we read](operators.md) are read, planned, emitted as C, compiled without a warning, run on this "
    "machine, and compared with the suite's own tolerances. Where a model feeds parameters at run time that exported "
    "networks hold as constants (weights, scales, shapes), they are made constants. "
    "`tests/emit/test_onnx_nodes.py` does all this and keeps this page current."
)


@pytest.fixture(scope="module")
def networks() -> Mapping[str, Network | str]:
    """What the suite's models are read as, or why they are refused."""
    return {case.name: read_case(case) for case in node_cases()}


@pytest.fixture(scope="module")
def reasons(networks: Mapping[str, Network | str]) -> Mapping[str, str]:
    """Why tests are skipped."""
    refused = {name: _short(read) for name, read in networks.items() if isinstance(read, str)}
    return refused | DIFFERENT


def _short(reason: str) -> str:
    """The error without the names of model and node, so that equal reasons read alike."""
    line = reason.splitlines()[-1]
    return re.sub(r"^ *\w+ x1 \('\w+'\): |^\w+ '\w+': |(?:^|(?<= of ))'test_\w+' ", "", line)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", FAMILIES if os.environ.get("EDGEWRIGHT_THOROUGH") else FAMILIES[:1])
def test_onnx_node_tests_pass(target: str, networks: Mapping[str, Network | str], reasons: Mapping[str, str]) -> None:
    cases = [case for case in node_cases() if case.name not in reasons]
    wrong = []
    for first in range(0, len(cases), TOGETHER):
        some = cases[first : first + TOGETHER]
        wrong += [
            case.name
            for case, native in zip(some, _built(some, networks, target), strict=True)
            if not _passes(case, native)
        ]
    assert not wrong


def _built(cases: list[NodeCase], networks: Mapping[str, Network | str], target: str) -> list[Native]:
    libraries = []
    for case in cases:
        network = networks[case.name]
        assert isinstance(network, Network)
        libraries.append(emit(make_plan(network, explain=False), TARGETS[target], network, name=case.name))
    return build_together(libraries, FLAGS)


def _passes(case: NodeCase, native: Native) -> bool:
    """Whether the outputs are within the suite's own tolerances."""
    network = native.network
    given = {name: array(case.inputs[name]).astype(network.tensors[name].dtype.numpy) for name in network.inputs}
    outputs = native.run({name: to_our_layout(network, name, value) for name, value in given.items()}, poison=0xFF)
    for info, expected in zip(case.model.graph.output, map(array, case.expected), strict=True):
        actual = to_file_layout(network, info.name, outputs[info.name])
        rtol = max(case.rtol, 2**-6) if expected.dtype.name == "bfloat16" else case.rtol
        values = actual.astype(np.float64), expected.astype(np.float64)
        if actual.shape != expected.shape or not np.allclose(*values, rtol=rtol, atol=case.atol, equal_nan=True):
            return False
    return True


def test_every_operator_we_claim_has_a_test_that_passes(reasons: Mapping[str, str]) -> None:
    tested = {case.operator for case in node_cases() if case.name not in reasons}
    assert set(STANDARD) - tested <= UNTESTED
    assert set(DIFFERENT) <= {case.name for case in node_cases()}


def test_the_page_of_node_tests_is_current(reasons: Mapping[str, str]) -> None:
    text = _page(reasons)
    if os.environ.get("EDGEWRIGHT_UPDATE_DOCS"):
        PAGE.write_text(text)
    if f"version {onnx.__version__})" not in PAGE.read_text():
        pytest.skip("the page lists the tests of another version of the suite")
    assert PAGE.read_text() == text


def _page(reasons: Mapping[str, str]) -> str:
    passed = [case for case in node_cases() if case.name not in reasons]
    skipped = [case for case in node_cases() if case.name in reasons]
    counts = [Counter(case.operator for case in group) for group in (passed, skipped)]
    rows = [f"| {name} | {counts[0][name]} | {counts[1][name]} |" for name in sorted({*counts[0], *counts[1]})]
    by_reason, by_operator = defaultdict(list), defaultdict(list)
    for case in skipped:
        by_reason[reasons[case.name]].append(case.name)
    for case in passed:
        by_operator[case.operator].append(case.name)
    return "\n".join(
        [
            "# The ONNX project's node tests, in C",
            "",
            textwrap.fill(INTRODUCTION.format(onnx.__version__), 118),
            "",
            f"**{len(passed)} passed, {len(skipped)} skipped, 0 failed.**",
            "",
            "| Operator | Passed | Skipped |",
            "|---|---:|---:|",
            *rows,
            "",
            "## Skipped, and why",
            "",
            *(_item(reason, names) for reason, names in sorted(by_reason.items())),
            "",
            "## Passed",
            "",
            *(_item(operator, names) for operator, names in sorted(by_operator.items())),
            "",
        ]
    )


def _item(title: str, names: list[str]) -> str:
    listed = ", ".join(name.removeprefix("test_") for name in names)
    return textwrap.fill(f"- **{title}**: {listed}", 118, subsequent_indent="  ", break_on_hyphens=False)
