"""The analysis of an application with scenarios: shared layers, memory, switching delays."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import asdict, dataclass
from itertools import permutations

from ..errors import InputError
from ..program import Plan
from .description import LayerAttribute
from .paper.findings import findings
from .paper.layers import LayerParameters, scenario_graph
from .paper.memory import PaperBytes, shared_bytes
from .paper.protocol import DoubledEdges, PaperTransition, transition
from .paper.supergraph import Supergraph, derive_supergraph
from .scenarios import AdaptiveApplication, AppScenario, scenario_plan


@dataclass(frozen=True)
class AdaptOutcome:
    """The application, the paper's model of it, and plans of the scenarios."""

    application: AdaptiveApplication
    plans: Mapping[str, Plan]  # of each scenario, alone in the arena
    supergraph: Supergraph
    transitions: tuple[PaperTransition, ...]
    memory: PaperBytes
    weights: PaperBytes
    findings: tuple[str, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """Assumptions, and consequences of the number of processors."""
        if self.application.file.adapt.processors > 1:
            return self.application.notes
        return (
            *self.application.notes,
            "the paper's protocol needs two processors; on one it is as slow as the naive one",
        )

    def to_dict(self) -> dict[str, object]:
        graph = self.supergraph
        return {
            "scenarios": [self._scenario(one) for one in self.application.scenarios],
            "share": [one.value for one in LayerAttribute if one in graph.share],
            "layers": [
                {
                    "name": f"l{layer.number}",
                    "captured": {
                        scenario: self.layer_name(scenario, at)
                        for scenario, places in layer.captured.items()
                        for at in places
                    },
                }
                for layer in graph.layers
            ],
            "edges": [{"name": edge.name, "bytes": edge.size, "scenarios": [*edge.sizes]} for edge in graph.edges],
            "parameters": [
                {
                    "name": one.name,
                    "layer": f"l{one.layer}",
                    "attribute": one.attribute.value,
                    "values": {scenario: value_of(value) for scenario, value in one.values.items()},
                }
                for one in graph.parameters
            ],
            "sequences": {
                scenario: [
                    {
                        "layer": f"l{step.layer}",
                        "values": {name: value_of(value) for name, value in step.values.items()},
                    }
                    for step in steps
                ]
                for scenario, steps in graph.sequences.items()
            },
            "transitions": [_transition(one) for one in self.transitions],
            "memory": asdict(self.memory),
            "weights": asdict(self.weights),
            "findings": list(self.findings),
            "notes": list(self.notes),
        }

    def layer_name(self, scenario: str, at: int) -> str:
        """A layer of a scenario, by its number in the order of execution."""
        return self.application.scenario(scenario).layers[at]

    def _scenario(self, scenario: AppScenario) -> dict[str, object]:
        return {
            "name": scenario.name,
            "network": scenario.network.name,
            "layers": len(scenario.layers),
            "macs": scenario.network.total_macs,
            "weights_bytes": scenario.network.weight_bytes,
            "peak_bytes": self.plans[scenario.name].peak_bytes,
            "frame_time": scenario.frame_time,
            "accuracy": scenario.entry.accuracy,
            "power": scenario.entry.power,
        }


def adapt_outcome(
    application: AdaptiveApplication, share: Collection[LayerAttribute] | None = None, request_at: float = 0.5
) -> AdaptOutcome:
    """The analysis of an application for a set A (the file's if None).

    Requests come at a position in the old scenario's steps: 0.5 is the middle of the first step.
    """
    for one in application.scenarios:
        if not 0 <= request_at < len(one.layers):
            raise InputError(
                f"no request comes in step {request_at:g} of '{one.name}', which has {len(one.layers)} steps; give a "
                f"position from 0 and below {min(len(each.layers) for each in application.scenarios)}"
            )
    graphs = [scenario_graph(one.name, one.network) for one in application.scenarios]
    supergraph = derive_supergraph(graphs, application.file.adapt.share if share is None else share)
    times = {one.name: tuple(one.times.values()) for one in application.scenarios}
    transitions = tuple(
        transition(supergraph, old, new, (times[old], times[new]), request_at) for old, new in permutations(times, 2)
    )
    plans: dict[str, Plan] = {}
    of_network: dict[str, Plan] = {}
    for one in application.scenarios:
        if one.network.name not in of_network:
            of_network[one.network.name] = scenario_plan(application, one)
        plans[one.name] = of_network[one.network.name]
    memory, weights = shared_bytes(graphs, [plan.peak_bytes for plan in plans.values()])
    said = findings(supergraph, transitions)
    return AdaptOutcome(application, plans, supergraph, transitions, memory, weights, said)


def value_of(value: Hashable) -> object:
    """The value of an attribute as stored in JSON."""
    match value:
        case LayerParameters():
            return list(value.names)
        case tuple():
            return [value_of(one) for one in value]
        case int() | float() | str() | None:
            return value
        case _:
            return str(value)


def _transition(one: PaperTransition) -> dict[str, object]:
    return {
        "from": one.old,
        "to": one.new,
        "X": list(one.x),
        "X_safe": list(one.safe.x),
        "naive_delay": one.naive_delay,
        "paper_delay": one.paper_delay,
        "safe_delay": one.safe.delay,
        "safe_delay_without_barrier": one.safe.delay_without_barrier,
        "hazards": [asdict(hazard) for hazard in one.hazards],
        "loses_last_step": one.loses_last_step,
        "doubled": [_doubled(choice) for choice in one.doubled],
    }


def _doubled(choice: DoubledEdges) -> dict[str, object]:
    return {
        "edges": list(choice.edges),
        "extra_bytes": choice.extra_bytes,
        "X_safe": list(choice.x),
        "safe_delay": choice.delay,
        "safe_delay_without_barrier": choice.delay_without_barrier,
        "safe_delay_without_layers": choice.delay_without_layers,
    }
