"""Faults of generated code that look right at a glance, planted one by one: verification finds each of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edgewright.hal.design_flow import analyse, design, naive
from edgewright.hal.generate import space_registers
from edgewright.hal.layout.assembly import lay_out_naive
from edgewright.hal.layout.layout import Layout, Piece, Register, SpaceLayout
from edgewright.hal.layout.paper import lay_out_paper
from edgewright.hal.verify import Verification, verify
from edgewright.hal.verify.order import BusEvent, disorder
from edgewright.hal.verify.verifier import compare_variants, variant_of

pytest.importorskip("unicorn")
HEAD = """
#include "edgewright_hal.h"
bfGroup Lamp {
    bit on; uint4 mode; uint8 ro value; bit ro ready; uint4 channel; bit shared_with_isr armed; uint8 limit;
};
bfGroup Power { bit supply; bit low; };
make_device(Lamp, lamp, 0x40000000);
make_device(Power, power, 0x40001000);
enum order { START = 0x53544152, STOP = 0x53544f50 };
typedef volatile uint32_t vuint32_t;
#define CLOCK (*(vuint32_t *)0x50000000)
static _Atomic uint32_t done;
static volatile uint32_t seen;
void *const keep[2] = {(void *)&done, (void *)&seen};
__attribute__((weak)) void hook(void) {}
static void check(int broken) { while (1) { if (!broken) return; } }
"""
# What the source says, what the generated code does, and what is found.
FAULTS = {
    "endless loop": (
        "void f(int broken) { lamp->on = 1; if (broken) for (;;) {} lamp->mode = 2; }",
        "void f(int broken) { if (broken) for (;;) {} lamp->on = 1; lamp->mode = 2; }",
        "write of 1 to lamp.on is missing",
    ),
    "loop made by goto": (
        "void f(int broken) { lamp->on = 1; wait: if (broken) goto wait; lamp->mode = 2; }",
        "void f(int broken) { wait: if (broken) goto wait; lamp->on = 1; lamp->mode = 2; }",
        "write of 1 to lamp.on is missing",
    ),
    "callee that never returns": (
        "void f(int broken) { lamp->on = 1; check(broken); lamp->mode = 2; }",
        "void f(int broken) { check(broken); lamp->on = 1; lamp->mode = 2; }",
        "write of 1 to lamp.on is missing",
    ),
    "weak function": (
        "void f(void) { lamp->on = 1; hook(); lamp->mode = 2; }",
        "void f(void) { hook(); lamp->on = 1; lamp->mode = 2; }",
        "call of hook",
    ),
    "atomic store": (
        "void f(void) { lamp->on = 1; done = 1; lamp->mode = 2; }",
        "void f(void) { done = 1; lamp->on = 1; lamp->mode = 2; }",
        "variable done",
    ),
    "volatile variable": (
        "void f(void) { lamp->on = 1; seen = 1; lamp->mode = 2; }",
        "void f(void) { seen = 1; lamp->on = 1; lamp->mode = 2; }",
        "variable seen",
    ),
    "register of another peripheral": (
        "void f(void) { lamp->on = 1; CLOCK = 1; lamp->mode = 2; }",
        "void f(void) { CLOCK = 1; lamp->on = 1; lamp->mode = 2; }",
        "0x50000000",
    ),
    "plain field written less often": (
        "void f(uint32_t n) { next: lamp->on = (uint8_t)n; n = (n & 7u) >> 1; if (n) goto next; }",
        "void f(uint32_t n) { uint8_t on; next: on = (uint8_t)n; n = (n & 7u) >> 1; if (n) goto next; lamp->on = on; }",
        "lamp.on",
    ),
    "status read before a setting": (
        "uint32_t f(uint8_t n) { uint32_t r = lamp->ready; lamp->channel = n; return r << 16 | lamp->value; }",
        "uint32_t f(uint8_t n) { uint32_t r = lamp->ready, v = lamp->value; lamp->channel = n; return r << 16 | v; }",
        "read of lamp.value comes before write of .* to lamp.channel",
    ),
    "two devices": (
        "void f(uint8_t n) { power->supply = 1; lamp->mode = n; power->low = 1; }",
        "void f(uint8_t n) { lamp->mode = n; power->supply = 1; power->low = 1; }",
        "write of 1 to power.supply, which|lamp.mode comes before write of 1 to power.supply",
    ),
    "field that an interrupt routine sees": (
        "void f(uint8_t n) { lamp->limit = n; lamp->armed = 1; lamp->mode = n; }",
        "void f(uint8_t n) { lamp->armed = 1; lamp->limit = n; lamp->mode = n; }",
        "lamp.armed comes before write of .* to lamp.limit",
    ),
    "branch for one value of an enumeration": (
        "void f(enum order order) { if (order == START) { lamp->mode = 1; lamp->limit = 2; } }",
        "void f(enum order order) { if (order == START) { lamp->mode = 2; lamp->limit = 2; } }",
        "2 instead of 1|lamp.mode",
    ),
}


def compared(folder: Path, right: str, wrong: str, pack: bool = False) -> Verification:
    """A driver as it is meant against one in place of what would be generated from it."""
    analyses = []
    for name, text in (("right", right), ("wrong", wrong)):
        (folder / f"{name}.c").write_text(HEAD + text)
        analyses.append(analyse([folder / f"{name}.c"]))
    other = analyses[1]
    made = design(other, lay_out_paper(other.description, other.spaces, other.joints)) if pack else naive(other)
    variants = [variant_of(one, "rv32imc", measure=False) for one in (naive(analyses[0]), made)]
    return compare_variants(analyses[0], variants[0], variants[1], calls=16)


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(tmp_path, fault):
    right, wrong, story = FAULTS[fault]
    found = compared(tmp_path, right, wrong)
    assert not found.is_equal
    assert re.search(story, " ".join(difference.what for difference in found.differences))


def test_the_drivers_themselves_are_the_same(tmp_path):
    """All of them as they are meant, with whatever is merged in the end."""
    right = "\n".join(
        re.sub(r"\bf\(", f"f{number}(", text, count=1)
        .replace("wait:", f"w{number}:")
        .replace("goto wait", f"goto w{number}")
        for number, (text, _, _) in enumerate(FAULTS.values())
    )
    found = compared(tmp_path, right, right, pack=True)
    assert not found.differences
    assert all(checked.calls for checked in found.functions)
    assert not any(checked.unreached for checked in found.functions)


def test_nothing_compared_is_not_the_same(tmp_path):
    text = "struct when { uint32_t a, b; };\nvoid f(struct when w) { lamp->on = w.a; }"
    found = compared(tmp_path, text, text)
    assert found.is_empty and not found.is_equal and not found.differences


def test_an_access_that_no_call_reaches_is_named(tmp_path):
    text = "void f(uint32_t n) { lamp->on = 1; if (n == 0x12345678u) lamp->mode = 2; }"
    (checked,) = (c for c in compared(tmp_path, text, text).functions if c.function == "f")
    assert checked.calls and [name.split()[0] for name in checked.unreached] == ["lamp->mode"]


def test_a_neighbour_of_an_interrupt_routines_field_is_not_put_back_unguarded(tmp_path, monkeypatch):
    """A critical section left out: what an interrupt stores between the read and the write would be lost."""
    text = "void f(uint8_t n) { lamp->armed = 1; lamp->mode = n; lamp->on = 1; }\nvoid g(void) { lamp->armed = 0; }"
    text += "\nvoid h(uint8_t n) { lamp->mode = n; }"
    assert compared(tmp_path, text, text, pack=True).is_equal
    monkeypatch.setattr(space_registers.SpaceRegisters, "is_shared", lambda self, register: False)
    path = tmp_path / "right.c"
    analysis = analyse([path])
    space = analysis.spaces["Lamp"]
    pieces, bit = [], 0
    for slot in space.slots:
        if slot.field.mode.value == "rw":
            pieces.append(Piece(slot.name, bit, slot.field.bits))
            bit += slot.field.bits
    rest = [slot for slot in space.slots if slot.field.mode.value != "rw"]
    registers = [Register(0, 32, tuple(pieces))]
    registers += [Register(4 * n, 32, (Piece(s.name, 0, s.field.bits),)) for n, s in enumerate(rest, 1)]
    plain = lay_out_naive(analysis.description, analysis.spaces)
    layout = Layout({**plain.spaces, "Lamp": SpaceLayout("Lamp", tuple(registers), (), 4 * len(registers))}, "hand")
    variants = [variant_of(one, "rv32imc", measure=False) for one in (naive(analysis), design(analysis, layout))]
    found = compare_variants(analysis, variants[0], variants[1], calls=8)
    assert any("outside a critical section" in difference.what for difference in found.differences)


UNSEEN = {
    "a call that #ifdef leaves out": (
        "void f(void) {\n    lamp->on = 1;\n#ifdef TRACE\n    trace();\n#endif\n    lamp->mode = 2;\n}",
        ("edgewright.hal.language.macros.Macros.choices_in", lambda *_: []),
        "call of trace|trace",
    ),
    "a value that #ifdef leaves out": (
        "void f(void) {\n    lamp->mode =\n#ifdef BRIGHT\n    9 +\n#endif\n    2;\n}",
        ("edgewright.hal.analysis.bodies._cut", lambda *_: ()),
        "the line '#ifdef BRIGHT' is gone",
    ),
    "the number of a line": (
        "void f(void) {\n    lamp->mode = 1;\n    lamp->limit = __LINE__;\n}",
        ("edgewright.hal.generate.rewriter.Rewriter._number_lines", lambda self: None),
        "__LINE__ is not the number",
    ),
}


@pytest.mark.parametrize("fault", UNSEEN)
def test_what_no_run_shows_is_found(tmp_path, monkeypatch, fault):
    """The analysis, or the rewriting, as it was before it was mended: what both designs have wrong is found too."""
    text, (where, instead), story = UNSEEN[fault]
    (tmp_path / "f.c").write_text(HEAD + "void trace(void);\n" + text)
    monkeypatch.setattr(where, instead)
    analysis = analyse([tmp_path / "f.c"])
    made = design(analysis, lay_out_paper(analysis.description, analysis.spaces, analysis.joints))
    found = verify(analysis, made, calls=4, measure=False)
    assert re.search(story, " ".join(map(str, found.differences)))
    monkeypatch.undo()


def test_choices_of_the_preprocessor_are_verified(tmp_path):
    """As it should be: the same with and without what is left out."""
    text, _, _ = UNSEEN["a call that #ifdef leaves out"]
    (tmp_path / "f.c").write_text(HEAD + "void trace(void);\n" + text)
    analysis = analyse([tmp_path / "f.c"])
    made = design(analysis, lay_out_paper(analysis.description, analysis.spaces, analysis.joints))
    assert verify(analysis, made, calls=4, measure=False).is_equal


def step(kind: str, what: str, access: int, device: str = "a", plain: bool = True, value: int = 0) -> BusEvent:
    return BusEvent(kind, what, value, device, plain and kind == "write", access)


def test_orders_that_nobody_can_tell():
    one, two, other = step("write", "a.x", 1), step("write", "a.y", 2), step("write", "b.z", 3, "b")
    assert not disorder([one, two], [step("write", "a.y", 1), step("write", "a.x", 2)])
    assert not disorder([one, two], [step("write", "a.y", 1), step("write", "a.x", 1)])
    assert disorder([one, other], [step("write", "b.z", 1, "b"), step("write", "a.x", 2)])
    assert not disorder([one, other], [step("write", "b.z", 1, "b"), step("write", "a.x", 1)])
    assert disorder([one, step("read", "a.s", 2)], [step("read", "a.s", 1), step("write", "a.x", 2)])
    assert "missing" in disorder([one, two], [one])
    assert "too many" in disorder([one], [one, two])
    assert not disorder([one, two], [one], certain=1)


WORDS = """
#include "edgewright_hal.h"
bfGroup Clock {
    uint5 hw together(minutes) hours; uint6 hw minutes; bit on; bit ro busy; bit ro fault; bit wse(busy) go;
};
bfGroup Lamp { bit on; uint4 level; };
bfGroup Power { bit supply; uint4 mode; };
make_device(Clock, clk, 0x40000000);
make_device(Lamp, lamp, 0x40001000);
make_device(Power, power, 0x40002000);
unordered(lamp);
uint32_t other(uint32_t value);
"""
BROKEN_WORDS = {
    "together, read": (
        "uint32_t f(void) { uint32_t h = clk->hours; return h << 8 | clk->minutes; }",
        "uint32_t f(void) { uint32_t h = clk->hours; return h << 8 | clk->minutes; }",
        "two accesses, and their fields are together",
    ),
    "together, written": (
        "void f(uint8_t h, uint8_t m) { clk->hours = h; clk->minutes = m; }",
        "void f(uint8_t h, uint8_t m) { clk->hours = h; clk->minutes = m; }",
        "two accesses, and their fields are together",
    ),
    "a snapshot that is taken once for all turns of a loop": (
        "int f(uint8_t n) { snapshot while (clk->busy && !clk->fault) if (!n--) break; return n; }",
        "int f(uint8_t n) { snapshot { int b = clk->busy, e = clk->fault;\n"
        "while (b && !e) if (!n--) break; } return n; }",
        "missing|returns",
    ),
    "a read behind a snapshot that takes its value": (
        "int f(void) { int a; snapshot { a = clk->busy + clk->fault; } other(1); return a + clk->fault; }",
        "int f(void) { int a; snapshot { int b = clk->busy, e = clk->fault; a = b + e; other(1); a += e; } return a; }",
        "clk.fault|returns",
    ),
    "a flag of a snapshot after what changes it": (
        "int f(void) { int b; snapshot { b = clk->busy; clk->go = 1; b += clk->busy; } return b; }",
        "int f(void) { int b; snapshot { b = clk->busy; b += b; clk->go = 1; } return b; }",
        "missing|returns",
    ),
    "ordered devices beside an unordered one": (
        "void f(uint8_t n) { clk->on = 1; lamp->on = 1; power->supply = n; }",
        "void f(uint8_t n) { lamp->on = 1; power->supply = n; clk->on = 1; }",
        "comes before write of 1 to clk.on",
    ),
    "an unordered device across a call": (
        "void f(void) { lamp->on = 1; other(1); lamp->level = 2; }",
        "void f(void) { other(1); lamp->on = 1; lamp->level = 2; }",
        "lamp.on",
    ),
}


@pytest.mark.parametrize("fault", BROKEN_WORDS)
def test_broken_promises_of_words_are_found(tmp_path, monkeypatch, fault):
    """`wrong` has each field in a register of its own, so that what is together is accessed apart."""
    monkeypatch.setattr(f"{__name__}.HEAD", WORDS)
    right, wrong, story = BROKEN_WORDS[fault]
    found = compared(tmp_path, right, wrong)
    assert not found.is_equal
    assert re.search(story, " ".join(difference.what for difference in found.differences))
    assert compared(tmp_path, right, right, pack=True).is_equal


def test_what_an_unordered_device_may(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}.HEAD", WORDS)
    right = "void f(uint8_t n) { lamp->on = 1; clk->on = n; clk->go = 1; lamp->level = 2; power->mode = n; }"
    moved = "void f(uint8_t n) { clk->on = n; clk->go = 1; power->mode = n; lamp->on = 1; lamp->level = 2; }"
    assert compared(tmp_path, right, moved).is_equal
