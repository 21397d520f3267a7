"""Plans as JSON and back. Weights stay in the model file; a plan read back has none."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

from ..errors import InputError
from ..files import write_atomic
from ..network import Arithmetic, DType, Layer, Network, Quant, Region, Tensor
from ..network.operators import Op, Operator, elementwise, rearrange, reduce
from .plan import FORMAT, Buffer, Plan, Saving, View
from .program import Program
from .sound import flaws
from .steps import Item, Loop, Stage, Step, Stream, Sweep, Tiles, Unit

OPERATORS = MappingProxyType({cls.__name__: cls for cls in get_args(Op)})
_ENUMS = {
    cls.__name__: cls
    for cls in (
        DType,
        elementwise.BinaryKind,
        elementwise.UnaryKind,
        rearrange.Coordinates,
        rearrange.PadMode,
        rearrange.ResizeMode,
        rearrange.Rounding,
        reduce.ReduceKind,
    )
}


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
        "stages": [{"name": s.name, "body": _body_to_list(s.body)} for s in plan.program.stages],
        "network": network_to_dict(plan.network),
    }


def plan_from_dict(data: Mapping[str, Any]) -> Plan:
    """The plan again, with a network that has no weight values."""
    if not isinstance(data, Mapping) or "format" not in data:
        raise InputError("this is not an edgewright plan: there is no 'format' in it")
    if data["format"] != FORMAT:
        raise InputError(
            f"the plan has format {data['format']}, this edgewright reads {FORMAT}; make the plan anew"
        )
    try:
        network = network_from_dict(data["network"])
        stages = tuple(Stage(s["name"], _body_from_list(s["body"])) for s in data["stages"])
        found = Plan(
            program=Program(network, stages),
            free=tuple(data["free"]),
            buffers=tuple(Buffer(**b) for b in data["buffers"]),
            views={name: _view_from_dict(v) for name, v in data["views"].items()},
            alignment=data["alignment"],
            peak_bytes=data["peak_bytes"],
            bound_bytes=data["bound_bytes"],
            flash_bytes=data["flash_bytes"],
            macs_plain=data["macs_plain"],
            method=data["method"],
            savings=tuple(Saving(**s) for s in data["savings"]),
            board=data["board"],
            plain=data["plain"],
            searched=data["searched"],
            resident_bytes=data.get("resident_bytes"),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the plan is damaged: {type(error).__name__} at {error}; make it anew") from error
    if flaw := next(flaws(found), None):
        raise InputError(f"the plan is damaged: {flaw}; make it anew")
    return found


def plan_text(plan: Plan) -> str:
    """The plan as the text of its file."""
    return json.dumps(plan_to_dict(plan), indent=1) + "\n"


def save_plan(plan: Plan, path: str | Path) -> None:
    write_atomic(path, plan_text(plan))


def load_plan(path: str | Path) -> Plan:
    try:
        data = json.loads(Path(path).read_text())
    except OSError as error:
        raise InputError(f"cannot read the plan '{path}': {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"'{path}' is not JSON: {error}") from error
    return plan_from_dict(data)


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


def network_from_dict(data: Mapping[str, Any]) -> Network:
    tensors = {t["name"]: _tensor_from_dict(t) for t in data["tensors"]}
    return Network(
        name=data["name"],
        inputs=tuple(data["inputs"]),
        outputs=tuple(data["outputs"]),
        layers=tuple(
            Layer(d["name"], _value_from_json(d["op"]), tuple(d["inputs"]), d["output"]) for d in data["layers"]
        ),
        tensors=tensors,
        constants={name: _Absent(tensors[name]) for name in data["constants"]},  # type: ignore[misc]
        arithmetic=Arithmetic(data["arithmetic"]),
        layouts={name: tuple(perm) for name, perm in data["layouts"].items()},
        notes=tuple(data["notes"]),
        file_tensors={t["name"]: _tensor_from_dict(t) for t in data.get("file_tensors", ())},
    )


class _Absent:
    """Stands where a weight's values would be, in a plan that was read from a file."""

    def __init__(self, tensor: Tensor) -> None:
        self.shape, self.dtype = tensor.shape, tensor.dtype.numpy

    def __getitem__(self, index: object) -> Any:
        raise InputError("a plan file holds no weights; give the network it was made of as well")

    def __array__(self, *_: object, **__: object) -> Any:
        return self[...]

    def __getattr__(self, name: str) -> Any:
        """Whatever is asked of an array."""
        if name.startswith("__"):
            raise AttributeError(name)
        return self[...]


def _tensor_to_dict(tensor: Tensor) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": tensor.name,
        "shape": list(tensor.shape),
        "dtype": tensor.dtype.value,
    }
    if tensor.quant:
        quant = tensor.quant
        data["quant"] = {"scale": list(quant.scale), "zero": list(quant.zero), "axis": quant.axis}
    return data


def _tensor_from_dict(data: Mapping[str, Any]) -> Tensor:
    quant = data.get("quant")
    return Tensor(
        data["name"],
        tuple(data["shape"]),
        DType(data["dtype"]),
        Quant(tuple(quant["scale"]), tuple(quant["zero"]), quant["axis"]) if quant else None,
    )


def _body_to_list(body: Sequence[Item]) -> list[dict[str, Any]]:
    return [_item_to_dict(item) for item in body]


def _item_to_dict(item: Item) -> dict[str, Any]:
    match item:
        case Loop():
            return {"count": item.count, "body": _body_to_list(item.body)}
        case Stream():
            units = [{"steps": _body_to_list(unit.steps), "width": unit.width} for unit in item.units]
            return {"stream": units, "sinks": list(item.sinks), "axis": item.axis}
        case Tiles():
            return {
                "tiles": list(item.ends),
                "axis": item.axis,
                "body": _body_to_list(item.body),
                "sinks": list(item.sinks),
            }
        case Step():
            moves = {"moves": [list(move) for move in item.moves]} if item.moves else {}
            share = {"share": _region_to_list(item.share)} if item.share else {}
            region = _region_to_list(item.region)
            return {"layer": item.layer, "region": region, "sweep": item.sweep.value, **moves, **share}


def _region_to_list(region: Region) -> list[list[int]]:
    return [list(bound) for bound in region.bounds]


def _body_from_list(body: Sequence[Mapping[str, Any]]) -> tuple[Item, ...]:
    return tuple(_item_from_dict(item) for item in body)


def _item_from_dict(item: Mapping[str, Any]) -> Item:
    if "count" in item:
        return Loop(item["count"], tuple(map(_inside_loop, item["body"])))
    if "stream" in item:
        units = tuple(Unit(tuple(map(_step_from_dict, u["steps"])), u["width"]) for u in item["stream"])
        return Stream(units, tuple(item["sinks"]), item["axis"])
    if "tiles" in item:
        body = tuple(map(_inside_tiles, item["body"]))
        return Tiles(item["axis"], tuple(item["tiles"]), body, tuple(item["sinks"]))
    return _step_from_dict(item)


def _inside_loop(item: Mapping[str, Any]) -> Step | Loop:
    found = _item_from_dict(item)
    if isinstance(found, Stream | Tiles):
        raise ValueError("a stream or tiles inside a loop")
    return found


def _inside_tiles(item: Mapping[str, Any]) -> Step | Stream | Tiles:
    found = _item_from_dict(item)
    if isinstance(found, Loop):
        raise ValueError("a loop inside tiles")
    return found


def _step_from_dict(item: Mapping[str, Any]) -> Step:
    share = _region_from_list(item["share"]) if "share" in item else None
    moves = tuple(tuple(move) for move in item.get("moves", ()))
    return Step(item["layer"], _region_from_list(item["region"]), Sweep(item["sweep"]), moves, share)


def _region_from_list(bounds: Sequence[Sequence[int]]) -> Region:
    return Region(tuple((a, b) for a, b in bounds))


def _view_from_dict(data: Mapping[str, Any]) -> View:
    window = data.get("window")
    return View(
        data["buffer"],
        data["offset"],
        tuple(data["strides"]),
        (window[0], window[1]) if window else None,
        tuple(data.get("tiled", ())),
    )


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


def _value_from_json(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_value_from_json(v) for v in value)
    if isinstance(value, Mapping):
        if "op" in value:
            attributes = {k: _value_from_json(v) for k, v in value.items() if k != "op"}
            return OPERATORS[value["op"]](**attributes)
        if "enum" in value:
            return _ENUMS[value["enum"]](value["value"])
        return float(value["float"])
    return value
