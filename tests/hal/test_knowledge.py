"""Fields whose values a function knows are put back without being read, and only these."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.hal import merge
from edgewright.hal.analysis.conflicts import Conflicts
from edgewright.hal.analysis.spaces import parted
from edgewright.hal.design import Design, acts, total
from edgewright.hal.design_flow import analyse, design, real_joints
from edgewright.hal.generate import rewritten
from edgewright.hal.layout.assembly import Assembly, assemble
from edgewright.hal.layout.cells import Cell
from edgewright.hal.layout.cost import LayoutGoal, cost_of
from edgewright.hal.layout.judge import faults
from edgewright.hal.layout.optimal import lay_out_optimal
from edgewright.hal.layout_choice import chosen_design
from edgewright.hal.verify import verify

HEAD = """
#include "edgewright_hal.h"
bfGroup Lamp { bit pin(0, 0) on; uint4 pin(0, 4) mode; uint4 pin(0, 8) level; bit ro pin(4, 0) ready; };
bfGroup Row { bfGroup Lamp lamps[4]; };
make_device(Lamp, lamp, 0x40000000);
make_device(Row, row, 0x40001000);
void other(void);
static uint32_t current;
"""
# Functions that end with a write of `on`; `mode` and `level` lie beside it.
SET = "lamp->mode = (uint8_t)n; lamp->level = 2; lamp->on = 0;"
KNOWN = {
    "straight": f"{SET} while (!lamp->ready) {{ }} lamp->on = 1;",
    "its value changes": f"{SET} while (!lamp->ready) {{ n++; }} lamp->on = (uint8_t)n;",
    "a global": "lamp->mode = (uint8_t)current; lamp->level = 1; lamp->on = 0; current = n; lamp->on = 1;",
    "under a condition": f"{SET} if (n > 3) lamp->on = 1;",
    "in an inner block": "if (n) { { lamp->mode = (uint8_t)n; } lamp->level = 1; lamp->on = 0; n = 4; lamp->on = 1; }",
    "of a variable that is gone": "{ uint8_t m = lamp->mode; lamp->mode = m; } lamp->level = 1; lamp->on = 0;"
    " n = 1; lamp->on = 1;",
    "of a constant that is gone": "{ enum { A = 3 }; lamp->mode = A; } lamp->level = 1; lamp->on = 0; lamp->on = 1;",
    "after a label": "if (n) goto a; a: lamp->mode = (uint8_t)n; lamp->level = 2; lamp->on = 0; n = 9; lamp->on = 1;",
    "one of an array": "bfGroup Lamp *p = &row->lamps[n & 3u]; p->mode = 1; p->level = 2; p->on = 0;"
    " lamp->on = 0; p->on = 1;",
}
UNKNOWN = {
    "never written": "lamp->mode = (uint8_t)n; lamp->on = 0; lamp->on = 1;",
    "unknown call": f"{SET} other(); lamp->on = 1;",
    "written in a branch": f"{SET} if (n) lamp->level = 3; lamp->on = 1;",
    "written in one branch only": "if (n) { lamp->mode = 1; lamp->level = 2; } lamp->on = 1;",
    "updated": f"{SET} lamp->level++; lamp->on = 1;",
    "another name": f"bfGroup Lamp *p = n ? lamp : &row->lamps[1]; {SET} p->level = 3; lamp->on = 1;",
    "another lamp": "bfGroup Lamp *p = &row->lamps[n & 3u]; p->mode = 1; p->level = 2; p->on = 0;"
    " p = &row->lamps[0]; p->on = 1;",
    "later in the loop": f"{SET} for (uint32_t i = 0; i < (n & 3u); i++) {{ lamp->on = 1; lamp->level = 3; }}",
}


def made(tmp_path, functions: dict[str, str], head: str = HEAD) -> Design:
    """All functions in one driver, its plain fields in one register as they are pinned: f0, f1, …"""
    texts = [f"void f{number}(uint32_t n) {{ {body} }}" for number, body in enumerate(functions.values())]
    (tmp_path / "lamp.c").write_text("\n".join((head, *texts, "")))
    return chosen_design(analyse([tmp_path / "lamp.c"]))


def writes_on(design: Design, number: int) -> list[bool]:
    """Of every write of `on` in a function, whether it reads its register first."""
    return [act.is_update for act in acts(design, f"f{number}") if "on" in act.slots and act.writes]


def test_what_is_known_is_not_read(tmp_path):
    design = made(tmp_path, KNOWN)
    found = {name: writes_on(design, number)[-1] for number, name in enumerate(KNOWN)}
    assert found == dict.fromkeys(KNOWN, False)


def test_what_may_have_changed_is_read(tmp_path):
    design = made(tmp_path, UNKNOWN)
    found = {name: writes_on(design, number)[-1] for number, name in enumerate(UNKNOWN)}
    assert found == dict.fromkeys(UNKNOWN, True)


def test_fields_of_interrupt_routines_are_read(tmp_path):
    routine = "void LAMP_IRQHandler(void) { lamp->level = 1; }\n"
    marked = HEAD.replace("pin(0, 8) level", "shared_with_isr pin(0, 8) level")
    design = made(tmp_path, {"straight": KNOWN["straight"]}, marked + routine)
    assert all(use.slot != "level" for merge in design.merging["f0"].merges for use in merge.known)


def test_values_stand_there_again_or_are_kept(tmp_path):
    design = made(tmp_path, KNOWN)
    text = next(iter(rewritten(design).values()))
    lines = [line for line in text.splitlines() if line.startswith("void f")]
    assert lines[0].endswith("HAL_WRITE_Lamp_on_keeping_level_mode(lamp, 1, 2, (uint8_t)n); }")
    assert "uint8_t tmp1 = (uint8_t)n;" in lines[1] and "(lamp, (uint8_t)n, 2, tmp1)" in lines[1]
    assert "(lamp, 1, 1, tmp1)" in lines[2]  # an interrupt routine may change what is no local variable


def test_drivers_that_know_do_the_same(tmp_path):
    pytest.importorskip("unicorn")
    design = made(tmp_path, KNOWN | UNKNOWN)
    assert verify(design.analysis, design, calls=40).is_equal


def test_verification_finds_what_was_not_known(tmp_path, monkeypatch):
    pytest.importorskip("unicorn")
    monkeypatch.setattr(Conflicts, "alters", lambda *_: False)
    design = made(tmp_path, {"updated": UNKNOWN["updated"], "branch": UNKNOWN["written in a branch"]})
    assert not verify(design.analysis, design, calls=40).is_equal


CHAINED = """
#include "edgewright_hal.h"
bfGroup Dma { uint8 width; bit irq; uint16 hw count; bit hw enable; };
make_device(Dma, dma, 0x40020000);
void start(uint16_t n) { dma->width = 3; dma->irq = 1; dma->count = n; dma->enable = 1; }
void stop(void) { dma->enable = 0; }
"""
HAND = Assembly("by hand")


def test_settings_go_along_with_what_hardware_changes_too_where_all_of_it_is_one_access(tmp_path):
    """Moved down past `count` alone they would come after it; in one access with it nothing passes anything."""
    (tmp_path / "dma.c").write_text(CHAINED)
    analysis = analyse([tmp_path / "dma.c"])
    best = chosen_design(analysis)
    assert {f.name: total(acts(best, f.name)) for f in analysis.functions} == {"start": 1, "stop": 1}
    apart = assemble(
        analysis.description,
        analysis.spaces,
        {"Dma": (Cell(("width", "irq", "enable")), Cell(("count",)))},
        HAND,
    )
    merges = design(analysis, apart).merging["start"].merges
    assert [merge.slots for merge in merges if len(merge.uses) > 1] == [("width", "irq")]


PARTED = """
#include "edgewright_hal.h"
bfGroup G { bit rse(level) level[3]; uint8 hw count[4]; uint17 en; bit rse(in) in; uint32 hw total; uint8 low; };
make_device(G, dev, 0x40000000);
void indexed(bfGroup G *g, uint8_t x) { g->in = x; g->level[x % 3u] = x; g->en = 3; }
void wide(uint8_t x) { dev->low = x; dev->total = 5; dev->in = 1; }
void branch(uint8_t x) { dev->low = x; if (x) dev->in = 1; dev->en = x; }
uint32_t ahead(uint8_t x) { dev->low = x; dev->in = 1; x += dev->count[x & 3]; dev->en = x; return x + dev->low; }
"""


def test_verification_finds_settings_that_pass_what_hardware_changes_too(tmp_path, monkeypatch):
    pytest.importorskip("unicorn")
    head = CHAINED[: CHAINED.index("void start")]
    (tmp_path / "dma.c").write_text(head + "void f(uint16_t n) { dma->width = 3; dma->count = n; dma->irq = 1; }")
    cells = {"Dma": (Cell(("width", "irq")), Cell(("count",)), Cell(("enable",)))}

    def verified() -> bool:
        analysis = analyse([tmp_path / "dma.c"])
        layout = assemble(analysis.description, analysis.spaces, cells, HAND)
        return verify(analysis, design(analysis, layout), calls=4).is_equal

    assert verified()
    monkeypatch.setattr(Conflicts, "is_gate_for", lambda *_: False)
    monkeypatch.setattr(merge, "_in_order", lambda merges, _: merges)
    assert not verified()


def test_what_hardware_changes_too_is_not_written_after_settings_that_follow(tmp_path, monkeypatch):
    """It may start something: `width`, written after it, must not be there by then, though `irq` could wait."""
    pytest.importorskip("unicorn")
    head = CHAINED[: CHAINED.index("void start")]
    (tmp_path / "dma.c").write_text(head + "void f(void) { dma->enable = 1; dma->width = 3; dma->irq = 1; }")
    cells = {"Dma": (Cell(("enable", "irq")), Cell(("width",)), Cell(("count",)))}

    def made() -> Design:
        analysis = analyse([tmp_path / "dma.c"])
        return design(analysis, assemble(analysis.description, analysis.spaces, cells, HAND))

    assert not [one for one in made().merging["f"].merges if len(one.uses) > 1]
    best = chosen_design(made().analysis, goal=LayoutGoal(minimise="accesses"))
    assert verify(best.analysis, best, calls=4).is_equal
    monkeypatch.setattr(Conflicts, "stops_write", lambda *_: None)
    wrong = made()
    assert [one.slots for one in wrong.merging["f"].merges if len(one.uses) > 1] == [("enable", "irq")]
    assert not verify(wrong.analysis, wrong, calls=4).is_equal


@pytest.mark.parametrize("views", [True, False])
@pytest.mark.parametrize("minimise", ["balanced", "accesses", "code", "map"])
def test_layouts_know_which_writes_stay_apart_at_others_of_what_hardware_changes(tmp_path, minimise, views):
    """Laid out as if `in` and `en` were one write, a register would have to read `in` to put it back (seed 835761)."""
    pytest.importorskip("unicorn")
    (tmp_path / "driver.c").write_text(PARTED)
    analysis = analyse([tmp_path / "driver.c"])
    known = analysis.description, analysis.spaces
    layout = lay_out_optimal(*known, analysis.joints, LayoutGoal(minimise=minimise, views=views))
    made = design(analysis, layout)  # at the first try
    assert not faults(*known, layout, real_joints(made))
    assert verify(analysis, made, calls=20).is_equal


@settings(max_examples=30, deadline=None)
@given(st.permutations("abhijk"), st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_costs_of_places_are_those_of_what_is_merged(order, homes):
    """However six fields are written and lie in three registers: joints and merges come to the same writes."""
    fields = "uint3 a; uint3 b; uint3 hw h; uint3 hw i; uint3 w1c j; uint3 w1c k;"
    source = f'#include "edgewright_hal.h"\nbfGroup G {{ {fields} }};\nmake_device(G, g, 0x1000);\n'
    with TemporaryDirectory() as folder:
        path = Path(folder) / "driver.c"
        path.write_text(source + "void f(uint32_t x) { " + " ".join(f"g->{name} = x;" for name in order) + " }")
        analysis = analyse([path])
    cells = [Cell(tuple(name for name, home in zip("abhijk", homes, strict=True) if home == n)) for n in range(3)]
    layout = assemble(
        *(known := (analysis.description, analysis.spaces)), {"G": tuple(c for c in cells if c.slots)}, HAND
    )
    made = design(analysis, layout)
    foreseen = [run for joint in analysis.joints for cell in cells for run in parted(joint.legs, frozenset(cell.slots))]
    done = [frozenset(joint.slots) for joint in real_joints(made)]
    assert sorted(map(sorted, foreseen)) == sorted(map(sorted, done))
    before, after = (cost_of(*known, layout, joints).accesses for joints in (analysis.joints, real_joints(made)))
    assert before >= after  # what is known of a field that another register's write parted was not counted on
