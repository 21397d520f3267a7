"""The exact timing of deployments on clusters: worked by hand, and against simulators that share no code with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest

from edgewright.cluster.devices import Cluster, ClusterDevice, ClusterLink
from edgewright.cluster.rates import part_times
from edgewright.cluster.timing import on_cluster, unordered
from edgewright.dataflow.deployments.service_order import frame_latency
from edgewright.dataflow.deployments.sharing import Service, SlotTurn
from edgewright.dataflow.deployments.slots import part_work
from edgewright.dataflow.deployments.timed import TimedDeployment
from edgewright.dataflow.throughput.contention import contended, contended_period, period_bound
from edgewright.errors import InputError, Unsupported
from edgewright.memory.deploy import deploy
from edgewright.network import Network
from edgewright.program.deployment import Deployment, Worker
from edgewright.program.deployment_check import region_text
from tests.cluster.tasks import Key, Tasks, first_come_first_served, longest_path, random_cluster
from tests.helpers.random_deployments import random_deployment
from tests.helpers.random_networks import network_of_seed
from tests.program.test_deployments import REQUESTS, diamond

SIZE = 8 * 8 * 4 * 4  # bytes of each tensor of the diamond


def deployed(*devices: str, slots: int = 2) -> Deployment:
    """The diamond's three parts on these devices."""
    workers = [Worker(f"w{n}", device, "cpu", (), (REQUESTS[n].name,)) for n, device in enumerate(devices)]
    return deploy(diamond(), REQUESTS, workers, slots=slots, planner=lambda _: None)


def times(head: float, left: float, tail: float) -> Mapping[tuple[str, str], Fraction]:
    made = zip(("w0", "w1", "w2"), REQUESTS, (head, left, tail), strict=True)
    return {(worker, request.name): Fraction(time) for worker, request, time in made}


def wires(rate: float, latency: float = 0.0) -> Cluster:
    """Devices a, b, c on a switch."""
    devices = tuple(ClusterDevice(name, 1e6) for name in "abc")
    links = tuple(ClusterLink(f"{name}-switch", (name, "switch"), rate, latency / 2) for name in "abc")
    return Cluster("wires", devices, links, "a")


def bus(rate: float, gateway: str = "a") -> Cluster:
    return Cluster("bus", wires(1).devices, (ClusterLink("bus", ("a", "b", "c"), rate),), gateway)


def test_transfers_take_time_and_latency_delays_them():
    # From a: `a` to b, then to c. From b: `left` to c. From c: `y` to the gateway a. A transfer takes one second.
    made, cluster, given = deployed("a", "b", "c"), wires(SIZE, latency=10.0), times(1, 1, 1)
    timed = on_cluster(made, cluster, given)
    # head 1, `a` to b 1, under way 10, left 1, `left` to c 1, under way 10, tail 1, `y` 1, under way 10.
    assert frame_latency(timed) == 1 + 11 + 1 + 11 + 1 + 11
    assert on_cluster(deployed("a", "b", "c", slots=20), cluster, given).period == 2  # a's port: two transfers a frame
    assert on_cluster(made, wires(SIZE * 1000), times(1, 5, 1)).period == pytest.approx(5)


def test_results_leave_from_the_gateway_and_frames_arrive_there():
    alone = on_cluster(deployed("a", "a", "a"), wires(SIZE), times(1, 1, 1))
    assert frame_latency(alone) == 3 and alone.held.keys() == {"w0", "w1", "w2"}  # they share the processor
    elsewhere = on_cluster(deployed("b", "b", "b"), wires(SIZE), times(1, 1, 1))
    assert frame_latency(elsewhere) == 5
    assert elsewhere.period == 3


def test_all_that_is_sent_over_a_bus_takes_turns():
    timed = on_cluster(deployed("a", "b", "c"), bus(SIZE), times(1, 1, 1))
    assert timed.period == 4  # `a` to b and to c, `left` to c, `y` to a
    assert set(timed.orders) == {("bus", "")}
    assert (
        on_cluster(deployed("a", "b", "c"), bus(SIZE, "b"), times(1, 1, 1)).period == 5
    )  # the frame goes to a as well


def test_workers_of_one_processor_take_turns():
    on_one = on_cluster(deployed("a", "b", "a"), wires(SIZE * 10**6), times(3, 1, 4))
    assert on_one.period == pytest.approx(7)  # head of a frame before tail of an earlier one: no waiting for `left`
    two_cores = deployed("a", "b", "a")
    cores = [replace(worker, cores=(n,)) for n, worker in enumerate(two_cores.workers)]
    apart = replace(two_cores, workers=tuple(cores))
    assert on_cluster(apart, wires(SIZE * 10**6), times(3, 1, 4)).period == pytest.approx(4)


def test_slots_in_turn_hold_the_writer_back():
    made, cluster, given = deployed("a", "b", "c", slots=4), wires(SIZE), times(1, 1, 1)
    fifos = {fifo.what.tensor: fifo.what for fifo in made.fifos}
    free = on_cluster(made, cluster, given)
    # `y` of a frame comes before the slot of `a` on c is written for the next: the tail's run and `y` are waited for.
    turn = SlotTurn("c", fifos["y"], fifos["a"], 1)
    held = on_cluster(made, cluster, given, turns=(turn,))
    assert free.period == 2 and held.period == 3  # `a` to c, tail and `y`, while the next `left` is already there
    assert held.period == longest_period(made, cluster, given, held, turns=(turn,))
    assert on_cluster(made, cluster, given, turns=(replace(turn, frames=8),)).period == 2


def test_times_come_from_the_devices():
    made = deployed("a", "b", "c")
    slow = replace(wires(1), devices=(ClusterDevice("a", 1e6), ClusterDevice("b", 2e6), ClusterDevice("c", 4e6)))
    work = [part_work(part) for part in made.parts]
    given = part_times(made, slow)
    assert list(given.values()) == [work[0] / 1e6, work[1] / 2e6, work[2] / 4e6]
    workers = (*made.workers[:2], replace(made.workers[2], device="a", cores=(2,)))
    workers = (replace(workers[0], cores=(0, 1)), *workers[1:])
    shared = part_times(replace(made, workers=workers), slow)
    assert shared["w0", "head"] == pytest.approx(work[0] / (2e6 / 3))
    assert shared["w2", "tail"] == pytest.approx(work[2] / (1e6 / 3))


def test_a_device_that_the_cluster_lacks_is_named():
    with pytest.raises(InputError, match="worker 'w1' runs on device 'z', which cluster 'wires' does not have"):
        on_cluster(deployed("a", "z", "c"), wires(1))


def in_task_order(timed: TimedDeployment, made: Deployment, frames: int) -> list[list[Key]]:
    """The orders of service as tasks of these frames."""
    workers = {worker.name: worker for worker in made.workers}
    devices = {worker.device for worker in made.workers} | {timed.links.outside if timed.links else ""}
    movers = {
        f"{fifo.what.network}: {region_text(fifo.what)} to {device}{home}": (number, device)
        for number, fifo in enumerate(made.fifos)
        for device in devices
        for home in ("", *(f" from {one}" for one in devices))
    }

    def key(one: Service, iteration: int) -> Key:
        frame = iteration * timed.iteration_frames + timed.frames[one.actor][one.phase]
        if one.actor in workers:
            parts = workers[one.actor].parts
            return parts[one.phase % len(parts)], frame
        return (*movers[one.actor], frame)

    rounds = frames // timed.iteration_frames + 100
    found = []
    for order in timed.orders.values():
        assert max(one.behind for one in order) < 100
        served = [key(one, number - one.behind) for number in range(rounds) for one in order]
        found.append([one for one in served if isinstance(one[-1], int) and 0 <= one[-1] < frames])
    return found


def longest_period(
    made: Deployment,
    cluster: Cluster,
    given: Mapping[tuple[str, str], Fraction],
    timed: TimedDeployment,
    turns: tuple[SlotTurn, ...] = (),
    count: int = 24,
) -> Fraction:
    """Time per frame, after the first ones, when all tasks follow the orders of the timed deployment.

    Later frames follow, so that each frame that counts waits for all that is served before it.
    """
    behind = max((one.behind for order in timed.orders.values() for one in order), default=0)
    frames = 2 * count + behind * timed.iteration_frames
    tasks = Tasks(made, cluster, given, frames, turns)
    ends = longest_path(tasks.tasks, in_task_order(timed, made, frames))
    return (ends["out", 2 * count - 1] - ends["out", count - 1]) / count


def random_case(network: Network, seed: int) -> tuple[Deployment, Cluster, Mapping[tuple[str, str], Fraction]]:
    """A random deployment on a random cluster; no two times are alike."""
    random = Random(seed)
    made = random_deployment(network, random, None)
    cluster = random_cluster(random, random.randint(2, 4))
    names = [device.name for device in cluster.devices]
    workers = tuple(
        replace(worker, device=random.choice(names), cores=(random.randrange(2),)) for worker in made.workers
    )
    given = {
        (worker.name, part): Fraction(random.randint(10**5, 10**8), 10**9)
        for worker in workers
        for part in worker.parts
    }
    return replace(made, workers=workers, arenas={}), cluster, given


QUICK = (*range(12), 271)  # 271: a device that has some of the frames frees slots in another order than it fills them


@pytest.mark.parametrize("seed", range(300) if os.environ.get("EDGEWRIGHT_THOROUGH") else QUICK)
def test_random_deployments_run_as_two_simulators_say(seed: int):
    network = network_of_seed(seed)
    try:
        made, cluster, given = random_case(network, seed)
    except Unsupported:
        pytest.skip("this network has no such parts")
    free = unordered(made, cluster, given, is_judged=True)
    frames = 6 * free.iteration_frames
    tasks = Tasks(made, cluster, given, frames)
    alone = longest_path(Tasks(made, cluster, given, 1).tasks)["out", 0]
    expected = first_come_first_served(tasks.tasks)
    most = {actor.name: 6 * actor.phases for actor in free.graph.actors}
    firings = contended(free.graph, free.held, most)
    outs = [one.end for one in firings if one.actor == "results out"]
    assert outs == [expected["out", frame] for frame in range(frames)]
    timed = on_cluster(made, cluster, given, is_judged=True)
    assert alone <= frame_latency(timed)
    bound = period_bound(free.graph, free.held)
    assert bound is not None and bound <= timed.period * timed.iteration_frames
    count = max(12, -(-48 // timed.iteration_frames)) * timed.iteration_frames
    assert longest_period(made, cluster, given, timed, count=count) == timed.period


def test_service_who_comes_first_has_a_period_of_its_own():
    free = unordered(deployed("a", "b", "c"), bus(SIZE), times(1, 1, 1))
    assert contended_period(free.graph, free.held) == 4 == period_bound(free.graph, free.held)
