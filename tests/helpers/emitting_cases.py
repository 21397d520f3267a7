"""Layers alone, as networks for the emitter; and plans that ask for them in parts, with gaps between pixels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import Phase, settings
from hypothesis import strategies as st

from edgewright.memory import plan as make_plan
from edgewright.network import Arithmetic, Array, Builder, DType, Network, Quant, Shape, Tensor
from edgewright.network.operators import (
    ArgMax,
    Cast,
    Compare,
    Conv2d,
    ConvTranspose2d,
    Dense,
    Dequantize,
    DynamicProduct,
    DynamicQuantize,
    DynamicRange,
    LstmStep,
    NonMaxSuppression,
    Quantize,
    Select,
    TopK,
)
from edgewright.program import Buffer, FusedLayers, FusionSchedule, Plan, Program, Split, Stage, View
from tests.helpers.emitting_batch import check_together
from tests.helpers.kernel_cases import Case, cases, result_for

# Numbers without a scale that is known before, and what ONNX does on plain numbers only.
REAL = (Compare, DynamicProduct, DynamicQuantize, DynamicRange, LstmStep, NonMaxSuppression, Select)
# Batches: smaller ones would say less, so that none is shrunk.
FEW = settings(max_examples=2, phases=(Phase.generate,))
Draw = Callable[[st.SearchStrategy[Any]], Any]


@st.composite
def single_layers(draw: Draw, kind: type, quantised: bool = False) -> tuple[Network, Mapping[str, Array]]:
    """A network of one layer, and values for its inputs: floats, or eight bits in onnxruntime's arithmetic.

    What finds scales as it runs is always given floats.
    """
    case = draw(cases(kind))
    dtype = draw(st.sampled_from([DType.UINT8, DType.INT8, DType.INT16]))
    is_real = not quantised or kind in REAL
    return float_layer(case) if is_real else quantised_layer(case, dtype, draw(st.booleans()))


def check_layers(data: st.DataObject, kinds: Sequence[type], quantised: bool, each: int = 5) -> None:
    """Random layers of these kinds, under random plans, all compiled together."""
    drawn = [data.draw(single_layers(kind, quantised)) for kind in kinds for _ in range(each)]
    networks = [network for network, _ in drawn]
    check_together(networks, plans=[data.draw(plans(n)) for n in networks], inputs=[dict(v) for _, v in drawn])


def float_layer(case: Case, constants: Sequence[int] = ()) -> tuple[Network, dict[str, Array]]:
    """The case as it is; some inputs may be constants."""
    b, values, names = Builder("layer"), {}, []
    for i, value in enumerate(case.values()):
        name = f"x{i}"
        names.append(name)
        if i in constants:
            b.constant(name, value)
        else:
            b.input(name, value.shape, DType(value.dtype.name))
            values[name] = value
    return b.build([b.layer(case.op, names, "y", dtype=result_for(case).dtype)]), values


def quantised_layer(
    case: Case, dtype: DType, one_scale: bool, arithmetic: Arithmetic = Arithmetic.ONNX
) -> tuple[Network, dict[str, Array]]:
    """The case with stored integers for what is real; output and first input share a scale, or do not."""
    rng, info = np.random.default_rng(case.seed), np.iinfo(dtype.numpy)
    b = Builder("layer", arithmetic)
    values: dict[str, Array] = {}
    for i, value in enumerate(case.values()):
        if isinstance(case.op, Conv2d | ConvTranspose2d | Dense) and i > 0:
            _add_weights(b, rng, dtype, i, value.shape)
            continue
        if i in case.integers or isinstance(case.op, Quantize):
            values[b.input(f"x{i}", value.shape, DType(value.dtype.name))] = value
            continue
        quant = Quant.of(0.02 + 0.01 * i, int(info.max) - 100 - i)
        values[b.input(f"x{i}", value.shape, dtype, quant)] = rng.integers(
            info.min, info.max + 1, value.shape, dtype.numpy
        )
    names = [f"x{i}" for i in range(len(case.shapes))]
    result = result_for(case)
    if not isinstance(case.op, ArgMax | Cast | Dequantize | TopK):
        kept = b.tensors["x0"].quant if one_scale else None
        result = replace(result, dtype=dtype, quant=kept or Quant.of(0.05, int(info.max) - 90))
    return b.build([b.layer(case.op, names, "y", dtype=result.dtype, quant=result.quant)]), values


def _add_weights(b: Builder, rng: np.random.Generator, dtype: DType, i: int, shape: Shape) -> None:
    """Weights or bias of a product: constants, and a bias in steps of the products."""
    if i == 2:
        b.constant("x2", rng.integers(-1000, 1000, shape, np.int32))
        return
    small = DType.INT8 if dtype is DType.INT16 else dtype
    info = np.iinfo(small.numpy)
    b.constant("x1", rng.integers(info.min, info.max + 1, shape, small.numpy), Quant.of(0.03, int(info.max) - 120))


@st.composite
def plans(draw: Draw, network: Network) -> Plan:
    """The usual plan, or one in which nothing is shared: in parts, loops around them, gaps between the pixels."""
    if draw(st.integers(0, 2)) == 0:
        return make_plan(network)
    return in_parts(draw, spaced(draw, make_plan(network, plain=True)))


def spaced(draw: Draw, plan: Plan) -> Plan:
    """Every tensor in a buffer of its own, its pixels further apart than they are wide."""
    buffers, views, at = [], {}, 0
    for name in plan.views:
        tensor = plan.network.tensors[name]
        gap = draw(st.integers(0, 2)) * tensor.dtype.bytes
        strides, size = _strides(tensor, gap)
        buffers.append(Buffer(name, size, at, 0, len(plan.program.stages)))
        views[name] = View(name, 0, strides)
        at += -(-size // 8) * 8
    program = replace(plan.program, free=(), copied={})
    return replace(plan, program=program, buffers=tuple(buffers), views=views, peak_bytes=at)


def _strides(tensor: Tensor, gap: int) -> tuple[tuple[int, ...], int]:
    """Bytes from index to index, and of all, with `gap` bytes behind each run along the last axis."""
    strides, step = [], tensor.dtype.bytes
    for axis in reversed(range(len(tensor.shape))):
        strides.append(step)
        step = step * tensor.shape[axis] + (gap if axis == len(tensor.shape) - 1 else 0)
    return tuple(reversed(strides)), step


def in_turns(plan: Plan, size: int) -> Plan:
    """Each layer as a loop over so many channels at a time, fewer in the last turn perhaps."""
    stages = []
    for layer in plan.network.layers:
        channels = Split(-1, parts_of(plan.network.tensors[layer.output].shape[-1], size))
        stages.append(Stage(layer.name, FusionSchedule((layer.name,), (channels,))))
    return replace(plan, program=replace(plan.program, stages=tuple(stages)))


def in_parts(draw: Draw, plan: Plan) -> Plan:
    """Each layer as a loop over parts along one axis, and every part along another in two."""
    stages = []
    for layer in plan.network.layers:
        shape = plan.network.tensors[layer.output].shape
        splits = []
        if shape:
            axis, other = draw(st.integers(0, len(shape) - 1)), draw(st.integers(0, len(shape) - 1))
            splits.append(Split(axis, parts_of(shape[axis], draw(st.integers(1, shape[axis])))))
            if other != axis and shape[other] > 1:
                splits.append(Split(other, (draw(st.integers(1, shape[other] - 1)), shape[other])))
        stages.append(split_stage(plan.network, layer.name, splits))
    return replace(plan, program=Program(plan.network, tuple(stages)))


def parts_of(size: int, part: int) -> tuple[int, ...]:
    """Where parts of this size end; the last one may be smaller."""
    return (*range(part, size, part), size)


def split_stage(network: Network, layer: str, splits: Sequence[Split]) -> Stage:
    """A layer in parts of its output: not along axes over which it would rather sum up parts of its input."""
    last = len(network.tensors[network.by_name[layer].output].shape) - 1
    named = [replace(split, axis=-1) if split.axis == last else split for split in splits]
    schedule = FusionSchedule((layer,), tuple(named))
    if FusedLayers(network, schedule).partial:
        schedule = FusionSchedule((layer,), tuple(split for split in named if split.axis not in (1, 2)))
    return Stage(layer, schedule)
