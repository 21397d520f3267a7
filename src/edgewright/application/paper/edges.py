"""The application as a tuple of the paper (M 6.4): edges with their sizes, partitions, and lifetimes of edges.

Layers are those of the network, and its inputs and outputs; layers that only rename a tensor are left out. An edge is
in use from the first step of its producer to the last step of its consumer, inclusive.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from ...dataflow import cnn_to_csdf, minimum_buffers
from ...dataflow import phases as by_rows
from ...dataflow.cnn.counts import input_actors, output_actors
from ...network import Network
from ...network.operators import Reshape
from ...program.steps import row_count
from ..draft import Application, partition


@dataclass(frozen=True, slots=True)
class PaperEdge:
    """Data passed from one layer to another; `first` and `last` are steps of its clock."""

    name: str
    network: str
    partition: int
    size: int
    first: int
    last: int
    is_crossing: bool = False


@dataclass(frozen=True)
class PaperNetwork:
    """One CNN of the application with its partitions. Pipelined partitions have separate clocks, others share one."""

    name: str
    network: Network
    partitions: tuple[tuple[str, ...], ...]
    is_pipelined: bool

    @cached_property
    def genes(self) -> tuple[str, ...]:
        """What may run by parts: inputs, layers that execute something, outputs."""
        return tuple(name for name in by_rows(self.network) if name not in self.free)

    @cached_property
    def free(self) -> frozenset[str]:
        return frozenset(layer.name for layer in self.network.layers if isinstance(layer.op, Reshape))

    def phases(self, by_parts: Collection[str]) -> dict[str, int]:
        """The number of phases of each gene: one, or as in Algorithm 3."""
        outputs = {actor: tensor for tensor, actor in output_actors(self.network).items()}
        phases = {}
        for name, count in by_rows(self.network).items():
            rows = row_count(self.network.tensors[outputs[name]].shape) if name in outputs else count
            phases[name] = rows if name in by_parts else 1
        return phases

    def edges(self, by_parts: frozenset[str] = frozenset()) -> tuple[PaperEdge, ...]:
        """Every edge with its size, if these layers run by parts."""
        if not self.is_pipelined:
            return tuple(_LayerSequence(self, self.network, 0, self._homes()).edges(by_parts))
        edges: list[PaperEdge] = []
        for number, layers in enumerate(self.partitions):
            part = partition(self.network, self.partitions, number).network
            edges += _LayerSequence(self, part, number, dict.fromkeys(layers, number)).edges(by_parts)
            edges += self._crossing(number, set(layers))
        return tuple(edges)

    def _homes(self) -> Mapping[str, int]:
        return {layer: number for number, layers in enumerate(self.partitions) for layer in layers}

    def _crossing(self, number: int, own: set[str]) -> Iterator[PaperEdge]:
        """Edges out of a partition: one buffer for each frame that may be in flight."""
        homes = self._homes()
        for layer in self.network.layers:
            if layer.name not in own or layer.name in self.free:
                continue
            for _, target in _targets(self.network, layer.output, self.free):
                if homes[target] != number:
                    size = self.network.tensors[layer.output].bytes
                    for slot in range(homes[target] - number + 1):
                        name = f"{self.name}:{layer.name}->{target}({slot + 1})"
                        yield PaperEdge(name, self.name, number, size, 0, 0, is_crossing=True)


@dataclass(frozen=True)
class PaperApplication:
    """The networks, and which of them run in parallel."""

    networks: tuple[PaperNetwork, ...]
    parallel: frozenset[frozenset[str]]

    def edges(self, by_parts: Mapping[str, frozenset[str]]) -> tuple[PaperEdge, ...]:
        return tuple(edge for one in self.networks for edge in one.edges(by_parts.get(one.name, frozenset())))

    def meet(self, x: PaperEdge, y: PaperEdge) -> bool:
        """Whether two edges may be in use together. Partitions of one CNN that take turns share one clock."""
        if x.network != y.network:
            return frozenset((x.network, y.network)) in self.parallel
        if next(one for one in self.networks if one.name == x.network).is_pipelined and (
            x.partition != y.partition or x.is_crossing or y.is_crossing
        ):
            return True
        return x.first <= y.last and y.first <= x.last


def paper_application(application: Application) -> PaperApplication:
    """The tuple of an application."""
    deployment = application.deployment
    networks = tuple(
        PaperNetwork(name, network, application.partitions[name], application.is_pipelined(name))
        for name, network in application.networks.items()
    )
    parallel = frozenset(
        frozenset((a.owner, b.owner))
        for a, b in combinations(deployment.parts, 2)
        if a.owner != b.owner and deployment.are_parallel(a.name, b.name)
    )
    return PaperApplication(networks, parallel)


@dataclass(frozen=True)
class _LayerSequence:
    """Layers in one schedule: a network, or a partition of a pipeline."""

    owner: PaperNetwork
    network: Network
    number: int
    homes: Mapping[str, int]

    def edges(self, by_parts: frozenset[str]) -> Iterator[PaperEdge]:
        own = by_rows(self.network)
        ends = {*self.owner.network.inputs, *self.owner.network.outputs}
        wanted = self.owner.phases(by_parts)
        counts = {name: wanted.get(name, 1) if name in self.owner.genes else 1 for name in own}
        graph = cnn_to_csdf(self.network, counts)
        buffers = minimum_buffers(graph, "bytes")
        order = list(own)
        if any(count > 1 for count in counts.values()):
            order = [name for name, times in buffers.schedule.again for _ in range(times)]
        order = [name for name in order if name not in self.owner.free]
        first = {name: order.index(name) for name in set(order)}
        last = {name: len(order) - 1 - order[::-1].index(name) for name in set(order)}
        tokens = graph.channel
        inputs = input_actors(self.network)
        taken = {name: actor for name, actor in output_actors(self.network).items() if name in ends}
        made = {**inputs, **{layer.output: layer.name for layer in self.network.layers}}
        for tensor, source in made.items():
            if source in self.owner.free or (tensor in inputs and tensor not in ends):
                continue  # input from another partition is counted there
            home = self.homes.get(source, self.number)
            for hop, target in _targets(self.network, tensor, self.owner.free, taken):
                channel = tokens[f"{source}->{hop}"]
                size = buffers.capacities[channel.name] * channel.token_bytes
                name = f"{self.owner.name}:{source}->{target}"
                yield PaperEdge(name, self.owner.name, home, size, first[source], last[target])


def _targets(
    network: Network, tensor: str, free: Collection[str], outputs: Mapping[str, str] | None = None
) -> Iterator[tuple[str, str]]:
    """(the actor that reads the tensor, the one that finally uses it): free layers in between pass it on.

    `outputs` are the actors that take outputs, if these count.
    """
    for reader in network.readers[tensor]:
        if reader.name in free:
            for _, target in _targets(network, reader.output, free, outputs):
                yield reader.name, target
        else:
            yield reader.name, reader.name
    if outputs and tensor in outputs:
        yield outputs[tensor], outputs[tensor]
