"""Streams through rings and workers: every frame once and in order, and an end to everything whatever happens."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.errors import InputError, RunError
from edgewright.program.deployment import OUTSIDE
from tests.helpers.pipelines import delays, draw_pipeline, expected, fifo, joined, started, threads_left, worker


def frames(count):
    return (np.array([value]) for value in range(count))


def results(pipeline, source):
    return [int(found["tp" + str(len(pipeline.deployment.parts) - 1)][0]) for found in pipeline(source)]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 60), st.integers(1, 6))
def test_random_pipelines_give_every_frame_once_and_in_order(seed, count, parts):
    deployment = draw_pipeline(Random(seed), parts)
    waits = {part.name: delays(Random(seed), 0.2, 0.002) for part in deployment.parts}
    with started(deployment, waits) as pipeline:
        assert results(pipeline, frames(count)) == [expected(deployment, value) for value in range(count)]
        assert pipeline.statistics.frames == count
    assert not threads_left()


def test_ten_thousand_frames_with_random_delays():
    deployment = draw_pipeline(Random(3), 4)
    assert len(deployment.workers) > 3
    waits = {part.name: delays(Random(part.name), 0.02, 0.001) for part in deployment.parts}
    with started(deployment, waits) as pipeline:
        assert results(pipeline, frames(10_000)) == [expected(deployment, value) for value in range(10_000)]
    assert not threads_left()


def test_a_source_is_asked_for_no_more_than_there_is_room():
    deployment = draw_pipeline(Random(5), 4)
    room = sum(each.slots for each in deployment.fifos) + 1
    asked = 0

    def source():
        nonlocal asked
        for value in range(500):
            asked += 1
            yield np.array([value])

    with started(deployment) as pipeline:
        given_out = pipeline(source())
        next(given_out)
        time.sleep(0.05)
        assert asked <= room + 1
        assert len(list(given_out)) == 499


def test_a_part_that_raises_ends_the_run_with_its_frame_and_layer():
    def fails(value):
        if value == 7:
            raise ZeroDivisionError("division by zero")

    deployment = draw_pipeline(Random(1), 1)
    start = time.monotonic()
    with started(deployment, {"p0": fails}) as pipeline:
        found = []
        with pytest.raises(
            RunError, match=r"frame 7 failed in layer 'layer of p0': ZeroDivisionError: division by zero"
        ):
            found.extend(pipeline(frames(1000)))
        assert [int(each["tp0"][0]) for each in found] == list(range(len(found)))
        assert len(found) <= 7
    assert time.monotonic() - start < 5
    assert not threads_left()


def test_a_pipeline_runs_again_after_an_error():
    failing = [True]

    def fails(_value):
        if failing[0]:
            raise ValueError("not yet")

    deployment = draw_pipeline(Random(2), 3)
    with started(deployment, {"p1": fails}) as pipeline:
        with pytest.raises(RunError, match="not yet"):
            list(pipeline(frames(3)))
        failing[0] = False
        assert results(pipeline, frames(20)) == [expected(deployment, value) for value in range(20)]


def test_a_source_that_raises_ends_the_run_with_its_own_error():
    def source():
        yield np.array([1])
        raise OSError("the camera is gone")

    with started(draw_pipeline(Random(1), 2)) as pipeline, pytest.raises(OSError, match="the camera is gone"):
        list(pipeline(source()))
    assert not threads_left()


def test_a_reader_that_stops_ends_everything():
    with started(draw_pipeline(Random(4), 4)) as pipeline:
        for count, _ in enumerate(pipeline(frames(10**9))):
            if count == 20:
                break
        assert not threads_left()
        assert pipeline.statistics.frames == 21
        assert len(list(pipeline(frames(5)))) == 5


def test_closing_a_pipeline_ends_what_is_running():
    pipeline = started(draw_pipeline(Random(4), 4))
    stream = pipeline(frames(10**9))
    next(stream)
    pipeline.close()
    list(stream)
    assert not threads_left()
    with pytest.raises(InputError, match="has been closed"):
        pipeline(frames(1))


def test_one_stream_at_a_time():
    with started(draw_pipeline(Random(4), 2)) as pipeline:
        stream = pipeline(frames(10))
        next(stream)
        with pytest.raises(InputError, match="is running"):
            pipeline(frames(1))
        stream.close()


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (np.array([1.0]), r"frame 0: input 't' must be int64 of shape \(1,\), got float64 of shape \(1,\)"),
        (np.array([1, 2]), r"of shape \(2,\)"),
        ({"x": np.array([1])}, r"no value for input 't'; given are \['x'\]"),
    ],
)
def test_frames_of_another_kind_are_refused(frame, message):
    with started(draw_pipeline(Random(4), 2)) as pipeline, pytest.raises(InputError, match=message):
        list(pipeline([frame]))


def test_several_inputs_and_outputs_go_by_name():
    fifos = [
        fifo("a", OUTSIDE, ["p0"], 2),
        fifo("b", OUTSIDE, ["p1"], 1),
        fifo("c", "p0", ["p1", OUTSIDE], 1),
        fifo("d", "p1", [OUTSIDE], 2),
    ]
    workers = [
        worker("w0", ["p0"]),
        worker("w1", ["p1"], (0, 2)),
        worker("w2", ["p1"], (1, 2)),
    ]
    with started(joined(fifos, ["p0", "p1"], workers)) as pipeline:
        source = ({"a": np.array([n]), "b": np.array([10 * n])} for n in range(30))
        found = [(int(each["c"][0]), int(each["d"][0])) for each in pipeline(source)]
        assert found == [(n, 11 * n + 1) for n in range(30)]
        with pytest.raises(InputError, match="is one array; expected a mapping with a, b"):
            list(pipeline([np.array([1])]))


def test_statistics_tell_what_workers_did():
    fifos = [
        fifo("x", OUTSIDE, ["p0"], 2),
        fifo("y", "p0", ["p1"], 2),
        fifo("z", "p1", [OUTSIDE], 2),
    ]
    deployment = joined(fifos, ["p0", "p1"], [worker("fast", ["p0"]), worker("slow", ["p1"])])
    with started(deployment, {"p1": lambda _: time.sleep(0.005)}) as pipeline:
        list(pipeline(frames(30)))
        times = pipeline.statistics.workers
    assert times["slow"].busy > times["fast"].busy
    assert times["fast"].blocked > times["slow"].blocked
    assert times["slow"].frames == times["fast"].frames == 30
    assert pipeline.statistics.latency_s > 0 and pipeline.statistics.frames_per_s > 0


INTERRUPTED = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # which tests in the background have switched off
sys.path.insert(0, {root!r})
from random import Random
import numpy as np
from tests.helpers.pipelines import draw_pipeline, started, threads_left
with started(draw_pipeline(Random(4), 4)) as pipeline:
    def source():
        while True:
            time.sleep(0.001)
            yield np.array([0])
    try:
        for count, found in enumerate(pipeline(source())):
            if count == 20:
                print("running", flush=True)
    except KeyboardInterrupt:
        print("left", threads_left(), flush=True)
"""


def test_an_interrupt_ends_everything():
    program = INTERRUPTED.format(root=str(Path(__file__).parents[2]))
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "running\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "left []\n"
        assert process.wait(10) == 0
