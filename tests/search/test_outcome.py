"""A whole search on data and a board: the front's file, its models, the page, the verb. Training is made up."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

from edgewright import samples
from edgewright.cli import main
from edgewright.errors import InputError
from edgewright.report.search_page import pair_svg, parallel_svg, search_page, shown_candidates, time_svg
from edgewright.search.front import Measure, dominates, read_front
from edgewright.search.model import default_ranges
from edgewright.search.outcome import run_search
from edgewright.search.points import divergence
from edgewright.search.pricing import CandidatePricer
from edgewright.search.workers import LocalWorkers
from tests.helpers.searching_cases import Killed, MadeUpPricer, MadeUpTrainer

TASK = """
name = "moves"
board = "nucleo-f446re"
candidates = 6
points = 4
metric = "macro_f1"
objectives = ["ram_bytes", "instructions"]
[data]
kind = "numpy"
path = "moves.npz"
subjects = "who"
held_out = [5]
[space]
kind = "sensor"
blocks = [1, 3]
channels = [4, 12]
[limits]
ram = "250"
[evolution]
population = 3
"""


class Assessable(MadeUpTrainer):
    def ranges(self, architecture, state, x):
        return default_ranges(architecture)


class QuickPricer(CandidatePricer):
    """Prices by sizes alone, and plans as ever."""

    def price(self, architecture):
        return MadeUpPricer().price(architecture)


@pytest.fixture
def task(tmp_path, monkeypatch, request):
    if "slow" not in request.keywords:
        monkeypatch.setattr("edgewright.search.outcome.CandidatePricer", QuickPricer)
    random = np.random.default_rng(1)
    at = np.arange(72)
    np.savez(tmp_path / "moves.npz", x=random.normal(0, 1, (72, 24, 2)), y=at % 3, who=at // 3 % 6)
    (tmp_path / "moves.toml").write_text(TASK)
    return tmp_path / "moves.toml"


def run(task, name="front.json", trainer=None, **given):
    given = {"is_checked": False, "workers": LocalWorkers(1), **given}
    return run_search(task, task.parent / name, trainer_of=lambda _task, _data: trainer or Assessable(), **given)


def test_the_front_is_the_same_byte_for_byte_also_after_a_kill(task):
    outcome = run(task, "a/front.json")
    with pytest.raises(Killed):
        run(task, "b/front.json", Assessable(7))
    assert not (task.parent / "b" / "front.json").exists()
    run(task, "b/front.json", is_resumed=True)
    first, second = ((task.parent / name / "front.json").read_bytes() for name in "ab")
    assert first == second
    front = read_front(task.parent / "a")
    assert front == outcome.front and (front.seed, front.metric, front.classes) == (1, "macro_f1", ("0", "1", "2"))
    costs = [tuple(measure.cost(point) for measure in front.measures) for point in front.points]
    assert not any(dominates(a, b) for a in costs for b in costs)
    for point in front.points:
        assert point.ram_bytes <= 250
        assert point.command.startswith(f"edgewright compile models/{point.name}.onnx --board nucleo-f446re")


def test_another_seed_or_other_data_are_another_search(task):
    with pytest.raises(Killed):
        run(task, trainer=Assessable(3))
    with pytest.raises(InputError, match="seed: 1, not 2"):
        run(task, is_resumed=True, seed=2)
    arrays = dict(np.load(task.parent / "moves.npz"))
    np.savez(task.parent / "moves.npz", **{**arrays, "x": arrays["x"] + 1e-3 * arrays["x"] ** 2})
    with pytest.raises(InputError, match="its data, space or settings differ"):
        run(task, is_resumed=True)


@pytest.mark.slow
def test_points_run_on_the_virtual_board_with_the_ram_that_the_search_knew(task):
    outcome = run(task, is_checked=True)
    for point in outcome.front.points:
        candidate = outcome.candidates[outcome.points[point.name]]
        assert point.ram_bytes == candidate.price.ram_bytes
        assert point.flash_bytes > candidate.price.flash_bytes  # code is counted now
        assert abs(point.measured_instructions / point.instructions - 1) < 0.2  # tiny networks


def test_the_page_draws_every_candidate_and_a_plan_for_every_point(task):
    outcome = run(task)
    page = search_page(outcome, "edgewright search moves.toml", outcome.plans())
    shown = shown_candidates(outcome)
    trained = {one.architecture.key for one in outcome.candidates if one.is_trained}
    assert len(shown) == len(trained)
    assert {one.name for one in shown if one.name} == {point.name for point in outcome.front.points}
    measures = tuple(shown[0].values)
    for svg, mark in (
        (parallel_svg(shown, measures), "path"),
        (pair_svg(shown, Measure.RAM, Measure.MACRO_F1, 0), "circle"),
    ):
        drawn = [one for one in ElementTree.fromstring(svg).iter() if "data-id" in one.attrib]
        assert [one.tag.rpartition("}")[2] for one in drawn] == [mark] * len(shown)
        assert sum("data-pick" in one.attrib for one in drawn) == len(outcome.front.points)
    timeline = ElementTree.fromstring(time_svg(outcome))
    slices = [one for one in timeline.iter() if "data-id" in one.attrib]
    refused = [one for one in timeline.iter() if one.get("class") == "refused"]
    assert len(slices) == sum(one.is_trained for one in outcome.candidates)
    assert len(refused) == sum(bool(one.refusal) for one in outcome.candidates) > 0
    for point in outcome.front.points:
        panel = page.split(f'data-panel="{outcome.points[point.name]}"')[1].split("</div>")[0]
        assert point.command in panel and panel.count("<svg") == 2
    assert page.count("edgewright search moves.toml") == 3
    assert re.search(r"script-src 'sha256-", page) and "src=" not in page


# The verb


def invoke(*words):
    return CliRunner().invoke(main, ["search", *map(str, words)])


def test_the_verb_prints_json_and_refuses_what_it_cannot_do(task, monkeypatch):
    monkeypatch.setattr("edgewright.search.outcome.torch_trainer", lambda _task, _data: Assessable())
    monkeypatch.chdir(task.parent)
    result = invoke(task.name, "--json", "--no-verify", "--workers", 1, "-o", "out/front.json", "--page", "page.html")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["front"] == json.loads((task.parent / "out" / "front.json").read_text())
    assert told["architectures_trained"] == 6 and told["refused"] > 0
    assert (task.parent / "page.html").read_text().count("edgewright search moves.toml -o out/front.json") == 3
    for words, status, message in (
        (["--workers", 2, "--on", "tcp://127.0.0.1:9"], 2, "give one of them"),
        (["-o", "found"], 2, "ends in .json"),
        (["--seed", 5, "--resume", "-o", "out/front.json"], 1, "is the journal of another search"),
    ):
        result = invoke(task.name, *words)
        assert result.exit_code == status and message in result.output, result.output


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('ram = "250"', 'ram = "20"', "no candidate fits: the smallest of the space needs"),
        ('ram = "250"', 'energy = "1 mJ"', "has no power data"),
        ('"instructions"]', '"energy_j"]', "has no power data"),
        ("nucleo-f446re", "nucleo-f447re", "is no board of the catalogue"),
        ("nucleo-f446re", "mine.toml", "there is no board file"),
        ("candidates = 6", "candidates = 0", "candidates is 0; expected"),
        ('"moves.npz"', '"move.npz"', "there is no file"),
    ],
)
def test_tasks_that_cannot_be_searched_end_with_one_sentence(task, monkeypatch, old, new, message):
    monkeypatch.setattr("edgewright.search.outcome.torch_trainer", lambda _task, _data: Assessable())
    task.write_text(TASK.replace(old, new))
    result = invoke(task, "-o", task.parent / "front.json", "--workers", 1)
    assert result.exit_code == 1 and message in result.output, result.output
    assert len(result.output.strip().splitlines()) == 1
    assert not (task.parent / "front.json").exists()


def test_a_missing_torch_names_the_extra(task, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    result = invoke(task, "-o", task.parent / "front.json")
    assert result.exit_code == 1 and "pip install 'edgewright[search]'" in result.output
    assert not (task.parent / "front.journal").exists()


@pytest.mark.slow
def test_a_search_with_torch_that_is_killed_twice_ends_with_the_same_bytes(tmp_path):
    """SIGKILL to all processes, once candidates are in the journal, and again some candidates later."""
    pytest.importorskip("torch", reason="PyTorch is an extra")
    file = samples.write_application("moves", tmp_path)
    file.write_text(
        file.read_text()
        .replace("candidates = 40", "candidates = 12")
        .replace("final_epochs = 10", "final_epochs = 1")
        .replace("epochs = 3", "epochs = 1")
    )

    def command(name):
        words = [file, "--no-verify", "--workers", 2, "--resume", "-o", tmp_path / name / "front.json"]
        return [sys.executable, "-m", "edgewright", "search", *map(str, words)]

    def trained(name):
        journal = tmp_path / name / "front.journal"
        try:
            with closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as db:
                return db.execute("select count(accuracy) from candidate").fetchone()[0]
        except sqlite3.Error:
            return 0

    subprocess.run(command("whole"), check=True)
    for count in (3, 11):
        process = subprocess.Popen(command("killed"), start_new_session=True)
        while process.poll() is None and trained("killed") < count:
            time.sleep(0.05)
        assert process.poll() is None, "it ended before it was killed"
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    subprocess.run(command("killed"), check=True)
    assert (tmp_path / "whole" / "front.json").read_bytes() == (tmp_path / "killed" / "front.json").read_bytes()
    assert len(read_front(tmp_path / "whole").points) > 1


def test_the_divergence_of_scores_by_hand():
    """Probabilities 1/2, 1/2 beside 3/4, 1/4: 1/2 ln(2/3) + 1/2 ln 2. What is added to all scores changes nothing."""
    expected, found = np.log([[1.0, 1.0], [3.0, 1.0]]), np.log([[3.0, 1.0], [3.0, 1.0]]) + 5
    assert divergence(expected, found) == pytest.approx(np.log(4 / 3) / 4)
