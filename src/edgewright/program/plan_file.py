"""Plan files as they are read: the type of every field, and plans made of what has it.

Files are untrusted. Here numbers are numbers, texts are texts and lists are lists; whether names exist and ranks agree
is up to `form`, whether the plan computes what its network says up to `check`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from typing import Annotated, Any, get_args, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    create_model,
)
from pydantic_core import PydanticCustomError

from ..errors import InputError
from ..network import Arithmetic, DType, Layer, Network, Quant, Region, Tensor
from ..network.operators import Op, Operator, elementwise, rearrange, reduce
from ..platform.target import Architecture, Family, Target
from ..words import printable
from .check import damage
from .linked import Linked, Packed
from .options import Kernels, Optimise, Options, Rounding
from .plan import Buffer, Plan, Saving, View
from .program import Program
from .selection import CallKind, Offer, Selection
from .steps import Item, Loop, Stage, Step, Stream, Sweep, Tiles, Unit
from .weightless import absent

_MOST = 1 << 60  # of every number; beyond it lies no file that somebody has made on purpose
_OPERATORS = {cls.__name__: cls for cls in get_args(Op)}
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


class _Entry(BaseModel):
    """An object of the file. No text passes for a number, no number for a text, and no key is unknown."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


Count = Annotated[int, Field(ge=0, lt=_MOST)]
Positive = Annotated[int, Field(ge=1, lt=_MOST)]
Number = Annotated[int, Field(gt=-_MOST, lt=_MOST)]
Interval = tuple[Count, Count]


def _operator(value: object) -> Operator:
    found = _value(value)
    if not isinstance(found, Operator):
        raise PydanticCustomError("operator", "Input should be an operator")
    return found


def _value(value: object) -> Any:
    """Operators and their attributes as `codec` writes them, each attribute of the type that its operator names."""
    if isinstance(value, list):
        return tuple(map(_value, value))
    match value:
        case {"op": str(name), **attributes} if name in _OPERATORS:
            cls = _OPERATORS[name]
            given = _attributes(cls).model_validate({key: _value(inner) for key, inner in attributes.items()})
            return cls(**{field.name: getattr(given, field.name) for field in fields(cls)})
        case {"enum": str(name), "value": inner} if name in _ENUMS:
            return _ENUMS[name](inner)
        case {"float": ("inf" | "-inf") as text}:
            return float(text)
        case dict():
            raise PydanticCustomError("value", "Input should be an operator, or an attribute of one")
    return value


@cache
def _attributes(cls: type[Operator]) -> type[BaseModel]:
    """A model with the fields of an operator."""
    hints = get_type_hints(cls)
    wanted: dict[str, Any] = {field.name: (hints[field.name], ...) for field in fields(cls)}  # type: ignore[arg-type]
    config = ConfigDict(strict=True, extra="forbid", arbitrary_types_allowed=True)
    return create_model(cls.__name__, __config__=config, **wanted)


class _Quant(_Entry):
    scale: tuple[float, ...]
    zero: tuple[Number, ...]
    axis: Number | None

    def made(self) -> Quant:
        return Quant(self.scale, self.zero, self.axis)


class _Tensor(_Entry):
    name: str
    shape: tuple[Count, ...]
    dtype: DType
    quant: _Quant | None = None

    def made(self) -> Tensor:
        return Tensor(self.name, self.shape, self.dtype, self.quant.made() if self.quant else None)


class _Layer(_Entry):
    name: str
    op: Annotated[Any, AfterValidator(_operator)]
    inputs: tuple[str, ...]
    output: str

    def made(self) -> Layer:
        return Layer(self.name, self.op, self.inputs, self.output)


class _Network(_Entry):
    name: str
    arithmetic: Arithmetic
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: tuple[str, ...]
    layouts: dict[str, tuple[Count, ...]]
    notes: tuple[str, ...]
    tensors: tuple[_Tensor, ...]
    layers: tuple[_Layer, ...]
    file_tensors: tuple[_Tensor, ...] = ()

    def made(self) -> Network:
        tensors = {tensor.name: tensor.made() for tensor in self.tensors}
        if len(tensors) < len(self.tensors):
            raise InputError("two tensors have the same name")
        if missing := [name for name in self.constants if name not in tensors]:
            raise InputError(f"constant '{printable(missing[0])}' is no tensor")
        return Network(
            name=self.name,
            inputs=self.inputs,
            outputs=self.outputs,
            layers=tuple(layer.made() for layer in self.layers),
            tensors=tensors,
            constants=absent(tensors[name] for name in self.constants),
            arithmetic=self.arithmetic,
            layouts=self.layouts,
            notes=self.notes,
            file_tensors={tensor.name: tensor.made() for tensor in self.file_tensors},
        )


class _Step(_Entry):
    layer: str
    region: tuple[Interval, ...]
    sweep: Sweep
    moves: tuple[tuple[Number, ...], ...] = ()
    share: tuple[Interval, ...] | None = None

    def made(self) -> Step:
        share = None if self.share is None else Region(self.share)
        return Step(self.layer, Region(self.region), self.sweep, self.moves, share)


class _Loop(_Entry):
    count: Positive
    body: tuple[_InLoop, ...]

    def made(self) -> Loop:
        return Loop(self.count, tuple(item.made() for item in self.body))


class _Unit(_Entry):
    steps: tuple[_Step, ...]
    width: Count

    def made(self) -> Unit:
        return Unit(tuple(step.made() for step in self.steps), self.width)


class _Stream(_Entry):
    stream: tuple[_Unit, ...]
    sinks: tuple[str, ...]
    axis: Number

    def made(self) -> Stream:
        return Stream(tuple(unit.made() for unit in self.stream), self.sinks, self.axis)


class _Tiles(_Entry):
    tiles: tuple[Positive, ...]
    axis: Number
    body: tuple[_InTiles, ...]
    sinks: tuple[str, ...]

    def made(self) -> Tiles:
        return Tiles(self.axis, self.tiles, tuple(item.made() for item in self.body), self.sinks)


def _kind(item: object) -> str:
    """Which kind of item an object is: the key that only this kind has."""
    keys = item if isinstance(item, dict) else ()
    return next((key for key in ("count", "stream", "tiles") if key in keys), "layer")


_InLoop = Annotated[Annotated[_Step, Tag("layer")] | Annotated[_Loop, Tag("count")], Discriminator(_kind)]
_InTiles = Annotated[
    Annotated[_Step, Tag("layer")] | Annotated[_Stream, Tag("stream")] | Annotated[_Tiles, Tag("tiles")],
    Discriminator(_kind),
]
_Item = Annotated[
    Annotated[_Step, Tag("layer")]
    | Annotated[_Loop, Tag("count")]
    | Annotated[_Stream, Tag("stream")]
    | Annotated[_Tiles, Tag("tiles")],
    Discriminator(_kind),
]


class _Stage(_Entry):
    name: str
    body: tuple[_Item, ...]

    def made(self) -> Stage:
        body: tuple[Item, ...] = tuple(item.made() for item in self.body)
        return Stage(self.name, body)


class _Buffer(_Entry):
    name: str
    offset: Count
    size: Count
    first: Count
    last: Count
    memory: str

    def made(self) -> Buffer:
        return Buffer(self.name, self.size, self.offset, self.first, self.last, self.memory)


class _View(_Entry):
    buffer: str
    offset: Count
    strides: tuple[Count, ...]
    window: tuple[Count, Positive] | None = None
    tiled: tuple[Number, ...] = ()

    def made(self) -> View:
        return View(self.buffer, self.offset, self.strides, self.window, self.tiled)


class _Selection(_Entry):
    layer: str
    kind: CallKind
    kernel: str
    bytes: Count
    variant: dict[str, Number]
    scratch: str | None = None

    def made(self) -> Selection:
        return Selection(
            self.layer, self.kind, self.kernel, Offer(self.bytes, tuple(self.variant.items())), self.scratch
        )


class _Target(_Entry):
    name: str
    family: Family
    has_fpu: bool
    architecture: Architecture
    cpu: str
    fpu: str
    has_dot: bool

    def made(self) -> Target:
        return Target(**dict(self))


class _Options(_Entry):
    rounding: Rounding
    fixed_point: bool | None
    kernels: Kernels
    optimise: Optimise | None

    def made(self) -> Options:
        return Options(**dict(self))


class _Packed(_Entry):
    name: str
    bytes: Count
    alignment: Positive
    digest: str

    def made(self) -> Packed:
        return Packed(**dict(self))


class _Linked(_Entry):
    compiler: str
    weights_bytes: Count
    code_bytes: Count
    runtime_bytes: Count
    stack_bytes: Count | None

    def made(self) -> Linked:
        return Linked(**dict(self))


class _Saving(_Entry):
    technique: str
    peak_bytes: Count

    def made(self) -> Saving:
        return Saving(self.technique, self.peak_bytes)


class _Head(_Entry):
    """The one field that says whether the others can be understood."""

    model_config = ConfigDict(extra="ignore")
    format: Any = None


class PlanFile(_Entry):
    """A plan file. What `edgewright plan --json` prints besides is left aside."""

    model_config = ConfigDict(extra="ignore")
    format: Count
    model: str
    board: str | None
    plain: bool
    searched: Count
    resident_bytes: Count | None = None
    peak_bytes: Count
    bound_bytes: Count
    optimal: bool
    flash_bytes: Count
    macs: Count
    macs_plain: Count
    method: str
    alignment: Annotated[int, Field(ge=1, le=1 << 20)]
    savings: tuple[_Saving, ...]
    order: tuple[str, ...]
    free: tuple[str, ...]
    buffers: tuple[_Buffer, ...]
    views: dict[str, _View]
    target: _Target | None = None
    options: _Options | None = None
    selections: tuple[tuple[_Selection, ...], ...] = ()
    packed: tuple[_Packed, ...] = ()
    linked: _Linked | None = None
    stages: tuple[_Stage, ...]
    network: _Network

    def made(self) -> Plan:
        """The plan, with a network that has no weight values."""
        return Plan(
            program=Program(self.network.made(), tuple(stage.made() for stage in self.stages)),
            free=self.free,
            buffers=tuple(buffer.made() for buffer in self.buffers),
            views={name: view.made() for name, view in self.views.items()},
            alignment=self.alignment,
            peak_bytes=self.peak_bytes,
            bound_bytes=self.bound_bytes,
            flash_bytes=self.flash_bytes,
            macs_plain=self.macs_plain,
            method=self.method,
            savings=tuple(saving.made() for saving in self.savings),
            board=self.board,
            plain=self.plain,
            searched=self.searched,
            resident_bytes=self.resident_bytes,
            target=self.target.made() if self.target else None,
            options=self.options.made() if self.options else None,
            selections=tuple(tuple(each.made() for each in stage) for stage in self.selections),
            packed=tuple(each.made() for each in self.packed),
            linked=self.linked.made() if self.linked else None,
        )


def parsed(content: bytes | str, format_: int) -> PlanFile:
    """The file's content, of the right types throughout; or what is wrong, in one sentence."""
    try:
        head = _Head.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        if first["type"] != "json_invalid":
            raise InputError("this is not an edgewright plan: there is no 'format' in it") from None
        reason = first["msg"].removeprefix("Invalid JSON: ")
        raise InputError(damage(f"it is not JSON ({reason})")) from None
    if head.format is None:
        raise InputError("this is not an edgewright plan: there is no 'format' in it")
    if head.format != format_ or isinstance(head.format, bool):
        shown = printable(str(head.format))[:20]
        raise InputError(f"the plan has format {shown}, this edgewright reads {format_}; make the plan anew")
    try:
        json.loads(content, object_pairs_hook=_each_key_once)
        return PlanFile.model_validate_json(content)
    except ValidationError as error:
        raise InputError(damage(_sentence(error))) from None


def _each_key_once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise InputError(damage(f"key '{printable(key)[:40]}' stands twice in one object"))
        found[key] = value
    return found


def _sentence(error: ValidationError) -> str:
    """The first problem, with the way to it."""
    first = error.errors(include_url=False, include_input=False)[0]
    tags = ("layer", "count", "stream", "tiles")
    path = [step for at, step in enumerate(first["loc"]) if not (step in tags and _is_tag(first["loc"], at))]
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{printable(step)[:40]}" for step in path)
    what = first["msg"]
    return f"{where.removeprefix('.') or 'the file'}: {what[:1].lower()}{printable(what)[1:200]}"


def _is_tag(location: tuple[int | str, ...], at: int) -> bool:
    """Whether this part of a location is the kind of an item, which stands behind the item's number."""
    return at >= 2 and isinstance(location[at - 1], int) and location[at - 2] == "body"
