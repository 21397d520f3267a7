"""Operators that move elements, and resize, emitted as C."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from edgewright.memory import plan as make_plan
from edgewright.network import Builder, Network
from edgewright.network.operators import (
    Binary,
    BinaryKind,
    Clamp,
    Concat,
    Coordinates,
    DepthToSpace,
    Expand,
    Gather,
    GatherElements,
    Lrn,
    Op,
    Pad,
    PadMode,
    PRelu,
    Reduce,
    Reshape,
    Resize,
    ResizeMode,
    Slice,
    Softmax,
    SpaceToDepth,
    Tile,
    Transpose,
)
from edgewright.program import Buffer, FusionSchedule, Plan, Program, Stage, View
from tests.helpers.emitting_batch import check_together
from tests.helpers.emitting_cases import FEW, check_layers

KINDS = (
    Reshape,
    Transpose,
    Concat,
    Slice,
    Pad,
    Pad,
    Expand,
    Tile,
    SpaceToDepth,
    DepthToSpace,
    Gather,
    GatherElements,
    Resize,
)


@FEW
@given(st.data())
def test_floats(data: st.DataObject) -> None:
    check_layers(data, KINDS, quantised=False)


@FEW
@given(st.data())
def test_quantised_as_onnxruntime_computes(data: st.DataObject) -> None:
    check_layers(data, KINDS, quantised=True)


ROWS = 6
BY_ROWS: list[Op] = [
    Binary(BinaryKind.SUB),
    Clamp(-0.5, 0.5),
    Concat(2),
    Concat(3),
    Expand((1, ROWS, 5, 4)),
    Lrn(3),
    PRelu(),
    Pad((0, 0, 2, 0), (0, 0, 1, 1)),
    Pad((0, 0, 2, 0), (0, 0, 1, 1), PadMode.REFLECT),
    Reduce((2,)),
    Reshape((1, ROWS, 20, 1)),
    Resize((ROWS, 9)),
    Resize((ROWS, 9), ResizeMode.LINEAR, Coordinates.ASYMMETRIC),
    Slice((0, 0, 4, 1), (1, ROWS, 3, 2), (1, 1, -2, 1)),
    Softmax(2),
    Softmax(3),
    Tile((1, 1, 2, 3)),
    Transpose((0, 1, 3, 2)),
]


def test_rolling_buffers_of_rows() -> None:
    """Row by row, what is read and what is written in memory for a few rows only, and no two alike."""
    networks = [rolling(op) for op in BY_ROWS]
    kept = [{"middle": 3} if isinstance(op, Tile) else {"first": 2, "middle": 3} for op in BY_ROWS]  # Tile asks for all
    plans = [by_rows(*case) for case in zip(networks, kept, strict=True)]
    check_together(networks, plans=plans)


def rolling(op: Op) -> Network:
    b = Builder("rolling")
    x = b.layer(Clamp(-1.0, 1.0), [b.input("x", (1, ROWS, 5, 4))], "first")
    pair = [x, x] if isinstance(op, Binary | Concat | PRelu) else [x]
    return b.build([b.layer(Clamp(0.0), [b.layer(op, pair, "middle")], "last")])


def by_rows(network: Network, kept: dict[str, int]) -> Plan:
    """All layers row by row; of each tensor so many rows are kept."""
    buffers, views, at = [], {}, 0
    for tensor in network.tensors.values():
        rows = kept.get(tensor.name, ROWS)
        size = tensor.bytes // ROWS * rows
        buffers.append(Buffer(tensor.name, size, at, 0, 1))
        views[tensor.name] = View(tensor.name, 0, tensor.strides, (1, rows) if rows < ROWS else None)
        at += size
    plan = make_plan(network, plain=True)
    schedule = FusionSchedule(tuple(layer.name for layer in network.layers), streamed=True)
    program = Program(network, (Stage("all", schedule),))
    return replace(plan, program=program, buffers=tuple(buffers), views=views, peak_bytes=at)
