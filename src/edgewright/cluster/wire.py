"""Real numbers sent with 16 bits: how many bytes that leaves, and what it changes in the results.

Partial sums are sent as they are: they are added up before anything is rounded.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..network import Array, DType, Network, random_inputs
from ..network.kernels import run_layer
from ..program.deployment import OUTSIDE, Deployment, Fifo

FLOAT16_SHARE = 0.5
TRIALS = 3  # random inputs


def wire_bytes(deployment: Deployment, share: float) -> Callable[[Fifo], int]:
    """Bytes that a FIFO's frame has on a link, where real numbers take this share of theirs."""

    def size(fifo: Fifo) -> int:
        tensor = deployment.tensor(fifo)
        is_short = tensor.dtype is DType.FLOAT32 and fifo.what.share is None
        return round(tensor.bytes * share) if is_short else tensor.bytes

    return size


def float16_error(deployment: Deployment, gateway: str) -> float:
    """The largest change of any output, as a share of the largest number in it, on random inputs.

    All readers get what is sent with 16 bits, also those on the device that has the exact numbers.
    """
    (network,) = deployment.networks
    sent = _sent_tensors(deployment, gateway)
    worst = 0.0
    for seed in range(TRIALS):
        given = random_inputs(network, seed)
        exact, rounded = _outputs(network, given, set()), _outputs(network, given, sent)
        for name, value in exact.items():
            most = float(np.max(np.abs(value))) if value.size else 0.0
            if most:
                worst = max(worst, float(np.max(np.abs(value - rounded[name]))) / most)
    return worst


def _sent_tensors(deployment: Deployment, gateway: str) -> set[str]:
    """The tensors of which regions cross a link."""
    found = set()
    for fifo in deployment.fifos:
        devices = {*deployment.devices_of(fifo), *([gateway] if OUTSIDE in fifo.ends else [])}
        if len(devices) > 1 and fifo.what.share is None:
            found.add(fifo.what.tensor)
    return found


def _outputs(network: Network, given: dict[str, Array], short: set[str]) -> dict[str, Array]:
    values: dict[str, Array] = dict(network.constants) | given
    for name in short & set(given):
        values[name] = _rounded(values[name])
    last_use = {name: number for number, layer in enumerate(network.layers) for name in layer.inputs}
    for number, layer in enumerate(network.layers):
        made = run_layer(network, layer, values)
        values[layer.output] = _rounded(made) if layer.output in short else made
        for name in set(layer.inputs) - {*network.outputs, *network.constants}:
            if last_use[name] == number:
                values.pop(name, None)
    return {name: values[name] for name in network.outputs}


def _rounded(value: Array) -> Array:
    return value.astype(np.float16).astype(np.float32) if value.dtype == np.float32 else value
