"""Networks whose weights are elsewhere: their shapes are known, their values are not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..errors import InputError
from ..network import Array, Network, Tensor


def without_weights(network: Network) -> Network:
    """The network with the values of its constants left out, so that it travels lightly."""
    return replace(network, constants=absent(network.tensors[name] for name in network.constants))


def absent(constants: Iterable[Tensor]) -> Mapping[str, Array]:
    """What stands for the values of these constants."""
    return {tensor.name: _Absent(tensor) for tensor in constants}  # type: ignore[misc]


class _Absent:
    """Stands where a weight's values would be."""

    def __init__(self, tensor: Tensor) -> None:
        self.shape, self.dtype = tensor.shape, tensor.dtype.numpy

    def __getitem__(self, index: object) -> Any:
        raise InputError("a plan file holds no weights; give the network it was made of as well")

    def __array__(self, *_: object, **__: object) -> Any:
        return self[...]

    def __getattr__(self, name: str) -> Any:
        """Whatever is asked of an array."""
        if name.startswith("__"):
            raise AttributeError(name)
        return self[...]
