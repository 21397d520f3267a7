"""Static functions that no compiler can put where they are called: GCC itself says so of each."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest

from edgewright.hal.analysis.inlining import inlinable
from edgewright.hal.design_flow import analyse, naive
from edgewright.hal.generate import generate
from tests.helpers.tools import needs

HEAD = """
#include "edgewright_hal.h"
bfGroup Lamp { bit on; uint4 mode; uint8 level; };
make_device(Lamp, lamp, 0x40000000);
extern int keep_place(void) __attribute__((returns_twice));
extern int _setjmp(long *place);
extern long place[64];
static void other(uint32_t x);
static void small(uint32_t x) { lamp->on = x; }
"""
TAIL = """
static void other(uint32_t x) { lamp->level = x; }
void f(uint32_t x) { small(1); start(x); start(x + 1u); other(x); }
"""
NEVER = {
    "any number of arguments": """
static void start(uint32_t n, ...)
{
    __builtin_va_list rest;
    __builtin_va_start(rest, n);
    lamp->level = n ? __builtin_va_arg(rest, uint32_t) : 0;
    __builtin_va_end(rest);
}
#define start(x) start(1u, x)
""",
    "setjmp": """
static void start(uint32_t x)
{
    if (_setjmp(place)) return;
    lamp->level = x;
}
""",
    "returns twice": """
static void start(uint32_t x)
{
    lamp->level = x;
    if (keep_place()) lamp->mode = x;
}
""",
}


@pytest.mark.parametrize("name", NEVER)
def test_what_gcc_can_never_inline_is_not_marked(tmp_path, name):
    text, compiled = _marked(tmp_path, HEAD + NEVER[name] + TAIL)
    assert compiled(text) == ""
    assert "static EDGEWRIGHT_INLINE void small(" in text and "static EDGEWRIGHT_INLINE void other(" in text
    wrong = text.replace("static void start(", "static EDGEWRIGHT_INLINE void start(")
    assert wrong != text and "never be inlined" in compiled(wrong)


def test_functions_that_call_each_other_are_not_marked(tmp_path):
    """GCC puts one of them into the other, and has nowhere to put the rest."""
    start = "static void start(uint32_t x) { lamp->mode = x; if (x) other(x - 1u); }"
    text, compiled = _marked(tmp_path, (HEAD + start + TAIL).replace("level = x;", "level = x; if (x) start(x - 1u);"))
    assert compiled(text) == "" and "EDGEWRIGHT_INLINE void small(" in text
    wrong = text
    for name in ("start", "other"):
        wrong = wrong.replace(f"static void {name}(", f"static EDGEWRIGHT_INLINE void {name}(")
    assert wrong != text and "not inlinable" in compiled(wrong)


def test_functions_for_a_target_of_their_own_are_not_marked(tmp_path):
    pragma = '#pragma GCC push_options\n#pragma GCC target("arch=rv32imac")\n{}\n#pragma GCC pop_options\n'
    start = "static void start(uint32_t x) { lamp->mode = x; }"
    (tmp_path / "driver.c").write_text(HEAD + pragma.format(start) + TAIL)
    assert not inlinable(analyse([tmp_path / "driver.c"]).functions)
    (tmp_path / "driver.c").write_text(HEAD + start + TAIL)
    assert [f.name for f in inlinable(analyse([tmp_path / "driver.c"]).functions)] == ["small", "start", "other"]


def test_attributes_that_only_gcc_knows_are_obeyed(tmp_path):
    """The analysis reads drivers with clang, which drops them."""
    start = "static {}void {}start(uint32_t x) {{ lamp->mode = x; }}"
    for before, behind in (("__attribute__((noipa)) ", ""), ("", "__attribute__((noipa)) ")):
        (tmp_path / "driver.c").write_text(HEAD + start.format(before, behind) + TAIL)
        assert [f.name for f in inlinable(analyse([tmp_path / "driver.c"]).functions)] == ["small", "other"]


def _marked(folder, source):
    """The generated driver with all functions marked that can be, and what GCC says against a text of it."""
    needs("gcc")
    (folder / "driver.c").write_text(source)
    analysis = analyse([folder / "driver.c"])
    names = frozenset(function.name for function in inlinable(analysis.functions))
    files = generate(replace(naive(analysis), inlined=names), "driver")

    def compiled(text: str) -> str:
        for name, content in {**files, "driver.c": text}.items():
            (folder / name).write_text(content)
        flags = ["-std=gnu11", "-w", "-O2", "-DHAL_ENTER_CRITICAL()=", "-DHAL_EXIT_CRITICAL()="]
        return subprocess.run(
            ["gcc", *flags, "-c", "driver.c", "-o", "driver.o"], cwd=folder, capture_output=True, text=True
        ).stderr

    return files["driver.c"], compiled
