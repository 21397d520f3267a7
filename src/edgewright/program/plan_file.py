"""Reads plan files: checks the type of every field and builds the plan.

Files are untrusted. Here numbers are numbers, texts are texts and lists are lists: those of the plan's own data classes
(Buffer, View, Tensor), or of an entry below where the file says something in another way. Whether names exist and ranks
agree is up to `form`, whether the plan computes what its network says up to `check`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from enum import EnumType
from functools import cache, partial
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import PydanticCustomError

from ..errors import Damaged, InputError
from ..network import Arithmetic, DType, Layer, Network, Tensor, operators
from ..network.operators import Op, Operator
from ..platform.schema import MOST, Count, FileEntry, Positive, first_problem
from ..platform.target import Target
from ..text import printable
from .fusion import FusionSchedule, Split
from .options import Options
from .plan import Buffer, CheaperPlan, Plan, Saving, View, copied_parts
from .program import Program, Stage
from .selection import CallKey, CallKind, Linked, Offer, Packed, Selection
from .steps import Sweep
from .weights import absent

_DIGITS = 20  # of a number, with its sign
_OPERATORS = {cls.__name__: cls for cls in get_args(Op)}
_ENUMS = {cls.__name__: cls for cls in (DType, *vars(operators).values()) if isinstance(cls, EnumType)}


Validated = TypeVar("Validated", bound=BaseModel)


def _operator(value: object) -> Operator:
    operator = _value(value)
    if not isinstance(operator, Operator):
        raise PydanticCustomError("operator", "Input should be an operator")
    return operator


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


class _Layer(FileEntry):
    name: str
    op: Annotated[Any, AfterValidator(_operator)]
    inputs: tuple[str, ...]
    output: str

    def build(self) -> Layer:
        return Layer(self.name, self.op, self.inputs, self.output)


class StoredNetwork(FileEntry):
    name: str
    arithmetic: Arithmetic
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: tuple[str, ...]
    layouts: dict[str, tuple[Count, ...]]
    notes: tuple[str, ...]
    tensors: tuple[Tensor, ...]
    layers: tuple[_Layer, ...]
    file_tensors: tuple[Tensor, ...] = ()
    states: dict[str, str] = Field(default_factory=dict)

    def build(self) -> Network:
        tensors = {tensor.name: tensor for tensor in self.tensors}
        if len(tensors) < len(self.tensors):
            raise InputError("two tensors have the same name")
        if missing := [name for name in self.constants if name not in tensors]:
            raise InputError(f"constant '{printable(missing[0])}' is no tensor")
        return Network(
            name=self.name,
            inputs=self.inputs,
            outputs=self.outputs,
            layers=tuple(layer.build() for layer in self.layers),
            tensors=tensors,
            constants=absent(tensors[name] for name in self.constants),
            arithmetic=self.arithmetic,
            layouts=self.layouts,
            notes=self.notes,
            file_tensors={tensor.name: tensor for tensor in self.file_tensors},
            states=self.states,
        )


class _Stage(FileEntry):
    name: str
    layers: Annotated[tuple[str, ...], Field(min_length=1)]
    sweep: Sweep
    splits: tuple[Split, ...] = ()
    streamed: bool = False
    rows: dict[str, Positive] = Field(default_factory=dict)
    columns: dict[str, Count] = Field(default_factory=dict)

    def build(self) -> Stage:
        rows, columns = tuple(self.rows.items()), tuple(self.columns.items())
        return Stage(self.name, FusionSchedule(self.layers, self.splits, self.streamed, rows, columns), self.sweep)


class _Selection(FileEntry):
    stage: Count
    layer: str
    kind: CallKind
    part: Count = 0
    kernel: str
    bytes: Count
    variant: dict[str, int]
    scratch: str | None = None

    @property
    def key(self) -> CallKey:
        return CallKey(self.stage, self.layer, self.kind, self.part)

    def build(self) -> Selection:
        return Selection(self.kernel, Offer(self.bytes, tuple(self.variant.items())), self.scratch)


class _Head(FileEntry):
    """The format version, which decides whether the other fields can be read."""

    model_config = ConfigDict(extra="ignore")
    format: Any = None


class PlanFile(FileEntry):
    """A plan file."""

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
    weights_bytes: Count
    macs: Count
    macs_plain: Count
    method: str
    alignment: Annotated[int, Field(ge=1, le=1 << 20)]
    savings: tuple[Saving, ...]
    order: tuple[str, ...]
    free: tuple[str, ...]
    buffers: tuple[Buffer, ...]
    views: dict[str, View]
    target: Target | None = None
    options: Options | None = None
    selections: tuple[_Selection, ...] = ()
    packed: tuple[Packed, ...] = ()
    linked: Linked | None = None
    outside: tuple[str, ...] = ()
    cheaper: CheaperPlan | None = None
    stages: tuple[_Stage, ...]
    network: StoredNetwork

    def build(self) -> Plan:
        """The plan, with a network that has no weight values."""
        network = self.network.build()
        stages = tuple(stage.build() for stage in self.stages)
        selections = {each.key: each.build() for each in self.selections}
        if len(selections) < len(self.selections):
            raise InputError("two kernels are selected for the same call")
        # What the plan has under the same name as the file; the others are made of several, or follow from others.
        alike = {field.name for field in fields(Plan)} & type(self).model_fields.keys() - {"selections"}
        return Plan(
            program=Program(network, stages, self.free, copied_parts(network, self.views)),
            selections=selections,
            **{name: getattr(self, name) for name in alike},
        )


def parsed(content: bytes | str, format_: int) -> PlanFile:
    """The file's content after a check of all types; raises an error with one sentence."""
    return validated(content, PlanFile, format_, "plan")


def validated(
    content: bytes | str, model: type[Validated], format_: int, thing: str, context: object = None
) -> Validated:
    """The content of a file of this kind, after a check of its format and all types."""
    no_format = f"this is not an edgewright {thing}: there is no 'format' in it"
    try:
        head = _Head.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        if first["type"] != "json_invalid":
            raise InputError(no_format) from None
        reason = first["msg"].removeprefix("Invalid JSON: ")
        raise Damaged(f"it is not JSON ({reason})", thing) from None
    if head.format is None:
        raise InputError(no_format)
    if head.format != format_ or isinstance(head.format, bool):
        shown = printable(str(head.format))[:20]
        raise InputError(f"the {thing} has format {shown}, this edgewright reads {format_}; make the {thing} again")
    try:
        data = json.loads(content, object_pairs_hook=partial(_each_key_once, thing), parse_int=partial(_bounded, thing))
        if data.keys() - model.model_fields.keys():  # what `--json` prints besides is left aside
            content = json.dumps({key: value for key, value in data.items() if key in model.model_fields})
        return model.model_validate_json(content, context=context)
    except ValidationError as error:
        raise Damaged(first_problem(error), thing) from None


def _each_key_once(thing: str, pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for key, value in pairs:
        if key in entries:
            raise Damaged(f"key '{printable(key)[:40]}' occurs twice in one object", thing)
        entries[key] = value
    return entries


def _bounded(thing: str, digits: str) -> int:
    if len(digits) > _DIGITS or abs(int(digits)) >= MOST:
        raise Damaged(f"{digits[:_DIGITS]} is too large a number for a {thing} has", thing)
    return int(digits)
