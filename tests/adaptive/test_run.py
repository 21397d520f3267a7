"""Scenarios at work on this machine: all policies, requests from other threads, rules, dwell time, cascades."""

from __future__ import annotations

import io
import math
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

import edgewright
from edgewright.adaptive import requests
from edgewright.adaptive.live_run import run_live, without_rules
from edgewright.adaptive.measured import measure_pairs
from edgewright.adaptive.requests import LineRequests, RandomRequests, SocketRequests, obey
from edgewright.adaptive.result_check import FrameSource, ResultCheck
from edgewright.adaptive.rules import (
    advance,
    initial_state,
    release,
    switching_rules,
    with_request,
    with_signals,
)
from edgewright.adaptive.runtime import Adaptive, AdaptiveResult
from edgewright.emit.deployment.switching import margin_steps
from edgewright.errors import EdgewrightError, InputError
from edgewright.network import DType, Quant, Tensor
from edgewright.program.switching import SwitchPolicy
from tests.adaptive.cases import CASCADE, RULES, quick_compiler, switching, three

FRAMES = 400


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quick_compiler(monkeypatch)


@pytest.mark.parametrize("policy", SwitchPolicy)
def test_random_requests_leave_all_results_right_and_in_order(tmp_path: Path, policy: SwitchPolicy):
    """Requests come from a second thread while frames are computed."""
    one = switching(three(tmp_path), policy)
    source = FrameSource(one.application)
    check, asking = ResultCheck(source), RandomRequests(seed=7)
    with Adaptive(one, one.layout) as running:
        with asking.feeding(running):
            for result in running(source.frames(FRAMES)):
                check.take(result)
        check.end(FRAMES)
        assert (check.frames, check.is_right) == (FRAMES, True), check.said
        assert asking.error is None and asking.count > 0
        names = list(running.scenarios)
        for name in (*names, *names[:1]):  # one that is asked for comes, whatever was asked for before
            running.request(name)
            assert [result.scenario for result in running(source.frames(6))][-1] == name == running.current


@pytest.mark.parametrize("policy", SwitchPolicy)
def test_delays_are_measured_for_all_pairs(tmp_path: Path, policy: SwitchPolicy):
    one = switching(three(tmp_path), policy)
    source = FrameSource(one.application)
    check = ResultCheck(source)
    with Adaptive(one, one.layout) as running:
        pairs = measure_pairs(running, source, check, repeats=1)
        for name in running.scenarios:
            steps = len(running.layout.scenarios[name].scenario.steps)
            times = running.step_times(name, source.frame(0))
            assert len(times) == (1 if policy is SwitchPolicy.FINISH else steps) and (times >= 0).all()
    assert check.is_right and len(pairs) == 6
    for pair in pairs:
        assert pair.old != pair.new and pair.predicted[0] > 0 and pair.measured[0] > 0


def test_python_asks_for_scenarios(tmp_path: Path):
    path = three(tmp_path, processors=1)
    frame = edgewright.random_inputs(switching(path, SwitchPolicy.FINISH).application.scenarios[0].network)
    with edgewright.adaptive(path) as a:
        assert a.current == "eco"
        seen = []
        for number, result in enumerate(a([frame] * 4)):
            if number == 1:
                a.request("full")
            seen.append(result.scenario)
        assert seen == ["eco", "eco", "full", "full"]
        with pytest.raises(InputError, match='"fool" is no scenario'):
            a.request("fool")
        with pytest.raises(InputError, match="no rule reads the signal"):
            a.signal("battery", 0.1)
    with pytest.raises(InputError, match='policy "overlap" takes two processors'):
        edgewright.adaptive(path, "overlap")


def test_frames_of_a_wrong_shape_are_refused(tmp_path: Path):
    one = switching(three(tmp_path), SwitchPolicy.FINISH)
    frame = FrameSource(one.application).frame(0)
    ((name, value),) = frame.items()
    with Adaptive(one, one.layout) as running:
        for wrong, said in (
            (value[:, :-1], "of a frame is float32"),
            (value.astype(np.float64), "of a frame is float64"),
            ({}, f"the frame has no '{name}'"),
            ({**frame, "other": value}, "the frame has 'other', which is no input"),
        ):
            with pytest.raises(InputError, match=said):
                list(running([wrong]))
        assert next(iter(running([value]))).scenario == "eco"  # and goes on


def test_rules_follow_signals_and_requests_hold_until_news(tmp_path: Path):
    one = switching(three(tmp_path, tail=RULES), SwitchPolicy.ABORT)
    source = FrameSource(one.application)
    with Adaptive(one, one.layout) as running:

        def scenario() -> str:
            return next(iter(running(source.frames(1)))).scenario

        obey(running, "heat = 80\n")
        assert scenario() == "mid"
        running.request("full")
        assert scenario() == "full"
        obey(running, "heat = 65")  # within the hysteresis: no news
        assert scenario() == "full"
        obey(running, "release")
        assert scenario() == "mid"
        obey(running, "battery=0.2")  # the first rule of the file wins
        assert scenario() == "eco"
        for line, said in (
            ("heat = hot", '"hot" is no number'),
            ("= 1", '"= 1" names no signal'),
            ("cold = 1", "no rule reads"),
            ("ecoo", "no scenario"),
        ):
            with pytest.raises(InputError, match=said):
                obey(running, line)


def test_c_decides_as_the_rules_say(tmp_path: Path):
    """Random readings, requests and withdrawals; before the first reading the start scenario applies."""
    path = three(tmp_path, tail=RULES)
    path.write_text(path.read_text().replace("[adapt]\n", '[adapt]\nstart = "mid"\nfallback = "full"\n'))
    one = switching(path, SwitchPolicy.FINISH)
    rules, frame, draw = switching_rules(one.application.file), FrameSource(one.application).frame(0), Random(5)
    state = initial_state(rules)
    with Adaptive(one, one.layout) as running:
        for number in range(300):
            match draw.randrange(5):
                case 0:
                    running.request(scenario := draw.choice(rules.scenarios))
                    state = with_request(rules, state, scenario)
                case 1 if number > 10:
                    running.release()
                    state = release(state)
                case 2 | 3 if number > 5:
                    name, value = draw.choice(
                        [("battery", 0.2), ("battery", 0.3), ("battery", 0.5), ("heat", math.nan)]
                    )
                    if draw.random() < 0.5:
                        name, value = "heat", draw.choice([50.0, 65.0, 80.0])
                    running.signal(name, value)
                    state = with_signals(rules, state, {name: value})
            state = advance(rules, state, float(number))
            assert running.compute(number, frame).scenario == state.current, number


def test_dwell_time_delays_the_second_switch(tmp_path: Path):
    one = switching(three(tmp_path, dwell="400 ms"), SwitchPolicy.FINISH)
    frame = FrameSource(one.application).frame(0)
    with Adaptive(one, one.layout) as running:
        running.request("full")
        assert running.compute(0, frame).scenario == "full"
        switched = time.monotonic()
        running.request("mid")
        while (result := running.compute(0, frame)).scenario == "full":
            assert time.monotonic() - switched < 20
        assert result.scenario == "mid" and time.monotonic() - switched >= 0.39


@pytest.mark.parametrize(("policy", "threshold"), [(SwitchPolicy.FINISH, 0.3), (SwitchPolicy.ABORT, 0.3)])
def test_unsure_frames_are_computed_again(tmp_path: Path, policy: SwitchPolicy, threshold: float):
    one = switching(three(tmp_path, tail=CASCADE.replace("1e9", str(threshold))), policy)
    source = FrameSource(one.application)
    check = ResultCheck(source)
    with Adaptive(one, one.layout) as running:
        for result in running(source.frames(8)):
            check.take(result)
            second, best = np.sort(source.expected("eco", result.frame)[0].ravel())[-2:]
            assert result.scenario == ("full" if best - second < threshold else "eco")
        assert running.current == "eco"  # a cascade is no switch
    assert check.is_right


def test_a_cascade_on_int8_scores_compares_real_margins():
    tensor = Tensor("scores", (1, 4), DType.INT8, Quant.of(0.1, 3))
    for margin in (0.05, 0.1, 0.3, 0.31, 12.7):
        least = margin_steps(tensor, margin)
        scale = tensor.quant.scale[0]
        assert least * scale >= margin > (least - 1) * scale


def test_lines_of_a_file_ask_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(requests, "PATIENCE", 60.0)  # a busy machine may let a thread wait for a second
    one = switching(three(tmp_path), SwitchPolicy.FINISH)
    outcome = run_live(one, LineRequests(io.StringIO("full\n\nmid\neco\n")), 6_000)
    assert [(each.old, each.new) for each in outcome.switches] == [("eco", "full"), ("full", "mid"), ("mid", "eco")]
    assert all(each.delay and each.delay > 0 for each in outcome.switches)
    assert outcome.requests == 3 and outcome.check.is_right
    outcome.demand_right()
    with pytest.raises(InputError, match='"warp" is no scenario'):
        run_live(without_rules(one), LineRequests(io.StringIO("warp\n")), 6_000)


@pytest.mark.parametrize("is_port", [True, False])
def test_sockets_are_answered(tmp_path: Path, is_port: bool):
    one = switching(three(tmp_path), SwitchPolicy.FINISH)
    address = str(_free_port()) if is_port else str(tmp_path / "requests")
    with Adaptive(one, one.layout) as running, SocketRequests(address).feeding(running):
        kind, where = (socket.AF_INET, ("127.0.0.1", int(address))) if is_port else (socket.AF_UNIX, address)
        with socket.socket(kind) as client:
            client.connect(where)
            client.sendall(b"full\nwarp\n")
            answers = client.makefile()
            assert answers.readline() == "ok\n"
            assert answers.readline().startswith('error: "warp" is no scenario')
        frame = FrameSource(one.application).frame(0)
        assert running.compute(0, frame).scenario == "full"
    assert is_port or not Path(address).exists()
    (tmp_path / "file").write_text("")
    for wrong, said in (("70000", "is no port"), ("0", "is no port"), (str(tmp_path / "file"), "is no socket")):
        with pytest.raises(InputError, match=said), SocketRequests(wrong).feeding(running):
            pass


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_the_check_tells_lost_doubled_reordered_and_wrong(tmp_path: Path):
    one = switching(three(tmp_path), SwitchPolicy.FINISH)
    source = FrameSource(one.application)
    check = ResultCheck(source)

    def result(number: int, value: float = 0.0) -> AdaptiveResult:
        outputs = {"y": source.expected("eco", number)[0] + np.float32(value)}
        return AdaptiveResult(number, "eco", outputs, 0.0, 0.0)

    for number in (0, 2, 1, 1, 4):
        check.take(result(number))
    check.take(result(5, 1.0))
    check.end(8)
    assert (check.reordered, check.doubled, check.lost, check.wrong) == (1, 1, 3, 1)
    outcome = run_live(one, RandomRequests(), 50)
    outcome.demand_right()
    with pytest.raises(EdgewrightError, match="1 wrong, 3 lost, 1 doubled, 1 out of order"):
        replace(outcome, check=check).demand_right()


def test_closing_a_stream_early_stops_its_threads(tmp_path: Path):
    one = switching(three(tmp_path), SwitchPolicy.OVERLAP)
    source, before = FrameSource(one.application), threading.active_count()
    with Adaptive(one, one.layout) as running:
        stream = running(source.frames())
        assert next(stream).frame == 0
        with pytest.raises(InputError, match="this application is running"):
            next(running(source.frames()))
        stream.close()
        assert threading.active_count() == before
