"""Plans of applications in files: the same library from the file, and every planted fault refused on loading."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from edgewright import samples
from edgewright.application.draft import Application, load_application
from edgewright.application.library import emit_application
from edgewright.application.plan_file import load_application_plan, save_application_plan
from edgewright.application.search import JointSearch
from edgewright.cli.main import main
from edgewright.errors import EdgewrightError, InputError
from tests.application.cases import random_application
from tests.application.planted_faults import harm, planted_faults
from tests.application.test_random import laid_out

FEW, MANY = range(4), range(4, 40)
SEEDS = [*FEW, *(pytest.param(seed, marks=pytest.mark.slow) for seed in MANY)]
PLANTED = 12  # faults in each file that could do harm
SAMPLED = 25  # of all kinds of changes


def test_the_library_of_a_file_is_that_of_its_plan(tmp_path: Path) -> None:
    app = load_application(samples.write_application("tiny_application", tmp_path))
    layout = JointSearch(app).least.layout
    save_application_plan(layout, tmp_path / "app.json")
    again = load_application_plan(app, tmp_path / "app.json")
    assert again.peak_bytes == layout.peak_bytes and again.arenas == layout.arenas
    assert emit_application(app, again).files == emit_application(app, layout).files


@pytest.mark.parametrize("seed", SEEDS)
def test_planted_faults_are_refused(seed: int, tmp_path: Path) -> None:
    try:
        layout = laid_out(seed, tmp_path)
    except EdgewrightError as error:
        pytest.skip(f"refused: {error}")
    app, file, rng = random_application(seed, tmp_path), tmp_path / "app.json", random.Random(seed)
    save_application_plan(layout, file)
    load_application_plan(app, file)
    text, conflicting = file.read_text(), {frozenset(pair) for pair in layout.graph.pairs}
    faults = list(planted(json.loads(text), app, conflicting, rng))
    for name, change in rng.sample(faults, min(PLANTED, len(faults))):
        data = json.loads(text)
        change(data["deployment"])
        file.write_text(json.dumps(data))
        assert is_refused(app, file), name


@pytest.mark.parametrize("seed", [2, 24, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (3, 5, 10, 41, 45))])
def test_whatever_is_changed_in_a_file_is_refused_or_does_no_harm(seed: int, tmp_path: Path) -> None:
    """In the longer runs, one fault of each of about 800 kinds in each file."""
    try:
        layout = laid_out(seed, tmp_path)
    except EdgewrightError as error:
        pytest.skip(f"refused: {error}")
    app, file, rng = random_application(seed, tmp_path), tmp_path / "app.json", random.Random(seed)
    save_application_plan(layout, file)
    data, original = json.loads(file.read_text()), load_application_plan(app, file)
    faults = list(planted_faults(data, rng))
    refused = 0
    for fault in rng.sample(faults, SAMPLED) if seed in (2, 24) else faults:
        file.write_text(json.dumps(fault.planted(data)))
        try:
            loaded = load_application_plan(app, file)
        except InputError:
            refused += 1
        else:
            assert harm(app, original, loaded) is None, fault.where
    assert refused > SAMPLED // 2


def is_refused(app: Application, file: Path) -> bool:
    try:
        load_application_plan(app, file)
    except InputError:
        return True
    return False


Change = Callable[[dict[str, Any]], object]


def planted(
    data: dict[str, Any], app: Application, conflicting: set[frozenset[str]], rng: random.Random
) -> Iterator[tuple[str, Change]]:
    """Faults that could do harm, each with a name."""
    deployment = data["deployment"]
    yield "a smaller arena", lambda d: d["arenas"][0][1].update(bytes=d["arenas"][0][1]["bytes"] - 4)
    yield "a larger arena", lambda d: d["arenas"][0][1].update(bytes=d["arenas"][0][1]["bytes"] + 64)
    for n, fifo in enumerate(deployment["fifos"]):
        for key in ("is_kept", "keeps_latest"):
            yield f"{key} of FIFO {n}", lambda d, n=n, key=key: d["fifos"][n].update({key: not d["fifos"][n][key]})
        yield f"another slot of FIFO {n}", lambda d, n=n: d["fifos"][n].update(slots=d["fifos"][n]["slots"] + 1)
        yield f"rows of FIFO {n}", lambda d, n=n: d["fifos"][n].update(rows=d["fifos"][n]["rows"] + 1)
        if len(fifo["readers"]) > 1:
            yield f"a reader of FIFO {n}", lambda d, n=n: d["fifos"][n]["readers"].pop()
            yield f"the order of readers of FIFO {n}", lambda d, n=n: d["fifos"][n]["readers"].reverse()
        if fifo["readers"][0]["stage"] is not None:
            yield f"the release of FIFO {n}", lambda d, n=n: d["fifos"][n]["readers"][0].update(stage=-2)
    for n, relation in enumerate(deployment["relations"]):
        other = "parallel" if relation["kind"] != "parallel" else "exclusive"
        yield f"the kind of relation {n}", lambda d, n=n, kind=other: d["relations"][n].update(kind=kind)
        yield f"relation {n}", lambda d, n=n: d["relations"].pop(n)
        if relation["points"] is not None:
            yield f"anywhere in relation {n}", lambda d, n=n: d["relations"][n].update(points=None)
            yield f"points of relation {n}", lambda d, n=n: d["relations"][n]["points"].update(after=[99])
    for n, _ in enumerate(deployment["buffers"]):
        yield f"the size of buffer {n}", lambda d, n=n: d["buffers"][n].update(bytes=d["buffers"][n]["bytes"] + 8)
        other = None if deployment["buffers"][n]["parts"] else ["a"]
        yield f"the use of buffer {n}", lambda d, n=n, other=other: d["buffers"][n].update(parts=other)
    for n, part in enumerate(deployment["parts"]):
        buffers = part["plan"]["buffers"]
        for m, buffer in enumerate(buffers):
            if buffer["first"] < buffer["last"] and buffer["name"] not in part["inputs"]:
                yield (
                    f"the life of {buffer['name']} of {part['name']}",
                    lambda d, n=n, m=m, last=buffer["first"]: d["parts"][n]["plan"]["buffers"][m].update(last=last),
                )
            inside = [
                other["offset"]
                for k, other in enumerate(buffers)
                if k != m
                and other["memory"] == buffer["memory"]
                and frozenset((f"{part['name']}:{buffer['name']}", f"{part['name']}:{other['name']}")) in conflicting
                and other["first"] < buffer["first"] < other["last"]
            ]
            for at in inside[:1]:
                yield (
                    f"the address of {buffer['name']} of {part['name']}",
                    lambda d, n=n, m=m, at=at: d["parts"][n]["plan"]["buffers"][m].update(offset=at),
                )


def test_a_plan_of_another_application_is_refused_in_one_sentence(tmp_path: Path) -> None:
    names = ("paper_application", "tiny_application")
    one, two = (samples.write_application(name, tmp_path / name) for name in names)
    plan = tmp_path / "app.json"
    run = CliRunner().invoke(main, ["app", str(one), "-o", str(plan)])
    assert run.exit_code == 0 and "wrote" in run.output
    other = CliRunner().invoke(main, ["app", str(two), "--plan", str(plan)])
    assert other.exit_code == 1 and "plan" in other.output and "Traceback" not in other.output
    plan.write_text("{")
    damaged = CliRunner().invoke(main, ["app", str(one), "--plan", str(plan)])
    assert damaged.exit_code == 1 and "is not JSON" in damaged.output
