"""The file of a front, which points dominate, and the volume that a front covers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from edgewright.errors import EdgewrightError
from edgewright.search.front import DesignFront, DesignPoint, Measure, hypervolume, pareto, read_front

MEASURES = (Measure.MACRO_F1, Measure.RAM, Measure.INSTRUCTIONS)


def point(name: str, score: float, ram: int, work: int, **more) -> DesignPoint:
    return DesignPoint(
        name=name,
        accuracy=score,
        macro_f1=score,
        ram_bytes=ram,
        flash_bytes=1,
        instructions=work,
        macs=work,
        latency_s=work / 1e6,
        throughput=1e6 / work,
        model=f"models/{name}.onnx",
        manner="streamed",
        command="edgewright compile",
        **more,
    )


def front(*points: DesignPoint) -> DesignFront:
    return DesignFront(task="t", digest="0", seed=1, board="b", metric="macro_f1", measures=MEASURES, points=points)


def test_a_front_is_read_back(tmp_path):
    written = front(point("a", 0.9, 100, 10), point("b", 0.8, 50, 20, energy_j=0.5))
    written.write(tmp_path)
    assert read_front(tmp_path) == read_front(tmp_path / "front.json") == written
    assert (tmp_path / "front.json").read_text() == written.text()


def test_only_points_that_none_dominates_are_on_the_front():
    a, b, c = point("a", 0.9, 100, 10), point("b", 0.8, 50, 20), point("c", 0.8, 100, 10)
    assert pareto([c, a, b, point("d", 0.9, 100, 10)], MEASURES) == (a, b)
    assert pareto([c, a, b], [Measure.RAM]) == (b,)
    assert pareto([a, point("e", 0.9, 100, 10, energy_j=1.0)], [Measure.ENERGY])[0].name == "e"


@pytest.mark.parametrize("seed", range(8))
def test_hypervolume_is_that_of_the_union_of_boxes(seed):
    rng = np.random.default_rng(seed)
    dimensions = int(rng.integers(1, 4))
    points = rng.integers(0, 7, (int(rng.integers(1, 8)), dimensions))
    cells = sum(any(all(p <= c) for p in points) for c in map(np.array, product(range(6), repeat=dimensions)))
    assert hypervolume(points.tolist(), [6] * dimensions) == cells


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is no front of `edgewright search`"),
        ('{"format": "other"}', "is no front of `edgewright search`: task"),
        (front(point("a", 0.9, 1, 1), point("a", 0.8, 1, 1)).text(), "two points have one name"),
        (front().text().replace("front-1", "front-9"), "another version"),
        (front(point("a", 0.9, 1, 1)).text().replace('"ram_bytes": 1', '"ram_bytes": -1'), r"points\[0\].ram_bytes"),
    ],
)
def test_a_file_that_is_no_front_is_refused(content, message, tmp_path):
    (tmp_path / "front.json").write_text(content)
    with pytest.raises(EdgewrightError, match=message):
        read_front(tmp_path)
    with pytest.raises(EdgewrightError, match="there is no file"):
        read_front(tmp_path / "other.json")
