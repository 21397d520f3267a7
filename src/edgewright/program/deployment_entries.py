"""Deployment files as they are read: the type of every field, and deployments made of what has it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from ..errors import Damaged, InputError
from ..network import Array, Network, Region
from ..network.parts import TensorRegion
from ..platform.sentences import Count, FileEntry
from ..text import printable
from .codec import plan_from_json
from .deployment import ArenaLayout, Deployment, Fifo, Part, Prediction, Reader, Relation, Worker
from .form import network_flaws
from .plan_file import StoredNetwork

Weight = Callable[[str, Region | None], Array]  # by digest, or a region of it
Made = TypeVar("Made")
Bounds = tuple[tuple[Count, Count], ...]


class WeightEntry(FileEntry):
    digest: str
    region: Bounds | None = None


class WeightedNetworkEntry(StoredNetwork):
    """A network, and where the values of its constants are."""

    weights: dict[str, WeightEntry]

    def filled(self, weight: Weight) -> Network:
        network = self.build()
        if set(self.weights) != set(self.constants):
            raise InputError("its weights are not its constants")
        values: dict[str, Array] = {}
        for name, entry in self.weights.items():
            value = weight(entry.digest, Region(entry.region) if entry.region is not None else None)
            tensor = network.tensors[name]
            if value.shape != tensor.shape or value.dtype != tensor.dtype.numpy:
                raise InputError(f"the weight of '{printable(name)}' is {value.dtype}{list(value.shape)}")
            values[name] = value
        found = replace(network, constants=values)
        for flaw in network_flaws(found):
            raise InputError(flaw)
        return found


class RegionEntry(FileEntry):
    network: str
    tensor: str
    region: Bounds
    share: Bounds | None = None

    def build(self) -> TensorRegion:
        share = Region(self.share) if self.share is not None else None
        return TensorRegion(self.network, self.tensor, Region(self.region), share)


class PartEntry(FileEntry):
    name: str
    network: WeightedNetworkEntry
    plan: dict[str, Any] | None
    inputs: dict[str, RegionEntry]
    outputs: dict[str, RegionEntry]
    runtime: str = "onnxruntime"

    def build(self, weight: Weight) -> Part:
        return Part(
            self.name,
            self.network.filled(weight),
            plan_from_json(json.dumps(self.plan)) if self.plan is not None else None,
            {own: entry.build() for own, entry in self.inputs.items()},
            {own: entry.build() for own, entry in self.outputs.items()},
            self.runtime,
        )


class FifoEntry(FileEntry):
    what: RegionEntry
    source: str
    readers: tuple[Reader, ...]
    slots: int
    rows: Count
    memory: str
    keeps_latest: bool

    def build(self) -> Fifo:
        what = self.what.build()
        return Fifo(what, self.source, self.readers, self.slots, self.rows, self.memory, self.keeps_latest)


class SlotsEntry(FileEntry):
    what: RegionEntry
    at: tuple[Count, ...]


class ArenaEntry(FileEntry):
    device: str
    memory: str
    bytes: Count
    workers: dict[str, Count]
    slots: tuple[SlotsEntry, ...]
    buffers: dict[str, Count]

    def build(self) -> ArenaLayout:
        slots = {entry.what.build(): entry.at for entry in self.slots}
        return ArenaLayout(self.bytes, self.workers, slots, self.buffers)


class DeploymentFile(FileEntry):
    """deployment.json."""

    format: Count
    networks: tuple[WeightedNetworkEntry, ...]
    parts: tuple[PartEntry, ...]
    workers: tuple[Worker, ...]
    fifos: tuple[FifoEntry, ...]
    arenas: tuple[ArenaEntry, ...]
    predictions: tuple[Prediction, ...]
    relations: tuple[Relation, ...]

    def build(self, weight: Weight) -> Deployment:
        arenas = {(entry.device, entry.memory): entry.build() for entry in self.arenas}
        if len(arenas) < len(self.arenas):
            raise Damaged("a memory of a device stands twice", "deployment")
        return Deployment(
            networks=tuple(_within(f"network '{each.name}'", each.filled, weight) for each in self.networks),
            parts=tuple(_within(f"part '{each.name}'", each.build, weight) for each in self.parts),
            workers=self.workers,
            fifos=tuple(entry.build() for entry in self.fifos),
            arenas=arenas,
            predictions=self.predictions,
            relations=self.relations,
        )


def _within(title: str, made: Callable[[Weight], Made], weight: Weight) -> Made:
    """Builds a piece of the file. An error inside it is raised as an error of the file, with the title of the piece."""
    try:
        return made(weight)
    except Damaged as error:
        if error.thing == "deployment":
            raise
        what = f"the {error.thing} is damaged: {error.what}"
        raise Damaged(f"{printable(title)}: {what}", "deployment") from error
    except InputError as error:
        raise Damaged(f"{printable(title)}: {error}", "deployment") from error
