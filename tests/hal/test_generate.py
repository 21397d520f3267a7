"""Generated C: the rewritten driver as a person would write it, and HAL functions that do what the layout says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from edgewright.board.toolchain import toolchain
from edgewright.errors import InputError
from edgewright.hal.analysis.spaces import Space
from edgewright.hal.design import Analysis, Design
from edgewright.hal.design_flow import analyse, design, naive
from edgewright.hal.generate import generate
from edgewright.hal.layout.layout import AreaPlace, Layout, Piece, Register, SpaceLayout
from edgewright.platform.target import TARGETS
from tests.helpers.tools import command

GROUPS = """\
#include "edgewright_hal.h"

bfGroup Pad {
    bit dir;
    bit out;
    bit intEn; /* interrupts */
    uint2 intType;
    uint8 cfg;
    uint16 count;
};

bfGroup Gpio {
    bfGroup Pad pads[32];
    uint5 sel;
    uint32 status;
};

make_device(Gpio, gpio, 0x1a101000);
"""

PAPER = """\
#include "edgewright_hal.h"
bfGroup GPIOPad { bit dir; bit all; bit in; bit out; bit intEn; uint2 intType; uint8 cfg; };
bfGroup GPIOType { bfGroup GPIOPad pads[32]; uint32 rse(intStatus, GPIOPad::intEn) intStatus; };
make_device(GPIOType, gpio, 0x1a101000);
void combine_example(bfGroup GPIOPad *pad) {
    int dir = pad->dir;
    if (pad->intEn && dir)
        pad->dir = gpio->intStatus != 0;
}
"""

COMPILERS = {
    "gcc": "host",
    "clang": "host",
    "riscv": "rv32imc",
    "arm": "cortex-m4",
}


def analysed(folder: Path, text: str, **headers: str) -> Analysis:
    for name, content in headers.items():
        (folder / f"{name}.h").write_text(content)
    (folder / "driver.c").write_text(text)
    return analyse([folder / "driver.c"])


def packed(analysis: Analysis) -> Layout:
    """Fields one after the other from bit 0, as many in a register as fit, whatever their nature."""
    placed: dict[str, SpaceLayout] = {}
    for name, space in analysis.spaces.items():
        placed[name] = _packed(space, placed)
    return Layout(placed, "packed")


def _packed(space: Space, placed: dict[str, SpaceLayout]) -> SpaceLayout:
    at, areas, registers = 0, [], []
    for area in space.areas:
        size = placed[area.space].size
        areas.append(AreaPlace(area.name, at, (size,) * len(area.counts)))
        at += size * (area.counts[0] if area.counts else 1)
    rows: list[list[Piece]] = [[]]
    for slot in space.slots:
        bit = rows[-1][-1].bit + rows[-1][-1].size if rows[-1] else 0
        if bit + slot.field.bits > 32:
            rows.append([])
            bit = 0
        rows[-1].append(Piece(slot.name, bit, slot.field.bits))
    for row in filter(None, rows):
        registers.append(Register(at, 32, tuple(row)))
        at += 4
    return SpaceLayout(space.name, tuple(registers), tuple(areas), at)


def packed_design(folder: Path, text: str, **headers: str) -> Design:
    analysis = analysed(folder, text, **headers)
    return design(analysis, packed(analysis))


def rewritten(folder: Path, body: str, before: str = "") -> str:
    """The text of the functions after rewriting, with all fields of a group in one register."""
    text = generate(packed_design(folder, f"{GROUPS}{before}\n{body}"), "driver")["driver.c"]
    return text.split('#include "driver_hal.h"\n', 1)[1].strip()


def written(text: str) -> list[str]:
    return text.split()


def test_combine_example_is_the_papers(tmp_path: Path) -> None:
    """S 6.5, variant (b): one read for both fields, the status read alone."""
    files = generate(packed_design(tmp_path, PAPER), "driver")
    expected = """
        void combine_example(bfGroup GPIOPad *pad) {
            uint8_t tmp1, tmp2;
            HAL_READ_GPIOPad_dir_intEn(pad, &tmp1, &tmp2);
            int dir = tmp1;
            if (tmp2 && dir)
                HAL_WRITE_GPIOPad_dir(pad, HAL_READ_GPIOType_intStatus(gpio) != 0);
        }"""
    assert written(files["driver.c"].split('driver_hal.h"')[1]) == written(expected)
    assert sorted(files) == ["driver.c", "driver_hal.h", "edgewright_hal.h"]


STATEMENTS = {
    "p->dir = 1;": "HAL_WRITE_Pad_dir(p, 1);",
    "p->dir = k & 1, k;": "HAL_WRITE_Pad_dir(p, k & 1), k;",
    "k = p->cfg;": "k = HAL_READ_Pad_cfg(p);",
    "p->cfg |= 3;": "HAL_WRITE_Pad_cfg(p, (uint8_t)(HAL_READ_Pad_cfg(p) | 3));",
    "p->cfg <<= k + 1;": "HAL_WRITE_Pad_cfg(p, (uint8_t)(HAL_READ_Pad_cfg(p) << (k + 1)));",
    "++p->count;": "HAL_WRITE_Pad_count(p, (uint16_t)(HAL_READ_Pad_count(p) + 1u));",
    "p->count--;": "HAL_WRITE_Pad_count(p, (uint16_t)(HAL_READ_Pad_count(p) - 1u));",
    "k = p->count--;": "k = (uint16_t)(HAL_WRITE_Pad_count(p, (uint16_t)(HAL_READ_Pad_count(p) - 1u)) + 1u);",
    "k = p->intType++;": "k = (uint8_t)((HAL_WRITE_Pad_intType(p, (uint8_t)(HAL_READ_Pad_intType(p) + 1u)) - 1u)"
    " & 0x3u);",
    "k = p->dir = p->out = 1;": "k = HAL_WRITE_Pad_dir(p, HAL_WRITE_Pad_out(p, 1));",
    "for (; k < 3; p->cfg++) k++;": "for (; k < 3; HAL_WRITE_Pad_cfg(p, (uint8_t)(HAL_READ_Pad_cfg(p) + 1u))) k++;",
    "(*p).dir = 0;": "HAL_WRITE_Pad_dir(p, 0);",
    "k = gpio->pads[k].dir;": "k = HAL_READ_Pad_dir(&gpio->pads[k]);",
    "gpio->pads[gpio->sel].dir = p->out;": "HAL_WRITE_Pad_dir(&gpio->pads[HAL_READ_Gpio_sel(gpio)], "
    "HAL_READ_Pad_out(p));",
    'k = sizeof "p->dir"; /* p->dir */': 'k = sizeof "p->dir"; /* p->dir */',
}


def test_single_accesses(tmp_path: Path) -> None:
    """Each statement in a function of its own, so that nothing is merged."""
    function = "void f{}(bfGroup Pad *p, unsigned k) {{ {} (void)p; (void)k; }}"
    before = [function.format(n, statement) for n, statement in enumerate(STATEMENTS)]
    after = [function.format(n, expected) for n, expected in enumerate(STATEMENTS.values())]
    assert rewritten(tmp_path, "\n".join(before)).split("\n") == after


def test_statement_without_a_block_gets_one(tmp_path: Path) -> None:
    before = "int f(bfGroup Pad *p, int k) {\n    if (k)\n        return p->dir + p->out;\n    return 0;\n}"
    after = """\
int f(bfGroup Pad *p, int k) {
    if (k) {
        uint8_t tmp1, tmp2;
        HAL_READ_Pad_dir_out(p, &tmp1, &tmp2);
        return tmp1 + tmp2;
    }
    return 0;
}"""
    assert rewritten(tmp_path, before) == after


def test_nothing_is_declared_right_after_a_label(tmp_path: Path) -> None:
    before = (
        "int f(bfGroup Pad *p, int k) {\n    switch (k) {\n    case 1:\n        k = p->dir + p->count;\n    }\n"
        + ("    return k;\n}")
    )
    text = rewritten(tmp_path, before)
    assert "case 1:\n        ;\n        uint8_t tmp1;\n        uint16_t tmp2;\n" in text
    assert "        HAL_READ_Pad_dir_count(p, &tmp1, &tmp2);\n        k = tmp1 + tmp2;\n" in text


def test_no_value_is_declared_where_a_label_stands(tmp_path: Path) -> None:
    before = "void f(bfGroup Pad *p, uint8_t *w) {\nagain:\n    p->cfg = *w;\n"
    before += "    p->dir = 1;\n    if (*w) goto again;\n}"
    after = "void f(bfGroup Pad *p, uint8_t *w) {\n    uint8_t tmp1;\nagain:\n    tmp1 = *w;\n"
    after += "    HAL_WRITE_Pad_cfg_dir(p, tmp1, 1);\n    if (*w) goto again;\n}"
    assert rewritten(tmp_path, before) == after


def test_a_condition_of_a_loop_begins_with_all_its_merged_reads(tmp_path: Path) -> None:
    body = "int f(bfGroup Pad *p, bfGroup Pad *q) { while ((p->dir & p->out) | (q->dir & q->out)) ; return 0; }"
    text = rewritten(tmp_path, body)
    assert text.count("HAL_READ_Pad_dir_out(") == 2 and text.index("_out(p") < text.index("_out(q")


def test_a_merged_read_does_not_pass_another_device_of_its_statement(tmp_path: Path) -> None:
    groups = "bfGroup Port { bit en; uint4 ro in; };\nmake_device(Port, one, 0x1000);\nmake_device(Port, two, 0x2000);"
    alone = rewritten(tmp_path, "int f(void) { return two->en - (two->in != two->en) - one->in; }", groups)
    behind = rewritten(tmp_path, "int f(void) { return one->in - two->en - (two->in != two->en); }", groups)
    assert "HAL_READ_Port_en_in(two" in alone and "HAL_READ_Port_en_in(two" not in behind


def test_field_read_twice_is_one_temporary_with_a_name_of_its_own(tmp_path: Path) -> None:
    text = rewritten(tmp_path, "int f(bfGroup Pad *p, int tmp1) { return p->cfg + tmp1 + p->cfg; }")
    assert "uint8_t tmp2 = HAL_READ_Pad_cfg(p); return tmp2 + tmp1 + tmp2;" in text


def test_values_that_stay_the_same_wait_for_the_last_write(tmp_path: Path) -> None:
    before = "void f(bfGroup Pad *p, uint8_t v) {\n    p->cfg = v; /* why */\n    p->dir = 1;\n    p->out = v == 2;\n}"
    after = "void f(bfGroup Pad *p, uint8_t v) {\n     /* why */\n    HAL_WRITE_Pad_cfg_dir_out(p, v, 1, v == 2);\n}"
    assert rewritten(tmp_path, before) == after


CHANGING = [
    ("v", "v = 3;"),
    ("*w", ""),
    ("w[1]", ""),
    ("v++", ""),
    ("twice(v)", ""),
    ("v", "*w = 1;"),
    ("NEXT", ""),
]


def test_values_that_may_change_are_kept(tmp_path: Path) -> None:
    static = "extern uint8_t next(void);\n#define NEXT next()\nstatic uint8_t twice(uint8_t v) { return v; }"
    function = "void f{}(bfGroup Pad *p, uint8_t v, uint8_t *w) {{ {} = {}; {} {} }}"
    last = "p->dir = v & 1;", "HAL_WRITE_Pad_cfg_dir(p, tmp1, v & 1);"
    before = [function.format(n, "p->cfg", *case, last[0]) for n, case in enumerate(CHANGING)]
    after = [function.format(n, "uint8_t tmp1", *case, last[1]) for n, case in enumerate(CHANGING)]
    assert rewritten(tmp_path, "\n".join(before), static).split("\n")[3:] == after


def test_definitions_make_room_for_the_header_and_comments_stay(tmp_path: Path) -> None:
    header = "#ifndef G_H\n#define G_H\n/* pads */\nbfGroup Pad { bit a; }; // one\n\n"
    header += "bfGroup All { bfGroup Pad p[2]; };\n\n#endif\n"
    main = '#include "g.h"\n\nmake_device(All, all, 0x100);\n\n/* all of it */\nvoid f(bfGroup Pad *p) { p->a = 1; }\n'
    files = generate(packed_design(tmp_path, main, g=header), "x")
    assert files["g.h"] == '#ifndef G_H\n#define G_H\n/* pads */\n#include "x_hal.h" // one\n\n#endif\n'
    rest = "/* all of it */\nvoid f(bfGroup Pad *p) { HAL_WRITE_Pad_a(p, 1); }\n"
    assert files["driver.c"] == f'#include "g.h"\n\n#include "x_hal.h"\n\n{rest}'


def test_signed_index_is_converted_where_compilers_would_warn(tmp_path: Path) -> None:
    text = "bfGroup T { bit a[8]; };\nmake_device(T, t, 0x100);\n"
    text += "int f(int i, uint8_t j) { return t->a[i + 1] + t->a[j]; }\n"
    after = generate(naive(analysed(tmp_path, text)), "driver")["driver.c"]
    assert "HAL_READ_T_a(t, (uint32_t)(i + 1)) + HAL_READ_T_a(t, j)" in after


def test_names_that_underscores_make_alike_are_told_apart(tmp_path: Path) -> None:
    text = "bfGroup T { bit a_b; bit c; bit a; bit b_c; };\nmake_device(T, t, 0x100);\n"
    text += "int f(void) { return t->a_b + t->c; }\nint g(void) { return t->a + t->b_c; }\n"
    files = generate(packed_design(tmp_path, text), "driver")
    assert files["driver_hal.h"].count("static inline void HAL_READ_T_a_b_c(") == 1
    assert "HAL_READ_T_a_b_c__2(t, &tmp1, &tmp2)" in files["driver.c"]


def test_read_modify_write_of_what_interrupts_use_is_guarded(tmp_path: Path) -> None:
    text = "bfGroup T { bit shared_with_isr a; bit b; };\nmake_device(T, t, 0x100);\nvoid f(void) { t->b = 1; }\n"
    header = generate(packed_design(tmp_path, text), "driver")["driver_hal.h"]
    assert "#error" in header
    assert written("HAL_ENTER_CRITICAL(); *p = (*p & 0x1u) | ((uint32_t)v0 << 1); HAL_EXIT_CRITICAL();") == written(
        header[header.index("    HAL_ENTER") : header.index("    return (uint8_t)(v0")]
    )
    assert "CRITICAL" not in generate(naive(analysed(tmp_path, text)), "driver")["driver_hal.h"]


def test_neighbours_that_keep_themselves_are_written_0(tmp_path: Path) -> None:
    text = "bfGroup T { bit a; bit w1c b; bit ro c; bit d; };\nmake_device(T, t, 0x100);\n"
    text += "void f(void) { t->a = 1; }\nvoid g(void) { t->a = 1; t->d = 0; }\n"
    header = generate(packed_design(tmp_path, text), "driver")["driver_hal.h"]
    assert "*p = (*p & 0x8u) | ((uint32_t)v0 & 0x1u);" in header  # d is kept; b and c get 0
    assert "*(volatile uint32_t *)grp = ((uint32_t)v0 & 0x1u) | ((uint32_t)v1 << 3);" in header


def test_lines_end_as_they_did(tmp_path: Path) -> None:
    body = "int f(bfGroup Pad *p) {\r\n    return p->dir + p->out;\r\n}\r\n"
    (tmp_path / "driver.c").write_bytes((GROUPS.replace("\n", "\r\n") + body).encode())
    analysis = analyse([tmp_path / "driver.c"])
    text = generate(design(analysis, packed(analysis)), "driver")["driver.c"]
    assert text.count("\r\n") == text.count("\n")


def test_a_driver_must_not_be_named_as_what_is_generated(tmp_path: Path) -> None:
    (tmp_path / "x_hal.h").write_text(GROUPS)
    (tmp_path / "x.c").write_text('#include "x_hal.h"\nvoid f(void) { gpio->status = 1; }\n')
    with pytest.raises(InputError, match="written over"):
        generate(naive(analyse([tmp_path / "x.c"])), "x")


EVERYTHING = """
bfGroup Odd {
    uint8 bytes[12];
    uint3 planes[4];
    uint64 split wide;
    uint64 split wides[3];
    uint33 split w33;
    bit shared_with_isr flag;
    bit other;
    uint9 nine;
};
make_device(Odd, odd, 0x2000);
make_device(Odd, twin, 0x3000);
bus(twin, 32, 8);

uint64_t everything(bfGroup Odd *o, int i, uint64_t v) {
    uint64_t sum = o->wide + o->wides[i] + odd->w33;
    o->wides[i] = v;
    twin->wide = v >> 1;
    o->w33 += v;
    for (int k = 0; k < 4; k++)
        o->planes[k] = o->planes[k] ^ o->bytes[k + 1];
    if (o->flag && o->other)
        o->other = 0;
    else
        sum += o->nine++;
    o->flag = 1;
    o->other = (uint8_t)(v != 0);
    return sum;
}
"""


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a generated driver that uses all kinds of fields."""
    folder = tmp_path_factory.mktemp("everything")
    files = generate(naive(analysed(folder, GROUPS + EVERYTHING)), "driver")
    for file, text in files.items():
        (folder / file).write_text(text)
    return folder


@pytest.mark.parametrize("compiler", COMPILERS)
def test_compilers_take_it_without_a_warning(compiler: str, everything: Path) -> None:
    target = COMPILERS[compiler]
    if target == "host":
        call = command(compiler)
    else:
        tools = toolchain(TARGETS[target])
        call = [*tools.program, *tools.flags]
    strict = ["-Wall", "-Wextra", "-Wconversion", "-Werror", "-Os", "-c", "-o", f"{compiler}.o", "driver.c"]
    hooks = ["-DHAL_ENTER_CRITICAL()=", "-DHAL_EXIT_CRITICAL()="]
    for standard in ("c99", "c11"):
        subprocess.run([*call, f"-std={standard}", *hooks, *strict], cwd=everything, check=True)


def test_a_group_whose_address_is_only_kept_has_a_place(tmp_path):
    """Nothing is accessed through the pointer, and the generated struct must have the member all the same."""
    text = """
#include "edgewright_hal.h"
bfGroup In { bit a; };
bfGroup Out { bfGroup In part; bit b; };
make_device(Out, out, 0x40000000);
int f(int n) { bfGroup In *p = n ? &out->part : 0; out->b = 1; out->part.a = 1; return p != 0; }
"""
    (tmp_path / "f.c").write_text(text)
    analysis = analyse([tmp_path / "f.c"])
    assert [area.name for area in analysis.spaces["Out"].areas] == ["part"]
