"""A network's figures as plain data."""

from __future__ import annotations

from collections import Counter

from . import describe
from .network import Network


def summary(network: Network) -> dict[str, object]:
    """Inputs, outputs, layers with their sizes and work, and totals."""
    tensors = network.tensors
    return {
        "name": network.name,
        "inputs": [_interface(network, name) for name in network.inputs],
        "outputs": [_interface(network, name) for name in network.outputs],
        "layers": [
            {
                "name": layer.name,
                "operator": type(layer.op).__name__,
                "text": describe.operator(layer.op, network.shapes(layer)),
                "inputs": list(network.activations(layer)),
                "output": layer.output,
                "shape": list(tensors[layer.output].shape),
                "dtype": tensors[layer.output].dtype.value,
                "bytes": tensors[layer.output].bytes,
                "macs": network.macs(layer),
                "weight_bytes": constant_bytes(network, layer.inputs),
            }
            for layer in network.layers
        ],
        "operators": dict(Counter(type(layer.op).__name__ for layer in network.layers).most_common()),
        "macs": network.total_macs,
        "weight_bytes": network.weight_bytes,
        "notes": list(network.notes),
    }


def _interface(network: Network, name: str) -> dict[str, object]:
    tensor = network.tensors[name]
    return {"name": name, "shape": list(tensor.shape), "dtype": tensor.dtype.value, "bytes": tensor.bytes}


def constant_bytes(network: Network, names: tuple[str, ...]) -> int:
    """Bytes of those tensors that are constants."""
    return sum(network.tensors[name].bytes for name in names if name in network.constants)
