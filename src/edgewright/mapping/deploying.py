"""Mappings as deployments: a part for each stage, a worker for each of its replicas, FIFOs with the slots they need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ..errors import InputError
from ..memory import plan as make_plan
from ..network import Network, Region
from ..network.parts import TensorRegion
from ..platform.profile import NATIVE
from ..program import Plan
from ..program.deployment import OUTSIDE, Deployment, Fifo, Part, Prediction, Worker
from .answer import MappingAnswer
from .mapped import MappedStage
from .problem import MappingProblem

MEMORY = "ram"
PlanPart = Callable[[Network, int], Plan]  # of a part, for so many lanes


def plan_part(network: Network, lanes: int) -> Plan:
    """Layer by layer: what crosses the part's border comes and goes in slots."""
    if lanes > 1:
        raise InputError(f"native code on {lanes} lanes is not built here; ask for --lanes 1")
    return make_plan(network, alignment=64, explain=False)


def deployment_of(answer: MappingAnswer, network: Network, device: str, plan: PlanPart = plan_part) -> Deployment:
    """The mapping with a plan for each part that our own code executes."""
    stages = answer.mapping.stages
    parts = {
        (number, place): _part(network, _name(number, place, stage), stage, layers, plan)
        for number, stage in enumerate(stages)
        for place, layers in enumerate(stage.parts)
    }
    named = {key: part.name for key, part in parts.items()}
    fifos = tuple(
        Fifo(
            _whole(network, fifo.tensor),
            OUTSIDE if fifo.source is None else named[fifo.source],
            (*(named[reader] for reader in fifo.readers), *((OUTSIDE,) if fifo.is_output else ())),
            fifo.slots,
            MEMORY,
        )
        for fifo in answer.timing.fifos
    )
    workers = tuple(_workers(answer.mapping.problem, stages, device))
    draft = Deployment((network,), tuple(parts.values()), workers, fifos, {})
    return Deployment(
        draft.networks, draft.parts, workers, fifos, _arenas(draft, device), tuple(_predictions(answer))
    )


def _name(number: int, place: int, stage: MappedStage) -> str:
    return f"stage{number + 1}" + (f".{place + 1}" if len(stage.parts) > 1 else "")


def _part(network: Network, name: str, stage: MappedStage, layers: tuple[int, ...], plan: PlanPart) -> Part:
    own = network.subnetwork([network.layers[index].name for index in layers])
    made = plan(own, stage.execution.lanes) if stage.execution.executor == NATIVE else None
    inputs = {name: _whole(network, name) for name in own.inputs}
    outputs = {name: _whole(network, name) for name in own.outputs}
    return Part(name, own, made, inputs, outputs)


def _whole(network: Network, name: str) -> TensorRegion:
    return TensorRegion(network.name, name, Region.whole(network.tensors[name].shape))


def _workers(problem: MappingProblem, stages: tuple[MappedStage, ...], device: str) -> Iterator[Worker]:
    """A worker for each replica, with cores of its own."""
    free = {pool.name: list(pool.numbers or range(pool.cores)) for pool in problem.pools}
    for number, stage in enumerate(stages):
        parts = tuple(_name(number, place, stage) for place in range(len(stage.parts)))
        execution = stage.execution
        for replica in range(stage.replicas):
            taken = [free[execution.pool].pop(0) for _ in range(execution.lanes)]
            cores = [free[execution.driver].pop(0)] if execution.driver else taken
            name = f"stage{number + 1}" + (f"-{replica + 1}" if stage.replicas > 1 else "")
            yield Worker(name, device, execution.pool, tuple(cores), parts, (replica, stage.replicas))


def _arenas(draft: Deployment, device: str) -> Mapping[tuple[str, str], int]:
    """Of each memory: the largest part of every worker, and all slots."""
    found: dict[tuple[str, str], int] = {}
    for worker in draft.workers:
        plans = [part.plan for name in worker.parts if (part := draft.part_named[name]).plan]
        for memory in {memory for plan in plans if plan for memory in plan.arenas}:
            most = max(plan.arenas.get(memory, 0) for plan in plans if plan)
            found[device, memory] = found.get((device, memory), 0) + most
    for fifo in draft.fifos:
        found[device, fifo.memory] = found.get((device, fifo.memory), 0) + fifo.slots * draft.slot_bytes(fifo)
    return found


def _predictions(answer: MappingAnswer) -> Iterator[Prediction]:
    how = "the dataflow graph of the mapping, from the profile's layer times"
    yield Prediction("throughput", answer.throughput, "frames/s", how)
    yield Prediction("latency", answer.latency, "s", how)
    yield Prediction(
        "throughput bound", answer.bound, "frames/s", "a linear program over the profile's layer times"
    )
    if answer.energy is not None:
        yield Prediction("energy", answer.energy, "J/frame", "an estimate from the board's power and utilisation")
