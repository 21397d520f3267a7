"""The contents of a .tflite file as plain data: tensors, operators, inputs, outputs.

The file is a flatbuffer and may be damaged: for any bytes, this module returns or raises ModelError, in time and memory
bounded by the length of the file. Constants are views of the file.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import tflite

from ...errors import InputError, ModelError, Unsupported
from ..region import Shape
from ..tensor import MOST_ELEMENTS, Array, DType, Quant
from .sparse import dense

# Exceptions for offsets outside the file, and absurd lengths or options.
DAMAGE = (struct.error, IndexError, ValueError, TypeError, ArithmeticError)

_MOST_PARTS = 1 << 15  # tensors or operators: far above any real model, but quick to list
# Total of names, shapes and scales: overlapping tables can claim far more than the file holds.
_MOST_NUMBERS = 1 << 23
_INDEX_COST = 15  # reading an operator's input takes as long as reading this many numbers
_MOST_AXES = 8
_MOST_SPARSE = 1 << 26  # elements of all sparse tensors, which a short file could claim

_EMPTY_TABLE = struct.pack("<HHi", 4, 4, 4)  # no fields, so that every option has its default

_DTYPES = {getattr(tflite.TensorType, dtype.name): dtype for dtype in DType}
_TYPE_NAMES = {code: name for name, code in vars(tflite.TensorType).items() if isinstance(code, int)}
_OPERATOR_NAMES = {code: name for name, code in vars(tflite.BuiltinOperator).items() if isinstance(code, int)}


@dataclass(frozen=True, slots=True)
class FileTensor:
    name: str
    shape: Shape
    signature: Shape  # as `shape`, with -1 for open sizes
    type_name: str
    known_dtype: DType | None
    quant: Quant | None
    data: Array | None  # the value of a constant
    special: str = ""  # why it is not an ordinary tensor ("variable", "sparse")

    @property
    def dtype(self) -> DType:
        if self.known_dtype is None or self.special:
            kind = f"{self.special} {self.type_name}".strip()
            raise Unsupported(f"tensor '{self.name}' is {kind}, which is not handled")
        return self.known_dtype


@dataclass(frozen=True, slots=True)
class FileOperator:
    kind: str  # TFLite's name, such as CONV_2D
    inputs: tuple[int, ...]  # indices of tensors; -1 for omitted optional ones
    outputs: tuple[int, ...]
    table: Any  # the options, still in the file; None if there are none
    options_type: int
    intermediates: tuple[int, ...] = ()  # internal tensors, listed for their scales
    custom: bytes = b""  # options of a custom operator

    def options(self, schema: Any) -> Any:
        """The options as this class of the schema; all defaults if the file has none or others."""
        table = schema()
        wanted = getattr(tflite.BuiltinOptions, schema.__name__)
        if self.table is None or self.options_type != wanted:
            table.Init(_EMPTY_TABLE, 4)
        else:
            table.Init(self.table.Bytes, self.table.Pos)
        return table


@dataclass(frozen=True, slots=True)
class ModelFile:
    tensors: tuple[FileTensor, ...]
    operators: tuple[FileOperator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    subgraphs: tuple[ModelFile, ...] = ()  # the file's other graphs: bodies and branches


CONTROL = ("CALL_ONCE", "IF", "WHILE")


def read_bytes(path: str | Path) -> mmap.mmap:
    """The memory-mapped file, so that weights are read on demand."""
    try:
        with Path(path).open("rb") as stream:
            return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError as error:  # mmap's error for an empty file
        raise ModelError(f"'{path}' is empty") from error
    except OSError as error:
        raise InputError(f"cannot read '{path}': {error.strerror}") from error


def parse(content: bytes | mmap.mmap, name: str) -> ModelFile:
    """The model in the file."""
    if len(content) < 8 or content[4:8] != b"TFL3":
        raise ModelError(f"'{name}' is not a TFLite file: the mark 'TFL3' is missing at its start")
    with damage_named(f"'{name}' is damaged"):
        return _Parser(content, name).model()


@contextmanager
def damage_named(what: str) -> Iterator[None]:
    """Converts errors that a damaged file causes in the accessors to a ModelError that begins with `what`."""
    try:
        yield
    except (struct.error, IndexError) as error:
        raise ModelError(f"{what}: it refers to bytes past its end; was the file cut short?") from error
    except DAMAGE as error:
        raise ModelError(f"{what}: {error}. Export the model again.") from error


def distinct(names: Sequence[str], first: Iterable[int] = ()) -> list[str]:
    """The names, with numbers added to repeated ones; those at indices `first` keep theirs."""
    taken: dict[int, str] = {}
    used: set[str] = set()
    tried: dict[str, int] = {}
    for index in dict.fromkeys((*first, *range(len(names)))):
        name = names[index]
        while name in used:
            tried[names[index]] = tried.get(names[index], 0) + 1
            name = f"{names[index]}_{tried[names[index]]}"
        used.add(name)
        taken[index] = name
    return [taken[index] for index in range(len(names))]


class _Parser:
    def __init__(self, content: bytes | mmap.mmap, name: str) -> None:
        self.content = content
        self.name = name
        self.budget = _MOST_NUMBERS
        self.sparse_budget = _MOST_SPARSE

    def model(self) -> ModelFile:
        model = tflite.Model.GetRootAs(self.content, 0)
        if model.SubgraphsLength() == 0:
            raise ModelError(f"'{self.name}' holds no graph")
        buffers = self._count(model.BuffersLength(), "buffers")
        codes = [self._code(model.OperatorCodes(i)) for i in range(self._count(model.OperatorCodesLength(), "codes"))]
        count = self._count(model.SubgraphsLength(), "graphs")
        main, *others = (self._graph(model.Subgraphs(i), model, codes, buffers) for i in range(count))
        if others and not any(operator.kind in CONTROL for operator in main.operators):
            raise Unsupported(f"'{self.name}' holds {count} graphs (several signatures); export it with one")
        return replace(main, subgraphs=tuple(others))

    def _graph(self, graph: Any, model: Any, codes: list[str], buffers: int) -> ModelFile:
        tensors = tuple(
            self._tensor(i, graph.Tensors(i), model, buffers)
            for i in range(self._count(graph.TensorsLength(), "tensors"))
        )
        operators = tuple(
            self._operator(graph.Operators(i), codes, len(tensors))
            for i in range(self._count(graph.OperatorsLength(), "operators"))
        )
        inputs = self._indices(graph.InputsAsNumpy(), len(tensors), optional=False)
        outputs = self._indices(graph.OutputsAsNumpy(), len(tensors), optional=False)
        names = distinct([tensor.name for tensor in tensors], first=(*inputs, *outputs))
        named = tuple(replace(tensor, name=name) for tensor, name in zip(tensors, names, strict=True))
        return ModelFile(named, operators, inputs, outputs)

    def _count(self, count: int, what: str) -> int:
        if count > _MOST_PARTS:
            raise ModelError(f"'{self.name}' claims {count} {what}, more than the {_MOST_PARTS} that are accepted")
        return count

    def _spend(self, numbers: int) -> None:
        self.budget -= numbers
        if self.budget < 0:
            raise ValueError("its tables claim more than the file can hold")

    def _list(self, values: Any) -> list[Any]:
        """A vector of numbers as a list; the accessors return the number 0 for a missing one."""
        if isinstance(values, int):
            return []
        self._spend(len(values))
        return list(values.tolist())

    def _indices(self, values: Any, tensors: int, optional: bool) -> tuple[int, ...]:
        if not isinstance(values, int):
            self._spend(_INDEX_COST * len(values))
        indices = tuple(self._list(values))
        least = -1 if optional else 0
        if bad := [i for i in indices if not least <= i < tensors]:
            raise ValueError(f"tensor {bad[0]} of {tensors} is named")
        return indices

    def _text(self, raw: bytes | None) -> str:
        self._spend(len(raw or b""))
        return (raw or b"").decode("utf-8", "replace")

    def _code(self, code: Any) -> str:
        # The old field holds codes up to 127; old files lack the new one.
        builtin = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        if builtin == tflite.BuiltinOperator.CUSTOM:
            return f"custom operator '{self._text(code.CustomCode())}'"
        return _OPERATOR_NAMES.get(builtin, f"operator {builtin}")

    def _operator(self, operator: Any, codes: list[str], tensors: int) -> FileOperator:
        return FileOperator(
            kind=codes[operator.OpcodeIndex()],
            inputs=self._indices(operator.InputsAsNumpy(), tensors, optional=True),
            outputs=self._indices(operator.OutputsAsNumpy(), tensors, optional=False),
            table=operator.BuiltinOptions(),
            options_type=operator.BuiltinOptionsType(),
            intermediates=self._indices(operator.IntermediatesAsNumpy(), tensors, optional=False),
            custom=bytes(self._list(operator.CustomOptionsAsNumpy())),
        )

    def _tensor(self, index: int, tensor: Any, model: Any, buffers: int) -> FileTensor:
        name = self._text(tensor.Name()) or f"tensor_{index}"
        shape = tuple(self._list(tensor.ShapeAsNumpy()))
        signature = tuple(self._list(tensor.ShapeSignatureAsNumpy())) or shape
        if len(shape) > _MOST_AXES:
            raise ModelError(f"tensor '{name}' has {len(shape)} axes; at most {_MOST_AXES} are accepted")
        if min(shape, default=0) < -1 or len(signature) != len(shape):
            raise ModelError(f"tensor '{name}' has the shape {shape} with the signature {signature}")
        if prod(shape) > MOST_ELEMENTS:
            raise ModelError(f"tensor '{name}' claims {prod(shape)} elements (shape {shape})")
        if -1 in shape:
            signature, shape = shape, tuple(max(size, 1) for size in shape)
        dtype = _DTYPES.get(tensor.Type())
        sparsity, data = tensor.Sparsity(), None
        special = "variable" if tensor.IsVariable() else "sparse" if sparsity is not None else ""
        if dtype is not None and special != "variable":
            raw = self._raw(name, model, tensor.Buffer(), buffers)
            if sparsity is not None and raw is not None and 0 not in shape:
                self._spend_sparse(prod(shape))
                data, special = (
                    dense(shape, sparsity, raw[: raw.size // dtype.bytes * dtype.bytes].view(dtype.numpy)),
                    "",
                )
            elif not special:
                data = self._data(name, shape, dtype, raw)
        return FileTensor(
            name=name,
            shape=shape,
            signature=signature,
            type_name=_TYPE_NAMES.get(tensor.Type(), f"type {tensor.Type()}"),
            known_dtype=dtype,
            quant=self._quant(name, shape, dtype, tensor.Quantization()),
            data=data,
            special=special,
        )

    def _spend_sparse(self, elements: int) -> None:
        self.sparse_budget -= elements
        if self.sparse_budget < 0:
            raise ValueError(f"its sparse tensors would have more than {_MOST_SPARSE} elements")

    def _raw(self, name: str, model: Any, buffer: int, buffers: int) -> Array | None:
        """The bytes of a buffer; None if it has none."""
        if not 0 <= buffer < buffers:
            raise ValueError(f"tensor '{name}' is kept in buffer {buffer} of {buffers}")
        table = model.Buffers(buffer)
        if table.Offset() > 1:  # after the flatbuffer, in files above 2 GB
            start, stop = table.Offset(), table.Offset() + table.Size()
            if stop > len(self.content):
                raise ValueError(f"the values of tensor '{name}' lie behind the end of the file")
            raw = np.frombuffer(self.content, np.uint8, stop - start, start)
        else:
            raw = table.DataAsNumpy()
        return None if isinstance(raw, int) or raw.size == 0 else raw

    def _data(self, name: str, shape: Shape, dtype: DType, raw: Array | None) -> Array | None:
        if raw is None:
            return np.zeros(shape, dtype.numpy) if 0 in shape else None
        wanted = prod(shape) * dtype.bytes
        if raw.size != wanted:
            raise ModelError(
                f"tensor '{name}' has {raw.size} bytes of values, but {dtype.value}{list(shape)} needs {wanted}"
            )
        return raw.view(dtype.numpy).reshape(shape)

    def _quant(self, name: str, shape: Shape, dtype: DType | None, quant: Any) -> Quant | None:
        """The quantisation, if given; floats and indices have none."""
        if quant is None or dtype not in (DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.INT64):
            return None
        scale, zero = self._list(quant.ScaleAsNumpy()), self._list(quant.ZeroPointAsNumpy())
        if not scale:
            return None
        zero = zero or [0] * len(scale)
        if not (np.isfinite(scale).all() and min(scale) > 0):
            raise ModelError(f"tensor '{name}' has a scale that is not a positive number")
        if len(zero) != len(scale):
            raise ModelError(f"tensor '{name}' has {len(scale)} scales but {len(zero)} zero points")
        info = np.iinfo(dtype.numpy)
        if min(zero) < info.min or max(zero) > info.max:
            raise ModelError(f"tensor '{name}' has a zero point outside the range of {dtype.value}")
        if len(scale) == 1:
            return Quant.of(scale[0], zero[0])
        axis = quant.QuantizedDimension() if len(shape) > 1 else 0  # some files give a bias the axis of its weights
        if not 0 <= axis < len(shape) or shape[axis] != len(scale):
            raise ModelError(
                f"tensor '{name}' of shape {shape} has {len(scale)} scales along axis {axis}, which do not match"
            )
        return Quant(tuple(scale), tuple(zero), axis)
