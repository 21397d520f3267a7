"""The application file: networks, board, limits, relations, own buffers."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, pairwise
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, StrictInt, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from ..emit.names import safe_prefix
from ..platform.schema import Bytes, Entry, PathText, Seconds, read_toml
from ..program.deployment import RelationKind

ALWAYS = "always"
FILES = ("kernels", "weights", "probe", "starts")  # of the C library, whose names begin with the application's
SHARE = "a share from 0, such as 0.05 for 5 %"

NetworkName = Annotated[str, StringConstraints(strict=True, max_length=48, pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
MemberName = Annotated[str, StringConstraints(strict=True, max_length=64)]
Place = Annotated[StrictInt, Field(ge=0, le=1 << 31)]
Size = Annotated[StrictInt, Field(ge=1, le=1 << 31)]


class PreemptionPoints(Enum):
    """Where a network may be interrupted."""

    STAGES = "stages"  # at the ends of stages
    ROWS = "rows"  # also between the rows of a stage
    ANYWHERE = "anywhere"  # by an interrupt, or by a thread of higher priority


class Precision(Enum):
    """The precision of a network's computation and weights."""

    NONE = "none"  # as trained
    FP16 = "fp16"  # weights rounded to 16 bits
    INT8 = "int8"  # weights and data


class AppNetworkEntry(Entry):
    """A network: its file, options of its plan, its period and deadline."""

    name: NetworkName = Field(description="a name of letters, digits and _ that begins with a letter")
    file: PathText = Field(description="the model's file (.onnx or .tflite), as seen from the application file")
    prefix: NetworkName | None = Field(default=None, description="a C identifier; the name when left out")
    shape: dict[str, Annotated[tuple[Size, ...], Field(min_length=1, max_length=8)]] = Field(
        default={}, description="a table of sizes for inputs that the file leaves open, such as {x = [1, 3, 96, 96]}"
    )
    pull_input: StrictBool = Field(default=False, description="true if images come row by row, else false")
    quantised_input: StrictBool = Field(default=False, description="true to leave the conversion to the caller")
    quantised_output: StrictBool = Field(default=False, description="true to leave the conversion to the caller")
    quantise: Precision = Field(
        default=Precision.NONE, description="one of " + ", ".join(kind.value for kind in Precision)
    )
    calibration: PathText | None = Field(
        default=None, description="a file of inputs (.npy or .npz) from which int8 takes its ranges"
    )
    phases: StrictBool = Field(default=False, description="true to run layers row by row, else false")
    plain: StrictBool = Field(default=False, description="true for order and layout alone, else false")
    minimise: Literal["ram"] | None = Field(default=None, description='"ram" for the least RAM of this network')
    max_overhead: float | None = Field(default=None, ge=0, le=1000, description=SHARE)
    max_slowdown: float | None = Field(default=None, ge=0, le=1000, description=SHARE)
    partitions: tuple[PathText, ...] = Field(
        default=(),
        max_length=64,
        description='a list of layers, such as ["l1..l2", "l3"], one text for each partition',
    )
    period: Seconds | None = Field(default=None, description='a time between two runs, such as "100 ms"')
    deadline: Seconds | None = Field(default=None, description='a time, such as "50 ms"; the period when left out')
    throughput: float | None = Field(default=None, gt=0, le=1e9, description="frames in a second, such as 30")
    priority: StrictInt | None = Field(default=None, description="a number, higher for more urgent networks")
    instructions: StrictInt | None = Field(
        default=None, ge=1, description="measured instructions of one run; estimated when left out"
    )


class RelationEntry(Entry):
    """A relation: how some networks run with respect to each other."""

    kind: RelationKind = Field(description="one of " + ", ".join(kind.value for kind in RelationKind))
    networks: tuple[MemberName, ...] = Field(
        min_length=2, max_length=64, description="a list of two networks or more, or of partitions such as net.1"
    )
    points: PreemptionPoints = Field(
        default=PreemptionPoints.STAGES,
        description='where the second network may be interrupted: "stages", "rows" or "anywhere"',
    )
    wait: Seconds | None = Field(
        default=None, description='the longest that the first network may have to wait, such as "2 ms"'
    )
    output: str | None = Field(default=None, description="an output of the first network, where it has several")
    input: str | None = Field(default=None, description="an input of the networks, where they have several")
    crop: tuple[Place, Place, Size, Size] | None = Field(
        default=None, description="[top, left, height, width], the part of the image that the later networks read"
    )
    resize: tuple[Size, Size] | None = Field(
        default=None, description="[height, width], to which the image or its crop is scaled"
    )
    scaling: Literal["bilinear", "nearest"] = Field(default="bilinear", description='"bilinear" or "nearest"')


class BufferEntry(Entry):
    """Memory that the firmware itself keeps in the arena: a camera frame, a log."""

    name: NetworkName = Field(description="a name, unique among buffers and networks")
    size: Bytes = Field(description='a size, such as "4 KiB"')
    alive: Literal["always"] | tuple[MemberName, ...] = Field(
        default="always", description='"always", or a list of the networks during which it is in use'
    )
    state: StrictBool = Field(default=False, description="true if what is in it must outlive every run")


class AppMemoryEntry(Entry):
    """A memory for buffers, if no board defines it."""

    name: NetworkName = Field(description="a name, unique among the memories; it is that of the section in C")
    size: Bytes = Field(description='a size, such as "64K"')


class LimitEntry(Entry):
    """Limits for all networks together."""

    ram: Bytes | None = Field(default=None, description='a size, such as "24K"')
    flash: Bytes | None = Field(default=None, description='a size, such as "512K"')


class ApplicationFile(Entry):
    """The whole file."""

    board: PathText | None = Field(default=None, description="a board from `edgewright boards`, or a board file")
    target: PathText | None = Field(default=None, description="what to compile for, where there is no board")
    name: NetworkName = Field(default="app", description="the prefix of the C library's own functions")
    limits: LimitEntry = Field(default=LimitEntry(), description="a table headed [limits]")
    networks: tuple[AppNetworkEntry, ...] = Field(
        alias="network", max_length=64, description="a table headed [[network]], at least one"
    )
    relations: tuple[RelationEntry, ...] = Field(
        default=(), alias="relation", max_length=500, description="a table headed [[relation]], or none"
    )
    buffers: tuple[BufferEntry, ...] = Field(
        default=(), alias="buffer", max_length=500, description="a table headed [[buffer]], or none"
    )
    memories: tuple[AppMemoryEntry, ...] = Field(
        default=(),
        alias="memory",
        max_length=16,
        description="a table headed [[memory]], the fastest first, or none",
    )
    keep: tuple[MemberName, ...] = Field(
        default=(), max_length=500, description='a list of ends that nothing may overlay, such as "net.input"'
    )

    @model_validator(mode="after")
    def _keeps_the_rules(self) -> Self:
        for key, problem in _broken_rules(self):
            raise PydanticCustomError("rule", "{problem}", {"key": key, "problem": problem})
        return self

    @property
    def prefix(self) -> str:
        """The prefix of the C library's files and functions."""
        return safe_prefix(self.name)

    @property
    def members(self) -> tuple[str, ...]:
        """Every name that a relation may use: networks and their partitions."""
        parts = [f"{one.name}.{n + 1}" for one in self.networks for n in range(len(one.partitions))]
        return (*(one.name for one in self.networks), *parts)

    def network(self, member: str) -> AppNetworkEntry:
        """The network with that name, or the one that the partition belongs to."""
        return {one.name: one for one in self.networks}[member.partition(".")[0]]

    def related(self, *kinds: RelationKind) -> tuple[RelationEntry, ...]:
        """The relations of these kinds."""
        return tuple(one for one in self.relations if one.kind in kinds)

    def pulling(self, name: str) -> Self:
        """The file with the rows of this network's images pulled."""
        changed = (one.model_copy(update={"pull_input": one.pull_input or one.name == name}) for one in self.networks)
        return self.model_copy(update={"networks": tuple(changed)})


def read_application(path: Path) -> ApplicationFile:
    """Reads the file; an error names the file, the key and what was expected."""
    return read_toml(path, ApplicationFile, "an application")


def _broken_rules(app: ApplicationFile) -> Iterator[tuple[str, str]]:
    """Rules that involve several fields: (key, problem)."""
    if not app.networks:
        yield "network", "is empty; expected at least one [[network]]"
        return
    yield from _broken_names(app)
    yield from _broken_networks(app)
    for index, relation in enumerate(app.relations):
        yield from _broken_relation(app, index, relation)
    yield from _contradictions(app)
    yield from _circles(app)
    yield from _broken_buffers(app)


def _broken_names(app: ApplicationFile) -> Iterator[tuple[str, str]]:
    networks = [one.name for one in app.networks]
    # In C the names of buffers and memories are lower case.
    buffers, memories = ([one.name.lower() for one in entries] for entries in (app.buffers, app.memories))
    for key, names in (("network", networks), ("buffer", buffers), ("memory", memories)):
        for index, name in enumerate(names):
            if name in names[:index] or (key == "buffer" and app.buffers[index].name in networks):
                yield f"{key}[{index}].name", f'is "{name}", which is taken; expected a unique name'
    if app.memories and app.limits.ram is not None:
        yield "limits.ram", "is given beside [[memory]], whose sizes are the limits; expected one of them"
    own, taken = app.prefix, dict[str, str]()
    taken |= {own: "the name of the application"} | {f"{own}_{part}": "a file of the application" for part in FILES}
    pipelined = {one.networks[0].partition(".")[0] for one in app.relations if one.kind is RelationKind.PIPELINED}
    for index, one in enumerate(app.networks):
        prefix = safe_prefix(one.prefix or one.name)
        parts = [f"{prefix}_{n + 1}" for n in range(len(one.partitions) if one.name in pipelined else 0)]
        for name in (prefix, *parts):
            if name in taken:
                said = "is" if name == prefix else "gives a partition the C name"
                other = f'expected another one, such as "net_{prefix}"'
                yield f"network[{index}].prefix", f'{said} "{name}", as {taken[name]}; {other}'
        taken |= dict.fromkeys((prefix, *parts), f"in network[{index}]")


def _broken_networks(app: ApplicationFile) -> Iterator[tuple[str, str]]:
    for index, one in enumerate(app.networks):
        key = f"network[{index}]"
        asked = [name for name in ("phases", "plain", "minimise") if getattr(one, name)]
        if len(asked) > 1:
            yield f"{key}.{asked[1]}", f"contradicts {asked[0]}; expected one of them"
        if one.deadline is not None and one.period is None:
            yield f"{key}.deadline", "has no period beside it; expected a period too"
        if one.deadline is not None and one.period is not None and one.deadline > one.period:
            yield f"{key}.deadline", f"is {one.deadline:g} s; expected at most the period, {one.period:g} s"


def _broken_relation(app: ApplicationFile, index: int, relation: RelationEntry) -> Iterator[tuple[str, str]]:
    key = f"relation[{index}]"
    for name in relation.networks:
        if name not in app.members:
            yield f"{key}.networks", f'names "{name}"; expected one of {", ".join(app.members)}'
            return
    if len(set(relation.networks)) < len(relation.networks):
        yield f"{key}.networks", "names a network twice; expected different ones"
    kind = relation.kind
    if kind in (RelationKind.AFTER, RelationKind.PREEMPTS) and len(relation.networks) != 2:
        yield f"{key}.networks", f"has {len(relation.networks)} entries; expected two for {kind.value}"
    owners = {app.network(name).name for name in relation.networks}
    if kind is RelationKind.PIPELINED:
        one = app.network(relation.networks[0])
        whole = tuple(f"{one.name}.{n + 1}" for n in range(len(one.partitions)))
        if len(owners) > 1 or relation.networks != whole:
            expected = ", ".join(whole) or f"partitions of {one.name}, which has none"
            yield f"{key}.networks", f"is for all partitions of one network, in order; expected {expected}"
    elif any("." in name for name in relation.networks) and not (kind is RelationKind.EXCLUSIVE and len(owners) == 1):
        yield f"{key}.networks", f"names partitions; expected whole networks for {kind.value}"
    if relation.points is not PreemptionPoints.STAGES and kind is not RelationKind.PREEMPTS:
        yield f"{key}.points", f"is for preempts; expected none for {kind.value}"
    for key_of, given in (("crop", relation.crop), ("resize", relation.resize)):
        if given is not None and kind not in (RelationKind.AFTER, RelationKind.SAME_INPUT):
            yield f"{key}.{key_of}", f"is for after and same input; expected none for {kind.value}"
    if relation.wait is not None and (
        kind is not RelationKind.PREEMPTS or relation.points is PreemptionPoints.ANYWHERE
    ):
        yield f"{key}.wait", 'is for preempts at "stages" or "rows"; expected none here'


def _contradictions(app: ApplicationFile) -> Iterator[tuple[str, str]]:
    """Two kinds of relation for one pair. Any networks that do not exclude each other may pass tensors."""
    said: dict[frozenset[str], RelationKind] = {}
    for index, relation in enumerate(app.relations):
        if relation.kind in (RelationKind.SAME_INPUT, RelationKind.AFTER):
            continue
        for pair in map(frozenset, combinations(relation.networks, 2)):
            before = said.setdefault(pair, relation.kind)
            if before is not relation.kind:
                names = " and ".join(sorted(pair))
                yield (
                    f"relation[{index}].kind",
                    f"makes {names} {relation.kind.value}, and another relation {before.value}; expected one of them",
                )


def _circles(app: ApplicationFile) -> Iterator[tuple[str, str]]:
    """Networks that wait for each other's results, or preempt each other, in a cycle."""
    handing = (RelationKind.AFTER, RelationKind.SAME_INPUT)
    for kinds in (handing, (RelationKind.PREEMPTS,)):
        following: dict[str, set[str]] = {}
        for index, relation in enumerate(app.relations):
            if relation.kind not in kinds:
                continue
            for first, second in pairwise(relation.networks):
                following.setdefault(first, set()).add(second)
            try:
                TopologicalSorter(following).prepare()
            except CycleError as error:
                names = ", ".join(dict.fromkeys(error.args[1]))
                yield (
                    f"relation[{index}].networks",
                    f"closes a circle of {' and '.join(kind.value for kind in kinds)} through {names}, which would "
                    "wait for each other for ever; expected none",
                )
                return


def _broken_buffers(app: ApplicationFile) -> Iterator[tuple[str, str]]:
    names = {one.name for one in app.networks}
    for index, buffer in enumerate(app.buffers):
        for name in buffer.alive if buffer.alive != ALWAYS else ():
            if name not in names:
                yield f"buffer[{index}].alive", f'names "{name}"; expected one of {", ".join(sorted(names))}'
        if buffer.state and buffer.alive != ALWAYS:
            yield (
                f"buffer[{index}].alive",
                'lets others overlay a state, which outlives every run; expected "always", or state = false',
            )
    for index, text in enumerate(app.keep):
        if text.partition(".")[0] not in names or not text.partition(".")[2]:
            yield (
                f"keep[{index}]",
                f'is "{text}"; expected an end of a network, such as {min(names)}.input',
            )
