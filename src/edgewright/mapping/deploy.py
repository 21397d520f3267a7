"""Mappings as deployments: a part for each stage, a worker for each replica, FIFOs with the required slots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ..emit.native import compiler
from ..errors import EdgewrightError
from ..memory.deploy import PartRequest, deploy
from ..network import Network
from ..platform.profile import NATIVE
from ..program import Plan
from ..program.deployment import Deployment, Part, Prediction, Worker
from ..program.deployment_check import checked_deployment
from ..program.deployment_memory import laid_out, memory_predictions
from ..run.build import plan_for_host
from .answer import MappingAnswer
from .board_mapping import BoardMapping

PlanPart = Callable[[Network, int], Plan | None]  # for a part and its lanes; None for parts of other runtimes


def deployment_of(answer: MappingAnswer, network: Network, device: str, plan: PlanPart = plan_for_host) -> Deployment:
    """The mapping with a plan for each native part; the result is checked."""
    mapping = answer.mapping
    requests = [
        PartRequest(name, tuple(network.layers[layer].name for layer in mapping.stages[number].parts[place]))
        for name, (number, place) in mapping.places.items()
    ]

    def planner(part: Network) -> Plan | None:
        execution = mapping.stage_of(part.name).execution
        return plan(part, execution.lanes) if execution.executor == NATIVE else None

    draft = deploy(network, requests, tuple(_workers(mapping, device)), planner=planner)
    slots = {fifo.what: fifo.slots for fifo in answer.timing.fifos}
    sized = replace(
        draft,
        parts=tuple(_executed(part, mapping.stage_of(part.name).execution.executor) for part in draft.parts),
        fifos=tuple(replace(fifo, slots=slots[fifo.what]) for fifo in draft.fifos),
    )
    placed = replace(sized, arenas=laid_out(sized))
    checked_deployment(placed)
    return replace(placed, predictions=(*memory_predictions(placed), *_predictions(answer)))


def deployable(answer: MappingAnswer, network: Network, device: str) -> tuple[Deployment, str]:
    """The deployment, and a note if onnxruntime must replace our own code."""
    if all(stage.execution.executor != NATIVE for stage in answer.mapping.stages):
        return deployment_of(answer, network, device), ""
    try:
        compiler()
    except EdgewrightError as error:
        whole = deployment_of(answer, network, device, lambda _part, _lanes: None)
        return whole, f"onnxruntime executes what our own code would, and times will differ: {error}"
    return deployment_of(answer, network, device), ""


def _executed(part: Part, executor: str) -> Part:
    """The part for its runtime: onnxruntime if a native part has no plan."""
    return part if executor == NATIVE else replace(part, runtime=executor)


def _workers(mapping: BoardMapping, device: str) -> Iterator[Worker]:
    """The workers with disjoint sets of cores."""
    free = {pool.name: list(pool.numbers or range(pool.cores)) for pool in mapping.problem.pools}
    for worker in mapping.workers:
        execution = mapping.stage_of(worker.parts[0]).execution
        taken = [free[execution.pool].pop(0) for _ in range(execution.lanes)]
        cores = [free[execution.driver].pop(0)] if execution.driver else taken
        yield replace(worker, device=device, cores=tuple(cores))


def _predictions(answer: MappingAnswer) -> Iterator[Prediction]:
    how = "the dataflow graph of the mapping, from the profile's layer times"
    yield Prediction("throughput", answer.throughput, "frames/s", how)
    yield Prediction("latency", answer.latency, "s", how)
    yield Prediction("throughput bound", answer.bound, "frames/s", "a linear program over the profile's layer times")
    if answer.energy is not None:
        yield Prediction("energy", answer.energy, "J/frame", "an estimate from the board's power and utilisation")
