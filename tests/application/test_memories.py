"""Applications over several memories: what goes where, the judge in all arenas, the sections of the linked firmware."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from edgewright import samples
from edgewright.application.draft import load_application
from edgewright.application.host_run import run_application
from edgewright.application.library import emit_application
from edgewright.application.outcome import AppOutcome, plan_application
from edgewright.application.search import JointSearch
from edgewright.cli import main
from edgewright.cli.app import buffers_table, summary_table
from edgewright.emit.deployment.trial import LibraryTrial
from edgewright.errors import EdgewrightError, Infeasible
from edgewright.memory.joint.layout import JointLayout
from edgewright.memory.joint.memories import in_memories, traffic_of
from edgewright.memory.layout import ConflictGraph, place_graph_in_memories
from edgewright.program import faults
from edgewright.report.application_page import application_page
from tests.application.cases import random_application
from tests.application.judge import Interleaving
from tests.helpers.tools import on_board

MEMORIES = '[[memory]]\nname = "tcm"\nsize = {}\n[[memory]]\nname = "SRAM"\nsize = {}\n'


def with_memories(folder: Path, tcm: int, sram: int, head: str = "") -> Path:
    """The sample's application without its limit, in two memories."""
    text = samples.write_application("tiny_application", folder).read_text()
    lines = [line for line in text.splitlines() if not line.startswith(("[limits]", "ram =", "board =", "target ="))]
    path = folder / "two.toml"
    path.write_text(head + "\n".join(lines) + "\n" + MEMORIES.format(tcm, sram))
    return path


@pytest.fixture(scope="module")
def spread(tmp_path_factory: pytest.TempPathFactory) -> AppOutcome:
    folder = tmp_path_factory.mktemp("two")
    peak = JointSearch(load_application(with_memories(folder, 10**6, 10**6))).least.peak_bytes
    return plan_application(load_application(with_memories(folder, peak * 2 // 5, peak * 4 // 5)))


def layout_of(outcome: AppOutcome) -> JointLayout:
    assert outcome.joint is not None
    return outcome.joint.layout


def test_what_one_memory_does_not_hold_is_spread_with_the_busiest_in_the_fastest(spread: AppOutcome) -> None:
    layout = layout_of(spread)
    sizes = spread.application.memories
    assert list(layout.arenas) == ["tcm", "sram"]
    assert all(0 < size <= sizes[name] for name, size in layout.arenas.items())
    assert spread.peak_bytes == sum(layout.arenas.values()) >= spread.bound_bytes
    assert all(one.macs == one.macs_plain for one in spread.networks.values())
    for plan in layout.plans.values():  # rows of an output that leave one by one are for the judge below
        assert any(map(plan.is_by_rows, plan.network.outputs)) or not list(faults(plan))
    for seed in range(12):
        assert list(Interleaving(layout, seed).run(60)) == []
    traffic = traffic_of(layout)
    busiest = max(layout.graph.sizes, key=lambda name: traffic[name] / layout.graph.sizes[name])
    assert layout.home(busiest) == "tcm"
    found = spread.to_dict()
    assert found["arenas"] == dict(layout.arenas)
    assert {b["memory"] for b in found["buffers"]} == {"tcm", "sram"}  # type: ignore[attr-defined]


def test_an_overlap_in_the_second_memory_is_found(spread: AppOutcome) -> None:
    layout = layout_of(spread)
    pairs = [
        (x, y)
        for x, y in sorted(layout.graph.pairs)
        if layout.home(x) == layout.home(y) == "sram" and not {(x, y), (y, x)} & layout.graph.gaps.keys()
    ]
    placement = replace(layout.placement, offsets={**layout.placement.offsets, pairs[0][0]: layout.at(pairs[0][1])})
    wrong = replace(layout, placement=placement)
    assert any(list(Interleaving(wrong, order).run(80)) for order in range(40)), pairs[0]


def test_the_first_memory_that_holds_everything_takes_it_whole(tmp_path: Path) -> None:
    outcome = plan_application(load_application(with_memories(tmp_path, 64, 10**6)), steps=0)
    assert list(layout_of(outcome).arenas) == ["sram"] and outcome.ram == 10**6


@pytest.mark.parametrize("seed", [1, 4, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(5, 35))])
def test_random_applications_over_two_memories(seed: int, tmp_path: Path) -> None:
    try:
        whole = JointSearch(random_application(seed, tmp_path)).fastest.layout
        two = {"a": whole.peak_bytes * 3 // 5, "b": whole.peak_bytes * 3 // 5}
        layout = in_memories(whole, two)
    except EdgewrightError as error:
        pytest.skip(f"refused: {error}")
    assert all(size <= two[name] for name, size in layout.arenas.items())
    for plan in layout.plans.values():
        assert not list(faults(plan))
    for order in range(3):
        assert list(Interleaving(layout, order).run(50)) == []


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_the_assignment_is_the_cheapest_there_is(data: st.DataObject) -> None:
    names = "abcdef"[: data.draw(st.integers(2, 6))]
    sizes = {name: data.draw(st.integers(1, 9)) for name in names}
    pairs = [(x, y) for n, x in enumerate(names) for y in names[:n]]
    conflicting = frozenset(pair for pair in pairs if data.draw(st.booleans()))
    traffic = {name: data.draw(st.integers(0, 9)) for name in names}
    rooms = (("fast", data.draw(st.integers(1, 16))), ("slow", data.draw(st.integers(1, 16))))
    graph = ConflictGraph(sizes, conflicting)
    best = min(cheapest(graph, rooms, traffic), default=None)
    try:
        found = place_graph_in_memories(graph, rooms, traffic)
    except Infeasible:
        assert best is None
        return
    assert found.optimal and found.cost == best
    for name, room in rooms:
        assert found.placements[name].peak <= room


def cheapest(graph: ConflictGraph, rooms: tuple[tuple[str, int], ...], traffic: dict[str, int]) -> list[int]:
    """The cost of every assignment that has addresses, by trying all of them."""
    costs = []
    for ranks in product((0, 1), repeat=len(graph.sizes)):
        rank = dict(zip(graph.sizes, ranks, strict=True))
        if all(holds([n for n in graph.sizes if rank[n] == m], graph, room) for m, (_, room) in enumerate(rooms)):
            costs.append(sum(traffic[name] * r for name, r in rank.items()))
    return costs


def holds(names: list[str], graph: ConflictGraph, room: int, at: dict[str, int] | None = None) -> bool:
    at = at or {}
    if not names:
        return True
    name, rest = names[0], names[1:]
    return any(
        all(
            not graph.meets(name, other) or here + graph.sizes[name] <= b or b + graph.sizes[other] <= here
            for other, b in at.items()
        )
        and holds(rest, graph, room, {**at, name: here})
        for here in range(room - graph.sizes[name] + 1)
    )


@pytest.fixture
def pair(tmp_path: Path) -> AppOutcome:
    """Two networks, of which one may interrupt the other, over two memories of a Cortex-M4."""
    samples.write_application("tiny_application", tmp_path)
    entries = [f'[[network]]\nname = "{n}"\nfile = "{n}.onnx"\nplain = true\n' for n in ("wake", "detect")]
    relation = '[[relation]]\nkind = "preempts"\nnetworks = ["wake", "detect"]\n'
    path = tmp_path / "pair.toml"
    path.write_text('target = "cortex-m4"\n' + "".join(entries) + relation)
    peak = JointSearch(load_application(path)).least.peak_bytes
    path.write_text(path.read_text() + MEMORIES.format(peak // 2, peak * 3 // 4))
    return plan_application(load_application(path))


def test_the_library_has_an_arena_for_each_memory_and_is_right_here(pair: AppOutcome) -> None:
    library = emit_application(pair.application, layout_of(pair))
    source = str(library.files["app.c"])
    for section in ("tcm", "sram"):
        assert f"APP_SECTION({section}) APP_ALIGNED(16) static uint8_t arena_{section}[" in source
    found = LibraryTrial(library).run()
    assert found.wrong == () and found.nested


@pytest.mark.slow
def test_it_runs_here_by_the_runtime_too(pair: AppOutcome) -> None:
    assert all(one.statistics.frames_per_s > 0 for one in run_application(pair.application, layout_of(pair), 3))


@on_board
def test_the_sections_are_as_large_as_planned_on_the_board(pair: AppOutcome) -> None:
    library = emit_application(pair.application, layout_of(pair))
    found = LibraryTrial(library).run_on_board()
    assert found.result.wrong == () and dict(found.arenas_linked) == dict(library.layout.arenas)
    assert found.ram_linked == sum(library.arenas.values())


def test_tables_and_page_show_each_memory(spread: AppOutcome) -> None:
    assert spread.joint is not None
    console = Console(width=140)
    with console.capture() as capture:
        console.print(summary_table(spread), buffers_table(spread.joint))
    shown = capture.get()
    assert "in tcm" in shown and "in sram" in shown and "memory" in shown
    page = application_page(spread)
    assert page.count('class="memory-map"') == 2 and "<h3>sram</h3>" in page


@pytest.mark.slow
def test_the_verb_tells_the_memory_of_every_buffer(spread: AppOutcome, tmp_path: Path) -> None:
    sizes = spread.application.memories
    path = with_memories(tmp_path, sizes["tcm"], sizes["sram"])
    found = CliRunner().invoke(main, ["app", str(path), "--json"])
    assert json.loads(found.output)["arenas"] == dict(layout_of(spread).arenas)


def test_memories_that_are_wrong_or_too_small_are_refused(tmp_path: Path) -> None:
    path = with_memories(tmp_path, 100, 120)
    few = tmp_path / "few.toml"
    entries = [f'[[network]]\nname = "{n}"\nfile = "{n}.onnx"\n' for n in ("wake", "monitor")]
    few.write_text("".join(entries) + MEMORIES.format(100, 120))
    with pytest.raises(Infeasible, match=r"needs .* at least"):
        plan_application(load_application(few))
    path.write_text(path.read_text().replace("SRAM", "TCM"))
    with pytest.raises(EdgewrightError, match=r"memory\[1\]\.name.*unique"):
        load_application(path)
    path = with_memories(tmp_path, 100, 120)
    path.write_text(path.read_text() + '[limits]\nram = "8K"\n')
    with pytest.raises(EdgewrightError, match=r"limits\.ram.*one of them"):
        load_application(path)
