"""The words of the language that speak of several accesses: together, snapshot, unordered, gathers, assign and more."""

from __future__ import annotations

from functools import partial
from subprocess import run

import pytest

from edgewright.hal.design import Design
from edgewright.hal.design_flow import analyse
from edgewright.hal.export import exports
from edgewright.hal.generate import generate
from edgewright.hal.language.description import Refused
from edgewright.hal.language.desugar import desugar
from edgewright.hal.language.source import HEADER, _parse
from edgewright.hal.layout.cost import LayoutGoal
from edgewright.hal.layout_choice import chosen_design
from edgewright.hal.verify.measurement import code_sizes_of
from edgewright.hal.verify.verifier import missing_tools, verify
from tests.helpers.tools import command

HEAD = """
#include "edgewright_hal.h"
bfGroup Rtc {
    uint5 hw together(minutes, seconds) hours;
    uint6 hw minutes;
    uint6 hw seconds;
    uint8 alarm;
    uint16 ro together(high) low;
    uint16 ro high;
};
bfGroup Uart {
    bit ro rx; bit ro tx; bit w1c error; bit ro busy; bit ro fault; uint8 fifo data; bit wse(busy) go; bit mode;
};
bfGroup Lamp { bit on; uint4 level; };
make_device(Rtc, rtc, 0x40000000);
make_device(Uart, uart, 0x40001000);
make_device(Lamp, lamp, 0x40002000);
unordered(lamp);
uint32_t other(uint32_t value);
"""


def made(folder, text: str, minimise: str = "balanced") -> Design:
    (folder / "f.c").write_text(HEAD + text)
    return chosen_design(analyse([folder / "f.c"]), goal=LayoutGoal(minimise=minimise))


def merged(design: Design, function: str = "f") -> set[frozenset[str]]:
    """The fields of each access that stands for several."""
    merges = design.merging[function].merges
    return {frozenset(use.access.field for use in merge.uses) for merge in merges}


def refused(folder, text: str) -> str:
    with pytest.raises(Refused) as refusal:
        made(folder, text)
    return str(refusal.value)


TIME = {"hours", "minutes", "seconds"}
READ = "uint32_t h = rtc->hours, m = rtc->minutes, s = rtc->seconds; return h * 3600 + m * 60 + s;"


@pytest.mark.parametrize("minimise", ["balanced", "code", "accesses", "map"])
def test_fields_that_are_together_share_a_register_and_an_access(tmp_path, minimise):
    text = f"uint32_t f(void) {{ {READ} }}\n"
    text += "void g(int h, int m, int s) { rtc->hours = h; rtc->minutes = m; rtc->seconds = s; }\n"
    text += "uint32_t second(void) { return rtc->seconds; }\nvoid a(int v) { rtc->alarm = v; }"
    design = made(tmp_path, text, minimise)
    assert merged(design) == {frozenset(TIME)}
    assert any(fields >= TIME for fields in merged(design, "g"))
    registers = [{piece.slot for piece in r.pieces} for r in design.layout.spaces["Rtc"].registers]
    assert sum(bool(TIME & slots) for slots in registers) == 1
    assert sum(bool({"low", "high"} & slots) for slots in registers) == 1


TORN = {
    "a call in between": (
        "uint32_t f(void) { uint32_t h = rtc->hours; other(h); return h + rtc->minutes; }",
        "call",
    ),
    "another loop": ("uint32_t f(void) { uint32_t h = rtc->hours; while (!rtc->minutes) { } return h; }", "loop"),
    "part of an expression": (
        "void f(int v) { rtc->hours = rtc->minutes = v; rtc->seconds = v; }",
        "larger expression",
    ),
    "only one of them written": ("void f(int v) { rtc->hours = v; }", "written without 'minutes'"),
    "read under a condition": (
        "uint32_t f(int n) { uint32_t a = rtc->low; if (n) a += rtc->high; return a; }",
        "nobody",
    ),
}


@pytest.mark.parametrize("case", TORN)
def test_fields_that_are_together_are_not_accessed_apart(tmp_path, case):
    text, why = TORN[case]
    story = refused(tmp_path, text)
    assert "together" in story and why in story and f"f.c:{HEAD.count(chr(10)) + 1}:" in story


def test_one_of_several_may_be_read_again(tmp_path):
    """Only where each access lacks something of the other are the values of two times."""
    again = READ.replace("return", "while (rtc->seconds == s) { } return")
    assert merged(made(tmp_path, f"uint32_t f(void) {{ {again} }}")) == {frozenset(TIME)}
    text = "uint32_t f(void) { uint32_t a = rtc->low, b = rtc->high; other(a); return b + rtc->low + rtc->high; }"
    assert merged(made(tmp_path, text)) == {frozenset({"low", "high"})}


GROUPS = {
    "bit a; uint32 together(a) b;": "33 bits do not fit into one access of 32",
    "uint32 ro together(high) low; uint32 ro high;": "64 bits do not fit",
    "bit together(c) a;": "'c', which is no field of 'G'",
    "bit together(a) a;": "itself",
    "bit together(b) a; bit b[4];": "'b' is an array",
    "bit ro together(b) a; bit fifo b;": "reading 'b' acts",
    "bit together(b) a; bit wo b;": "'b' is wo",
    "bit together(b) a; bit pin(0, 3) b;": "only some of them are pinned",
    "uint40 split together(b) a; bit b;": "split and together",
}


@pytest.mark.parametrize("members", GROUPS)
def test_sets_that_no_register_can_hold_are_refused(tmp_path, members):
    text = f"bfGroup G {{ {members} }};\nmake_device(G, g, 0x50000000);\nvoid f(void) {{ lamp->on = 1; }}"
    assert GROUPS[members] in refused(tmp_path, text)


SERVED = {
    "chain": ("void f(void) { snapshot { if (uart->rx) other(1); else if (uart->tx) other(2); } }", {"rx", "tx"}),
    "one after the other": (
        "uint32_t f(void) { uint32_t n = 0; snapshot { if (uart->rx) n = uart->data;\n"
        "if (uart->tx) uart->data = 3; if (uart->error) { uart->error = 1; other(1); } } return n; }",
        {"rx", "tx", "error"},
    ),
    "operands": (
        "int f(void) { snapshot return uart->rx && !uart->tx ? 1 : uart->fault; }",
        {"rx", "tx", "fault"},
    ),
    "polling": ("int f(int n) { snapshot while (uart->busy && !uart->fault) if (!n--) break; return n; }", None),
    "polling with a body": (
        "int f(int n) { hal_snapshot while (uart->busy) { if (uart->fault || !n--) return 1; } return 0; }",
        {"busy", "fault"},
    ),
    "for": (
        "int f(int n) { int i;\nsnapshot for (i = 0; uart->busy && !uart->fault && i < n; i++) { } return i; }",
        None,
    ),
    "in a loop": (
        "int f(int n) { while (n--) snapshot { if (uart->rx) return 1; if (uart->tx) return 2; } return 0; }",
        {"rx", "tx"},
    ),
    "same field twice": ("int f(void) { snapshot { if (uart->rx) other(1); return uart->rx; } }", {"rx"}),
}


@pytest.mark.parametrize("case", SERVED)
def test_a_snapshot_is_served_by_one_read(tmp_path, case):
    text, fields = SERVED[case]
    design = made(tmp_path, text)
    assert merged(design) == {frozenset(fields or {"busy", "fault"})}
    assert "snapshot" not in generate(design, "f")["f.c"].split("f(", 1)[1]
    bare = text.replace("hal_snapshot ", "").replace("snapshot ", "")
    assert merged(made(tmp_path, bare)) != merged(design)


APART = {
    "written in between": "int f(void) { snapshot { int e = uart->error; uart->error = 1; return e + uart->error; } }",
    "touched in between": "int f(void) { snapshot { int b = uart->busy; uart->go = 1; return b + uart->busy; } }",
    "inner loop": "int f(void) { snapshot { if (uart->rx) while (uart->busy) { } return 1; } }",
    "outside": "int f(void) { int a; snapshot { a = uart->rx; } other(1); return a + uart->tx; }",
    "two of them": "int f(void) { int a; snapshot a = uart->rx; other(1); snapshot a += uart->tx; return a; }",
    "another pointer": "int f(bfGroup Uart *u) { snapshot { int a = u->rx; u = uart; return a + u->tx; } }",
    "line of #if": "int f(void) { snapshot { int a = uart->rx;\n#ifdef X\nother(1);\n#endif\nreturn a + uart->tx; } }",
}


@pytest.mark.parametrize("case", APART)
def test_what_a_snapshot_does_not_serve(tmp_path, case):
    assert merged(made(tmp_path, APART[case])) == set()


def test_a_snapshot_of_no_statement_is_refused(tmp_path):
    assert "no statement" in refused(tmp_path, "int f(void) { int a = snapshot uart->rx; return a; }")


def test_an_unordered_device_lets_others_pass(tmp_path):
    text = "void f(void) { lamp->on = 1; uart->mode = 1; uart->go = 1; lamp->level = 2; }"
    assert merged(made(tmp_path, text)) == {frozenset({"on", "level"})}
    text = "void f(void) { rtc->alarm = 1; lamp->on = 1; uart->mode = 1; lamp->level = 2; rtc->alarm = 2; }"
    assert merged(made(tmp_path, text)) == {frozenset({"on", "level"})}
    text = "void f(void) { lamp->on = 1; other(1); lamp->level = 2; }"
    assert merged(made(tmp_path, text)) == set()
    text = "int f(void) { uart->mode = 1; rtc->alarm = 2; return uart->rx + uart->tx + lamp->on; }"
    assert merged(made(tmp_path, text)) == {frozenset({"rx", "tx"})}


def test_devices_of_one_group_have_an_access_in_common(tmp_path):
    buses = "make_device(Lamp, far, 0x40008000);\nbus(far, 16, 8);\nvoid f(void) { lamp->on = 1; far->on = 1; }"
    found = refused(tmp_path, buses)
    assert "group 'Lamp' is on a bus of 16 bits, and on one that accesses 32 at least" in found


def test_unordered_names_a_device(tmp_path):
    assert "unordered(none): no device 'none'" in refused(tmp_path, "unordered(none);\nvoid f(void) { lamp->on = 1; }")
    assert "in_memory(none): no device 'none'" in refused(tmp_path, "in_memory(none);\nvoid f(void) { lamp->on = 1; }")


GATHERED = """
#include "edgewright_hal.h"
bfGroup Channel { uint16 limit; bit w1c done; bit w1c failed; bit ro busy; };
bfGroup Dma {
    bit on;
    bit wo wse(Channel::busy) stop;
    bfGroup Channel channels[6];
    uint6 gathers(channels, done) finished;
    uint6 gathers(channels, failed) broken;
    uint6 gathers(channels, busy) active;
    bit w1c overrun[4];
    uint4 gathers(overrun) overruns;
};
make_device(Dma, dma, 0x40000000);
"""


def gathered(folder, text: str, head: str = GATHERED) -> Design:
    (folder / "f.c").write_text(head + text)
    return chosen_design(analyse([folder / "f.c"]))


def test_a_word_is_read_at_once_and_its_bits_by_number(tmp_path):
    design = gathered(
        tmp_path,
        "uint32_t f(void) { return dma->finished | dma->broken << 8; }\n"
        "int g(uint32_t n) { int d = dma->channels[n].done; return d | dma->channels[n].failed << 1; }\n"
        "void h(uint32_t n) { dma->channels[n].done = 1; dma->channels[2].failed = 1; dma->overrun[n & 3u] = 1; }\n"
        "uint32_t take(void) { uint32_t done = dma->finished; dma->finished = done; return done; }\n"
        "int busy(uint32_t n) { uint32_t a = dma->active; dma->stop = 1; return a + dma->channels[n].busy; }\n"
        "static void more(bfGroup Channel *c) { c->limit++; }\nvoid m(uint32_t n) { more(&dma->channels[n]); }",
    )
    assert merged(design) == {frozenset({"finished", "broken"})}
    assert merged(design, "g") == {frozenset({"finished", "broken"})}
    assert not merged(design, "busy")  # stopping changes what is busy
    slots = {slot.name for space in design.analysis.spaces.values() for slot in space.slots}
    assert slots == {"limit", "on", "stop", "finished", "broken", "active", "overruns"}
    text = generate(design, "f")["f.c"]
    assert "HAL_WRITE_Dma_finished_bit(dma, n, 1)" in text and "HAL_WRITE_Dma_overruns_bit(dma, n & 3u, 1)" in text
    if not missing_tools("rv32imc"):
        found = verify(design.analysis, design, calls=8, measure=False)
        assert found.is_equal and not any(checked.unreached for checked in found.functions)


FLAGS = """
#include "edgewright_hal.h"
bfGroup Mac {
    bit w1c sent; bit w1c received; bit w1c overflow; bit w1c fault; bit enable; uint8 ro wait; bit w1s again;
};
make_device(Mac, mac, 0x40028000);
uint32_t take(void)
{
    uint32_t s, r, o, f;
    snapshot { s = mac->sent; r = mac->received; o = mac->overflow; f = mac->fault; }
    mac->sent = (uint8_t)s;
    mac->received = (uint8_t)r;
    mac->overflow = (uint8_t)o;
    mac->fault = (uint8_t)f;
    return s | r << 1 | o << 2 | f << 3;
}
void restart(void) { mac->sent = 1; mac->enable = 1; mac->received = 1; mac->again = 1; mac->fault = 1; }
"""


def test_flags_in_a_row_are_cleared_at_once_and_taken_as_a_word(tmp_path):
    """Nothing changes places with a flag; compiled, all flags together are one load and one store."""
    (tmp_path / "f.c").write_text(FLAGS)
    analysis = analyse([tmp_path / "f.c"])
    is_there = not missing_tools("rv32imc")
    design = chosen_design(analysis, measure=partial(code_sizes_of, target="rv32imc") if is_there else None)
    writes = {frozenset({"sent", "received", "overflow", "fault"})}
    assert merged(design, "take") == writes  # of the reads and of the writes
    assert all("sent" not in fields for fields in merged(design, "restart"))
    if is_there:
        register = next(r for r in design.layout.spaces["Mac"].registers if any(p.slot == "sent" for p in r.pieces))
        flags = [p for p in register.pieces if p.slot in ("sent", "received", "overflow", "fault")]
        assert [piece.bit - flags[0].bit for piece in flags] == [0, 1, 2, 3]
        assert verify(analysis, design, calls=8, measure=False).is_equal


def test_documents_say_what_the_bits_of_a_word_are(tmp_path):
    design = gathered(tmp_path, "uint32_t f(void) { return dma->finished + dma->overruns; }")
    files = exports(design, "f")
    assert all("bit n is channels[n].done; writing 1 clears" in str(text) for text in files.values())
    assert all("bit n is overrun[n]" in str(text) for text in files.values())


BROKEN_GATHERING = {
    "no array": ("uint2 gathers(on) x;", "'on' is no array"),
    "no field of it": ("uint6 gathers(channels, level) x;", "no field of 'Channel'"),
    "other size": ("uint8 gathers(channels, done) x;", "one bit for each element"),
    "several bits": ("uint6 gathers(channels, limit) x;", "no single bit"),
    "written back": ("uint6 gathers(channels, enable) x;", "put back the others"),
    "attributes of its own": ("uint6 w1c gathers(channels, done) x;", "more than that"),
    "twice": ("uint6 gathers(channels, done) x; uint6 gathers(channels, done) y;", "gathered twice"),
    "elsewhere not": ("uint6 gathers(channels, done) x; bfGroup Channel spare;", "no word gathers 'done'"),
}


@pytest.mark.parametrize("name", BROKEN_GATHERING)
def test_words_that_cannot_be(tmp_path, name):
    members, reason = BROKEN_GATHERING[name]
    head = f"""
#include "edgewright_hal.h"
bfGroup Channel {{ uint16 limit; bit enable; bit w1c done; }};
bfGroup Dma {{ bit on; bfGroup Channel channels[6]; {members} }};
make_device(Dma, dma, 0x40000000);
"""
    with pytest.raises(Refused, match=reason):
        gathered(tmp_path, "void f(void) { dma->on = 1; }", head)


def test_a_pointer_to_an_element_does_not_reach_its_word(tmp_path):
    with pytest.raises(Refused, match=r"'Channel::done' is a bit of a word, which 'Channel \*' does not reach"):
        gathered(tmp_path, "void f(bfGroup Channel *c) { c->done = 1; }")


@pytest.mark.parametrize("touched", ["Descriptor", "Descriptor::status, Descriptor::own"])
def test_pinned_fields_that_hardware_changes_are_written_at_once(tmp_path, touched):
    """A descriptor in memory: what shares a word with a bit of the hardware cannot be put back."""
    head = f"""
#include "edgewright_hal.h"
bfGroup Descriptor {{
    uint32 pin(0, 0) buffer; uint14 pin(4, 0) length; bit pin(4, 14) first; bit pin(4, 15) last;
    uint16 hw pin(8, 0) status; bit hw pin(8, 31) own;
}};
bfGroup Ring {{ bfGroup Descriptor entries[8]; }};
bfGroup Mac {{ bit wo wse({touched}) poll; }};
make_device(Ring, tx, 0x20004000);
make_device(Ring, rx, 0x20004080);
make_device(Mac, mac, 0x40028000);
"""
    code = """int f(uint32_t n, uint32_t address, uint16_t bytes)
{
    bfGroup Descriptor *d = &tx->entries[n & 7u];
    if (d->own) return 0;
    d->buffer = address; d->length = bytes; d->first = 1; d->last = 1; d->status = 0; d->own = 1;
    mac->poll = 1;
    return (int)rx->entries[n & 7u].status;
}"""
    design = gathered(tmp_path, code, head)
    assert merged(design) == {frozenset({"length", "first", "last"}), frozenset({"status", "own"})}
    if not missing_tools("rv32imc"):
        assert verify(design.analysis, design, calls=4, measure=False).is_equal


IN_BLOCK = """
#include "edgewright_hal.h"
bfGroup X { uint8 a; uint8 b[4]; uint8 c; };
bfGroup Y { uint8 a; uint4 b; bit ro ready; bit w1c done; bit hw go; };
bfGroup Z { uint8 a; uint8 fifo data; };
bfGroup D { bfGroup X x; bfGroup Y y; bfGroup Y ys[4]; bfGroup Z z; };
make_device(D, d, 0x40000000);
#define SET assign(p, a = 1);
#define KEEP(x) x
int f(int, int); void puts(const char *); void reassign(int);
void g(bfGroup X *p, bfGroup X *q, bfGroup Y *y, int k, int i, int c) {
"""
SPREAD = {
    "assign(p, a = 1);": "p->a = 1;",
    "f(1, 2); assign(p, a = f(1, 2), b[i] = c == 3 ? 1 : 2);": "f(1, 2); p->a = f(1, 2); p->b[i] = c == 3 ? 1 : 2;",
    "assign(&d->x,\n  a = 1, /* a, b; */\n  c = ',');": "\n  (&d->x)->a = 1; /* a, b; */\n  (&d->x)->c = ',';",
    "if (k) assign(p, a = 1, c = 2); else assign(q, a = 3);": "if (k) { p->a = 1; p->c = 2; } else { q->a = 3; }",
    "hal_assign(p, a = 1) ;": "p->a = 1 ;",
    "k = assign(p, a = 1) + 1;": None,
    "KEEP(assign(p, a = 1);)": None,
    "\n#undef assign\nvoid assign(int, int); assign(k, i = 1);": None,
    "k = read_and_clear(p->a);": "k = (p->a = p->a);",
    "if (read_and_clear(d->x.b[i + 1]) & 3) k = 1;": "if ((d->x.b[i + 1] = d->x.b[i + 1]) & 3) k = 1;",
    "k = hal_read_and_clear( p->c );": "k = (p->c = p->c );",
    "k = read_and_clear(p->b[i++]);": None,
    "k = read_and_clear(p->b[f(1, 2)]);": None,
    "assign(p, a == 1);": None,
    "assign(p, 1, 2);": None,
    "reassign(k); /* assign(p, a = 1); */": None,
    'SET puts("assign(p, a = 1);");': None,
    "*y = (bfGroup Y){.a = 3, .go = 1};": "y->b = 0; y->a = 3; y->go = 1;",
    "if (k)\n  d->y = (bfGroup Y){\n    .go = k > 1,\n    .b = 1,\n  };": "if (k)\n"
    "  { d->y.a = 0; \n    d->y.go = k > 1;\n    d->y.b = 1\n  ; }",
    "*y = (bfGroup Y){.a = k};": "y->b = 0; y->a = k; y->go = 0;",
    "d->ys[i & 3] = (bfGroup Y){.b = 1};": "d->ys[i & 3].a = 0; d->ys[i & 3].b = 1; d->ys[i & 3].go = 0;",
    "*(k ? y : &d->y) = (bfGroup Y){.b = 1, .a = 0, .go = 0};": "(k ? y : &d->y)->b = 1; "
    "(k ? y : &d->y)->a = 0; (k ? y : &d->y)->go = 0;",
    "d->ys[i++] = (bfGroup Y){.b = 1};": None,
    "d->ys[d->y.a] = (bfGroup Y){.b = 1};": None,
    "*y = (bfGroup Y){.a = f(1, 2)};": None,
    "*y = (bfGroup Y){3, 4};": None,
    "*y = (bfGroup Y){.a = d->y.a, .go = 1};": None,
    "d->x = (bfGroup X){.a = 1};": None,
    "d->z = (bfGroup Z){.a = 1};": None,
}


def spread_text(tmp_path, text: str) -> str:
    file = tmp_path / "spread.c"
    file.write_text(text)
    return desugar([_parse(file, [])], {str(file): text.encode()}, HEADER.name)[str(file)].decode()


@pytest.mark.parametrize("text", SPREAD)
def test_fields_at_once_are_taken_apart_line_by_line(tmp_path, text):
    expected = SPREAD[text]
    found = spread_text(tmp_path, f"{IN_BLOCK}{text} }}")
    assert found == f"{IN_BLOCK}{text if expected is None else expected} }}"


ASSIGNED = """
#include "edgewright_hal.h"
bfGroup Part { uint8 a; uint8 b; };
bfGroup Dev { bfGroup Part parts[4]; uint16 x; bit y; bit go; };
make_device(Dev, dev, 0x40000000);
void f(uint16_t x, int y) { assign(dev, x = x, y = y > 0, go = 1); }
void g(uint32_t n, int y) { if (y) assign(&dev->parts[n & 3u], a = 1, b = 2); else assign(dev, parts[1].a = 3); }
"""


def test_assign_means_the_same_to_the_tool_and_to_a_compiler(tmp_path):
    (tmp_path / "f.c").write_text(ASSIGNED)
    design = chosen_design(analyse([tmp_path / "f.c"]))
    assert merged(design) == {frozenset({"x", "y", "go"})}
    assert "HAL_WRITE_Dev_x_y_go(dev, x, y > 0, 1);" in generate(design, "f")["f.c"]
    if not missing_tools("rv32imc"):
        assert verify(design.analysis, design, calls=8, measure=False).is_equal
    compiler = command("gcc")
    flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-I", str(HEADER.parent), "-S", "-O2", "-o"]
    texts = {"macro": ASSIGNED, "plain": spread_text(tmp_path, ASSIGNED)}
    for name, text in texts.items():
        (tmp_path / "same.c").write_text(text)
        run([*compiler, *flags, str(tmp_path / f"{name}.s"), "same.c"], cwd=tmp_path, check=True)
    assert (tmp_path / "macro.s").read_text() == (tmp_path / "plain.s").read_text()


FILLED = """
#include "edgewright_hal.h"
bfGroup Part { uint8 a; uint12 b; bit c; bit hw go; };
bfGroup Dev { bfGroup Part parts[4]; bfGroup Part own; bit on; };
make_device(Dev, dev, 0x40000000);
void fill(bfGroup Part *p, uint32_t n) { *p = (bfGroup Part){.b = (uint16_t)(n & 0xfffu), .go = 1}; }
void one(uint32_t n) { dev->parts[n & 3u] = (bfGroup Part){.a = (uint8_t)n,}; dev->own = (bfGroup Part){.c = n & 1u}; }
"""


def test_a_literal_fills_a_group(tmp_path):
    (tmp_path / "f.c").write_text(FILLED)
    design = chosen_design(analyse([tmp_path / "f.c"]))
    assert merged(design, "fill") == {frozenset({"a", "b", "c", "go"})}
    if not missing_tools("rv32imc"):
        assert verify(design.analysis, design, calls=8, measure=False).is_equal
    test = FILLED.replace(
        "void one",
        """
    #include <stdio.h>
    int main(void) { struct Part p = {1, 2, 1, 0}; fill(&p, 77); printf("%d %d %d %d", p.a, p.b, p.c, p.go); }
    void one""",
    )
    found = []
    for text in (test, spread_text(tmp_path, test)):
        (tmp_path / "same.c").write_text(text)
        run([*command("gcc"), "-w", "-I", str(HEADER.parent), "-o", "same", "same.c"], cwd=tmp_path, check=True)
        found.append(run(["./same"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout)
    assert found == ["0 77 0 1"] * 2
