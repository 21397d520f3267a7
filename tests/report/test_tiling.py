"""Graphs, feature maps and fronts: what they show is what the plan executes, and nothing of a model can run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewright.kernels.cost.estimate import Estimate
from edgewright.kernels.cost.model import FitError
from edgewright.kernels.cost.run_time import RunTime
from edgewright.memory import plan as make_plan
from edgewright.network import Builder, DType, Network, Quant, Region
from edgewright.network.operators import Binary, BinaryKind, Clamp, Concat, Conv2d, Dense, Reduce, Reshape
from edgewright.program import Buffer, FusionSchedule, Plan, Program, Split, Stage, View
from edgewright.program.techniques import Technique, layer_techniques, technique, techniques
from edgewright.report import front_page, memory_map_svg, network_graph_svg, plan_page
from edgewright.report.frames import animate, image, part
from edgewright.report.front_page import limits, overhead
from edgewright.report.graph_layout import homes, node_name, place, wiring
from edgewright.report.memory_map import side_by_side
from edgewright.report.occupancy import Occupancy, layer_work
from edgewright.report.tiles_view import fusion_group_views
from tests.report.test_report import EVIL, SVG, Page, chain_plan, tiny_plan


def conv(b: Builder, x: str, channels: int, depth: int, name: str, size: int = 3) -> str:
    kernel = b.constant(f"{name}:w", np.ones((channels, size, size, depth), np.int8), Quant.of(0.5, 0))
    pad = size // 2
    return b.layer(Conv2d(pads=(pad,) * 4), [x, kernel], name)


@cache
def network(name: str = "stretchy") -> Network:
    """a → b → c → sum (with a) → d → mean → flat (free) → logits, 8×8 pixels of 4 channels, int8."""
    b = Builder(name)
    x = b.input("image", (1, 8, 8, 4), DType.INT8, Quant.of(0.5, 0))
    first = conv(b, x, 4, 4, "a")
    x = conv(b, conv(b, first, 4, 4, "b"), 4, 4, "c")
    x = b.layer(Binary(BinaryKind.ADD), [x, first], "sum")
    x = conv(b, x, 4, 4, "d", size=1)
    x = b.layer(Reduce((1, 2), keep=True), [x], "mean")
    x = b.layer(Reshape((1, 4)), [x], "flat")
    matrix = b.constant("matrix", np.zeros((10, 4), np.int8), Quant.of(0.5, 0))
    return b.build([b.layer(Dense(), [x, matrix], "logits")])


def by_hand(net: Network, *stages: Stage, views: dict[str, View] | None = None) -> Plan:
    """These stages, every tensor in a buffer of its own but for the views given, whose buffers are as large as said."""
    names = [name for name in net.tensors if name not in net.constants and name not in (views or {})]
    dense = {name: View(name, 0, net.tensors[name].strides) for name in names}
    placed = {**dense, **(views or {})}
    sizes = {name: net.tensors[name].bytes for name in names} | {
        name: _bytes(net, name, view) for name, view in (views or {}).items()
    }
    ends = np.cumsum([0, *sizes.values()])
    last = max(0, len(stages) - 1)
    buffers = tuple(Buffer(name, size, int(at), 0, last) for (name, size), at in zip(sizes.items(), ends, strict=False))
    return Plan(
        Program(net, stages, ("flat",) if "flat" in net.by_name else ()),
        buffers,
        placed,
        4,
        int(ends[-1]),
        int(ends[-1]),
        0,
        net.total_macs,
        "by hand",
    )


def _bytes(net: Network, name: str, view: View) -> int:
    """Of a window of rows or a tile of the strides of `view`: what the strides of its first axis span."""
    return view.strides[0]


def kept_view(name: str, shape: tuple[int, int, int], rolls: bool = False, tiled: tuple[int, ...] = ()) -> View:
    height, width, depth = shape
    strides = (height * width * depth, width * depth, depth, 1)
    return View(name, 0, strides, (1, height) if rolls else None, tiled)


def streamed() -> Plan:
    """a, b and c row by row; three rows are kept of a, and of b."""
    net = network()
    rest = [Stage.whole(name) for name in ("sum", "d", "mean", "logits")]
    views = {"b": kept_view("b", (3, 8, 4), rolls=True)}
    return by_hand(net, Stage("a .. c", FusionSchedule(("a", "b", "c"), streamed=True)), *rest, views=views)


def tiled(rows: int = 2, columns: int = 1) -> Plan:
    """b, c and sum tile by tile: `rows` tiles down, `columns` across."""
    net = network()
    ends = lambda n: tuple(8 * (i + 1) // n for i in range(n))  # noqa: E731
    axes = (1,) if columns == 1 else (1, 2)
    splits = tuple(Split(axis, ends(n)) for axis, n in zip(axes, (rows, columns), strict=False))
    high, wide = min(8, 8 // rows + 2), min(8, 8 // columns + 2)
    views = {name: kept_view(name, (high, wide, 4), tiled=axes) for name in "bc"}
    stages = [Stage.whole(name) for name in ("a", "d", "mean", "logits")]
    tiles = Stage("b .. sum", FusionSchedule(("b", "c", "sum"), splits))
    return by_hand(net, stages[0], tiles, *stages[1:], views=views)


def striped() -> Plan:
    """b, c and sum row by row in two stripes of columns."""
    net = network()
    stages = [Stage.whole(name) for name in ("a", "d", "mean", "logits")]
    views = {"b": kept_view("b", (3, 6, 4), True, (2,)), "c": kept_view("c", (1, 5, 4), True, (2,))}
    stripes = Stage("b .. sum", FusionSchedule(("b", "c", "sum"), (Split(2, (4, 8)),), streamed=True))
    return by_hand(net, stages[0], stripes, *stages[1:], views=views)


def summed() -> Plan:
    """b by channels, each of which c adds to its running sums."""
    net = network()
    stages = [Stage.whole(name) for name in ("a", "sum", "d", "mean", "logits")]
    views = {"b": kept_view("b", (8, 8, 2), tiled=(3,))}
    tiles = Stage("b .. c", FusionSchedule(("b", "c"), (Split(-1, (2, 4)),)))
    return by_hand(net, stages[0], tiles, *stages[1:], views=views)


PLANS = {
    "streamed": streamed,
    "tiled": tiled,
    "2d": lambda: tiled(2, 2),
    "striped": striped,
    "summed": summed,
    "whole": lambda: by_hand(network(), *(Stage.whole(n) for n in network().by_name if n != "flat")),
}


@pytest.mark.parametrize(
    ("name", "stage", "kind"),
    [
        ("streamed", "a .. c", Technique.ROWS),
        ("tiled", "b .. sum", Technique.FFMT),
        ("2d", "b .. sum", Technique.FFMT),
        ("striped", "b .. sum", Technique.STRIPES),
        ("summed", "b .. c", Technique.FDT),
        ("whole", "b", Technique.WHOLE),
    ],
)
def test_techniques_are_read_off_the_schedule(name: str, stage: str, kind: Technique) -> None:
    plan = PLANS[name]()
    assert techniques(plan)[stage] is kind
    assert list(techniques(plan)) == list(plan.order)
    assert layer_techniques(plan)["flat"] is Technique.FREE
    assert layer_techniques(plan)["b"] is kind


def test_in_place_is_told_from_whole() -> None:
    plan = tiny_plan()
    # conv starts 16 B into the image, swish lies on conv; logits lies apart from all it reads.
    assert [*techniques(plan).values()] == [Technique.IN_PLACE, Technique.IN_PLACE, Technique.WHOLE]
    assert technique(plan, Stage("conv", FusionSchedule(("conv",), streamed=True))) is Technique.ROWS


def test_parts_of_one_buffer_are_in_place_only_at_the_same_bytes() -> None:
    b = Builder("halves")
    x = b.input("x", (1, 2, 2, 2), DType.INT8)
    y = b.layer(Clamp(0.0), [x], "y")
    net = b.build([b.layer(Concat(3), [x, y], "z")])
    strides = (16, 8, 4, 1)
    views = {"x": View("z", 0, strides), "y": View("z", 2, strides), "z": View("z", 0, strides)}
    program = replace(Program(net, tuple(map(Stage.whole, ["y"]))), free=("z",))
    plan = Plan(program, (Buffer("z", 16, 0, 0, 0),), views, 4, 16, 16, 0, 0, "by hand")
    assert techniques(plan) == {"y": Technique.WHOLE}
    assert techniques(replace(plan, views={**views, "y": views["x"]})) == {"y": Technique.IN_PLACE}


@pytest.mark.parametrize("name", PLANS)
def test_work_adds_up_to_the_macs_of_the_plan(name: str) -> None:
    plan = PLANS[name]()
    work = layer_work(plan)
    assert sum(mine.macs for mine in work.values()) == plan.macs
    plain = {layer.name: plan.network.macs(layer) for layer in plan.network.layers}
    for layer, mine in work.items():
        if plain[layer]:
            assert mine.again == pytest.approx(mine.macs / plain[layer] - 1)
    again = {layer for layer, mine in work.items() if mine.again}
    # Halo along rows or columns is computed again; rows of a stream and channels never are.
    assert again == ({"b"} if name in ("tiled", "2d", "striped") else set())


def titles(svg: str) -> dict[str, str]:
    """What nodes and frames of a graph say, by their first line."""
    found = [title.text or "" for title in ElementTree.fromstring(svg).iter(f"{SVG}title")]
    return {text.split("\n")[0]: text for text in found}


def test_graph_says_what_each_layer_costs() -> None:
    told = titles(network_graph_svg(tiled()))
    # Two tiles of four rows; of b each needs one row beyond, since c reads three.
    assert told["b"].split("\n")[2:] == [
        "int8 1×8×8×4, 256 B",
        "stage 1, FFMT tiles",
        f"{10 * 8 * 4 * 36:,} MACs",
        "25.0 % computed again",
    ]
    assert told["c"].endswith("nothing computed twice")
    assert told["flat"].endswith("costs nothing: its output lies where its inputs do")
    assert told["image"] == "image\ninput int8 1×8×8×4, 256 B"
    assert "stage 1: b .. sum" in told
    svg = network_graph_svg(tiled())
    assert svg.count(">+25 %<") == 1
    assert "1 · FFMT tiles · 3 layers" in svg
    assert "FFMT tiles (3)" in svg
    assert "FFMT" not in network_graph_svg(PLANS["whole"]())


@pytest.mark.parametrize("name", PLANS)
def test_graph_has_every_layer_and_edge_once(name: str) -> None:
    plan = PLANS[name]()
    root = ElementTree.fromstring(network_graph_svg(plan))
    kinds = [group.get("class") or "" for group in root.iter(f"{SVG}g")]
    nodes = [kind for kind in kinds if kind.split()[0] == "node"]
    assert len(nodes) == len(plan.network.layers) + 1
    edges = [path for path in root.iter(f"{SVG}path") if (path.get("class") or "").startswith("edge")]
    assert len(edges) == len(list(wiring(plan.network))) == 9
    skips = [path for path in edges if path.get("class") == "edge skip"]
    assert len(skips) == 1  # a → sum


def random_graph(choices: list[tuple[int, int]]) -> Network:
    """Layers of which each reads one or two of those before it."""
    b = Builder("random")
    tensors = [b.input("x", (1, 2, 2, 1), DType.INT8)]
    for i, (first, second) in enumerate(choices):
        inputs = [tensors[first % len(tensors)], tensors[second % len(tensors)]]
        tensors.append(b.layer(Binary(BinaryKind.ADD), inputs, f"l{i}"))
    read = {name for layer in b.layers for name in layer.inputs}
    return b.build([name for name in tensors[1:] if name not in read])


@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)), min_size=1, max_size=60),
    st.lists(st.integers(0, 60), max_size=8),
    st.integers(300, 1300),
)
def test_nodes_never_overlap_and_edges_point_down(choices: list[tuple[int, int]], cuts: list[int], width: int) -> None:
    """Any graph, any layers of the order joined to stages, any width."""
    net = random_graph(choices)
    names = [layer.name for layer in net.layers]
    marks = sorted({0, len(names), *(cut for cut in cuts if cut < len(names))})
    stages = [Stage(names[a], FusionSchedule(tuple(names[a:b]))) for a, b in pairwise(marks)]
    plan = by_hand(net, *stages)
    layout = place(plan, width)
    assert set(layout.nodes) == {node_name("x"), *names}
    for a, b in combinations(layout.nodes.values(), 2):
        assert a.right <= b.x or b.right <= a.x or a.bottom <= b.y or b.bottom <= a.y
    for source, target in wiring(net):
        a, b = layout.nodes[source], layout.nodes[target]
        assert (a.column, a.bottom) < (b.column, b.y)
    for name, box in layout.nodes.items():
        assert 0 <= box.x <= box.right <= layout.width
        assert 0 <= box.y <= box.bottom <= layout.height
        framed = [f for f in layout.frames if f.stage == homes(plan).get(name) and f.box.column == box.column]
        for frame in framed:
            assert frame.box.x < box.x and box.right < frame.box.right
            assert frame.box.y < box.y and box.bottom < frame.box.bottom
    ElementTree.fromstring(network_graph_svg(plan, width=width))


@pytest.mark.parametrize("layers", [1, 30, 120])
def test_long_networks_wrap_into_columns(layers: int) -> None:
    layout = place(chain_plan(layers), 1160)
    assert layout.width <= 1160
    assert layout.height < 1300
    assert len(layout.columns) == {1: 1, 30: 2, 120: 5}[layers]


def test_a_free_layer_stands_with_the_stage_it_lies_inside_of() -> None:
    net = network()
    both = Stage("mean .. logits", FusionSchedule(("mean", "logits")))
    rest = [Stage.whole(name) for name in ("a", "b", "c", "sum", "d")]
    assert homes(by_hand(net, *rest, both))["flat"] == 5
    assert "flat" not in homes(PLANS["whole"]())


def test_film_of_a_stream_shows_windows() -> None:
    plan = streamed()
    animation = animate(plan, plan.program.stages[0])
    maps = {item.tensor: item for item in animation.maps}
    assert list(maps) == ["image", "a", "b", "c"]
    assert len(animation.captions) == 8
    assert animation.captions[3] == "row 3 of 8"
    fourth = {name: item.snapshots[3] for name, item in maps.items()}
    # For row 3 of c, rows up to 4 of b are there and three of them kept; a, which leaves, is there up to row 5.
    assert fourth["c"].now.rows == (3, 4)
    assert (fourth["b"].kept.rows, fourth["b"].now.rows) == ((2, 5), (4, 5))
    assert fourth["a"].kept.rows == (0, 6)
    # The image is read from row 4 to 6, and of it rows from 5 on are still needed.
    assert fourth["image"].now.rows == (4, 7)
    assert fourth["image"].kept.rows == (5, 8)


def test_film_of_tiles_shows_the_halo() -> None:
    plan = tiled(2, 2)
    animation = animate(plan, plan.program.stages[1])
    maps = {item.tensor: item.snapshots for item in animation.maps}
    assert animation.captions[3] == "rows 4–7 of 8, columns 4–7 of 8"
    b = maps["b"]
    assert [(s.now.rows, s.now.columns) for s in b] == [
        ((0, 5), (0, 5)),
        ((0, 5), (3, 8)),
        ((3, 8), (0, 5)),
        ((3, 8), (3, 8)),
    ]
    assert [(s.fresh.rows, s.fresh.columns) for s in b] == [
        ((0, 5), (0, 5)),
        ((0, 5), (5, 8)),
        ((5, 8), (0, 5)),
        ((5, 8), (5, 8)),
    ]
    assert all(s.kept == s.now for s in b)
    assert maps["sum"][2].kept.rows == (0, 8)  # the output stays


def test_film_of_channels_lights_them() -> None:
    plan = summed()
    maps = {item.tensor: item for item in animate(plan, plan.program.stages[1]).maps}
    assert [s.now.channels for s in maps["b"].snapshots] == [(0, 2), (2, 4)]
    assert [s.kept.channels for s in maps["b"].snapshots] == [(0, 2), (2, 4)]
    assert maps["c"].is_summed
    assert maps["a"].layer is None


@pytest.mark.parametrize("name", PLANS)
def test_what_is_fresh_adds_up_to_each_map(name: str) -> None:
    """Over all moments each pixel is new once: halo is what remains."""
    plan = PLANS[name]()
    for stage in plan.program.stages:
        for item in animate(plan, stage, most=1000).maps:
            if item.layer is None or item.is_summed:
                continue
            boxes = [snapshot.fresh for snapshot in item.snapshots]
            sizes = [np.prod([b - a for a, b in (p.rows, p.columns, p.channels)]) for p in boxes]
            assert sum(sizes) == plan.network.tensors[item.tensor].size


def test_few_moments_are_chosen_of_many() -> None:
    plan = streamed()
    full = animate(plan, plan.program.stages[0])
    short = animate(plan, plan.program.stages[0], most=3)
    assert short.captions == (full.captions[0], full.captions[3], full.captions[7])
    for one, other in zip(full.maps, short.maps, strict=True):
        assert other.snapshots == (one.snapshots[0], one.snapshots[3], one.snapshots[7])


def test_images_of_any_rank() -> None:
    assert image((1, 5, 6, 7)) == (5, 6, 7)
    assert image((1, 5, 7)) == (5, 1, 7)
    assert image((3, 7)) == (3, 1, 7)
    assert image((7,)) == (1, 1, 7)
    assert image(()) == (1, 1, 1)
    assert part(Region.whole((2, 7))).rows == (0, 2)


def test_kept_shape_of_tiles_and_windows() -> None:
    assert Occupancy(tiled(2, 2)).kept_shape("b") == (1, 6, 6, 4)
    assert Occupancy(striped()).kept_shape("b") == (1, 3, 6, 4)
    assert Occupancy(summed()).kept_shape("b") == (1, 8, 8, 2)
    assert Occupancy(streamed()).kept_shape("b") == (1, 3, 8, 4)
    rows = {row[0]: row for row in Page(plan_page(striped())).tables["tensors"]}
    assert rows["b"][2] == "1×8×8×4 (1×3×6×4 kept)"
    assert rows["b"][5] == "72"


@pytest.mark.parametrize("name", [name for name in PLANS if name != "whole"])
def test_page_shows_each_stretch(name: str) -> None:
    plan = PLANS[name]()
    text = plan_page(plan, before=PLANS["whole"]())
    page = Page(text)
    assert page.tags["script"] == 1
    views = fusion_group_views(Occupancy(plan))
    assert len(views) == 1
    frames = [json.loads(value) for _, key, value in page.attributes if key == "data-f"]
    assert len(frames) == len(views[0].maps) == text.count('<div class="map">')
    assert all(len(frame) == len(views[0].captions) for frame in frames)
    moments = [json.loads(value) for _, key, value in page.attributes if key == "data-moments"]
    assert moments == [list(views[0].captions)]
    assert "Before and after" in page.text
    assert text == plan_page(plan, before=PLANS["whole"]())


def test_page_of_whole_layers_has_no_stretches() -> None:
    page = Page(plan_page(PLANS["whole"]()))
    assert "tiles" not in page.tables
    assert "sides" not in page.tables
    assert "graph" in page.tables


def test_maps_side_by_side_have_one_scale() -> None:
    before, after = (ElementTree.fromstring(svg) for svg in side_by_side(PLANS["whole"](), streamed()))

    def image_height(root: ElementTree.Element) -> float:
        for group in root.iter(f"{SVG}g"):
            title, box = group.find(f"{SVG}title"), group.find(f"{SVG}rect")
            if title is not None and box is not None and (title.text or "").startswith("image\n"):
                return float(box.get("height") or 0)
        raise AssertionError("no buffer of the image")

    assert image_height(before) == pytest.approx(image_height(after), abs=0.02)
    assert before.get("width") == after.get("width") == "570"
    alone = ElementTree.fromstring(memory_map_svg(streamed(), width=570, height=300))
    assert image_height(alone) > image_height(after)


def front() -> list[Plan]:
    """Three plans of one network, from much memory to much work."""
    peaks = {"streamed": 900, "tiled": 700, "2d": 500}
    return [replace(PLANS[name](), peak_bytes=peak, bound_bytes=400) for name, peak in peaks.items()]


TIMES = [RunTime("some-board", (seconds / 2, seconds / 2)) for seconds in (0.25, 0.0123, 4e-5)]
COSTS = [Estimate(n, (n,), "gcc", FitError(0.0, 0.0, 0.0), "", ()) for n in (4_000_000, 5_000, 600)]


def test_front_page_has_every_point_with_all_that_belongs_to_it() -> None:
    plans, plain = front(), replace(PLANS["whole"](), peak_bytes=1000)
    commands = [f"edgewright compile 'my model.tflite' {limits(plan)}" for plan in plans]
    text = front_page(plans, plain=plain, commands=commands, estimates=COSTS, times=TIMES)
    page = Page(text)
    rows = page.tables["points"]
    assert [row[:7] for row in rows] == [
        [
            str(i + 1),
            f"{plan.peak_bytes:,}",
            f"{plan.peak_bytes / 10:.1f} %",
            f"{plan.macs:,}",
            f"{overhead(plan):+.1f} %" if i else "0 %",
            ["≈ 4 M", "≈ 5 k", "≈ 600"][i],
            ["≈ 250 ms", "≈ 12.3 ms", "≈ 40 us"][i],
        ]
        for i, plan in enumerate(plans)
    ]
    assert "by rows 3" in rows[0][7]
    assert "FFMT tiles 3" in rows[1][7]
    assert text.count('class="pick"') == 3
    assert text.count('class="network-graph"') == 3
    assert text.count('class="memory-map"') == 4
    assert text.count("data-panel=") == 9
    assert "edgewright compile 'my model.tflite' --ram 700 --max-overhead" in page.text
    assert page.tags["script"] == 1
    assert text == front_page(plans, plain=plain, commands=commands, estimates=COSTS, times=TIMES)
    assert "some-board at its highest clock, ± 30%" in page.text
    assert "estimated" not in front_page(plans, plain=plain, commands=commands)


def test_the_command_allows_what_the_plan_takes() -> None:
    plan = replace(tiled(2, 2), board="a board")
    allowed = float(re.search(r"--max-overhead ([\d.]+)%", limits(plan))[1])  # type: ignore[index]
    assert 0 <= allowed - overhead(plan) < 0.1
    assert "--board 'a board'" in limits(plan)
    assert "--max-overhead 0%" in limits(streamed())


def test_points_stand_where_their_numbers_say() -> None:
    plans, plain = front(), replace(PLANS["whole"](), peak_bytes=1000)
    root = ElementTree.fromstring(_plot(plans, plain))
    at = [(float(c.get("cx") or 0), float(c.get("cy") or 0)) for c in root.iter(f"{SVG}circle") if c.get("r") == "5"]
    work = [overhead(plan) for plan in plans]
    assert (at[1][0] - at[0][0]) / (at[2][0] - at[0][0]) == pytest.approx(work[1] / work[2], abs=0.01)
    assert at[2][1] - at[1][1] == pytest.approx(at[1][1] - at[0][1], abs=0.2)  # 900, 700, 500: evenly down
    assert "plain: 1,000 B" in _plot(plans, plain)
    assert "plain: 9,000 B ↑" in _plot(plans, replace(plain, peak_bytes=9000))


def _plot(plans: list[Plan], plain: Plan) -> str:
    found = re.search(
        r'<svg[^>]*class="chart front points".*?</svg>',
        front_page(plans, plain=plain, commands=[""] * len(plans)),
        re.S,
    )
    assert found
    return found[0]


def test_a_front_of_one_or_no_point_has_a_page() -> None:
    plain = PLANS["whole"]()
    assert Page(front_page([plain], plain=plain, commands=[""])).tables["points"]
    assert Page(front_page([], plain=plain, commands=[])).tables["points"] == []


def test_twelve_points_of_sixty_layers_make_a_page_of_fair_size() -> None:
    plans = [replace(chain_plan(60), peak_bytes=2048 - 64 * i) for i in range(12)]
    text = front_page(plans, plain=plans[0], commands=[""] * len(plans))
    assert len(text.encode()) < 1_500_000
    assert "https://" not in text
    assert text.replace('xmlns="http://www.w3.org/2000/svg"', "").count("http://") == 0
    assert not Page(text).tags.keys() & {"link", "img", "iframe", "object", "embed", "base"}


def test_names_of_a_model_cannot_become_markup() -> None:
    net = random_graph([(0, 0), (1, 0)])
    evil = {name: EVIL + name for name in [*net.tensors, *net.by_name]}
    layers = tuple(
        replace(layer, name=evil[layer.name], inputs=tuple(evil[x] for x in layer.inputs), output=evil[layer.output])
        for layer in net.layers
    )
    net = replace(
        net,
        name=EVIL,
        layers=layers,
        inputs=tuple(evil[x] for x in net.inputs),
        outputs=tuple(evil[x] for x in net.outputs),
        tensors={evil[name]: replace(tensor, name=evil[name]) for name, tensor in net.tensors.items()},
    )
    names = [layer.name for layer in net.layers]
    plan = replace(by_hand(net, Stage(EVIL, FusionSchedule(tuple(names), streamed=True))), board=EVIL)
    pages = [
        plan_page(plan, before=plan, title=EVIL),
        front_page([plan], plain=plan, commands=[EVIL]),
    ]
    for text in pages:
        assert text.count("<script>") == 1
        assert "alert('x')</script>" not in text
        assert "\x00" not in text
        assert "\u202e" not in text
    root = ElementTree.fromstring(network_graph_svg(plan))
    assert not list(root.iter(f"{SVG}script"))


def test_plans_of_the_planner_have_pages() -> None:
    net = network()
    plain, phased = make_plan(net, plain=True), make_plan(net, phases=True)
    text = plan_page(phased, before=plain)
    assert Technique.ROWS in techniques(phased).values()
    assert "by rows" in text
    assert front_page([make_plan(net), phased], plain=plain, commands=["", ""])


def test_a_browser_moves_tiles_and_shows_one_point(tmp_path: Path) -> None:
    """Scripts run from a file: the slider's caption is set, and of three points two are hidden."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no chromium to draw the page with")
    path = tmp_path / "front.html"
    path.write_text(front_page(front(), plain=PLANS["whole"](), commands=[""] * 3), encoding="utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", f"{path.as_uri()}#point-2"]
    try:
        dom = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"chromium does not run here: {error}")
    pressed = re.findall(r'data-point="(\d)"[^>]*aria-pressed="true"', dom)
    assert pressed == ["1"]
    shown = {number for number, rest in re.findall(r'data-panel="(\d)"([^>]*)>', dom) if "hidden" not in rest}
    assert shown == {"1"}
