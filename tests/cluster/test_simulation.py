"""Frames simulated over clusters: as a simulator of plain tasks says, with varying latencies and devices that fail."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from statistics import mean

import pytest

from edgewright.cluster import simulation
from edgewright.cluster.simulation import Churn, ClusterRun, WanLatency, simulate
from edgewright.cluster.timing import on_cluster
from edgewright.errors import InputError, Unsupported
from tests.cluster.tasks import Tasks, first_come_first_served
from tests.cluster.test_timing import SIZE, bus, deployed, random_case, times, wires
from tests.helpers.random_networks import network_of_seed

FRAMES = 24


@pytest.mark.parametrize("seed", range(12))
def test_results_and_loads_are_those_of_plain_tasks(seed: int) -> None:
    try:
        made, cluster, given = random_case(network_of_seed(seed), seed)
    except Unsupported:
        pytest.skip("this network has no such parts")
    tasks = Tasks(made, cluster, given, FRAMES)
    ends = first_come_first_served(tasks.tasks)
    run = simulate(made, cluster, FRAMES, times=given, is_judged=True)
    assert run.results_s == pytest.approx([float(ends["out", frame]) for frame in range(FRAMES)])
    assert run.latencies_s == pytest.approx([float(ends["out", f] - ends["in", f]) for f in range(FRAMES)])
    busy: dict[object, Fraction] = defaultdict(Fraction)
    sent = 0
    for key, task in tasks.tasks.items():
        if len(key) == 3:
            sent += made.tensor(made.fifos[int(str(key[0]))]).bytes
        for port in task.holds if len(key) == 3 else ():
            busy[port] += task.time
    assert run.sent_bytes == sent and run.sent_bytes_again == run.failures == 0
    assert {port: share * run.seconds for port, share in run.port_busy.items()} == pytest.approx(
        {port: float(busy[port]) for port in cluster.ports}
    )
    shown = {(span.row, span.label) for span in run.spans}
    parts = {(tasks.worker(part, FRAMES // 2).device, part) for part in made.part_named}
    assert parts <= shown
    for span in run.spans:
        if (span.row, span.label) in parts:
            end = ends[span.label, FRAMES // 2] - ends["in", FRAMES // 2]
            assert span.end_s == pytest.approx(float(end))


def test_a_pipeline_reaches_its_period_and_devices_their_shares() -> None:
    made, cluster = deployed("a", "b", "c", slots=8), wires(SIZE)
    run = simulate(made, cluster, 200, times=times(1, 2, 1))
    assert run.throughput == pytest.approx(1 / float(on_cluster(made, cluster, times(1, 2, 1)).period), rel=0.03)
    assert run.device_busy == pytest.approx({"a": 0.5, "b": 1.0, "c": 0.5}, rel=0.05)
    assert run.port_busy["a-switch", "a"] == pytest.approx(1.0, rel=0.05)
    slow = simulate(made, cluster, 200, times=times(1, 2, 1), every_s=10.0)
    assert slow.throughput == pytest.approx(0.1, rel=0.01)
    assert slow.latencies_s == pytest.approx([7.0] * 200)  # head 1, `a` to b 1, left 2, `left` 1, tail 1, `y` 1


def test_transfers_in_pieces_take_turns_at_a_port() -> None:
    made, given = deployed("a", "b", "c"), times(1, 1, 1)
    # On a bus: head 1, then `a` to b and `a` to c take turns, in quarters of a second: 1.75 until b has its copy. left,
    # `left`, tail and `y` take 1 each. Whole transfers: b has its copy after 1.
    assert simulate(made, bus(SIZE), 1, times=given, pieces=4).latency_s == pytest.approx(6.75)
    assert simulate(made, bus(SIZE), 1, times=given).latency_s == pytest.approx(6.0)
    whole, pieces = (simulate(made, bus(SIZE), 50, times=given, pieces=n) for n in (1, 4))
    assert whole.sent_bytes == pieces.sent_bytes
    assert pieces.port_busy["bus", ""] * pieces.seconds == pytest.approx(whole.port_busy["bus", ""] * whole.seconds)


def test_delays_are_drawn_from_the_seed_and_do_not_overtake() -> None:
    made, cluster = deployed("a", "b", "c"), wires(SIZE * 1000)

    def run(median: float, seed: int = 0, spread: float = 0.5) -> ClusterRun:
        return simulate(made, cluster, 300, times=times(0, 0, 0), every_s=100.0, wan=WanLatency(median, spread, seed))

    assert run(1.0) == run(1.0) and run(1.0).latencies_s != run(1.0, seed=1).latencies_s
    assert run(1.0, spread=0.0).latencies_s == pytest.approx([3.0] * 300, rel=0.01)  # a to b, b to c, c to a
    assert mean(run(1.0).latencies_s) == pytest.approx(3 * 1.133, rel=0.08)  # exp(0.5² / 2), the mean of a log-normal
    assert mean(run(0.1).latencies_s) == pytest.approx(0.3 * 1.133, rel=0.08)
    burst = simulate(made, cluster, 300, times=times(0, 0, 0), wan=WanLatency(1.0))
    assert list(burst.results_s) == sorted(burst.results_s)


def test_frames_under_way_are_sent_again_when_a_device_fails() -> None:
    made, cluster = deployed("a", "b", "c"), wires(SIZE * 10)
    calm = simulate(made, cluster, 500, times=times(1, 1, 1))
    churn = Churn(per_hour=10.0, away_s=5.0, seed=3)
    run = simulate(made, cluster, 500, times=times(1, 1, 1), churn=churn)
    assert run == simulate(made, cluster, 500, times=times(1, 1, 1), churn=churn)
    assert len(run.results_s) == len(run.latencies_s) == 500 and list(run.results_s) == sorted(run.results_s)
    assert 0 < run.failures < run.frames_again <= 6 * run.failures  # at most two frames in the slots of each FIFO
    assert run.sent_bytes_again > 0 and run.sent_bytes - run.sent_bytes_again == calm.sent_bytes
    assert run.seconds > calm.seconds + 0.6 * run.failures and max(run.latencies_s) > max(calm.latencies_s)
    # b and c fail ten times an hour; then both are away for a mean of some five seconds, and four of work are lost.
    often = simulate(made, cluster, 5000, times=times(1, 1, 1), churn=replace(churn, away_s=20.0))
    up = often.seconds - often.failures * (20.0 + 0.6)
    assert often.failures == pytest.approx(20 * up / 3600, rel=0.35)
    assert simulate(made, cluster, 50, times=times(1, 1, 1), churn=replace(churn, per_hour=0)).failures == 0


def test_alone_on_the_gateway_nothing_fails() -> None:
    run = simulate(deployed("a", "a", "a"), wires(SIZE), 50, times=times(1, 1, 1), churn=Churn(per_hour=1e6))
    assert run.failures == 0 and run.sent_bytes == 0


def test_devices_that_fail_too_often_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "MOST_FAILURES", 1000)
    with pytest.raises(InputError, match=r"1,000 failures .* of 50 frames are done|before all are back"):
        simulate(deployed("a", "b", "c"), bus(SIZE), 50, times=times(1, 1, 1), churn=Churn(per_hour=36000, away_s=0.1))


def test_no_frames_are_refused() -> None:
    with pytest.raises(InputError, match="a simulation of 0 frames: ask for at least one"):
        simulate(deployed("a", "b", "c"), bus(SIZE), 0)
