"""`edgewright csdf` as a user meets it: every option, what JSON holds, and what it says about bad input."""

from __future__ import annotations

import csv
import json
import os
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from edgewright import samples
from edgewright.cli import main
from edgewright.dataflow import read_graph, repetitions


def run(*arguments):
    return CliRunner().invoke(main, ["csdf", *map(str, arguments)])


def succeed(*arguments) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def answer(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return samples.write("minakova_example", tmp_path_factory.mktemp("models"))


def actor(name, **more):
    return {"name": name, "times": 1, **more}


def channel(name, source, target, production, consumption, **more):
    ends = {"name": name, "source": source, "target": target}
    return {**ends, "production": production, "consumption": consumption, **more}


@pytest.fixture
def write(tmp_path):
    def written(actors, channels, name="graph"):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"name": name, "actors": actors, "channels": channels}))
        return path

    return written


@pytest.fixture
def tiny(write):
    """Two actors in a ring, small enough to follow by hand."""
    ring = [channel("ab", "a", "b", "2,1", "3*1"), channel("ba", "b", "a", "3*1", "3,0", tokens=8)]
    return write([actor("a"), actor("b")], ring, "tiny")


# Models


def test_the_graph_of_a_model(model):
    text = succeed(model)
    assert "Conv2d 17×17 → 4" in text and "[15*1, 17]" in text
    assert "CSDF: 6 actors, 13 channels, 55 firings per iteration" in text
    assert "time counts multiply-accumulates" in text
    assert "6 self-loops of one token" in text


def test_skip_connections_are_named(tmp_path):
    assert "skip connection" in succeed(samples.write("resnet8", tmp_path))


def test_graphs_of_a_model_can_be_read_again(model, tmp_path):
    data = answer(model, "--sdf3", tmp_path / "g.xml", "--dot", tmp_path / "g.dot")
    (tmp_path / "g.json").write_text(json.dumps(data))
    again = [read_graph(tmp_path / name) for name in ("g.xml", "g.json")]
    assert again[0] == again[1]
    assert data["kind"] == "csdf" and data["repetitions"] == repetitions(again[0])
    assert (tmp_path / "g.dot").read_text().startswith("digraph")
    expected = answer(model, "--analyse")
    for name in ("g.xml", "g.json"):
        found = answer(tmp_path / name, "--analyse")
        assert found["min_buffer"] == expected["min_buffer"]
        assert found["period"] == expected["period"]


def phases(data) -> list[int]:
    return [one["phases"] for one in data["actors"]]


def test_ways_to_make_a_graph(model):
    assert phases(answer(model)) == [32, 16, 4, 1, 1, 1]
    assert phases(answer(model, "--sdf")) == [1] * 6
    assert phases(answer(model, "--rule", "M")) == [32, 16, 4, 1, 1, 1]
    assert phases(answer(model, "--rule", "B"))[0] == 1
    rows, elements = answer(model), answer(model, "--elements")
    assert rows["channels"][0]["token_bytes"] == 128 and elements["channels"][0]["token_bytes"] == 4
    assert elements["channels"][0]["production"] == "32*32"
    loops = answer(model, "--self-loops")
    assert any(one["name"].endswith(".reuse") for one in loops["channels"])


@pytest.mark.parametrize("suffix", ["json", "toml"])
def test_a_mapping_makes_an_actor_of_each_processor(model, tmp_path, suffix):
    where = {"l2": "gpu", "l3": "cpu", "flatten1": "cpu", "l4": "cpu"}
    lines = json.dumps(where) if suffix == "json" else "\n".join(f'{k} = "{v}"' for k, v in where.items())
    path = tmp_path / f"map.{suffix}"
    path.write_text(lines)
    data = answer(model, "--mapping", path, "--analyse")
    assert data["repetitions"] == {"gpu": 1, "cpu": 1}
    assert data["min_buffer"]["bytes"] == 16 * 16 * 4 * 4  # the tensor between them, float32


def test_mappings_that_do_not_fit(model, tmp_path):
    path = tmp_path / "map.json"
    path.write_text('{"l2": "gpu"}')
    result = run(model, "--mapping", path)
    assert result.exit_code == 1 and "'l3' is mapped to no processor" in result.stderr


def test_times_of_layers(model, tmp_path):
    path = tmp_path / "times.toml"
    path.write_text('l2 = 160\nl3 = 0.5\nflatten1 = 0\nl4 = "1/3"\n')
    data = answer(model, "--times", path, "--analyse")
    assert data["period"] == 160 and data["time_unit"] is None
    assert answer(model, "--analyse")["time_unit"] == "MACs"


def test_analysis_of_a_model(model):
    data = answer(model, "--analyse")
    assert data["min_buffer"]["minimised"] == "bytes" and data["min_buffer"]["optimal"]
    assert data["peak_occupancy"]["bytes"] <= data["min_buffer"]["bytes"]
    assert data["period"] == 16 * 17 * 17 * 16 * 4  # the MACs of the busiest layer
    assert data["schedule"].startswith("17 input")
    text = succeed(model, "--analyse")
    assert "proven least" in text and "the fastest of all such buffers" in text and "17 input" in text


# Graphs


def test_what_analysis_promises(tiny):
    data = answer(tiny, "--analyse")
    assert data["consistent"] and data["live"] and data["deadlock"] is None
    assert data["repetitions"] == {"a": 2, "b": 3}
    assert data["period"] == 1 and data["period_at_min"] == 4 and data["period_at_min_is_best"]
    least = data["min_buffer"]
    assert (least["tokens"], least["bytes"], least["bound"], least["optimal"]) == (10, 10, 10, True)
    assert least["capacities"] == {"ab": 2, "ba": 8}
    assert data["peak_occupancy"]["tokens"] == 10
    assert data["latency"]["first"] == 2
    assert data["schedule"] == "a b a 2 b"
    assert data["schedule_loops"]["again"] == [[1, "a"], [1, "b"], [1, "a"], [2, "b"]]


def test_the_front(tiny, tmp_path):
    front = [[10, 4], [11, 2], [13, "4/3"], [14, 1]]
    assert answer(tiny, "--pareto") == front
    data = answer(tiny, "--analyse", "--pareto")
    assert data["pareto"] == front and data["pareto_complete"]
    text = succeed(tiny, "--pareto", "--plot", tmp_path / "front.svg")
    assert "75.0 %" in text and "complete" in text
    assert "4/3" in (tmp_path / "front.svg").read_text()


def test_bytes_or_tokens(write):
    heavy = [channel("x", "a", "b", 2, 3, token_bytes=100), channel("y", "a", "b", 2, 3)]
    path = write([actor("a"), actor("b")], heavy)
    assert answer(path, "--analyse")["min_buffer"]["minimised"] == "tokens"
    assert answer(path, "--analyse", "--bytes")["min_buffer"]["minimised"] == "bytes"
    assert answer(path, "--pareto", "--bytes")[0][0] == 404
    assert answer(path, "--pareto", "--tokens")[0][0] == 8


def test_searches_are_limited_and_say_so(tiny):
    data = answer(tiny, "--analyse", "--limit", "0")
    assert data["min_buffer"]["tokens"] == 10 and not data["period_at_min_is_best"] and data["notes"]
    result = run(tiny, "--pareto", "--limit", "0")
    assert result.exit_code == 1 and "too many for such a search" in result.stderr


@pytest.mark.parametrize("limit", ["0.005", "0.015", "0.03"])
def test_a_front_cut_short_is_told(tiny, limit):
    result = run(tiny, "--pareto", "--json", "--limit", limit)
    found = json.loads(result.stdout)
    whole = answer(tiny, "--pareto")
    assert len(found) < len(whole) and found == whole[: len(found)]
    assert "cut short: proven for totals below" in result.stderr


def test_pages_and_pictures(tiny, tmp_path):
    page, gantt = tmp_path / "page.html", tmp_path / "gantt.svg"
    succeed(tiny, "--page", page, "--gantt", gantt, "--iterations", "3", "--pareto")
    text = page.read_text()
    assert "Firings over time" in text and "Buffer size against period" in text and "a b a 2 b" in text
    assert gantt.read_text().count('class="firing"') == 15  # 5 firings of 3 iterations
    succeed(tiny, "--page", page)
    assert "Buffer size against period" not in page.read_text()


def test_many_actors_make_short_tables(write):
    names = [f"n{i}" for i in range(120)]
    pairs = pairwise(names)
    path = write([actor(name) for name in names], [channel(s + t, s, t, 1, 1) for s, t in pairs], "long")
    text = succeed(path, "--analyse")
    assert "… 80 that work less; --json has all" in text and "… 79 more; --json has all" in text
    assert len(text.splitlines()) < 120
    assert len(answer(path, "--analyse")["repetitions"]) == 120


# Bad input


def fail(*arguments) -> str:
    result = run(*arguments)
    assert result.exit_code == 1, result.output
    assert "Traceback" not in result.output
    return result.stderr


def test_inconsistent_rates(write):
    path = write([actor("a"), actor("b")], [channel("x", "a", "b", 2, 1), channel("y", "a", "b", 1, 1)])
    result = run(path, "--analyse", "--json")
    data = json.loads(result.stdout)
    assert result.exit_code == 1 and data["consistent"] is False and data["period"] is None
    assert "rates multiply to" in data["reason"] and data["reason"] in result.stderr
    assert "would fit if" in result.stderr
    assert "rates multiply to" in fail(path, "--pareto")
    text = " ".join(succeed(path).split())  # the graph can still be looked at
    assert "rates multiply to" in text and "–" in text


def test_deadlocks(write, tmp_path):
    path = write([actor("a"), actor("b")], [channel("x", "a", "b", 1, 1), channel("y", "b", "a", 1, 1)])
    result = run(path, "--analyse", "--json", "--page", tmp_path / "p.html", "--gantt", tmp_path / "g.svg")
    data = json.loads(result.stdout)
    assert result.exit_code == 1 and data["consistent"] is True and data["live"] is False
    assert "closes the cycle" in data["deadlock"] and "1 missing" in result.stderr
    assert "closes the cycle" in (tmp_path / "p.html").read_text()
    assert not (tmp_path / "g.svg").exists()
    assert "would make it live" in fail(path, "--pareto")


def test_self_loops_without_tokens(write):
    path = write([actor("a")], [channel("s", "a", "a", 1, 1)])
    assert "waits for itself" in fail(path, "--analyse")


def test_phases_that_move_nothing_are_fine(write):
    path = write([actor("a"), actor("b", times="1,2,0")], [channel("x", "a", "b", 2, "0,2,0")])
    assert answer(path, "--analyse")["repetitions"] == {"a": 1, "b": 3}


def test_unknown_actors(write):
    assert "'z' is not an actor" in fail(write([actor("a")], [channel("x", "a", "z", 1, 1)]), "--analyse")


def test_missing_times(write, tmp_path):
    path = write([{"name": "a"}, {"name": "b"}], [channel("x", "a", "b", 2, 3)])
    data = answer(path, "--analyse")
    assert data["period"] is None and "no execution time" in data["period_reason"]
    assert data["min_buffer"]["tokens"] == 4
    message = fail(path, "--pareto")
    assert "no execution time" in message and "executionTime" in message
    succeed(path, "--page", tmp_path / "p.html")
    assert "steps; the last firing" in (tmp_path / "p.html").read_text()


BOMB = '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><sdf3 type="sdf">&b;</sdf3>'


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("g.xml", "<html><body/></html>", "not SDF3"),
        ("g.xml", BOMB, "document type"),
        ("g.xml", "<sdf3", "not well-formed"),
        ("g.xml", "", "is empty"),
        ("g.json", "hello", "neither XML nor JSON"),
        ("g.json", "{", "is not JSON"),
        ("noname", "  <html/>", "not SDF3"),
        ("noname", '{"actors": []}', "channels"),
        ("noname", "hello", "not an ONNX model"),
    ],
)
def test_files_that_are_no_graphs(tmp_path, name, text, says):
    (tmp_path / name).write_text(text)
    assert says in fail(tmp_path / name, "--analyse")


@pytest.mark.parametrize("name", ["g.xml", "g.onnx", "g", "."])
def test_files_that_are_not_there(tmp_path, name):
    message = fail(tmp_path / name)
    assert "there is no file" in message or "directory" in message


@pytest.mark.parametrize("option", [["--sdf"], ["--rule", "B"], ["--elements"], ["--self-loops"], ["--shape", "x=1,2"]])
def test_options_of_models_are_refused_for_graphs(tiny, option):
    result = run(tiny, *option)
    assert result.exit_code == 2 and "is a graph already" in result.stderr


def test_options_that_contradict_each_other(model):
    assert run(model, "--sdf", "--rule", "B").exit_code == 2
    assert run(model, "--mapping", "m.json", "--elements").exit_code == 2


def test_nothing_is_left_behind_when_a_file_cannot_be_written(tiny, tmp_path):
    assert "cannot write" in fail(tiny, "--sdf3", tmp_path / "g.xml", "--dot", tmp_path / "none" / "g.dot")
    assert not (tmp_path / "g.xml").exists()


# Reference graphs


SLOW = ("satellite",)  # the tests of each analysis have it
UNKNOWN = ("cnn_res4_rows", "h263decoder", "cnn_chain8_rows", "samplerate")  # fronts not known whole, or slow


def reference(*but: str) -> list:
    root = os.environ.get("EDGEWRIGHT_CORPUS")
    table = Path(root) / "data" / "csdf" / "reference.tsv" if root else None
    if table is None or not table.exists():
        reason = "set EDGEWRIGHT_CORPUS to a folder with data/csdf to test reference graphs"
        return [pytest.param(None, None, marks=pytest.mark.skip(reason=reason), id="no-corpus")]
    rows = csv.DictReader(table.read_text().splitlines(), delimiter="\t")
    return [
        pytest.param(table.parent / f"{row['graph']}.xml", row, id=row["graph"])
        for row in rows
        if row["graph"] not in but
    ]


@pytest.mark.parametrize(("file", "row"), reference(*SLOW))
def test_reference_graphs(file, row):
    data = answer(file, "--analyse")
    assert len(data["repetitions"]) == int(row["actors"])
    assert sum(data["repetitions"].values()) == int(row["sum_firings"])
    assert Fraction(data["period"]) == Fraction(row["period_per_iteration"])
    assert data["min_buffer"]["tokens"] == int(row["min_total_buffer"]) and data["min_buffer"]["optimal"]
    assert Fraction(data["period_at_min"]) == Fraction(row["period_at_min"]) and data["period_at_min_is_best"]
    assert data["peak_occupancy"]["tokens"] <= int(row["lazy_peak_occupancy"])


@pytest.mark.parametrize(("file", "row"), reference(*SLOW, *UNKNOWN))
def test_reference_fronts(file, row):
    points = [pair.split(":") for pair in row["pareto_exact(size:period)"].split(";")]
    found = answer(file, "--pareto")
    assert [(size, Fraction(period)) for size, period in found] == [(int(s), Fraction(p)) for s, p in points]
