"""The page of a driver: every register, every function, every reason, and pictures that are well-formed."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from edgewright.hal.export.table import tables
from edgewright.hal.layout.assembly import lay_out_naive
from edgewright.hal.layout.front import FrontPoint
from edgewright.hal.layout.layout import Piece, Register
from edgewright.hal.merge import Merging
from edgewright.hal.verify import Counts, Difference, FunctionCheck, Verification
from edgewright.report.hal_page import hal_page
from edgewright.report.pareto_plot import layout_plot_svg
from edgewright.report.register_map import conflict_graph_svg, kind_of, register_map_svg
from tests.hal.designs import DESCRIPTION, FUNCTION, LAYOUT, REGIONS, SPACES, design


@pytest.fixture(scope="module")
def page():
    made = design()
    before = replace(made, layout=lay_out_naive(DESCRIPTION, SPACES), merging={"start": Merging(())})
    return hal_page(made, before, name="<uart>", front=FRONT)


FRONT = (FrontPoint(LAYOUT, 256, 100, 20), FrontPoint(LAYOUT, 300, 80, 20))


def test_the_page_tells_what_was_saved_and_why_not_more(page):
    assert "5 → 4" in page and "256 B" in page and "544 B" in page
    assert "one access with 1, 2" in page and "by itself, read-modify-write" in page
    assert "the first must happen before: 1 uart-&gt;parity and 4 uart-&gt;parity" in page
    assert "the value of 1 is needed &lt;first&gt;" in page
    assert "&lt;uart&gt;" in page and "<uart>" not in page


@pytest.mark.parametrize(
    ("differences", "told"),
    [((), "registers see the same in 7 calls on rv32imc"), ((Difference("start", "start(1)", "x"),), "1 difference")],
)
def test_the_page_has_the_results_of_verification(differences, told):
    checked = FunctionCheck("start", 7, Counts(500, 35, 60), Counts(400, 28, 50), left_out="some <calls>")
    found = Verification("rv32imc", "gcc", 1, (checked,), differences, 60, 50)
    page = hal_page(design(), design(), name="uart", verification=found)
    assert told in page and ("same; some &lt;calls&gt;" in page) == (not differences)
    assert "35 → 28" in page and "500 → 400" in page and "60 → 50" in page
    assert "not run" in hal_page(design(), design(), name="uart")


def test_the_page_needs_nothing_else(page):
    assert "<script" not in page and "<link" not in page and "src=" not in page
    targets = set(re.findall(r'href="#(\w+)"', page))
    assert targets and targets <= set(re.findall(r'id="(\w+)"', page))


def test_pictures_are_well_formed(page):
    pictures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(pictures) == 3
    for picture in pictures:
        ElementTree.fromstring(picture)


def test_every_field_is_drawn_where_it_lies():
    (table,) = tables(design())
    root = ElementTree.fromstring(register_map_svg(table))
    name = "{http://www.w3.org/2000/svg}"
    boxes = {
        group.findtext(f"{name}title").partition(",")[0]: group.find(f"{name}rect") for group in root.iter(f"{name}g")
    }
    left = {path: float(box.get("x")) for path, box in boxes.items()}
    width = {path: float(box.get("width")) for path, box in boxes.items()}
    assert left["divider"] < left["parity"] < left["enable"]
    assert left["enable"] == left["busy"] == left["mask[0]"] == left["mask[32]"]
    assert width["divider"] == pytest.approx(16 * (width["enable"] + 1) - 1)
    assert float(boxes["busy"].get("y")) > float(boxes["enable"].get("y"))


def test_names_of_crowded_bits_stand_below_their_register():
    """A register full of flags: no name fits, and all can be read."""
    flags = Piece("enable", 7, 1), Piece("busy", 6, 1)
    uart = LAYOUT.spaces["Uart"]
    kept = [r for r in uart.registers if all(piece.slot not in ("enable", "busy") for piece in r.pieces)]
    crowded = replace(uart, registers=(Register(0, 8, flags), *kept))
    layout = replace(LAYOUT, spaces={**LAYOUT.spaces, "Uart": crowded})
    (table, *_) = [one for one in tables(design(layout)) if one.group == "Uart"]
    drawn = "".join(ElementTree.fromstring(register_map_svg(table)).itertext())
    assert "7 enable · 6 busy" in drawn


def test_colours_tell_what_a_field_does():
    (table,) = tables(design())
    fields = [at for entry in table.entries for r in getattr(entry, "registers", (entry,)) for at in r.fields]
    kinds = {at.field.name: kind_of(at) for at in fields}
    assert kinds["enable"] == "plain" and kinds["busy"] == "hardware" and kinds["data"] == "fifo"
    assert kinds["errors"] == "acts-read" and kinds["command"] == "acts-write" and kinds["pending"] == "w1"


def test_the_conflict_graph_has_all_nodes_and_edges():
    text = conflict_graph_svg(FUNCTION, REGIONS)
    assert text.count("<circle") == 5 and text.count('class="edge"') == 2
    assert "reads cannot be combined with writes" in text


def test_graphs_that_nobody_could_read_are_left_out():
    many = replace(FUNCTION, accesses=tuple(replace(FUNCTION.accesses[0], number=n) for n in range(60)))
    assert conflict_graph_svg(many, REGIONS) == ""


def test_the_front_has_a_dot_for_each_layout():
    assert layout_plot_svg(FRONT).count("<circle") == 4
    ElementTree.fromstring(layout_plot_svg(FRONT[:1]))
