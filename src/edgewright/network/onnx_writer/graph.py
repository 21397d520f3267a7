"""An ONNX graph under construction: nodes, initializers, and the axis orders in which each tensor is available.

A *form* of a tensor t is an ONNX value that holds t.transpose(perm). Layers request the form they need; a Transpose is
written only if no suitable form exists, so that those of neighbouring layers cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..builder import unused_name
from ..network import Network
from ..passes.reorder import compose, identity
from ..region import Perm, inverse
from ..tensor import Array, DType, Quant, Tensor


class GraphWriter:
    def __init__(self, network: Network) -> None:
        self.network = network
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, onnx.TensorProto] = {}
        self.opset = 18  # raised for nodes that need a later one
        self.forms: dict[str, dict[Perm, str]] = {}
        self._real: dict[str, str] = {}  # stored value -> its dequantised value
        self._taken = {*network.inputs, *network.outputs}
        for name in network.inputs:
            self.forms[name] = {self.file_form(name): name}

    def file_form(self, name: str) -> Perm:
        """The form in which an input or output appears in the file."""
        plain = identity(len(self.network.tensors[name].shape))
        return inverse(self.network.layouts[name]) if name in self.network.layouts else plain

    # Nodes and constants

    def node(self, kind: str, inputs: Sequence[str], name: str, unread: int = 0, **attributes: Any) -> str:
        """Adds a node; returns the name of its only output, or of the one after `unread` ones."""
        output = self._fresh(name)
        outputs = [*(self._fresh(f"{name}_unread") for _ in range(unread)), output]
        self.nodes.append(helper.make_node(kind, list(inputs), outputs, name=output, **attributes))
        return output

    def constant(self, value: Array, name: str) -> str:
        name = self._fresh(name)
        self.initializers[name] = numpy_helper.from_array(np.asarray(value, order="C"), name)
        return name

    def integers(self, values: Sequence[int], name: str) -> str:
        return self.constant(np.array(values, np.int64), name)

    def number(self, value: float, dtype: DType, name: str) -> str:
        return self.constant(np.array(value).astype(dtype.numpy), name)

    def _fresh(self, name: str) -> str:
        fresh = unused_name(name, self._taken)
        self._taken.add(fresh)
        return fresh

    # Tensors

    def define(self, tensor: str, form: Perm, value: str) -> None:
        self.forms.setdefault(tensor, {}).setdefault(form, value)

    def form(self, tensor: str) -> Perm:
        """The available form; the plain one for constants, which can take any."""
        return next(iter(self.forms.get(tensor, ())), identity(len(self.network.tensors[tensor].shape)))

    def value(self, tensor: str, form: Perm | None = None) -> str:
        """The tensor as stored, in this form."""
        form = identity(len(self.network.tensors[tensor].shape)) if form is None else form
        known = self.forms.setdefault(tensor, {})
        if form not in known:
            if tensor in self.network.constants:
                known[form] = self.constant(self.network.constants[tensor].transpose(form), tensor)
            else:
                have, name = next(iter(known.items()))
                perm = compose(inverse(have), form)
                known[form] = self.node("Transpose", [name], f"{tensor}_t", perm=perm)
        return known[form]

    def real(self, tensor: str, form: Perm | None = None) -> str:
        """The tensor as real numbers, in this form."""
        value = self.value(tensor, form)
        kind = self.network.tensors[tensor]
        if not is_stored(kind):
            return value
        assert kind.quant is not None
        axis = kind.quant.axis
        if axis is not None and form is not None:
            axis = form.index(axis % len(form))
        return self.dequantized(value, kind, kind.quant, axis)

    def dequantized(self, value: str, kind: Tensor, quant: Quant, axis: int | None) -> str:
        if value not in self._real:
            self._real[value] = self._scaled("DequantizeLinear", value, kind, quant, axis, f"{value}_real")
        return self._real[value]

    def quantized(self, value: str, tensor: Tensor, form: Perm) -> str:
        assert tensor.quant is not None
        axis = tensor.quant.axis
        axis = None if axis is None else form.index(axis % len(form))
        return self._scaled("QuantizeLinear", value, tensor, tensor.quant, axis, tensor.name)

    def _scaled(self, kind: str, value: str, tensor: Tensor, quant: Quant, axis: int | None, name: str) -> str:
        if tensor.dtype is DType.INT16:
            self.opset = max(self.opset, 21)
        per_channel = quant.is_per_channel
        scale, zero = np.array(quant.scale, np.float32), np.array(quant.zero, tensor.dtype.numpy)
        inputs = [value, self.constant(scale if per_channel else scale[0], f"{name}_scale")]
        if tensor.dtype is not DType.INT32:  # its zero point is 0, and ONNX requires it to be omitted
            inputs.append(self.constant(zero if per_channel else zero[0], f"{name}_zero"))
        attributes: dict[str, Any] = {"axis": axis} if per_channel else {}
        return self.node(kind, inputs, name, **attributes)

    # The end

    def finish(self) -> onnx.GraphProto:
        """The graph; its outputs carry the network's names."""
        renamed: dict[str, str] = {}
        for name in self.network.outputs:
            value = self.value(name, self.file_form(name))
            computed = value not in self.initializers and value not in self.network.inputs
            if computed and value not in renamed:
                renamed[value] = name
            elif value != name:
                self.nodes.append(helper.make_node("Identity", [renamed.get(value, value)], [name], name=name))
        for node in self.nodes:
            node.input[:] = [renamed.get(i, i) for i in node.input]
            node.output[:] = [renamed.get(o, o) for o in node.output]
        return helper.make_graph(
            self.nodes,
            self.network.name or "network",
            [self._info(name) for name in self.network.inputs],
            [self._info(name) for name in self.network.outputs],
            list(self.initializers.values()),
        )

    def _info(self, name: str) -> onnx.ValueInfoProto:
        tensor = self.network.tensors[name]
        shape = [tensor.shape[axis] for axis in self.file_form(name)]
        return helper.make_tensor_value_info(name, element_type(tensor.dtype), shape)


def is_stored(tensor: Tensor) -> bool:
    """Whether integers represent real numbers."""
    return tensor.quant is not None and not tensor.dtype.is_float


def element_type(dtype: DType) -> int:
    return int(helper.np_dtype_to_tensor_dtype(dtype.numpy))
