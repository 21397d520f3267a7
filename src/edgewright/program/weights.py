"""Weights of networks and their parts: digests, and the place of a part's weights in the whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np

from ..errors import InputError
from ..network import Array, Network, Region, Tensor


def run_time_constants(network: Network) -> tuple[str, ...]:
    """The constants that a layer reads, or that are outputs themselves, in order."""
    used = {name for layer in network.layers for name in layer.inputs} | set(network.outputs)
    return tuple(name for name in network.constants if name in used)


class WeightDigests:
    """Digests of arrays; an array that occurs again is hashed only once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, tuple[int, ...], tuple[int, ...], str], tuple[str, Array]] = {}

    def of(self, value: Array) -> str:
        """The digest of type, shape and values."""
        key = (value.__array_interface__["data"][0], value.shape, value.strides, value.dtype.str)
        if key not in self._known:
            kind = f"{value.dtype.str}{value.shape}".encode()
            digest = sha256(kind + np.ascontiguousarray(value).tobytes()).hexdigest()
            self._known[key] = digest, value  # kept alive: another array may not come to lie there
        return self._known[key][0]


@dataclass(frozen=True, slots=True)
class WeightOrigin:
    """A region of a constant of a whole network."""

    network: str
    constant: str
    region: Region


def weight_origins(networks: Iterable[Network], part: Network) -> Mapping[str, WeightOrigin]:
    """For each constant of a part that is a view of one of a whole network: which region of it, by where it lies."""
    wholes: dict[tuple[str, tuple[int, ...]], list[tuple[str, str, Array]]] = {}
    for network in networks:
        for name, value in network.constants.items():
            wholes.setdefault((value.dtype.str, value.strides), []).append((network.name, name, value))
    origins = {}
    for name, value in part.constants.items():
        for owner, constant, whole in wholes.get((value.dtype.str, value.strides), ()):
            if (region := _region_in(whole, value)) is not None:
                origins[name] = WeightOrigin(owner, constant, region)
                break
    return origins


def _region_in(whole: Array, piece: Array) -> Region | None:
    """The region of `whole` that lies just where `piece` does; both have the same strides."""
    ahead = _address(piece) - _address(whole)
    starts = [0] * whole.ndim
    for axis in sorted(range(whole.ndim), key=lambda axis: -whole.strides[axis]):
        if whole.strides[axis] <= 0 or ahead < 0:
            return None
        starts[axis], ahead = divmod(ahead, whole.strides[axis])
    bounds = tuple((start, start + n) for start, n in zip(starts, piece.shape, strict=True))
    region = Region(bounds)
    is_inside = not ahead and all(stop <= n for (_, stop), n in zip(bounds, whole.shape, strict=True))
    return region if is_inside and not region.is_empty else None


def _address(value: Array) -> int:
    return int(value.__array_interface__["data"][0])


def without_weights(network: Network) -> Network:
    """The network without the values of its constants, which makes it quick to store and to send."""
    return replace(network, constants=absent(network.tensors[name] for name in network.constants))


def absent(constants: Iterable[Tensor]) -> Mapping[str, Array]:
    """Placeholders for the values of these constants."""
    return {tensor.name: _Absent(tensor) for tensor in constants}  # type: ignore[misc]


class _Absent:
    """Placeholder for the values of a weight; any use raises an error."""

    def __init__(self, tensor: Tensor) -> None:
        self.shape, self.dtype = tensor.shape, tensor.dtype.numpy

    def __getitem__(self, index: object) -> Any:
        raise InputError("a plan file holds no weights; give the network it was made of as well")

    def __array__(self, *_: object, **__: object) -> Any:
        return self[...]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[...]
