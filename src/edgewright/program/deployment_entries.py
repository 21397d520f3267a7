"""Deployment files as they are read: the type of every field, and deployments made of what has it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from ..errors import InputError
from ..network import Array, Network, Region
from ..network.parts import TensorRegion
from ..text import printable
from .check import damage
from .codec import plan_from_json
from .deployment import Deployment, Fifo, Part, Prediction, Worker
from .form import network_flaws
from .plan_file import Count, FileEntry, Positive, StoredNetwork

Weight = Callable[[str, Region | None], Array]  # by digest, or a region of it
Bounds = tuple[tuple[Count, Count], ...]


class WeightEntry(FileEntry):
    digest: str
    region: Bounds | None = None


class WeightedNetworkEntry(StoredNetwork):
    """A network, and where the values of its constants are."""

    weights: dict[str, WeightEntry]

    def filled(self, weight: Weight) -> Network:
        network = self.made()
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

    def made(self) -> TensorRegion:
        share = Region(self.share) if self.share is not None else None
        return TensorRegion(self.network, self.tensor, Region(self.region), share)


class PartEntry(FileEntry):
    name: str
    network: WeightedNetworkEntry
    plan: dict[str, Any] | None
    inputs: dict[str, RegionEntry]
    outputs: dict[str, RegionEntry]
    runtime: str = "onnxruntime"

    def made(self, weight: Weight) -> Part:
        return Part(
            self.name,
            self.network.filled(weight),
            plan_from_json(json.dumps(self.plan)) if self.plan is not None else None,
            {own: entry.made() for own, entry in self.inputs.items()},
            {own: entry.made() for own, entry in self.outputs.items()},
            self.runtime,
        )


class WorkerEntry(FileEntry):
    name: str
    device: str
    processor: str
    cores: tuple[Count, ...]
    parts: tuple[str, ...]
    replica: tuple[Count, Positive]

    def made(self) -> Worker:
        return Worker(**dict(self))


class FifoEntry(FileEntry):
    what: RegionEntry
    source: str
    readers: tuple[str, ...]
    slots: Positive
    memory: str

    def made(self) -> Fifo:
        return Fifo(self.what.made(), self.source, self.readers, self.slots, self.memory)


class ArenaEntry(FileEntry):
    device: str
    memory: str
    bytes: Count


class PredictionEntry(FileEntry):
    name: str
    value: Annotated[float, Field(strict=False)] | int
    unit: str
    how: str

    def made(self) -> Prediction:
        return Prediction(**dict(self))


class DeploymentFile(FileEntry):
    """deployment.json. What else may stand in it is left aside."""

    model_config = ConfigDict(extra="ignore")
    format: Count
    networks: tuple[WeightedNetworkEntry, ...]
    parts: tuple[PartEntry, ...]
    workers: tuple[WorkerEntry, ...]
    fifos: tuple[FifoEntry, ...]
    arenas: tuple[ArenaEntry, ...]
    predictions: tuple[PredictionEntry, ...]

    def made(self, weight: Weight) -> Deployment:
        arenas = {(entry.device, entry.memory): entry.bytes for entry in self.arenas}
        if len(arenas) < len(self.arenas):
            raise InputError(damage("a memory of a device stands twice", "deployment"))
        return Deployment(
            networks=tuple(self._filled(f"network '{each.name}'", each, weight) for each in self.networks),
            parts=tuple(self._part(each, weight) for each in self.parts),
            workers=tuple(entry.made() for entry in self.workers),
            fifos=tuple(entry.made() for entry in self.fifos),
            arenas=arenas,
            predictions=tuple(entry.made() for entry in self.predictions),
        )

    @staticmethod
    def _filled(title: str, entry: WeightedNetworkEntry, weight: Weight) -> Network:
        try:
            return entry.filled(weight)
        except InputError as error:
            raise InputError(_within(printable(title), error)) from error

    @staticmethod
    def _part(entry: PartEntry, weight: Weight) -> Part:
        try:
            return entry.made(weight)
        except InputError as error:
            raise InputError(_within(f"part '{printable(entry.name)}'", error)) from error


def _within(title: str, error: InputError) -> str:
    """The sentence about a piece of the file as one about the file, unless it is one already."""
    what = str(error)
    if what.startswith(("the deployment is damaged", "cannot read")):
        return what
    return damage(f"{title}: {what.removesuffix('; make it anew')}", "deployment")
