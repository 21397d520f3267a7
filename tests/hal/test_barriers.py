"""What no access is moved across, and sources whose text cannot be followed."""

from __future__ import annotations

import pytest

from edgewright.errors import Infeasible
from edgewright.hal.design import Analysis
from edgewright.hal.design_flow import analyse
from edgewright.hal.generate import generate
from edgewright.hal.language.description import Refused
from edgewright.hal.layout.cost import LayoutGoal
from edgewright.hal.layout_choice import chosen_design

HEAD = """
#include "edgewright_hal.h"
bfGroup Lamp {
    bit on; uint4 mode; uint4 level; uint8 ro value; bit ro ready; uint8 ro fault; bit on2[4]; uint4 mode2[4];
};
bfGroup Power { bit supply; bit low; };
make_device(Lamp, lamp, 0x40000000);
make_device(Power, power, 0x40001000);
void other(void);
typedef volatile uint32_t vuint32_t;
static _Atomic uint32_t done;
static uint32_t current;
"""
WEAK = "__attribute__((weak)) void hook(void) {}\n"
APART = {
    "weak": WEAK + "void f(void) { lamp->on = 1; hook(); lamp->mode = 2; }",
    "weak by a macro": "#define W __attribute__((weak))\nW void hook(void);\nvoid hook(void) {}\n"
    "void f(void) { lamp->on = 1; hook(); lamp->mode = 2; }",
    "weak by a pragma": "void hook(void) {}\n#pragma weak hook\nvoid f(void) { lamp->on = 1; hook(); lamp->mode = 2; }",
    "calls a weak one": WEAK + "static void g(void) { hook(); }\nvoid f(void) { lamp->on = 1; g(); lamp->mode = 2; }",
    "callee with a loop": "static void g(int n) { while (n) { } }\n"
    "void f(int n) { lamp->on = 1; g(n); lamp->mode = 2; }",
    "two calls down": "static void g(int n) { a: if (n) goto a; }\nstatic void h(int n) { g(n); }\n"
    "void f(int n) { lamp->on = 1; h(n); lamp->mode = 2; }",
    "recursion": "static void g(int n) { if (n) g(n); }\nvoid f(int n) { lamp->on = 1; g(n); lamp->mode = 2; }",
    "loop": "void f(int n) { lamp->on = 1; if (n) for (;;) { } lamp->mode = 2; }",
    "loop without keywords": "void f(int n) { lamp->on = 1; a: if (n) goto a; lamp->mode = 2; }",
    "write in a loop of goto": "void f(uint32_t n) { a: lamp->on = n; n >>= 1; if (n) goto a; lamp->mode = 2; }",
    "read in a loop of goto": "int f(int n) { int b; a: b = lamp->ready; if (b && n--) goto a; return lamp->value; }",
    "a turn that goes on early": "void f(int n) {\n"
    "while (1) { lamp->on = n; if (n++ < 3) continue; lamp->mode = 2; break; } }",
    "loop entered in the middle": "void f(int n) { if (n) goto b;\n"
    "a: lamp->on = n; b: lamp->mode = 2; if (n--) goto a; }",
    "atomic": "void f(void) { lamp->on = 1; done = 1; lamp->mode = 2; }",
    "atomic builtin": "void f(uint32_t *p) { lamp->on = 1; __atomic_store_n(p, 1, 5); lamp->mode = 2; }",
    "volatile by another name": "void f(void) { lamp->on = 1; *(vuint32_t *)0x50000000 = 1; lamp->mode = 2; }",
    "#if": "void f(void) {\nlamp->on = 1;\n#ifdef TRACE\nother();\n#endif\nlamp->mode = 2;\n}",
    "#if behind a literal that looks like a comment": 'const char *url = "/*";\n'
    "void f(void) {\nlamp->on = 1;\n#ifdef TRACE\nother();\n#endif\nlamp->mode = 2; /* */\n}",
    "#if before the brace": "void f(int n) { lamp->on = 1;\nif (n) {\n#ifdef TRACE\n"
    "other();\n#endif\n}\nlamp->mode = 2; }",
    "macro of two meanings": "#ifdef TRACE\n#define T() other()\n#else\n#define T()\n#endif\n"
    "void f(void) { lamp->on = 1; T(); lamp->mode = 2; }",
    "macro defined again": "#define V 1\nvoid f(void) {\nlamp->mode = V;\n#undef V\n#define V 2\nlamp->level = V;\n}",
    "setjmp": "typedef long jmp_buf[64];\nint setjmp(jmp_buf) __attribute__((returns_twice));\nstatic jmp_buf env;\n"
    "void f(void) { lamp->on = 1; if (setjmp(env)) return; lamp->mode = 2; }",
    "callee that never returns": "void fail(void) __attribute__((noreturn));\n"
    "void f(int n) { lamp->on = 1; if (n) fail(); lamp->mode = 2; }",
    "callee that jumps out": "void out(void *, int) __attribute__((noreturn));\n"
    "static void g(int n) { if (n) out(0, 1); }\nvoid f(int n) { lamp->on = 1; g(n); lamp->mode = 2; }",
    "trap": "void f(int n) { lamp->on = 1; if (n) __builtin_trap(); lamp->mode = 2; }",
    "assembly": 'void f(void) { lamp->on = 1; __asm__ volatile("" ::: "memory"); lamp->mode = 2; }',
    "volatile local": "void f(int n) { volatile int v = n; lamp->on = 1; v = 2; lamp->mode = 2; }",
    "fences": "void f(void) { lamp->on = 1; __atomic_signal_fence(5); lamp->mode = 2;\n"
    "__sync_synchronize(); lamp->level = 3; }",
    "atomics": "#include <stdatomic.h>\nstatic atomic_uint events; static atomic_flag busy = ATOMIC_FLAG_INIT;\n"
    "int f(void) { lamp->on = 1; atomic_fetch_or(&events, 4u); lamp->mode = 2;\n"
    "if (atomic_flag_test_and_set(&busy)) return 0; lamp->level = 3; return atomic_load(&events); }",
    "pointer to a function": "static void (*call)(void) = other;\n"
    "void f(void) { lamp->on = 1; (*call)(); lamp->mode = 2; }",
    "table of functions": "void f(void (*t[])(int), int n) { lamp->on = 1; t[n](n); lamp->mode = 2; }",
    "call between commas": "void f(void) { lamp->on = 1, other(), lamp->mode = 2; }",
    "arms of an operator": "void f(int n) { n ? (lamp->on = 1) : (lamp->mode = 2); }",
    "short circuit": "void f(int n) { if ((lamp->on = n) && (lamp->mode = 2)) other(); }",
    "falls through": "void f(int n) { switch (n) { case 0: lamp->on = 1; case 1: lamp->mode = 2; } }",
    "loop around cases": "void f(int n) { switch (n & 1) {\n"
    "do { case 0: lamp->on = n; case 1: lamp->mode = 2; } while (n--); } }",
    "calls itself between": "void f(int n) { lamp->on = 1; if (n) f(n - 1); lamp->mode = n; }",
    "another device": "void f(void) { power->supply = 1; lamp->on = 1; power->low = 1; }",
    "pointers to different groups": "void f(bfGroup Power *p) { p->supply = 1; lamp->on = 1; p->low = 1; }",
    "read behind a write": "int f(int n) { int r = lamp->ready; lamp->mode = n; return r + lamp->value; }",
    "index changed two calls down": "static void g(void) { current++; }\nstatic void h(void) { g(); }\n"
    "void f(void) { lamp->on2[current & 3] = 1; h(); lamp->mode2[current & 3] = 2; }",
    "index of an inner name": "void f(uint32_t n) { lamp->on2[n] = 1; { static uint32_t n; lamp->mode2[n] = 3; } }",
    "flag of an interrupt routine": "__attribute__((interrupt)) void isr(void) { lamp->level = 1; }\n"
    "void f(void) { lamp->on = 1; lamp->level = 2; lamp->mode = 2; }",
    "vector table": "void tick(void) { lamp->level = 1; }\nvoid (*const vectors[])(void) = {tick};\n"
    "void f(void) { lamp->on = 1; lamp->level = 2; lamp->mode = 2; }",
    "return with an attribute": "void f(int n) { lamp->on = 1; if (n) [[clang::likely]] return; lamp->mode = 2; }",
    "pragma of a loop": "void f(void) { lamp->on = 1;\n#pragma GCC unroll 4\n"
    "for (int i = 0; i < 2; i++) other();\nlamp->mode = 2; }",
    "pragma nobody knows": "void f(void) { lamp->on = 1;\n#pragma vendor critical\nlamp->mode = 2; }",
    "pragma in a macro": '#define CRITICAL _Pragma("vendor critical")\nvoid f(void) { lamp->on = 1; '
    "CRITICAL lamp->mode = 2; }",
    "loop of a macro": "#define TWICE(i) for (int i = 0; i < 2; i++)\n"
    "void f(void) { lamp->on = 1; TWICE(i) other(); lamp->mode = 2; }",
    "loop of a macro without a part": "#define FROM(i) for (; i < 2; i++)\n"
    "void f(int n) { lamp->on = 1; FROM(n) other(); lamp->mode = 2; }",
    "endless loop of a macro": "#define EVER for (;;)\nvoid f(int n) { lamp->on = 1; if (n) EVER { } lamp->mode = 2; }",
    "size in a type": "int ask(void);\nvoid f(void) { lamp->on = 1; typedef int row[ask()]; "
    "lamp->mode = sizeof(row); }",
    "size of a type": "int ask(void);\nint f(void) { lamp->on = 1; int n = sizeof(int[ask()]); "
    "lamp->mode = 2; return n; }",
    "statement expression": "void f(void) { lamp->on = 1; ({ other(); }); lamp->mode = 2; }",
    "value or another": "int ask(void);\nint f(int n) { lamp->on = 1; n = n ?: ask(); lamp->mode = 2; return n; }",
    "chosen by type": "int ask(void);\nint f(int n) { lamp->on = 1; n = _Generic(n, int: ask()); "
    "lamp->mode = 2; return n; }",
    "offset of an element": "struct s { int a[3]; }; int ask(void);\n"
    "int f(int n) { lamp->on = 1; n = __builtin_offsetof(struct s, a[ask()]); lamp->mode = 2; return n; }",
    "initialiser by name": "struct s { int a; }; int ask(void);\n"
    "int f(void) { lamp->on = 1; struct s s = {.a = ask()}; lamp->mode = 2; return s.a; }",
    "volatile local with a value": "void f(int n) { lamp->on = 1; volatile int v = n; lamp->mode = 2; (void)v; }",
    "flush": "void f(void) { lamp->on = 1; (void)lamp->level; lamp->mode = 2; }",
    "flush of a setting": "void f(void) { lamp->on = 1; lamp->level; lamp->mode = 2; }",
    "flush into a variable": "void f(void) { lamp->on = 1; int n = lamp->level; (void)n; lamp->mode = 2; }",
    "flush into a variable later": "void f(void) { int n; lamp->on = 1; n = lamp->level; lamp->mode = 2; (void)n; }",
    "handler with a callback": "void (*callback)(void); void off(void) { lamp->level = 1; }\n"
    "void TIM2_IRQHandler(void) { callback(); }\n"
    "void f(void) { callback = off; lamp->on = 1; lamp->level = 2; lamp->mode = 2; }",
    "named like a handler": "void lamp_isr(void) { lamp->level = 1; }\n"
    "void f(void) { lamp->on = 1; lamp->level = 2; lamp->mode = 2; }",
}
PAIRS = [{"on", "mode"}, {"mode", "level"}, {"supply", "low"}, {"ready", "value"}, {"on2", "mode2"}]
ONE = {
    "straight": "void f(void) { lamp->on = 1; lamp->mode = 2; }",
    "call that returns": "static void g(int n) { current = n; }\nvoid f(int n) { lamp->on = 1; g(n); lamp->mode = 2; }",
    "in a loop": "void f(int n) { while (n--) { lamp->on = 1; lamp->mode = 2; } }",
    "in a loop of goto": "void f(int n) { a: lamp->on = 1; lamp->mode = 2; if (n--) goto a; }",
    "one device through two pointers": "void f(bfGroup Lamp *p) { p->on = 1; lamp->level = 1; p->mode = 2; }",
    "offset": "struct s { int a, b; };\nint f(void) { lamp->on = 1; "
    "lamp->mode = __builtin_offsetof(struct s, b); return 0; }",
    "size": "void f(void) { lamp->on = 1; lamp->mode = sizeof(int[4]); }",
    "initialiser": "struct s { int a; };\n"
    "int f(int n) { lamp->on = 1; struct s s = {.a = n}; lamp->mode = 2; return s.a; }",
    "called like a handler": "static void lamp_handler(void) { lamp->level = 1; }\n"
    "void f(void) { lamp->on = 1; lamp->mode = 2; lamp_handler(); }",
    "reads of what hardware changes": "int f(void) { return lamp->ready + lamp->value; }",
}


def analysed(tmp_path, text: str) -> Analysis:
    (tmp_path / "f.c").write_text(HEAD + text)
    return analyse([tmp_path / "f.c"])


def merged(analysis: Analysis) -> list[list[str]]:
    made = chosen_design(analysis, "paper")
    return [[use.access.field for use in merge.uses] for merge in made.merging["f"].merges]


@pytest.mark.parametrize("name", APART)
def test_accesses_that_stay_apart(tmp_path, name):
    found = merged(analysed(tmp_path, APART[name]))
    assert not [fields for fields in found if any(pair <= set(fields) for pair in PAIRS)]


@pytest.mark.parametrize("name", ONE)
def test_accesses_that_become_one(tmp_path, name):
    assert [len(fields) for fields in merged(analysed(tmp_path, ONE[name]))] == [2]


REFUSED = {
    "computed goto": ("void f(int n) { void *p = &&a; lamp->on = 1; goto *p; a: lamp->mode = n; }", "computed"),
    "cleanup": (
        "void u(int *k);\nvoid f(void) { lamp->on = 1; { __attribute__((cleanup(u))) int k = 1; } lamp->mode = 2; }",
        "end of the block of 'k'",
    ),
    "cleanup by a macro": (
        "#define GUARD __attribute__((cleanup(u)))\nvoid u(int *k);\n"
        "void f(void) { lamp->on = 1; { GUARD int k = 1; } }",
        "end of the block of 'k'",
    ),
    "#if in a statement": (
        "void f(void) { lamp->mode =\n#ifdef BRIGHT\n9 +\n#endif\n2; }",
        "#if stands in a statement",
    ),
    "line number in a macro": ("#define HERE __LINE__\nvoid f(void) { lamp->mode = HERE; }", "number of its line"),
    "statement expression": ("void f(void) { lamp->on = ({ lamp->mode = 2; 1; }); }", "statement expression"),
    "size of an array": ("void f(int n) { int v[n + lamp->mode]; v[0] = 1; }", "size of an array"),
    "typeof": ("void f(void) { __typeof__(lamp->mode) x = 1; lamp->level = x; }", "typeof"),
    "measured": ("int f(void) { return sizeof(lamp->mode); }", "sizeof"),
    "index with an effect": ("void f(int n) { lamp->mode2[n++] += 2; }", "evaluated twice"),
    "argument of a macro that asks twice": (
        "#define MAX(a, b) ((a) > (b) ? (a) : (b))\nint f(void) { return MAX(lamp->mode, 3); }",
        "2 times",
    ),
    "update of a field that an interrupt writes": (
        "void X_IRQHandler(void) { lamp->mode = 1; }\nvoid f(void) { lamp->mode |= 2; }",
        "an interrupt routine writes it",
    ),
}


UPDATES = """
#include "edgewright_hal.h"
bfGroup Timer { uint4 level; uint4 steps[2]; };
make_device(Timer, first, 0x40000000);
make_device(Timer, second, 0x40001000);
void X_IRQHandler(void) { first->level = 1; first->steps[0] = 2; }
void f(bfGroup Timer *any, uint32_t n) { %s }
"""


@pytest.mark.parametrize(
    ("update", "is_refused"),
    [
        ("first->level++;", True),
        ("any->level |= 2;", True),
        ("first->steps[n & 1] += 1;", True),
        ("second->level++;", False),
        ("first->steps[1]++;", False),
    ],
)
def test_updates_are_refused_of_what_an_interrupt_may_write(tmp_path, update, is_refused):
    """The same field of another device, or another element, is not what it writes."""
    (tmp_path / "f.c").write_text(UPDATES % update)
    if is_refused:
        with pytest.raises(Refused, match="an interrupt routine writes it"):
            analyse([tmp_path / "f.c"])
    else:
        assert analyse([tmp_path / "f.c"]).interrupts


PINNED = """
#include "edgewright_hal.h"
bfGroup Adc { uint8 hw pin(0, 0) sequence; uint4 pin(0, 8) length; bit hw pin(0, 15) go; uint4 average; };
make_device(Adc, adc, 0x40000000);
void f(uint32_t n) { adc->average = 1; adc->sequence = n; adc->length = n; adc->go = 1; }
"""


def test_writes_in_a_row_fill_a_pinned_register_that_hardware_changes_too(tmp_path):
    """Settings among its fields are part of the write, which could not put back the others."""
    (tmp_path / "f.c").write_text(PINNED)
    made = chosen_design(analyse([tmp_path / "f.c"]))
    assert [len(merge.uses) for merge in made.merging["f"].merges] == [3]
    (tmp_path / "f.c").write_text(PINNED.replace("adc->length = n;", ""))
    with pytest.raises(Infeasible, match="read-modify-write of a register with"):
        chosen_design(analyse([tmp_path / "f.c"]))


RING = """
#include "edgewright_hal.h"
bfGroup Descriptor { uint32 pin(0, 0) buffer; uint16 pin(4, 0) length; bit hw pin(8, 31) own; };
bfGroup Ring { bfGroup Descriptor entries[4]; };
make_device(Ring, ring, 0x20004000);
in_memory(ring);
void give(uint32_t n, uint32_t at) { ring->entries[n & 3u].buffer = at; ring->entries[n & 3u].own = 1; }
"""


def test_descriptors_lie_as_far_apart_as_their_pins_say(tmp_path):
    (tmp_path / "f.c").write_text(RING)
    made = chosen_design(analyse([tmp_path / "f.c"]))
    assert made.layout.spaces["Ring"].place_of("entries").strides == (12,)


INTERRUPTED = """
#include "edgewright_hal.h"
bfGroup Timer { bit enable; uint4 prescale; bit irqEnable; };
make_device(Timer, timer, 0x40000000);
void set(uint8_t prescale) { timer->prescale = prescale; }
__attribute__((interrupt)) void irq(void) { timer->irqEnable = 0; }
"""


@pytest.mark.parametrize("arm", ["if (d->mode) v = d->seen;", "switch (d->mode) { case 1: v = d->seen; }"])
def test_what_an_interrupt_uses_is_read_only_where_the_source_reads_it(arm, tmp_path):
    (tmp_path / "f.c").write_text(
        '#include "edgewright_hal.h"\n'
        "bfGroup D { uint4 mode; uint8 shared_with_isr seen; };\nmake_device(D, d, 0x40000000);\n"
        f"int f(void) {{ int v = 3; {arm} return v; }}\n"
    )
    made = chosen_design(analyse([tmp_path / "f.c"]), goal=LayoutGoal(minimise="map"))
    assert not any(merging.merges for merging in made.merging.values())


def test_what_an_interrupt_writes_unmarked_is_never_put_back(tmp_path):
    """Nobody has asked for critical sections: a register that needs none, or refused where the map has no room."""
    (tmp_path / "f.c").write_text(INTERRUPTED)
    analysis = analyse([tmp_path / "f.c"])
    made = chosen_design(analysis, goal=LayoutGoal(minimise="map"))
    assert made.layout.map_bytes(analysis.description) == 8
    assert "CRITICAL" not in generate(made, "f")["f_hal.h"]
    with pytest.raises(Refused, match=r"f.c:3:\d+: 'irqEnable' is written by an interrupt routine, and in 4 bytes"):
        chosen_design(analysis, goal=LayoutGoal(max_map=4))
    (tmp_path / "f.c").write_text(INTERRUPTED.replace("bit irqEnable", "bit shared_with_isr irqEnable"))
    marked = chosen_design(analyse([tmp_path / "f.c"]), goal=LayoutGoal(max_map=4))
    assert "HAL_ENTER_CRITICAL" in generate(marked, "f")["f_hal.h"]


@pytest.mark.parametrize("name", REFUSED)
def test_text_that_cannot_be_followed(tmp_path, name):
    text, reason = REFUSED[name]
    with pytest.raises(Refused, match=reason):
        analysed(tmp_path, text)


def test_a_header_that_means_two_things(tmp_path):
    (tmp_path / "lamp.h").write_text(
        "#ifndef LAMP\n#define LAMP\n#ifndef T\n#define T()\n#endif\n"
        f"{HEAD}static inline void f(void) {{ lamp->on = 1; T(); lamp->mode = 2; }}\n#endif\n"
    )
    (tmp_path / "a.c").write_text('#include "lamp.h"\nvoid a(void) { f(); }\n')
    (tmp_path / "b.c").write_text('void other(void);\n#define T() other()\n#include "lamp.h"\nvoid b(void) { f(); }\n')
    with pytest.raises(Refused, match="does not do the same in every file"):
        analyse([tmp_path / "a.c", tmp_path / "b.c"])


def test_values_keep_their_meaning(tmp_path):
    """A parameter is not taken for the variable of an inner block, a line has its own number, new names are new."""
    text = (
        "uint8_t level, tmp1;\n#define DEFAULT tmp1\n"
        "void f(uint8_t level) { lamp->mode = level; { extern uint8_t level; lamp->level = level; } }\n"
        "uint32_t g(void) { uint32_t r = lamp->ready + lamp->fault; lamp->level = DEFAULT; return r; }\n"
        "void h(void) { lamp->level = __LINE__; }\n"
    )
    design = chosen_design(analysed(tmp_path, text), "paper")
    made = generate(design, "f")["f.c"]
    assert "tmp2 = level" in made
    assert "uint8_t tmp1" not in made.replace("uint8_t level, tmp1;", "")
    assert f", {HEAD.count(chr(10)) + 5})" in made
