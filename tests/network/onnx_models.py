"""Small ONNX models for tests, and a comparison of what we read with what onnxruntime computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from edgewright.network import Array, Network
from edgewright.network.kernels import execute
from edgewright.network.onnx_format import read_onnx
from tests.helpers.onnx_session import onnx_session

onnxruntime.set_default_logger_severity(4)


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Array],
    outputs: Sequence[str],
    constants: Mapping[str, Array] | None = None,
    opset: int = 17,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """A model whose inputs look like the arrays given; shapes of outputs are left open."""
    graph = helper.make_graph(
        list(nodes),
        "test",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in inputs.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    opsets += [helper.make_opsetid(domain, 1) for domain in sorted({f.domain for f in functions})]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=min(8, 3 + opset // 3) if opset < 12 else 8)
    model.functions.extend(functions)
    return model


def one_node(
    op: str,
    operands: Sequence[Array | None],
    *,
    computed: Sequence[int] = (0,),
    outputs: int = 1,
    opset: int = 17,
    domain: str = "",
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model of one node; operands not in `computed` are initializers."""
    names = [f"i{i}" if data is not None else "" for i, data in enumerate(operands)]
    arrays = {name: np.asarray(data) for name, data in zip(names, operands, strict=True) if data is not None}
    feeds = {f"i{i}": arrays[f"i{i}"] for i in computed}
    constants = {name: data for name, data in arrays.items() if name not in feeds}
    results = [f"o{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, name="node", domain=domain, **attributes)
    return model_of([node], feeds, results, constants, opset), feeds


def onnxruntime_results(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> dict[str, Array]:
    session = onnx_session(model, optimised=False)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


def assert_agrees(model: onnx.ModelProto, feeds: Mapping[str, Array], steps: int = 0) -> Network:
    """Reads the model and compares with onnxruntime: floats to 1e-5 of the largest, integers to `steps`."""
    expected = onnxruntime_results(model, feeds)
    network = read_onnx(model.SerializeToString())
    actual = execute(network, {name: feeds[name] for name in network.inputs})
    assert set(actual) == set(expected)
    for name, data in expected.items():
        assert actual[name].dtype == data.dtype
        assert actual[name].shape == data.shape
        if np.issubdtype(data.dtype, np.floating):
            scale = float(np.abs(data[np.isfinite(data)]).max(initial=1.0))
            np.testing.assert_allclose(actual[name], data, rtol=1e-5, atol=1e-5 * scale)
        else:
            assert np.abs(actual[name].astype(np.int64) - data.astype(np.int64)).max(initial=0) <= steps
    return network
