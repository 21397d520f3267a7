"""Deployments in a folder: deployment.json, and each weight once, in a file that is called by its digest.

A reduced deployment is pipeline.json, beside the files of its parts. Files are untrusted: types are checked here, what
the deployment says by its judge, weights and built files by their digests.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import Damaged, InputError
from ..files import FolderMode, output_folder, read_file, write_atomic, write_together
from ..network import Array, Network, Region
from ..text import printable
from .deployment import Deployment
from .deployment_check import checked_deployment
from .weights import WeightDigests, weight_origins

FORMAT = 3  # of both files; raised whenever a reader of the old format would misread the new one
FILE, REDUCED_FILE, WEIGHTS = "deployment.json", "pipeline.json", "weights"


def save_deployment(deployment: Deployment, folder: str | Path) -> None:
    """Writes the folder: deployment.json, and all weights of its networks and parts, each once."""
    home = Path(folder)
    stored = _StoredWeights(deployment.networks)
    text = _text(deployment, stored)
    files: dict[Path, str | bytes] = {
        home / WEIGHTS / f"{digest}.npy": _npy(value) for digest, value in stored.values.items()
    }
    files[home / FILE] = text
    with output_folder(home / WEIGHTS, FolderMode.UNDO):
        write_together(files)


def save_alone(deployment: Deployment, path: Path) -> None:
    """Writes one file without weights, which it names by their digests; the model files hold them."""
    write_atomic(path, _text(deployment, _StoredWeights(deployment.networks)))


def _text(deployment: Deployment, stored: _StoredWeights) -> str:
    from .deployment_schema import DeploymentFile  # pydantic takes a while to load

    file = DeploymentFile.model_construct(format=FORMAT, deployment=deployment)
    return file.model_dump_json(indent=1, exclude={"source", "seal"}, context=stored) + "\n"


def load_deployment(folder: str | Path) -> Deployment:
    """The deployment in a folder, after the judge has checked it."""
    home = Path(folder)
    return _loaded(home / FILE, "give the folder of a deployment", _WeightShelf(home / WEIGHTS), with_plans=False)


def load_alone(path: Path, networks: Iterable[Network]) -> Deployment:
    """The deployment of one file, judged with all its plans; weights are those of these networks."""
    return _loaded(path, "give a file that `edgewright app -o` wrote", _OwnWeights(networks), with_plans=True)


def _loaded(path: Path, hint: str, weights: _OwnWeights | _WeightShelf, with_plans: bool) -> Deployment:
    from .deployment_schema import THING, DeploymentFile
    from .plan_file import validated

    content = read_file(path, hint)
    try:
        file = validated(content, DeploymentFile, FORMAT, THING, weights)
        return checked_deployment(file.deployment, with_plans=with_plans)
    except InputError as error:
        error.add_note(f"read from {path}")
        raise


def save_reduced(deployment: Deployment, folder: Path, *, is_beside_source: bool = False) -> None:
    """Writes a reduced deployment, sealed; with `is_beside_source`, bound to the deployment.json in the folder."""
    from .deployment_schema import DeploymentFile

    source = digest_of(folder / FILE) if is_beside_source else ""
    file = DeploymentFile.model_construct(format=FORMAT, deployment=deployment, source=source)
    write_atomic(folder / REDUCED_FILE, json.dumps(sealed(file.model_dump(mode="json")), indent=1) + "\n")


def sealed(data: dict[str, Any]) -> dict[str, Any]:
    """The data with their digest, since native code must get exactly what it was compiled for."""
    rest = {key: value for key, value in data.items() if key != "seal"}
    return {**rest, "seal": sha256(json.dumps(rest).encode()).hexdigest()}


def load_reduced(folder: Path) -> Deployment:
    """The reduced deployment in a folder, judged.

    The deployment.json that it was built from may be missing; one that was changed since is refused.
    """
    from .deployment_schema import THING, DeploymentFile
    from .plan_file import validated

    path, source = folder / REDUCED_FILE, folder / FILE
    content = read_file(path, "give a folder that `edgewright map -o` wrote")
    try:
        file = validated(content, DeploymentFile, FORMAT, THING)
        if sealed(data := json.loads(content)) != data:
            raise Damaged("something in it was changed", THING)
        if missing := [part.name for part in file.deployment.parts if part.built is None]:
            raise Damaged(f"nothing was built for part '{printable(missing[0])}'", THING)
        checked_deployment(file.deployment)
    except InputError as error:
        error.add_note(f"read from {path}")
        raise
    if file.source and source.exists() and digest_of(source) != file.source:
        raise InputError(f"'{source}' is damaged, or not what '{REDUCED_FILE}' was built from; map the model again")
    return file.deployment


def digest_of(path: Path) -> str:
    """The digest of a file, which is read in pieces: a library that is checked takes no memory beside its mapping."""
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
        raise InputError(
            f"cannot read '{path}': {getattr(error, 'strerror', None) or error}; build the pipeline again"
        ) from error


class _StoredWeights:
    """The weights stored so far: those of the whole networks, and those that only parts have."""

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


class _OwnWeights:
    """The weights of networks that are loaded."""

    def __init__(self, networks: Iterable[Network]) -> None:
        digests = WeightDigests()
        self._known = {digests.of(value): value for network in networks for value in network.constants.values()}

    def weight(self, digest: str, region: Region | None) -> Array:
        if digest not in self._known:
            raise InputError("it was made for other weights than the models have; plan again")
        value = self._known[digest]
        return value if region is None else _inside(value, region, digest)


class _WeightShelf:
    """The folder of weights. Each file is read once; parts get views of the whole arrays."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, Array] = {}

    def weight(self, digest: str, region: Region | None) -> Array:
        if digest not in self._known:
            self._known[digest] = self._read(digest)
        value = self._known[digest]
        if region is None:
            return value
        return _inside(value, region, digest)

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


def _inside(value: Array, region: Region, digest: str) -> Array:
    if len(region.bounds) != value.ndim or region not in Region.whole(value.shape) or region.is_empty:
        raise Damaged(f"{region} is not inside the weight {digest[:12]}", "deployment")
    return value[region.slices]


def _npy(value: Array) -> bytes:
    file = io.BytesIO()
    np.save(file, np.asarray(value, order="C"), allow_pickle=False)
    return file.getvalue()
