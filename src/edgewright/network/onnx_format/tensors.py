"""Tensors of an ONNX file as numpy arrays: views of the mapped file wherever the format allows it.

`wire` locates large ones.
"""

from __future__ import annotations

import mmap
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.helper import tensor_dtype_to_np_dtype

from ...errors import ModelError, Unsupported
from ..region import Shape
from ..tensor import MOST_ELEMENTS, Array, DType
from .wire import ByteSpan

_T = onnx.TensorProto

WIDENED = (_T.FLOAT16, _T.BFLOAT16, _T.DOUBLE)  # read as float32
_KEPT = (_T.FLOAT, _T.INT8, _T.UINT8, _T.INT16, _T.INT32, _T.INT64, _T.BOOL)
_DTYPES: dict[int, DType] = {
    **dict.fromkeys(WIDENED, DType.FLOAT32),
    **{kind: DType(tensor_dtype_to_np_dtype(kind).name) for kind in _KEPT},
}
# Element types as stored in `raw_data`.
_RAW: dict[int, np.dtype[Any]] = {
    _T.BFLOAT16: np.dtype("<u2"),
    **{
        kind: tensor_dtype_to_np_dtype(kind).newbyteorder("<")
        for kind in (*_KEPT, _T.FLOAT16, _T.DOUBLE, _T.UINT16, _T.UINT32, _T.UINT64)
    },
}


def element_type_name(element_type: int) -> str:
    return _T.DataType.Name(element_type) if element_type in _T.DataType.values() else f"type {element_type}"


def dtype_of(element_type: int, where: str) -> DType:
    """Our element type for ONNX's; unsupported float types are computed as float32."""
    if element_type not in _DTYPES:
        raise Unsupported(f"{where}: element type {element_type_name(element_type)} is not supported")
    return _DTYPES[element_type]


def check_shape(dims: tuple[int, ...], where: str) -> Shape:
    """The dims themselves, if a tensor of that shape has a plausible size."""
    if any(size < 0 for size in dims):
        raise ModelError(f"{where}: shape {list(dims)} has a negative size")
    if len(dims) > 32 or prod(dims) > MOST_ELEMENTS or max(dims, default=0) > MOST_ELEMENTS:
        most = f"2^{MOST_ELEMENTS.bit_length() - 1}"
        raise ModelError(f"{where}: shape {list(dims)} has more than {most} elements; the file is damaged")
    return dims


class ModelBytes:
    """The bytes of a model file and of its external data files, mapped and never copied."""

    def __init__(self, path: Path | None, data: bytes | None = None) -> None:
        self.folder = None if path is None else path.parent
        self._maps: dict[Path, memoryview] = {}
        self._released: list[mmap.mmap] = []
        self.model = memoryview(data) if data is not None else self.map(path) if path else memoryview(b"")

    def map(self, path: Path) -> memoryview:
        """The file as bytes; an empty file cannot be mapped and gives none."""
        if path not in self._maps:
            with path.open("rb") as file:
                if path.stat().st_size == 0:
                    return memoryview(b"")
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self._released.append(mapped)
            self._maps[path] = memoryview(mapped)
        return self._maps[path]

    def release(self) -> None:
        """Releases pages that were read once; they are read from the file again when needed."""
        for mapped in self._released:
            if hasattr(mmap, "MADV_DONTNEED"):
                mapped.madvise(mmap.MADV_DONTNEED)

    def external(self, tensor: onnx.TensorProto, where: str) -> memoryview:
        """The bytes of a tensor in another file, which must lie inside the model's folder."""
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        if self.folder is None:
            raise ModelError(f"{where} is kept in the file '{location}'; read the model by its path, not as bytes")
        folder = self.folder.resolve()
        try:
            path = (folder / location).resolve()
            is_inside = bool(location) and path.is_relative_to(folder) and path != folder
            is_file = path.is_file()
        except (OSError, ValueError, RuntimeError) as error:
            raise ModelError(f"{where}: cannot use the external file '{location}': {error}") from error
        if not is_inside:
            raise ModelError(f"{where}: the external file '{location}' lies outside the model's folder")
        if not is_file:
            raise ModelError(f"{where} is kept in the file '{location}', which is not beside the model")
        try:
            data = self.map(path)
        except OSError as error:
            raise ModelError(f"{where}: cannot read '{location}': {error.strerror}") from error
        start = _whole_number(entries.get("offset", "0"), where)
        size = _whole_number(entries.get("length", str(len(data) - start)), where)
        if start + size > len(data):
            raise ModelError(f"{where}: '{location}' is too short: it has no {size} bytes from byte {start}")
        return data[start : start + size]


def _whole_number(text: str, where: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ModelError(f"{where}: '{text}' is no offset or length of external data")
    return int(text)


def read_tensor(tensor: onnx.TensorProto, extent: ByteSpan | None, source: ModelBytes, where: str) -> Array:
    """The values of a tensor as an array of its shape: a view of the file if its type allows it."""
    shape = check_shape(tuple(tensor.dims), where)
    if tensor.data_type not in _RAW:
        raise Unsupported(f"{where}: element type {element_type_name(tensor.data_type)} is not supported")
    if tensor.HasField("segment"):
        raise Unsupported(f"{where}: tensors stored in segments are not supported")
    flat = _flat(tensor, extent, source, where)
    if flat.size != prod(shape):
        raise ModelError(f"{where}: shape {list(shape)} needs {prod(shape)} elements, the file holds {flat.size}")
    return _plain(flat, tensor.data_type).reshape(shape)


def _flat(tensor: onnx.TensorProto, extent: ByteSpan | None, source: ModelBytes, where: str) -> Array:
    """The elements as the file stores them, in order."""
    raw = _RAW[tensor.data_type]
    data: memoryview | bytes | None = None
    if tensor.data_location == _T.EXTERNAL:
        data = source.external(tensor, where)
    elif extent is not None:
        if extent.packed_floats and (tensor.data_type != _T.FLOAT or len(tensor.float_data)):
            raise ModelError(f"{where}: its data do not match its element type")
        data = source.model[extent.start : extent.stop]
    elif tensor.HasField("raw_data"):
        data = tensor.raw_data
    if data is not None:
        if len(data) % raw.itemsize:
            raise ModelError(f"{where}: {len(data)} bytes do not divide into elements of {raw.itemsize}")
        return np.frombuffer(data, raw)
    return _listed(tensor, raw, where)


def _listed(tensor: onnx.TensorProto, raw: np.dtype[Any], where: str) -> Array:
    """Elements from the typed field of the tensor."""
    kind = tensor.data_type
    if kind == _T.FLOAT:
        return np.array(tensor.float_data, raw)
    if kind == _T.DOUBLE:
        return np.array(tensor.double_data, raw)
    if kind == _T.INT64:
        return np.array(tensor.int64_data, raw)
    if kind in (_T.UINT32, _T.UINT64):
        listed = np.array(tensor.uint64_data, np.uint64)
        return _narrowed(listed, raw, where)
    listed = np.array(tensor.int32_data, np.int32)
    if kind == _T.FLOAT16:  # bit patterns
        return _narrowed(listed, np.dtype("<u2"), where).view("<f2")
    return _narrowed(listed, raw, where)


def _narrowed(values: Array, to: np.dtype[Any], where: str) -> Array:
    result = values.astype(to)
    if not np.array_equal(result.astype(values.dtype), values):
        raise ModelError(f"{where}: an element does not fit its type {to.name}")
    return result


def _plain(flat: Array, element_type: int) -> Array:
    """float16, bfloat16 and double as float32; others unchanged."""
    if element_type == _T.BFLOAT16:
        return (flat.astype(np.uint32) << 16).view(np.float32)
    if element_type in WIDENED:
        with np.errstate(over="ignore", invalid="ignore"):
            return flat.astype(np.float32)
    return flat
