"""The task of a search: a TOML file with data, space, board, limits, budget and seed."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, StrictInt, StrictStr, model_validator
from pydantic_core import PydanticCustomError

from ..platform.schema import Bytes, Entry, Flag, Joules, Name, PathText, Seconds, Text, Whole, read_toml
from .front import Measure
from .pricing import Manner
from .space import SearchSpace

Subject = StrictInt | StrictStr
SHARE = "a share between 0 and 0.9, such as 0.2"
MOST_CANDIDATES = 1_000_000
METRICS = (Measure.ACCURACY, Measure.MACRO_F1)


class DataKind(Enum):
    """Where labelled data come from."""

    NUMPY = "numpy"  # arrays of one .npz file
    IMAGES = "images"  # a folder of images per class
    WINDOWS = "windows"  # rows of CSV files, cut into windows


class DataEntry(Entry):
    """The [data] table."""

    kind: DataKind = Field(description="one of " + ", ".join(kind.value for kind in DataKind))
    path: PathText = Field(description="a file or a folder, as seen from the task file")
    inputs: Text = Field(default="x", description="the name of the array of inputs in the .npz file")
    labels: Text = Field(default="y", description="the name of the array, or of the CSV column, of labels")
    subjects: Text | None = Field(
        default=None, description="the name of the array, or of the CSV column, that says whose data these are"
    )
    class_names: Text | None = Field(default=None, description="the name of the array of class names, if there is one")
    columns: tuple[Text, ...] = Field(
        default=(), max_length=1000, description='a list of CSV columns, such as ["acc_x", "acc_y"]'
    )
    window: Whole = Field(default=64, ge=1, le=1 << 20, description="rows of a window, such as 64")
    step: Whole = Field(default=32, ge=1, le=1 << 20, description="rows from one window to the next, such as 32")
    size: tuple[Whole, Whole] = Field(default=(32, 32), description="height and width of images, such as [32, 32]")
    grey: Flag = Field(default=False, description="true for images of one channel, else false")
    held_out: tuple[Subject, ...] = Field(
        default=(), max_length=10**5, description="a list of subjects whose data no decision may see"
    )
    validation: tuple[Subject, ...] = Field(
        default=(), max_length=10**5, description="a list of subjects on whose data candidates are compared"
    )
    held_out_share: float = Field(default=0.15, ge=0, le=0.9, description=SHARE)
    validation_share: float = Field(default=0.2, gt=0, le=0.9, description=SHARE)

    @model_validator(mode="after")
    def _keeps_the_rules(self) -> Self:
        for key, problem in self._broken_rules():
            _refuse(f"data.{key}", problem)
        return self

    def _broken_rules(self) -> Iterator[tuple[str, str]]:
        both = {str(one) for one in self.held_out} & {str(one) for one in self.validation}
        if both:
            yield "validation", f"has subjects that held_out has too ({listed(both)}); put each into one of them"
        if (self.held_out or self.validation) and not self.subjects:
            yield "subjects", "is missing; expected the name of the array or column that holds the subjects"
        if self.kind is DataKind.WINDOWS and not self.columns:
            yield "columns", 'is missing; expected the CSV columns that a window has, such as ["acc_x", "acc_y"]'
        if min(self.size) < 1 or max(self.size) > 4096:
            yield "size", f"is {list(self.size)}; expected a height and a width from 1 to 4096"


class CandidateLimits(Entry):
    """The [limits] table: what each candidate has to keep."""

    ram: Bytes | None = Field(default=None, description='a size, such as "16K"')
    flash: Bytes | None = Field(default=None, description='a size, such as "256K"')
    instructions: Whole | None = Field(default=None, ge=1, description="instructions of a frame, such as 2000000")
    latency: Seconds | None = Field(default=None, description='a time of one frame, such as "20 ms"')
    energy: Joules | None = Field(default=None, description='an energy of one frame, such as "2 mJ"')


class Sampler(Enum):
    """Who proposes candidates."""

    EVOLUTION = "evolution"  # evolutionary piecemeal training, with weights that are inherited
    TPE = "tpe"  # optuna's tree-structured Parzen estimator
    NSGA2 = "nsga2"  # optuna's NSGA-II
    RANDOM = "random"  # optuna's random sampler


class EvolutionEntry(Entry):
    """The [evolution] table; keys that are left out have the values of the preset."""

    preset: Literal["voc", "pamap2", "cifar10"] | None = Field(
        default=None, description='"voc", "pamap2" or "cifar10", as in M table 5.3'
    )
    population: Whole | None = Field(default=None, ge=2, le=10_000, description="a number of candidates from 2")
    mutation_probability: float | None = Field(default=None, ge=0, le=1, description="a probability, such as 0.3")
    mutation_rate: float | None = Field(
        default=None, gt=0, le=1, description="the share by which channels change, such as 0.12"
    )
    crossover_probability: float | None = Field(
        default=None, ge=0, le=1, description="a probability at the start, such as 0.4; it falls to 0 at the end"
    )
    replacement: float | None = Field(
        default=None, ge=0, le=0.5, description="the share of the worst that the best replace, such as 0.03"
    )


class TrainingEntry(Entry):
    """The [training] table; keys that are left out have the values of the evolution's preset."""

    epochs: float | None = Field(
        default=None, gt=0, le=1000, description="epochs of one candidate beyond what it inherits, such as 0.2"
    )
    learning_rate: float | None = Field(default=None, gt=0, le=10, description="Adam's learning rate, such as 1e-3")
    batch: Whole | None = Field(default=None, ge=1, le=65536, description="samples of a step, such as 50")
    final_epochs: float = Field(
        default=4, ge=0, le=1000, description="epochs that points of the front train in the end, such as 4"
    )
    distillation: float = Field(
        default=0,
        ge=0,
        le=1,
        description="the share of the loss that points of the front take from the better half of them, such as 0.5",
    )
    noise: float = Field(
        default=0, ge=0, le=1, description="deviation of noise on training inputs, which have deviation 1; such as 0.05"
    )


class SearchTask(Entry):
    """The whole file."""

    name: Name = Field(description="a name of lower-case letters, digits, - and _")
    board: PathText = Field(description="a board from `edgewright boards`, or a board file")
    manner: Manner = Field(
        default=Manner.STREAMED, description="one of " + ", ".join(manner.value for manner in Manner)
    )
    candidates: Whole = Field(
        ge=1, le=MOST_CANDIDATES, description="how many candidates to train, at least 1, such as 300"
    )
    points: Whole = Field(default=16, ge=1, le=1000, description="the most points that the front may have, such as 16")
    seed: Whole = Field(default=1, ge=0, lt=1 << 32, description="a whole number from 0")
    sampler: Sampler = Field(
        default=Sampler.EVOLUTION, description="one of " + ", ".join(kind.value for kind in Sampler)
    )
    metric: Literal["accuracy", "macro_f1"] = Field(default="accuracy", description='"accuracy" or "macro_f1"')
    objectives: tuple[Measure, ...] = Field(
        default=(Measure.RAM, Measure.FLASH, Measure.LATENCY),
        min_length=1,
        description="a list, beside the metric, of some of "
        + ", ".join(measure.value for measure in Measure if measure not in METRICS),
    )
    data: DataEntry = Field(description="a table headed [data]")
    space: SearchSpace = Field(description="a table headed [space]")
    limits: CandidateLimits = Field(default=CandidateLimits(), description="a table headed [limits]")
    evolution: EvolutionEntry = Field(default=EvolutionEntry(), description="a table headed [evolution]")
    training: TrainingEntry = Field(default=TrainingEntry(), description="a table headed [training]")

    @model_validator(mode="after")
    def _keeps_the_rules(self) -> Self:
        if set(self.objectives) & set(METRICS) or len(set(self.objectives)) < len(self.objectives):
            _refuse("objectives", "names the metric, or one measure twice; expected each other measure at most once")
        return self

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What points are compared by: the metric first."""
        return (Measure(self.metric), *self.objectives)


def read_task(path: Path) -> SearchTask:
    """What the file says; an error names the file, the key and what was expected."""
    return read_toml(path, SearchTask, "a search task")


def listed(names: set[str]) -> str:
    """The first few of the names, in order."""
    ordered = sorted(names, key=lambda name: (len(name), name))
    return ", ".join(ordered[:5]) + (f" and {len(ordered) - 5} more" if len(ordered) > 5 else "")


def _refuse(key: str, problem: str) -> None:
    raise PydanticCustomError("rule", "{problem}", {"key": key, "problem": problem})
