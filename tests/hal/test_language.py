"""The language of bit field groups: what is read, what is refused (its neighbour is not), what compilers say."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

import pytest

from edgewright.errors import EdgewrightError, InputError
from edgewright.hal.language.cursors import KINDS, span, walk
from edgewright.hal.language.description import Bus, Child, Description, EffectTarget, Mode, Refused
from edgewright.hal.language.groups import describe
from edgewright.hal.language.misuse import misuses
from edgewright.hal.language.source import HEADER, Source, read_source
from tests.helpers.tools import checking

PADS = """#include "edgewright_hal.h"
#include <stddef.h>
#include <string.h>
bfGroup Pad { bit dir; bit ro in; bit wo strobe; uint8 w1c flags; uint8 fifo data; uint4 clear_on_read last;
              uint8 level[4]; bit out; bit shared_with_isr armed; };
bfGroup Io { bfGroup Pad pads[4]; bfGroup Pad spare; uint16 mask; };
make_device(Io, io, 0x1000);
"""


def source_of(folder: Path, text: str, name: str = "driver.c", **options: list[str]) -> Source:
    path = folder / name
    path.write_text(text)
    return read_source([path], **options)  # type: ignore[arg-type]


def described(folder: Path, text: str, bus: Bus | None = None) -> Description:
    return describe(source_of(folder, text + "\nvoid nothing(void);\nvoid nothing(void) {}\n"), bus)


def refused(folder: Path, text: str) -> list[str]:
    source = source_of(folder, PADS + text)
    return [str(refusal) for refusal in misuses(source, describe(source))]


def test_groups_are_read_with_all_their_attributes(tmp_path: Path) -> None:
    found = described(
        tmp_path,
        """enum { START = 5 };
        bfGroup Inner { bit a; uint3 ro b; };
        bfGroup Outer {
            bfGroup Inner inner[1 << 2];
            bfGroup Late { uint64 split c; } late;
            uint8 rse(status, inner, Inner::b) wse(status) status;
            uint7 w1c shared_with_isr x, y[3];
            uint32 reset_value(START + 1) pin(8, 0) hw z;
            uint9 clear_on_read q; uint8 fifo r; bit w1s s; bit wo t;
        };
        make_device(Outer, outer, 0x4000 + 16);
        bus(outer, 32, 8);""",
    )
    assert list(found.groups) == ["Inner", "Late", "Outer"]
    outer = found.groups["Outer"]
    inner = outer.member("inner")
    assert isinstance(inner, Child) and (inner.group, inner.count) == ("Inner", 4)
    status = found.field("Outer", "status")
    assert status.rse == (EffectTarget("Outer", "status"), EffectTarget("Inner"), EffectTarget("Inner", "b"))
    assert status.wse == (EffectTarget("Outer", "status"),)
    x, y, z = (found.field("Outer", name) for name in "xyz")
    assert (x.bits, x.count, x.w1c, x.shared_with_isr) == (7, None, True, True) and (y.count, y.w1c) == (3, True)
    assert (z.reset, z.pinned, z.by_hardware) == (6, (8, 0), True)
    assert found.field("Late", "c").split and found.field("Late", "c").bits == 64
    assert found.field("Outer", "q").clear_on_read and found.field("Outer", "r").fifo
    assert found.field("Outer", "s").w1s and found.field("Outer", "t").mode is Mode.WO
    assert found.field("Inner", "b").mode is Mode.RO
    (device,) = found.devices
    assert (device.name, device.group, device.address, device.bus) == ("outer", "Outer", 0x4010, Bus(32, 8))


def test_prefixed_names_mean_the_same(tmp_path: Path) -> None:
    text = """#define EDGEWRIGHT_HAL_PREFIXED
    #include "edgewright_hal.h"
    hal_bfGroup G { hal_uint3 hal_ro hal_rse(fifo) ro; hal_bit fifo; };
    hal_make_device(G, g, 0x100);
    int f(void) { int fifo = g->ro; return fifo + g->fifo; }"""
    source = source_of(tmp_path, text)
    description = describe(source)
    assert description.field("G", "ro").mode is Mode.RO
    assert description.field("G", "ro").rse == (EffectTarget("G", "fifo"),)
    assert misuses(source, description) == ()


def test_the_bus_given_is_that_of_devices_without_one(tmp_path: Path) -> None:
    text = "bfGroup G { bit a; }; make_device(G, one, 0x100); make_device(G, two, 0x200); bus(two, 16, 8);"
    one, two = described(tmp_path, text, Bus(32, 8)).devices
    assert (one.bus, two.bus) == (Bus(32, 8), Bus(16, 8))


def test_definitions_and_files_are_found_in_headers_too(tmp_path: Path) -> None:
    (tmp_path / "regs.h").write_text("#pragma once\nbfGroup G { bit a; } /* ; */ ;\nmake_device(G, g,\n  0x100) ;\n")
    main = '#include <stdint.h>\n#include "regs.h"\nint f(void) { return g->a; }\n'
    other = main.replace("int f", "int h")
    (tmp_path / "other.c").write_text(other)
    (tmp_path / "main.c").write_text(main)
    source = read_source([tmp_path / "main.c", tmp_path / "other.c"])
    header = str(tmp_path / "regs.h")
    assert set(source.files) == {str(tmp_path / "main.c"), str(tmp_path / "other.c"), header}
    texts = [source.files[header][slice(*where)].decode() for where in source.definitions[header]]
    assert texts == ["bfGroup G { bit a; } /* ; */ ;", "make_device(G, g,\n  0x100) ;"]
    assert [device.name for device in describe(source).devices] == ["g"]


def test_spans_of_macro_uses_have_their_arguments(tmp_path: Path) -> None:
    macros = "#define ID(x) x\n#define ADD(i) i + 1\n"
    text = "int f(bfGroup Pad *p, int i) { return ID(p)->level[3 * ADD(ID(i))]; }"
    source = source_of(tmp_path, PADS + macros + text)
    file = str(source.main[0])
    function = next(cursor for cursor in source.cursors if cursor.spelling == "f")
    texts = {cursor.kind: source.files[file][slice(*span(cursor))].decode() for cursor in walk(function)}
    assert texts[KINDS.ARRAY_SUBSCRIPT_EXPR] == "ID(p)->level[3 * ADD(ID(i))]"
    assert texts[KINDS.MEMBER_REF_EXPR] == "ID(p)->level"


DESCRIPTIONS = {
    "ro and wo": ("bit ro wo a;", "bit ro a;", "could not be accessed"),
    "ro and w1c": ("bit ro w1c a;", "bit w1c a;", "never written"),
    "ro and wse": ("bit ro wse(a) a;", "bit ro rse(a) a;", "never written"),
    "wo and rse": ("bit wo rse(a) a;", "bit wo wse(a) a;", "never read"),
    "w1c and w1s": ("bit w1c w1s a;", "bit w1s a;", "cannot do both"),
    "fifo clear": ("uint8 fifo clear_on_read a;", "uint8 fifo a;", "takes the next"),
    "reset too large": ("uint2 reset_value(4) a;", "uint2 reset_value(3) a;", "reset value 4 does not fit"),
    "reset negative": ("uint2 reset_value(-1) a;", "uint2 reset_value(1) a;", "does not fit"),
    "reset variable": ("uint2 reset_value(1.5) a;", "uint2 reset_value(sizeof(outside) - 4) a;", "no constant"),
    "reset twice": ("uint2 reset_value(1) reset_value(2) a;", "uint2 reset_value(1) a;", "reset_value twice"),
    "pin overlap": ("uint4 pin(0, 4) a; bit pin(0, 7) b;", "uint4 pin(0, 4) a; bit pin(0, 8) b;", "the same bits"),
    "pin array": ("bit pin(0, 0) a[2];", "bit pin(0, 0) a;", "arrays cannot be pinned"),
    "pin unaligned": ("bit pin(2, 0) a;", "bit pin(4, 0) a;", "no register begins"),
    "pin too high": ("uint8 pin(0, 28) a;", "uint8 pin(0, 24) a;", "does not fit"),
    "pin nowhere": ("bit pin(0, 32) a;", "bit pin(0, 31) a;", "bits from 0 to 31"),
    "int": ("int a;", "uint31 a;", "no field and no group"),
    "standard integer": ("uint8_t a;", "uint8 a;", "no field and no group"),
    "pointer": ("uint8 *a;", "uint8 a;", "no field and no group"),
    "float": ("float a;", "uint32 a;", "no field and no group"),
    "plain struct": ("struct P { int a; } a;", "bfGroup P { bit a; } a;", "no field and no group"),
    "bit-field": ("uint8 a : 3;", "uint3 a;", "write uint3 instead"),
    "array of arrays": ("bit a[2][3];", "bit a[2];", "array of arrays"),
    "flexible array": ("bit b; bit a[];", "bit b; bit a[1];", "without elements"),
    "no elements": ("bit a[0];", "bit a[1];", "without elements"),
    "union": ("union { bit a; uint2 b; };", "bit a; uint2 b;", "no field and no group"),
    "unnamed group": ("bfGroup { bit a; } a;", "bfGroup N { bit a; } a;", "a group without a name"),
    "volatile": ("volatile uint8 a;", "uint8 hw a;", "const or volatile"),
    "attribute of a group": (
        "bfGroup N { bit a; } ro n;",
        "bfGroup N { bit ro a; } n;",
        "give them to its fields",
    ),
    "attribute of a child": (
        "bfGroup N { bit a; } n; bfGroup N ro m;",
        "bfGroup N { bit a; } n; bfGroup N m;",
        "give them to its fields",
    ),
    "itself by pointer": ("bfGroup G *next;", "bit a;", "no field and no group"),
    "too many": ("bfGroup N { bit a[999]; } n[99];", "bfGroup N { bit a[9]; } n[99];", "more than 65536"),
    "too wide": ("uint33 a;", "uint33 split a;", "declare it split"),
    "wide and acting": ("uint33 split wse(a) a;", "uint33 split ro a;", "more than once"),
    "unknown target": ("bit rse(statsu) status;", "bit rse(status) status;", "did you mean 'status'"),
    "unknown group": ("bit rse(Q::a) a;", "bit rse(G::a) a;", "no group 'Q'"),
    "unknown member": ("bit rse(G::b) a;", "bit rse(G::a) a;", "'b', which is no member of 'G'"),
    "empty target": ("bit rse() a;", "bit rse(G) a;", "names nothing"),
    "empty": ("", "bit a;", "group 'G' is empty"),
}


@pytest.mark.parametrize(("bad", "good", "why"), DESCRIPTIONS.values(), ids=list(DESCRIPTIONS))
def test_what_a_group_cannot_be_is_refused(tmp_path: Path, bad: str, good: str, why: str) -> None:
    before = "extern int outside; extern const int n;\n"
    described(tmp_path, f"{before}bfGroup G {{ {good} }}; make_device(G, g, 0x100);")
    with pytest.raises(Refused) as refused:
        described(tmp_path, f"{before}bfGroup G {{ {bad} }}; make_device(G, g, 0x100);")
    assert any(why in str(refusal) for refusal in refused.value.refusals), str(refused.value)
    assert {refusal.place.line for refusal in refused.value.refusals} == {2}


DEVICES = {
    "unaligned": ("make_device(G, g, 0x102);", "make_device(G, g, 0x104);", "not aligned"),
    "unaligned to a narrow bus": ("make_device(G, g, 0x101); bus(g, 16, 8);",
                                  "make_device(G, g, 0x102); bus(g, 16, 8);", "not aligned"),
    "one address": ("make_device(G, g, 0x100); make_device(G, h, 256);",
                    "make_device(G, g, 0x100); make_device(G, h, 0x200);", "both at 0x100"),
    "no group": ("struct P { int a; }; make_device(P, g, 0x100);",
                 "bfGroup P { bit a; }; make_device(P, g, 0x100);", "which is no group"),
    "no constant": ("make_device(G, g, 1ull << 32);", "make_device(G, g, 1ull << 31);", "no constant of 32 bits"),
    "odd bus": ("make_device(G, g, 0); bus(g, 24, 8);", "make_device(G, g, 0); bus(g, 16, 8);", "8, 16 or 32"),
    "wide lanes": ("make_device(G, g, 0); bus(g, 16, 32);", "make_device(G, g, 0); bus(g, 32, 16);", "not above"),
    "bus of nothing": ("make_device(G, g, 0); bus(h, 32, 8);", "make_device(G, g, 0); bus(g, 32, 8);", "no device"),
    "with a typedef": ("typedef bfGroup H { bit a; } H;", "bfGroup H { bit a; }; typedef bfGroup H H;",
                       "within another declaration"),
    "in a function": ("void f(void) { bfGroup H { bit a; }; }", "bfGroup H { bit a; }; void f(void) { }",
                      "within another declaration"),
}  # fmt: skip


@pytest.mark.parametrize(("bad", "good", "why"), DEVICES.values(), ids=list(DEVICES))
def test_what_a_device_cannot_be_is_refused(tmp_path: Path, bad: str, good: str, why: str) -> None:
    described(tmp_path, f"bfGroup G {{ bit a; }}; {good}")
    with pytest.raises(Refused, match=why):
        described(tmp_path, f"bfGroup G {{ bit a; }}; {bad}")


def test_one_name_in_two_files_is_refused(tmp_path: Path) -> None:
    for name, field in (("a.c", "bit x;"), ("b.c", "uint2 x;")):
        text = f"bfGroup G {{ {field} }}; make_device(G, g, 0x100); int f_{name[0]}(void) {{ return g->x; }}"
        (tmp_path / name).write_text(text)
    with pytest.raises(Refused, match="another group 'G'"):
        describe(read_source([tmp_path / "a.c", tmp_path / "b.c"]))


# Bodies of `void f(bfGroup Pad *p, bfGroup Pad *q, void *v, int i)`.
BODIES = {
    "address of a field": ("v = &p->dir;", "p = &io->pads[i];", "the address of"),
    "address of an element": ("v = &p->level[1];", "i = p->level[1];", "the address of"),
    "decayed field": ("v = p->level;", "i = p->level[0];", "without an index"),
    "decayed groups": ("p = io->pads;", "p = &io->pads[0];", "without an index"),
    "address of an array": ("v = &io->pads;", "p = &io->spare;", "array of groups"),
    "cast to": ("p = (bfGroup Pad *)v;", "p = q;", "a cast to"),
    "cast from": ("i = (int)(uintptr_t)p;", "i = (int)p->dir;", "a cast from"),
    "cast between": ("v = (void *)p;", "(void)p;", "a cast from"),
    "becomes void": ("v = p;", "q = p;", "becomes 'void *'"),
    "from void": ("p = v;", "p = NULL;", "a cast of a pointer"),
    "from another group": ("p = (void *)io;", "p = 0;", "a cast"),
    "copy": ("*p = *q;", "p->dir = q->dir;", "is copied"),
    "copy of an element": ("io->pads[0] = io->spare;", "io->pads[0].dir = io->spare.dir;", "is copied"),
    "variable": ("bfGroup Pad x; (void)i;", "bfGroup Pad *x = p; (void)x;", "outside a device"),
    "literal": ("*p = (bfGroup Pad){0};", "p->dir = (uint8_t){0};", "a literal of group"),
    "memset": ("memset(p, 0, 4);", "memset(v, 0, 4);", "passed to 'memset'"),
    "memcpy": ("memcpy(v, p, 4);", "memcpy(v, v, 4);", "passed to 'memcpy'"),
    "variadic": ("extern int log(const char *, ...); log(\"\", p);",
                 "extern int log(const char *, ...); log(\"\", p->dir);", "as one of '...'"),
    "plus": ("p = p + 1;", "i = i + 1;", "arithmetic"),
    "step": ("p++;", "i++;", "arithmetic"),
    "plus assign": ("p += i;", "i += i;", "arithmetic"),
    "difference": ("i = p - q;", "i = p == q;", "arithmetic"),
    "indexed pointer": ("p[1].dir = 1;", "io->pads[1].dir = 1;", "it is indexed"),
    "index first": ("i = 2[p->level];", "i = p->level[2];", "before its array"),
    "sizeof group": ("i = sizeof(bfGroup Pad);", "i = sizeof(bfGroup Pad *);", "the size of group"),
    "sizeof value": ("i = sizeof(*p);", "i = sizeof(p);", "the size of group"),
    "sizeof field": ("i = sizeof(p->dir);", "i = sizeof(i);", "sizeof"),
    "alignof": ("i = _Alignof(bfGroup Pad);", "i = _Alignof(int);", "the size of group"),
    "offsetof": ("i = offsetof(bfGroup Pad, dir);", "struct P { int a; }; i = offsetof(struct P, a);", "offsetof"),
    "typeof": ("__typeof__(p->dir) x = 1; (void)x;", "__typeof__(i) x = 1; (void)x;", "typeof"),
    "generic": ("i = _Generic(p->dir, default: 1);", "i = _Generic(i, default: 1);", "_Generic"),
    "read of wo": ("i = p->strobe;", "p->strobe = 1;", "is wo and read"),
    "update of wo": ("p->strobe ^= 1;", "p->out ^= 1;", "is wo and read"),
    "write of ro": ("p->in = 1;", "i = p->in;", "is ro and written"),
    "step of ro": ("p->in++;", "p->dir++;", "is ro and written"),
    "index too large": ("i = p->level[4];", "i = p->level[3];", "which has 4 elements"),
    "index negative": ("i = io->pads[-1].dir;", "i = io->pads[i - 1].dir;", "which has 4 elements"),
    "macro body": ("SET(p);", "POINTER->dir = ONE;", "a macro hides"),
    "macro argument": ("i = TWICE(p->dir);", "i = ID(p)->dir + ID(p->dir);", "2 times"),
    "macro in an argument": ("i = ID(p->level[ID(i)]);", "i = ID(p->level[ONE]);", "itself an argument"),
    "macro for a member": ("i = p->DIR;", "i = p->level[ID(i)];", "a macro hides"),
    "macro with an arrow": ("i = ARROW dir;", "i = (POINTER)->dir;", "a macro hides"),
    "macro for a child": ("i = PADS[1].dir;", "i = io->pads[ONE].dir;", "a macro hides"),
    "static local": ("static bfGroup Pad *x = &((bfGroup Io *)0)->spare;", "static bfGroup Pad *x = NULL;", "static"),
    "statement expression": ("i = ({ p->dir; });", "i = ({ i; });", "statement expression"),
    "assembly": ('__asm__ volatile("" : : "r"(p->dir));', '__asm__ volatile("" : : "r"(i));', "assembly"),
    "array size": ("int x[p->dir + 1]; (void)x;", "int x[i + 1]; (void)x;", "size of an array"),
    "update, index steps": ("p->level[i++] |= 1;", "p->level[i++] = 1;", "evaluated twice"),
    "update, index calls": ("extern int g(void); p->level[g()]++;", "extern int g(void); i = p->level[g()];", "twice"),
    "update, index is volatile": ("volatile int *x = v; p->level[*x] |= 1;", "volatile int *x = v; p->level[*x] = 1;",
                                  "evaluated twice"),
    "update, index reads": ("io->pads[p->dir].out |= 1;", "io->pads[p->dir].out = 1;", "evaluated twice"),
    "update, pointer calls": ("extern bfGroup Pad *found(void); found()->out |= 1;",
                              "extern bfGroup Pad *found(void); found()->out = 1;", "evaluated twice"),
    "update, pointer moves": ("(p = q)->out |= 1;", "(p = q)->out = 1;", "evaluated twice"),
    "update of w1c": ("p->flags |= 1;", "p->flags = 1;", "clears it all"),
    "update of a fifo": ("p->data += 1;", "p->data = 1;", "an update reads it"),
    "update of clear on read": ("p->last |= 1;", "i |= p->last;", "an update reads it"),
    "update of what is shared": ("p->armed |= 1;", "p->armed = 1;", "an interrupt stores"),
    "pointer to pointer": ("bfGroup Pad **x = &p; (void)x;", "int *x = &i; (void)x;", "could change unseen"),
    "volatile": ("volatile bfGroup Pad *x = p; (void)x;", "const bfGroup Pad *x = p; (void)x;", "volatile group"),
    "chosen": ("i = (i ? *p : *q).dir;", "i = (i ? p : q)->dir;", "a field of a copy"),
    "dereferenced": ("*p;", "(*p).dir = 1; i = (&*p)->dir;", "as a whole"),
}  # fmt: skip
MACROS = """
#define ONE 1
#define ID(x) x
#define TWICE(x) ((x) + (x))
#define SET(x) (x)->dir = 1
#define POINTER p
#define DIR dir
#define ARROW p->
#define PADS io->pads
"""


@pytest.fixture(scope="module")
def in_bodies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What is refused of each body, the bad and the good ones, each a function on a line of its own in one file."""
    bodies = [body for bad, good, _ in BODIES.values() for body in (bad, good)]
    head = "bfGroup Pad *p, bfGroup Pad *q, void *v, int i"
    lines = [f"void f{number}({head}) {{ {body} }}" for number, body in enumerate(bodies)]
    source = source_of(tmp_path_factory.mktemp("bodies"), PADS + MACROS + "\n".join(lines))
    first = (PADS + MACROS).count("\n") + 1
    found: dict[str, list[str]] = {body: [] for body in bodies}
    for refusal in misuses(source, describe(source)):
        assert refusal.place.file == str(source.main[0]) and refusal.place.column > len("void f0(")
        found[bodies[refusal.place.line - first]].append(str(refusal))
    return found


@pytest.mark.parametrize(("bad", "good", "why"), BODIES.values(), ids=list(BODIES))
def test_misuse_in_a_function_is_refused_and_its_neighbour_is_not(
    in_bodies: dict[str, list[str]], bad: str, good: str, why: str
) -> None:
    assert in_bodies[good] == []
    assert any(why in refusal for refusal in in_bodies[bad]), in_bodies[bad]


OUTSIDE = {
    "by value": ("int f(bfGroup Pad p) { return p.dir; }", "int f(bfGroup Pad *p) { return p->dir; }",
                 "outside a device"),
    "result": ("bfGroup Pad f(void) { return io->spare; }", "bfGroup Pad *f(void) { return &io->spare; }",
               "returns group"),
    "global": ("bfGroup Pad x; void f(void) {}", "bfGroup Pad *x; void f(void) {}", "outside a device"),
    "in a struct": ("struct S { bfGroup Pad p; }; void f(void) {}", "struct S { bfGroup Pad *p; }; void f(void) {}",
                    "outside a device"),
    "initialiser": ("bfGroup Pad *x = &((bfGroup Io *)16)->spare; void f(void) {}",
                    "bfGroup Pad *x = 0; void f(void) {}", "static variable"),
}  # fmt: skip


@pytest.mark.parametrize(("bad", "good", "why"), OUTSIDE.values(), ids=list(OUTSIDE))
def test_misuse_outside_functions_is_refused(tmp_path: Path, bad: str, good: str, why: str) -> None:
    assert refused(tmp_path, good) == []
    assert any(why in refusal for refusal in refused(tmp_path, bad))


def test_misuse_in_the_driver_s_header_counts_and_in_a_system_header_accesses_do(tmp_path: Path) -> None:
    inline = "static inline int dir_of(bfGroup Pad *p) { return p->dir; }\n"
    (tmp_path / "own.h").write_text(inline.replace("p->dir", "(int)sizeof(p->dir)"))
    (tmp_path / "system.h").write_text("#pragma GCC system_header\n" + inline)
    (tmp_path / "fine.h").write_text(inline)
    call = "int f(void) { return dir_of(&io->spare); }\n"
    assert refused(tmp_path, f'#include "fine.h"\n{call}') == []
    (own,) = refused(tmp_path, f'#include "own.h"\n{call}')
    assert own.startswith(f"{tmp_path / 'own.h'}:1:")
    (system,) = refused(tmp_path, f'#include "system.h"\n{call}')
    assert "marked as the system's" in system


def test_one_text_that_is_two_functions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "part.h").write_text("void NAME(bfGroup Pad *p) { p->dir = VALUE; }\n")
    once = '#define NAME f\n#define VALUE 0\n#include "part.h"\n'
    again = '#undef NAME\n#undef VALUE\n#define NAME g\n#define VALUE 1\n#include "part.h"\n'
    assert refused(tmp_path, once) == []
    (refusal,) = refused(tmp_path, once + again)
    assert "'f' and 'g' are made from the same text" in refusal


FILES = {
    "does not compile": (b"bfGroup G { bit a; }; int f(void) { return 0 }", r"driver\.c:1:45: expected ';'"),
    "missing include": (b'#include "nowhere.h"\nint f(void) { return 0; }', "'nowhere.h' file not found; name"),
    "missing system include": (b"#include <stdio.h>\nint f(void) { return 0; }", "stdio.h.*name its folder with -I"),
    "recursive": (b"bfGroup G { bfGroup G g; };", "a group cannot contain itself"),
    "keyword": (b"bfGroup G { bit fifo; }; int f(void) { int hw = 1; return hw; }", "EDGEWRIGHT_HAL_PREFIXED"),
    "reset value": (b"extern int x; bfGroup G { bit reset_value(x) a; };", "pin and stride take constants"),
    "unknown member": (b"bfGroup G { bit a; }; int f(bfGroup G *g) { return g->b; }", "no member named 'b'"),
    "undeclared function": (b"bfGroup G { bit a; }; int f(void) { return g(); }", "undeclared function"),
    "empty": (b"", "no bit field group"),
    "no group": (b"int f(void) { return 0; }", "no bit field group"),
    "no function": (b"bfGroup G { bit a; };", "no function"),
    "binary": (b"\x7fELF\0\0\1", "is binary"),
    "other encoding": (b"// gr\xfc\xdfe\nint f(void) { return 0; }", r"driver\.c:1: not UTF-8"),
    "huge": (b"/*" + b"x" * (2 << 20) + b"*/", "bytes; driver sources"),
    "deep": (b"bfGroup G { bit a; }; int f(int x) { return " + b"x + " * 600 + b"x; }", "nested more than 250"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "why"), FILES.values(), ids=list(FILES))
def test_files_that_cannot_be_read_are_named(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "driver.c"
    path.write_bytes(content)
    with pytest.raises(InputError, match=why):
        read_source([path])


def test_a_statement_that_libclang_dropped_is_never_missed(tmp_path: Path) -> None:
    text = "void f(bfGroup Pad *p) { p->dir = nothing; p->out = 1; }"
    with pytest.raises(InputError, match=r"driver\.c:8:35: use of undeclared identifier 'nothing'"):
        source_of(tmp_path, PADS + text)


def test_at_most_five_errors_of_a_file_are_listed(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        source_of(tmp_path, "int f(void) { return a + b + c + d + e + f1 + g; }")
    assert len(str(error.value).splitlines()) == 6 and "and 2 more errors" in str(error.value)


def test_a_missing_file_and_a_directory_are_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.c", tmp_path):
        with pytest.raises(InputError, match="cannot read"):
            read_source([path])
    with pytest.raises(InputError, match="no driver source"):
        read_source([])
    (tmp_path / "driver.c").write_text("")
    with pytest.raises(InputError, match="'nowhere', given for includes, is no folder"):
        read_source([tmp_path / "driver.c"], [Path("nowhere")])


@pytest.mark.parametrize(("mark", "end"), [(b"", b"\r\n"), (b"\xef\xbb\xbf", b"\n")])
def test_line_ends_and_byte_order_marks_leave_spans_right(tmp_path: Path, mark: bytes, end: bytes) -> None:
    text = "bfGroup G { bit a; };\nmake_device(G, g, 0x100);\nint f(void)\n{\n  return g->\n  a;\n}\n"
    path = tmp_path / "driver.c"
    path.write_bytes(mark + text.encode().replace(b"\n", end))
    source = read_source([path])
    where = source.definitions[str(path)]
    assert [source.files[str(path)][slice(*at)].decode() for at in where] == [
        "bfGroup G { bit a; };",
        "make_device(G, g, 0x100);",
    ]
    assert misuses(source, describe(source)) == ()


def test_includes_and_defines_reach_the_parser(tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "regs.h").write_text("bfGroup G { bit a[COUNT]; };\nmake_device(G, g, 0x100);\n")
    text = "#include <regs.h>\nint f(void) { return g->a[0]; }"
    source = source_of(tmp_path, text, includes=[str(tmp_path / "inc")], defines=["COUNT=3"])
    assert describe(source).field("G", "a").count == 3


def test_broken_sources_end_in_an_error_of_ours(tmp_path: Path) -> None:
    whole = (PADS + MACROS + "int f(bfGroup Pad *p) { p->dir |= 1; return p->level[ONE] ? p->in : 0; }").encode()
    random_bytes = random.Random(1)
    path = tmp_path / "driver.c"
    for _ in range(60):
        cut = bytearray(whole[: random_bytes.randrange(len(whole))])
        for _ in range(random_bytes.randrange(4)):
            cut.insert(random_bytes.randrange(len(cut) + 1), random_bytes.choice(b"{}();*&->.,#\\\"'/:[]\x01\xc3"))
        path.write_bytes(cut)
        try:
            source = read_source([path])
            misuses(source, describe(source))
        except EdgewrightError:
            continue


DEEP = {
    "parentheses": lambda depth: "return " + "(" * depth + "1" + ")" * depth,
    "signs": lambda depth: "return " + "- " * depth + "1",
    "sums": lambda depth: "return " + "1 + " * depth + "1",
    "casts": lambda depth: "return " + "(int)" * depth + "1",
    "loops": lambda depth: "for (;;) " * depth,
    "branches": lambda depth: "if (1) { }" + " else if (1) { }" * depth,
    "blocks": lambda depth: "{" * depth + "}" * depth,
}


@pytest.mark.parametrize("shape", DEEP)
@pytest.mark.parametrize("depth", [900, 20000])
def test_deep_nesting_is_refused_and_ends_nothing_else(tmp_path: Path, shape: str, depth: int) -> None:
    with pytest.raises(InputError, match=r"nest|operators|branches and loops"):
        source_of(tmp_path, f"{PADS}int f(void) {{ {DEEP[shape](depth)}; return 0; }}")


def test_the_examples_of_the_documentation_are_accepted(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "hal-language.md").read_text()
    examples = re.findall(r"```c\n(.*?)```", text, re.DOTALL)
    assert len(examples) >= 10
    for example in examples:
        source = source_of(tmp_path, example + "static void nothing(void) { }\n")
        assert describe(source).devices and misuses(source, describe(source)) == ()


COMPILERS = ("gcc", "clang", "riscv64-unknown-elf-gcc")
PREFIXED = """#define EDGEWRIGHT_HAL_PREFIXED
#include "edgewright_hal.h"
hal_bfGroup G { hal_bit hal_ro hal_rse(b, G::c) a; hal_uint64 hal_split b; hal_uint7 hal_pin(4, 1) c;
    hal_uint3 i[2]; hal_bit hal_wo hal_wse(a, b) hal_hw d; hal_bit hal_w1c hal_shared_with_isr e;
    hal_bit hal_w1s f; hal_uint8 hal_fifo g;
    hal_uint5 hal_clear_on_read hal_reset_value(3) h; };
hal_make_device(G, device, 0x1000);
hal_bus(device, 32, 8);
unsigned f(hal_bfGroup G *bus);
unsigned f(hal_bfGroup G *bus) { unsigned ro = bus->a, bit = device->h; return ro + bit; }
"""


SHORT = """#include "edgewright_hal.h"
bfGroup G { bit ro rse(b, G::c) a; uint64 split b; uint7 pin(4, 1) c; uint3 i[2]; bit wo wse(a, b) hw d;
    bit w1c shared_with_isr e; bit w1s f; uint8 fifo g; uint5 clear_on_read reset_value(3) h; };
make_device(G, device, 0x1000);
bus(device, 32, 8);
unsigned f(bfGroup G *p);
unsigned f(bfGroup G *p) { return (unsigned)p->a + device->h; }
"""


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("standard", ["-std=c99", "-std=gnu17"])
def test_compilers_accept_both_ways_of_writing(tmp_path: Path, compiler: str, standard: str) -> None:
    for name, text in (("prefixed.c", PREFIXED), ("short.c", SHORT)):
        path = tmp_path / name
        path.write_text(text)
        assert describe(read_source([path])).field("G", "h").reset == 3
        flags = [standard, "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-ffreestanding"]
        whole = [*checking(compiler), *flags, f"-I{HEADER.parent}", path]
        result = subprocess.run(whole, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
