"""A simulated day: the drone of M 5.4, noise, batteries, delays; energy and limits against sums second by second."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from edgewright import samples
from edgewright.adaptive.description import read_adaptive
from edgewright.adaptive.environment import (
    Battery,
    Environment,
    PowerLimit,
    Signal,
    TimedRequest,
    read_environment,
)
from edgewright.adaptive.rules import (
    SignalRule,
    SwitchingRules,
    advance,
    initial_state,
    switching_rules,
    with_request,
    with_signals,
)
from edgewright.adaptive.simulation import (
    HOUR,
    ScenarioFigures,
    SimulationOutcome,
    scenario_figures,
    simulate,
    simulate_alone,
    simulate_application,
)
from edgewright.cli import main
from edgewright.cli.simulation_tables import clock, simulate_environment
from edgewright.errors import InputError
from edgewright.report.simulation_plot import simulation_svg
from tests.helpers.damage import damaged_text

SVG = "{http://www.w3.org/2000/svg}"
NAMES = ("eco", "mid", "full")
FIGURES = {"eco": ScenarioFigures(0.7, 2.0), "mid": ScenarioFigures(0.8, 5.0), "full": ScenarioFigures(0.9, 11.0)}


@pytest.fixture(scope="module")
def uav(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return samples.write_application("uav", tmp_path_factory.mktemp("uav"))


# The drone.


def test_the_flight_of_minakova_5_4(uav: Path):
    outcome = simulate_application(uav, uav.with_name("flight.toml"))
    day = outcome.simulation
    assert day.energy / HOUR == pytest.approx(50.12, abs=1e-9)
    assert day.accuracy == pytest.approx(0.869, abs=1e-12)
    assert day.violations == ()
    assert [(one.time, one.old, one.new) for one in day.switches] == [
        (360.0, "windy", "calm"),
        (3600.0, "calm", "windy"),
        (5400.0, "windy", "calm"),
    ]
    assert day.environment.battery.least == (
        (0, 52 * HOUR),
        (360, 50.8 * HOUR),
        (3600, 22 * HOUR),
        (5400, 16 * HOUR),
        (7200, 0),
    )
    windy, calm = outcome.alone["windy"], outcome.alone["calm"]
    assert (windy.energy / HOUR, windy.accuracy, windy.violations) == (pytest.approx(22.4), 0.82, ())
    assert calm.energy / HOUR == pytest.approx(62.0)
    assert [(one.kind, one.start, one.end) for one in calm.violations] == [
        ("power", 0.0, 360.0),
        ("power", 3600.0, 5400.0),
        ("energy", 0.0, 7200.0),
    ]


def test_gusts_switch_seldom_thanks_to_hysteresis_and_dwell_time(uav: Path):
    file, gusts = read_adaptive(uav), read_environment(uav.with_name("gusts.toml"))
    rules, figures = switching_rules(file), scenario_figures(file, "app.toml")
    bare = replace(rules, dwell=0.0, rules=tuple(replace(rule, until=rule.threshold) for rule in rules.rules))
    counts = [
        len(simulate(one, figures, gusts).switches)
        for one in (bare, replace(bare, dwell=60.0), replace(rules, dwell=0.0), rules)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 100 and counts[-1] == 3


@given(st.integers(0, 2**32), st.floats(0, 10), st.integers(1, 600), st.booleans())
def test_a_noisy_signal_switches_at_most_once_in_a_dwell_time(seed, noise, dwell, has_hysteresis):
    rule = SignalRule("battery", "eco", 0.25, 0.35 if has_hysteresis else 0.25, is_below=True)
    rules = SwitchingRules(NAMES, "full", "full", (rule,), dwell=float(dwell))
    battery = Signal("battery", (0.0, 3600.0), (1.0, 0.0), is_linear=True, noise=noise)
    day = simulate(rules, FIGURES, Environment(3600.0, (battery,), seed=seed))
    assert all(after.time - before.time >= dwell for before, after in pairwise(day.switches))


# Against sums second by second.


@st.composite
def days(draw: st.DrawFn) -> tuple[SwitchingRules, Environment, dict[tuple[str, str], float]]:
    """Rules, an environment and delays, all of whose times are whole seconds."""
    signals, read = [], []
    for name in draw(st.sets(st.sampled_from("ab"))):
        times = sorted(draw(st.sets(st.integers(0, 60), min_size=1, max_size=12)))
        signals.append(Signal(name, tuple(map(float, times)), tuple(float(draw(st.integers(0, 4))) for _ in times)))
        for _ in range(draw(st.integers(1, 2))):
            threshold, gap, is_below = draw(st.integers(0, 4)), draw(st.integers(0, 2)), draw(st.booleans())
            until = threshold + gap if is_below else threshold - gap
            read.append(SignalRule(name, draw(st.sampled_from(NAMES)), threshold, until, is_below))
    starts = draw(st.sampled_from(NAMES)), draw(st.sampled_from(NAMES))
    rules = SwitchingRules(NAMES, *starts, tuple(read), dwell=float(draw(st.integers(0, 9))))
    asked = draw(st.lists(st.tuples(st.integers(0, 59), st.sampled_from(NAMES)), max_size=5))
    cuts = sorted(draw(st.sets(st.integers(0, 60), min_size=2, max_size=5)))
    limits = tuple(PowerLimit(a, b, draw(st.sampled_from((3.0, 5.0, 8.0)))) for a, b in pairwise(cuts))
    least = tuple(zip(cuts, sorted((draw(st.integers(0, 300)) for _ in cuts), reverse=True), strict=True))
    environment = Environment(
        60.0,
        tuple(signals),
        limits,
        tuple(TimedRequest(float(time), name) for time, name in sorted(asked, key=lambda one: one[0])),
        Battery(300.0, least),
    )
    pairs = [(old, new) for old in NAMES for new in NAMES if old != new]
    return rules, environment, {pair: float(draw(st.integers(0, 7))) for pair in pairs}


@given(days())
def test_a_day_equals_its_seconds(case):
    rules, around, delays = case
    day = simulate(rules, FIGURES, around, delays)
    state, busy, old, switches = initial_state(rules), 0, "", []
    energy = accuracy = 0.0
    # Seconds over a limit on power; ends of seconds where the charge is just the least one, or short of it.
    over, ties, short = set(), set(), {0} if around.battery.least_at(0) > 300 else set()
    for second in range(60):
        told = {s.name: s.values[s.times.index(second)] for s in around.signals if second in s.times}
        state = with_signals(rules, state, told)
        for request in around.requests:
            if request.time == second:
                state = with_request(rules, state, request.scenario)
        if second >= busy:
            old = state.current
            state = advance(rules, state, second)
            if state.current != old:
                switches.append((second, old, state.current))
                busy = second + delays[old, state.current]
        one, before = FIGURES[state.current], FIGURES[old or state.current]
        power = max(one.power, before.power) if second < busy else one.power
        accuracy += before.accuracy if second < busy else one.accuracy
        energy += power
        over |= {second} if any(x.begin <= second < x.end and power > x.power for x in around.limits) else set()
        lacking = around.battery.least_at(second + 1) - (300 - energy)
        short |= {second + 1} if lacking > 1e-6 else set()
        ties |= {second + 1} if abs(lacking) <= 1e-6 else set()
    assert [(one.time, one.old, one.new) for one in day.switches] == switches
    assert day.energy == pytest.approx(energy)
    assert day.accuracy == pytest.approx(accuracy / 60)
    found = {kind: [one for one in day.violations if one.kind == kind] for kind in ("power", "energy")}
    assert {s for s in range(60) if any(v.start <= s < v.end for v in found["power"])} == over
    inside = {s for s in range(1, 60) if any(v.start + 1e-6 < s < v.end - 1e-6 for v in found["energy"])}
    assert inside - ties == short - {0, 60}
    assert any(v.start == 0 for v in found["energy"]) or 0 not in short
    for violations in found.values():
        assert all(a.end < b.start for a, b in pairwise(violations))


# Batteries and delays.


def test_rules_may_read_the_charge():
    """11 W from 3 Wh: at 1,800 J of 10,800 J the charge falls below a sixth, which is seen at the next sample."""
    rule = SignalRule("charge", "eco", 1 / 6, 0.5, is_below=True)
    rules = SwitchingRules(NAMES, "full", "full", (rule,))
    day = simulate(rules, FIGURES, Environment(1200.0, battery=Battery(10_800.0, signal="charge"), sample=10.0))
    assert [(one.time, one.new) for one in day.switches] == [(820.0, "eco")]  # 9,000 J / 11 W = 818.2 s
    assert day.energy == pytest.approx(820 * 11 + 380 * 2)
    assert day.violations == ()


def test_an_empty_battery_is_a_violation():
    day = simulate_alone("full", FIGURES["full"], Environment(100.0, battery=Battery(550.0)))
    (violation,) = day.violations
    assert (violation.start, violation.end) == (pytest.approx(50.0), 100.0)
    assert violation.said == "energy budget violated by up to 0.153 Wh"


def test_until_the_first_output_of_the_new_scenario_accuracy_is_the_old_one_and_power_the_larger():
    rules = SwitchingRules(NAMES, "eco", "eco")
    requests = (TimedRequest(10.0, "full"), TimedRequest(11.0, "mid"))
    day = simulate(rules, FIGURES, Environment(30.0, requests=requests), {("eco", "full"): 5.0, ("full", "mid"): 1.0})
    assert [(p.start, p.end, p.figures.accuracy, p.figures.power) for p in day.periods] == [
        (0.0, 10.0, 0.7, 2.0),
        (10.0, 15.0, 0.7, 11.0),
        (15.0, 16.0, 0.9, 11.0),  # the request within the switch waits for its end
        (16.0, 30.0, 0.8, 5.0),
    ]
    assert [(one.time, one.delay) for one in day.switches] == [(10.0, 5.0), (15.0, 1.0)]


def test_of_requests_within_a_switch_the_newest_is_carried_out():
    rules = SwitchingRules(NAMES, "eco", "eco")
    requests = tuple(TimedRequest(*one) for one in ((10.0, "full"), (11.0, "eco"), (12.0, "mid")))
    day = simulate(rules, FIGURES, Environment(30.0, requests=requests), {("eco", "full"): 5.0})
    assert [(one.time, one.new) for one in day.switches] == [(10.0, "full"), (15.0, "mid")]


def test_the_charge_falls_within_a_switch():
    """A switch from 40 s to 50 s; after 49 s the charge falls below 461 J, which the sample at 52 s sees."""
    rule = SignalRule("charge", "mid", 0.461, 0.9, is_below=True)
    rules = SwitchingRules(NAMES, "full", "full", (rule,))
    around = Environment(80.0, (), (), (TimedRequest(40.0, "eco"),), Battery(1000.0, signal="charge"), sample=4.0)
    day = simulate(rules, FIGURES, around, {("full", "eco"): 10.0})
    assert [(one.time, one.new) for one in day.switches] == [(40.0, "eco"), (52.0, "mid")]


def test_signals_that_only_one_side_knows_are_refused():
    rules = SwitchingRules(NAMES, "eco", "eco", (SignalRule("wind", "full", 5.0, 4.0, is_below=False),))
    with pytest.raises(
        InputError, match=r'no signal "wind", which a rule reads; expected a \[\[signal\]\] of that name'
    ):
        simulate(rules, FIGURES, Environment(10.0))
    with pytest.raises(InputError, match='gives the signal "wnd", which no rule reads; rules read: wind'):
        simulate(rules, FIGURES, Environment(10.0, (Signal("wnd", (0.0,), (1.0,)),)))


@pytest.mark.parametrize("key", ["accuracy", "power"])
def test_figures_that_are_missing_are_asked_for(uav: Path, tmp_path: Path, key: str):
    lines = uav.read_text().splitlines()
    lines.remove(next(line for line in reversed(lines) if line.startswith(key)))
    (tmp_path / "app.toml").write_text("\n".join(lines))
    with pytest.raises(
        InputError, match=rf"app\.toml: scenario\[1\]\.{key} is missing; a simulation needs it, such as"
    ):
        simulate_application(tmp_path / "app.toml", uav.with_name("flight.toml"))


# The file.

GOOD = """
duration = "1 h"
sample = "2 s"
seed = 3
[[signal]]
name = "wind"
times = [0, "10 min", "0.5 h"]
values = [1, 2.5, -3]
between = "linear"
noise = 0.5
[[limit]]
from = "30 min"
until = "1 h"
power = "2 W"
[[limit]]
from = 0
until = "30 min"
power = "1 W"
[[request]]
time = "20 min"
scenario = "full"
[battery]
capacity = "2 Wh"
signal = "charge"
"""


def read(text: str, folder: Path) -> Environment:
    (folder / "day.toml").write_text(text)
    return read_environment(folder / "day.toml")


def test_everything_that_an_environment_may_say(tmp_path: Path):
    assert read(GOOD, tmp_path) == Environment(
        3600.0,
        (Signal("wind", (0.0, 600.0, 1800.0), (1.0, 2.5, -3.0), is_linear=True, noise=0.5),),
        (PowerLimit(0.0, 1800.0, 1.0), PowerLimit(1800.0, 3600.0, 2.0)),
        (TimedRequest(1200.0, "full"),),
        Battery(7200.0, ((0.0, 7200.0), (1800.0, 5400.0), (3600.0, 1800.0)), "charge"),
        sample=2.0,
        seed=3,
        name=str(tmp_path / "day.toml"),
    )


def test_signals_are_read_at_their_times_or_sampled(tmp_path: Path):
    held = GOOD.replace("noise = 0.5", "").replace('between = "linear"', "")
    assert read(held, tmp_path).readings() == {0.0: {"wind": 1.0}, 600.0: {"wind": 2.5}, 1800.0: {"wind": -3.0}}
    linear = read(GOOD.replace("noise = 0.5", ""), tmp_path).readings()
    assert (len(linear), linear[300.0], linear[1200.0], linear[3598.0]) == (
        1800,
        {"wind": 1.75},
        {"wind": -0.25},
        {"wind": -3.0},
    )
    noisy, again, other = (read(GOOD.replace("seed = 3", f"seed = {n}"), tmp_path).readings() for n in (3, 3, 4))
    assert noisy == again != other
    distances = [abs(noisy[time]["wind"] - linear[time]["wind"]) for time in linear]
    assert 0.45 < max(distances) <= 0.5


def test_a_signal_may_come_from_a_csv_file(tmp_path: Path):
    (tmp_path / "log.csv").write_text("time,other,wind\n0,5,1\n10 min,6,\n0.5 h,7,2.5e0\n")
    text = 'duration = "1 h"\n[[signal]]\nname = "wind"\nfile = "log.csv"\n'
    assert read(text, tmp_path).signals == (Signal("wind", (0.0, 1800.0), (1.0, 2.5)),)
    for table, said in (
        ("time,wnd\n0,1\n", r'signal\[0\].file: .*log.csv has no column "wind" \(columns: "time", "wnd"\)'),
        ("time,wind\n", 'log.csv has no values of "wind"; expected one row or more'),
        ("time,wind\n0,1\n0,2\n", "log.csv: the time 0 s follows 0 s; expected rising times"),
        ("time,wind\n0,x\n", r'log.csv, line 2: "x" is no value of a signal; expected a number'),
        ("time,wind\n0,nan\n", r'log.csv, line 2: "nan" is no value'),
        ("time,wind\nsoon,1\n", r'log.csv, line 2: time: "soon" is not a time; expected a time such as'),
        ("\x00", "log.csv"),
    ):
        (tmp_path / "log.csv").write_text(table)
        with pytest.raises(InputError, match=said):
            read(text, tmp_path)
    (tmp_path / "log.csv").unlink()
    with pytest.raises(
        InputError, match=r"log.csv cannot be read: No such file or directory; expected CSV with a header"
    ):
        read(text, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('duration = "1 h"', "", 'duration is missing; expected a time, such as "2 h"'),
        ('"1 h"', '"1 hour"', 'duration: "1 hour" is not a time ("hour" is no unit of it); expected a time such as'),
        ('sample = "2 s"', 'sample = "1 us"', "sample is 1e-06 s, too short for 3600 s; expected at least 0.0036 s"),
        ('[0, "10 min", "0.5 h"]', '[0, "10 min"]', "signal[0].values has 3 entries; expected 2, one for each"),
        ('[0, "10 min", "0.5 h"]', '[0, "10 min", 600]', "signal[0].times has 600 s after 600 s; expected rising"),
        ("times = [0", 'file = "x.csv"\ntimes = [0', "signal[0] has both times and a file, or neither; expected"),
        ("noise = 0.5", "noise = -1", "signal[0].noise is -1; expected how far every sample may lie"),
        ('"linear"', '"lines"', 'signal[0].between is "lines"; expected "hold" for steps, or "linear" for'),
        ('"charge"', '"wind"', 'signal[0].name is "wind", as in battery.signal; expected a unique name'),
        ('from = "30 min"', 'from = "2 h"', "limit[0].until is 3600 s; expected a time after from, 7200 s"),
        ('from = "30 min"', 'from = "20 min"', "limit[0].from is 1200 s, before another limit ends; expected 1800 s"),
        ('time = "20 min"', 'time = "60 min"', "request[0].time is 3600 s; expected a time before the end, 3600 s"),
        ("[battery]", "[battery]\ntimes = [0]", "battery.charge has 0 entries; expected 1, one for each"),
        ("[battery]", '[battery]\ntimes = [0]\ncharge = ["3 Wh"]', "battery.charge is above the capacity; expected"),
    ],
)
def test_wrong_environments_are_refused_with_a_sentence(tmp_path: Path, old: str, new: str, said: str):
    assert old in GOOD
    with pytest.raises(InputError) as error:
        read(GOOD.replace(old, new, 1), tmp_path)
    assert f"day.toml: {said}" in str(error.value)


@given(st.integers(0, 10**9))
def test_damaged_environments_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, seed: int):
    path = tmp_path_factory.mktemp("damaged") / "day.toml"
    path.write_bytes(damaged_text(Random(seed), GOOD.encode(), GOOD.replace("1 h", "1 min").encode()))
    try:
        environment = read_environment(path)
    except InputError:
        return
    assert all(time < environment.duration for time in environment.readings())


# What is printed and drawn.


def test_the_table_and_the_json(uav: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    flight = ["--environment", str(uav.with_name("flight.toml"))]
    printed = CliRunner().invoke(main, ["adapt", str(uav), *flight, "--timeline", str(tmp_path / "flight.svg")]).output
    for row in (
        "with switching │            50.12 │    86.9% │        3 │ kept",
        "windy alone    │            22.40 │    82.0% │        0 │ kept",
        "calm alone     │            62.00 │    89.0% │        0 │ power and energy violated",
        "calm alone: power budget violated by up to 19 W, from 1:00:00 to 1:30:00",
    ):
        assert row in printed
    assert (tmp_path / "flight.svg").exists()
    simulate_environment(uav, uav.with_name("flight.toml"), None, True, {("windy", "calm"): 0.25})
    told = json.loads(capsys.readouterr().out)
    assert told["switches"][0] == {"time": 360.0, "from": "windy", "to": "calm", "delay": 0.25}
    assert told["switches"][1]["delay"] is None
    assert told["energy_Wh"] == pytest.approx(50.12, abs=0.01)
    assert (told["capacity_Wh"], told["alone"]["calm"]["violations"]) == (52.0, 3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--timeline", "x.svg"], "--timeline shows a simulated day: add --environment ENV.TOML."),
        (
            ["--environment", "missing.toml", "--share", "I"],
            "--share is for the paper's model: leave --environment out.",
        ),
        (["--environment", "missing.toml"], "missing.toml: cannot be read: No such file or directory; expected an env"),
    ],
)
def test_options_that_do_not_go_together(uav: Path, options: list[str], said: str):
    done = CliRunner().invoke(main, ["adapt", str(uav), *options])
    assert done.exit_code and said in done.output


def test_times_of_day():
    assert [clock(time) for time in (0, 5400, 2.5, 59.9996)] == ["0:00:00", "1:30:00", "0:00:02.5", "0:01:00"]


def drawn(outcome: SimulationOutcome) -> ElementTree.Element:
    return ElementTree.fromstring(simulation_svg(outcome))


def paths(picture: ElementTree.Element, kind: str) -> list[str]:
    return [path.get("d") for path in picture.iter(f"{SVG}path") if path.get("class") == kind]


def test_the_picture_of_a_flight(uav: Path):
    outcome = simulate_application(uav, uav.with_name("flight.toml"))
    picture = drawn(outcome)
    told = [title.text for title in picture.iter(f"{SVG}title")]
    assert "windy: from above 8 until 5" in told
    assert "calm\nfrom 0.1 h to 1 h" in told
    bars = [rect for rect in picture.iter(f"{SVG}rect") if rect.get("class") == "run"]
    assert [float(bar.get("width")) for bar in bars] == pytest.approx([38.8, 349.2, 194, 194])
    shown = [text.text for text in picture.iter(f"{SVG}text")]
    assert {"scenario in use (3 switches)", "mean over time, 86.9 %", "calm alone: empty at 1.677 h"} <= set(shown)
    assert not [rect for rect in picture.iter(f"{SVG}rect") if rect.get("class") == "violated"]
    calm = drawn(replace(outcome, simulation=outcome.alone["calm"]))
    assert len([rect for rect in calm.iter(f"{SVG}rect") if rect.get("class") == "violated"]) == 3


def test_pictures_stay_small_and_harmless():
    """A noisy signal of 100,000 samples, names that are markup, no battery."""
    evil = "</text><script>x</script>"
    figures = {evil: ScenarioFigures(0.5, 1.0), "b": ScenarioFigures(0.5, 1.0)}
    rules = SwitchingRules((evil, "b"), evil, evil, (SignalRule(evil, "b", 0.5, 0.4, is_below=False),), dwell=60.0)
    noisy = Signal(evil, (0.0,), (0.0,), noise=1.0)
    around = Environment(1e5, (noisy,), battery=None)
    picture = simulation_svg(SimulationOutcome(rules, simulate(rules, figures, around), {}))
    assert "<script" not in picture
    assert ElementTree.fromstring(picture).tag == f"{SVG}svg"
    assert len(picture) < 400_000
