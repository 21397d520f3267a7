"""Golden C: the schedules of three small networks, whole, streamed and tiled, as a person has read them.

A change of the emitter is reviewed as a diff of these files: run with `--update-golden`, then read it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from edgewright.emit import TARGETS, emit
from edgewright.memory import plan as make_plan
from edgewright.network import Arithmetic, Builder, DType, Network, Quant
from edgewright.network.operators import AvgPool2d, Binary, BinaryKind, Clamp, Conv2d, Dense, Reshape
from edgewright.program import FusionSchedule, Plan, Split
from tests.helpers.emitting import check_emitted

GOLDEN = Path(__file__).parent / "golden"
RELU = Clamp(0.0)


class _Int8:
    """An int8 network as TFLite quantises it, with seeded weights."""

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        self.builder = Builder(name, Arithmetic.TFLITE)
        self.rng = np.random.default_rng(7)
        self.builder.input("image", shape, DType.INT8, Quant.of(0.05, -3))

    def product(self, op: Conv2d | Dense, x: str, name: str, shape: tuple[int, ...]) -> str:
        b, count = self.builder, shape[0]
        scales, zeros = tuple(map(float, self.rng.uniform(0.004, 0.02, count))), (0,) * count
        bias_scales = tuple(s * b.tensors[x].quant.scale[0] for s in scales)
        w = b.constant(f"{name}.w", self.rng.integers(-127, 128, shape).astype(np.int8), Quant(scales, zeros, 0))
        bias = self.rng.integers(-500, 500, count).astype(np.int32)
        inputs = [x, w, b.constant(f"{name}.b", bias, Quant(bias_scales, zeros, 0))]
        return b.layer(op, inputs, name, dtype=DType.INT8, quant=Quant.of(0.07, 4))

    def layer(self, op, inputs: list[str], name: str) -> str:
        return self.builder.layer(op, inputs, name, dtype=DType.INT8, quant=Quant.of(0.07, 4))


def _whole() -> tuple[Network, Plan]:
    """A residual block with a classifier, layer by layer."""
    n = _Int8("whole", (1, 8, 8, 4))
    a = n.product(Conv2d(pads=(1, 1, 1, 1), activation=RELU), "image", "conv", (8, 3, 3, 4))
    b = n.product(Conv2d(), a, "pointwise", (8, 1, 1, 8))
    c = n.layer(Binary(BinaryKind.ADD), [a, b], "add")
    d = n.layer(AvgPool2d(kernel=(8, 8)), [c], "pool")
    e = n.layer(Reshape((1, 8)), [d], "flat")
    network = n.builder.build([n.product(Dense(), e, "scores", (5, 8))])
    return network, make_plan(network)


def _streamed() -> tuple[Network, Plan]:
    """A separable block, row by row."""
    n = _Int8("streamed", (1, 12, 10, 4))
    a = n.product(Conv2d(stride=(2, 2), pads=(0, 0, 1, 1), activation=RELU), "image", "conv", (8, 3, 3, 4))
    b = n.product(Conv2d(pads=(1, 1, 1, 1), groups=8, activation=RELU), a, "depthwise", (8, 3, 3, 1))
    network = n.builder.build([n.product(Conv2d(), b, "pointwise", (16, 1, 1, 8))])
    return network, make_plan(network, schedules=(FusionSchedule(("conv", "depthwise", "pointwise"), streamed=True),))


def _tiled() -> tuple[Network, Plan]:
    """Two convolutions in tiles of rows and columns, their halo computed again."""
    n = _Int8("tiled", (1, 12, 12, 2))
    a = n.product(Conv2d(pads=(1, 1, 1, 1), activation=RELU), "image", "first", (8, 3, 3, 2))
    network = n.builder.build([n.product(Conv2d(stride=(2, 2)), a, "second", (4, 3, 3, 8))])
    splits = (Split(1, (2, 4, 5)), Split(2, (3, 5)))
    return network, make_plan(network, schedules=(FusionSchedule(("first", "second"), splits),))


@pytest.mark.parametrize("made", [_whole, _streamed, _tiled], ids=lambda made: made.__name__.strip("_"))
def test_the_schedule_reads_as_reviewed(made: Callable[[], tuple[Network, Plan]], request) -> None:
    network, plan = made()
    check_emitted(network, "cortex-m4", plan)
    library = emit(plan, TARGETS["cortex-m4"], network)
    text = str(library.files[f"{network.name}.c"])
    figures = f"/* RAM {plan.peak_bytes} B, weights {library.weight_bytes} B, {plan.macs} MACs */\n"
    file = GOLDEN / f"{network.name}.c"
    if request.config.getoption("--update-golden"):
        file.write_text(figures + text)
    assert figures + text == file.read_text(), "run with --update-golden and read the diff"
