"""Times of torch on a GPU: each layer, the whole network, and transfers to and from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError
from ..network import Network
from ..network.parts import subnetwork
from ..platform.profile import FrameTime, LayerTime, TransferTime
from .executors.torch_layers import torch_refusal
from .executors.torch_part import TorchNetwork, load_torch
from .statistics import call_times, median_and_spread

EXECUTOR, GPU = "torch", "gpu"
_WITHIN = 10  # runs of a layer in one recorded graph, because launching a graph takes longer than many layers
_WARM_UP = 3
_MOVED = 4 << 20  # bytes transferred to measure the rate


@dataclass(frozen=True)
class GpuTimes:
    """Times of layers by name; a layer that torch does not support has none."""

    layers: dict[str, list[LayerTime]]
    frames: tuple[FrameTime, ...]
    transfers: tuple[TransferTime, ...]


def gpu_times(network: Network, cores: Sequence[str], repeats: int, device: str = "cuda") -> GpuTimes:
    """All times on the GPU, with transfers to and from the named cores."""
    torch = load_torch(f"a profile of '{network.name}' on a GPU")
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("torch sees no GPU on this machine; profile with the executors native or onnxruntime")
    refused = {layer.name: torch_refusal(network, layer) for layer in network.layers}
    layers: dict[str, list[LayerTime]] = {layer.name: [] for layer in network.layers}
    for layer in network.layers:
        if refused[layer.name] is None:
            loaded = TorchNetwork(torch, subnetwork(network, [layer.name]), device, _WITHIN)
            seconds, spread = _measured(loaded, repeats)
            layers[layer.name].append(
                LayerTime(processor=GPU, executor=EXECUTOR, seconds=seconds / _WITHIN, spread=spread / _WITHIN)
            )
    frames: tuple[FrameTime, ...] = ()
    if not any(refused.values()):
        seconds, spread = _measured(TorchNetwork(torch, network, device), repeats)
        frames = (FrameTime(processor=GPU, executor=EXECUTOR, seconds=seconds, spread=spread),)
    return GpuTimes(layers, frames, tuple(_transfers(torch, device, cores, repeats)))


def _measured(loaded: TorchNetwork, repeats: int) -> tuple[float, float]:
    def run() -> None:
        loaded.compute()
        loaded.wait()

    return _timed(run, repeats)


def _timed(run: Callable[[], object], repeats: int) -> tuple[float, float]:
    for _ in range(_WARM_UP):
        run()
    return median_and_spread(call_times(run, repeats))


def _transfers(torch: Any, device: str, cores: Sequence[str], repeats: int) -> list[TransferTime]:
    """Transfers as in a part: from a slot to the device, and back into a slot."""
    seconds = {}
    for size in (4, _MOVED):
        slot = torch.from_numpy(np.zeros(size // 4, np.float32))
        there = torch.zeros(size // 4, device=device)

        def give(slot: Any = slot, there: Any = there) -> None:
            there.copy_(slot)
            if device == "cuda":
                torch.cuda.synchronize()

        def take(slot: Any = slot, there: Any = there) -> None:
            slot.copy_(there)

        seconds[size] = [_timed(move, repeats)[0] for move in (give, take)]
    transfers = []
    for name in cores:
        for way, (source, target) in enumerate(((name, GPU), (GPU, name))):
            latency, whole = seconds[4][way], seconds[_MOVED][way]
            rate = _MOVED / max(whole - latency, 1e-9)
            transfers.append(TransferTime(source=source, target=target, latency=latency, bytes_per_second=rate))
    return transfers
