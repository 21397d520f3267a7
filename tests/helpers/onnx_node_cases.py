"""The ONNX project's own node tests, as far as they use operators that we claim."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from edgewright.errors import EdgewrightError
from edgewright.network import Array, Network
from edgewright.network.onnx_format.table import STANDARD
from edgewright.network.read import read_bytes


@dataclass(frozen=True)
class NodeCase:
    """A test of the suite: model, inputs by name, expected outputs in the order of the model's."""

    name: str
    operator: str
    model: onnx.ModelProto
    inputs: dict[str, Any]
    expected: list[Any]
    rtol: float
    atol: float


def node_suite(without: frozenset[str]) -> list[Any]:
    """The suite's own test cases, but for those of some modules.

    The suite also looks up the source text of the functions that make them, for its documents: that takes long.
    """
    package = importlib.import_module("onnx.backend.test.case.node")
    base = importlib.import_module("onnx.backend.test.case.base")
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setattr(base, "process_snippet", lambda *_: ("", ""))
        for module in pkgutil.iter_modules(package.__path__):
            if module.name not in without:
                importlib.import_module(f"{package.__name__}.{module.name}")
    return list(package._NodeTestCases)


@cache
def node_cases(without: frozenset[str] = frozenset()) -> tuple[NodeCase, ...]:
    """The tests of operators we claim, but for some, in alphabetical order."""
    left_out = {"lppool", *(name.lower() for name in without)}  # not claimed, and slow to compute what it expects
    suite = node_suite(frozenset(left_out))
    cases = [_case(case) for case in suite if case.data_sets and _is_claimed(case.model)]
    return tuple(sorted((case for case in cases if case.operator not in without), key=lambda case: case.name))


def _is_claimed(model: onnx.ModelProto) -> bool:
    return all(node.domain in ("", "ai.onnx") and node.op_type in STANDARD for node in model.graph.node)


def _case(case: Any) -> NodeCase:
    inputs, outputs = case.data_sets[0]
    names = [info.name for info in case.model.graph.input]
    operator = case.model.graph.node[-1].op_type
    return NodeCase(
        case.name, operator, case.model, dict(zip(names, inputs, strict=True)), outputs, case.rtol, case.atol
    )


def array(value: Any) -> Array:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def read_case(case: NodeCase) -> Network | str:
    """The network, or why it is refused: as it is, or with all inputs but the first as constants.

    The suite feeds weights, scales and shapes at run time, where an exported CNN has initializers.
    """
    reason = ""
    if any(isinstance(value, np.ndarray) and not value.size for value in case.inputs.values()):
        return "an input is empty"
    for model in (case.model, with_parameters_baked(case)):
        if model is None:
            continue
        try:
            return read_bytes(model.SerializeToString(), case.name)
        except EdgewrightError as error:
            reason = str(error)
    return reason


def with_parameters_baked(case: NodeCase) -> onnx.ModelProto | None:
    """The model with all inputs but the first as constants; None where there is nothing to bake."""
    values = list(case.inputs.values())[1:]
    if not values or any(value is None or isinstance(value, list | dict) for value in values):
        return None
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for name, value in list(case.inputs.items())[1:]:
        tensor = onnx.TensorProto()
        tensor.CopyFrom(value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(np.asarray(value)))
        tensor.name = name
        model.graph.initializer.append(tensor)
    del model.graph.input[1:]
    return model
