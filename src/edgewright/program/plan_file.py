"""Plan files as they are read: the type of every field, and plans made of what has it.

Files are untrusted. Here numbers are numbers, texts are texts and lists are lists; whether names exist and ranks agree
is up to `form`, whether the plan computes what its network says up to `check`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import cache, partial
from typing import Annotated, Any, ClassVar, Generic, TypeVar, get_args, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import PydanticCustomError

from ..errors import Damaged, InputError
from ..network import Arithmetic, DType, Layer, Network, Quant, Tensor
from ..network.operators import Op, Operator, elementwise, rearrange, reduce
from ..platform.target import Architecture, Family, Target
from ..text import printable
from .fusion import FusionSchedule, Split
from .options import Kernels, Optimise, Options, Rounding
from .plan import Buffer, Plan, Saving, View, copied_parts
from .program import Program, Stage
from .selection import CallKind, Linked, Offer, Packed, Selection
from .steps import Sweep
from .weights import absent

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
        rearrange.NearestMode,
        reduce.ReduceKind,
    )
}


Validated = TypeVar("Validated", bound=BaseModel)
Value = TypeVar("Value")


class FileEntry(BaseModel):
    """An object of the file. No text passes for a number, no number for a text, and no key is unknown."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class ValueEntry(FileEntry, Generic[Value]):
    """An entry that stands for a value with fields of the same names, whose type a subclass names as `Makes`."""

    Makes: ClassVar[Callable[..., Any]]

    def made(self) -> Value:
        value: Value = type(self).Makes(**{name: _made(given) for name, given in self})
        return value


def _made(given: Any) -> Any:
    if isinstance(given, tuple):
        return tuple(map(_made, given))
    return given.made() if isinstance(given, ValueEntry) else given


Count = Annotated[int, Field(ge=0, lt=_MOST)]
Positive = Annotated[int, Field(ge=1, lt=_MOST)]
Number = Annotated[int, Field(gt=-_MOST, lt=_MOST)]


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


class _Quant(ValueEntry[Quant]):
    Makes = Quant
    scale: tuple[float, ...]
    zero: tuple[Number, ...]
    axis: Number | None


class _Tensor(ValueEntry[Tensor]):
    Makes = Tensor
    name: str
    shape: tuple[Count, ...]
    dtype: DType
    quant: _Quant | None = None


class _Layer(ValueEntry[Layer]):
    Makes = Layer
    name: str
    op: Annotated[Any, AfterValidator(_operator)]
    inputs: tuple[str, ...]
    output: str


class StoredNetwork(FileEntry):
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


class _Split(ValueEntry[Split]):
    Makes = Split
    axis: Number
    ends: tuple[Positive, ...]
    lanes: Positive = 1


class _Stage(FileEntry):
    name: str
    layers: Annotated[tuple[str, ...], Field(min_length=1)]
    sweep: Sweep
    splits: tuple[_Split, ...] = ()
    streamed: bool = False
    rows: dict[str, Positive] = {}
    columns: dict[str, Count] = {}

    def made(self) -> Stage:
        rows, columns = tuple(self.rows.items()), tuple(self.columns.items())
        splits = tuple(split.made() for split in self.splits)
        return Stage(self.name, FusionSchedule(self.layers, splits, self.streamed, rows, columns), self.sweep)


class _Buffer(ValueEntry[Buffer]):
    Makes = Buffer
    name: str
    offset: Count
    size: Count
    first: Count
    last: Count
    memory: str
    lanes: Positive = 1


class _View(ValueEntry[View]):
    Makes = View
    buffer: str
    offset: Count
    strides: tuple[Count, ...]
    window: tuple[Count, Positive] | None = None
    tiled: tuple[Number, ...] = ()


class _Selection(FileEntry):
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


class _Target(ValueEntry[Target]):
    Makes = Target
    name: str
    family: Family
    has_fpu: bool
    architecture: Architecture
    cpu: str
    fpu: str
    has_dot: bool


class _Options(ValueEntry[Options]):
    Makes = Options
    rounding: Rounding
    fixed_point: bool | None
    kernels: Kernels
    optimise: Optimise | None


class _Packed(ValueEntry[Packed]):
    Makes = Packed
    name: str
    bytes: Count
    alignment: Positive
    digest: str


class _Linked(ValueEntry[Linked]):
    Makes = Linked
    compiler: str
    weights_bytes: Count
    code_bytes: Count
    runtime_bytes: Count
    stack_bytes: Count | None


class _Saving(ValueEntry[Saving]):
    Makes = Saving
    technique: str
    peak_bytes: Count


class _Head(FileEntry):
    """The one field that says whether the others can be understood."""

    model_config = ConfigDict(extra="ignore")
    format: Any = None


class PlanFile(FileEntry):
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
    weights_bytes: Count
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
    outside: tuple[str, ...] = ()
    stages: tuple[_Stage, ...]
    network: StoredNetwork

    def made(self) -> Plan:
        """The plan, with a network that has no weight values."""
        views = {name: view.made() for name, view in self.views.items()}
        return Plan(
            program=self._program(views),
            buffers=tuple(buffer.made() for buffer in self.buffers),
            views=views,
            alignment=self.alignment,
            peak_bytes=self.peak_bytes,
            bound_bytes=self.bound_bytes,
            weights_bytes=self.weights_bytes,
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
            outside=self.outside,
        )

    def _program(self, views: Mapping[str, View]) -> Program:
        network = self.network.made()
        stages = tuple(stage.made() for stage in self.stages)
        return Program(network, stages, self.free, copied_parts(network, views))


def parsed(content: bytes | str, format_: int) -> PlanFile:
    """The file's content, of the right types throughout; or what is wrong, in one sentence."""
    return validated(content, PlanFile, format_, "plan")


def validated(content: bytes | str, model: type[Validated], format_: int, thing: str) -> Validated:
    """The content of a file of some kind, when it is one of this format and all types are right."""
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
        raise InputError(f"the {thing} has format {shown}, this edgewright reads {format_}; make the {thing} anew")
    try:
        json.loads(content, object_pairs_hook=partial(_each_key_once, thing))
        return model.model_validate_json(content)
    except ValidationError as error:
        raise Damaged(_sentence(error), thing) from None


def _each_key_once(thing: str, pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise Damaged(f"key '{printable(key)[:40]}' stands twice in one object", thing)
        found[key] = value
    return found


def _sentence(error: ValidationError) -> str:
    """The first problem, with the way to it."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{printable(step)[:40]}" for step in first["loc"])
    what = first["msg"]
    return f"{where.removeprefix('.') or 'the file'}: {what[:1].lower()}{printable(what)[1:200]}"
