"""Importers of layers that keep a state between calls: variables, and SVDF layers.

A state is an input of the network, with the value before the call, and an output, with the value after it: the caller
passes the same memory for both.
"""

from __future__ import annotations

import numpy as np
import tflite

from ...errors import Unsupported
from .. import operators as ops
from ..network import Origin
from ..region import Shape
from ..tensor import Array, DType, Quant
from .file import FileOperator
from .import_state import ImportState, LayerImport, require_size, tidy

ONE = Quant.of(1.0)  # the scale of stored integers that are multiplied with no other


def var_handle(layer: LayerImport) -> None:
    layer.state.handles[layer.outputs[0]] = _shared_name(layer.operator)


def read_variable(layer: LayerImport) -> None:
    """The value assigned in this call; before an assignment, the value of the last call, or a constant."""
    name, variables, result = _variable(layer), layer.state.variables, layer.result()
    if name not in variables.values:
        if layer.state.depth:
            raise Unsupported(f"the variable '{name}' is read inside a loop or a branch first")
        if _is_assigned(layer.state, name):
            begun = variables.begun.get(name, np.zeros((), result.dtype.numpy))
            if begun.size and (begun != begun.flat[0]).any():
                raise Unsupported(f"the variable '{name}' begins with numbers that differ; make it an input")
            origin = Origin(layer.outputs[0], tuple(range(len(result.shape))))
            first = begun.flat[0] if begun.size else 0
            variables.inputs[name] = _state(layer.state, name, result.shape, result.dtype, result.quant, origin, first)
            variables.values[name] = variables.inputs[name]
        elif name in variables.begun:
            variables.values[name] = layer.state.add_constant(name, variables.begun[name], result.quant)
        else:
            raise Unsupported(f"the variable '{name}' is never assigned")
    layer.emit(ops.Reshape(result.shape), [variables.values[name]])


def assign_variable(layer: LayerImport) -> None:
    name, variables = _variable(layer), layer.state.variables
    variables.values[name] = layer.input(1)
    variables.assigned[name] = layer.index(1)


def kept_states(state: ImportState) -> list[str]:
    """The outputs that are states of the next call."""
    builder, variables = state.builder, state.variables
    for name, before in variables.inputs.items():
        tensor, after = builder.tensors[before], variables.values[name]
        if builder.tensors[after].dtype is not tensor.dtype or builder.tensors[after].size != tensor.size:
            raise Unsupported(f"the variable '{name}' is {tensor} and becomes {builder.tensors[after]}")
        origin = Origin(variables.assigned[name], tuple(range(len(tensor.shape))))
        _keep(state, before, after, origin)
    return list(builder.states.values())


def _shared_name(operator: FileOperator) -> str:
    options = operator.options(tflite.VarHandleOptions)
    name = b"/".join(part for part in (options.Container(), options.SharedName()) if part)
    return tidy(name.decode("utf-8", "replace")) if name else "variable"


def _variable(layer: LayerImport) -> str:
    index = layer.index(0)
    if index not in layer.state.handles:
        raise Unsupported("its variable is chosen at run time")
    return layer.state.handles[index]


def _is_assigned(state: ImportState, name: str) -> bool:
    """Whether the main graph assigns the variable."""
    graph = state.file.operators
    handles = {made.outputs[0] for made in graph if made.kind == "VAR_HANDLE" and _shared_name(made) == name}
    return any(operator.inputs[0] in handles for operator in graph if operator.kind == "ASSIGN_VARIABLE")


def _state(
    state: ImportState, name: str, shape: Shape, dtype: DType, quant: Quant | None, origin: Origin, first: float = 0
) -> str:
    """The input that holds the value of the previous call."""
    require_size(name, shape)
    made = state.builder.input(state.builder.fresh(name), shape, dtype, quant)
    state.variables.origins[made] = origin
    state.builder.notes.append(
        f"state '{made}': begins with {first:g}; hand output '{made}_next' of a call to the next one as this input"
    )
    return made


def _keep(state: ImportState, before: str, after: str, origin: Origin) -> None:
    """Makes `after` the new value of the state `before`, as a separate output."""
    tensor = state.builder.tensors[before]
    name = f"{before}_next"
    made = state.builder.layer(
        ops.Reshape(tensor.shape), [after], name, output=name, dtype=tensor.dtype, quant=tensor.quant
    )
    state.builder.states[before] = made
    state.variables.origins[made] = origin


def svdf(layer: LayerImport) -> None:
    """Each filter's value of this call is appended to the last ones; a window over time sums them.

    Stored integers are multiplied as in LiteRT: both scales combined in float32, the state in 16 or 8 bits.
    """
    options, x = layer.options(tflite.SVDFOptions), layer.tensor()
    rank, activation = options.Rank(), layer.fused(options.FusedActivationFunction())
    features, times = layer.value(1, "weights of features"), layer.value(2, "weights of time")
    if layer.state.depth or len(x.shape) != 2 or features.ndim != 2 or times.ndim != 2 or rank < 1:
        raise Unsupported("it stands in a loop, or its input is no vector")
    (filters, depth), (count, length) = features.shape, times.shape
    if count != filters or depth != x.shape[1] or filters % rank:
        raise layer.error(f"weights {features.shape} and {times.shape} of rank {rank} for {x.shape}")
    units, batch = filters // rank, x.shape[0]
    kept, result = layer.state.file.tensors[layer.index(4)], layer.result()
    types = (x.dtype, features.dtype.name, times.dtype.name, kept.known_dtype, result.dtype)
    if types not in (
        (DType.FLOAT32, "float32", "float32", DType.FLOAT32, DType.FLOAT32),
        (DType.INT8, "int8", "int16", DType.INT16, DType.INT8),
        (DType.INT8, "int8", "int8", DType.INT8, DType.INT8),
    ):
        raise Unsupported(f"its types are {', '.join(getattr(t, 'value', str(t)) for t in types)}")
    is_stored = x.dtype is DType.INT8
    scales = [t.quant for t in (x, layer.tensor(1), layer.tensor(2), kept, result)]
    if is_stored and any(quant is None or quant.is_per_channel for quant in scales):
        raise Unsupported("its scales are missing, or differ from channel to channel")
    s_x, s_f, s_t, s_s, s_y = (np.float32(quant.scale[0] if quant else 1) for quant in scales)
    # Stored numbers are used as they are; both factors go into the weights.
    by_feature, by_time = (
        (Quant.of(float(s_x * s_f / s_s)), Quant.of(float(s_s * s_t / s_y))) if is_stored else (None, None)
    )
    one, dtype = ONE if is_stored else None, types[3]

    def moved(op: ops.Op, inputs: list[str], tag: str) -> str:
        return layer.inner(op, inputs, tag, dtype, one)

    row = layer.inner(ops.Reshape((batch, 1, 1, depth)), [layer.input()], "row", x.dtype, _counted(x.quant))
    w = layer.constant("features", features.reshape(filters, 1, 1, depth), by_feature)
    after = moved(ops.Reshape((batch, 1, filters)), [moved(ops.Conv2d(), [row, w], "feature")], "newest")
    if length > 1:
        origin = Origin(layer.index(4), (0, 2, 1), (batch, filters, length))
        before = _state(layer.state, kept.name, (batch, length, filters), dtype, one, origin)
        older = ops.Slice((0, 1, 0), (batch, length - 1, filters), (1, 1, 1))
        after = moved(ops.Concat(1), [moved(older, [before], "older"), after], "memory")
        _keep(layer.state, before, after, origin)
    windows = np.ascontiguousarray(times.reshape(units, rank, length).transpose(0, 2, 1)[:, :, None])
    inputs = [moved(ops.Reshape((batch, length, 1, filters)), [after], "seen")]
    inputs += [layer.constant("time", windows, by_time), _bias(layer, units)]
    sums = ops.Conv2d(groups=units, activation=None if is_stored else activation)
    total = layer.inner(sums, inputs, "sum", result.dtype, _counted(result.quant))
    layer.emit(ops.Reshape((batch, units)), [total])


def _counted(quant: Quant | None) -> Quant | None:
    """Stored integers minus their zero point."""
    return None if quant is None else Quant.of(1.0, quant.zero[0])


def _bias(layer: LayerImport, units: int) -> str:
    dtype = np.int32 if layer.result().dtype is DType.INT8 else np.float32
    value: Array = layer.value(3, "bias") if layer.has(3) else np.zeros(units, dtype)
    if value.dtype != dtype or value.shape != (units,):
        raise layer.error(f"a bias {value.dtype}{list(value.shape)} for {units} units")
    return layer.constant("bias", value, ONE if dtype is np.int32 else None)
