"""Softmax, normalisations and reductions, emitted as C."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgewright.network.operators import ArgMax, L2Normalize, LogSoftmax, Lrn, Reduce, Softmax
from emitting_cases import FEW, check_layers

KINDS = (Softmax, LogSoftmax, L2Normalize, Lrn, Reduce, Reduce, ArgMax)


@FEW
@given(st.data())
def test_floats(data: st.DataObject) -> None:
    check_layers(data, KINDS, quantised=False)


@FEW
@given(st.data())
def test_quantised_as_onnxruntime_computes(data: st.DataObject) -> None:
    check_layers(data, KINDS, quantised=True)
