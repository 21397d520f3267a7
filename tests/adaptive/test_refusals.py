"""What `edgewright adapt` refuses: one sentence, status 1, and nothing else on the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from edgewright.cli import main
from tests.adaptive.cases import CASCADE
from tests.adaptive.test_adaptive import BOARD, classifier, detector, two, written

LOW = '[[rule]]\nsignal = "battery"\nbelow = 0.25\nuntil = 0.35\nrequest = "eco"\n'
HIGH = '[[rule]]\nsignal = "battery"\nabove = 0.3\nrequest = "full"\n'
LOWER = '[[rule]]\nsignal = "battery"\nbelow = 0.2\nrequest = "full"\n'
FIGURES = '[[scenario]]\naccuracy = 0.8\npower = "1 W"\n'
DAY = 'duration = "10 s"\n[[signal]]\nname = "battery"\ntimes = [0]\nvalues = [1.0]\n'


def refused(path: Path, said: str, *options: object) -> None:
    """Checks that adapt ends with one line, which has these words."""
    done = CliRunner().invoke(main, ["adapt", str(path), *map(str, options)], input="")
    assert done.exit_code == 1 and done.stdout == "", done.output
    (line,) = done.stderr.splitlines()
    assert line.startswith("Error: ") and said in line


@pytest.mark.parametrize(
    ("head", "tail", "said"),
    [
        pytest.param('[adapt]\nstart = "ecco"\n', "", 'adapt.start is "ecco", which no scenario has', id="start"),
        pytest.param("", LOW.replace("eco", "ecco"), 'rule[0].request is "ecco", which no scenario', id="request"),
        pytest.param("", LOW + HIGH, "rule[1] contradicts rule[0]: both are active", id="rules that overlap"),
        pytest.param('[adapt]\ndwell = "0 s"\n', LOW + HIGH, "adapt.dwell is 0, so that a noisy", id="zero dwell"),
        pytest.param("", LOW + LOWER, "rule[1] can never fire: rule[0] is active", id="never fires"),
        pytest.param("", LOW.replace("0.35", "0.15"), "rule[0].until is 0.15, less than below", id="hysteresis"),
        pytest.param('[adapt]\npolicy = "overlap"\n', "", '"overlap" on one processor', id="overlap on one core"),
        pytest.param(BOARD + '[adapt]\ndelay = "10 us"\n', "", "adapt.delay is 10 us, and a frame of", id="delay"),
        pytest.param('[adapt]\nshare = ["I", "weights"]\n', "", 'adapt.share[1] is "weights"', id="attribute"),
    ],
)
def test_a_file_that_contradicts_itself(tmp_path: Path, head: str, tail: str, said: str):
    path = two(tmp_path, head, tail)
    refused(path, said)
    refused(path, said, "--simulate")


def test_scenarios_that_do_not_fit_together(tmp_path: Path):
    eco, full = classifier("eco", (4,)), classifier("full", (4, 8))
    refused(written(tmp_path, eco=eco), 'scenario is "eco" alone, so there is nothing to switch to')
    refused(written(tmp_path, eco=eco, full=classifier("full", (4,), 12)), "scenario[1].network has the inputs")
    refused(written(tmp_path, eco=eco, full=classifier("full", (4,), 8, 5)), "scenario[1].network has the outputs")
    path = written(tmp_path, eco=eco, full=full)
    for name, labels in (("eco", '["cat", "dog", "cow"]'), ("full", '["cat", "cow", "dog"]')):
        scenario = f'[[scenario]]\nname = "{name}"\n'
        path.write_text(path.read_text().replace(scenario, f"{scenario}labels = {labels}\n"))
    refused(path, 'scenario[1].labels has "cow" for class 1, and scenario \'eco\' has "dog"')
    images = written(tmp_path, tail=CASCADE, eco=detector("eco"), full=detector("full"))
    refused(images, "a confidence cascade expects one vector of two or more class scores")


def test_requests_for_what_is_unknown(tmp_path: Path):
    path = two(tmp_path, "", LOW)
    path.write_text(path.read_text().replace("[[scenario]]\n", FIGURES))
    day = tmp_path / "day.toml"
    day.write_text(DAY + '[[request]]\ntime = "1 s"\nscenario = "warp"\n')
    refused(path, '"warp"', "--environment", day)
    refused(path, "--requests 70000 is no port", "--run", "--requests", 70000)
    refused(tmp_path / "missing.toml", "missing.toml: cannot be read")
