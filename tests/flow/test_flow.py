"""The design flow from a front to firmware: stages, resuming, selection among augmented points, every refusal."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from edgewright.cli import main
from edgewright.errors import EdgewrightError, InputError
from edgewright.flow.design_flow import STAGES, DesignFlow
from edgewright.flow.stages import StageFolder, key_of
from edgewright.search.front import dominates, read_front
from tests.flow.fronts import write_front

FLOW = """
name = "har"
front = "front"
manners = ["whole", "tiled"]
[[selection]]
name = "accurate"
require = {accuracy = 1}
[[selection]]
name = "balanced"
require = {accuracy = 0.5, memory = 0.5}
[[selection]]
name = "saving"
require = {memory = 1}
limits = {latency = "10 ms"}
[adapt]
start = "balanced"
[[rule]]
signal = "battery"
below = 0.2
until = 0.3
request = "saving"
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A flow that has run, but for the virtual board."""
    folder = tmp_path_factory.mktemp("flow")
    write_front(folder / "front", ("tiny", "small"))
    (folder / "flow.toml").write_text(FLOW)
    return DesignFlow(folder / "flow.toml", folder / "out", 1).run(verify=False)


def test_every_point_is_priced_in_every_manner(finished):
    names = [point.name for point in finished.augmented.points]
    assert names == ["tiny-whole", "tiny-tiled", "small-whole", "small-tiled"] and finished.left_out == ()
    whole, tiled = (next(p for p in finished.augmented.points if p.name == f"tiny-{m}") for m in ("whole", "tiled"))
    assert tiled.ram_bytes < whole.ram_bytes and tiled.instructions > whole.instructions
    assert whole.accuracy == tiled.accuracy and whole.throughput == pytest.approx(1 / whole.latency_s)
    assert finished.points.points[0].ram_bytes == 4000  # the front's own figures stay in the first stage


def test_augmented_points_improve_a_choice(finished):
    chosen = {one.entry.name: one for one in finished.selections}
    assert chosen["accurate"].point.accuracy == 0.8
    saving = chosen["saving"]
    assert saving.is_better and saving.before.best.name == "tiny-whole" and saving.point.name == "tiny-tiled"
    assert saving.point.ram_bytes == min(point.ram_bytes for point in finished.augmented.points)
    costs = {p.name: (-p.accuracy, p.ram_bytes, p.latency_s) for p in finished.augmented.points}
    for one in finished.selections:
        assert not any(dominates(cost, costs[one.point.name]) for cost in costs.values())


def test_the_application_has_scenarios_rules_and_manners(finished):
    written = (finished.folder / "application/app.toml").read_text()
    assert 'start = "balanced"' in written and 'minimise = "ram"' in written and 'signal = "battery"' in written
    assert sorted(path.name for path in (finished.folder / "application/models").iterdir())
    assert finished.firmware["scenarios"] == ["accurate", "balanced", "saving"]
    assert finished.firmware["ram_bytes"] < 400 and not finished.firmware["verified"]
    assert (finished.folder / "firmware/src").is_dir()


def test_a_point_is_compiled_by_its_command(finished, monkeypatch, tmp_path):
    point = finished.selections[2].point
    monkeypatch.chdir(finished.folder / "augmented")
    words = point.command.split()[1:]
    done = CliRunner().invoke(main, [*words, "--no-verify", "--json", "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["ram_predicted"] == point.ram_bytes


def test_a_second_run_finds_everything(finished):
    before = {path: path.stat().st_mtime_ns for path in finished.folder.rglob("*") if path.is_file()}
    again = DesignFlow(finished.folder.parent / "flow.toml", finished.folder, 1).run(verify=False)
    assert again.reused == list(STAGES) and again.to_dict() | {"reused": []} == finished.to_dict()
    assert {path: path.stat().st_mtime_ns for path in finished.folder.rglob("*") if path.is_file()} == before


def test_only_what_depends_on_a_change_is_made_again(finished, tmp_path):
    folder = finished.folder.parent
    shutil.copytree(finished.folder, tmp_path / "out")
    (folder / "other.toml").write_text(FLOW.replace("accuracy = 0.5, memory = 0.5", "accuracy = 0.51, memory = 0.49"))
    again = DesignFlow(folder / "other.toml", tmp_path / "out", 1).run(verify=False)
    assert again.reused == ["points", "augmented"]


class _Killed(BaseException):
    pass


@pytest.mark.parametrize("stage", STAGES)
def test_a_killed_flow_goes_on(stage, finished, tmp_path, monkeypatch):
    """The stages before are taken from the finished flow; the one that is killed leaves no result."""
    folder = finished.folder.parent
    (tmp_path / "out").mkdir()
    for earlier in STAGES[: STAGES.index(stage)]:
        (tmp_path / "out" / earlier).symlink_to(finished.folder / earlier)

    def kill(self, name, key, write):
        if name == stage:
            make(self, name, key, lambda fresh: (fresh / "half").write_text("written") and _raise())
        return make(self, name, key, write)

    def _raise():
        raise _Killed

    make = StageFolder.make
    with monkeypatch.context() as patched:
        patched.setattr(StageFolder, "make", kill)
        with pytest.raises(_Killed):
            DesignFlow(folder / "flow.toml", tmp_path / "out", 1).run(verify=False)
    assert sorted(path.name for path in (tmp_path / "out").glob("[!.]*")) == sorted(STAGES[: STAGES.index(stage)])


def test_kill_9_and_resume(tmp_path):
    """A process that is killed in the middle of the second stage; the next one finishes, from the first on."""
    write_front(tmp_path / "front", ("tiny",))
    text = FLOW.replace('manners = ["whole", "tiled"]', 'manners = ["whole"]\napplication = "none"')
    (tmp_path / "flow.toml").write_text(text.partition("[adapt]")[0])
    code = (
        "import sys, time; from pathlib import Path; from edgewright.flow import design_flow as f;"
        "f.augment = lambda *a: (Path('reached').write_text(''), time.sleep(60));"
        "f.DesignFlow(Path('flow.toml'), Path('out'), 1).run()"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
    deadline = time.monotonic() + 50
    while not (tmp_path / "reached").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    out = tmp_path / "out"
    assert (out / "points/stage.json").exists() and list(out.glob(".edgewright-*"))
    outcome = DesignFlow(tmp_path / "flow.toml", out, 1).run()
    assert outcome.reused == ["points"] and outcome.firmware is None
    assert not list(out.glob(".edgewright-*")) and len(read_front(out / "augmented").points) == 1


def test_two_flows_at_once_are_refused(tmp_path):
    with (
        StageFolder(tmp_path).locked(),
        pytest.raises(InputError, match="another flow is at work in"),
        StageFolder(tmp_path).locked(),
    ):
        pass


def test_a_stage_leaves_folders_of_others_alone(tmp_path):
    (tmp_path / "points").mkdir()
    (tmp_path / "points/mine.txt").write_text("mine")
    with pytest.raises(InputError, match="was not written by a flow"):
        StageFolder(tmp_path).make("points", key_of("a"), lambda folder: None)
    assert (tmp_path / "points/mine.txt").read_text() == "mine"


def test_a_full_disk_leaves_no_half_stage(tmp_path):
    def write(folder: Path) -> None:
        (folder / "front.json").write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(InputError, match="No space left on device"):
        StageFolder(tmp_path / "out").make("points", key_of("a"), write)
    assert list((tmp_path / "out").iterdir()) == []


REFUSALS = [
    ("accuracy = 1}", "accuracy = 0.9}", r"selection\[0\].require is no requirement: the weights .* add up to 0.9"),
    ("{memory = 1}", "{memory = 2, energy = -1}", r"selection\[2\].require is no requirement: the weight of energy"),
    ('latency = "10 ms"', 'lag = "10 ms"', r'selection\[2\].limits cannot be kept: "lag" is not a figure'),
    ('latency = "10 ms"', 'ram = "1"', "selection 'saving': no point has ram ≤ 1; the least is"),
    ("{memory = 1}", "{energy = 1}", "selection 'saving' asks for energy, and board 'nucleo-f446re' has no power data"),
    ('"balanced"\nrequire', '"accurate"\nrequire', r'selection\[1\].name is "accurate", which is taken'),
    ('front = "front"', "", "task is missing; expected task, front or model"),
    ('front = "front"', 'front = "front"\nmodel = "m.onnx"', "model is given beside front"),
    ('front = "front"', 'model = "m.onnx"\nboard = "nucleo-f446re"', "data is missing; expected samples"),
    ('front = "front"', 'front = "front"\ndata = "x.npz"', "data is for a model"),
    ('front = "front"', 'front = "nothing"', "there is no file .*nothing"),
    ('request = "saving"', 'request = "sleeping"', r'rule\[0\].request is "sleeping", which no scenario has'),
    ("until = 0.3", "until = 0.1", r"rule\[0\].until is 0.1, less than below"),
    ('["whole", "tiled"]', '["whole", "lanes"]', r'manners\[1\] is "lanes", which is for a network alone'),
    ('["whole", "tiled"]', '["whole", "pulled"]', r'manners\[1\] is "pulled" beside others'),
    ('["whole", "tiled"]', '["quick"]', r'manners\[0\] is "quick"; expected'),
    ('name = "har"', 'application = "none"', "rule is for scenarios"),
    ('name = "har"', 'board = "nucleo-f4"', "is no board of the catalogue"),
]


@pytest.mark.parametrize(("old", "new", "message"), REFUSALS, ids=[case[2][:40] for case in REFUSALS])
def test_refusals(old, new, message, finished, tmp_path):
    folder = finished.folder.parent
    assert old in FLOW
    path = folder / "refused.toml"
    path.write_text(FLOW.replace(old, new, 1))
    (tmp_path / "out").mkdir()
    for stage in ("points", "augmented"):
        (tmp_path / "out" / stage).symlink_to(finished.folder / stage)
    with pytest.raises(EdgewrightError, match=message):
        DesignFlow(path, tmp_path / "out", 1).run(verify=False)


def test_two_scenarios_at_least(tmp_path):
    text = FLOW.replace('name = "har"', "").partition('[[selection]]\nname = "balanced"')[0]
    (tmp_path / "flow.toml").write_text(text)
    with pytest.raises(InputError, match="selection is one, and there is nothing to switch to"):
        DesignFlow(tmp_path / "flow.toml")


def test_models_of_a_front_must_be_there(tmp_path):
    write_front(tmp_path / "front", ("tiny",))
    (tmp_path / "front/models/tiny.onnx").unlink()
    (tmp_path / "flow.toml").write_text(FLOW)
    with pytest.raises(InputError, match=r"there is no file .*tiny\.onnx'; the models lie beside the front"):
        DesignFlow(tmp_path / "flow.toml", tmp_path / "out", 1).run()


def test_one_point_for_all_selections_is_compiled_alone(tmp_path):
    write_front(tmp_path / "front", ("tiny",))
    (tmp_path / "flow.toml").write_text(FLOW.replace('["whole", "tiled"]', '["whole"]'))
    done = CliRunner().invoke(
        main, ["flow", str(tmp_path / "flow.toml"), "-o", str(tmp_path / "out"), "--no-verify", "--json"]
    )
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert data["application"] == "compile" and set(data["firmware"]["libraries"]) == {"accurate"}
    page = (tmp_path / "out/report.html").read_text()
    assert "tiny-whole" in page and "</html>" in page and "src=" not in page


@pytest.mark.slow
def test_end_to_end_on_the_virtual_board(tmp_path):
    write_front(tmp_path / "front")
    (tmp_path / "flow.toml").write_text(FLOW.replace('manners = ["whole", "tiled"]', ""))
    outcome = DesignFlow(tmp_path / "flow.toml", tmp_path / "out").run()
    assert outcome.firmware["verified"] and outcome.firmware["board"]["switches"] > 0
