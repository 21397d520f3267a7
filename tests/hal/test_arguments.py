"""Fields as arguments of macros, and pointers to groups that go through `void *`."""

from __future__ import annotations

import pytest

from edgewright.hal.design import Design
from edgewright.hal.design_flow import analyse
from edgewright.hal.generate import generate
from edgewright.hal.language.description import Refused
from edgewright.hal.layout_choice import chosen_design
from edgewright.hal.verify.verifier import missing_tools, verify

HEAD = """
#include "edgewright_hal.h"
#include <assert.h>
#define likely(x) __builtin_expect(!!(x), 1)
#define WAIT(condition) while (!(condition)) { }
#define CHECK(condition, result) do { if (!(condition)) return result; } while (0)
#define NUMBER 2
#define TWICE(x) ((x) + (x))
#define NEVER(x) ((void)0)
#define TEXT(x) ((x) ? #x : "")
#define SET(x, value) ((x) = (value))
#define READY(timer) ((timer)->ready)
#define FIELD(timer, field) ((timer)->field)
bfGroup Channel { bit ro on; };
bfGroup Timer { bit ro ready; bit ro error; uint4 mode; uint16 limit; bfGroup Channel channels[4]; };
make_device(Timer, timer, 0x40000000);
make_device(Timer, spare, 0x40001000);
struct setup { int mode; };
int request_irq(int number, void (*routine)(void *), void *context);
void later(void (*call)(void *), void *context);
void keep(void *context);
"""


def made(folder, text: str) -> Design:
    (folder / "f.c").write_text(HEAD + text)
    return chosen_design(analyse([folder / "f.c"]))


def body(design: Design) -> str:
    return generate(design, "f")["f.c"].split("f(", 1)[1]


def refused(folder, text: str) -> str:
    with pytest.raises(Refused) as refusal:
        made(folder, text)
    return str(refusal.value)


PLAIN = {
    "WAIT(timer->ready);": "WAIT(HAL_READ_Timer_ready_polled(timer));",
    "if (likely(timer->ready & timer->error)) return 1;": "if (likely(tmp1 & tmp2)) return 1;",
    "while (likely(timer->ready | timer->error)) { }": "(timer, &tmp1, &tmp2), likely(tmp1 | tmp2))",
    "assert(timer->limit != 3);": "assert(HAL_READ_Timer_limit(timer) != 3);",
    "CHECK(timer->channels[NUMBER].on, 3);": "CHECK(HAL_READ_Timer_channels_2_on(timer), 3);",
    "CHECK(likely(timer->ready), 3);": "CHECK(likely(HAL_READ_Timer_ready(timer)), 3);",
    "NEVER(0);": "NEVER(0);",
}


@pytest.mark.parametrize("source", PLAIN)
def test_an_argument_that_is_evaluated_once_is_read_there(tmp_path, source):
    assert PLAIN[source] in body(made(tmp_path, f"int f(void) {{ {source} timer->mode = 1; return 0; }}"))


def test_a_hint_for_branches_is_no_barrier(tmp_path):
    text = "int f(int n) { timer->mode = 1; if (likely(n)) n++; timer->limit = 2; return n; }"
    assert "HAL_WRITE_Timer_mode_limit" in body(made(tmp_path, text))


HIDDEN = {
    "return TWICE(timer->ready);": "evaluates 'Timer::ready', its argument, 2 times",
    "NEVER(timer->ready); return timer->error;": "'NEVER' leaves out its argument, which accesses 'Timer::ready'",
    "return TEXT(timer->ready)[0];": "'TEXT' makes text of its argument",
    "SET(timer->mode, 1); return 0;": "a macro writes 'Timer::mode', its argument",
    "return READY(timer);": "a macro hides an access to 'Timer::ready'",
    "return FIELD(timer, ready);": "a macro hides an access to 'Timer::ready'",
}


@pytest.mark.parametrize("source", HIDDEN)
def test_macros_that_hide_an_access_are_refused(tmp_path, source):
    assert HIDDEN[source] in refused(tmp_path, f"int f(void) {{ {source} }}")


def test_other_structs_may_be_left_out(tmp_path):
    made(tmp_path, "int f(struct setup *s) { NEVER(s->mode); return timer->mode; }")


CONTEXT = """
void tick(void *context)
{
    bfGroup Timer *t = (bfGroup Timer *)context;
    t->mode = 3;
    t->limit = 0;
}
void slow(void *context)
{
    bfGroup Timer *t = context;
    if (t->ready)
        t->limit = 1;
}
void f(bfGroup Timer *t)
{
    request_irq(3, tick, t);
    later(&slow, spare);
    t->mode = 1;
}
"""


def test_a_context_is_a_pointer_to_its_group(tmp_path):
    design = made(tmp_path, CONTEXT)
    text = generate(design, "f")["f.c"]
    assert "(bfGroup Timer *)context" in text and "request_irq(3, tick, t)" in text
    shared = {field.name for field in design.analysis.description.groups["Timer"].fields if field.shared_with_isr}
    assert shared == {"mode", "limit"}  # given to request_irq, so that it runs in interrupts


@pytest.mark.skipif(bool(missing_tools("rv32imc")), reason="no compiler or emulator for rv32imc")
def test_functions_with_a_context_are_verified(tmp_path):
    design = made(tmp_path, CONTEXT)
    found = verify(design.analysis, design, calls=8, measure=False)
    assert found.is_equal and all(checked.calls for checked in found.functions)


CASTS = {
    "((bfGroup Timer *)context)->mode = 1;": "a cast to a pointer to group",
    "keep(timer);": "passed to 'keep' as 'void *'",
    "static bfGroup Timer ring[4]; timer->mode = 1;": "descriptors in memory are a device too",
    "bfGroup Timer *t = (bfGroup Timer *)(context + 4); t->mode = 1;": "a cast to a pointer to group",
}


@pytest.mark.parametrize("source", CASTS)
def test_other_casts_are_refused(tmp_path, source):
    assert CASTS[source] in refused(tmp_path, f"void f(char *context) {{ {source} }}".replace("char", "void"))


DESCRIPTORS = """
#include "edgewright_hal.h"
bfGroup Descriptor {
    uint32 pin(0, 0) buffer;
    uint11 pin(4, 0) length;
    bit hw pin(8, 31) own;
    uint16 hw pin(8, 0) status;
};
bfGroup Ring { bfGroup Descriptor entries[8]; };
bfGroup Mac { bit enable; uint8 wo wse(Descriptor) poll; };
make_device(Ring, ring, 0x20004000);
make_device(Mac, mac, 0x40000000);
void f(uint32_t number, uint32_t address, uint32_t bytes)
{
    bfGroup Descriptor *d = &ring->entries[number & 7];
    d->buffer = address;
    d->length = bytes;
    d->status = 0;
    d->own = 1;
    mac->poll = 1;
}
"""


def test_descriptors_in_memory_are_a_device(tmp_path):
    """Where the hardware fixes their bits, pins say so; what is written together is one access all the same."""
    (tmp_path / "f.c").write_text(DESCRIPTORS)
    design = chosen_design(analyse([tmp_path / "f.c"]))
    places = {
        piece.slot: (register.offset, piece.bit)
        for register in design.layout.spaces["Descriptor"].registers
        for piece in register.pieces
    }
    assert places == {"buffer": (0, 0), "length": (4, 0), "own": (8, 31), "status": (8, 0)}
    assert design.layout.spaces["Ring"].size >= 8 * 12
