"""Runs operators: picks the kernel by arithmetic and operator, for one region or for whole networks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ...errors import InputError
from ..network import Arithmetic, Layer, Network
from ..operators import FinishSums, Op, PartialSum
from ..region import Region
from ..tensor import Array, Tensor
from .onnx_quant import compute_onnx
from .operand import Operand
from .partial_sums import finish_sums, partial_sum
from .table import KERNELS
from .tflite import compute_tflite


def compute(op: Op, out: Region, operands: Sequence[Operand], result: Tensor, arithmetic: Arithmetic) -> Array:
    """The values of region `out` of the output, from exactly the regions that `op.needs(out)` names."""
    for operand in operands:
        assert operand.data.shape == operand.region.shape, f"{operand.tensor}: {operand.data.shape}"
    if out.is_empty:
        return np.empty(out.shape, result.dtype.numpy)
    if isinstance(op, PartialSum):
        values = partial_sum(op, out, operands, result, arithmetic)
    elif isinstance(op, FinishSums):
        values = finish_sums(op, out, operands, result, arithmetic)
    elif not is_quantised([operand.tensor for operand in operands], result):
        values = KERNELS[type(op)](op, out, operands, result)
    elif arithmetic is Arithmetic.TFLITE:
        values = compute_tflite(op, out, operands, result)
    else:
        values = compute_onnx(op, out, operands, result, arithmetic)
    assert values.shape == out.shape, f"{op}: {values.shape} for {out}"
    return values.astype(result.dtype.numpy, copy=False)


def compute_whole(
    op: Op, values: Sequence[Array], tensors: Sequence[Tensor], result: Tensor, arithmetic: Arithmetic
) -> Array:
    """The whole output of an operator, from whole inputs."""
    whole = Region.whole(result.shape)
    needs = op.needs(whole, [tensor.shape for tensor in tensors])
    parts = zip(values, needs, tensors, strict=True)
    return compute(op, whole, [Operand(v[need.slices], need, tensor) for v, need, tensor in parts], result, arithmetic)


def is_quantised(inputs: Sequence[Tensor], result: Tensor) -> bool:
    """Whether stored integers represent real numbers, so that rounding rules apply."""
    return any(tensor.quant is not None and not tensor.dtype.is_float for tensor in (result, *inputs))


def execute(network: Network, inputs: Mapping[str, Array], keep: Iterable[str] = ()) -> dict[str, Array]:
    """The outputs of the network, and the tensors to `keep`. Runs layer by layer; each value is dropped after its last
    use."""
    wanted = {*network.outputs, *keep}
    values: dict[str, Array] = dict(network.constants)
    for name in network.inputs:
        values[name] = checked_input(network.tensors[name], inputs)
    last_use = {name: i for i, layer in enumerate(network.layers) for name in layer.inputs}
    for i, layer in enumerate(network.layers):
        values[layer.output] = run_layer(network, layer, values)
        for name in {*layer.inputs, layer.output} - wanted:
            if last_use.get(name, i) == i and name not in network.constants:
                del values[name]
    return {name: values[name] for name in values if name in wanted}


def run_layer(network: Network, layer: Layer, values: Mapping[str, Array]) -> Array:
    """The whole output of a layer, from the values of its inputs."""
    tensors = [network.tensors[name] for name in layer.inputs]
    inputs = [values[name] for name in layer.inputs]
    try:
        return compute_whole(layer.op, inputs, tensors, network.tensors[layer.output], network.arithmetic)
    except Exception as error:
        error.add_note(f"in layer '{layer.name}' of network '{network.name}'")
        raise


def by_name(network: Network, inputs: Mapping[str, Array] | Array) -> Mapping[str, Array]:
    """The inputs by name; a bare array is the value of the only input."""
    if isinstance(inputs, Mapping):
        return inputs
    if len(network.inputs) != 1:
        names = ", ".join(network.inputs)
        raise InputError(
            f"'{network.name}' takes {len(network.inputs)} inputs ({names}); give a mapping from names to arrays"
        )
    return {network.inputs[0]: np.asarray(inputs)}


def checked_input(tensor: Tensor, inputs: Mapping[str, Array]) -> Array:
    """The value of an input, after a check of its type and shape."""
    if tensor.name not in inputs:
        raise InputError(f"no value for input '{tensor.name}'; given are {sorted(inputs)}")
    value = np.asarray(inputs[tensor.name])
    if value.shape != tensor.shape or value.dtype != tensor.dtype.numpy:
        raise InputError(
            f"input '{tensor.name}' must be {tensor.dtype.value} of shape {tensor.shape}, "
            f"got {value.dtype} of shape {value.shape}"
        )
    return value
