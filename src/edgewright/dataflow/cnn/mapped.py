"""A CNN on several processors as a CSDF graph: an actor for each processor, a phase for each subnet (M 3.5.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from ...errors import ModelError
from ...network import Network
from ..graph import Actor, Channel, Graph, Rates, Time, serial_loop
from .durations import Given, layer_time
from .subnets import Wiring, cut

Subnets = Mapping[str, tuple[tuple[str, ...], ...]]  # of each processor, in execution order


def subnets(network: Network, mapping: Mapping[str, str]) -> Subnets:
    """The layers of each processor's phases, given the processor of every layer."""
    _check(network, mapping)
    return cut(_wiring(network, mapping))


def mapped_csdf(
    network: Network, mapping: Mapping[str, str], *, serial: bool = True, times: Given | None = None
) -> Graph:
    """The network as its processors execute it (M Algorithm 2), cut into phases so that it cannot deadlock.

    A channel carries the elements of a tensor from the phase that computes it to the phase of a reader; within a phase
    nothing is sent, and between phases of one processor the channel is a self-loop. `times` are those of the layers on
    their processors, by default their work. `serial` gives each actor a self-loop: a processor runs one subnet at a
    time.
    """
    phases = subnets(network, mapping)
    actors = [_actor(network, processor, runs, times) for processor, runs in phases.items()]
    loops = [serial_loop(actor, "one subnet at a time") for actor in actors] if serial else []
    return Graph(network.name, tuple(actors), (*_channels(network, mapping, phases), *loops))


def _check(network: Network, mapping: Mapping[str, str]) -> None:
    if missing := [layer for layer in network.by_name if layer not in mapping]:
        raise ModelError(f"layer '{missing[0]}' is mapped to no processor; give one for every layer")
    if unknown := [layer for layer in mapping if layer not in network.by_name]:
        raise ModelError(f"'{unknown[0]}' is mapped to a processor, but network '{network.name}' has no such layer")


def _wiring(network: Network, mapping: Mapping[str, str]) -> Wiring:
    makers = network.producers
    before = {
        layer.name: frozenset(makers[name].name for name in network.activations(layer) if name in makers)
        for layer in network.layers
    }
    return Wiring(tuple(before), before, mapping)


def _actor(network: Network, processor: str, runs: tuple[tuple[str, ...], ...], times: Given | None) -> Actor:
    each: list[Time] = [sum((layer_time(network, layer, times) for layer in run), Fraction(0)) for run in runs]
    whole = tuple(int(time) if time == int(time) else time for time in each)
    return Actor(processor, len(runs), whole, note=" | ".join(", ".join(run) for run in runs))


def _channels(network: Network, mapping: Mapping[str, str], phases: Subnets) -> Iterator[Channel]:
    """One for each pair of layers in different phases joined by a tensor."""
    phase = {layer: i for runs in phases.values() for i, run in enumerate(runs) for layer in run}
    for layer in network.layers:
        tensor = network.tensors[layer.output]
        for reader in network.readers[layer.output]:
            source, target = mapping[layer.name], mapping[reader.name]
            if source == target and phase[layer.name] == phase[reader.name]:
                continue
            yield Channel(
                f"{layer.name}->{reader.name}",
                source,
                target,
                Rates.only(phase[layer.name], len(phases[source]), tensor.size),
                Rates.only(phase[reader.name], len(phases[target]), tensor.size),
                token_bytes=tensor.dtype.bytes,
                note=f"{layer.name} on {source} -> {reader.name} on {target}",
            )
