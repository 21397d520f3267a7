"""The choice of plans against trying every combination of the plans of all members."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from edgewright.application.combinations import Combinations, JointPlan
from edgewright.application.draft import Application, load_application
from edgewright.application.outcome import plan_application
from edgewright.application.response_time import responses, tasks_of
from edgewright.application.search import JointSearch
from edgewright.errors import EdgewrightError, Infeasible
from edgewright.samples.builder import ModelBuilder
from tests.application.cases import random_application

KINDS = ("exclusive", "parallel", "preempts", "after", "same input", "")
MOST = 400  # combinations that are tried
FEW, MANY = range(3), range(3, 60)
SEEDS = [*FEW, *(pytest.param(seed, marks=pytest.mark.slow) for seed in MANY)]


def free_application(seed: int, folder: Path) -> Application:
    """Two to four networks of which most may run in any way, any relations between them, a buffer of the firmware."""
    rng = random.Random(seed)
    names = "abcd"[: rng.choice((2, 2, 3, 3, 4))]
    lines = []
    for name in names:
        net = ModelBuilder(f"{name}{seed}")
        x = net.input(1, 2, 12, 8)
        for n in range(rng.randint(2, 4)):
            x = net.relu(net.conv(x, rng.choice((2, 4, 6, 8)), 3, 1, 1, name=f"l{n}"))
        x = net.conv(x, 2, 1, name="map")
        (folder / f"{name}.onnx").write_bytes(net.model(x).SerializeToString())
        how = rng.choice(("", "", "", "phases = true"))
        lines += ["[[network]]", f'name = "{name}"', f'file = "{name}.onnx"', how]
    read: set[str] = set()
    for index, first in enumerate(names):
        for second in names[index + 1 :]:
            kind = rng.choice(KINDS)
            if kind in ("after", "same input") and (second in read or (kind == "same input" and first in read)):
                continue  # one input has one source
            read |= {second} if kind in ("after", "same input") else set()
            lines += ["[[relation]]", f'kind = "{kind}"', f'networks = ["{first}", "{second}"]'] if kind else []
    lines += ["[[buffer]]", 'name = "log"', "size = 200", "state = true"] if rng.random() < 0.3 else []
    (folder / "app.toml").write_text("\n".join(lines) + "\n")
    return load_application(folder / "app.toml")


def every(found: Combinations, is_free: bool) -> Iterator[JointPlan]:
    """All combinations that can be laid out."""
    own = found.planners.values()
    for plans in product(*(one.free_ladder if is_free else one.ladder for one in own)):
        joint = found.tried(dict(zip(found.planners, plans, strict=True)))
        if joint is not None:
            yield joint


def count(found: Combinations) -> int:
    total = 1
    for one in found.planners.values():
        total *= len(one.ladder)
    return total


def check(search: JointSearch) -> None:
    """All answers of a search are those of trying everything; plans within other budgets may be better still."""
    found = search.combinations
    if count(found) > MOST:
        pytest.skip(f"{count(found)} combinations")
    least, smallest = found.lowest(is_free=True), found.lowest(is_free=False)
    free, all_of_them = list(every(Combinations(found.application, found.planners), True)), list(every(found, False))
    if not all_of_them:
        assert smallest is None
        return
    for lowest, others in ((least, free), (smallest, all_of_them)):
        assert lowest is not None
        best = min(others, key=lambda one: (one.peak_bytes, one.slowdown))
        assert (lowest.peak_bytes, lowest.slowdown) <= (best.peak_bytes, best.slowdown + 1e-9)
    peaks = sorted({one.peak_bytes for one in all_of_them})
    for ram in {peaks[0] - 1, peaks[0], peaks[len(peaks) // 3], peaks[len(peaks) // 2] + 3, peaks[-1]}:
        fitting = [one.slowdown for one in all_of_them if one.peak_bytes <= ram]
        exact = found.fastest_within(ram, is_free=False, refined=0)
        assert (exact is None) == (not fitting)
        if exact is not None:
            assert exact.peak_bytes <= ram and exact.slowdown == pytest.approx(min(fitting))
            better = found.fastest_within(ram, is_free=False)
            assert better is not None and better.slowdown <= exact.slowdown + 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_the_choice_is_that_of_trying_everything(seed: int, tmp_path: Path) -> None:
    try:
        search = JointSearch(free_application(seed, tmp_path))
        search.fastest  # noqa: B018
    except EdgewrightError as error:
        pytest.skip(f"refused: {error}")
    check(search)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_with_pipelines_and_kept_ends(seed: int, tmp_path: Path) -> None:
    try:
        search = JointSearch(random_application(seed, tmp_path))
        search.fastest  # noqa: B018
    except EdgewrightError as error:
        pytest.skip(f"refused: {error}")
    check(search)
    if search.by_rows is not None:
        check(search.by_rows)


def timed_application(folder: Path, deadline: str) -> Application:
    """A network with a deadline that runs beside another one, on a board."""
    net = ModelBuilder("timed")
    x = net.input(1, 3, 16, 16)
    for n in range(3):
        x = net.relu(net.conv(x, (8, 16, 8)[n], 3, 1, 1, name=f"l{n}"))
    (folder / "net.onnx").write_bytes(net.model(net.classifier(x, 3)).SerializeToString())
    lines = ['board = "nucleo-f446re"']
    for name, own in (("urgent", f'deadline = "{deadline}"\npriority = 1'), ("other", "")):
        lines += ["[[network]]", f'name = "{name}"', 'file = "net.onnx"', 'period = "10 s"', own]
    lines += ["[[relation]]", 'kind = "preempts"', 'networks = ["urgent", "other"]', 'points = "anywhere"']
    (folder / "app.toml").write_text("\n".join(lines) + "\n")
    return load_application(folder / "app.toml")


@pytest.mark.slow
def test_deadlines_take_part_in_the_choice(tmp_path: Path) -> None:
    """The smallest plan is too slow for the deadline; the default and a budget take faster ones."""
    search = JointSearch(timed_application(tmp_path, "5 s"))
    planner = search.planners["urgent"]
    fast, slow = (planner.cost(plan) for plan in (planner.fastest, search.smallest.layout.problem.plans["urgent"]))
    assert slow > 1.05 * fast and search.application.board is not None
    seconds = 1.02 * fast / search.application.board.processors[0].clock
    application = timed_application(tmp_path, f"{seconds * 1e6:.0f} us")
    found = JointSearch(application)
    assert found.least.slowdowns["urgent"] < 0.02 and found.smallest.slowdowns["urgent"] < 0.02
    assert found.smallest.peak_bytes > search.smallest.peak_bytes
    others = [one for one in every(found.combinations, False) if one.slowdowns["urgent"] < 0.02]
    assert found.smallest.peak_bytes == min(one.peak_bytes for one in others)
    within = plan_application(application, found.smallest.peak_bytes, steps=0)
    assert within.joint is not None
    tasks = tasks_of(application, within.joint.layout.deployment, is_least=True)
    assert all(one.is_met for one in responses(tasks))
    assert any("may miss its deadline" in note for note in within.notes)  # by the cycles that are likely
    with pytest.raises(Infeasible, match=r"of RAM at least to meet all deadlines"):
        plan_application(application, found.smallest.peak_bytes - 1, steps=0)
    with pytest.raises(Infeasible, match=r"'urgent' ends after .* after its deadline"):
        plan_application(timed_application(tmp_path, "1 us"), steps=0)


def test_what_is_said_to_be_enough_is_enough(tmp_path: Path) -> None:
    for seed in (1, 2, 4):
        search = JointSearch(free_application(seed, tmp_path))
        with pytest.raises(Infeasible) as refused:
            search.within(1)
        size = int(str(refused.value).split(" needs ")[1].split(" B")[0].replace(",", ""))
        assert search.within(size).peak_bytes == size
