"""Several networks in one arena: files, relations, joint layouts, the judge, the paper's algorithms, the verb."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise, permutations
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright import samples
from edgewright.application.description import ApplicationFile, PreemptionPoints
from edgewright.application.draft import Application, load_application
from edgewright.application.library import emit_application
from edgewright.application.outcome import plan_application
from edgewright.application.paper.edges import PaperEdge, paper_application
from edgewright.application.paper.outcome import paper_outcome
from edgewright.application.paper.reduction import Evaluation, _evolved
from edgewright.application.paper.reuse import exact, naive, reuse, total
from edgewright.application.planning import planners
from edgewright.application.preemption_points import choices, with_points
from edgewright.application.response_time import timed_pieces
from edgewright.application.search import JointSearch
from edgewright.cli import main
from edgewright.emit.deployment.harness import TrialScript
from edgewright.emit.deployment.trial import LibraryTrial
from edgewright.errors import Infeasible, InputError
from edgewright.memory.joint.conflicts import JointProblem
from edgewright.memory.joint.layout import JointLayout, lay_out_jointly
from edgewright.memory.layout import ConflictGraph, conflicts, place_graph
from edgewright.platform.schema import parse_toml
from edgewright.program import faults
from edgewright.samples.builder import ModelBuilder
from tests.application.judge import Interleaving
from tests.helpers.emitting import emit

PIPELINED = "[[relation]]\nkind = 'pipelined'\nnetworks = ['a.1', 'a.2']"
TWO = '[[network]]\nname = "a"\nfile = "a.onnx"\n[[network]]\nname = "b"\nfile = "b.onnx"\n'
IN_PARTS = TWO.replace('"a.onnx"', '"a.onnx"\npartitions = ["x", "y"]')


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return samples.write_application("paper_application", tmp_path_factory.mktemp("paper"))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return samples.write_application("tiny_application", tmp_path_factory.mktemp("tiny"))


# The file.


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "network is missing; expected a table headed"),
        ("network = []", "network is empty"),
        ("[[network]]\nname = 1\nfile = 'x'", "network[0].name is 1; expected a name"),
        ("[[network]]\nname = 'a'\nfil = 'x'", 'network[0].fil is not a key here; did you mean "file"?'),
        (TWO.replace('"b"', '"a"'), 'network[1].name is "a", which is taken'),
        (TWO.replace('"b.onnx"', '"b.onnx"\nprefix = "a"'), 'network[1].prefix is "a", as in network[0]'),
        (TWO.replace('"b.onnx"', '"b.onnx"\nprefix = "app_Kernels"'), 'is "app_kernels", as a file of the application'),
        (IN_PARTS.replace('"b"', '"a_2"') + PIPELINED, 'network[1].prefix is "a_2", as in network[0]'),
        (
            '[[network]]\nname = "a_1"\nfile = "a.onnx"\n' + IN_PARTS + PIPELINED,
            'network[1].prefix gives a partition the C name "a_1", as in network[0]',
        ),
        (TWO + "".join(f"[[buffer]]\nname = '{n}'\nsize = 1\n" for n in ("Log", "log")), 'is "log", which is taken'),
        (TWO + "[[relation]]\nkind = 'next'\nnetworks = ['a', 'b']", "expected one of exclusive, parallel"),
        (TWO + "[[relation]]\nkind = 'parallel'\nnetworks = ['a', 'c']", 'names "c"; expected one of a, b'),
        (TWO + "[[relation]]\nkind = 'parallel'\nnetworks = ['a', 'a']", "names a network twice"),
        (TWO + "[[relation]]\nkind = 'pipelined'\nnetworks = ['a', 'b']", "for all partitions of one network"),
        (
            TWO + "".join(f"[[relation]]\nkind = '{k}'\nnetworks = ['a', 'b']\n" for k in ("parallel", "exclusive")),
            "makes a and b exclusive, and another relation parallel",
        ),
        (
            TWO + "".join(f"[[relation]]\nkind = 'after'\nnetworks = {n}\n" for n in (["a", "b"], ["b", "a"])),
            "closes a circle of after and same input through",
        ),
        (TWO + "[[buffer]]\nname = 'log'\nsize = '1K'\nalive = ['c']", 'buffer[0].alive names "c"'),
        (
            TWO + "[[buffer]]\nname = 'log'\nsize = '1K'\nalive = ['a']\nstate = true",
            "lets others overlay a state",
        ),
        ("keep = ['a']\n" + TWO, 'keep[0] is "a"; expected an end of a network, such as a.input'),
        (TWO.replace('"b.onnx"', '"b.onnx"\ndeadline = "1 s"'), "network[1].deadline has no period"),
        (
            TWO.replace('"b.onnx"', '"b.onnx"\nperiod = "1 s"\ndeadline = "2 s"'),
            "network[1].deadline is 2 s; expected at most the period, 1 s",
        ),
        ("[limits]\nram = 'much'\n" + TWO, "limits.ram"),
        ("[[network", "is not TOML"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_sentence(text: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_toml(text, "app.toml", ApplicationFile, "an application")
    assert str(refused.value).startswith("app.toml: ") and said in str(refused.value)
    assert "\n" not in str(refused.value).strip() or "TOML" in said


@pytest.mark.parametrize(
    ("partitions", "said"),
    [
        ('["l2"]', "leaves out 'flatten1'"),
        ('["l2..l3", "l3"]', "holds layer 'l3' twice"),
        ('["flatten1..l3", "l2"]', "is cyclic"),
        ('["l2", "l9"]', "names layers of 'cnn2' wrongly"),
    ],
)
def test_partitions_cover_a_network_once_and_in_order(paper: Path, tmp_path: Path, partitions: str, said: str) -> None:
    text = (
        paper.read_text().replace('["l2", "flatten1..l3"]', partitions).replace('file = "', f'file = "{paper.parent}/')
    )
    text = text.split("[[relation]]")[0]
    (tmp_path / "app.toml").write_text(text)
    with pytest.raises(InputError, match=said):
        load_application(tmp_path / "app.toml")


# Layouts over any conflict graph.


@st.composite
def graphs(draw: st.DrawFn, most: int = 6) -> ConflictGraph:
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=most))
    names = [f"b{n}" for n in range(len(sizes))]
    pairs = [(x, y) for n, x in enumerate(names) for y in names[:n]]
    conflicting = frozenset(pair for pair in pairs if draw(st.booleans()))
    return ConflictGraph(dict(zip(names, sizes, strict=True)), conflicting)


def lowest(graph: ConflictGraph) -> int:
    """The least peak by brute force: some order of first fit is optimal."""
    best = sum(graph.sizes.values())
    for order in permutations(graph.sizes):
        at: dict[str, int] = {}
        for x in order:
            taken = sorted((at[y], at[y] + graph.sizes[y]) for y in at if graph.meets(x, y))
            here = 0
            for low, high in taken:
                if here + graph.sizes[x] <= low:
                    break
                here = max(here, high)
            at[x] = here
        best = min(best, max(at[x] + graph.sizes[x] for x in at))
    return best


@settings(max_examples=40, deadline=None)
@given(graphs())
def test_the_least_peak_of_a_conflict_graph_is_that_of_brute_force(graph: ConflictGraph) -> None:
    found = place_graph(graph)
    assert not conflicts(graph.problem(), found)
    assert found.peak == lowest(graph)
    assert found.bound <= found.peak


@settings(max_examples=30, deadline=None)
@given(graphs(most=9))
def test_exact_needs_no_more_than_reuse_and_reuse_no_more_than_nothing(graph: ConflictGraph) -> None:
    edges = [PaperEdge(name, "n", 0, size, 0, 0) for name, size in graph.sizes.items()]
    meet = lambda x, y: graph.meets(x.name, y.name)  # noqa: E731
    buffers = reuse(edges, meet)
    assert exact(edges, meet).peak <= total(buffers) <= naive(edges)
    for buffer in buffers:
        assert not any(meet(x, y) for n, x in enumerate(buffer.edges) for y in buffer.edges[:n])


# The paper's example.


def test_the_figures_of_the_paper(paper: Path) -> None:
    app = load_application(paper)
    ours, least = paper_outcome(app), paper_outcome(app, is_exact=True)
    assert ours.paper == {"none_bytes": 51466, "reuse_bytes": 24586, "parts_bytes": 19712}  # M tables 6.1 to 6.3
    assert ours.phases == {"cnn1": ("l3", "l4", "l4.out")}
    assert least.paper == {"none_bytes": 51466, "reuse_bytes": 24576, "parts_bytes": 19456}
    assert least.optimal and least.peak_bytes == 19456


def test_more_layers_by_parts_need_less_memory_than_the_paper_takes(paper: Path) -> None:
    evaluation = Evaluation(paper_application(load_application(paper)))
    assert evaluation.point({"cnn1": frozenset(("l2", "l3", "l4", "l4.out"))}).memory == 16128


@pytest.mark.slow
def test_the_genetic_search_finds_the_same_point(paper: Path) -> None:
    pytest.importorskip("pymoo", reason="pymoo is not installed")
    points = list(_evolved(Evaluation(paper_application(load_application(paper)))))
    fitting = min((p for p in points if p.memory <= 20000), key=lambda p: (round(p.slowdown, 12), p.memory, p.chosen))
    assert fitting.memory == 19712


def test_sequential_partitions_as_printed_overlay_what_is_being_read(paper: Path, tmp_path: Path) -> None:
    """M Algorithm 8, lines 9 to 11: CNN1 cut after l2 into two partitions that run one after the other."""
    text = paper.read_text().split("[[network]]")[1].replace('file = "', f'file = "{paper.parent}/')
    (tmp_path / "app.toml").write_text(f'[[network]]{text}partitions = ["l2", "l3..l4"]\n')
    app = paper_application(load_application(tmp_path / "app.toml"))
    edges = app.edges({})
    assert total(reuse(edges, app.meet)) == 24576
    # As Algorithm 8 prints it, partitions that are not pipelined never meet, though one may feed the other.
    printed = reuse(edges, lambda x, y: (x.partition == y.partition or x.network != y.network) and app.meet(x, y))
    assert total(printed) == 19456
    clashes = [(x, y) for b in printed for n, x in enumerate(b.edges) for y in b.edges[:n] if app.meet(x, y)]
    assert {frozenset((x.name, y.name)) for x, y in clashes} == {
        frozenset(("cnn1:l2->l3", "cnn1:l3->l4")),
        frozenset(("cnn1:l2->l4", "cnn1:l4->l4.out")),
    }


def test_by_default_the_pipeline_alone_sets_the_peak_and_nothing_is_computed_twice(paper: Path) -> None:
    outcome = plan_application(load_application(paper))
    assert outcome.peak_bytes == outcome.bound_bytes == 9792
    assert outcome.setters == ("cnn2",) and outcome.networks["cnn2"].slowdown < 0.02
    assert all(one.macs == one.macs_plain for one in outcome.networks.values())
    frames = JointSearch(load_application(paper)).as_given
    assert frames.peak_bytes == frames.layout.bound_bytes == 15628
    assert frames.slowdowns["cnn2.1"] == frames.slowdowns["cnn2.2"] == 0


# Joint layouts and their judge.


def fastest(app: Application) -> JointLayout:
    """The layout of the fastest plans."""
    plans = {name: planner.fastest for name, planner in planners(app).items()}
    return lay_out_jointly(with_points(app, app.deployment.with_plans(plans), {}))


@pytest.fixture(scope="module")
def camera(tiny: Path) -> JointLayout:
    return fastest(load_application(tiny))


def test_every_kind_of_relation_holds_in_random_interleavings(camera: JointLayout) -> None:
    separate = sum(plan.peak_bytes for plan in camera.problem.plans.values())
    assert camera.bound_bytes <= camera.peak_bytes < separate
    for plan in camera.plans.values():
        assert not list(faults(plan))
    ran: set[str] = set()
    for seed in range(25):
        trial = Interleaving(camera, seed)
        assert list(trial.run(60)) == []
        ran |= {name for name, frames in trial.done.items() if frames}
    assert ran == set(camera.plans)


def test_what_is_handed_over_lies_in_the_same_bytes(camera: JointLayout) -> None:
    names = {buffer.name for buffer in camera.buffers}
    assert {"detect:input = classify:input", "detect:map = landmarks:input"} <= names
    at = {name: {b.name: b.offset for b in plan.buffers} for name, plan in camera.plans.items()}
    assert at["detect"]["input"] == at["classify"]["input"]
    assert at["detect"]["map"] == at["landmarks"]["input"]


def moved(layout: JointLayout, name: str, offset: int) -> JointLayout:
    """The layout with one buffer somewhere else, whatever lies there."""
    offsets = {**layout.placement.offsets, name: offset}
    peak = max(offsets[n] + size for n, size in layout.graph.sizes.items())
    return replace(layout, placement=replace(layout.placement, offsets=offsets, peak=max(peak, layout.placement.peak)))


PLANTED = [
    ("detect:second", "wake:first"),  # preempted with this in use
    ("detect:input = classify:input", "detect:map = landmarks:input"),  # one frame, read again later
    ("detect:map = landmarks:input", "gesture:first[1]"),  # waits while others run
    ("monitor:encode", "wake:first"),  # side by side
    ("gesture:first[0]", "gesture:first[1]"),  # two frames under way
    ("gesture:second[0]", "gesture.1:input"),
    ("log", "gesture:second[1]"),  # the firmware's own
    ("overlay", "classify:second"),
    ("wake:input", "gesture.1:input"),  # filled while others run
    ("classify:classes", "landmarks:points"),  # read later
]


@pytest.mark.parametrize(("one", "other"), PLANTED)
def test_the_judge_finds_planted_overlaps(camera: JointLayout, one: str, other: str) -> None:
    assert camera.graph.meets(one, other)
    wrong = moved(camera, one, camera.at(other))
    assert any(list(Interleaving(wrong, seed).run(80)) for seed in range(40))


def test_the_judge_finds_the_papers_fault_with_sequential_partitions(paper: Path, tmp_path: Path) -> None:
    """Buffers made before the cut and after it are taken to never meet, though one partition feeds the other."""
    text = paper.read_text().split("[[network]]")[1].replace('file = "', f'file = "{paper.parent}/')
    (tmp_path / "app.toml").write_text(f"[[network]]{text}plain = true\n")
    layout = fastest(load_application(tmp_path / "app.toml"))
    first = {buffer.name: buffer.uses[0].first for buffer in layout.buffers}
    conflicting = frozenset((x, y) for x, y in layout.graph.pairs if (first[x] < 1) == (first[y] < 1))
    printed = place_graph(replace(layout.graph, pairs=conflicting))
    assert printed.peak < layout.placement.peak
    wrong = replace(layout, placement=replace(printed, peak=layout.placement.peak))
    assert list(Interleaving(wrong, 0).run(20))
    assert not list(Interleaving(layout, 0).run(20))


# Budgets.


def test_a_budget_slows_down_only_who_sets_the_peak(paper: Path) -> None:
    search = JointSearch(load_application(paper))
    assert search.fastest.peak_bytes > 17000
    found = search.within(16000)
    assert found.peak_bytes <= 16000 and found.payers in (("cnn1",), ())
    assert found.slowdowns["cnn2.1"] == found.slowdowns["cnn2.2"] == 0
    with pytest.raises(Infeasible, match=r"needs 9,7\d\d B of RAM at least, which 'cnn2' sets, and 9,000 B are there"):
        search.within(9000)


# The verb.


def test_who_is_interrupted_is_no_smaller_than_the_budget_asks(tmp_path: Path) -> None:
    """Whole layers leave too little beside them for who interrupts; in parts that fit alone both do."""
    lines = ['target = "cortex-m4"']
    for name in ("ds_cnn_int8", "resnet8_int8"):
        (tmp_path / f"{name}.onnx").write_bytes(samples.build(name).SerializeToString())
        lines += ["[[network]]", f'name = "{name}"', f'file = "{name}.onnx"', "quantised_input = true"]
    lines += ["[[relation]]", 'kind = "preempts"', 'networks = ["ds_cnn_int8", "resnet8_int8"]']
    (tmp_path / "app.toml").write_text("\n".join(lines))
    found = JointSearch(load_application(tmp_path / "app.toml")).within(11840).layout
    plan = found.plans["resnet8_int8"]
    assert found.peak_bytes <= 11840 and plan.macs < 1.4 * plan.macs_plain


def asked(*args: object) -> dict[str, object]:
    done = CliRunner().invoke(main, ["app", *map(str, args), "--json"])
    assert done.exit_code == 0, done.output
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_the_verb_prints_figures_for_machines(paper: Path) -> None:
    found = asked(paper)
    assert found["peak_bytes"] == 9792 and found["optimal"] is True
    assert found["separate_bytes"] == 9764 + 9792
    assert asked(paper, "--method", "paper")["parts_bytes"] == 19712
    front = asked(paper, "--pareto")["front"]
    assert isinstance(front, list) and len(front) > 1


def test_the_verb_refuses_in_one_sentence(paper: Path, tmp_path: Path) -> None:
    for args, said in (
        ([str(paper), "--ram", "9000"], "does not fit"),
        ([str(paper), "--ram", "13000", "--method", "paper"], "does not fit: layers by parts"),
        ([str(tmp_path / "none.toml")], "cannot be read"),
        ([str(paper), "--pareto", "--ram", "24K"], "contradict"),
    ):
        done = CliRunner().invoke(main, ["app", *args])
        assert done.exit_code != 0 and said in done.output, done.output
    (tmp_path / "app.toml").write_text(
        f'[limits]\nflash = "1K"\n[[network]]\nname = "a"\nfile = "{paper.parent / "cnn1.onnx"}"\n'
    )
    done = CliRunner().invoke(main, ["app", str(tmp_path / "app.toml")])
    assert done.exit_code == 1 and "of flash, and 1,024 B are there" in done.output


# One C library.


def test_one_library_runs_every_relation(tiny: Path, camera: JointLayout) -> None:
    library = emit_application(load_application(tiny), camera)
    for plan in library.deployment.plans.values():
        assert not list(faults(plan))
    assert not list(Interleaving(camera, 3, library.deployment).run(60))  # scratch of kernels included
    source, detect = str(library.files["app.c"]), str(library.files["detect.c"])
    assert source.count("static uint8_t arena[") == 1
    assert "memcpy" not in str(library.files["landmarks.c"]).split("landmarks_run_in")[1].split("APP_PROBE")[0]
    assert "(void)out_map;" in detect
    result = LibraryTrial(library).run(TrialScript(60))
    assert result.wrong == () and result.nested and result.refused and result.runs > 50


@pytest.mark.slow
def test_a_library_that_lets_anybody_start_is_found_out(tiny: Path, camera: JointLayout) -> None:
    library = emit_application(load_application(tiny), camera)
    text = str(library.files["app.c"])
    careless = text.replace("status = frames(which);", "status = frames(which) == APP_EMPTY ? APP_EMPTY : APP_OK;")
    careless = careless.replace("if ((running & excludes[which]) ||", "if (0 ||")
    careless = careless.replace("APP_BUSY;\n    else if (reads", "APP_OK;\n    else if (reads")
    assert careless != text
    trial = LibraryTrial(replace(library, files={**library.files, "app.c": careless}))
    assert any(trial.run(TrialScript(60, seed=seed)).wrong for seed in range(5))


def test_two_heads_on_one_trunk_store_it_once(tmp_path: Path) -> None:
    for name, classes in (("first", 3), ("second", 5)):
        net = ModelBuilder("trunk")  # weights are seeded by this name
        x = net.relu(net.conv(net.input(1, 3, 12, 12), 16, 3, 1, 1, name="trunk"))
        x = net.relu(net.conv(x, 32, 3, 2, 1, name="trunk2"))
        (tmp_path / f"{name}.onnx").write_bytes(net.model(net.classifier(x, classes, name="head")).SerializeToString())
    text = "".join(f'[[network]]\nname = "{n}"\nfile = "{n}.onnx"\n' for n in ("first", "second"))
    text = f'target = "cortex-m4"\n{text}'
    (tmp_path / "app.toml").write_text(text)
    search = JointSearch(load_application(tmp_path / "app.toml"))
    library = emit_application(search.application, search.least.layout)
    alone = {n: emit(p.least, search.application.target).weight_bytes for n, p in search.planners.items()}
    head = 32 * 5 * 4 + 5 * 4
    assert library.weight_bytes <= 1.02 * (alone["first"] + head) + 64
    assert LibraryTrial(library).run(TrialScript(4)).wrong == ()


def test_the_verb_compiles(paper: Path, tmp_path: Path) -> None:
    found = asked(paper, "--compile", "-o", tmp_path / "out")
    assert found["verified"] is True and isinstance(found["runs"], int) and found["runs"] > 50
    assert (tmp_path / "out" / "src" / "app.c").exists() and (tmp_path / "out" / "Makefile").exists()
    done = CliRunner().invoke(main, ["app", str(paper), "-o", str(tmp_path / "out")])
    assert done.exit_code == 1 and "is a directory" in done.output


# Where networks may be interrupted.


def preempting(folder: Path, more: str) -> Path:
    """wake interrupts detect, on a board."""
    networks = "".join(f'[[network]]\nname = "{n}"\nfile = "{n}.onnx"\n' for n in ("wake", "detect"))
    relation = f'[[relation]]\nkind = "preempts"\nnetworks = ["wake", "detect"]\n{more}\n'
    (folder / "preempts.toml").write_text(f'board = "nucleo-f446re"\n{networks}{relation}')
    return folder / "preempts.toml"


def test_rows_are_points_and_fewer_of_them_take_less_ram(tiny: Path) -> None:
    app = load_application(preempting(tiny.parent, 'points = "rows"'))
    found = JointSearch(app).least.layout.problem.deployment
    plan, every = found.plans["detect"], found.points_of("detect")
    assert every.rows and every.after
    pieces = timed_pieces(app, "detect", plan)
    chosen = choices(plan, PreemptionPoints.ROWS, pieces)
    waits, sets = [*chosen], [*chosen.values()]
    assert waits == sorted(waits) and waits[0] == max(pieces.between(every)) and sets[0].rows <= every.rows
    for more, fewer in pairwise(sets):
        assert fewer.rows <= more.rows and fewer.after <= more.after and fewer != more
    peaks = [lay_out_jointly(with_points(app, found, {"detect": points})) for points in sets]
    for layout in peaks:
        for seed in range(4):
            assert not list(Interleaving(layout, seed).run(40))
    assert peaks[-1].peak_bytes < peaks[0].peak_bytes
    careless = replace(peaks[-1], problem=JointProblem(found))
    assert any(list(Interleaving(careless, seed).run(60)) for seed in range(20))


def test_a_limit_on_waiting_chooses_points(tiny: Path) -> None:
    app = load_application(preempting(tiny.parent, 'points = "rows"\nwait = "1 ms"'))
    short = JointSearch(app).least.layout.problem.deployment
    pieces = timed_pieces(app, "detect", short.plans["detect"])
    assert max(pieces.between(short.points_of("detect"))) <= 1e-3
    never = load_application(preempting(tiny.parent, 'points = "stages"\nwait = "1 us"'))
    with pytest.raises(Infeasible, match=r"'wake' may wait for 'detect' for .*, and 1\.?0* us are allowed; .*\"rows\""):
        JointSearch(never).least  # noqa: B018
    trades = JointSearch(load_application(preempting(tiny.parent, ""))).blocking_front()
    assert trades[0].where == "anywhere" and trades[0].wait == 0
    for more, less in pairwise(trades):
        assert less.peak_bytes < more.peak_bytes and less.wait > more.wait


@pytest.mark.slow
def test_a_second_head_on_the_trunk_of_vww_costs_little_more_than_itself(corpus_folder: Path, tmp_path: Path) -> None:
    """Two networks of MLPerf's visual wake words that differ in the last layer alone."""
    model = corpus_folder / "models" / "mlperf_vww96_int8.tflite"
    entries = "".join(f'[[network]]\nname = "{n}"\nfile = "{model}"\n' for n in ("first", "second"))
    (tmp_path / "app.toml").write_text(f'target = "cortex-m4"\n{entries}')
    app = load_application(tmp_path / "app.toml")
    network = app.networks["second"]
    head = next(layer for layer in reversed(network.layers) if len(layer.inputs) == 3)
    weight, bias = head.inputs[1:]
    changed = {weight: network.constants[weight][::-1].copy(), bias: network.constants[bias][::-1].copy()}
    other = replace(network, constants={**network.constants, **changed})
    first, second = app.deployment.parts
    draft = replace(app.deployment, parts=(first, replace(second, network=other)))
    search = JointSearch(replace(app, deployment=replace(draft, networks=(first.network, other))))
    library = emit_application(search.application, search.least.layout)
    alone = emit(search.planners["first"].least, search.application.target).weight_bytes
    size = sum(network.constants[name].nbytes for name in (weight, bias))
    assert alone < library.weight_bytes <= 1.02 * (alone + size)
    assert search.least.peak_bytes == search.planners["first"].least.peak_bytes  # one of them at a time
    assert LibraryTrial(library).run(TrialScript(4)).wrong == ()


def test_a_cascade_and_a_shared_input_are_handed_over_without_a_copy(tmp_path: Path) -> None:
    """RAM is at most that of the larger network and what waits: the crop, or the frame that both read."""
    samples.write_application("tiny_application", tmp_path)
    for kind, second, waits in (
        ("after", "landmarks", 4 * 8 * 8 * 4),
        ("same input", "classify", 3 * 16 * 16 * 4),
    ):
        entries = "".join(f'[[network]]\nname = "{n}"\nfile = "{n}.onnx"\n' for n in ("detect", second))
        relation = f'[[relation]]\nkind = "{kind}"\nnetworks = ["detect", "{second}"]\n'
        (tmp_path / "app.toml").write_text(entries)
        apart = JointSearch(load_application(tmp_path / "app.toml")).least
        (tmp_path / "app.toml").write_text(entries + relation)
        found = JointSearch(load_application(tmp_path / "app.toml")).least
        assert found.peak_bytes <= apart.peak_bytes + waits
        files = emit_application(load_application(tmp_path / "app.toml"), found.layout).files
        assert "memcpy" not in str(files["app.c"])
        body = str(files[f"{second}.c"]).split(f"{second}_run_in")[1].split("APP_PROBE")[0]
        assert "memcpy" not in body and "(void)in_input;" in body
