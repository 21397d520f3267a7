"""Layers split along the axis that they sum over: each part computes partial sums, and one part finishes them.

Real numbers need no special operator: a layer without activation over a range of its input (the first part adds the
bias), then an Add of the results, with the activation. Sums of quantised integers are passed on as 32-bit numbers and
requantised once, so that every byte equals that of the whole layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod

import numpy as np

from ..errors import ModelError, Unsupported
from .kernels.partial_sums import can_sum_partially
from .network import Layer, Network
from .operators import AvgPool2d, Binary, BinaryKind, Conv2d, Dense, FinishSums, Op, PartialSum, Reduce, ReduceKind
from .operators.base import RestrictedOperator
from .operators.partial_sums import reduction_axes
from .part_draft import PartDraft, tensor_part
from .region import Region
from .restrict import restrict
from .tensor import DType, Tensor


@dataclass(frozen=True, slots=True)
class PartialSums:
    """A request to a part: the contribution of a `share` of a layer's first input to a region of its output."""

    region: Region
    share: Region


@dataclass(frozen=True, slots=True)
class ShareReads:
    """The layer over a share, and what it reads."""

    op: Conv2d | Dense | Reduce | AvgPool2d
    reads: tuple[Region, ...]


def checked_share(network: Network, layer: Layer, share: Region) -> Region:
    """The range, made whole along axes that are not summed over; an error if partial sums do not give the layer's
    output."""
    title, x = f"layer '{layer.name}' ({type(layer.op).__name__})", network.tensors[layer.inputs[0]]
    tensors = [network.tensors[name] for name in layer.inputs]
    axes = reduction_axes(layer.op, network.shapes(layer))
    if not axes:
        kinds = "a convolution without groups, a dense layer on a matrix, a sum, a mean or a global average"
        raise Unsupported(f"{title} cannot be summed in parts: it is not {kinds}")
    if not can_sum_partially(layer.op, tensors, network.tensors[layer.output], network.arithmetic):
        kind = f"{x.dtype.value} in the arithmetic of {network.arithmetic.value}"
        raise Unsupported(f"{title} cannot be summed in parts: of {kind} it adds no numbers that fit in 32 bits")
    whole = Region.whole(x.shape)
    if len(share.bounds) != len(x.shape) or share not in whole:
        raise ModelError(f"{title}: share {share} is not inside '{x.name}' of shape {x.shape}")
    for axis in axes:
        whole = whole.with_axis(axis, share.bounds[axis])
    if whole.is_empty:
        raise ModelError(f"{title}: share {share} of '{x.name}' is empty")
    return whole


def share_reads(network: Network, layer: Layer, sums: PartialSums) -> ShareReads:
    """What the first inputs must contain to sum over the share. Only the first sum of real numbers adds a bias."""
    shapes = network.shapes(layer)
    answer = restrict(layer.op, sums.region, shapes)
    assert isinstance(answer, RestrictedOperator) and answer.keep is None, f"{layer.name}: {answer}"
    assert isinstance(answer.op, Conv2d | Dense | Reduce | AvgPool2d)
    reads = [region for region in answer.reads if region is not None]
    for axis, other in reduction_axes(layer.op, shapes).items():
        reads[0] = reads[0].with_axis(axis, sums.share.bounds[axis])
        if other is not None:
            reads[1] = reads[1].with_axis(other, sums.share.bounds[axis])
    op = answer.op
    if isinstance(op, AvgPool2d):
        op = replace(op, kernel=(reads[0].shape[1], reads[0].shape[2]))
    if not isinstance(op, Reduce):
        op = replace(op, activation=None)
    is_first = all(sums.share.bounds[axis][0] == 0 for axis in reduction_axes(layer.op, shapes))
    return ShareReads(op, tuple(reads if is_first and not has_integer_sums(network, layer) else reads[:2]))


def has_integer_sums(network: Network, layer: Layer) -> bool:
    """Whether partial sums are integers, to which a bias is added when they are complete."""
    return network.tensors[layer.output].dtype is not DType.FLOAT32


def add_partial(draft: PartDraft, layer: Layer, sums: PartialSums) -> str:
    """Adds the layer that sums over the share; returns the part's tensor of its sums."""
    network = draft.whole
    answer = share_reads(network, layer, sums)
    made = _sums_tensor(network, layer, sums.region)
    op = PartialSum(answer.op) if has_integer_sums(network, layer) else _real_sum(answer.op)
    inputs = [draft.read(name, region) for name, region in zip(layer.inputs, answer.reads, strict=False)]
    return draft.add(op, inputs, layer.name, f"{layer.output}.sums", made)


def _sums_tensor(network: Network, layer: Layer, region: Region) -> Tensor:
    dtype = DType.INT32 if has_integer_sums(network, layer) else DType.FLOAT32
    return Tensor(f"{layer.output}.sums", region.shape, dtype)


def _real_sum(op: Conv2d | Dense | Reduce | AvgPool2d) -> Op:
    match op:
        case Reduce():
            return replace(op, kind=ReduceKind.SUM)
        case AvgPool2d():
            return Reduce((1, 2), kind=ReduceKind.SUM)
        case _:
            return op


def checked_shares(network: Network, layer: Layer, shares: Sequence[Region]) -> tuple[Region, ...]:
    """The shares that finish a layer, after a check that each summed element belongs to exactly one."""
    checked = tuple(checked_share(network, layer, share) for share in shares)
    title = f"layer '{layer.name}' ({type(layer.op).__name__})"
    if len(checked) < 2:
        raise ModelError(f"{title} is finished from {len(checked)} shares; two or more are wanted")
    if any(not (one & other).is_empty for one, other in combinations(checked, 2)):
        raise ModelError(f"{title}: shares {list(checked)} overlap")
    whole = network.tensors[layer.inputs[0]].size
    if (size := sum(share.size for share in checked)) != whole:
        raise ModelError(f"{title}: shares {list(checked)} hold {size} of {whole} elements")
    return checked


def add_finish(draft: PartDraft, layer: Layer, region: Region, shares: Sequence[Region]) -> dict[str, Region]:
    """Adds the layers that finish all partial sums, and returns the inputs for these."""
    kind = _sums_tensor(draft.whole, layer, region)
    inputs = {}
    for share in shares:
        name = draft.builder.input(draft.builder.fresh(kind.name), kind.shape, kind.dtype)
        inputs[name] = share
    finish = _finish_integers if kind.dtype is DType.INT32 else _finish_reals
    draft.hold(layer.output, finish(draft, layer, region, list(inputs)), region)
    return inputs


def _finish_integers(draft: PartDraft, layer: Layer, region: Region, sums: list[str]) -> str:
    whole = draft.whole
    x, *others = [whole.tensors[name] for name in layer.inputs]
    assert x.quant is not None and isinstance(layer.op, Conv2d | Dense | Reduce | AvgPool2d)
    needs = layer.op.needs(region, whole.shapes(layer))
    weights = [tensor_part(w, read) for w, read in zip(others[:1], needs[1:2], strict=True)]
    scales = tuple(scale for w in weights if w.quant is not None for scale in w.quant.scale)
    op = FinishSums(
        product=layer.op,
        shapes=(x.shape, *(w.shape for w in weights)),
        dtype=x.dtype,
        scale=x.quant.scale[0],
        zero=x.quant.zero[0],
        weight_scales=scales,
        biased=len(others) > 1,
    )
    bias = [draft.read(name, read) for name, read in zip(layer.inputs[2:], needs[2:], strict=True)]
    made = tensor_part(whole.tensors[layer.output], region)
    return draft.add(op, [*sums, *bias], layer.name, layer.output, made)


def mean_divisor(network: Network, layer: Layer) -> int | None:
    """The number of elements in a mean of real numbers; the finishing layer divides by this constant."""
    op, shapes = layer.op, network.shapes(layer)
    is_mean = isinstance(op, AvgPool2d) or (isinstance(op, Reduce) and op.kind is ReduceKind.MEAN)
    if not is_mean or has_integer_sums(network, layer):
        return None
    return prod(shapes[0][axis] for axis in reduction_axes(op, shapes))


def _finish_reals(draft: PartDraft, layer: Layer, region: Region, sums: list[str]) -> str:
    """An Add for each share but the first; means are divided by their number of elements at the end."""
    made = tensor_part(draft.whole.tensors[layer.output], region)
    count = mean_divisor(draft.whole, layer)
    activation = getattr(layer.op, "activation", None)
    total = sums[0]
    for i, other in enumerate(sums[1:], 1):
        is_last = i == len(sums) - 1 and count is None
        add = Binary(BinaryKind.ADD, activation if is_last else None)
        output = layer.output if is_last else f"{layer.output}.sum"
        total = draft.add(add, [total, other], layer.name if is_last else f"{layer.name}.{i}", output, made)
    if count is None:
        return total
    divisor = draft.builder.constant(f"{layer.output}.count", np.array(count, np.float32))
    divide = Binary(BinaryKind.DIV, activation)
    return draft.add(divide, [total, divisor], layer.name, layer.output, made)
