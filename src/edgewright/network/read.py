"""Reads a model file as a clean network: detects the format by content, reads it literally, and runs the passes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import onnx

from ..errors import EdgewrightError, InputError, OpenSizes
from ..files import MODEL_ADVICE, read_file
from .foreign import export_advice
from .network import Network
from .passes import run
from .passes.interface import with_quantised_interface
from .region import Shape

TFLITE_MARK = b"TFL3"  # the flatbuffer's file identifier, after the 4 bytes of the root offset


def read(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto,
    *,
    shapes: Mapping[str, Shape] | None = None,
    quantised_input: bool = False,
    quantised_output: bool = False,
) -> Network:
    """The network in an ONNX or TFLite file, in its bytes, or in an ONNX model; `shapes` sets open input sizes.

    With `quantised_input` the network takes integers if the file begins by quantising real numbers; with
    `quantised_output` it returns the integers that the file dequantises at its end.
    """
    network = _read(source, shapes)
    if quantised_input or quantised_output:
        return with_quantised_interface(network, quantised_input, quantised_output)
    return network


def _read(source: str | os.PathLike[str] | bytes | onnx.ModelProto, shapes: Mapping[str, Shape] | None) -> Network:
    if isinstance(source, bytes):
        return read_bytes(source, "model", shapes=shapes)
    if isinstance(source, onnx.ModelProto):
        return read_bytes(source.SerializeToString(), source.graph.name or "model", shapes=shapes)
    file = Path(source)
    if file.is_dir() and (advice := export_advice(file)):
        raise InputError(advice)
    head = read_file(file, MODEL_ADVICE, most=8)
    if head[4:8] != TFLITE_MARK and (advice := export_advice(file, head)):
        raise InputError(advice)
    return run(_literal(head, file, file.stem, shapes))


def read_bytes(data: bytes, name: str, *, shapes: Mapping[str, Shape] | None = None) -> Network:
    """The network in the bytes of an ONNX or TFLite file."""
    return run(_literal(data[:8], data, name, shapes))


def _literal(head: bytes, source: Path | bytes, name: str, shapes: Mapping[str, Shape] | None) -> Network:
    """The network as in the file, before any pass.

    Where sizes are open, the error suggests some that the model takes, if any of the examples is.
    """
    try:
        return _of_format(head, source, name, shapes)
    except OpenSizes as error:
        for suggestion in (error, *error.others):
            try:
                _of_format(head, source, name, {**(shapes or {}), **suggestion.shapes})
            except EdgewrightError:
                continue
            raise suggestion from None
        raise


def _of_format(head: bytes, source: Path | bytes, name: str, shapes: Mapping[str, Shape] | None) -> Network:
    if not head:
        where = source if isinstance(source, Path) else name
        raise InputError(f"'{where}' is empty; give an .onnx or .tflite model")
    if head[4:8] == TFLITE_MARK:
        from .tflite import read_tflite

        return read_tflite(source, name=name, shapes=shapes)
    from .onnx_format import read_onnx

    return read_onnx(source, name=name, shapes=shapes)
