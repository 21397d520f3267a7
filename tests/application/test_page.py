"""The page of an application: the map, the relations, the bars, the front; and the verb that writes it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner

from edgewright import samples, text
from edgewright.application.draft import load_application
from edgewright.application.outcome import AppOutcome, plan_application
from edgewright.application.search import JointSearch
from edgewright.cli import main
from edgewright.memory.joint.layout import ARENA
from edgewright.report.application_map import application_map_svg
from edgewright.report.application_page import application_page

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> tuple[JointSearch, AppOutcome]:
    app = load_application(samples.write_application("tiny_application", tmp_path_factory.mktemp("tiny")))
    search = JointSearch(app)
    return search, plan_application(app, search=search, steps=0)


def test_the_map_draws_every_buffer_where_it_lies(planned: tuple[JointSearch, AppOutcome]) -> None:
    _, outcome = planned
    assert outcome.joint is not None
    layout = outcome.joint.layout
    root = ET.fromstring(application_map_svg(outcome, ARENA, outcome.peak_bytes + 100))
    drawn = {
        str(title.text).splitlines()[0]: group
        for group in root.iter(f"{SVG}g")
        if "b " in group.get("class", "") and (title := group.find(f"{SVG}title")) is not None
    }
    assert set(drawn) == {buffer.name for buffer in layout.buffers}
    scale = 420 / (outcome.peak_bytes + 100)
    heights = {name: [float(r.get("height", 0)) for r in group.iter(f"{SVG}rect")] for name, group in drawn.items()}
    for buffer in layout.buffers:
        assert heights[buffer.name] and all(
            abs(height - max(0.8, buffer.size * scale)) < 0.11 for height in heights[buffer.name]
        )
    members = len(layout.plans)
    assert len(heights["log"]) == members  # in use whatever runs
    assert len(heights["detect:map = landmarks:input"]) == members  # used by two, waits during the others
    assert "".join(root.itertext()).count("preempts") == 2  # beside its line, and where one points


def test_the_page_stands_alone_and_says_what_was_found(
    planned: tuple[JointSearch, AppOutcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgewright.application.search.STEPS", 1)
    search, outcome = planned
    front = search.front()
    assert len(front) > 1
    page = application_page(outcome, front)
    assert "<script" not in page and "http-equiv" in page and not re.search(r'(src|href)="', page)
    for said in (text.size(outcome.peak_bytes), text.size(outcome.separate_bytes), "sets the peak", "who pays"):
        assert said in page
    assert page.count('class="point') == len(front)


def test_the_verb_writes_the_page(tmp_path: Path) -> None:
    paper = samples.write_application("paper_application", tmp_path)
    done = CliRunner().invoke(main, ["app", str(paper), "--page", str(tmp_path / "app.html")])
    assert done.exit_code == 0 and "9,792 B" in (tmp_path / "app.html").read_text()
    refused = CliRunner().invoke(main, ["app", str(paper), "--method", "paper", "--page", str(tmp_path / "x.html")])
    assert refused.exit_code == 2 and "--page" in refused.output


@pytest.mark.parametrize("points", ["stages", "rows", "anywhere"])
def test_the_map_shows_where_networks_may_be_interrupted(points: str, tmp_path: Path) -> None:
    samples.write_application("tiny_application", tmp_path)
    entries = "".join(f'[[network]]\nname = "{n}"\nfile = "{n}.onnx"\n' for n in ("wake", "detect"))
    relation = f'[[relation]]\nkind = "preempts"\nnetworks = ["wake", "detect"]\npoints = "{points}"\n'
    (tmp_path / "points.toml").write_text(entries + relation)
    outcome = plan_application(load_application(tmp_path / "points.toml"), steps=0)
    assert outcome.joint is not None
    root = ET.fromstring(application_map_svg(outcome, ARENA))
    marks = [group for group in root.iter(f"{SVG}g") if group.get("class") == "preempt"]
    told = [str(title.text) for mark in marks if (title := mark.find(f"{SVG}title")) is not None]
    stages = [one for one in told if "after stage" in one]
    rows = [one for one in told if "rows of stage" in one]
    allowed = outcome.joint.layout.deployment.points_of("detect")
    if points == "anywhere":
        assert told == ["wake may interrupt detect anywhere"]
    else:
        assert stages == [f"wake may interrupt detect after stage {n + 1}" for n in sorted(allowed.after)]
        assert len(rows) == len({stage for stage, _ in allowed.rows}) and bool(rows) == (points == "rows")
    assert "may be interrupted" in "".join(root.itertext())
