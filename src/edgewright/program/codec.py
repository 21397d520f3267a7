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
from ..network import Network
from ..network.operators import Operator
from .check import checked
from .ownership import is_too_large
from .plan import FORMAT, Plan
from .program import Stage
from .selection import CallKey, Selection

_AS_THEY_ARE = (  # what a file has of a plan under the plan's own names, in the order of the file
    *("board", "plain", "searched", "resident_bytes", "peak_bytes", "bound_bytes", "optimal", "flash_bytes"),
    *("weights_bytes", "macs", "macs_plain", "method", "alignment", "savings", "order", "free"),
)


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    """The plan as plain data: one object, ready for JSON."""
    return {
        "format": FORMAT,
        "model": plan.network.name,
        **{name: _plain(getattr(plan, name)) for name in _AS_THEY_ARE},
        "buffers": [_entry(buffer, "lanes", "kind", "owner") for buffer in plan.buffers],
        "views": {name: _entry(view, "window", "tiled") for name, view in plan.views.items()},
        "target": _entry(plan.target),
        "options": _entry(plan.options),
        "selections": [_selection_to_dict(key, selection) for key, selection in plan.selections.items()],
        "packed": _plain(plan.packed),
        "linked": _entry(plan.linked),
        "outside": list(plan.outside),
        "cheaper": _entry(plan.cheaper),
        "stages": [_stage_to_dict(stage) for stage in plan.program.stages],
        "network": network_to_dict(plan.network),
    }


def plan_from_dict(data: Mapping[str, Any], *, may_push: bool = False) -> Plan:
    """Reads a plan from plain data; its network has no weight values. `may_push`: outputs may leave row by row."""
    try:
        content = json.dumps(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"this is not an edgewright plan: {error}") from error
    return plan_from_json(content, may_push=may_push)


def plan_from_json(content: bytes | str, *, may_push: bool = False) -> Plan:
    """The plan in a file's content, after the judge has checked it."""
    from .plan_file import parsed  # pydantic takes a while to load, and most commands read no plan

    file = parsed(content, FORMAT)
    try:
        plan = file.build()
    except InputError as error:
        raise Damaged(str(error)) from error
    checked(plan, [name for name in plan.network.outputs if may_push and plan.is_by_rows(name)])
    if is_too_large(plan):
        size = max(plan.memories.values())
        raise InputError(f"the plan is too large to be judged, {size:,} B; compile makes one again without a file")
    told = {"model": file.model, "order": file.order, "macs": file.macs, "optimal": file.optimal}
    own = {"model": plan.network.name, "order": plan.order, "macs": plan.macs, "optimal": plan.optimal}
    if differing := [key for key in told if told[key] != own[key]]:
        raise Damaged(f"'{differing[0]}' does not equal the sum of its parts")
    return plan


def plan_text(plan: Plan) -> str:
    """The plan as the text of its file."""
    return json.dumps(plan_to_dict(plan), indent=1) + "\n"


def save_plan(plan: Plan, path: str | Path) -> None:
    write_atomic(path, plan_text(plan))


def load_plan(path: str | Path) -> Plan:
    """Loads a plan file. Raises an error if the plan does not compute what its network says."""
    content = read_file(path, "give a plan that `edgewright plan -o` wrote")
    try:
        return plan_from_json(content)
    except InputError as error:
        error.add_note(f"read from {path}")
        raise


def structure_digest(network: Network) -> str:
    """A digest of all that decides what a network computes, except the values of its weights and the names of its
    tensors.

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
        "tensors": [_entry(tensor, "quant") for tensor in network.tensors.values()],
        "layers": [
            {"name": layer.name, "op": _value_to_json(layer.op), "inputs": list(layer.inputs), "output": layer.output}
            for layer in network.layers
        ],
        "file_tensors": [_entry(tensor, "quant") for tensor in network.file_tensors.values()],
        **({"states": dict(network.states)} if network.states else {}),
    }


def _selection_to_dict(key: CallKey, selection: Selection) -> dict[str, Any]:
    scratch = {"scratch": selection.scratch} if selection.scratch else {}
    return {
        "stage": key.stage,
        "layer": key.layer,
        "kind": key.kind.value,
        **({"part": key.part} if key.part else {}),
        "kernel": selection.kernel,
        "bytes": selection.offer.scratch,
        "variant": dict(selection.offer.variant),
        **scratch,
    }


def _entry(value: Any, *optional: str) -> dict[str, Any] | None:
    """A value as a dict of its fields. An optional field is left out where it has its default; None stays None."""
    if value is None:
        return None
    given = {field: getattr(value, field.name) for field in fields(value)}
    return {
        field.name: _plain(inner)
        for field, inner in given.items()
        if field.name not in optional or inner != field.default
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [_plain(inner) for inner in value]
    return _entry(value) if is_dataclass(value) else value


def _stage_to_dict(stage: Stage) -> dict[str, Any]:
    schedule = stage.schedule
    data: dict[str, Any] = {"name": stage.name, "layers": list(schedule.layers), "sweep": stage.sweep.value}
    if schedule.splits:
        data["splits"] = [_entry(split, "lanes") for split in schedule.splits]
    if schedule.streamed:
        data["streamed"] = True
    for name, sizes in (("rows", schedule.rows), ("columns", schedule.columns)):
        if sizes:
            data[name] = dict(sizes)
    return data


def _value_to_json(value: Any) -> Any:
    """Operators and their attributes: {"op": class, field: value}, enums by class and name, infinities as text."""
    if isinstance(value, Operator):
        assert is_dataclass(value)
        return {"op": type(value).__name__} | {f.name: _value_to_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Enum):
        return {"enum": type(value).__name__, "value": value.value}
    if isinstance(value, tuple):
        return [_value_to_json(v) for v in value]
    if isinstance(value, float) and value in (inf, -inf):
        return {"float": "inf" if value > 0 else "-inf"}
    return value
