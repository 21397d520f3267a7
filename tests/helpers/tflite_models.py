"""Small TFLite models made in memory, and LiteRT's reference kernels to run them: what the TFLite tests are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from numpy.typing import NDArray

from edgewright.board.toolchain import ON_ARM
from edgewright.network.kernels.contraction import contracted

Array = NDArray[Any]


@dataclass(frozen=True)
class Spec:
    """A tensor of a model. With `data` it is a constant."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    scale: float | tuple[float, ...] | None = None
    zero: int | tuple[int, ...] = 0
    axis: int = 0
    data: Array | None = None
    signature: tuple[int, ...] | None = None
    special: Mapping[str, Any] = field(default_factory=dict)  # further fields of the schema's Tensor


def constant(name: str, data: Any, dtype: str = "int32", **quant: Any) -> Spec:
    value = np.asarray(data, dtype)
    return Spec(name, value.shape, dtype, data=value, **quant)


@dataclass(frozen=True)
class Node:
    """An operator: TFLite's name for it, the names of its tensors ("" for an absent one), and its options."""

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    options: Any = None  # an object of the schema, such as schema.Conv2DOptionsT


def options(name: str, **fields: Any) -> Any:
    """Options of the schema by name: options("Pool2D", strideH=2)."""
    made = getattr(schema, f"{name}OptionsT")()
    for key, value in fields.items():
        assert hasattr(made, key), f"{name}Options has no field {key}"
        setattr(made, key, value)
    return made


def model(specs: Sequence[Spec], nodes: Sequence[Node], inputs: Sequence[str], outputs: Sequence[str]) -> bytes:
    """The bytes of a .tflite file."""
    index = {spec.name: i for i, spec in enumerate(specs)}
    index[""] = -1
    result = schema.ModelT()
    result.version = 3
    result.buffers = [schema.BufferT()]
    graph = schema.SubGraphT()
    graph.tensors = [_tensor(spec, result.buffers) for spec in specs]
    graph.inputs = [index[name] for name in inputs]
    graph.outputs = [index[name] for name in outputs]
    result.operatorCodes = []
    graph.operators = []
    for i, node in enumerate(nodes):
        result.operatorCodes.append(_code(node.kind))
        made = schema.OperatorT()
        made.opcodeIndex = i
        made.inputs = [index[name] for name in node.inputs]
        made.outputs = [index[name] for name in node.outputs]
        if node.options is not None:
            made.builtinOptions = node.options
            made.builtinOptionsType = getattr(schema.BuiltinOptions, type(node.options).__name__[:-1])
        graph.operators.append(made)
    result.subgraphs = [graph]
    return packed(result)


def with_graphs(main: bytes, *graphs: bytes) -> bytes:
    """The first model with the graphs of others behind its own, as loops and branches name them."""
    result = unpacked(main)
    for other in map(unpacked, graphs):
        (graph,) = other.subgraphs
        for operator in graph.operators:
            operator.opcodeIndex += len(result.operatorCodes)
        for tensor in graph.tensors:
            tensor.buffer += len(result.buffers) if tensor.buffer else 0
        result.operatorCodes += other.operatorCodes
        result.buffers += other.buffers
        result.subgraphs.append(graph)
    return packed(result)


def packed(result: Any) -> bytes:
    builder = flatbuffers.Builder(1024)
    builder.Finish(result.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def unpacked(content: bytes) -> Any:
    """The model as an object that may be changed, and packed again."""
    return schema.ModelT.InitFromPackedBuf(content, 0)


def _code(kind: str) -> Any:
    code = schema.OperatorCodeT()
    if kind.startswith("custom "):
        code.builtinCode, code.customCode = schema.BuiltinOperator.CUSTOM, kind.removeprefix("custom ")
    else:
        code.builtinCode = getattr(schema.BuiltinOperator, kind)
    code.deprecatedBuiltinCode = min(code.builtinCode, 127)
    code.version = 2 if kind == "BROADCAST_TO" else 1  # what an operator means does not depend on it
    return code


def _tensor(spec: Spec, buffers: list[Any]) -> Any:
    tensor = schema.TensorT()
    tensor.name, tensor.shape = spec.name, list(spec.shape)
    tensor.type = getattr(schema.TensorType, spec.dtype.upper())
    if spec.signature is not None:
        tensor.shapeSignature = list(spec.signature)
    if spec.data is not None:
        buffer = schema.BufferT()
        buffer.data = list(np.ascontiguousarray(spec.data, spec.dtype).tobytes())
        tensor.buffer = len(buffers)
        buffers.append(buffer)
    if spec.scale is not None:
        quant = schema.QuantizationParametersT()
        quant.scale = list(np.atleast_1d(spec.scale).astype(float))
        quant.zeroPoint = [int(z) for z in np.broadcast_to(spec.zero, len(quant.scale))]
        quant.quantizedDimension = spec.axis
        tensor.quantization = quant
    for key, value in spec.special.items():
        setattr(tensor, key, value)
    return tensor


def run_litert(content: bytes, inputs: Sequence[Array], is_reference: bool = True) -> list[Array]:
    """The outputs that LiteRT's reference kernels give, or its optimised ones."""
    resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    try:
        interpreter = _interpreter(content, OpResolverType.BUILTIN_REF if is_reference else resolver)
    except ValueError:  # an operator that has no reference kernel of its own
        interpreter = _interpreter(content, resolver)
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def _interpreter(content: bytes, resolver: Any) -> Interpreter:
    return Interpreter(model_content=content, experimental_op_resolver_type=resolver, num_threads=1)


def as_litert_here() -> AbstractContextManager[None]:
    """What is executed inside is what LiteRT gives on this machine: on x86-64 what we promise everywhere."""
    return contracted() if ON_ARM else nullcontext()
