"""Every kernel, on any region: given only what `needs` names, it computes that part of the whole.

That it never misses anything proves `needs` large enough, since nothing else is handed over.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.network.kernels.table import KERNELS
from edgewright.network.operators import (
    BETWEEN_PARTS,
    ArgMax,
    Cast,
    Conv2d,
    ConvTranspose2d,
    Coordinates,
    Custom,
    Dense,
    Dequantize,
    Gather,
    GatherElements,
    MatMul,
    NearestMode,
    Op,
    Quantize,
    Resize,
    ResizeMode,
    TopK,
)
from edgewright.network.region import Region
from edgewright.network.tensor import DType, Quant, Tensor
from tests.helpers.kernel_cases import CASES, cases, regions, result_for, run, tensors_for

PRODUCTS = (Conv2d, ConvTranspose2d, Dense, MatMul)  # BLAS may add in another order for another shape


def test_every_operator_has_a_kernel_and_a_case() -> None:
    operators = set(get_args(Op)) - {Custom, *BETWEEN_PARTS}  # which other tests run
    assert set(KERNELS) == operators | {Custom}
    assert set(CASES) == operators


@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.__name__)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_region_is_that_part_of_the_whole(kind: type, data: st.DataObject) -> None:
    case = data.draw(cases(kind))
    out = data.draw(regions(case.whole.shape))
    values, result = case.values(), result_for(case)
    tensors = tensors_for(values)
    whole = run(case.op, case.whole, values, tensors, result)
    part = run(case.op, out, values, tensors, result)
    assert part.dtype == result.dtype.numpy
    assert part.shape == out.shape
    tolerance = 1e-5 if isinstance(case.op, PRODUCTS) else 1e-6
    np.testing.assert_allclose(part, whole[out.slices], rtol=tolerance, atol=tolerance)


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_regions_of_resized_large_images(data: st.DataObject) -> None:
    """Places are float32: what `needs` names covers their error."""
    extent, size = (data.draw(st.integers(1, 3000)) for _ in range(2))
    options = (ResizeMode, Coordinates, NearestMode)
    op = Resize((1, size), *(data.draw(st.sampled_from(list(kind))) for kind in options))
    values = [np.arange(extent, dtype=np.float32).reshape(1, 1, extent, 1)]
    y = Tensor("y", (1, 1, size, 1), DType.FLOAT32)
    whole = run(op, Region.whole(y.shape), values, tensors_for(values), y)
    for column in data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=30)):
        out = Region.whole(y.shape).with_axis(2, (column, column + 1))
        np.testing.assert_array_equal(run(op, out, values, tensors_for(values), y), whole[out.slices])


@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.__name__)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_quantised_region_is_that_part_of_the_whole(kind: type, data: st.DataObject) -> None:
    """Integer sums do not depend on order, so that products are exact here."""
    case = data.draw(cases(kind))
    out = data.draw(regions(case.whole.shape))
    rng = np.random.default_rng(case.seed)
    dtype = data.draw(st.sampled_from([DType.UINT8, DType.INT8]))
    info = np.iinfo(dtype.numpy)
    values, tensors = case.values(), []
    for i, (value, tensor) in enumerate(zip(values, tensors_for(values), strict=True)):
        if (isinstance(case.op, Gather | GatherElements) and i == 1) or isinstance(case.op, Quantize):
            tensors.append(tensor)
        elif isinstance(case.op, PRODUCTS) and i == 2:
            values[i] = rng.integers(-1000, 1000, value.shape, np.int32)
            tensors.append(replace(tensor, dtype=DType.INT32))
        else:
            values[i] = rng.integers(info.min, info.max + 1, value.shape).astype(dtype.numpy)
            tensors.append(replace(tensor, dtype=dtype, quant=Quant.of(0.02 + 0.01 * i, int(info.max) - 100 - i)))
    result = result_for(case)
    if not isinstance(case.op, ArgMax | Cast | Dequantize | TopK):
        kept = tensors[0].quant if data.draw(st.booleans()) else None
        result = replace(result, dtype=dtype, quant=kept or Quant.of(0.05, int(info.max) - 90))
    whole = run(case.op, case.whole, values, tensors, result)
    part = run(case.op, out, values, tensors, result)
    np.testing.assert_array_equal(part, whole[out.slices])


@pytest.mark.parametrize(("groups", "depth", "per_group"), [(4, 1, 1), (3, 1, 3), (2, 3, 2), (3, 2, 1)])
def test_every_range_of_channels_of_a_grouped_convolution(groups: int, depth: int, per_group: int) -> None:
    """A range may start and stop inside a group: depthwise, with a depth multiplier, and grouped."""
    rng = np.random.default_rng(0)
    channels = groups * per_group
    values = [rng.standard_normal((1, 3, 3, groups * depth)), rng.standard_normal((channels, 2, 2, depth))]
    values = [value.astype(np.float32) for value in values]
    for op in (Conv2d(groups=groups), ConvTranspose2d(groups=groups)):
        y = Tensor("y", op.output_shape([value.shape for value in values]), DType.FLOAT32)
        whole = run(op, Region.whole(y.shape), values, tensors_for(values), y)
        for start, stop in combinations(range(channels + 1), 2):
            out = Region.whole(y.shape).with_axis(3, (start, stop))
            part = run(op, out, values, tensors_for(values), y)
            np.testing.assert_allclose(part, whole[out.slices], rtol=1e-5, atol=1e-6)
