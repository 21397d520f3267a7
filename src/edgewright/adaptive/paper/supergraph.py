"""The supergraph of scenarios, its control parameters and sequences (M 5.7, Algorithm 5), for any set A.

Algorithm 5 is corrected where it is printed wrongly: layers are numbered from 1, an edge is compared source with source
and target with target, and a supergraph layer captures at most one layer of each scenario. `is_literal` drops the last
correction, to show its purpose.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

from ..description import LayerAttribute
from .layers import AttributedLayer, ScenarioGraph

NO_SHARE: frozenset[LayerAttribute] = frozenset()
IO_SHARE = frozenset((LayerAttribute.INPUTS, LayerAttribute.OUTPUTS))
IO_PAR_SHARE = IO_SHARE | {LayerAttribute.PARAMETERS}
# I and O come last, as the paper numbers the parameters of l4 in table 5.1.
IN_ORDER = sorted(LayerAttribute, key=lambda one: (one in IO_SHARE, [*LayerAttribute].index(one)))

Ends = tuple[int, int]  # of an edge: the numbers of its layers


@dataclass(frozen=True)
class SuperLayer:
    number: int  # from 1
    captured: Mapping[str, tuple[int, ...]]  # scenario -> its layers, in the order of execution


@dataclass(frozen=True)
class SuperEdge:
    name: str
    ends: Ends
    sizes: Mapping[str, int]  # scenario -> bytes of its edge

    @property
    def size(self) -> int:
        """Bytes of the buffer, which serves every scenario that uses the edge."""
        return max(self.sizes.values())


@dataclass(frozen=True)
class ControlParameter:
    """An attribute of a layer whose value the control node sets for each scenario."""

    name: str
    layer: int
    attribute: LayerAttribute
    values: Mapping[str, Hashable]  # scenario -> value; for I and O the names of edges


@dataclass(frozen=True)
class ControlStep:
    """A step of a scenario: the layer to execute, its parameter values, and the edges it touches."""

    layer: int
    values: Mapping[str, Hashable]
    reads: frozenset[str]
    writes: frozenset[str]


@dataclass(frozen=True)
class Supergraph:
    """SBRS(L, E, c, E_c): the control node holds the sequences."""

    scenarios: tuple[ScenarioGraph, ...]
    share: frozenset[LayerAttribute]
    layers: tuple[SuperLayer, ...]
    edges: tuple[SuperEdge, ...]
    parameters: tuple[ControlParameter, ...]
    sequences: Mapping[str, tuple[ControlStep, ...]]

    @property
    def control_edges(self) -> tuple[str, ...]:
        """The edges from the control node to each layer."""
        return tuple(f"ec{layer.number}" for layer in self.layers)

    @property
    def size(self) -> int:
        """Bytes if every edge has a separate buffer."""
        return sum(edge.size for edge in self.edges)

    @property
    def weight_bytes(self) -> int:
        """Bytes of parameters; those that a layer has in several scenarios are stored once."""
        by_name = {graph.name: graph for graph in self.scenarios}
        stored = {
            (layer.number, digest): size
            for layer in self.layers
            for scenario, places in layer.captured.items()
            for at in places
            for digest, size in by_name[scenario].layers[at].parameters.blocks.items()
        }
        return sum(stored.values())


def derive_supergraph(
    scenarios: Sequence[ScenarioGraph], share: Collection[LayerAttribute], is_literal: bool = False
) -> Supergraph:
    """Algorithm 5: every layer is captured by the first one that equals it outside `share`, or by a new one."""
    kinds = _kinds(scenarios, frozenset(share))
    captured: list[dict[str, tuple[int, ...]]] = []
    home: dict[tuple[str, int], int] = {}
    by_kind: dict[int, list[int]] = {}
    for graph in scenarios:
        for at in range(len(graph.layers)):
            alike = by_kind.setdefault(kinds[graph.name, at], [])
            found = next((one for one in alike if is_literal or graph.name not in captured[one]), None)
            if found is None:
                found = len(captured)
                captured.append({})
                alike.append(found)
            captured[found][graph.name] = (*captured[found].get(graph.name, ()), at)
            home[graph.name, at] = found
    sizes: dict[Ends, dict[str, int]] = {}
    for graph in scenarios:
        for edge in graph.edges:
            ends = home[graph.name, edge.source], home[graph.name, edge.target]
            known = sizes.setdefault(ends, {})
            known[graph.name] = max(known.get(graph.name, 0), edge.size)
    number = _numbers(len(captured), sizes)
    layers = sorted((SuperLayer(number[at], scenario) for at, scenario in enumerate(captured)), key=lambda x: x.number)
    renumbered = {(number[a], number[b]): known for (a, b), known in sizes.items()}
    edges = tuple(SuperEdge(_edge_name(ends, len(layers)), ends, renumbered[ends]) for ends in sorted(renumbered))
    bare = Supergraph(tuple(scenarios), frozenset(share), tuple(layers), edges, (), {})
    return _with_control(bare, {place: number[at] for place, at in home.items()})


def _kinds(scenarios: Sequence[ScenarioGraph], share: frozenset[LayerAttribute]) -> Mapping[tuple[str, int], int]:
    """Layers of the same kind may share one (eq. 5.1).

    If I or O must be equal, so must be the layers at the other ends of these edges, and so on: kinds are refined until
    all differences are separated.
    """
    compared = [one for one in IN_ORDER if one not in share and one not in IO_SHARE]
    places = [(graph, at) for graph in scenarios for at in range(len(graph.layers))]
    kinds = _numbered(
        {(graph.name, at): tuple(_attribute(graph.layers[at], one) for one in compared) for graph, at in places}
    )
    sources: dict[tuple[str, int], list[tuple[str, int]]] = {(graph.name, at): [] for graph, at in places}
    targets: dict[tuple[str, int], list[tuple[str, int]]] = {place: [] for place in sources}
    for graph in scenarios:
        for edge in graph.edges:
            sources[graph.name, edge.target].append((graph.name, edge.source))
            targets[graph.name, edge.source].append((graph.name, edge.target))
    while not share >= IO_SHARE:
        finer = _numbered(
            {
                place: (
                    kind,
                    () if LayerAttribute.INPUTS in share else tuple(kinds[one] for one in sources[place]),
                    () if LayerAttribute.OUTPUTS in share else tuple(sorted(kinds[one] for one in targets[place])),
                )
                for place, kind in kinds.items()
            }
        )
        if len({*finer.values()}) == len({*kinds.values()}):
            break
        kinds = finer
    return kinds


def _attribute(layer: AttributedLayer, attribute: LayerAttribute) -> Hashable:
    return layer.parameters if attribute is LayerAttribute.PARAMETERS else layer.attributes[attribute]


def _numbered(values: Mapping[tuple[str, int], Hashable]) -> dict[tuple[str, int], int]:
    """A small number for each distinct value."""
    known: dict[Hashable, int] = {}
    return {place: known.setdefault(value, len(known)) for place, value in values.items()}


def _numbers(count: int, edges: Collection[Ends]) -> list[int]:
    """The number of each layer, from 1: sources before targets if possible, else in order of capture."""
    waiting = [0] * count
    for source, target in edges:
        waiting[target] += source != target
    ready = [at for at in range(count) if not waiting[at]]
    heapify(ready)
    number: dict[int, int] = {}
    while len(number) < count:
        # A cycle arises if scenarios run the same layers in different orders; it is entered at the earliest layer.
        at = heappop(ready) if ready else next(at for at in range(count) if at not in number)
        if at in number:
            continue
        number[at] = len(number) + 1
        for source, target in edges:
            if source == at and target != at and target not in number:
                waiting[target] -= 1
                if not waiting[target]:
                    heappush(ready, target)
    return [number[at] for at in range(count)]


def _edge_name(ends: Ends, count: int) -> str:
    return f"e{ends[0]}{ends[1]}" if count < 10 else f"e{ends[0]}_{ends[1]}"


def _with_control(graph: Supergraph, number: Mapping[tuple[str, int], int]) -> Supergraph:
    """The supergraph with its control parameters (lines 16 to 23) and sequences (lines 24 to 39)."""
    names = {edge.ends: edge.name for edge in graph.edges}
    reads: dict[tuple[str, int], tuple[str, ...]] = dict.fromkeys(number, ())
    writes = dict(reads)
    for scenario in graph.scenarios:
        for edge in scenario.edges:
            source, target = (scenario.name, edge.source), (scenario.name, edge.target)
            name = names[number[source], number[target]]
            reads[target] += (name,)
            writes[source] += (name,)

    def value(scenario: ScenarioGraph, at: int, attribute: LayerAttribute) -> Hashable:
        match attribute:
            case LayerAttribute.INPUTS:
                return reads[scenario.name, at]
            case LayerAttribute.OUTPUTS:
                return tuple(sorted(writes[scenario.name, at]))
            case _:
                return _attribute(scenario.layers[at], attribute)

    by_name = {scenario.name: scenario for scenario in graph.scenarios}
    parameters: list[ControlParameter] = []
    for layer in graph.layers:
        places = [(name, at) for name, captured in layer.captured.items() for at in captured]
        for attribute in IN_ORDER:
            values = {name: value(by_name[name], at, attribute) for name, at in places}
            if len({value(by_name[name], at, attribute) for name, at in places}) > 1:
                parameters.append(ControlParameter(f"p{len(parameters) + 1}", layer.number, attribute, values))
    of_layer: dict[int, list[ControlParameter]] = {}
    for parameter in parameters:
        of_layer.setdefault(parameter.layer, []).append(parameter)
    sequences = {
        scenario.name: tuple(
            ControlStep(
                number[scenario.name, at],
                {one.name: value(scenario, at, one.attribute) for one in of_layer.get(number[scenario.name, at], ())},
                frozenset(reads[scenario.name, at]),
                frozenset(writes[scenario.name, at]),
            )
            for at in range(len(scenario.layers))
        )
        for scenario in graph.scenarios
    }
    return replace(graph, parameters=tuple(parameters), sequences=sequences)
