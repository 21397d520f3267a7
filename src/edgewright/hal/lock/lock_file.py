"""The lock file: where every field lies, so that the next run leaves it there. `locked_layout` obeys it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..analysis.spaces import Space, Steps
from ..design import Design
from ..language.description import Field, Mode
from ..layout.layout import SpaceLayout

FORMAT = 1
RELOCK = "use --relock to give up the old layout"
MOST_BYTES = 16 << 20
MOST_ELEMENTS = 1 << 20
MOST_BITS = 64  # of a register


@dataclass(frozen=True, slots=True)
class LockedPiece:
    """Bits of a register: `name` is a path in which [] stands for an index."""

    name: str
    bit: int
    size: int
    low: int
    lanes: int
    counts: tuple[int, ...]  # elements of the field


@dataclass(frozen=True, slots=True)
class LockedRegister:
    offset: int
    width: int
    counts: tuple[int, ...]
    strides: tuple[int, ...]
    pieces: tuple[LockedPiece, ...]


@dataclass(frozen=True, slots=True)
class LockedArea:
    name: str
    group: str
    offset: int
    counts: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LockedSpace:
    size: int  # bytes; never less than in any earlier lock, so that places of gone fields stay free
    registers: tuple[LockedRegister, ...]
    areas: tuple[LockedArea, ...]
    views: tuple[tuple[int, tuple[str, ...]], ...] = ()  # offsets, and the paths of fields that are written there


@dataclass(frozen=True, slots=True)
class Lock:
    path: str
    devices: Mapping[str, tuple[str, int]]  # group and address
    fields: Mapping[str, Mapping[str, tuple[int, int | None]]]  # by group: bits and elements
    spaces: Mapping[str, LockedSpace]
    is_fixed: bool = False  # the map of hardware that exists: nothing can be added to it


def lock_text(design: Design) -> str:
    """The text of the lock file of a design: a line for each field, in an order that depends on nothing else."""
    description, spaces = design.analysis.description, design.analysis.spaces
    devices = {d.name: {"group": d.group, "address": f"0x{d.address:X}"} for d in description.devices}
    layouts = {name: _space(spaces[name], layout) for name, layout in design.layout.spaces.items()}
    groups = {
        name: {field.name: _field(field) for field in sorted(group.fields, key=lambda field: field.name)}
        for name, group in sorted(description.groups.items())
    }
    return readable({"format": FORMAT, "devices": devices, "groups": groups, "layout": layouts})


def _field(field: Field) -> dict[str, Any]:
    """Its size, and what is said about it in the source."""
    marks = ("w1c", "w1s", "clear_on_read", "fifo", "by_hardware", "shared_with_isr", "split")
    said: dict[str, Any] = {mark: True for mark in marks if getattr(field, mark)}
    if field.mode is not Mode.RW:
        said[field.mode.value] = True
    named = {kind: [str(target) for target in getattr(field, kind)] for kind in ("rse", "wse", "while_zero")}
    said |= {kind: targets for kind, targets in named.items() if targets}
    if field.protection is not None:
        said["protection"] = field.protection.value
    return {"bits": field.bits, **({} if field.count is None else {"count": field.count}), **said}


def _space(space: Space, layout: SpaceLayout) -> dict[str, Any]:
    registers = [
        {
            "offset": register.offset,
            "width": register.width,
            **({"counts": register.counts, "strides": register.strides} if register.counts else {}),
            "fields": [
                {
                    "name": pattern((slot := space.slot(piece.slot)).steps),
                    "bit": piece.bit,
                    "size": piece.size,
                    **({"low": piece.low} if piece.low else {}),
                    **({"lanes": piece.lanes} if piece.lanes > 1 else {}),
                    **({"counts": slot.counts} if slot.counts else {}),
                }
                for piece in sorted(register.pieces, key=lambda piece: piece.bit)
            ],
        }
        for register in sorted(layout.registers, key=lambda register: register.offset)
    ]
    areas = [
        {
            "name": pattern(area.steps),
            "group": area.space,
            "offset": (place := layout.place_of(area.name)).offset,
            **({"counts": area.counts, "strides": place.strides} if area.counts else {}),
        }
        for area in space.areas
    ]
    views = [
        {"offset": view.offset, "fields": [pattern(space.slot(slot).steps) for slot in view.slots]}
        for view in sorted(layout.views, key=lambda view: view.offset)
    ]
    more = {"areas": areas, "views": views}
    return {"size": layout.size, "registers": registers, **{name: of for name, of in more.items() if of}}


def pattern(steps: Steps) -> str:
    """A path with [] where an index is known at run time only."""
    ends = {None: "", -1: "[]"}
    return ".".join(member + ends.get(index, f"[{index}]") for member, index in steps)


def readable(data: dict[str, Any]) -> str:
    """JSON with the innermost objects on one line each, whatever their length: a change of one changes one line."""
    return _lines(data, "") + "\n"


def _lines(value: Any, indent: str) -> str:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if not any(isinstance(item, dict | list) and _is_nest(item) for item in inside):
        return json.dumps(value)
    deeper = indent + " "
    if isinstance(value, dict):
        inside = [f"{deeper}{json.dumps(key)}: {_lines(item, deeper)}" for key, item in value.items()]
        return "{\n" + ",\n".join(inside) + f"\n{indent}}}"
    return "[\n" + ",\n".join(deeper + _lines(item, deeper) for item in value) + f"\n{indent}]"


def _is_nest(value: dict[str, Any] | list[Any]) -> bool:
    """Whether it says something of more than one thing: lists of numbers do not."""
    return isinstance(value, dict) or any(isinstance(item, dict | list) for item in value)


def read_lock(path: Path) -> Lock:
    """What a lock file says; one that we did not write so is an error."""
    try:
        data = json.loads(path.read_bytes()[:MOST_BYTES].decode())
    except OSError as error:
        raise InputError(f"cannot read lock file '{path}': {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"lock file '{path}' is damaged: {error}; {RELOCK}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        found = data.get("format") if isinstance(data, dict) else None
        raise InputError(f"lock file '{path}' has format {found!r}, not {FORMAT}; {RELOCK}")
    try:
        return _lock(str(path), data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise InputError(f"lock file '{path}' is damaged: {reason}; {RELOCK}") from error


def _lock(path: str, data: Mapping[str, Any]) -> Lock:
    return Lock(
        path,
        {name: (str(d["group"]), int(d["address"], 16)) for name, d in data["devices"].items()},
        {
            group: {
                name: (_number(f["bits"], 1), _number(f["count"], 1) if "count" in f else None)
                for name, f in fields.items()
            }
            for group, fields in data["groups"].items()
        },
        _spaces(data["layout"]),
        data.get("is_fixed") is True,
    )


def _spaces(data: Mapping[str, Any]) -> dict[str, LockedSpace]:
    """The spaces; groups inside others must come first, so that none holds itself."""
    found: dict[str, LockedSpace] = {}
    for name, space in data.items():
        read = _read_space(space)
        if unknown := [area.group for area in read.areas if area.group not in found]:
            raise ValueError(f"'{unknown[0]}' in '{name}' has no layout before it")
        found[name] = read
    return found


def _read_space(data: Mapping[str, Any]) -> LockedSpace:
    registers = tuple(map(_read_register, data["registers"]))
    areas = tuple(
        LockedArea(str(a["name"]), str(a["group"]), _number(a["offset"]), *_both(a)) for a in data.get("areas", ())
    )
    views = tuple((_number(view["offset"]), tuple(map(str, view["fields"]))) for view in data.get("views", ()))
    return LockedSpace(_number(data["size"]), registers, areas, views)


def _read_register(data: Mapping[str, Any]) -> LockedRegister:
    pieces = tuple(_read_piece(piece) for piece in data["fields"])
    width = _number(data["width"], 8)
    if width > MOST_BITS:
        raise ValueError(f"a register of {width} bits")
    counts, strides = _both(data)
    for piece in pieces:
        if len(piece.counts) != len(counts):
            raise ValueError(f"'{piece.name}' has {len(piece.counts)} indices, its register {len(counts)}")
        if piece.bit + piece.size * piece.lanes > width:
            raise ValueError(f"'{piece.name}' does not fit its register of {width} bits")
    return LockedRegister(_number(data["offset"]), width, counts, strides, pieces)


def _read_piece(data: Mapping[str, Any]) -> LockedPiece:
    counts = _numbers(data, "counts")
    low, lanes = _number(data.get("low", 0)), _number(data.get("lanes", 1), 1)
    return LockedPiece(str(data["name"]), _number(data["bit"]), _number(data["size"], 1), low, lanes, counts)


def _both(data: Mapping[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    counts, strides = _numbers(data, "counts"), _numbers(data, "strides")
    if len(counts) != len(strides):
        raise ValueError("counts and strides differ in length")
    if prod(counts) > MOST_ELEMENTS:
        raise ValueError(f"an array of {prod(counts)} elements")
    return counts, strides


def _numbers(data: Mapping[str, Any], key: str) -> tuple[int, ...]:
    return tuple(_number(value, 1) for value in data.get(key, ()))


def _number(value: Any, least: int = 0) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 1 << 40:
        raise ValueError(f"{value!r} is not a number that can stand here")
    return value
