"""The page and the picture of a plan: everything is there, the numbers are right, and nothing of a model can run."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from math import inf
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewright import text
from edgewright.errors import InputError
from edgewright.network import Builder, DType, Network, Quant, Region, describe
from edgewright.network import operators as ops
from edgewright.network.operators import (
    Binary,
    BinaryKind,
    Clamp,
    Concat,
    Conv2d,
    Dense,
    MaxPool2d,
    Op,
    Reduce,
    Reshape,
    Slice,
    Unary,
    UnaryKind,
)
from edgewright.program import (
    Buffer,
    BufferKind,
    CheaperPlan,
    FusionSchedule,
    Plan,
    Program,
    Saving,
    Stage,
    Step,
    Sweep,
    View,
    plan_from_dict,
    plan_to_dict,
)
from edgewright.report import memory_map_svg, plan_page
from edgewright.report.occupancy import Occupancy, Role
from tests.helpers.by_steps import by_steps

EVIL = "</title></style><script>alert('x')</script>&\x00\u202e"
SVG = "{http://www.w3.org/2000/svg}"


class Page(HTMLParser):
    """A document as its tags, and its tables as rows of cell texts under the section's id."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.text = ""
        self._section, self._in_cell, self._in_head, self._in_code = "", False, False, False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self._in_code = tag in ("script", "style")
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        match tag:
            case "section":
                self._section = dict(attrs)["id"] or ""
                self.tables[self._section] = []
            case "thead":
                self._in_head = True
            case "tr" if not self._in_head:
                self.tables[self._section].append([])
            case "td":
                self._in_cell = True
                self.tables[self._section][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_code = False
        if tag == "td":
            self._in_cell = False
        elif tag == "thead":
            self._in_head = False

    def handle_data(self, data: str) -> None:
        self.text += "" if self._in_code else data
        if self._in_cell:
            self.tables[self._section][-1][-1] += data


def tiny_network(image: str = "image") -> Network:
    """conv → relu → flatten (free) → dense, int8, 4×4 pixels."""
    b = Builder("tiny")
    b.notes.append("image is NCHW in the file")
    x = b.input(image, (1, 4, 4, 2), DType.INT8, Quant.of(0.5, -3))
    kernel = b.constant("kernel", np.zeros((4, 3, 3, 2), np.int8))
    matrix = b.constant("matrix", np.zeros((10, 64), np.int8))
    x = b.layer(Conv2d(pads=(1, 1, 1, 1), activation=Clamp(0.0, 6.0)), [x, kernel], "conv")
    x = b.layer(Unary(UnaryKind.HARD_SWISH), [x], "swish")
    x = b.layer(Reshape((1, 64)), [x], "flatten")
    return b.build([b.layer(Dense(), [x, matrix], "logits")])


def tiny_plan(image: str = "image") -> Plan:
    """image 32 B, conv 64 B which starts 16 B into it, swish in place, logits below with 8 B of scratch."""
    network = tiny_network(image)
    dense = {name: t.strides for name, t in network.tensors.items() if name not in network.constants}
    return Plan(
        program=replace(Program(network, tuple(map(Stage.whole, ["conv", "swish", "logits"]))), free=("flatten",)),
        buffers=(
            Buffer(image, 32, 64, 0, 0),
            Buffer("conv", 64, 16, 0, 1),
            Buffer("swish", 64, 16, 1, 2),
            Buffer("logits", 10, 0, 2, 2),
            Buffer("logits:room", 8, 80, 2, 2, kind=BufferKind.ROOM, owner="logits"),
        ),
        views={name: View("swish" if name == "flatten" else name, 0, strides) for name, strides in dense.items()},
        alignment=4,
        peak_bytes=96,
        bound_bytes=96,
        weights_bytes=network.weight_bytes,
        macs_plain=network.total_macs,
        method="by hand",
        savings=(Saving("as trained", 160), Saving("in place", 128), Saving("trailing", 96)),
        board="test-board",
    )


def chain_plan(layers: int) -> Plan:
    """Element-wise layers one after the other, each in place of the one before or beside it."""
    b = Builder(f"chain of {layers}")
    x = b.input("image", (1, 16, 16, 4), DType.INT8)
    for i in range(layers):
        x = b.layer(Unary(UnaryKind.ABS), [x], f"model/features/block_{i // 10}/layer_{i}/Abs")
    network = b.build([x])
    names = [network.inputs[0], *(layer.output for layer in network.layers)]
    buffers = tuple(
        Buffer(name, 1024, 1024 * (i % 3 == 2), max(0, i - 1), min(i, layers - 1)) for i, name in enumerate(names)
    )
    views = {name: View(name, 0, network.tensors[name].strides) for name in names}
    program = Program(network, tuple(map(Stage.whole, [layer.name for layer in network.layers])))
    return Plan(program, buffers, views, 4, 2048, 2048, 0, 0, "by hand")


def rects(svg: str, kind: str) -> list[ElementTree.Element]:
    return [r for r in ElementTree.fromstring(svg).iter(f"{SVG}rect") if r.get("class") == kind]


def test_headline_says_what_is_proven() -> None:
    plan = tiny_plan()
    assert plan_page(plan).startswith("<!DOCTYPE html>")
    text = Page(plan_page(plan)).text
    assert "96 B" in text
    assert "proven least" in text
    assert "test-board" in text
    assert "image is NCHW in the file" in text
    assert "1 layer costs nothing" in text
    assert "3 stages, 5 buffers" in text
    assert str(plan.flash_bytes) in text
    assert "fits" not in text  # no limit given, no verdict
    # 96 is 3.226 % above 93: the figure after "at most" is rounded up.
    assert "at most 3.3 % above the bound of 93 B" in Page(plan_page(replace(plan, bound_bytes=93))).text
    assert "no bound is known" in Page(plan_page(replace(plan, bound_bytes=0))).text


def test_limits_are_judged() -> None:
    page = plan_page(tiny_plan(), ram=96, flash=1000)
    assert "does not fit" not in page
    assert "0 B of 96 B stay free" in page
    page = plan_page(tiny_plan(), ram=80)
    assert "does not fit" in page
    assert "16 B (20.0 %) more than the 80 B there are" in page
    assert "does not fit" in plan_page(tiny_plan(), flash=100)


def test_macs_computed_again_are_shown() -> None:
    plan = tiny_plan()
    assert plan.macs == 4 * 4 * 4 * 9 * 2 + 640
    assert "nothing is computed twice" in plan_page(plan)
    assert "computed again" in plan_page(replace(plan, macs_plain=plan.macs - 100))


def test_stage_table_has_every_stage_with_its_numbers() -> None:
    rows = Page(plan_page(tiny_plan())).tables["stages"]
    # At stage 0 image lies at 64..96 and conv at 16..80: 80 bytes are live, 16 of them shared.
    assert [row[-1] for row in rows] == ["over 16 B (50.0 %) of image", "in place of conv", ""]
    assert [row[:-1] for row in rows] == [
        ["0", "conv", "Conv2d 3×3 → 4, ReLU6", "1×4×4×4", "int8", "1,152", "80", "forward"],
        ["1", "swish", "Hard swish", "1×4×4×4", "int8", "0", "64", "forward"],
        ["2", "logits", "Dense 64 → 10", "1×10", "int8", "640", "82", "forward"],
    ]


def test_tensor_table_has_every_tensor_and_scratch() -> None:
    rows = {row[0]: row[1:] for row in Page(plan_page(tiny_plan())).tables["tensors"]}
    assert rows["image"] == ["input", "1×4×4×2", "int8", "0.5, zero -3", "32", "image", "64", "0"]
    assert rows["flatten"][5:] == ["swish", "16", "1–2"]
    assert rows["logits"][0] == "output"
    assert rows["logits:room"] == ["scratch", "", "", "", "8", "logits:room", "80", "2"]
    assert len(rows) == 6


def test_savings_run_from_first_to_last() -> None:
    page = plan_page(tiny_plan())
    rows = Page(page).tables["savings"]
    assert [row[0] for row in rows] == ["as trained", "in place", "trailing"]
    assert [row[2:] for row in rows] == [["160", "", ""], ["128", "32", "−20.0 %"], ["96", "32", "−40.0 %"]]
    assert "width:60.00%" in page
    assert "savings" not in Page(plan_page(replace(tiny_plan(), savings=()))).tables


def test_critical_buffers_come_largest_first() -> None:
    page = Page(plan_page(tiny_plan(), critical=["image", "conv"]))
    assert page.tables["critical"] == [
        ["conv", "intermediate: Conv2d 3×3 → 4, ReLU6", "64", "66.7 %", "16", "0–1"],
        ["image", "input", "32", "33.3 %", "64", "0"],
    ]
    assert "critical" not in Page(plan_page(tiny_plan())).tables
    with pytest.raises(InputError, match="no buffer \\['nobody'\\]"):
        plan_page(tiny_plan(), critical=["nobody"])
    with pytest.raises(InputError, match="no buffer \\['nobody'\\]"):
        memory_map_svg(tiny_plan(), critical=["nobody"])


def test_fused_stages_and_parts_are_told_apart() -> None:
    plan = tiny_plan()
    rows = Region.whole((1, 4, 4, 4)).with_axis(1, (0, 2))
    below = rows.with_axis(1, (2, 4))
    steps = (
        Step("conv", rows.with_axis(1, (0, 3))),
        Step("swish", rows),
        Step("conv", below),
        Step("swish", below),
    )
    fused = Stage("conv+swish", FusionSchedule(("conv", "swish")))
    logits = Stage.whole("logits", Sweep.BACKWARD)
    buffers = tuple(replace(b, first=max(0, b.first - 1), last=max(0, b.last - 1)) for b in plan.buffers)
    views = {**plan.views, "conv": replace(plan.views["conv"], window=(1, 3))}
    plan = replace(plan, program=Program(plan.network, (fused, logits)), buffers=buffers, views=views)
    plan = by_steps(plan, {"conv+swish": steps})
    page = Page(plan_page(plan))
    first, second = page.tables["stages"]
    # Rows 0..3 and 2..4: five of four rows are computed.
    assert first[1:3] == ["conv+swish", "Conv2d 3×3 → 4, ReLU6 (25.0 % computed again)Hard swish"]
    assert first[5] == str(f"{1152 * 5 // 4:,}")
    assert second[7] == "backward"
    conv = next(row for row in page.tables["tensors"] if row[0] == "conv")
    assert conv[2] == "1×4×4×4 (3 kept)"
    assert conv[5] == "48"


def test_map_has_a_rectangle_for_each_buffer_at_its_place() -> None:
    svg = memory_map_svg(tiny_plan(), critical=["conv"], height=960)  # 10 px per byte
    boxes = rects(svg, "buffer")
    assert len(boxes) == 5
    names = [g for g in ElementTree.fromstring(svg).iter(f"{SVG}g") if (g.get("class") or "").startswith("b ")]
    found = {}
    for group in names:
        title, box = group.find(f"{SVG}title"), group.find(f"{SVG}rect")
        if title is not None and box is not None and title.text:
            found[title.text.splitlines()[0]] = {k: float(box.get(k) or 0) for k in ("x", "y", "width", "height")}
    assert found["conv"]["height"] == pytest.approx(640)
    assert found["image"]["height"] == pytest.approx(320)
    assert found["conv"]["width"] == pytest.approx(2 * found["image"]["width"])
    assert found["swish"]["x"] - found["conv"]["x"] == pytest.approx(found["image"]["width"])
    # Address 0 is at the bottom: conv (16..80) reaches 160 px less high than image (64..96).
    assert found["conv"]["y"] - found["image"]["y"] == pytest.approx(160)
    shared = sorted(float(box.get("height") or 0) for box in rects(svg, "shared")[:2])
    assert shared == [pytest.approx(160), pytest.approx(640)]
    assert 'class="b intermediate critical"' in svg


def test_map_shows_the_limit_only_where_it_can_be_seen() -> None:
    assert 'path class="limit"' in memory_map_svg(tiny_plan(), ram=80)
    assert 'path class="limit"' in memory_map_svg(tiny_plan(), ram=120)
    far = memory_map_svg(tiny_plan(), ram=4096)
    assert 'path class="limit"' not in far
    assert "RAM 4,096 B ↑" in far
    assert "RAM" not in memory_map_svg(tiny_plan())


def test_each_memory_has_a_map() -> None:
    plan = tiny_plan()
    buffers = (*plan.buffers[:3], *(replace(b, memory="<fast>", offset=0) for b in plan.buffers[3:]))
    plan = replace(plan, buffers=buffers, peak_bytes=106)
    svg = memory_map_svg(plan)
    assert svg.count('class="panel"') == 2
    assert len(rects(svg, "buffer")) == 5
    page = Page(plan_page(plan))
    assert "ram: 96 B, <fast>: 12 B" in page.text  # in whole words
    assert page.tables["tensors"][-1][6:8] == ["logits:room", "<fast>"]


def test_names_of_a_model_cannot_become_markup() -> None:
    plan = tiny_plan(EVIL)
    program = replace(plan.program, free=(EVIL,))
    plan = replace(plan, program=program, board=EVIL, method=EVIL, savings=(Saving(EVIL, 96),))
    plan = replace(plan, program=replace(plan.program, network=replace(plan.network, notes=(EVIL,), name=EVIL)))
    page = plan_page(plan, critical=[EVIL], title=EVIL)
    assert page.count("<script>") == 1
    assert page.count("</script>") == 1
    assert "alert('x')</script>" not in page
    assert "\x00" not in page
    assert "\u202e" not in page
    assert Page(page).tags["script"] == 1
    for interactive in (False, True):
        root = ElementTree.fromstring(memory_map_svg(plan, critical=[EVIL], interactive=interactive))
        assert not list(root.iter(f"{SVG}script"))


def test_what_would_take_less_is_told_beside_the_proof() -> None:
    text = Page(plan_page(replace(tiny_plan(), cheaper=CheaperPlan(80, 0.05)))).text
    assert "less: 80 B with --minimise ram, +5.0% instructions" in text
    as_little = replace(tiny_plan(), cheaper=CheaperPlan(tiny_plan().peak_bytes, 0.0))
    assert "less:" not in Page(plan_page(as_little)).text


@pytest.mark.parametrize("layers", [1, 4, 60, 400])
def test_page_is_self_contained_and_small_for_any_number_of_layers(layers: int) -> None:
    plan = chain_plan(layers)
    text = plan_page(plan, critical=[plan.buffers[0].name], ram=4096)
    page = Page(text)
    assert len(text.encode()) < 1_000_000
    assert len(page.tables["stages"]) == layers
    assert len(page.tables["tensors"]) == layers + 1
    assert text.count('class="buffer"') == layers + 1
    assert "https://" not in text
    assert text.replace('xmlns="http://www.w3.org/2000/svg"', "").count("http://") == 0
    assert not page.tags.keys() & {"link", "img", "iframe", "object", "embed", "base"}
    assert not [a for a in page.attributes if a[1] in ("src", "srcset", "action")]
    assert "@import" not in text
    assert all(part.startswith("#") for part in text.replace('"', "").split("url(")[1:])
    assert text == plan_page(plan, critical=[plan.buffers[0].name], ram=4096)


def test_labels_thin_out() -> None:
    """Names while they fit, then numbers that do not run into each other."""
    assert memory_map_svg(chain_plan(20)).count('<text class="stage"') == 20
    many = memory_map_svg(chain_plan(400))
    assert many.count('<text class="stage"') == 0
    assert many.count('<text class="number"') <= 42


def test_a_plan_without_stages_has_a_page() -> None:
    b = Builder("free")
    network = b.build([b.layer(Reshape((8,)), [b.input("x", (2, 4))], "y")])
    views = {"x": View("x", 0, (16, 4)), "y": View("x", 0, (4,))}
    plan = Plan(Program(network, (), ("y",)), (Buffer("x", 32, 0, 0, 0),), views, 4, 32, 32, 0, 0, "by hand")
    page = Page(plan_page(plan, critical=["x"]))
    assert page.tables["stages"] == []
    assert len(page.tables["tensors"]) == 2
    empty = replace(plan, buffers=(), views={}, peak_bytes=0, bound_bytes=0)
    assert "0 B" in Page(plan_page(empty)).text


def test_a_plan_read_from_a_file_has_the_same_page() -> None:
    plan = tiny_plan()
    assert plan_page(plan_from_dict(json.loads(json.dumps(plan_to_dict(plan))))) == plan_page(plan)


def test_interleaved_views_share_nothing() -> None:
    """Halves of the channels of one buffer: their address ranges cross, their bytes do not."""
    b = Builder("halves")
    x = b.input("x", (1, 2, 2, 2), DType.INT8)
    y = b.layer(Clamp(0.0), [x], "y")
    network = b.build([b.layer(Concat(3), [x, y], "z")])
    strides = (16, 8, 4, 1)
    views = {"x": View("z", 0, strides), "y": View("z", 2, strides), "z": View("z", 0, strides)}
    program = Program(network, tuple(map(Stage.whole, ["y"])))
    plan = Plan(replace(program, free=("z",)), (Buffer("z", 16, 0, 0, 0),), views, 4, 16, 16, 0, 0, "by hand")
    occupancy = Occupancy(plan)
    assert occupancy.shared_bytes("x", "y") == 0
    assert occupancy.shared_bytes("x", "z") == 8
    assert occupancy.role("z") is Role.INPUT
    assert Page(plan_page(plan)).tables["stages"][0][-1] == ""


@st.composite
def placements(draw: st.DrawFn) -> tuple[Buffer, ...]:
    def buffer(name: str) -> Buffer:
        first = draw(st.integers(0, 3))
        last = draw(st.integers(first, 3))
        memory = draw(st.sampled_from(["ram", "fast"]))
        return Buffer(name, draw(st.integers(1, 20)), draw(st.integers(0, 20)), first, last, memory)

    return tuple(buffer(f"b{i}") for i in range(draw(st.integers(1, 6))))


@given(placements())
def test_live_and_shared_bytes_equal_a_count_of_bytes(buffers: tuple[Buffer, ...]) -> None:
    """Any buffers at all, counted byte by byte and stage by stage."""
    plan = replace(chain_plan(4), buffers=buffers, views={})
    occupancy = Occupancy(plan)
    held = Counter(
        (b.memory, stage, byte)
        for b in buffers
        for stage in range(b.first, b.last + 1)
        for byte in range(b.offset, b.end)
    )
    for memory, live in occupancy.plan.occupied.items():
        assert live == tuple(len({k for k in held if k[:2] == (memory, stage)}) for stage in range(4))
    pairs = sum((p.last - p.first + 1) * (p.high - p.low) for p in occupancy.shared)
    assert pairs == sum(n * (n - 1) // 2 for n in held.values())


@pytest.mark.parametrize(
    ("op", "shapes", "text"),
    [
        (Conv2d(stride=(2, 2)), [(1, 9, 9, 3), (16, 3, 3, 3)], "Conv2d 3×3 s2 → 16"),
        (Conv2d(stride=(2, 1), groups=8), [(1, 9, 9, 8), (8, 3, 1, 1)], "Conv2d depthwise 3×1 s2×1 → 8"),
        (Conv2d(dilation=(2, 2), groups=2), [(1, 9, 9, 8), (8, 3, 3, 4)], "Conv2d 3×3 d2 g2 → 8"),
        (MaxPool2d((2, 2), (2, 2), activation=Clamp(0.0)), [(1, 8, 8, 3)], "MaxPool2d 2×2 s2, ReLU"),
        (Binary(BinaryKind.ADD, Clamp(-1.0, 1.0)), [(4,), (4,)], "Add, Clamp -1..1"),
        (Clamp(0.0, inf), [(4,)], "ReLU"),
        (Reduce((1, 2)), [(1, 8, 8, 3)], "Reduce mean over axes 1, 2"),
        (Slice((0, 3), (2, 4), (2, -1)), [(8, 4)], "Slice [0:4:2, 3::-1]"),
    ],
)
def test_operators_in_words(op: Op, shapes: Sequence[tuple[int, ...]], text: str) -> None:
    assert describe.operator(op, shapes) == text


def test_every_operator_has_words() -> None:
    """Attributes that have no default get a value by their type: an operator must never break a page."""
    guesses = {
        "shape": (4,), "perm": (0, 1), "axis": 0, "axes": (1,), "starts": (0,), "sizes": (2,), "steps": (1,),
        "before": (0,), "after": (1,), "repeats": (2,), "block": 2, "size": (2, 2), "kernel": (2, 2),
        "kind": None, "dtype": DType.INT8, "product": ops.Dense(), "count": 2, "part": ops.LstmPart.CELL,
            "score_threshold": 0.5, "iou_threshold": 0.5,
    }  # fmt: skip
    kinds = {
        ops.Unary: UnaryKind.ABS,
        ops.Binary: BinaryKind.ADD,
        ops.Reduce: ops.ReduceKind.SUM,
        ops.Compare: ops.CompareKind.LESS,
    }
    for cls in set(get_args(Op)) - {ops.Custom}:
        required = {n: guesses[n] for n in cls.__match_args__ if n in guesses}
        if "kind" in required:
            required["kind"] = kinds[cls]
        told = describe.operator(cls(**required), [(1, 4, 4, 4), (4, 3, 3, 4)])
        assert told
        assert "object at" not in told


def test_numbers_in_words() -> None:
    assert text.rounded_size(33312) == "32.5 KiB"
    assert text.rounded_size(1024) == "1 KiB"
    assert text.rounded_size(3 * text.MIB // 2) == "1.5 MiB"
    assert text.rounded_count(2_656_768) == "2.66 M"
    assert [text.rounded_count(n) for n in (999, 999_499, 999_999, 10**13)] == ["999", "999 k", "1 M", "10,000 G"]
    assert [text.duration(s) for s in (0.9999, 0.0123, 1234.5)] == ["1 s", "12.3 ms", "1,230 s"]
    assert text.shortened("block/conv", 6) == "…/conv"
    assert len(text.shortened("model/features/block/conv/Conv2D", 14)) == 14
    assert text.at_most_percent(1, 100_000) == "0.1 %"


def test_browser_draws_every_buffer(tmp_path: Path) -> None:
    """The page's own script runs (it gives every buffer a label for screen readers), and no other."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no chromium to draw the page with")
    plan = tiny_plan(EVIL)
    path = tmp_path / "plan.html"
    path.write_text(plan_page(plan, ram=80), encoding="utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", path.as_uri()]
    try:
        dom = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"chromium does not run here: {error}")
    page = Page(dom)
    assert page.attributes.count(("rect", "class", "buffer")) == 5
    assert len([a for a in page.attributes if a[1] == "aria-label" and "B at" in a[2]]) == 5
    assert page.tags["script"] == 1
    assert "Point at the map" in page.text
