"""Deployments as CSDF graphs: consistent, live, and as fast as a simulation of their workers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.dataflow import blocked, repetitions
from edgewright.dataflow.deployments.slots import deployed_csdf, fifo_slots, frame_period, part_work
from edgewright.errors import InputError, Unsupported
from edgewright.memory.deploy import PartRequest, deploy
from edgewright.network import Network, Region
from edgewright.network.parts import TensorRegion
from edgewright.program.deployment import OUTSIDE, Deployment, Fifo, Worker
from edgewright.program.deployment_check import turns
from edgewright.program.deployment_memory import with_slots
from tests.helpers.random_deployments import random_deployment
from tests.helpers.random_networks import networks
from tests.program.test_deployments import REQUESTS, diamond, pipeline

THREE = [Worker(f"w{i}", "this", "cpu", (i,), (part.name,)) for i, part in enumerate(REQUESTS)]
TIMES = {("w0", "head"): 3, ("w1", "left"): 5, ("w2", "tail"): 2}


def three(slots: int) -> Deployment:
    return deploy(diamond(), REQUESTS, THREE, slots=slots, planner=lambda _: None)


def a_region(tensor: str) -> TensorRegion:
    return TensorRegion("diamond", tensor, Region(((0, 1), (0, 8), (0, 8), (0, 4))))


def test_a_worker_waits_for_what_comes_back_to_it():
    times = {("one", "head"): 3, ("one", "tail"): 2, ("two", "left"): 5}
    graph = deployed_csdf(pipeline(), times)
    assert [(actor.name, actor.phases, actor.times) for actor in graph.actors] == [
        ("one", 2, (3, 2)),
        ("two", 1, (5,)),
        ("frames in", 1, (0,)),
        ("results out", 1, (0,)),
    ]
    assert blocked(graph) is None
    # `tail` of a frame comes before `head` of the next, and waits for `left`: 3 + 5 + 2.
    assert frame_period(pipeline(), times) == 10


def test_slots_decide_how_far_workers_run_ahead():
    assert frame_period(three(1), TIMES) == 10  # what `head` wrote is read until `tail` ends
    assert frame_period(three(2), TIMES) == 5  # the slowest worker's time
    found = fifo_slots(three(1), TIMES)
    # `a` is held for 3 + 5 + 2 and `left` for 5 + 2 of every 5; frames and results are handed over at once.
    assert {what.tensor: count for what, count in found.items()} == {"x": 1, "a": 2, "left": 2, "y": 1}
    assert frame_period(with_slots(three(1), found), TIMES) == 5


def test_replicas_take_turns():
    network = diamond()
    every = PartRequest("all", tuple(network.by_name))
    equal = [Worker(f"w{i}", "this", "cpu", (i,), ("all",), (i, 2)) for i in range(2)]
    made = deploy(network, [every], equal, planner=lambda _: None)
    assert frame_period(made, {("w0", "all"): 10, ("w1", "all"): 10}) == 5
    assert frame_period(made, {("w0", "all"): 10, ("w1", "all"): 30}) == 15  # the slow one has every other frame
    unequal = [Worker("w0", "this", "cpu", (0,), ("all",), (0, 2))]
    unequal += [Worker(f"w{i}", "this", "cpu", (i,), ("all",), (2 * i - 1, 4)) for i in (1, 2)]
    made = deploy(network, [every], unequal, slots=4, planner=lambda _: None)
    times = {("w0", "all"): 10, ("w1", "all"): 20, ("w2", "all"): 20}
    assert turns(made) == 4 and frame_period(made, times) == 5
    assert frame_period(with_slots(made, {fifo.what: 1 for fifo in made.fifos}), times) == 15


def test_moving_takes_time():
    workers = [replace(THREE[0], device="far"), *THREE[1:]]
    made = deploy(diamond(), REQUESTS, workers, slots=2, planner=lambda _: None)

    def moving(fifo: Fifo, source: str, target: str) -> float:
        assert (fifo.what.tensor, source, target) == ("a", "far", "this")
        return 7.5

    assert frame_period(made, TIMES) == 5
    assert frame_period(made, TIMES, moving) == Fraction(15, 2)
    graph = deployed_csdf(made, TIMES, moving)
    assert "diamond: 'a' [0:1, 0:8, 0:8, 0:4] to this" in graph.by_name


def test_work_is_the_time_where_none_is_given_and_missing_times_are_named():
    made = three(2)
    graph = deployed_csdf(made)
    assert [graph.by_name[worker.name].times for worker in made.workers] == [(part_work(part),) for part in made.parts]
    with pytest.raises(InputError, match="no time is given for part 'left' on worker 'w1'"):
        deployed_csdf(made, {("w0", "head"): 1})
    with pytest.raises(InputError, match="this deployment cannot run"):
        deployed_csdf(replace(made, fifos=made.fifos[:-1]))


def simulated(deployment: Deployment, frames: int) -> list[int]:
    """When each frame is out: every part starts when its worker, its inputs and its slots are ready."""
    written: dict[tuple[TensorRegion, int], int] = {}
    read: dict[tuple[TensorRegion, str, int], int] = {}
    free = dict.fromkeys((worker.name for worker in deployment.workers), 0)
    ended = []
    order = _order(deployment)

    def slot(fifo: Fifo, frame: int) -> int:
        before = frame - fifo.slots
        return 0 if before < 0 else max(read[fifo.what, reader, before] for reader in fifo.reading)

    given = taken = 0  # the outside world gives and takes frames in order
    for frame in range(frames):
        inputs = [fifo for fifo in deployment.fifos if fifo.source == OUTSIDE]
        given = max([given, *(slot(fifo, frame) for fifo in inputs)])
        for fifo in inputs:
            written[fifo.what, frame] = given
        for name in order[frame % turns(deployment)]:
            part, worker = deployment.part_named[name], deployment.worker_of(name, frame)
            waits = [written[what, frame] for what in part.inputs.values()]
            waits += [slot(fifo, frame) for fifo in deployment.fifos if fifo.source == name]
            end = max([free[worker.name], *waits]) + part_work(part)
            free[worker.name] = end
            for what in part.inputs.values():
                read[what, name, frame] = end
            for what in part.outputs.values():
                written[what, frame] = end
        outputs = [fifo for fifo in deployment.fifos if OUTSIDE in fifo.reading]
        taken = max([taken, *(written[fifo.what, frame] for fifo in outputs)])
        for fifo in outputs:
            read[fifo.what, OUTSIDE, frame] = taken
        ended.append(taken)
    return ended


def _order(deployment: Deployment) -> list[list[str]]:
    """For each turn the parts in an order in which they can run."""
    found = []
    for turn in range(turns(deployment)):
        left, done, order = [part.name for part in deployment.parts], set(), []
        while left:
            for name in left:
                worker = deployment.worker_of(name, turn)
                before = set(worker.parts[: worker.parts.index(name)])
                before |= {f.source for f in deployment.fifos if name in f.reading and f.source != OUTSIDE}
                if before <= done:
                    order.append(name)
                    done.add(name)
                    left.remove(name)
                    break
        found.append(order)
    return found


@settings(deadline=None, max_examples=25)
@given(networks(most=6), st.integers(0, 1 << 30))
def test_random_deployments_run_as_fast_as_predicted(network: Network, seed: int):
    random = Random(seed)
    try:
        made = random_deployment(network, random, None)
    except Unsupported:
        return
    made = replace(made, workers=tuple(replace(worker, device="this") for worker in made.workers))
    made = with_slots(made, {})
    graph = deployed_csdf(made)
    assert blocked(graph) is None
    assert all(count == graph.by_name[name].phases for name, count in repetitions(graph).items())
    period, count = frame_period(made), 24 * turns(made)
    ended = simulated(made, 2 * count)
    assert ended[-1] - ended[count - 1] == pytest.approx(float(period * count), rel=0.05)
    least = fifo_slots(made)
    assert frame_period(with_slots(made, least)) <= period
