"""`edgewright select`: the point that it prints, the order of the others, limits, and every refusal."""

from __future__ import annotations

import json
import random

import pytest
from click.testing import CliRunner

from edgewright.cli import main
from edgewright.cli.options import SELECTION_METHODS
from edgewright.search.selection import SelectionMethod
from tests.helpers.fronts import SIX, design_point, front_of, six_points
from tests.search.test_selection import ALL_VECTORS, NAMES


def called(folder, *options):
    return CliRunner().invoke(main, ["select", str(folder), *options])


def selected(folder, *options):
    done = called(folder, *options, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture
def six(tmp_path):
    six_points().write(tmp_path)
    return tmp_path


def test_ranks_by_hand(six):
    """Scores are those of `test_ranks_by_hand` of the selection: 3.5, 3.5, 3, 3.5, 3.25, 3.75 for a to f."""
    data = selected(six, "--require", "accuracy=.5,throughput=.25,energy=.25")
    assert [one["name"] for one in data["rated"]] == list("cedbaf")
    assert [one["score"] for one in data["rated"]] == [3, 3.25, 3.5, 3.5, 3.5, 3.75]
    assert data["rated"][0]["ranks"] == {"accuracy": 3, "throughput": 3, "memory": 4, "energy": 3}
    assert data["selected"]["name"] == "c" and data["beyond_limits"] == data["dominated"] == []


@pytest.mark.parametrize("method", SELECTION_METHODS)
def test_published_vectors_select_points_that_nothing_dominates(method, tmp_path):
    rng = random.Random(method)
    rows = [(rng.randint(50, 99) / 100, rng.randint(5, 90), rng.randint(1, 30) * 512, rng.random()) for _ in range(40)]
    front_of(*(design_point(f"p{at}", *row) for at, row in enumerate(rows))).write(tmp_path)
    for vector in ALL_VECTORS:
        weights = ",".join(f"{name}={weight}" for name, weight in zip(NAMES, vector, strict=True))
        best = selected(tmp_path, "--require", weights, "--method", method)["selected"]
        a, t, m, e = (best[key] for key in ("accuracy", "throughput", "ram_bytes", "energy_j"))
        worse = [row for row in rows if row[0] >= a and row[1] >= t and row[2] <= m and row[3] <= e]
        assert worse == [(a, t, m, e)]
        if vector == (1, 0, 0, 0):
            assert a == max(row[0] for row in rows)


def test_limits_come_first(six):
    data = selected(six, "--limit", "ram=4000", "--limit", "accuracy=.85")
    assert data["beyond_limits"] == ["a", "b", "f"]
    assert data["selected"]["name"] == "c"  # as accurate as d, of the same sum of ranks (8), and faster
    assert data["requirement"]["accuracy"] == 1


def test_a_dominated_point_is_named_and_never_selected(tmp_path):
    front_of(design_point("good", *SIX["a"]), design_point("bad", 0.95, 10.0, 9001, 0.9)).write(tmp_path)
    data = selected(tmp_path)
    assert data["selected"]["name"] == "good" and data["dominated"] == ["bad"]
    printed = called(tmp_path).output
    assert "selected: good" in printed and "is dominated by another point: bad" in printed


def test_the_metric_of_the_task_counts_as_accuracy(tmp_path):
    first = design_point("first", *SIX["a"], macro_f1=0.5)
    front_of(first, design_point("second", *SIX["b"]), metric="macro_f1").write(tmp_path)
    assert selected(tmp_path)["selected"]["name"] == "second"


def test_the_table_shows_ranks_and_the_command(six):
    printed = called(six, "--require", "accuracy=.5,energy=.5", "--limit", "latency=50ms").output
    assert "six on nucleo-l4r5zi: accuracy=0.5,energy=0.5, latency ≤ 0.05" in printed
    assert "edgewright compile models/e.onnx --board nucleo-l4r5zi" in printed


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--require", "accuracy=.5"], 2, "the weights of a requirement add up to 0.5; expected 1"),
        (["--require", "accuracy=2,energy=-1"], 2, "the weight of energy is -1; expected 0 or more"),
        (["--require", "speed=1"], 2, '"speed" is not an objective'),
        (["--limit", "ram=1K"], 1, "no point has ram ≤ 1,024; the least is 2,000"),
        (["--limit", "ram"], 2, "is not of the form NAME=LIMIT"),
    ],
)
def test_refusals(options, status, message, six):
    done = called(six, *options)
    assert done.exit_code == status and message in " ".join(done.output.replace("│", "").split())


def test_fronts_that_cannot_be_selected_from(tmp_path):
    front_of().write(tmp_path)
    assert "has no points; search longer" in called(tmp_path).output
    front_of(design_point("a", 0.9, 10.0, 100, None)).write(tmp_path)
    assert "add [power] to the board file" in called(tmp_path, "--require", "energy=1").output
    (tmp_path / "front.json").write_text((tmp_path / "front.json").read_text().replace('"accuracy",', '"speed",', 1))
    assert "is no front of `edgewright search`: metric" in called(tmp_path).output


def test_methods_are_those_of_the_selection():
    assert list(SELECTION_METHODS) == [one.value for one in SelectionMethod]
