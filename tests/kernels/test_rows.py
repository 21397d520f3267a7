"""Steps of one row: exact wherever rolling buffers bend, by kernels that are meant for them, at the price of layers."""

from __future__ import annotations

import numpy as np
import pytest

from edgewright import plan
from edgewright.emit import TARGETS
from edgewright.emit.firmware import measure
from edgewright.network import Arithmetic, Builder, DType, Network, Quant, random_inputs
from edgewright.network.operators import AvgPool2d, Binary, BinaryKind, Clamp, Conv2d, Elu, MaxPool2d
from tests.helpers.emitting import check_emitted, emit
from tests.helpers.on_board import check_on_board
from tests.helpers.tools import needs_board

CHIPS = ("cortex-m4", "cortex-m55", "rv32imc", "cortex-m0plus")
RELU6 = Clamp(0.0, 6.0)
SAME = (1, 1, 1, 1)


class Rows:
    """A network that grows by one layer at a time; int8 in TFLite's arithmetic, or float32."""

    def __init__(self, shape: tuple[int, ...], is_real: bool = False) -> None:
        self.b = Builder("rows", Arithmetic.ONNX if is_real else Arithmetic.TFLITE)
        self.rng = np.random.default_rng(sum(shape))
        self.format = {"dtype": DType.FLOAT32} if is_real else {"dtype": DType.INT8, "quant": Quant.of(0.05, -3)}
        self.is_real = is_real
        self.x = self.b.input("x", shape, *self.format.values())
        self.names: list[str] = []

    def add(self, op, *inputs: str) -> str:
        self.names.append(f"l{len(self.names)}")
        self.x = self.b.layer(op, list(inputs), self.names[-1], **self.format)
        return self.x

    def conv(self, channels: int, kernel: int, op: Conv2d) -> str:
        depth = self.b.shape(self.x)[3] // op.groups
        if self.is_real:
            w = self.rng.standard_normal((channels, kernel, kernel, depth)).astype(np.float32)
            return self.add(op, self.x, self.b.constant("w", w))
        w = self.rng.integers(-127, 128, (channels, kernel, kernel, depth)).astype(np.int8)
        scales = tuple(float(s) for s in self.rng.uniform(0.001, 0.01, channels).astype(np.float32))
        bias = self.rng.integers(-3000, 3000, channels).astype(np.int32)
        quant = Quant(scales, (0,) * channels, 0)
        return self.add(op, self.x, self.b.constant("w", w, quant), self.b.constant("b", bias))

    def depthwise(self, stride: int = 1, kernel: int = 3, pads=SAME, activation=RELU6) -> str:
        depth = self.b.shape(self.x)[3]
        return self.conv(depth, kernel, Conv2d((stride, stride), pads=pads, groups=depth, activation=activation))

    def build(self) -> Network:
        return self.b.build([self.x])


def blocks(shape=(1, 13, 11, 6), wide: int = 20) -> Rows:
    """Separable layers, strided and not, and a sum that skips some of them."""
    net = Rows(shape)
    net.depthwise()
    start = net.conv(8, 1, Conv2d())
    net.depthwise(activation=None)
    net.conv(8, 3, Conv2d(pads=SAME))
    net.add(Binary(BinaryKind.ADD), start, net.x)
    net.conv(wide, 1, Conv2d(activation=RELU6))
    net.depthwise(2)
    net.conv(5, 3, Conv2d((2, 2), pads=SAME))
    return net


def by_rows(net: Rows):
    network = net.build()
    return network, plan(network, explain=False, phases=net.names)


def text_of(network: Network, made, target: str) -> str:
    return str(emit(made, TARGETS[target], network).files["rows.c"])


@pytest.mark.parametrize("target", CHIPS)
@pytest.mark.parametrize("shape", [(1, 13, 11, 6), (1, 16, 1, 7)])
def test_rows_are_exact(shape, target: str) -> None:
    network, made = by_rows(blocks(shape))
    check_emitted(network, target, plan=made)


def test_rows_have_kernels_of_their_own() -> None:
    network, made = by_rows(blocks())
    m4, rv32 = text_of(network, made, "cortex-m4"), text_of(network, made, "rv32imc")
    assert m4.count("rows_rows_run(") == 2 and "rows_dsp_conv_circular(" in m4 and "rows_add_int8(" in m4
    assert "rows_add_int8(" in rv32 and "rows_add_int8(" in text_of(network, made, "cortex-m0plus")


def test_the_row_above_is_not_copied_for_one_row() -> None:
    net = Rows((1, 9, 8, 6))
    net.format["quant"] = Quant.of(6 / 255, -128)  # all of int8
    net.depthwise()
    net.depthwise()
    net.depthwise(2)
    network, made = by_rows(net)
    text = text_of(network, made, "rv32imc")
    assert text.count("rows_direct_run(") == 3 and "rows_direct_kept" not in text
    check_emitted(network, "rv32imc", plan=made)


@pytest.mark.parametrize("width", range(1, 5))
@pytest.mark.parametrize("stride", [1, 2])
def test_rows_are_exact_on_the_chip(width: int, stride: int) -> None:
    """Every width at which windows leave the image to the left, to the right, to both sides; by assembler."""
    net = Rows((1, 5, width, 3))
    net.depthwise(stride)
    net.format["quant"] = Quant.of(6 / 255, -128)  # all of int8
    net.depthwise(stride)
    network, made = by_rows(net)
    assert text_of(network, made, "cortex-m4").count("rows_rows_run(") == 2
    check_on_board(network, "cortex-m4", plan=made)


def test_large_windows_are_copied_one_by_one() -> None:
    """A fusion group leaves no hole for the columns of two pixels, and the stack is small."""
    net = Rows((1, 6, 5, 17))
    net.conv(9, 3, Conv2d(pads=SAME, dilation=(1, 1)))
    net.conv(33, 3, Conv2d(pads=(2, 2, 2, 2), dilation=(2, 2)))
    net.conv(6, 3, Conv2d((2, 2), pads=SAME))
    network, made = by_rows(net)
    assert "rows_dsp_windows_run(" in text_of(network, made, "cortex-m4")
    check_emitted(network, "cortex-m4", plan=made)
    check_on_board(network, "cortex-m4", plan=made)


def whole_and_rows(net: Rows, target: str) -> tuple[int, int]:
    """Instructions of the whole layers, and row by row."""
    network, made = by_rows(net)
    inputs = random_inputs(network, 1)
    plans = (plan(network, explain=False), made)
    counts = [measure(emit(p, TARGETS[target], network), inputs).instructions for p in plans]
    return counts[0] or 0, counts[1] or 0


@pytest.mark.parametrize("target", [pytest.param("cortex-m4", marks=pytest.mark.slow), "rv32imc"])
def test_rows_cost_what_layers_cost(target: str) -> None:
    needs_board(target)
    whole, rows = whole_and_rows(blocks((1, 24, 24, 16), wide=32), target)
    assert rows < 1.15 * whole


@pytest.mark.parametrize("channels", [3, 16, 21])
def test_real_rows_are_right(channels: int) -> None:
    """Depthwise windows read where they lie, and pooling, from rolling buffers; channels beyond whole vectors."""
    net = Rows((1, 14, 15, channels), is_real=True)
    net.depthwise()
    net.add(MaxPool2d((3, 3), pads=SAME), net.x)
    net.depthwise(2, kernel=5, pads=(2, 1, 2, 2), activation=Elu(1.0))
    net.add(AvgPool2d((2, 3), pads=(0, 1, 1, 1)), net.x)
    net.depthwise(kernel=4, pads=(0, 0, 3, 3), activation=None)
    network, made = by_rows(net)
    assert text_of(network, made, "host").count("rows_simd_pool_run(") == 2
    check_emitted(network, "host", plan=made)


@pytest.mark.parametrize("stride", [1, 2])
def test_shared_memory_is_worked_through_in_pieces(stride: int) -> None:
    """Neither arena nor stack have room for all channels of whole rows."""
    net = Rows((1, 7, 41, 256), is_real=True)
    net.depthwise(stride, kernel=5, pads=(2, 2, 2, 2))
    network = net.build()
    made = plan(network, explain=False)
    assert "piece" in text_of(network, made, "host")
    check_emitted(network, "host", plan=made)
