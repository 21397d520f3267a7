"""The schema of deployment files: a Deployment as it is, but for networks, plans and mappings whose keys are no texts.

Reading and writing go through these types. A network's weights are read from, or stored in, what is given as context;
without one the file is of a reduced deployment, which has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, Field, PlainSerializer, SerializationInfo, ValidationInfo

from ..errors import Damaged, InputError
from ..network import Array, Network, Region
from ..platform.schema import Count, FileEntry
from ..text import printable
from .codec import network_to_dict, plan_from_dict, plan_to_dict
from .deployment import Deployment
from .form import end_flaws, network_flaws
from .plan import Plan
from .plan_file import StoredNetwork

THING = "deployment"  # as messages name it


class WeightEntry(FileEntry):
    digest: str
    region: tuple[tuple[Count, Count], ...] | None = None  # None: all of it


class WeightedNetwork(StoredNetwork):
    """A network, and where the values of its constants are."""

    weights: dict[str, WeightEntry] = Field(default_factory=dict)


def file_form(kind: Any) -> Any:
    """The type that replaces this one in a file."""
    if kind is Network:
        return Annotated[WeightedNetwork, AfterValidator(_network), PlainSerializer(_network_to_dict)]
    if kind is Plan:
        return Annotated[dict[str, Any], AfterValidator(_plan), PlainSerializer(plan_to_dict)]
    pairs: Any = tuple[tuple[get_args(kind)], ...]  # type: ignore[misc]
    return Annotated[pairs, AfterValidator(_mapping), PlainSerializer(lambda own: tuple(own.items()), pairs)]


def _mapping(pairs: tuple[tuple[Any, Any], ...]) -> Mapping[Any, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise Damaged("one key stands twice", THING)
    return mapping


def _plan(data: dict[str, Any]) -> Plan:
    with _within(f"the plan of '{data.get('model')}'"):
        return plan_from_dict(data, may_push=True)


def _network_to_dict(network: Network, info: SerializationInfo) -> dict[str, Any]:
    return {**network_to_dict(network), "weights": dict(info.context.named(network)) if info.context else {}}


def _network(entry: WeightedNetwork, info: ValidationInfo) -> Network:
    with _within(f"network '{entry.name}'"):
        network = entry.build()
        if set(entry.weights) != set(entry.constants):
            raise InputError("its weights are not its constants")
        if info.context is not None:
            network = replace(network, constants=dict(_weights(network, entry.weights, info.context)))
        elif entry.layers or entry.constants:
            raise InputError("a device needs no layers or weights of it")
        for flaw in end_flaws(network) if info.context is None else network_flaws(network):
            raise InputError(flaw)
        return network


def _weights(network: Network, entries: Mapping[str, WeightEntry], reader: Any) -> Iterator[tuple[str, Array]]:
    for name, entry in entries.items():
        value = reader.weight(entry.digest, Region(entry.region) if entry.region is not None else None)
        tensor = network.tensors[name]
        if value.shape != tensor.shape or value.dtype != tensor.dtype.numpy:
            raise InputError(f"the weight of '{printable(name)}' is {value.dtype}{list(value.shape)}")
        yield name, value


@contextmanager
def _within(title: str) -> Iterator[None]:
    """Raises an error inside a piece of the file as an error of the file, with the title of the piece."""
    try:
        yield
    except InputError as error:
        raise Damaged(f"{printable(title)[:80]}: {getattr(error, 'what', error)}", THING) from error


class DeploymentFile(FileEntry):
    """deployment.json, or pipeline.json of a reduced deployment. Last here: its schema asks for `file_form`."""

    format: Count
    deployment: Deployment
    source: str = ""  # reduced: the digest of the deployment.json that it was built from
    seal: str = ""  # reduced: the digest of everything else
