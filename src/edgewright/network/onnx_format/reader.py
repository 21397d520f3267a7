"""Reads an ONNX file literally: every operator becomes layers with exactly its meaning, in the file's layout.

Passes clean up transposes, batch norms and quantisation.
"""

from __future__ import annotations

import codecs
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path

import onnx
from google.protobuf.descriptor import FieldDescriptor  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError, Message  # type: ignore[import-untyped]

from ...errors import InputError, ModelError, Unsupported
from ..builder import Builder
from ..network import Arithmetic, Network, Origin
from ..open_shapes import OpenInput, open_shapes_error
from ..operators import Reshape
from ..region import Shape
from .context import Absent, Computed, Context, NodeProblem
from .graph import GraphReader, Scope, function_table, opset_versions
from .sizes import KnownSizes, expected_sizes, known_sizes
from .tensors import WIDENED, ModelBytes, check_shape, dtype_of, element_type_name
from .wire import ByteSpan, Skeleton, split

_SIGNATURES = {
    b"PK\x03\x04": "a zip archive; unpack it, or export the model as ONNX",
    b"\x89HDF": "a Keras HDF5 file; export the model as ONNX or TensorFlow Lite",
    b"version https://git-lfs": "a Git LFS pointer; fetch the file itself with 'git lfs pull'",
    b"\x1f\x8b": "compressed with gzip; unpack it first",
}


def read_onnx(
    source: str | Path | bytes, *, shapes: Mapping[str, Shape] | None = None, name: str | None = None
) -> Network:
    """The network in an ONNX file (or in its bytes), operator by operator.

    `shapes` sets the shapes of inputs with open sizes. Weights stay in the file, which is memory-mapped.
    """
    if isinstance(source, bytes):
        title, opened = name or "model", ModelBytes(None, source)
    else:
        path = Path(source)
        title, opened = name or path.stem, _open(path)
    model, skeleton = _parse(opened, title)
    return _read_model(model, skeleton, opened, title, dict(shapes or {}))


def _open(path: Path) -> ModelBytes:
    try:
        if path.is_dir():
            raise ModelError(f"'{path}' is a folder; name the .onnx file inside it")
        if path.exists() and not path.is_file():
            raise ModelError(f"'{path}' is not a regular file")
        return ModelBytes(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelError(f"cannot read '{path}': {reason}") from error


def _parse(opened: ModelBytes, title: str) -> tuple[onnx.ModelProto, Skeleton]:
    """The model without its large tensors; a ModelError describes the bytes if they are not a model."""
    start = bytes(opened.model[:64])
    if not start:
        raise ModelError(f"'{title}' is empty")
    if start[4:8] == b"TFL3":
        raise ModelError(f"'{title}' is a TensorFlow Lite model, not ONNX")
    for signature, kind in _SIGNATURES.items():
        if start.startswith(signature):
            raise ModelError(f"'{title}' is {kind}")
    try:
        skeleton = split(opened.model)
        model = onnx.ModelProto()
        model.ParseFromString(skeleton.data)
    except DecodeError as error:
        raise ModelError(f"'{title}' is not an ONNX model, or is damaged: {error}") from error
    except ModelError as error:
        if _is_text(start):
            raise ModelError(f"'{title}' is a text file, not an ONNX model") from error
        raise ModelError(f"'{title}' is {error}" if str(error).startswith("not ") else f"'{title}': {error}") from error
    _require_text(model, title)
    if not model.HasField("graph") or not model.graph.output:
        kind = (
            "a text file, not an ONNX model" if _is_text(start) else "not an ONNX model: it holds no graph with outputs"
        )
        raise ModelError(f"'{title}' is {kind}")
    return model, skeleton


def _require_text(message: Message, title: str) -> None:
    """Refuses names that are not UTF-8; protobuf returns them as bytes."""
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_STRING:
            for text in [value] if isinstance(value, str | bytes) else value:
                if isinstance(text, bytes):
                    raise ModelError(f"'{title}' is damaged: {field.full_name} {text!r} is no text")
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in [value] if isinstance(value, Message) else value:
                _require_text(inner, title)


def _is_text(start: bytes) -> bool:
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(start)  # the last character may be cut
    except UnicodeDecodeError:
        return False
    return all(character.isprintable() or character in "\t\r\n" for character in text)


def _read_model(
    model: onnx.ModelProto, skeleton: Skeleton, opened: ModelBytes, title: str, shapes: dict[str, Shape]
) -> Network:
    graph = model.graph
    builder = Builder(title, Arithmetic.ONNX)
    outputs = [output.name for output in graph.output]
    if len(set(outputs)) < len(outputs) or "" in outputs:
        raise ModelError(f"'{title}' has outputs without a name, or two of the same name: {outputs}")
    written = {name for node in graph.node for name in node.output}
    given = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    context = Context(builder, opened, written, given)
    scope = Scope(
        opsets=opset_versions(model.opset_import) or ({"": 1} if 0 < model.ir_version < 3 else {}),
        initializers=_initializers(graph, skeleton),
        extents={key: extent for key, extent in skeleton.extents.items() if len(key) == 2},
    )
    for sparse in graph.sparse_initializer:
        problem = NodeProblem("sparse initializer", sparse.values.name)
        scope.values[sparse.values.name] = Absent(problem)
    for name in _read_inputs(model, scope, builder, shapes, title):
        scope.values[name] = Computed(name)
    reader = GraphReader(context, function_table(model.functions))
    reader.read(graph.node, scope)
    tensors = _bind_outputs(outputs, reader, scope, title)
    network = builder.build(tensors)
    origins = {
        name: Origin(name, tuple(range(len(tensor.shape))))
        for name, tensor in network.tensors.items()
        if name in written and name not in network.constants
    }
    network = replace(network, origins=origins)
    opened.release()
    if not network.inputs:
        raise ModelError(f"the outputs of '{title}' depend on no input")
    return network


def _initializers(graph: onnx.GraphProto, skeleton: Skeleton) -> dict[str, tuple[onnx.TensorProto, ByteSpan | None]]:
    tensors: dict[str, tuple[onnx.TensorProto, ByteSpan | None]] = {}
    for i, tensor in enumerate(graph.initializer):
        if tensor.name in tensors:
            raise ModelError(f"two initializers have the name '{tensor.name}'")
        tensors[tensor.name] = tensor, skeleton.extents.get((i,))
    return tensors


def _read_inputs(
    model: onnx.ModelProto, scope: Scope, builder: Builder, shapes: dict[str, Shape], title: str
) -> list[str]:
    """The inputs that are not initializers (files before IR version 4 list those too)."""
    graph = model.graph
    names = [value.name for value in graph.input if value.name not in scope.initializers]
    if len(set(names)) < len(names) or "" in names:
        raise ModelError(f"'{title}' has inputs without a name, or two of the same name: {names}")
    if unknown := sorted(set(shapes) - set(names)):
        raise InputError(f"a shape is given for '{unknown[0]}', but the inputs of '{title}' are {names}")
    known = _known_sizes(model, names, shapes, title)
    for value in graph.input:
        if value.name in scope.initializers:
            continue
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type":
            raise Unsupported(f"input '{value.name}' is no tensor but {kind or 'of no stated type'}")
        tensor = value.type.tensor_type
        dtype = dtype_of(tensor.elem_type, f"input '{value.name}'")
        if tensor.elem_type in WIDENED:
            was = element_type_name(tensor.elem_type).lower()
            builder.notes.append(f"input '{value.name}': {was} in the file, taken as float32")
        builder.input(value.name, _input_shape(value, builder, shapes.get(value.name), known), dtype)
    return names


def _input_shape(value: onnx.ValueInfoProto, builder: Builder, given: Shape | None, known: KnownSizes) -> Shape:
    """The shape of an input: given, or as stated, with open sizes filled in where the model determines them."""
    stated = _stated(value)
    where = f"input '{value.name}'"
    if given is not None:
        given = tuple(int(size) for size in given)
        if stated is not None and len(stated) != len(given):
            raise InputError(f"{where} has {len(stated)} axes ({_dims(stated)}), not {len(given)} as in {given}")
        if any(size < 1 for size in given):
            raise InputError(f"{where}: shape {given} has an axis without elements")
        if stated is not None and any(isinstance(s, int) and s != g for s, g in zip(stated, given, strict=True)):
            builder.notes.append(f"{where}: {_dims(stated)} in the file, taken as {_dims(given)}")
        return check_shape(given, where)
    assert stated is not None, where  # open sizes were refused before
    builder.notes += known.notes(value.name, stated)
    return check_shape(tuple(int(size) for size in known.shape(value.name, stated)), where)


def _known_sizes(model: onnx.ModelProto, names: Sequence[str], shapes: Mapping[str, Shape], title: str) -> KnownSizes:
    """The open sizes that the model determines; an error names every other open input and the options that set it."""
    values = {value.name: value for value in model.graph.input if value.type.HasField("tensor_type")}
    stated = {name: _stated(values[name]) for name in names if name in values}
    known = known_sizes(model, {name: sizes for name, sizes in stated.items() if sizes is not None}, shapes)
    open_inputs = []
    for name, sizes in stated.items():
        if name in shapes or (sizes is not None and all(isinstance(s, int) for s in known.shape(name, sizes))):
            continue
        is_float = values[name].type.tensor_type.elem_type in (onnx.TensorProto.FLOAT, *WIDENED)
        expected = expected_sizes(model.graph, name) if sizes is None else known.shape(name, sizes, fitting=True)
        open_inputs.append(OpenInput(name, sizes, is_float, expected))
    if open_inputs:
        raise open_shapes_error(title, open_inputs, channels_last=False, control=control_flow(model.graph))
    return known


def _stated(value: onnx.ValueInfoProto) -> tuple[int | str, ...] | None:
    tensor = value.type.tensor_type
    return tuple(_size(dim) for dim in tensor.shape.dim) if tensor.HasField("shape") else None


def _size(dim: onnx.TensorShapeProto.Dimension) -> int | str:
    """A size, or the name (or '?') of an open one; zero and negative values are open too."""
    if dim.WhichOneof("value") == "dim_value" and dim.dim_value > 0:
        return int(dim.dim_value)
    return str(dim.dim_param) or "?"


def _dims(sizes: Sequence[int | str]) -> str:
    return "x".join(map(str, sizes))


def _bind_outputs(outputs: list[str], reader: GraphReader, scope: Scope, title: str) -> list[str]:
    """The network's tensors for the outputs, named as in the file."""
    values = {name: reader.lookup(name, scope) for name in outputs}
    absent = [value.problem for value in values.values() if isinstance(value, Absent)]
    if absent:
        raise Unsupported(_describe({**reader.problems, **dict.fromkeys(absent)}, title))
    for name, value in values.items():
        shape = reader.context.shape(value)
        if prod(shape) == 0:
            raise Unsupported(f"output '{name}' of '{title}' is an empty tensor {list(shape)}")
        tensor = reader.context.operand(value)
        if tensor in reader.context.shifted:
            raise Unsupported(f"output '{name}' of '{title}' is uint16; put a DequantizeLinear behind it")
        if tensor != name:  # an input, a constant, or a tensor with several names
            reader.context.builder.layer(Reshape(shape), [tensor], f"{name}/identity", output=name)
    return outputs


def _describe(problems: Iterable[NodeProblem], title: str) -> str:
    """Describes all problems: each operator with its count, reasons and nodes."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for problem in problems:
        groups[problem.operator, problem.reason].append(problem.node)
    lines = []
    for (operator, reason), nodes in sorted(groups.items()):
        shown = ", ".join(f"'{node}'" for node in nodes[:3]) + (", ..." if len(nodes) > 3 else "")
        lines.append(f"  {operator} x{len(nodes)} ({shown})" + (f": {reason}" if reason else ""))
    count = len({operator for operator, _ in groups})
    return f"'{title}' uses {count} operator{'s' * (count != 1)} in a way that is not supported:\n" + "\n".join(lines)


CONTROL = ("If", "Loop", "Scan", "SequenceMap")


def control_flow(graph: onnx.GraphProto) -> Mapping[str, int]:
    """The number of uses of each control-flow operator, including nested graphs."""
    return Counter(node.op_type for node in _nodes(graph) if node.op_type in CONTROL)


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    waiting = [graph]
    while waiting:
        current = waiting.pop()
        for node in current.node:
            yield node
            waiting += [attribute.g for attribute in node.attribute if attribute.HasField("g")]
