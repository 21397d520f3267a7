"""Vector kernels: every width of vectors, whatever shares memory, bit for bit or within the tolerance of floats."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from edgewright.board.toolchain import NATIVE
from edgewright.emit import TARGETS, Library, emit
from edgewright.emit.files import kernel_files
from edgewright.emit.native import build
from edgewright.memory import plan as make_plan
from edgewright.network import Arithmetic, Builder, DType, Network, Quant, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.operators import (
    AvgPool2d,
    BatchNorm,
    Binary,
    BinaryKind,
    Clamp,
    Conv2d,
    Dense,
    Elu,
    HardSigmoid,
    LeakyRelu,
    Lrn,
    MaxPool2d,
    Reduce,
    ReduceKind,
    Unary,
    UnaryKind,
)
from edgewright.program import FusionSchedule, Plan, Program, Split, Sweep, even_ends
from tests.helpers.emitting import WARNINGS
from tests.helpers.emitting_batch import agree
from tests.helpers.tools import checking

VECTORS = {  # compiler options, and what /proc/cpuinfo calls what they need
    "plain": ((), ()),
    "avx2": (("-mavx2", "-mfma"), ("avx2", "fma")),
    "avx512": (("-mavx512f", "-mavx512bw", "-mavx2", "-mfma"), ("avx512f", "avx512bw")),
    "avxvnni": (("-mavx2", "-mfma", "-mavxvnni"), ("avx2", "fma", "avx_vnni")),
    "native": ((NATIVE,), ()),
}
REAL = [
    None,
    Clamp(0.0),
    Clamp(-0.5, 1.0),
    LeakyRelu(0.1),
    Elu(1.3, 0.9),
    HardSigmoid(0.3, 0.4),
    *(Unary(kind) for kind in (UnaryKind.SILU, UnaryKind.HARD_SWISH, UnaryKind.SIGMOID, UnaryKind.TANH)),
    Unary(UnaryKind.GELU),  # one that the kernels leave to a second pass
]
WHOLE = [None, Clamp(0.0), Clamp(0.0, 6.0)]
WINDOWS = [  # kernel, stride, pads: one that fits in place, and others
    ((3, 3), (1, 1), (1, 1, 1, 1)),
    ((3, 3), (2, 2), (0, 1, 1, 2)),
    ((5, 2), (1, 2), (4, 1, 0, 1)),
]


def flags(vectors: str) -> list[str]:
    """The options for these vectors; skips where this machine does not have them."""
    options, needed = VECTORS[vectors]
    info = Path("/proc/cpuinfo")
    known = info.read_text().split() if info.exists() else []
    if missing := [name for name in needed if name not in known]:
        pytest.skip(f"this machine has no {', '.join(missing)}")
    return [*WARNINGS, *options]


class Layers:
    """Layers side by side in one network, so that one build tests many; each group of them is planned alone."""

    def __init__(self, kind: str, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.is_real = kind == "float"
        self.is_tflite = kind == "tflite"
        self.arithmetic = Arithmetic.TFLITE if self.is_tflite else Arithmetic.ONNX
        self.groups: list[Network] = []
        self.builder = Builder("", self.arithmetic)

    @property
    def format(self) -> dict[str, object]:
        if self.is_real:
            return {"dtype": DType.FLOAT32}
        if self.is_tflite or self.rng.random() < 0.5:
            return {"dtype": DType.INT8, "quant": Quant.of(self.rng.uniform(0.02, 0.1), self.int(-20, 20))}
        return {"dtype": DType.UINT8, "quant": Quant.of(self.rng.uniform(0.02, 0.1), self.int(0, 255))}

    def int(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def pick(self, choices):
        return choices[self.int(0, len(choices) - 1)]

    def pair(self, choices) -> tuple[int, int]:
        return self.pick(choices), self.pick(choices)

    @property
    def activation(self):
        return self.pick(REAL if self.is_real else WHOLE)

    def input(self, *shape: int) -> str:
        return self.builder.input(self.name("x"), shape, **self.format)

    def name(self, base: str) -> str:
        return f"{base}{len(self.groups)}_{len(self.builder.tensors)}"

    def weights(self, shape: tuple[int, ...]) -> list[str]:
        rng = self.rng
        if self.is_real:
            w = rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
            return [
                self.constant(w.astype(np.float32)),
                self.constant(rng.normal(size=shape[0]).astype(np.float32)),
            ]
        scales = rng.uniform(0.002, 0.01, shape[0])
        scales[0] *= self.pick([1, 1, 300])  # sums that are multiplied by more than one
        scales = tuple(map(float, scales))
        quant = Quant(scales, (0,) * shape[0], 0) if shape[0] > 1 else Quant.of(scales[0])
        w = self.constant(rng.integers(-127, 128, shape, np.int8), quant)
        return [w, self.constant(rng.integers(-2000, 2000, shape[0], np.int32))]

    def constant(self, values, quant: Quant | None = None) -> str:
        return self.builder.constant(self.name("w"), values, quant)

    def layer(self, op, inputs: list[str], name: str) -> str:
        return self.builder.layer(op, inputs, self.name(name), **self.format)

    def end(self, y: str) -> None:
        self.groups.append(self.builder.build([y]))
        self.builder = Builder("", self.arithmetic)

    def conv(self, x: str, kernel, channels: int, groups: int = 1, **attributes) -> str:
        depth = self.builder.tensors[x].shape[3] // groups
        op = Conv2d(groups=groups, activation=self.activation, **attributes)
        return self.layer(op, [x, *self.weights((channels, *kernel, depth))], "conv")

    def plan(self, gap: int) -> Plan:
        """All groups one after the other, each where its own plan puts it; the first `gap` bytes are free."""
        whole = Builder(self.arithmetic.value, self.arithmetic)
        buffers, views, stages, base = [], {}, [], gap
        for group in self.groups:
            whole.tensors |= group.tensors
            whole.constants |= group.constants
            whole.inputs += group.inputs
            whole.layers += group.layers
            plan = make_plan(group, explain=False)
            stages += plan.program.stages
            views |= plan.views
            buffers += [replace(buffer, offset=base + buffer.offset, first=0, last=10_000) for buffer in plan.buffers]
            base += -(-plan.peak_bytes // 64) * 64
        network = whole.build([group.outputs[0] for group in self.groups])
        program = Program(network, tuple(stages))
        return replace(plan, program=program, buffers=tuple(buffers), views=views, peak_bytes=base)


def convolutions(layers: Layers) -> None:
    """Kernels, strides, dilations, pads; few channels and many; more than one block of depth."""
    for kernel, channels in (((3, 3), 40), ((1, 1), 17), ((5, 2), 16), ((2, 3), 7), ((3, 3), 65)):
        x = layers.input(layers.int(1, 2), layers.int(9, 14), layers.int(9, 14), layers.pick([1, 3, 8, 19]))
        pads = tuple(layers.int(-1, 2) for _ in range(4)) if kernel != (1, 1) else (0, 0, 0, 0)
        attributes = {"stride": layers.pair([1, 1, 2, 3]), "dilation": layers.pair([1, 1, 2]), "pads": pads}
        layers.end(layers.conv(x, kernel, channels, **attributes))
    x = layers.input(1, 6, 7, 150)  # over a thousand numbers per pixel
    layers.end(layers.conv(layers.conv(x, (3, 3), 33, pads=(1, 1, 1, 1)), (1, 1), 300))
    x = layers.input(1, 7, 6, 24)
    layers.end(layers.conv(x, (3, 3), 36, groups=3, pads=(1, 1, 1, 1)))
    layers.end(layers.conv(layers.input(1, 1, 70, 900), (1, 1), 20))  # rows that no room holds
    x = layers.input(1, 6, 32, 40)  # rows so long that strips of them are packed, apart and in place
    layers.end(layers.conv(layers.conv(x, (3, 3), 40, pads=(1, 1, 1, 1)), (3, 3), 40, pads=(1, 1, 1, 1)))
    layers.end(layers.conv(layers.input(1, 3, 67, 150), (2, 4), 20, stride=(2, 1), dilation=(1, 2)))


def depthwise(layers: Layers) -> None:
    """Alone, in a chain that lies in place, and with a window that reaches far beyond the image."""
    for channels in (1, 5, 16, 33, 48):
        x = layers.input(layers.int(1, 2), layers.int(6, 12), layers.int(3, 20), channels)
        for kernel, stride, pads in (
            ((3, 3), (1, 1), (1, 1, 1, 1)),
            ((3, 3), (2, 2), (0, 1, 1, 2)),
            ((5, 2), (1, 2), (4, 1, 0, 1)),
        ):
            x = layers.conv(x, kernel, channels, groups=channels, stride=stride, pads=pads)
        layers.end(x)


def products(layers: Layers) -> None:
    for shape, channels in (((1, 300), 40), ((3, 65), 17), ((2, 5, 33), 7), ((60, 20), 32), ((70,), 10)):
        op = Dense(layers.pick([None, Clamp(0.0)]))
        layers.end(layers.layer(op, [layers.input(*shape), *layers.weights((channels, shape[-1]))], "dense"))


def small(layers: Layers) -> None:
    """Pools, means, neighbouring channels, sums, products with broadcasting, batch normalisation, activations alone."""
    for channels in (3, 16, 37):
        x = layers.input(1, 9, 8, channels)
        x = layers.layer(MaxPool2d((3, 2), (2, 1), (1, 1), (1, 0, 1, 1), layers.activation), [x], "max")
        counted = AvgPool2d((3, 3), (1, 2), (1, 1), (1, 1, 1, 1), layers.activation, count_pads=True, uncounted=(1, 0))
        x = layers.layer(counted, [x], "avg")
        x = layers.layer(AvgPool2d((2, 2), (1, 1), (1, 1), (0, 1, 1, 0)), [x], "avg")
        gate = layers.layer(Reduce((1, 2), kind=ReduceKind.MEAN), [x], "mean")
        for kind in (BinaryKind.MUL, BinaryKind.ADD, BinaryKind.SUB):
            x = layers.layer(Binary(kind, layers.activation), [x, gate], "gated")
        other = layers.input(*layers.builder.tensors[x].shape)
        x = layers.layer(Binary(BinaryKind.ADD, layers.activation), [x, other], "sum")
        x = layers.layer(Lrn(5, 0.1), [x], "lrn")
        for activation in REAL[1:]:
            x = layers.layer(activation, [x], "activation")
        scale = [layers.constant(layers.rng.normal(size=channels).astype(np.float32)) for _ in range(2)]
        layers.end(layers.layer(BatchNorm(layers.activation), [x, *scale], "norm"))


def sums(layers: Layers) -> None:
    for shape in ((1, 5, 5, 16), (1, 3, 7, 5), (40,)):
        for kind in (BinaryKind.ADD, BinaryKind.SUB):
            layers.end(layers.layer(Binary(kind, layers.activation), [layers.input(*shape) for _ in range(2)], "sum"))


PARTS: dict[str, list[Callable[[Layers], None]]] = {
    "float": [convolutions, depthwise, products, small],
    "tflite": [convolutions, depthwise, products, sums],
    "onnx": [convolutions, depthwise, products],
}


def plan_of(kind: str, seed: int, gap: int = 0) -> Plan:
    layers = Layers(kind, seed)
    for part in PARTS[kind]:
        part(layers)
    return layers.plan(gap)


def check(library: Library, options: list[str]) -> None:
    native, network = build(library, flags=options), library.network
    for seed, poison in ((0, 0xFF), (1, 0x55)):
        inputs = random_inputs(network, seed)
        agree(network, native.run(inputs, poison), execute(network, inputs))


BUILDS = [("float", v) for v in ("plain", "avx2", "native")] + [("tflite", v) for v in VECTORS] + [("onnx", "native")]
USUAL = [pytest.param(*build, marks=[] if build[1] == "native" else [pytest.mark.slow]) for build in BUILDS]


@pytest.mark.parametrize(("kind", "vectors"), USUAL)
def test_every_width_of_vectors(kind, vectors):
    """Room to work is found on the stack, and with a gap in the arena there."""
    options, seed = flags(vectors), sorted(VECTORS).index(vectors)
    check(emit(plan_of(kind, seed, gap=seed % 2 << 19), TARGETS["host"]), options)


@pytest.mark.parametrize("vectors", [*(pytest.param(v, marks=pytest.mark.slow) for v in ("plain", "avx2")), "native"])
def test_parts_of_few_channels_row_by_row(vectors):
    """Parts that fill no vector, or one and a bit, leave what lies beside them alone."""
    layers, schedules = Layers("float", 5), []
    y = layers.input(1, 9, 19, 6)
    for channels, parts in ((54, 3), (12, 4)):
        names = [layers.conv(y, (1, 1), channels)]
        names.append(y := layers.conv(names[0], (3, 3), channels, groups=channels, pads=(1, 1, 1, 1)))
        schedules.append(FusionSchedule(tuple(names), (Split(-1, even_ends(channels, parts)),), True))
    library = emit(make_plan(layers.builder.build([y]), explain=False, schedules=schedules), TARGETS["host"])
    assert str(library.files[f"{library.name}.c"]).count("_simd_depthwise_run") == 2
    check(library, flags(vectors))


@pytest.mark.parametrize("kind", PARTS)
def test_these_layers_take_the_vector_kernels(kind):
    """All but a function that they do not know, in every order that plans ask for."""
    plan = plan_of(kind, seed=0)
    library = emit(plan, TARGETS["host"])
    schedule = str(library.files[f"{library.name}.c"]).split("_PROBE(")[1:-1]
    assert len(schedule) == len(plan.program.stages)
    others = [stage.name for stage, body in zip(plan.program.stages, schedule, strict=True) if "_simd_" not in body]
    unknown = [layer.name for layer in plan.network.layers if layer.op == Unary(UnaryKind.GELU)]
    assert others == unknown
    sweeps = {stage.sweep for stage in plan.program.stages}
    assert sweeps == set(Sweep)


def test_other_families_do_without_them():
    plan = plan_of("float", seed=0)
    library = emit(plan, TARGETS["cortex-m4"])
    assert not any("_simd_" in str(text) for text in library.files.values())


@pytest.mark.parametrize("compiler", [("clang", "-std=c99"), ("g++", "-x", "c++", "-std=c++11")])
@pytest.mark.parametrize("vectors", ["plain", "native"])
def test_other_compilers_take_the_kernels(compiler, vectors, tmp_path):
    program, *standard = compiler
    files = kernel_files("k", ["simd_conv", "simd_depthwise", "simd_int8", "simd_lines", "simd_lrn", "simd_pool"])
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    options = [option for option in flags(vectors) if not option.startswith("-std")]
    whole = [*checking(program), *standard, *options, "-I", str(tmp_path)]
    done = subprocess.run([*whole, str(tmp_path / "k_kernels.c")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


FUNCTIONS = {  # kind in simd_math.h, numbers a and b, the truth in double
    4: (0.0, 0.0, lambda x: 1 / (1 + np.exp(-x))),
    5: (0.0, 0.0, lambda x: x / (1 + np.exp(-x))),
    7: (0.0, 0.0, np.tanh),
    2: (1.5, 0.75, lambda x: 0.75 * np.where(x > 0, x, 1.5 * np.expm1(x))),
}


@pytest.mark.parametrize("vectors", ["plain", "native"])
def test_activations_are_accurate_to_the_last_digits(vectors, tmp_path):
    for name, text in kernel_files("k", ["simd_math"]).items():
        (tmp_path / name).write_text(text)
    subprocess.run(["cc", *flags(vectors), "-shared", "-fPIC", "-o", "k.so", "k_kernels.c"], cwd=tmp_path, check=True)
    activate = ctypes.CDLL(str(tmp_path / "k.so")).k_simd_activate
    activate.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_float, ctypes.c_float]
    x = np.concatenate([np.linspace(-80, 80, 20001), np.geomspace(1e-30, 80, 5001), -np.geomspace(1e-30, 80, 5001)])
    x = x.astype(np.float32)
    for kind, (a, b, truth) in FUNCTIONS.items():
        y = x.copy()
        activate(y.ctypes.data, y.size, kind, a, b)
        expected = truth(x.astype(np.float64))
        error = np.abs(y - expected) / np.maximum(np.spacing(np.abs(expected).astype(np.float32)), 1e-37)
        assert error.max() < 6, (kind, x[error.argmax()], error.max())


FINISH = """#include "k_kernels.h"
void finish(const k_simd_finish *how, const int32_t *sums, uint8_t *y, int32_t n);
void finish(const k_simd_finish *how, const int32_t *sums, uint8_t *y, int32_t n)
{
    for (int32_t i = 0; i < n; i += K_LANES) {
        const k_simd_ending ending = k_simd_prepared(how, i);
        k_simd_put(y + i, k_simd_stored(&ending, k_vi_load(sums + i)), K_LANES);
    }
}
"""


class Finish(ctypes.Structure):
    """An ew_simd_finish."""

    _fields_ = [(n, ctypes.c_void_p) for n in ("multiplier", "shift", "exact", "scale")] + [
        (n, ctypes.c_int32) for n in ("zero", "low", "high")
    ]


@pytest.fixture(scope="module")
def finishing(tmp_path_factory):
    """A library of kernels with the function above."""
    folder = tmp_path_factory.mktemp("finish")
    for name, text in {**kernel_files("k", ["simd_int8"]), "finish.c": FINISH}.items():
        (folder / name).write_text(text)
    command = ["cc", *flags("native"), "-shared", "-fPIC", "-o", "k.so", "finish.c", "k_kernels.c"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "k.so"))


@pytest.mark.parametrize(("zero", "low"), [(-128, -128), (-3, -128), (100, -5)])
def test_sums_are_rounded_twice_whatever_their_size(zero, low, finishing):
    """Half up after the product, half away from zero after the shift: also sums at the ends of 32 bits, and ties."""
    random, n = np.random.default_rng(7), 1 << 16
    shift = np.repeat(random.integers(-31, 1, n // 16), 16) - random.integers(0, 2, n)
    shift = np.clip(shift, -31, 0).astype(np.int32)
    multiplier = random.integers(1 << 30, 1 << 31, n).astype(np.int32)
    sums = (random.integers(-300, 300, n) << -shift).astype(np.int32)  # many of them near ties
    sums[::3] = random.integers(-(1 << 31), 1 << 31, n)[::3]
    sums[::7], multiplier[::5] = random.choice([-(1 << 31), (1 << 31) - 1, -1, 0, 1], n)[::7], 1 << 30
    y = np.empty(n, np.int8)
    how = Finish(multiplier.ctypes.data, shift.ctypes.data, None, None, zero, low, 127)
    finishing.finish(ctypes.byref(how), *(a.ctypes.data_as(ctypes.c_void_p) for a in (sums, y)), n)
    high = (sums.astype(np.int64) * multiplier + (1 << 30)) >> 31
    steps = np.sign(high) * ((np.abs(high) + ((1 << -shift.astype(np.int64)) >> 1)) >> -shift)
    np.testing.assert_array_equal(y, np.clip(steps + zero, low, 127))


def test_where_sums_start_comes_as_c_beside_a_binary(monkeypatch, tmp_path):
    """One number for each channel, of the two that the compiler chooses from; the linker counts as planned."""
    monkeypatch.setattr("edgewright.emit.files.LARGE", 0)
    layers = Layers("onnx", 5)
    x = layers.input(1, 6, 7, 5)
    layers.end(layers.layer(Conv2d(pads=(1, 1, 1, 1)), [x, *layers.weights((21, 3, 3, 5))], "conv"))
    (network,) = layers.groups
    library = emit(make_plan(network), TARGETS["host"], network, "net")
    starts = library.files["net_starts.c"]
    assert isinstance(starts, str) and starts.count("NET_START(") == 32  # two whole panels of channels
    blob = library.files["net_weights.bin"]
    assert len(blob) + 4 * 32 == library.weight_bytes == sum(each.bytes for each in library.plan.packed)
    inputs = random_inputs(network)
    native, expected = build(library, tmp_path), execute(network, inputs)
    np.testing.assert_array_equal(native.run(inputs)[network.outputs[0]], expected[network.outputs[0]])
