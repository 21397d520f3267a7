"""The options of `edgewright adapt` that lay out, simulate, run, compile and draw; what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from edgewright import samples
from edgewright.cli import main
from edgewright.cli.options import SWITCH_POLICIES
from edgewright.program.switching import SwitchPolicy
from tests.adaptive.cases import CASCADE, quick_compiler, three
from tests.adaptive.test_adaptive import two


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quick_compiler(monkeypatch)


def called(*arguments: object, text: str | None = None) -> Result:
    return CliRunner().invoke(main, ["adapt", *map(str, arguments)], input=text)


def asked(*arguments: object, text: str | None = None) -> dict[str, object]:
    done = called(*arguments, "--json", text=text)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_the_policies_of_the_command_line_are_those_of_the_code():
    assert list(SWITCH_POLICIES) == [policy.value for policy in SwitchPolicy]


def test_front_of_the_sample(tmp_path: Path):
    path = samples.write_application("paper_scenarios", str(tmp_path))
    data = asked(path, "--pareto", "--policy", "overlap")
    front = data["front"]
    assert data["policy"] == "overlap" and len(front) >= 2
    sizes, delays = ([point[key] for point in front] for key in ("arena_bytes", "worst_delay"))
    assert sizes == sorted(sizes, reverse=True) and delays == sorted(delays)
    assert sizes[-1] == data["largest_scenario_bytes"] and delays[-1] == pytest.approx(18.0)
    assert delays[0] == pytest.approx(11.0)  # no switch takes longer than the new scenario alone
    for point in front:
        assert point["bound_bytes"] <= point["arena_bytes"]
        assert point["is_least"] == (point["bound_bytes"] == point["arena_bytes"])
        assert point["worst_delay"] == max(one["worst_delay"] for one in point["switches"])
    # Side by side is always possible: the largest arena takes no more than both scenarios, and some alignment.
    assert sizes[0] <= 2 * data["largest_scenario_bytes"] + 16
    said = called(path, "--pareto", "--policy", "abort")
    assert "least for these plans and this limit" in said.stdout and "never in memory together" in said.stdout


def test_delays_of_the_sample(tmp_path: Path):
    path = samples.write_application("paper_scenarios", str(tmp_path))
    data = asked(path, "--simulate")
    assert [*data["policies"]] == [*SWITCH_POLICIES] and not data["left_out"] and data["hazards"] == []
    naive = {(one["from"], one["to"]): one["naive"] for one in data["paper"]}
    assert naive["cnn1", "cnn2"] == pytest.approx({"worst": 18, "median": 14.5, "best": 11})
    for policy in data["policies"].values():
        for one in policy["switches"]:
            assert 0 < one["best"] <= one["median"] <= one["worst"] <= naive[one["from"], one["to"]]["worst"] + 1e-9
    finish = data["policies"]["finish"]["switches"][0]
    assert finish["worst"] == pytest.approx(18) and finish["median"] == pytest.approx(14.5)
    assert {"e12"} <= set(data["paper"][0]["hazards"]) and "no hazards: the judge" in data["judged"]
    alone = asked(samples.write_application("uav", str(tmp_path / "uav")), "--simulate")
    assert "overlap" not in alone["policies"] and "overlap" in alone["left_out"]
    assert "no hazards" in called(path, "--simulate", "--policy", "finish").stdout


def test_runs_with_requests_from_stdin(tmp_path: Path):
    data = asked(two(tmp_path), "--run", "--policy", "abort", "--frames", 2500, text="full\neco\n")
    assert data["requests"] == 2 and data["policy"] == "abort"
    assert data["results"]["frames"] >= 2500 and sum(data["results"]["by_scenario"].values()) >= 2500
    assert not any(data["results"][key] for key in ("wrong", "lost", "doubled", "reordered"))
    assert {(one["from"], one["to"]) for one in data["delays"]} == {("eco", "full"), ("full", "eco")}
    assert all(one["predicted"] > 0 and one["measured"] > 0 for one in data["delays"])
    assert [one["to"] for one in data["switches"]] == ["full", "eco"]
    done = called(two(tmp_path), "--run", "--policy", "abort", "--frames", 2500, text="warp\n")
    assert done.exit_code == 1 and '"warp" is no scenario' in done.output and "Traceback" not in done.output


@pytest.mark.parametrize("policy", ["overlap", "abort"])
def test_compiles_a_package(tmp_path: Path, policy: str):
    path = three(tmp_path)
    out = tmp_path / "out"
    data = asked(path, "--compile", "--policy", policy, "-o", out)
    report = json.loads((out / "report.json").read_text())
    assert report == {key: value for key, value in data.items() if key != "output"}
    assert data["verified"] and data["tried_frames"] > 100
    assert data["ram_bytes"] == data["arena_bytes"] + data["state_bytes"]
    for name in ("src/app.h", "src/app.c", "README.md", "CMakeLists.txt", "zephyr/module.yml", "examples/main.c"):
        assert (out / name).stat().st_size
    assert "app_request(APP_FULL)" in (out / "README.md").read_text()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("")
    done = called(path, "--compile", "--no-verify", "-o", tmp_path / "mine")
    assert done.exit_code == 1 and "not written by edgewright" in done.output


def test_draws_a_page(tmp_path: Path):
    page = tmp_path / "page.html"
    done = called(two(tmp_path), "--policy", "overtake", "--page", page)
    assert done.exit_code == 0, done.output
    text = page.read_text()
    for said in ("The slowest switch", "first result of", "Worst delays", "the arena: ", 'class="chart front"', "race"):
        assert said in text
    assert text.count("<svg") == 3 and "<script" not in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--pareto", "--simulate"), "different tasks"),
        (("--policy", "abort"), "--policy is for --pareto"),
        (("--frames", "3"), "are for --run"),
        (("-o", "out"), "-o is the folder of --compile"),
        (("--run", "--share", "I"), "--share is for the paper's model: leave --run out"),
        (("--pareto", "--policy", "warp"), "'warp' is not one of"),
    ],
)
def test_options_that_do_not_go_together(tmp_path: Path, options: tuple[str, ...], said: str):
    done = called(two(tmp_path), *options)
    assert done.exit_code == 2 and said in done.output


@pytest.mark.parametrize("task", ["--pareto", "--simulate", "--run", "--compile"])
def test_overlap_on_one_processor_is_refused(tmp_path: Path, task: str):
    done = called(two(tmp_path), task, "--policy", "overlap")
    assert done.exit_code == 1 and 'policy "overlap" takes two processors' in " ".join(done.output.split())
    assert "Traceback" not in done.output


def test_what_cannot_be_compiled_is_refused(tmp_path: Path):
    path = two(tmp_path, "", CASCADE)
    done = called(path, "--compile", "--policy", "overtake", "-o", tmp_path / "out")
    assert done.exit_code == 1 and "a confidence cascade computes a frame again" in done.output
    assert not (tmp_path / "out").exists()
    small = two(tmp_path, "[limits]\nram = 64\n")
    done = called(small, "--compile", "-o", tmp_path / "out")
    assert done.exit_code == 1 and "does not fit" in done.output
    assert not (tmp_path / "out").exists()
