"""Plans as JSON and back. Weights stay in the model file; a plan read back has none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Any

from ..errors import Damaged, InputError
from ..files import read_file, write_atomic
from ..network import Network, Tensor
from ..network.operators import Operator
from .check import checked
from .fusion import Split
from .ownership import is_too_large
from .plan import FORMAT, Plan
from .program import Stage
from .selection import Selection


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    """The plan as plain data: one object, ready for JSON."""
    return {
        "format": FORMAT,
        "model": plan.network.name,
        "board": plan.board,
        "plain": plan.plain,
        "searched": plan.searched,
        "resident_bytes": plan.resident_bytes,
        "peak_bytes": plan.peak_bytes,
        "bound_bytes": plan.bound_bytes,
        "optimal": plan.optimal,
        "flash_bytes": plan.flash_bytes,
        "weights_bytes": plan.weights_bytes,
        "macs": plan.macs,
        "macs_plain": plan.macs_plain,
        "method": plan.method,
        "alignment": plan.alignment,
        "savings": [{"technique": s.technique, "peak_bytes": s.peak_bytes} for s in plan.savings],
        "order": list(plan.order),
        "free": list(plan.free),
        "buffers": [
            {
                "name": b.name,
                "offset": b.offset,
                "size": b.size,
                "first": b.first,
                "last": b.last,
                "memory": b.memory,
                **({"lanes": b.lanes} if b.lanes > 1 else {}),
            }
            for b in plan.buffers
        ],
        "views": {
            name: {
                "buffer": v.buffer,
                "offset": v.offset,
                "strides": list(v.strides),
                **({"window": list(v.window)} if v.window else {}),
                **({"tiled": list(v.tiled)} if v.tiled else {}),
            }
            for name, v in plan.views.items()
        },
        "target": _fields_to_dict(plan.target),
        "options": _fields_to_dict(plan.options),
        "selections": [[_selection_to_dict(selection) for selection in stage] for stage in plan.selections],
        "packed": [_fields_to_dict(each) for each in plan.packed],
        "linked": _fields_to_dict(plan.linked),
        "outside": list(plan.outside),
        "stages": [_stage_to_dict(stage) for stage in plan.program.stages],
        "network": network_to_dict(plan.network),
    }


def plan_from_dict(data: Mapping[str, Any]) -> Plan:
    """The plan again, with a network that has no weight values."""
    try:
        content = json.dumps(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"this is not an edgewright plan: {error}") from error
    return plan_from_json(content)


def plan_from_json(content: bytes | str) -> Plan:
    """The plan that a file's content describes, judged before anybody relies on it."""
    from .plan_file import parsed  # pydantic takes a while to load, and most commands read no plan

    file = parsed(content, FORMAT)
    try:
        found = file.made()
    except InputError as error:
        raise Damaged(str(error)) from error
    checked(found)
    if is_too_large(found):
        size = max(found.memories.values())
        raise InputError(f"the plan is too large to be judged, {size:,} B; compile makes one anew without a file")
    told = {"model": file.model, "order": file.order, "macs": file.macs, "optimal": file.optimal}
    own = {"model": found.network.name, "order": found.order, "macs": found.macs, "optimal": found.optimal}
    if differing := [key for key in told if told[key] != own[key]]:
        raise Damaged(f"'{differing[0]}' is not what its own parts come to")
    return found


def plan_text(plan: Plan) -> str:
    """The plan as the text of its file."""
    return json.dumps(plan_to_dict(plan), indent=1) + "\n"


def save_plan(plan: Plan, path: str | Path) -> None:
    write_atomic(path, plan_text(plan))


def load_plan(path: str | Path) -> Plan:
    """The plan in a file; one that does not compute what its network says is refused."""
    content = read_file(path, "give a plan that `edgewright plan -o` wrote")
    try:
        return plan_from_json(content)
    except InputError as error:
        error.add_note(f"read from {path}")
        raise


def structure_digest(network: Network) -> str:
    """A digest of what a network computes with, but for the values of its weights and its names for itself.

    Times and plans that were made for one network hold for another with the same digest.
    """
    data = network_to_dict(network)
    kept = {key: data[key] for key in ("arithmetic", "inputs", "outputs", "constants", "tensors", "layers")}
    return sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def network_to_dict(network: Network) -> dict[str, Any]:
    return {
        "name": network.name,
        "arithmetic": network.arithmetic.value,
        "inputs": list(network.inputs),
        "outputs": list(network.outputs),
        "constants": list(network.constants),
        "layouts": {name: list(perm) for name, perm in network.layouts.items()},
        "notes": list(network.notes),
        "tensors": [_tensor_to_dict(t) for t in network.tensors.values()],
        "layers": [
            {
                "name": layer.name,
                "op": _value_to_json(layer.op),
                "inputs": list(layer.inputs),
                "output": layer.output,
            }
            for layer in network.layers
        ],
        "file_tensors": [_tensor_to_dict(t) for t in network.file_tensors.values()],
    }


def _tensor_to_dict(tensor: Tensor) -> dict[str, Any]:
    data: dict[str, Any] = {"name": tensor.name, "shape": list(tensor.shape), "dtype": tensor.dtype.value}
    if tensor.quant:
        quant = tensor.quant
        data["quant"] = {"scale": list(quant.scale), "zero": list(quant.zero), "axis": quant.axis}
    return data


def _selection_to_dict(selection: Selection) -> dict[str, Any]:
    scratch = {"scratch": selection.scratch} if selection.scratch else {}
    return {
        "layer": selection.layer,
        "kind": selection.kind.value,
        "kernel": selection.kernel,
        "bytes": selection.offer.scratch,
        "variant": dict(selection.offer.variant),
        **scratch,
    }


def _fields_to_dict(value: Any) -> dict[str, Any] | None:
    """A flat value by its fields, enums by their values; None where there is none."""
    if value is None:
        return None
    given = {field.name: getattr(value, field.name) for field in fields(value)}
    return {name: inner.value if isinstance(inner, Enum) else inner for name, inner in given.items()}


def _stage_to_dict(stage: Stage) -> dict[str, Any]:
    schedule = stage.schedule
    data: dict[str, Any] = {"name": stage.name, "layers": list(schedule.layers), "sweep": stage.sweep.value}
    if schedule.splits:
        data["splits"] = [_split_to_dict(split) for split in schedule.splits]
    if schedule.streamed:
        data["streamed"] = True
    for name, sizes in (("rows", schedule.rows), ("columns", schedule.columns)):
        if sizes:
            data[name] = dict(sizes)
    return data


def _split_to_dict(split: Split) -> dict[str, Any]:
    lanes = {"lanes": split.lanes} if split.lanes > 1 else {}
    return {"axis": split.axis, "ends": list(split.ends), **lanes}


def _value_to_json(value: Any) -> Any:
    """Operators and their attributes: {"op": class, field: value}, enums by class and name, infinities as text."""
    if isinstance(value, Operator):
        assert is_dataclass(value)
        return {"op": type(value).__name__} | {
            f.name: _value_to_json(getattr(value, f.name)) for f in fields(value)
        }
    if isinstance(value, Enum):
        return {"enum": type(value).__name__, "value": value.value}
    if isinstance(value, tuple):
        return [_value_to_json(v) for v in value]
    if isinstance(value, float) and value in (inf, -inf):
        return {"float": "inf" if value > 0 else "-inf"}
    return value
