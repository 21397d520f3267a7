"""Slots of pipelines: as few as cost no throughput, given back as soon as they have been read."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright import samples
from edgewright.application import library
from edgewright.application.draft import Application, load_application
from edgewright.application.search import JointSearch
from edgewright.dataflow.deployments.phases import PartTimes
from edgewright.dataflow.deployments.timed import TimedDeployment
from edgewright.emit.deployment.trial import LibraryTrial, TrialScript
from edgewright.errors import InputError
from edgewright.memory.joint.conflicts import JointProblem, last_use
from edgewright.memory.joint.layout import JointLayout
from edgewright.network import Region
from edgewright.network.parts import TensorRegion
from edgewright.program import faults
from edgewright.program.deployment import Fifo, Reader, Worker
from edgewright.program.deployment_check import checked_deployment
from edgewright.samples.builder import ModelBuilder
from tests.application.judge import Interleaving


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Application:
    """A pipeline whose second partition reads its input at once, and then has much to do."""
    net = ModelBuilder("long_tail")
    x = net.conv(net.input(1, 2, 10, 10), 6, name="first")
    for n in range(4):
        x = net.relu(net.conv(x, 12, 3, 1 if n else 2, 1, name=f"tail{n}"))
    folder = tmp_path_factory.mktemp("long")
    (folder / "net.onnx").write_bytes(net.model(net.classifier(x, 4, name="classes")).SerializeToString())
    (folder / "app.toml").write_text(
        '[[network]]\nname = "net"\nfile = "net.onnx"\nplain = true\npartitions = ["first", "tail0..classes"]\n'
        '[[relation]]\nkind = "pipelined"\nnetworks = ["net.1", "net.2"]\n'
    )
    return load_application(folder / "app.toml")


@pytest.fixture(scope="module")
def long_tail(app: Application) -> JointLayout:
    return JointSearch(app).least.layout


def test_a_slot_that_is_read_at_once_is_filled_again_during_the_rest(long_tail: JointLayout) -> None:
    (fifo,) = long_tail.deployment.queues
    assert fifo.slots == 1
    plan, freed = long_tail.plans["net.2"], long_tail.deployment.release_stage(fifo, "net.2")
    assert 0 == last_use(plan, ["first"]) < freed < len(plan.program.stages) - 1
    began_inside = 0
    for seed in range(12):
        trial = Interleaving(long_tail, seed)
        assert list(trial.run(60)) == []
        for before, move in zip(trial.moves, trial.moves[1:], strict=False):
            began_inside += move == "start net.1" and before.startswith("net.2 stage")
    assert began_inside  # the first partition makes the next frame while the second is at work


def test_until_a_slot_is_given_back_the_producer_leaves_its_memory_to_the_reader(long_tail: JointLayout) -> None:
    """Buffers of the reader lie over the slot and over the producer's own, and the judge knows why they may."""
    (slot,) = (buffer for buffer in long_tail.buffers if buffer.fifo)
    assert slot.fifo is not None
    freed = long_tail.deployment.release_stage(slot.fifo, "net.2")
    own = [b for b in long_tail.buffers if b.fifo is None]
    late, early = [], []
    for buffer in own:
        if buffer.uses[0].part == "net.2":
            (late if buffer.uses[0].last > freed else early).append(buffer)
    made = [buffer for buffer in own if buffer.uses[0].part == "net.1"]
    assert all(long_tail.graph.meets(x.name, y.name) for x in late for y in (slot, *made))
    assert early and made and not any(long_tail.graph.meets(x.name, y.name) for x in early for y in made)
    with pytest.raises(InputError, match="at the same time"):
        checked_deployment(releasing(long_tail, -1).deployment)


def releasing(layout: JointLayout, stage: int) -> JointLayout:
    """The layout whose second partition releases its slots after this stage."""
    deployment = layout.problem.deployment
    fifos = tuple(
        replace(fifo, readers=(Reader("net.2", stage),)) if fifo in deployment.queues else fifo
        for fifo in deployment.fifos
    )
    return replace(layout, problem=JointProblem(replace(deployment, fifos=fifos)))


def test_a_partition_is_planned_around_what_its_producer_needs_when_it_may_run(tmp_path: Path) -> None:
    """Early layers have all the memory, late ones what is left beside the producer."""
    net = ModelBuilder("pipe")
    x = net.relu(net.conv(net.input(1, 3, 24, 24), 8, name="first"))
    x = net.relu(net.conv(x, 16, 3, 1, 1, name="early"))
    for n in range(5):
        x = net.relu(net.conv(x, 16, 3, 1 if n else 2, 1, name=f"late{n}"))
    (tmp_path / "net.onnx").write_bytes(net.model(net.classifier(x, 4, name="classes")).SerializeToString())
    (tmp_path / "app.toml").write_text(
        '[[network]]\nname = "net"\nfile = "net.onnx"\npartitions = ["first", "early..classes"]\n'
        '[[relation]]\nkind = "pipelined"\nnetworks = ["net.1", "net.2"]\n'
    )
    search = JointSearch(load_application(tmp_path / "app.toml"))
    reader, found = search.planners["net.2"], search.as_given
    assert reader.reserved is not None and reader.reserved[1] == search.planners["net.1"].least.peak_bytes
    plans = found.layout.problem.plans
    assert found.peak_bytes < sum(plan.peak_bytes for plan in plans.values())
    assert found.peak_bytes <= reader.peak(plans["net.2"]) and not any(
        list(faults(p)) for p in found.layout.plans.values()
    )
    for seed in range(3):
        assert list(Interleaving(found.layout, seed).run(50)) == []


@pytest.mark.slow
def test_the_library_gives_slots_back_when_they_have_been_read(app: Application, long_tail: JointLayout) -> None:
    result = LibraryTrial(library.emit_application(app, long_tail)).run(TrialScript(120, seed=2))
    assert result.wrong == () and result.nested
    patient = releasing(long_tail, len(long_tail.plans["net.2"].program.stages) - 1)
    refused = LibraryTrial(library.emit_application(app, patient)).run(TrialScript(120, seed=2))
    assert refused.wrong == () and refused.nested < result.nested


def test_double_buffers_stay_where_they_make_the_pipeline_faster(tmp_path: Path) -> None:
    app = load_application(samples.write_application("paper_application", tmp_path))
    (fifo,) = JointSearch(app).fastest.layout.deployment.queues
    assert fifo.slots == 2


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=2, max_size=4),
    st.integers(1, 4),
)
def test_periods_follow_from_runs_and_slots(stages: list[tuple[int, int]], slots: int) -> None:
    """With slots enough the slowest partition sets the pace; with one, a producer and the reading of its slot do."""
    chain = tuple(
        Fifo(TensorRegion("net", f"t{n}", Region.whole((1,))), f"p{n}", (Reader(f"p{n + 1}", stage=0),), slots)
        for n in range(len(stages) - 1)
    )
    times = {(f"p{n}", f"p{n}"): PartTimes(((read,), (rest,))) for n, (read, rest) in enumerate(stages)}
    workers = tuple(Worker(name, "", "", (), (name,)) for name, _ in times)
    pipeline = TimedDeployment("net", workers, chain, times)
    slowest = max(read + rest for read, rest in stages)
    pairs = [read + rest + after for (read, rest), (after, _) in pairwise(stages)]
    assert pipeline.slowest == slowest
    assert pipeline.period == (slowest if slots >= 2 else max(slowest, *pairs))
