"""Everything about a graph at once: the parts agree, schedules in short say the same, notes tell what is missing."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewright.dataflow import (
    Actor,
    Channel,
    Graph,
    Rates,
    ScheduleLoop,
    analyse,
    analysis_to_dict,
    looped,
    period,
    read_mapping,
    read_times,
    schedule_text,
)
from edgewright.dataflow.analysis import bounded_front, usual_weight
from edgewright.dataflow.buffers.schedule import Schedule
from edgewright.errors import InputError, Unsupported
from tests.dataflow.schedule_judge import check_schedule
from tests.helpers.random_graphs import live_graphs


def unrolled(loops: tuple[ScheduleLoop, ...]) -> list[str]:
    """The firings that loops stand for, one by one."""
    found: list[str] = []
    for loop in loops:
        body = [loop.body] if isinstance(loop.body, str) else unrolled(loop.body)
        found += body * loop.times
    return found


def fired(runs) -> list[str]:
    return [actor for actor, count in runs for _ in range(count)]


def merged(firings: list[str]) -> tuple[tuple[str, int], ...]:
    runs: list[tuple[str, int]] = []
    for actor in firings:
        count = runs.pop()[1] if runs and runs[-1][0] == actor else 0
        runs.append((actor, count + 1))
    return tuple(runs)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 2)), max_size=60))
def test_loops_say_the_same_as_runs(runs):
    assert unrolled(looped(tuple(runs))) == fired(runs)


@given(st.lists(st.sampled_from("abcdef"), unique=True, max_size=6), st.integers(1, 6), st.integers(1, 6))
def test_nested_repetitions_are_no_longer_than_their_pattern(inner, often, more):
    firings = ["x", *inner * often] * more
    loops = looped(merged(firings))
    assert unrolled(loops) == firings
    assert sum(1 for _ in steps(loops)) <= len(inner) + 3


def steps(loops):
    for loop in loops:
        yield loop
        if not isinstance(loop.body, str):
            yield from steps(loop.body)


def test_schedule_in_words():
    runs = (("a", 2), *[("b", 1), ("c", 2)] * 3)
    assert schedule_text(Schedule((), runs)) == "2 a 3 (b 2 c)"
    assert schedule_text(Schedule((("a", 1),), runs)) == "a; 2 a 3 (b 2 c)"


def test_names_that_look_like_something_else_are_quoted():
    assert schedule_text(Schedule((), (("12", 2), ("a b", 1), ("/x/Conv", 1)))) == "2 '12' 'a b' /x/Conv"


def test_long_schedules_fold_fast():
    pattern = [(f"l{i}", 1) for i in range(300)]
    loops = looped((("in", 3), *pattern * 400))
    assert [loop.times for loop in loops] == [3, 400]


@given(live_graphs(initial_phases=0, times=st.integers(1, 5)))
def test_parts_of_an_analysis_agree(graph):
    found = analyse(graph)
    assert found.is_live and found.buffers is not None
    assert found.buffers.is_optimal
    assert check_schedule(graph, found.buffers.capacities, found.buffers.schedule) is None
    assert found.period_at_minimum == period(graph, found.buffers.capacities)
    assert found.period_at_minimum >= found.period
    assert found.peak.tokens <= found.buffers.tokens
    assert json.loads(json.dumps(analysis_to_dict(found)))["min_buffer"]["tokens"] == found.buffers.tokens


def chain(times: int | None = 1, rates=((2, 3),), tokens=0) -> Graph:
    made = None if times is None else (times,)
    names = "abcdef"[: len(rates) + 1]
    channels = [
        Channel(f"c{i}", names[i], names[i + 1], Rates((p,)), Rates((c,)), tokens) for i, (p, c) in enumerate(rates)
    ]
    return Graph("chain", tuple(Actor(name, 1, made) for name in names), tuple(channels))


def test_missing_times_are_told_and_the_rest_is_there():
    found = analyse(chain(None))
    assert found.buffers is not None and found.buffers.tokens == 4
    assert (found.period, found.latency, found.period_at_minimum) == (None, None, None)
    assert "no execution time is given for 2 of its 2 actors" in found.notes[0]
    assert "no execution time" in analysis_to_dict(found)["period_reason"]


def test_what_is_too_much_is_noted_and_nothing_else_is_lost():
    found = analyse(chain(), effort=10)
    assert not found.is_fastest and found.buffers.tokens == 4 and found.period_at_minimum == 4
    assert "too many for such a search" in found.notes[0]
    with pytest.raises(Unsupported, match="firings on 1 channels"):
        bounded_front(chain(), "tokens", effort=10)


def test_fractions_are_texts():
    graph = Graph(
        "half",
        (Actor("a", 1, (Fraction(1, 2),)),),
        (Channel("s", "a", "a", Rates((1,)), Rates((1,)), 1),),
    )
    data = analysis_to_dict(analyse(graph))
    assert (data["period"], data["throughput"]) == ("1/2", 2)


def test_inconsistent_and_dead_graphs_say_why():
    ends = (Actor("a", 1, (1,)), Actor("b", 1, (1,)))
    one, two = Rates((1,)), Rates((2,))
    wrong = Graph("g", ends, (Channel("x", "a", "b", one, one), Channel("y", "a", "b", two, one)))
    dead = Graph("g", ends, (Channel("x", "a", "b", one, one), Channel("y", "b", "a", one, one)))
    found = analyse(wrong)
    assert not found.is_consistent and not found.is_live and "rates multiply to" in found.trouble
    found = analyse(dead)
    assert found.is_consistent and not found.is_live and "closes the cycle" in found.trouble
    assert analysis_to_dict(found)["deadlock"] == found.trouble


def test_bytes_are_least_where_some_tokens_have_none():
    graph = chain()
    assert usual_weight(graph) == "tokens"
    control = Channel("order", "a", "b", Rates((2,)), Rates((3,)), token_bytes=0)
    assert usual_weight(Graph("g", graph.actors, (*graph.channels, control))) == "bytes"


@pytest.mark.parametrize("text", ['{"a": "cpu", "b.c": "gpu"}', 'a = "cpu"\n"b.c" = "gpu"\n'])
def test_mappings_in_json_and_toml(tmp_path, text):
    (tmp_path / "m").write_text(text)
    assert read_mapping(tmp_path / "m") == {"a": "cpu", "b.c": "gpu"}


def test_times_are_exact(tmp_path):
    (tmp_path / "t").write_text('{"a": 0.1, "b": 3, "c": "1/3"}')
    assert read_times(tmp_path / "t") == {"a": Fraction(1, 10), "b": 3, "c": Fraction(1, 3)}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('b.c = "gpu"', "put names with dots in quotes"),
        ("[1, 2]", "expected a processor for each layer"),
        ('{"a": 1}', "processor of layer 'a' is no name"),
        ("{", "neither JSON nor TOML"),
        ("[" * 100_000, "nested too deeply"),
        ("\udcff", "not UTF-8"),
    ],
)
def test_bad_mappings(tmp_path, text, says):
    (tmp_path / "m").write_text(text, errors="surrogateescape")
    with pytest.raises(InputError, match=says):
        read_mapping(tmp_path / "m")


@pytest.mark.parametrize(
    "text", ['{"a": true}', '{"a": "soon"}', '{"a": "1/0"}', '{"a": NaN}', '{"a": 1' + "0" * 99 + "}"]
)
def test_bad_times(tmp_path, text):
    (tmp_path / "t").write_text(text)
    with pytest.raises(InputError, match="time of layer 'a' is no number"):
        read_times(tmp_path / "t")


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        read_times(tmp_path / "none")
    with pytest.raises(InputError, match="is a directory"):
        read_times(tmp_path)
