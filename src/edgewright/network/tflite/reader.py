"""Reads a TFLite model as a Network; `importers` read the layers, `file` the bytes."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ...errors import ModelError, Unsupported
from ..builder import Builder
from ..network import Arithmetic, Network, Origin, execution_order
from ..open_shapes import OpenInput, open_shapes_error
from ..region import Shape
from .file import ModelFile, damage_named, parse, read_bytes
from .import_state import ImportState, LayerImport, require_size
from .importers import advice, importer_of
from .states import kept_states

_NAMES_SHOWN = 4  # layers named for each unsupported kind


def read_tflite(
    source: str | Path | bytes | mmap.mmap, name: str | None = None, shapes: Mapping[str, Shape] | None = None
) -> Network:
    """The network in a .tflite file, or in its bytes, with the arithmetic of LiteRT's reference kernels.

    `shapes` sets the shapes of inputs, by name. An open batch size becomes 1, with a note; other open sizes must be
    given. For any bytes, only EdgewrightError is raised.
    """
    if isinstance(source, str | Path):
        name = name or Path(source).stem
        content: bytes | mmap.mmap = read_bytes(source)
    else:
        name, content = name or "model", source
    file = parse(content, name)
    builder = Builder(name, Arithmetic.TFLITE)
    state = ImportState(file, builder, _read_operators)
    _add_inputs(state, shapes or {})
    if problems := _read_operators(state):
        raise Unsupported(_report(name, problems))
    with damage_named(f"'{name}'"):
        network = builder.build([*map(state.name_of, file.outputs), *kept_states(state)])
    origins = {
        name: Origin(index, tuple(range(len(network.tensors[name].shape))))
        for index, name in state.names.items()
        if name in network.tensors and name not in network.constants
    }
    return replace(network, origins={**origins, **state.variables.origins})


def _add_inputs(state: ImportState, shapes: Mapping[str, Shape]) -> None:
    file, builder = state.file, state.builder
    chosen = _index_by_name(shapes, file)
    if not file.outputs:
        raise ModelError(f"'{builder.name}' has no outputs")
    _check_open(file, chosen, builder.name)
    for index in dict.fromkeys(file.inputs):
        tensor = file.tensors[index]
        if tensor.data is not None and tensor.data.size:
            continue  # a constant that is also listed as an input
        shape = chosen.get(index)
        if shape is None:
            shape = tensor.shape
            if tensor.signature[:1] == (-1,):
                shape = (1, *shape[1:])
                builder.notes.append(f"input '{tensor.name}': batch size set to 1")
        if len(shape) != len(tensor.shape):
            raise ModelError(f"input '{tensor.name}' has {len(tensor.shape)} axes; the shape {shape} does not fit")
        require_size(tensor.name, shape)
        state.names[index] = builder.input(builder.fresh(tensor.name), shape, tensor.dtype, tensor.quant)


def _check_open(file: ModelFile, chosen: Mapping[int, Shape], title: str) -> None:
    """Raises an error that names every input with open sizes other than the batch that were not given."""
    tensors = [file.tensors[index] for index in dict.fromkeys(file.inputs) if index not in chosen]
    open_inputs = [
        OpenInput(tensor.name, tuple(size if size > 0 else "?" for size in tensor.signature), tensor.dtype.is_float)
        for tensor in tensors
        if -1 in tensor.signature[1:] and (tensor.data is None or not tensor.data.size)
    ]
    if open_inputs:
        raise open_shapes_error(title, open_inputs, channels_last=True)


def _index_by_name(shapes: Mapping[str, Shape], file: ModelFile) -> dict[int, Shape]:
    """The user's shapes for inputs, by tensor index."""
    inputs = {file.tensors[index].name: index for index in file.inputs}
    if unknown := sorted(set(shapes) - set(inputs)):
        raise ModelError(f"a shape is given for {unknown}, but the model's inputs are {sorted(inputs)}")
    return {inputs[name]: tuple(shape) for name, shape in shapes.items()}


def _read_operators(state: ImportState) -> dict[str, list[str]]:
    """Reads every operator; unsupported ones are collected and reported together."""
    file = state.file
    problems: dict[str, list[str]] = {}
    lost: set[int] = set()  # tensors of operators that were not read
    for index in operator_order(file):
        operator = file.operators[index]
        if index in state.done:
            continue
        if importer_of(operator.kind) is None:
            problems.setdefault(operator.kind, []).append(state.labels[index])
            lost.update(operator.outputs)
            continue
        if not lost.isdisjoint(operator.inputs):
            lost.update(operator.outputs)
            continue
        try:
            _add_layer(state, index)
        except Unsupported as error:
            problems.setdefault(f"{operator.kind}, where {error}", []).append(state.labels[index])
            lost.update(operator.outputs)
    return problems


def _add_layer(state: ImportState, index: int) -> None:
    layer = LayerImport(state, index)
    kind = layer.operator.kind
    with damage_named(f"layer '{layer.label}' ({kind})"):
        importer = importer_of(kind)
        assert importer is not None
        importer(layer)


def _report(model: str, problems: Mapping[str, list[str]]) -> str:
    lines = []
    for what, layers in sorted(problems.items(), key=lambda item: -len(item[1])):
        shown = ", ".join(f"'{layer}'" for layer in layers[:_NAMES_SHOWN])
        more = f" and {len(layers) - _NAMES_SHOWN} more" if len(layers) > _NAMES_SHOWN else ""
        hint = advice(what)
        lines.append(f"  {len(layers)} x {what}: {shown}{more}" + (f"; {hint}" if hint else ""))
    if any("," not in what and not advice(what) for what in problems):  # kinds without a reason
        lines.append("Convert the model without it and compute it in the application.")
    return f"'{model}' uses what is not handled:\n" + "\n".join(lines)


def operator_order(file: ModelFile) -> list[int]:
    """Indices of the operators in topological order; in the file's order if possible."""
    writer: dict[int, int] = {}
    given = set(file.inputs)
    for index, operator in enumerate(file.operators):
        for tensor in operator.outputs:
            name = file.tensors[tensor].name
            if tensor in writer:
                raise ModelError(f"tensor '{name}' is written by operators {writer[tensor]} and {index}")
            if tensor in given or file.tensors[tensor].data is not None:
                raise ModelError(f"operator {index} writes tensor '{name}', which is an input or a constant")
            writer[tensor] = index

    order = execution_order([{writer[t] for t in operator.inputs if t in writer} for operator in file.operators])
    if len(order) < len(file.operators):
        stuck = sorted(set(range(len(file.operators))) - set(order))
        names = ", ".join(f"{index} ({file.operators[index].kind})" for index in stuck[:8])
        raise ModelError(f"the graph has a cycle, through or before these operators: {names}")
    return order
