"""Networks of one layer each, of random cases: in every element type and arithmetic that a layer is computed in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from edgewright.network import Arithmetic, Builder, DType, Network, Quant, Region
from edgewright.network.operators import AvgPool2d, Clamp, MatMul, MaxPool2d
from edgewright.program import Plan, Step, Sweep
from tests.helpers.by_steps import by_steps
from tests.helpers.kernel_cases import Case

KINDS = (
    "float32",
    "float16",
    "int32",
    "tflite int8",
    "tflite uint8",
    "tflite int16",
    "onnx int8",
    "onnx uint8",
    "onnx int16",
    "qlinear int8",
    "qlinear uint8",
)


def network_of(case: Case, kind: str, name: str = "net") -> Network:
    """The case as a network; inputs after the first are constants, except for MatMul's."""
    words = kind.split()
    arithmetic = Arithmetic(words[0]) if len(words) == 2 else Arithmetic.ONNX
    b = Builder(name, arithmetic)
    rng = np.random.default_rng(case.seed)
    dtype = DType(words[-1])
    is_quantised = len(words) == 2
    op = replace(case.op, activation=_activation(case, kind)) if hasattr(case.op, "activation") else case.op
    quant = _quant(rng, dtype) if is_quantised else None
    names = [b.input("x", case.shapes[0], dtype, quant)]
    for which, shape in enumerate(case.shapes[1:], 1):
        if isinstance(case.op, MatMul):
            names.append(b.input("w", shape, dtype, _quant(rng, dtype) if is_quantised else None))
        elif which == 1:
            names.append(_weights(b, rng, shape, kind))
        else:
            names.append(_bias(b, rng, shape, kind))
    out = _quant(rng, dtype, 1.0) if is_quantised else None
    if isinstance(op, AvgPool2d | MaxPool2d) and (arithmetic is Arithmetic.TFLITE or case.seed % 2):
        out = quant
    result = b.layer(op, names, "y", dtype=dtype, quant=out)
    return b.build([result])


def _activation(case: Case, kind: str):
    found = case.op.activation
    if kind.startswith(("onnx", "qlinear", "float")) or isinstance(found, Clamp | None):
        return found
    return Clamp(0.0, 1.5)


def _quant(rng: np.random.Generator, dtype: DType, factor: float = 0.05) -> Quant:
    info = np.iinfo(dtype.numpy)
    middle = 0 if dtype is DType.INT16 else (int(info.max) + int(info.min) + 1) // 2 + int(rng.integers(-40, 40))
    reach = 256 if dtype is DType.INT16 else 1
    scale = float(np.float32(rng.uniform(0.5, 1) * factor / reach))
    if rng.random() < 0.25:  # ties are common at powers of two
        scale = 2.0 ** round(np.log2(scale))
    return Quant.of(scale, middle)


def _weights(b: Builder, rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> str:
    if kind.startswith("float"):
        return b.constant("w", rng.standard_normal(shape).astype(kind))
    if kind == "int32":
        return b.constant("w", rng.integers(-99, 100, shape).astype(np.int32))
    if kind == "tflite uint8":
        return b.constant("w", rng.integers(0, 256, shape).astype(np.uint8), Quant.of(0.02, 119))
    scales = tuple(float(np.float32(s)) for s in rng.uniform(0.004, 0.02, shape[0]))
    zeros = (
        tuple(int(z) for z in rng.integers(-9, 9, shape[0]))
        if kind in ("onnx uint8", "qlinear uint8")
        else (0,) * shape[0]
    )
    return b.constant("w", rng.integers(-127, 128, shape).astype(np.int8), Quant(scales, zeros, 0))


def _bias(b: Builder, rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> str:
    if kind.startswith("float"):
        return b.constant("b", rng.standard_normal(shape).astype(kind))
    dtype = np.int64 if kind == "tflite int16" and rng.random() < 0.5 else np.int32
    return b.constant("b", rng.integers(-900, 900, shape).astype(dtype))


def cut_up(plan: Plan, rng: np.random.Generator) -> Plan:
    """The plan with each layer's output computed in parts, cut at random along every axis."""
    written = {}
    for stage in plan.program.stages:
        layer = plan.network.by_name[stage.name]
        parts = [Region.whole(plan.network.tensors[layer.output].shape)]
        for axis, size in enumerate(parts[0].shape):
            at = int(rng.integers(0, size + 1))
            parts = [part.with_axis(axis, cut) for part in parts for cut in ((0, at), (at, size)) if cut[1] > cut[0]]
        written[stage.name] = tuple(Step(stage.name, part) for part in parts)
    return by_steps(plan, written)


def backward(plan: Plan) -> Plan:
    """The plan with every layer computed from its last pixel to its first."""
    stages = tuple(replace(stage, sweep=Sweep.BACKWARD) for stage in plan.program.stages)
    return replace(plan, program=replace(plan.program, stages=stages))
