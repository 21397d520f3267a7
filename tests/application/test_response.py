"""Response times of networks under fixed priorities: held against simulated arrivals."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import inf
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright import samples
from edgewright.application.draft import load_application
from edgewright.application.outcome import plan_application
from edgewright.application.response_bound import ResponseBounds, TimedTask
from edgewright.application.response_time import cascade_latencies, responses, tasks_of
from edgewright.application.search import JointSearch
from edgewright.errors import Infeasible, InputError
from edgewright.report.application_page import application_page
from tests.application.gate_simulation import GateSimulation, random_tasks


def simulated(tasks: Sequence[TimedTask], arrivals: dict[str, list[float]]) -> dict[str, float]:
    """The worst response of each task: the most urgent runs next wherever what runs may be interrupted by it."""
    waiting = {task.name: sorted(arrivals[task.name]) for task in tasks}
    worst = dict.fromkeys(waiting, 0.0)
    stack: list[tuple[TimedTask, float, int]] = []  # what has begun: the task, its arrival, segments done
    now = 0.0
    while any(waiting.values()) or stack:
        ready = [task for task in tasks if waiting[task.name] and waiting[task.name][0] <= now + 1e-12]
        running = stack[-1] if stack else None
        for task in ready:
            if running is None or (task.name in running[0].segments and running[2] > 0):
                stack.append((task, waiting[task.name].pop(0), 0))
                break
            if task is running[0]:
                break
        if not stack:
            now = min(times[0] for times in waiting.values() if times)
            continue
        task, since, done = stack.pop()
        segments = next(iter(task.segments.values()), (task.run,))
        now += segments[done]
        if done + 1 < len(segments):
            stack.append((task, since, done + 1))
        else:
            worst[task.name] = max(worst[task.name], now - since)
    return worst


def some_arrivals(tasks: Sequence[TimedTask], seed: int, count: int) -> dict[str, list[float]]:
    """So many of each task, no closer than its period."""
    rng, found = random.Random(seed), {}
    for task in tasks:
        assert task.period is not None
        times, now = [], rng.uniform(0, task.period) if rng.random() < 0.7 else 0.0
        for _ in range(count):
            times.append(now)
            now += task.period * (1 if rng.random() < 0.7 else rng.uniform(1, 2))
        found[task.name] = times
    return found


@st.composite
def task_sets(draw: st.DrawFn) -> tuple[TimedTask, ...]:
    names = [f"t{n}" for n in range(draw(st.integers(1, 3)))]
    found = []
    for n, name in enumerate(names):
        pieces = tuple(map(float, draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))))
        run = sum(pieces)
        period = float(draw(st.integers(int(run) * len(names) + 1, int(run) * len(names) * 4 + 8)))
        above = dict.fromkeys(names[:n], pieces) if draw(st.booleans()) else {}
        found.append(TimedTask(name, -n, period, period, run, above))
    return tuple(found)


@settings(max_examples=120, deadline=None)
@given(task_sets(), st.integers(0, 1 << 30))
def test_no_simulated_arrival_is_later_than_the_bound(tasks: tuple[TimedTask, ...], seed: int) -> None:
    worst = simulated(tasks, some_arrivals(tasks, seed, 25))
    for one in responses(tasks):
        assert one.worst is None or worst[one.task.name] <= one.worst + 1e-9


def test_the_bound_is_reached() -> None:
    """A short task comes just after the longest segment of the one below it has begun."""
    high = TimedTask("high", 1, 100.0, 20.0, 5.0)
    low = TimedTask("low", 0, 1000.0, 1000.0, 40.0, {"high": (4.0, 30.0, 6.0)})
    first, second = responses((high, low))
    assert (first.blocking, first.worst, first.is_met) == (30.0, 35.0, False)
    assert second.worst == 45.0
    found = simulated((high, low), {"high": [4.001, 104.001], "low": [0.0]})
    assert found["high"] > 0.99 * first.worst
    assert responses((high, TimedTask("low", 0, 1000.0, 1000.0, 40.0)))[0].worst == 45.0  # not preempted
    assert responses((TimedTask("a", 1, 1.0, 1.0, 2.0),))[0].worst is None


def judged(seeds: range, most: int) -> tuple[int, int]:
    """The bounds of random tasks, none of which the simulation exceeds, and those that it attains."""
    bounded = attained = 0
    for seed in seeds:
        tasks = random_tasks(random.Random(seed))
        bounds = ResponseBounds(tasks).bounds
        finite = {name: bound for name, bound in bounds.items() if bound.latency < inf}
        simulation = GateSimulation(tasks, frozenset(finite), most, seed)
        simulation.run()
        for name, bound in finite.items():
            assert simulation.worst[name] <= bound.worst + 1e-9, (seed, name)
            assert simulation.latency[name] <= bound.latency + 1e-9, (seed, name)
            bounded, attained = bounded + 1, attained + (simulation.worst[name] >= bound.worst - 1e-9)
    return bounded, attained


def test_no_bound_is_exceeded_whatever_the_gate_allows() -> None:
    bounded, attained = judged(range(60), 2000)
    assert bounded > 80 and attained > bounded / 2


@pytest.mark.slow
def test_no_bound_is_exceeded_by_a_thousand_applications() -> None:
    """About eight of ten are searched exhaustively; the search attains about three quarters of all bounds."""
    bounded, attained = judged(range(60, 1060), 12_000)
    assert bounded > 1700 and attained > 0.7 * bounded


def test_networks_without_a_period_block() -> None:
    urgent = TimedTask("urgent", 1, 100.0, 30.0, 5.0)
    (worst,) = responses((urgent, TimedTask("other", -inf, None, None, 40.0)))
    assert (worst.blocking, worst.worst) == (40.0, 45.0)
    (worst,) = responses((urgent, TimedTask("other", -inf, None, None, 40.0, {"urgent": (30.0, 10.0)})))
    assert worst.worst == 35.0
    (worst,) = responses((TimedTask("other", 2, None, None, 40.0), urgent))
    assert (worst.worst, worst.endless) == (None, "other")
    by_other = TimedTask("urgent", 1, 100.0, 30.0, 5.0, anywhere=frozenset(("other",)))
    (worst,) = responses((by_other, TimedTask("other", -inf, None, None, 40.0)))
    assert (worst.worst, worst.endless) == (None, "other")


def test_a_chain_of_preemption_makes_the_first_wait_for_the_whole_chain() -> None:
    """The third runs, the second interrupts it, and the gate refuses the first until both have ended."""
    high = TimedTask("high", 3, 500.0, 500.0, 18.0)
    middle = TimedTask("middle", 2, 600.0, 300.0, 80.0, {"high": (50.0, 30.0)})
    low = TimedTask("low", 1, 1000.0, 1000.0, 58.0, {"middle": (20.0, 38.0)})
    assert [one.worst for one in responses((high, middle, low))] == [156.0, 136.0, 156.0]
    through = TimedTask("low", 1, 1000.0, 1000.0, 58.0, {"middle": (20.0, 38.0), "high": (20.0, 38.0)})
    assert [one.worst for one in responses((high, middle, through))] == [68.0, 136.0, 156.0]


def test_networks_on_other_cores_may_hold_what_a_third_waits_for() -> None:
    pair = frozenset(("a", "b"))
    a = TimedTask("a", 2, 50.0, 50.0, 10.0, beside=pair - {"a"})
    b = TimedTask("b", 1, 60.0, 60.0, 12.0, beside=pair - {"b"})
    third = TimedTask("third", 3, 100.0, 100.0, 5.0)
    assert [one.worst for one in responses((third, a, b))] == [27.0, 15.0, 17.0]
    assert [one.worst for one in responses((a, b))] == [10.0, 12.0]
    endless = TimedTask("b", 1, None, None, 12.0, beside=pair - {"b"})
    assert responses((third, a, endless))[0].endless == "b"  # it starts while `a` runs, again and again


def test_a_cascade_is_bounded_from_its_first_release_to_its_last_end() -> None:
    first = TimedTask("first", 1, 100.0, 100.0, 10.0)
    second = TimedTask("second", 1, 100.0, None, 20.0, after=frozenset(("first",)))
    urgent = TimedTask("urgent", 2, 40.0, 40.0, 3.0)
    low = TimedTask("low", 0, 200.0, 200.0, 7.0)
    assert cascade_latencies((urgent, low)) == ()
    (cascade,) = cascade_latencies((first, second))
    assert (cascade.name, cascade.worst) == ("first → second", 30.0)
    (cascade,) = cascade_latencies((urgent, first, second, low))
    assert cascade.worst == 7 + 10 + 20 + 3  # it ends before `urgent` comes again
    (cascade,) = cascade_latencies((TimedTask("first", 1, 25.0, 25.0, 10.0), second))
    assert cascade.worst is None and cascade.said == "no bound"  # the next one overwrites its input


def test_partitions_of_a_pipeline_wait_for_slots() -> None:
    """The second reads what the first has made; the others are kept out while frames are under way."""

    def worst(slots: int, tail: float = 0.0, *others: TimedTask) -> list[float | None]:
        first = TimedTask("net.1", 1, 10.0, 10.0, 4.0, beside=frozenset(("net.2",)))
        second = TimedTask("net.2", 1, 10.0, 10.0, 7.0, beside=frozenset(("net.1",)), reads={"net.1": slots}, tail=tail)
        return [one.worst for one in responses((first, second, *others))]

    assert worst(2) == [4.0, 7.0]
    assert worst(1) == [None, None]  # the first waits until the second has ended, and falls behind
    assert worst(1, 2.0) == [4.0, 7.0]  # the second gives the slot back 2 before it ends
    assert worst(2, 0.0, TimedTask("low", 0, 100.0, 100.0, 1.0))[2] is None  # it never finds a moment without frames


@pytest.mark.slow
@pytest.mark.parametrize("points", ["stages", "rows"])
def test_ten_thousand_arrivals_of_keywords_over_visual_wake_words(
    points: str, tmp_path: Path, corpus_folder: Path
) -> None:
    """The bound is never below what happens, and at most a fifth above the worst of it."""
    models = corpus_folder.resolve() / "models"
    timing = {"kws": ("mlperf_kws_ref_int8", "100 ms"), "vww": ("mlperf_vww96_int8", "250 ms")}
    text = "".join(
        f'[[network]]\nname = "{name}"\nfile = "{models / model}.tflite"\nperiod = "{period}"\n'
        for name, (model, period) in timing.items()
    )
    relation = f'[[relation]]\nkind = "preempts"\nnetworks = ["kws", "vww"]\npoints = "{points}"\n'
    (tmp_path / "app.toml").write_text(f'board = "nucleo-f446re"\n{text}{relation}')
    search = JointSearch(load_application(tmp_path / "app.toml"))
    tasks = tasks_of(search.application, search.least.layout.deployment)
    worst = simulated(tasks, some_arrivals(tasks, 1, 10_000))
    for one in responses(tasks):
        assert one.worst is not None
        assert worst[one.task.name] - 1e-9 <= one.worst <= 1.2 * worst[one.task.name]


def app(folder: Path, entries: str, relations: str = "") -> Path:
    samples.write_application("tiny_application", folder)
    (folder / "timed.toml").write_text(f'board = "nucleo-f446re"\n{entries}{relations}')
    return folder / "timed.toml"


def network(name: str, more: str) -> str:
    return f'[[network]]\nname = "{name}"\nfile = "{name}.onnx"\n{more}\n'


def test_deadlines_of_an_application(tmp_path: Path) -> None:
    fine = app(tmp_path, network("wake", 'period = "50 ms"') + network("detect", 'period = "200 ms"'))
    found = plan_application(load_application(fine), steps=0)
    assert [one.task.name for one in found.responses] == ["wake", "detect"]
    assert all(one.is_met for one in found.responses)
    assert set(found.to_dict()["responses"]) == {"wake", "detect"}  # type: ignore[call-overload]
    tight = network("wake", 'period = "50 ms"\ndeadline = "1 us"') + network("detect", 'period = "200 ms"')
    with pytest.raises(Infeasible, match=r"'wake' ends after .* at worst, .* after its deadline"):
        plan_application(load_application(app(tmp_path, tight)), steps=0)
    busy = network("wake", 'period = "1 us"') + network("detect", 'period = "2 us"')
    with pytest.raises(Infeasible, match=r"'wake' may never end.*busy for .*% of the time"):
        plan_application(load_application(app(tmp_path, busy)), steps=0)
    fast = network("detect", "throughput = 1000000")
    with pytest.raises(Infeasible, match=r"'detect' is to run 1e.06 times a second"):
        plan_application(load_application(app(tmp_path, fast)), steps=0)
    endless = network("wake", 'period = "50 ms"') + network("detect", "priority = 1")
    with pytest.raises(Infeasible, match=r"'wake' may never end, since 'detect' has no period.*give 'detect' a period"):
        plan_application(load_application(app(tmp_path, endless)), steps=0)
    (tmp_path / "timed.toml").write_text(network("wake", 'period = "1 s"'))
    with pytest.raises(InputError, match="name a board"):
        plan_application(load_application(tmp_path / "timed.toml"), steps=0)


def test_latency_of_an_application_with_a_cascade(tmp_path: Path) -> None:
    entries = network("detect", 'period = "200 ms"') + network("landmarks", "") + network("classify", "")
    relations = '[[relation]]\nkind = "after"\nnetworks = ["detect", "landmarks"]\n'
    relations += '[[relation]]\nkind = "same input"\nnetworks = ["detect", "classify"]\n'
    outcome = plan_application(load_application(app(tmp_path, entries, relations)), steps=0)
    assert outcome.joint is not None
    tasks = {task.name: task for task in tasks_of(outcome.application, outcome.joint.layout.deployment)}
    assert {task.period for task in tasks.values()} == {0.2}  # those without one are triggered
    assert [one.task.name for one in outcome.responses] == ["detect"]
    found = outcome.to_dict()["cascades"]
    assert isinstance(found, list) and {tuple(one["networks"]) for one in found} == {
        ("detect", "landmarks"),
        ("detect", "classify"),
    }
    total = sum(task.run for task in tasks.values())
    assert max(one["worst_s"] for one in found) == pytest.approx(total)
    assert "detect → landmarks" in application_page(outcome)
