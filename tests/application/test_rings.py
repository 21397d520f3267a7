"""Rings of rows between partitions of a pipeline: taken where they are smaller, judged by rows, and right in C."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from math import inf
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.application.draft import Application, load_application
from edgewright.application.host_run import run_application
from edgewright.application.library import emit_application
from edgewright.application.outcome import outcome_of
from edgewright.application.rings import possible_rings
from edgewright.application.search import JointSearch
from edgewright.application.slots import with_small_rings
from edgewright.dataflow.checks.liveness import blocked
from edgewright.dataflow.deployments.phases import PartTimes
from edgewright.dataflow.deployments.timed import TimedDeployment
from edgewright.dataflow.graph import Actor, Channel, Graph, Rates
from edgewright.emit.deployment.trial import LibraryTrial, TrialScript
from edgewright.memory.joint.layout import JointLayout
from edgewright.network import Region
from edgewright.network.parts import TensorRegion
from edgewright.program import faults
from edgewright.program.deployment import Fifo, Reader, Worker
from edgewright.samples.builder import ModelBuilder
from tests.application.judge import Interleaving
from tests.helpers.tools import on_board

OTHER = """\
[[network]]
name = "other"
file = "net.onnx"
[[relation]]
kind = "preempts"
networks = ["other", "net"]
"""


def pipeline(
    folder: Path,
    more: str = "",
    own: str = "",
    residual: bool = False,
    target: str = "host",
    cuts: tuple[str, ...] = ("stem..cut", "depth..classes"),
) -> Application:
    """Partitions that meet in large maps, which all can go through row by row."""
    net = ModelBuilder("pipe")
    x = net.relu(net.conv(net.input(1, 2, 40, 10), 8, 3, 2, 1, name="stem"))
    x = net.relu(net.conv(x, 12, 1, name="cut"))
    y = net.relu(net.conv(x, 12, 3, 1, 1, name="depth"))
    y = net.add(x, y) if residual else y
    for n in range(2):
        y = net.relu(net.conv(y, 12, 3, 2, 1, name=f"tail{n}"))
    (folder / "net.onnx").write_bytes(net.model(net.classifier(y, 3, name="classes")).SerializeToString())
    names = [f"net.{n + 1}" for n in range(len(cuts))]
    (folder / "app.toml").write_text(
        f'target = "{target}"\n[[network]]\nname = "net"\nfile = "net.onnx"\n{own}'
        f"partitions = {json.dumps(cuts)}\n"
        f'[[relation]]\nkind = "pipelined"\nnetworks = {json.dumps(names)}\n{more}'
    )
    return load_application(folder / "app.toml")


def in_rows(application: Application) -> JointLayout:
    rows = JointSearch(application).by_rows
    assert rows is not None
    return rows.least.layout


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> JointSearch:
    return JointSearch(pipeline(tmp_path_factory.mktemp("rings"), target="cortex-m4"))


def test_rows_cross_where_that_is_smaller_than_frames(search: JointSearch) -> None:
    found = search.least
    (ring,) = found.layout.rings
    frame = found.layout.deployment.tensor(ring)
    assert 1 <= ring.rows <= 3 < frame.shape[1] == 20
    assert found.peak_bytes < search.as_given.peak_bytes - frame.bytes // 2
    assert not any(list(faults(plan)) for plan in found.layout.problem.plans.values())
    outcome = outcome_of(search, found, None)
    assert outcome.notes[0].startswith(f"'cut' crosses in 'net' row by row: {ring.rows} of 20 kept")
    assert outcome.to_dict()["rings"] == [
        {"name": "net:cut", "rows": ring.rows, "of": 20, "bytes": ring.rows * frame.bytes // 20}
    ]


def test_any_interleaving_of_rows_is_right(search: JointSearch) -> None:
    changes = 0
    for seed in range(4):
        trial = Interleaving(search.least.layout, seed)
        assert list(trial.run(70)) == []
        assert trial.done["net.2"]
        changes += sum(x.startswith("net.1 stage") and y.startswith("net.2 stage") for x, y in pairwise(trial.moves))
    assert changes > 20  # rows are read while others are made


def test_an_input_that_several_layers_read_is_copied_by_rows(tmp_path: Path) -> None:
    layout = in_rows(pipeline(tmp_path, residual=True))
    assert any(name.endswith(":rows") for name in layout.plans["net.2"].network.by_name)
    assert list(Interleaving(layout, 1).run(70)) == []


def test_the_judge_finds_what_lies_in_the_way_of_a_ring(search: JointSearch) -> None:
    layout = search.least.layout
    (ring,) = (b for b in layout.buffers if b.fifo)
    last = len(layout.plans["net.1"].program.stages) - 1
    beside = [b for b in layout.buffers if not b.fifo and layout.graph.meets(b.name, ring.name)]
    pushing = [b for b in beside if b.uses[0].part == "net.1" and b.uses[0].last == last]
    pulling = [b for b in beside if b.uses[0].part == "net.2" and b.uses[0].first == 0]
    for victims in (pushing, pulling):
        offsets = {**layout.placement.offsets, ring.name: layout.at(max(victims, key=lambda b: b.size).name)}
        wrong = replace(layout.placement, offsets=offsets)
        plans = dict(layout.plans)
        view = plans["net.1"].views["cut"].buffer
        buffers = [replace(b, offset=offsets[ring.name]) if b.name == view else b for b in plans["net.1"].buffers]
        plans["net.1"] = replace(plans["net.1"], buffers=tuple(buffers))
        deployment = layout.deployment.with_plans(plans)
        trials = (Interleaving(replace(layout, placement=wrong), seed, deployment) for seed in range(6))
        assert any(list(trial.run(60)) for trial in trials)


def test_partitions_that_wait_for_each_other_for_ever_are_a_fault(search: JointSearch) -> None:
    """A reader that wants two rows at once gets nothing out of a ring of one."""
    trial = Interleaving(search.least.layout, 3)
    trial.rings[0].rows = 1
    assert any("cannot go on" in fault.message for fault in trial.run(60))


@pytest.mark.parametrize(
    ("own", "more"),
    [
        ("plain = true\n", ""),
        ("", OTHER),
    ],
)
def test_frames_stay_whole_where_layers_do_or_others_interrupt(tmp_path: Path, own: str, more: str) -> None:
    assert not possible_rings(pipeline(tmp_path, more, own))


steps = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3)), min_size=1, max_size=7)


@settings(max_examples=40, deadline=None)
@given(steps, steps, st.integers(0, 5))
def test_rings_are_live_as_dataflow_says_and_more_rows_are_never_slower(
    pushed: list[tuple[int, int]], pulled: list[tuple[int, int]], early: int
) -> None:
    made, read = (sum(rows for _, rows in side) for side in (pushed, pulled))
    pushed, pulled = [*pushed, (1, max(1, read - made))], [*pulled, (1, max(0, made + max(1, read - made) - read))]
    (pushing, made), (pulling, read) = (zip(*side, strict=True) for side in (pushed, pulled))
    ring = Fifo(
        TensorRegion("net", "x", Region.whole((1, sum(made), 1, 1))), "push", (Reader("pull", -1),), 1, rows=sum(made)
    )
    times = {
        ("push", "push"): PartTimes(((early,), pushing), pushed=made),
        ("pull", "pull"): PartTimes((pulling, (2,), (1,)), pulled=read),
    }
    workers = tuple(Worker(name, "", "", (), (name,)) for name, _ in times)
    pipeline = TimedDeployment("net", workers, (ring,), times)
    graph = Graph(
        "ring",
        (Actor("push", len(pushed)), Actor("pull", len(pulled))),
        (Channel("rows", "push", "pull", *(Rates(tuple(rows for _, rows in side)) for side in (pushed, pulled))),),
    )
    periods = [pipeline.with_fifo(ring, replace(ring, rows=rows)).period for rows in range(1, sum(made) + 1)]
    assert periods == sorted(periods, reverse=True)
    for rows, period in enumerate(periods, 1):
        assert (period == inf) == (blocked(graph, {"rows": rows}) is not None)
    assert periods[-1] >= max(early + sum(pushing), sum(pulling) + 3) == pipeline.slowest
    settled = with_small_rings(pipeline, is_hasty=False)
    assert settled.period <= periods[-1] * 1.05 and settled.rings[0].readers[0].stage >= -1


def test_one_thread_stops_a_run_for_want_of_room_and_goes_on(tmp_path: Path) -> None:
    """The first partition pulls its image by rows, too: it remembers whom it asks, and how far it has come."""
    application = pipeline(tmp_path, own="pull_input = true\n")
    layout = in_rows(application)
    assert layout.rings and layout.plans["net.1"].is_by_rows("input") and list(Interleaving(layout, 1).run(60)) == []
    library = emit_application(application, layout)
    result = LibraryTrial(library).run(TrialScript(40, seed=3))
    assert result.wrong == () and result.runs > 40
    (measured,) = run_application(application, layout, 6)  # a thread for each partition, the image row by row
    assert measured.statistics.frames == 6


def test_two_threads_wait_for_each_others_rows(search: JointSearch) -> None:
    (measured,) = run_application(search.application, search.least.layout, 12)  # which compares every frame
    assert measured.statistics.frames == 12


@on_board
def test_rows_cross_on_the_virtual_board(chain: JointSearch) -> None:
    library = emit_application(chain.application, chain.least.layout)
    assert library.layout.rings
    found = LibraryTrial(library).run_on_board(TrialScript(6, 8, seed=2))
    assert found.result.wrong == () and found.result.runs > 10
    assert found.ram_linked == library.layout.peak_bytes + library.state_bytes


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> JointSearch:
    """Four partitions, of which the two in the middle pull rows and push them in one stage."""
    cuts = ("stem..cut", "depth", "tail0", "tail1..classes")
    return JointSearch(pipeline(tmp_path_factory.mktemp("chain"), cuts=cuts, target="cortex-m4"))


def test_rows_cross_between_all_partitions_of_a_longer_pipeline(chain: JointSearch) -> None:
    found = chain.least
    assert [ring.what.tensor for ring in found.layout.rings] == ["cut", "depth", "tail0"]
    assert found.peak_bytes < chain.as_given.peak_bytes // 2
    assert max(found.slowdowns.values()) <= 0.05
    for seed in range(3):
        trial = Interleaving(found.layout, seed)
        assert list(trial.run(120)) == []
        assert trial.done["net.4"]


def test_one_thread_goes_on_in_every_partition_before(chain: JointSearch) -> None:
    """The last one wants a row, its producer one for it, and so on; nobody is gone on with while it is at work."""
    result = LibraryTrial(emit_application(chain.application, chain.least.layout)).run(TrialScript(60, 8, seed=3))
    assert result.wrong == () and result.runs > 60


def test_as_many_threads_as_partitions(chain: JointSearch) -> None:
    (measured,) = run_application(chain.application, chain.least.layout, 9)
    assert measured.statistics.frames == 9


def test_frames_and_rows_in_one_pipeline(tmp_path: Path) -> None:
    """What two partitions read crosses as a whole, and a partition that reads a slot may fill a ring."""
    cuts = ("stem..cut", "depth", "add1..tail0", "tail1..classes")
    application = pipeline(tmp_path, cuts=cuts, residual=True, target="cortex-m4")
    layout = in_rows(application)
    assert [(fifo.what.tensor, bool(fifo.rows)) for fifo in layout.deployment.queues] == [
        ("cut", False),
        ("depth", False),
        ("tail0", True),
    ]
    assert [x for seed in range(3) for x in Interleaving(layout, seed).run(120)] == []
    result = LibraryTrial(emit_application(application, layout)).run(TrialScript(40, 8, seed=5))
    assert result.wrong == () and result.runs > 60
    (measured,) = run_application(application, layout, 9)
    assert measured.statistics.frames == 9


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_random_pipelines(tmp_path: Path, seed: int) -> None:
    """Any layers in any partitions, judged by rows, in one thread, and in one for each."""
    random = Random(seed)
    net, names = ModelBuilder("random"), []
    x = net.input(1, random.randint(1, 3), random.choice((12, 17, 24, 40)), random.choice((6, 10)))
    for number in range(random.randint(4, 9)):
        size, stride = random.choice((1, 3, 3, 5)), random.choice((1, 1, 1, 2))
        names.append(f"layer{number}")
        x = net.conv(x, random.choice((4, 8, 12)), size, stride, size // 2, name=names[-1])
        x = net.relu(x) if random.random() < 0.7 else x
    (tmp_path / "net.onnx").write_bytes(net.model(net.classifier(x, 3, name="classes")).SerializeToString())
    ends = sorted(random.sample(range(1, len(names)), random.randint(1, 3)))
    cuts = [f"{names[a]}..{names[b - 1]}" for a, b in pairwise((0, *ends))] + [f"{names[ends[-1]]}..classes"]
    members = [f"net.{number + 1}" for number in range(len(cuts))]
    (tmp_path / "app.toml").write_text(
        f'[[network]]\nname = "net"\nfile = "net.onnx"\npartitions = {json.dumps(cuts)}\n'
        f'[[relation]]\nkind = "pipelined"\nnetworks = {json.dumps(members)}\n'
    )
    search = JointSearch(load_application(tmp_path / "app.toml"))
    layout = (search.by_rows or search).least.layout
    assert [fault for number in range(4) for fault in Interleaving(layout, number).run(120)] == []
    assert LibraryTrial(emit_application(search.application, layout)).run(TrialScript(60, 8, seed=seed)).wrong == ()
    (measured,) = run_application(search.application, layout, 6)
    assert measured.statistics.frames == 6
