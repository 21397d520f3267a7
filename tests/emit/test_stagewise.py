"""Emitted code judged stage by stage from its own inputs: where stored real numbers meet ties, and no further."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import edgewright
from edgewright.emit import TARGETS, Library, emit, native
from edgewright.emit.firmware import Emulator, measurement, trace
from edgewright.emit.stagewise import compare_stages, completed
from edgewright.emit.verify import QUICK, verify
from edgewright.errors import EdgewrightError
from edgewright.network import Arithmetic, Array, Builder, DType, Network, Quant, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.operators import Conv2d, Quantize, Softmax
from edgewright.network.tflite import read_tflite
from tests.emit.board_cases import quantised
from tests.helpers.tflite_cases import FLOAT, INT8
from tests.helpers.tflite_models import Node, Spec, constant, model, options
from tests.helpers.tools import needs_board
from tests.network.test_dynamic import chain

DEPTH = 64
SUMS = np.random.default_rng(0).normal(0, 1, (DEPTH, DEPTH)).astype(np.float32)


def stored_sums() -> bytes:
    """Real products, whose sums are stored in eight bits as they come and multiplied with integers."""
    dense = options("FullyConnected")
    w = np.random.default_rng(1).integers(-127, 128, (5, DEPTH))
    specs = [Spec("x", (1, DEPTH)), constant("v", SUMS, FLOAT), constant("w", w, INT8, scale=0.01)]
    specs += [Spec("m", (1, DEPTH)), Spec("y", (1, 5))]
    nodes = [
        Node("FULLY_CONNECTED", ("x", "v"), ("m",), dense),
        Node("FULLY_CONNECTED", ("m", "w"), ("y",), dense),
    ]
    return model(specs, nodes, ["x"], ["y"])


def quantised_sums() -> bytes:
    """Real products, whose sums are stored with a scale from the file."""
    specs = [Spec("x", (1, DEPTH)), constant("v", SUMS, FLOAT), Spec("m", (1, DEPTH))]
    specs.append(Spec("y", (1, DEPTH), INT8, float(np.float32(3 / 127)), 0))
    dense = Node("FULLY_CONNECTED", ("x", "v"), ("m",), options("FullyConnected"))
    return model(specs, [dense, Node("QUANTIZE", ("m",), ("y",))], ["x"], ["y"])


def ties(seed: int) -> dict[str, Array]:
    """Inputs whose sums lie half a step from stored numbers, but for what is lost in the order of additions."""
    halves = np.random.default_rng(seed).integers(0, 127, DEPTH) + 0.5
    halves[0] = 127  # the largest: the step is a 127th of it
    return {"x": np.linalg.solve(SUMS.astype(np.float64), halves * 3 / 127)[None].astype(np.float32)}


def made(content: bytes, target: str) -> Library:
    network = read_tflite(content)
    return emit(edgewright.plan(network, explain=False), TARGETS[target], network, "net")


def verified(library: Library, content: bytes) -> Any:
    return verify(library, content, [ties(seed) for seed in range(3)], count=0)


@pytest.mark.parametrize(
    "content",
    [pytest.param(stored_sums(), id="dynamic"), pytest.param(quantised_sums(), id="static", marks=pytest.mark.slow)],
)
def test_ties_fall_to_either_side(content: bytes) -> None:
    """Beyond the tolerance, and yet right."""
    found = verified(made(content, "host"), content)
    assert found.verified and found.worst is not None
    assert found.worst.difference == found.worst.allowed > 0.01
    assert found.by_layers is not None and found.by_layers.passes


def test_ties_on_a_chip() -> None:
    needs_board("cortex-m4")
    content = stored_sums()
    found = verified(made(content, "cortex-m4"), content)
    assert found.verified
    assert found.checks[1].difference == found.checks[1].allowed > 0.01  # fused multiply-adds


FAULTS = {
    "cut off": ("net_round_away_float(px[i1] * inverse)", "(int32_t)(px[i1] * inverse)"),
    "one element": ("py[i1] = (int8_t)", "py[i1] = (int8_t)(i1 == 9) + (int8_t)"),
    "the scale": ("const float scale = ", "const float scale = 0.999f * "),
}


def faulty(library: Library, fault: str) -> Library:
    old, new = FAULTS[fault]
    text = str(library.files["net.c"])
    assert text.count(old) == 1
    return replace(library, files={**library.files, "net.c": text.replace(old, new)})


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_among_ties(fault: str) -> None:
    library = made(stored_sums(), "cortex-m4")
    inputs = ties(0)
    assert compare_stages(library.plan, library.network, inputs, seen(library, inputs)) is None
    found = compare_stages(library.plan, library.network, inputs, seen(faulty(library, fault), inputs))
    assert found is not None and found.stage == ("y" if fault == "the scale" else "y/stored")


def test_a_fault_is_found_on_a_chip() -> None:
    """On the chip alone: on this machine the code is right."""
    needs_board("cortex-m4")
    content = stored_sums()
    library = made(content, "cortex-m4")
    text = str(library.files["net.c"])
    old = "py[i1] = (int8_t)"
    broken = text.replace(
        old, "\n#ifdef __thumb__\npy[i1] = (int8_t)(i1 == 9) + (int8_t)\n#else\n" + old + "\n#endif\n"
    )
    assert text.count(old) == 1
    with pytest.raises(EdgewrightError, match=r"on (qemu|unicorn) mps2"):
        verified(replace(library, files={**library.files, "net.c": broken}), content)


def seen(library: Library, inputs: dict[str, Array]) -> dict[str, Array]:
    return native.build(library, flags=QUICK, probes=True).trace(inputs)


WISHES: list[dict[str, Any]] = [{}, {"plain": True}, {"phases": True}]


@pytest.mark.parametrize("wish", WISHES)
@pytest.mark.parametrize("network", [quantised(), read_tflite(chain())], ids=["int8", "dynamic"])
def test_tensors_between_stages_are_what_the_kernels_give(network: Network, wish: dict[str, Any]) -> None:
    library = emit(edgewright.plan(network, explain=False, **wish), TARGETS["cortex-m4"], network, "net")
    inputs = random_inputs(network, seed=3)
    tensors = seen(library, inputs)
    assert set(tensors) == {name for names in completed(library.plan) for name in names} >= set(network.outputs)
    ours = execute(network, inputs, keep=network.tensors)
    for name, value in tensors.items():
        np.testing.assert_allclose(value.astype(np.float32), ours[name].astype(np.float32), rtol=1e-5, atol=1e-5)
    assert compare_stages(library.plan, network, inputs, tensors) is None
    for stage, names in zip(library.stages, completed(library.plan), strict=True):
        for name in names:
            wrong = tensors[name].copy()
            wrong.flat[0] += 1 if wrong.flat[0] < 127 else -1
            found = compare_stages(library.plan, network, inputs, {**tensors, name: wrong})
            assert found is not None and found.stage == stage


@pytest.mark.parametrize("emulator", Emulator)
def test_the_board_shows_the_same(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_board("cortex-m4", emulator)
    monkeypatch.setattr(measurement, "has_qemu", lambda machine: emulator is Emulator.QEMU)
    network = quantised()
    library = emit(edgewright.plan(network, explain=False), TARGETS["cortex-m4"], network, "net")
    inputs = random_inputs(network, seed=1)
    here, there = seen(library, inputs), trace(library, inputs)
    assert here.keys() == there.keys()
    assert all(np.array_equal(here[name], there[name]) for name in here)


def unseen() -> tuple[Network, dict[str, Array]]:
    """Real numbers near ties that a stage makes and stores, row by row, so that they cannot be seen."""
    rng = np.random.default_rng(0)
    b = Builder("unseen", Arithmetic.ONNX)
    x = b.input("x", (1, 12, 12, 4))
    w = b.constant("w", np.eye(4, dtype=np.float32).reshape(4, 1, 1, 4))
    y = b.layer(Conv2d(), [x, w], "conv")
    y = b.layer(Quantize(), [y], "stored", dtype=DType.INT8, quant=Quant.of(1 / 127, 0))
    halves = rng.integers(-90, 90, (1, 12, 12, 4)) + 0.5
    halves[:, 2:] += 0.2  # most are far from a tie
    return b.build([y]), {"x": (halves / 127).astype(np.float32)}


def test_noise_inside_a_stage_explains_no_more_than_it_moves() -> None:
    network, inputs = unseen()
    plan = edgewright.plan(network, explain=False, phases=("conv", "stored"))
    assert len(plan.program.stages) == 1
    ours = execute(network, inputs)["stored"]
    noise = 1 + 2.0**-23 * np.random.default_rng(9).uniform(-1, 1, inputs["x"].shape)
    swayed = execute(network, {"x": (inputs["x"] * noise).astype(np.float32)})["stored"]
    assert 5 < np.count_nonzero(ours != swayed) < 90
    assert compare_stages(plan, network, inputs, {"stored": swayed}) is None
    further = np.where(ours != swayed, ours + 3 * (swayed - ours), ours).astype(np.int8)
    assert compare_stages(plan, network, inputs, {"stored": further}) is not None
    everywhere = (ours + 1).astype(np.int8)
    assert compare_stages(plan, network, inputs, {"stored": everywhere}) is not None


@pytest.mark.parametrize(
    ("dtype", "off", "is_right"), [(DType.INT16, 1, True), (DType.INT16, 2, False), (DType.INT8, 1, False)]
)
def test_a_step_of_sixteen_bits_is_left_to_the_last_bits(dtype: DType, off: int, is_right: bool) -> None:
    b = Builder("lines")
    x = b.input("x", (4, 8), dtype, Quant((1 / 16,), (0,)))
    network = b.build([b.layer(Softmax(-1), [x], "y", dtype=dtype, quant=Quant((1 / 64,), (0,)))])
    values = random_inputs(network)
    found = execute(network, values)["y"]
    assert (
        compare_stages(edgewright.plan(network), network, values, {"y": found + found.dtype.type(off)}) is None
    ) == is_right
