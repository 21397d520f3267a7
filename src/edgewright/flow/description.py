"""The file of a design flow: the source of its design points, the selections among them, and the application."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, StrictInt, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from ..adaptive.description import AdaptEntry, AdaptiveFile, RuleEntry
from ..application.description import LimitEntry, NetworkName
from ..errors import InputError
from ..platform.schema import Entry, PathText, read_toml, sentence
from ..search.pricing import Manner
from ..search.selection import FigureLimit, Objective, Requirement, SelectionMethod
from .manners import ENTRIES

MOST_SELECTIONS = 16
THING = "a design flow"


class ApplicationKind(Enum):
    """The application that the selected points become."""

    ADAPT = "adapt"  # scenarios that switch at run time
    APP = "app"  # several networks in one memory
    COMPILE = "compile"  # a library for each
    NONE = "none"  # nothing: the flow ends with the selection


class ShrinkEntry(Entry):
    """The [shrink] table: narrower versions of the user's model."""

    shares: tuple[Annotated[float, Field(strict=True, gt=0, le=1)], ...] = Field(
        default=(1.0, 0.75, 0.5, 0.35, 0.25),
        min_length=1,
        max_length=20,
        description="a list of shares of the channels that are kept, such as [1.0, 0.5, 0.25]",
    )
    step: Annotated[StrictInt, Field(ge=1, le=64)] = Field(
        default=4, description="a number from 1 to 64 that numbers of channels are multiples of"
    )
    epochs: Annotated[float, Field(ge=0, le=1000)] = Field(
        default=3.0, description="epochs of training after channels were removed; 0 for none, which needs no PyTorch"
    )
    learning_rate: Annotated[float, Field(gt=0, le=1)] = Field(
        default=3e-3, description="a positive number, the share by which a step changes weights"
    )
    seed: Annotated[StrictInt, Field(ge=0, lt=1 << 32)] = Field(default=1, description="a whole number from 0")


class SelectionEntry(Entry):
    """A requirement set: one point is selected for it."""

    name: NetworkName = Field(description="a name of letters, digits and _ that begins with a letter")
    require: dict[str, float | str] = Field(
        description="weights that add up to 1, such as {accuracy = 0.5, energy = 0.5}"
    )
    limits: dict[str, float | str] = Field(
        default={}, description='limits on figures, such as {ram = "8K", latency = "20 ms"}'
    )
    method: SelectionMethod = Field(
        default=SelectionMethod.DOMINANCE,
        description="one of " + ", ".join(method.value for method in SelectionMethod),
    )

    @property
    def requirement(self) -> Requirement:
        return Requirement.of(self.require)

    @property
    def figure_limits(self) -> tuple[FigureLimit, ...]:
        return tuple(FigureLimit.of(name, value) for name, value in self.limits.items())


class FlowFile(Entry):
    """The whole file."""

    name: NetworkName = Field(default="flow", description="a name of letters, digits and _ that begins with a letter")
    task: PathText | None = Field(default=None, description="the file of a search task, as seen from this file")
    front: PathText | None = Field(default=None, description="a front.json that a search wrote, or its folder")
    model: PathText | None = Field(default=None, description="a trained model (.onnx or .tflite)")
    data: PathText | None = Field(default=None, description="an .npz file with samples of the model, and labels")
    board: PathText | None = Field(
        default=None, description="a board from `edgewright boards`, or a board file; that of the task when left out"
    )
    application: ApplicationKind = Field(
        default=ApplicationKind.ADAPT, description="one of " + ", ".join(kind.value for kind in ApplicationKind)
    )
    manners: tuple[Manner, ...] = Field(
        default=(),
        description="a list of some of "
        + ", ".join(manner.value for manner in Manner)
        + "; all that suit the board when left out",
    )
    shrink: ShrinkEntry | None = Field(default=None, description="a table headed [shrink], for a model")
    limits: LimitEntry = Field(default=LimitEntry(), description="a table headed [limits]")
    selections: tuple[SelectionEntry, ...] = Field(
        alias="selection",
        min_length=1,
        max_length=MOST_SELECTIONS,
        description=f"1 to {MOST_SELECTIONS} tables headed [[selection]]",
    )
    adapt: AdaptEntry = Field(default=AdaptEntry(), description="a table headed [adapt]")
    rules: tuple[RuleEntry, ...] = Field(
        default=(), alias="rule", max_length=64, description="a table headed [[rule]], or none"
    )

    @model_validator(mode="after")
    def _keeps_the_rules(self) -> Self:
        for key, problem in self._problems():
            raise PydanticCustomError("rule", "{problem}", {"key": key, "problem": problem})
        return self

    def _problems(self) -> Iterator[tuple[str, str]]:
        """Rules between fields that are broken, as (key, problem)."""
        sources = [key for key in ("task", "front", "model") if getattr(self, key) is not None]
        if not sources:
            yield "task", "is missing; expected task, front or model: where design points come from"
        if sources[:2] == ["task", "model"] or sources[:2] == ["front", "model"]:
            yield "model", f"is given beside {sources[0]}; expected one source of design points"
        if self.model is not None:
            for key, what in (("data", "samples to quantise with"), ("board", "a board to run on")):
                if getattr(self, key) is None:
                    yield key, f"is missing; expected {what}, since design points come from a model"
        for key in ("data", "shrink"):
            if getattr(self, key) is not None and self.model is None:
                yield key, "is for a model; expected model beside it"
        names = [one.name for one in self.selections]
        for index, one in enumerate(self.selections):
            where = f"selection[{index}]"
            if one.name in names[:index]:
                yield f"{where}.name", f'is "{one.name}", which is taken; expected a unique name'
            yield from _selection_problems(one, where)
        if self.application is ApplicationKind.ADAPT:
            yield from self._adaptive_problems()
        elif self.rules or "adapt" in self.model_fields_set:
            key = "rule" if self.rules else "adapt"
            yield key, f'is for scenarios; expected application = "adapt", not "{self.application.value}"'
        if self.application in (ApplicationKind.ADAPT, ApplicationKind.APP):
            for index, manner in enumerate(self.manners):
                if manner not in ENTRIES:
                    yield (
                        f"manners[{index}]",
                        f'is "{manner.value}", which is for a network alone; expected another, or application = '
                        '"compile" or "none"',
                    )

        if self.application is ApplicationKind.ADAPT and len(self.manners) > 1 and Manner.PULLED in self.manners:
            yield (
                f"manners[{self.manners.index(Manner.PULLED)}]",
                'is "pulled" beside others, and scenarios take frames in one way; expected "pulled" alone, or others',
            )

    def _adaptive_problems(self) -> Iterator[tuple[str, str]]:
        """Problems of scenarios and rules, so that they are found before the search and not after it."""
        if len(self.selections) < 2:
            yield (
                "selection",
                "is one, and there is nothing to switch to; expected two [[selection]] or more, or application = "
                '"compile"',
            )
            return
        names: list[dict[str, Any]] = [{"name": one.name} for one in self.selections]
        networks = application_tables(self, [{**one, "file": "model.onnx"} for one in names])
        try:
            AdaptiveFile.model_validate({**networks, **adaptive_tables(self, names)})
        except ValidationError as error:
            key, _, problem = sentence(error, AdaptiveFile).partition(" ")
            yield key.replace("scenario[", "selection["), problem


def _selection_problems(entry: SelectionEntry, where: str) -> Iterator[tuple[str, str]]:
    try:
        _ = entry.requirement
    except InputError as error:
        yield f"{where}.require", f"is no requirement: {error}"
    try:
        _ = entry.figure_limits
    except InputError as error:
        yield f"{where}.limits", f"cannot be kept: {error}"


def application_tables(file: FlowFile, networks: list[dict[str, Any]]) -> dict[str, Any]:
    """The tables of an application of these networks."""
    limits = file.limits.model_dump(mode="json", exclude_unset=True)
    return {"name": file.name, "limits": limits, "network": networks}


def adaptive_tables(file: FlowFile, scenarios: list[dict[str, Any]]) -> dict[str, Any]:
    """The further tables of an application with these scenarios."""
    return {
        "adapt": file.adapt.model_dump(mode="json", exclude_unset=True),
        "scenario": scenarios,
        "rule": [rule.model_dump(mode="json", exclude_unset=True) for rule in file.rules],
    }


def read_flow(path: Path) -> FlowFile:
    """What the file says; an error names the file, the key and what was expected."""
    return read_toml(path, FlowFile, THING)


def weighs_energy(entry: SelectionEntry) -> bool:
    """Whether the selection needs to know the energy of a frame."""
    return bool(entry.requirement.weight(Objective.ENERGY)) or "energy" in entry.limits
