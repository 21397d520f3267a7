"""Softmax, normalisations and reductions, emitted as C."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgewright.network import Builder, DType, Network
from edgewright.network.operators import ArgMax, L2Normalize, LogSoftmax, Lrn, Op, Reduce, ReduceKind, Softmax, TopK
from tests.helpers.emitting_batch import check_together
from tests.helpers.emitting_cases import FEW, check_layers

KINDS = (Softmax, LogSoftmax, L2Normalize, Lrn, Reduce, Reduce, ArgMax, TopK)


@FEW
@given(st.data())
def test_floats(data: st.DataObject) -> None:
    check_layers(data, KINDS, quantised=False)


@FEW
@given(st.data())
def test_quantised_as_onnxruntime_computes(data: st.DataObject) -> None:
    check_layers(data, KINDS, quantised=True)


def one_layer(op: Op, dtype: DType, result: DType) -> Network:
    b = Builder("layer")
    return b.build([b.layer(op, [b.input("x", (2, 3, 4, 5), dtype)], "y", dtype=result)])


def test_reductions_of_plain_integers() -> None:
    reductions = [Reduce((1, 2), kind=kind) for kind in ReduceKind]
    types = (DType.INT8, DType.INT32, DType.INT64)
    check_together([one_layer(op, dtype, dtype) for op in reductions for dtype in types])
    check_together(
        [one_layer(ArgMax((-1,), last=last), dtype, DType.INT32) for last in (True, False) for dtype in types]
    )


def test_float16_is_computed_in_float() -> None:
    ops = [Softmax(), Softmax(1), LogSoftmax(), L2Normalize(), Lrn(3), ArgMax((1,))]
    ops += [Reduce((1,), kind=kind) for kind in ReduceKind]
    results = {ArgMax: DType.INT64}
    check_together([one_layer(op, DType.FLOAT16, results.get(type(op), DType.FLOAT16)) for op in ops])
