"""Names that people can read: files call tensors "117" or string together all that was fused into them."""

from __future__ import annotations

from dataclasses import replace

from ..network import Network


def name_tensors(network: Network) -> Network:
    """Tensors between layers get the name of the layer that writes them; inputs and outputs keep theirs."""
    renamed: dict[str, str] = {}
    taken = set(network.tensors)
    for layer in network.layers:
        if layer.output not in network.outputs and layer.name not in taken:
            renamed[layer.output] = layer.name
            taken.add(layer.name)
    tensors = {
        renamed.get(name, name): replace(tensor, name=renamed.get(name, name))
        for name, tensor in network.tensors.items()
    }
    layers = tuple(
        replace(
            layer,
            inputs=tuple(renamed.get(name, name) for name in layer.inputs),
            output=renamed.get(layer.output, layer.output),
        )
        for layer in network.layers
    )
    origins = {renamed.get(name, name): origin for name, origin in network.origins.items()}
    return replace(network, tensors=tensors, layers=layers, origins=origins)
