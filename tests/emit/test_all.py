"""Every operator has an emitter in every arithmetic that has it; whole random networks agree with numpy."""

from __future__ import annotations

import os
import zlib
from typing import get_args

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from edgewright.kernels.catalogue import BY_NAME, CATALOGUE, kernels_for
from edgewright.memory import plan as make_plan
from edgewright.network import DType, Network
from edgewright.network.kernels.tflite import TFLITE
from edgewright.network.operators import BETWEEN_PARTS, Custom, Op
from edgewright.network.tflite import read_tflite
from edgewright.program.selection import CallKind
from tests.helpers.emitting_batch import check_together
from tests.helpers.emitting_cases import FEW, REAL, float_layer, quantised_layer
from tests.helpers.kernel_cases import cases
from tests.helpers.random_networks import networks
from tests.helpers.tflite_cases import CASES, FLOAT, INT8, INT16, UINT8, random_value

FAMILIES = ("host", "cortex-m4", "rv32imc", "cortex-m55")  # SIMD, DSP, plain C, vectors: all run on this machine
KINDS = sorted(set(get_args(Op)) - {Custom, *BETWEEN_PARTS}, key=lambda kind: kind.__name__)
THOROUGH = bool(os.environ.get("EDGEWRIGHT_THOROUGH"))
MANY = 10_000 if THOROUGH else 16
TOGETHER = 48  # networks in one shared object


def test_every_operator_has_a_kernel() -> None:
    assert all(kernels_for(kind, CallKind.COMPUTE) for kind in KINDS)


def test_kernels_have_names_of_their_own() -> None:
    assert len(BY_NAME) == len(CATALOGUE)


@FEW
@given(st.data())
def test_every_operator_is_emitted_for_floats(data: st.DataObject) -> None:
    drawn = [float_layer(data.draw(cases(kind))) for kind in KINDS]
    check_together([network for network, _ in drawn], FAMILIES, inputs=[values for _, values in drawn])


@FEW
@given(st.data())
def test_every_operator_is_emitted_as_onnxruntime_computes_it(data: st.DataObject) -> None:
    types = st.sampled_from([DType.INT8, DType.UINT8, DType.INT16])
    kinds = [kind for kind in KINDS if kind not in REAL]
    drawn = [quantised_layer(data.draw(cases(kind)), data.draw(types), data.draw(st.booleans())) for kind in kinds]
    check_together([network for network, _ in drawn], FAMILIES, inputs=[values for _, values in drawn])


def test_every_operator_is_emitted_as_tflite_computes_it() -> None:
    """In every type that LiteRT has it in, the operators of TFLite's own arithmetic among them.

    `make test` leaves floats to the test above, and unsigned bytes where there are signed ones.
    """
    drawn, kinds = [], set()
    for name, dtype in CASES:
        if not THOROUGH and (dtype == FLOAT or (dtype == UINT8 and (name, INT8) in CASES)):
            continue
        rng = np.random.default_rng([7, zlib.crc32(name.encode())])
        network = read_tflite(CASES[name, dtype](rng, dtype))
        low = 0 if name in ("rsqrt", "sqrt") and dtype == INT16 else None  # roots of negatives are undefined
        inputs = (network.tensors[i] for i in network.inputs)
        drawn.append((network, {t.name: random_value(rng, t.shape, t.dtype.value, low) for t in inputs}))
        kinds |= {type(layer.op) for layer in network.layers} if dtype != FLOAT else set()
    assert kinds >= set(TFLITE)
    check_together([network for network, _ in drawn], FAMILIES, inputs=[values for _, values in drawn])


def test_random_networks_agree_with_numpy() -> None:
    """Floats, and int8 in both arithmetics; drawn one by one, compiled together, for one family after the other."""
    waiting: list[Network] = []
    done = 0

    def flush() -> None:
        nonlocal done
        turn = done % len(FAMILIES)
        plans = [make_plan(n, plain=i % 6 == 0, explain=False) for i, n in enumerate(waiting)]
        check_together(waiting, FAMILIES[turn:] + FAMILIES[:turn], plans)
        done += 1
        waiting.clear()

    @settings(max_examples=MANY, phases=(Phase.generate,))
    @given(networks(most=6))
    def collect(network: Network) -> None:
        waiting.append(network)
        if len(waiting) == TOGETHER:
            flush()

    collect()
    if waiting:
        flush()
