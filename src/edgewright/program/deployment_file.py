"""Deployments in a folder: deployment.json, and each weight once, in a file that is called by its digest.

Files are untrusted: types are checked here, what the deployment says by its judge, weights by their digests.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import Damaged, InputError
from ..files import made_folder, read_file, write_together
from ..network import Array, Network, Region
from ..network.parts import TensorRegion
from ..text import printable
from .codec import network_to_dict, plan_to_dict
from .deployment import Deployment, Fifo, Prediction, Reader, Relation, Worker
from .deployment_check import checked_deployment
from .weights import WeightDigests, weight_origins

FORMAT = 2  # of deployment.json; raised whenever a reader of the old format would misread the new one
FILE, WEIGHTS = "deployment.json", "weights"


def save_deployment(deployment: Deployment, folder: str | Path) -> None:
    """Writes the folder: what deployments say, and all weights of their networks and parts, each once."""
    home = Path(folder)
    stored = _StoredWeights(deployment.networks)
    data = deployment_to_dict(deployment, stored)
    files: dict[Path, str | bytes] = {
        home / WEIGHTS / f"{digest}.npy": _npy(value) for digest, value in stored.values.items()
    }
    files[home / FILE] = json.dumps(data, indent=1) + "\n"
    with made_folder(home / WEIGHTS):
        write_together(files)


def load_deployment(folder: str | Path) -> Deployment:
    """The deployment in a folder, judged before anybody relies on it."""
    from .deployment_entries import DeploymentFile  # pydantic takes a while to load
    from .plan_file import validated

    home = Path(folder)
    content = read_file(home / FILE, "give the folder of a deployment")
    try:
        file = validated(content, DeploymentFile, FORMAT, "deployment")
        return checked_deployment(file.build(_WeightShelf(home / WEIGHTS).weight), with_plans=False)
    except InputError as error:
        error.add_note(f"read from {home}")
        raise


def deployment_to_dict(deployment: Deployment, stored: _StoredWeights) -> dict[str, Any]:
    """The deployment as plain JSON data; weights go into `stored`, and are named here."""
    return {
        "format": FORMAT,
        "networks": [_network(network, stored) for network in deployment.networks],
        "parts": [
            {
                "name": part.name,
                "network": _network(part.network, stored),
                "plan": plan_to_dict(part.plan) if part.plan else None,
                "inputs": {own: _region(what) for own, what in part.inputs.items()},
                "outputs": {own: _region(what) for own, what in part.outputs.items()},
                **({} if part.plan else {"runtime": part.runtime}),
            }
            for part in deployment.parts
        ],
        "workers": [_fields(worker) for worker in deployment.workers],
        "fifos": [
            {**_fields(fifo), "what": _region(fifo.what), "readers": [_fields(reader) for reader in fifo.readers]}
            for fifo in deployment.fifos
        ],
        "arenas": [
            {
                "device": device,
                "memory": memory,
                "bytes": layout.bytes,
                "workers": dict(layout.workers),
                "slots": [{"what": _region(what), "at": at} for what, at in layout.slots.items()],
                "buffers": dict(layout.buffers),
            }
            for (device, memory), layout in deployment.arenas.items()
        ],
        "predictions": [_fields(prediction) for prediction in deployment.predictions],
        "relations": [_relation(relation) for relation in deployment.relations],
    }


def _relation(relation: Relation) -> dict[str, Any]:
    points = relation.points
    places = {"after": sorted(points.after), "rows": sorted(points.rows)} if points is not None else None
    return {"kind": relation.kind.value, "parts": relation.parts, "points": places}


def _fields(value: Worker | Fifo | Prediction | Reader) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _region(what: TensorRegion) -> dict[str, Any]:
    share = {"share": list(map(list, what.share.bounds))} if what.share is not None else {}
    bounds = list(map(list, what.region.bounds))
    return {"network": what.network, "tensor": what.tensor, "region": bounds, **share}


def _network(network: Network, stored: _StoredWeights) -> dict[str, Any]:
    return {**network_to_dict(network), "weights": dict(stored.named(network))}


class _StoredWeights:
    """The weights that are stored so far: those of the whole networks, and what parts have that is not in those."""

    def __init__(self, networks: tuple[Network, ...]) -> None:
        self.networks = {network.name: network for network in networks}
        self.values: dict[str, Array] = {}
        self._digests = WeightDigests()

    def named(self, network: Network) -> Iterator[tuple[str, dict[str, Any]]]:
        """For each constant of a network the file that holds it, and which region of what is there."""
        origins = weight_origins(self.networks.values(), network)
        for name, value in network.constants.items():
            origin = origins.get(name)
            if origin is None:
                yield name, {"digest": self._kept(value)}
                continue
            whole = self.networks[origin.network].constants[origin.constant]
            is_whole = origin.region == Region.whole(whole.shape)
            region = {} if is_whole else {"region": list(map(list, origin.region.bounds))}
            yield name, {"digest": self._kept(whole), **region}

    def _kept(self, value: Array) -> str:
        digest = self._digests.of(value)
        self.values.setdefault(digest, value)
        return digest


class _WeightShelf:
    """The folder of weights, each read once: parts look into the arrays of the whole."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, Array] = {}

    def weight(self, digest: str, region: Region | None) -> Array:
        if digest not in self._known:
            self._known[digest] = self._read(digest)
        value = self._known[digest]
        if region is None:
            return value
        if len(region.bounds) != value.ndim or region not in Region.whole(value.shape) or region.is_empty:
            raise Damaged(f"{region} is not inside the weight {digest[:12]}", "deployment")
        return value[region.slices]

    def _read(self, digest: str) -> Array:
        if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
            raise Damaged(f"'{printable(digest)[:40]}' is no digest of a weight", "deployment")
        path = self.folder / f"{digest}.npy"
        try:
            value: Array = np.lib.format.open_memmap(path, mode="r")
        except OSError as error:
            raise InputError(f"cannot read the weight '{path}': {error.strerror or error}") from None
        except Exception:  # numpy reads the header as Python: anything may come of a damaged one
            raise Damaged(f"'{path}' is no array of numpy", "deployment") from None
        if WeightDigests().of(value) != digest:
            raise Damaged(f"the weights in '{path}' are not those that its name says", "deployment")
        return value


def _npy(value: Array) -> bytes:
    file = io.BytesIO()
    np.save(file, np.asarray(value, order="C"), allow_pickle=False)
    return file.getvalue()
