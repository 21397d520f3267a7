"""Profile: the time of each layer of a network on each kind of processor, and the cost of moving a tensor.

Plain data with its JSON: measured or estimated elsewhere, and the only input of mapping. Times are seconds, sizes
bytes; a time is the median of several runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from ..errors import InputError
from ..files import read_file, write_atomic
from .schema import Count, FileEntry, Positive, first_problem

FORMAT: Literal[1] = 1
NATIVE = "native"  # the executor of our own libraries; others are named like their Python packages


class TimeOrigin(Enum):
    """How a time was obtained."""

    MEASURED = "measured"
    INSTRUCTIONS = "estimated by instructions"  # and cycles of each, on a microcontroller
    ROOFLINE = "estimated by roofline"  # lower bound of the hardware


Seconds = Annotated[float, Field(ge=0, lt=1e9)]
Text = Annotated[str, Field(max_length=500)]
Origin = Annotated[TimeOrigin, Field(strict=False)]  # JSON has no enums


class Fingerprint(FileEntry):
    """The properties of a machine that affect times."""

    architecture: Text  # as the kernel names it: "aarch64"
    system: Text  # "Linux"
    model: Text  # of the processor, as the system names it: "Neoverse-N1"
    cores: Positive
    compiler: Text = ""  # the first line of its --version


class ProfiledProcessor(FileEntry):
    """One kind of core, or one GPU."""

    name: Text  # as in times and transfers
    kind: Text  # "cortex-a72", "gpu", or the part named by the system
    cores: tuple[Count, ...]  # core numbers for pinning threads
    clock: Positive | None = None  # hertz, the highest
    # When n cores are busy, each with a separate frame, a frame takes slowdown[n - 1] times as long as alone.
    slowdown: Annotated[tuple[Annotated[float, Field(gt=0, lt=1e6)], ...], Field(min_length=1)] = (1.0,)


class ExecutionTime(FileEntry):
    """A time on a number of cores of one processor, with one executor."""

    processor: Text
    executor: Text = NATIVE
    lanes: Positive = 1
    seconds: Seconds
    spread: Seconds = 0.0  # half the distance between the first and the third quartile
    origin: Origin = TimeOrigin.MEASURED


class LayerTime(ExecutionTime):
    """The time of one layer."""


class LayerProfile(FileEntry):
    """A layer with its description and times."""

    name: Text
    operator: Text
    macs: Count
    bytes: Count  # read and written once: inputs, weights, output
    times: tuple[LayerTime, ...]


class FrameTime(ExecutionTime):
    """The time of the whole network in one call, without probes: the target of the sum of layers."""


class TransferTime(FileEntry):
    """The time to pass a tensor between cores of two processors, or of one: latency + bytes / rate."""

    source: Text
    target: Text
    latency: Seconds
    bytes_per_second: Annotated[float, Field(ge=1, lt=1e18)]
    origin: Origin = TimeOrigin.MEASURED

    def seconds(self, size: int) -> float:
        return self.latency + size / self.bytes_per_second


class Profile(FileEntry):
    """All times of one network on one board."""

    format: Literal[1] = FORMAT
    board: Text  # a name of the catalogue, or "this" for the measured machine
    machine: Fingerprint | None  # None if nothing was measured
    model: Text
    model_digest: Text  # of the network's structure: `program.structure_digest`
    processors: tuple[ProfiledProcessor, ...]
    layers: tuple[LayerProfile, ...]  # in network order
    frames: tuple[FrameTime, ...] = ()
    transfers: tuple[TransferTime, ...] = ()
    notes: tuple[Text, ...] = ()

    def __repr__(self) -> str:
        return f"Profile('{self.model}' on '{self.board}', {len(self.layers)} layers)"

    def time(self, layer: str, processor: str, lanes: int = 1, executor: str | None = None) -> LayerTime | None:
        """The layer's time; with the fastest executor if none is named, and None if none can run it."""
        times = [
            time
            for one in self.layers
            for time in one.times
            if one.name == layer
            and (time.processor, time.lanes) == (processor, lanes)
            and executor in (None, time.executor)
        ]
        return min(times, key=lambda time: time.seconds, default=None)

    def transfer(self, source: str, target: str) -> TransferTime | None:
        """The cost of passing on a tensor; None if it was neither measured nor estimated."""
        return next((t for t in self.transfers if (t.source, t.target) == (source, target)), None)

    def missing(self, layers: Iterable[str]) -> tuple[str, ...]:
        """The layers without a time on any processor."""
        known = {layer.name for layer in self.layers if layer.times}
        return tuple(name for name in layers if name not in known)

    def to_json(self) -> str:
        return self.model_dump_json(indent=1) + "\n"

    @model_validator(mode="after")
    def _names_agree(self) -> Self:
        for problem in _broken_rules(self):
            raise PydanticCustomError("rule", "{problem}", {"problem": problem})
        return self


def save_profile(profile: Profile, path: str | Path) -> None:
    write_atomic(path, profile.to_json())


def load_profile(path: str | Path) -> Profile:
    """The profile in a file; a contradictory one is refused."""
    content = read_file(path, "give a profile that `edgewright profile -o` wrote")
    try:
        return Profile.model_validate_json(content)
    except ValidationError as error:
        problem = first_problem(error)
    raise InputError(f"'{path}' is no profile of layer times ({problem}); `edgewright profile` writes one")


def _broken_rules(profile: Profile) -> Iterator[str]:
    """Rules that involve several fields."""
    known = [processor.name for processor in profile.processors]
    if repeated := _repeated(known):
        yield f'processor "{repeated}" is described twice'
    for processor in profile.processors:
        if repeated := _repeated([str(core) for core in processor.cores]):
            yield f'processor "{processor.name}" has core {repeated} twice'
    if repeated := _repeated([layer.name for layer in profile.layers]):
        yield f'layer "{repeated}" is described twice'
    named = [time.processor for layer in profile.layers for time in layer.times]
    named += [frame.processor for frame in profile.frames]
    named += [name for transfer in profile.transfers for name in (transfer.source, transfer.target)]
    for name in named:
        if name not in known:
            yield f'a time names the processor "{name}", which is not described'
    for layer in profile.layers:
        keys = [f"{time.executor}, {time.processor}, {time.lanes} lanes" for time in layer.times]
        if repeated := _repeated(keys):
            yield f'layer "{layer.name}" has two times for {repeated}'


def _repeated(names: list[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)
