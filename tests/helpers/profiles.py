"""Profiles made up for tests: times follow from the work of each layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edgewright.network import Network
from edgewright.platform.profile import LayerProfile, LayerTime, Profile, ProfiledProcessor, TransferTime
from edgewright.program import structure_digest

GPU = "gpu"


def work(network: Network, layer) -> float:
    """Seconds of a layer on a slow core."""
    return 1e-6 + network.macs(layer) / 1e8 + network.tensors[layer.output].size / 1e8


def made_up_profile(
    network: Network,
    board: str = "this",
    cores: Mapping[str, int] | None = None,
    lanes: Sequence[int] = (1,),
    gpu: float = 0.0,
) -> Profile:
    """Equal cores of each name; with `gpu`, one that is so many times faster than a core."""
    pools = cores or {"cpu": 2}
    layers = []
    for layer in network.layers:
        seconds = work(network, layer)
        times = [
            LayerTime(processor=name, lanes=count, seconds=seconds / count)
            for name, there in pools.items()
            for count in lanes
            if count <= there
        ]
        if gpu:
            times.append(LayerTime(processor=GPU, executor="torch", seconds=seconds / gpu))
        layers.append(LayerProfile(name=layer.name, operator="", macs=network.macs(layer), bytes=0, times=tuple(times)))
    processors = [ProfiledProcessor(name=n, kind="core", cores=tuple(range(c))) for n, c in pools.items()]
    transfers = []
    if gpu:
        processors.append(ProfiledProcessor(name=GPU, kind=GPU, cores=(0,)))
        transfers = [
            TransferTime(source=a, target=b, latency=1e-6, bytes_per_second=1e10)
            for name in pools
            for a, b in ((name, GPU), (GPU, name))
        ]
    return Profile(
        board=board,
        machine=None,
        model=network.name,
        model_digest=structure_digest(network),
        processors=tuple(processors),
        layers=tuple(layers),
        transfers=tuple(transfers),
    )
