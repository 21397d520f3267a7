"""The finished model, and the file it is written to."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
from onnx import helper

from ...errors import InputError
from ..network import Layer, Network
from ..operators import Activation, Transpose
from ..passes.reorder import compose, identity, reordered
from ..region import inverse
from .elementwise import activate
from .graph import GraphWriter, is_stored
from .node import NodeWriter
from .table import IMAGES, NCHW, WRITERS

MESSAGE_LIMIT = (1 << 31) - (1 << 20)  # bytes; protobuf refuses larger files


def to_onnx(network: Network) -> onnx.ModelProto:
    """The network as an ONNX model: inputs and outputs in the file's layout if `layouts` knows it, else in ours.

    Quantised layers become QDQ groups, which onnxruntime fuses again.
    """
    graph = GraphWriter(network)
    for layer in network.layers:
        _write(graph, layer)
    made = graph.finish()
    return helper.make_model(
        made,
        producer_name="edgewright",
        ir_version=8 if graph.opset < 19 else 10,
        opset_imports=[helper.make_opsetid("", graph.opset)],
    )


def write_onnx(network: Network, path: str | os.PathLike[str], *, limit: int = MESSAGE_LIMIT) -> Path:
    """Writes the model and returns the path; weights beyond `limit` bytes go to PATH.data beside it.

    The file is written elsewhere and moved into place.
    """
    target = Path(path)
    model = to_onnx(network)
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as folder:
            draft = Path(folder, target.name)
            data = f"{target.name}.data"
            if sum(len(tensor.raw_data) for tensor in model.graph.initializer) > limit:
                onnx.save_model(model, draft, save_as_external_data=True, location=data)
                os.replace(Path(folder, data), target.with_name(data))
            else:
                onnx.save_model(model, draft)
            os.replace(draft, target)
    except OSError as error:
        raise InputError(f"cannot write '{target}': {error.strerror}; is the folder there and writable?") from error
    return target


def _write(graph: GraphWriter, layer: Layer) -> None:
    """The layer's nodes: operands in the required form, the operator, its activation, its quantisation."""
    network = graph.network
    result = network.tensors[layer.output]
    form = identity(len(result.shape))
    op: Any = layer.op
    if isinstance(op, Transpose):  # only another name for an existing form
        source = layer.inputs[0]
        have = graph.form(source)
        value = graph.value(source, have)
        graph.define(layer.output, compose(inverse(op.perm), have), value)
        return
    if isinstance(op, IMAGES) and len(result.shape) == 4:
        node = NodeWriter(graph, layer, op, NCHW)
        form = NCHW
    else:
        leader = next((name for name in layer.inputs if name not in network.constants), layer.inputs[0])
        have = graph.form(leader)
        alike = all(len(network.tensors[n].shape) == len(have) or n in network.constants for n in layer.inputs)
        turned = None
        if have != identity(len(have)) and alike:
            turned = reordered(op, inverse(have), network.shapes(layer), exact=False)
        if turned is None:
            node = NodeWriter(graph, layer, op, None)
        else:
            op, out = turned
            node, form = NodeWriter(graph, layer, op, have), inverse(out)
    write: Callable[[NodeWriter, Any], str] = WRITERS[type(op)]
    value = write(node, op)
    activation: Activation | None = getattr(op, "activation", None)
    if activation is not None:
        value = activate(node, activation, value)
    if is_stored(result):
        value = graph.quantized(value, result, form)
    graph.define(layer.output, form, value)
