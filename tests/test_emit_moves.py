"""Operators that move elements, and resize, emitted as C."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgewright.network.operators import (
    Concat,
    DepthToSpace,
    Expand,
    Gather,
    Pad,
    Reshape,
    Resize,
    Slice,
    SpaceToDepth,
    Tile,
    Transpose,
)
from emitting_cases import FEW, check_layers

KINDS = (Reshape, Transpose, Concat, Slice, Pad, Pad, Expand, Tile, SpaceToDepth, DepthToSpace, Gather, Resize)


@FEW
@given(st.data())
def test_floats(data: st.DataObject) -> None:
    check_layers(data, KINDS, quantised=False)


@FEW
@given(st.data())
def test_quantised_as_onnxruntime_computes(data: st.DataObject) -> None:
    check_layers(data, KINDS, quantised=True)
