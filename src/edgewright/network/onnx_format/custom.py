"""The importer of custom operators from a user's file; their tensors keep the model's layout."""

from __future__ import annotations

import onnx.helper

from .. import operators as ops
from ..operators.custom import to_json
from .context import Value
from .node import OnnxNode


def custom(node: OnnxNode, name: str) -> Value:
    if len([output for output in node.outputs if output]) != 1:
        raise node.unsupported("a custom operator has one output")
    attributes = {}
    for key, attribute in node.attributes.items():
        node.asked.add(key)
        value = onnx.helper.get_attribute_value(attribute)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        plain = value if isinstance(value, str | int | float) else list(value) if _is_list(value) else None
        if plain is None:
            raise node.unsupported(f"attribute '{key}' of a custom operator is neither numbers nor text")
        attributes[key] = plain
    return node.layer(ops.Custom(name, to_json(attributes)), node.all_inputs())


def _is_list(value: object) -> bool:
    return hasattr(value, "__iter__") and all(isinstance(v, int | float) for v in value)
