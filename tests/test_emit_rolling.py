"""Code that repeats itself as loops: what becomes of numbers and names, and that it does what straight code does."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewright.emit import TARGETS, Options, emit
from edgewright.emit.files import weight_files
from edgewright.emit.rolling import roll
from edgewright.emit.series import shape
from edgewright.emit.static import in_use
from edgewright.emit.tokens import Kind, tokens
from edgewright.kernels.catalogue import EMITTERS
from edgewright.kernels.module import Module
from edgewright.kernels.printing.constants import Constants
from edgewright.kernels.printing.source import plus
from edgewright.memory import plan as make_plan
from edgewright.network import Arithmetic, Builder, DType, Network, Quant, Region, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.operators import Clamp, Conv2d
from edgewright.program import Plan, Program, Stage, Step, Tiles
from emitting import WARNINGS
from emitting_batch import agree, build_together, check_together, libraries
from emitting_cases import FEW, single_layers
from rolling_texts import nested


def a_unit(prefix: str = "p") -> Module:
    return Module(prefix, TARGETS["host"], Options(), Constants(prefix))


def rolled(*lines: str, unit: Module | None = None) -> list[str]:
    """The loop over texts of a line each; long enough that a loop is the smaller code."""
    filling = "g(a, b, c, d, e, f, g, h, i, j, k, l, m, n);"
    text = roll(unit or a_unit(), [[line, filling] for line in lines], "tile")
    assert text[0] == f"for (int32_t tile = 0; tile < {len(lines)}; tile++) {{" and text[2:] == [
        f"    {filling}",
        "}",
    ]
    return text[1].strip()


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["f(3);", "f(7);", "f(11);"], "f(tile * 4 + 3);"),
        (["f(3, 1);", "f(2, 1);"], "f(tile * -1 + 3, 1);"),
        (["x = y * 3;", "x = y * 5;"], "x = y * (tile * 2 + 3);"),
        (["f(x - 5);", "f(x + 3);"], "f(x + (tile * 8 - 5));"),
        (["f(x - 5);", "f(x + 5);"], "f(x + (tile * 10 - 5));"),
        (["f(x - 5);", "f(x - 9);"], "f(x - (tile * 4 + 5));"),
        (["f(-5);", "f(3);"], "f(tile * 8 - 5);"),
        (["f((int8_t)-5);", "f((int8_t)3);"], "f((int8_t)(tile * 8 - 5));"),
        (["f(x);", "f(x + 8);", "f(x + 16);"], "f(x + tile * 8);"),
        (["f((int8_t *)x, y);", "f((int8_t *)(x + 8), y);"], "f((int8_t *)(x + tile * 8), y);"),
        (["f(x, (y + 2));", "f((x + 8), y);"], "f((x + tile * 8), (y + (tile * -2 + 2)));"),
        (["f((ram), 1);", "f((ram + 64), 1);"], "f((ram + tile * 64), 1);"),
        (["f(g(x + 2));", "f((g(x) + 2));"], "f((g(x + (tile * -2 + 2)) + tile * 2));"),
        (["uint32_t columns[144];", "uint32_t columns[96];"], "uint32_t columns[144];"),
        (["EW_ALIGNED(64) float room[8];", "EW_ALIGNED(64) float room[9];"], "EW_ALIGNED(64) float room[9];"),
        (["memcpy(x, y, 24);", "memcpy(x, y, 32);"], "memcpy(x, y, (size_t)(tile * 8 + 24));"),
        (["for (i = 0; i < 8; i++) x;", "for (i = 8; i < 12; i++) x;"],
         "for (i = tile * 8; i < tile * 4 + 8; i++) x;"),
        (["x[4] = 3;", "x[5] = 3;"], "x[tile + 4] = 3;"),
        (["f(1); /* one */", "f(1); /* two */"], "f(1); /* one */"),
    ],
)  # fmt: skip
def test_numbers_on_a_line(texts, expected):
    assert rolled(*texts) == expected


@pytest.mark.parametrize(
    "texts",
    [
        ["case 1: f();", "case 2: f();"],
        ["int32_t a[2], b[3];", "int32_t a[2], b[4];"],
        ["int32_t a[2][3] = {{0}};", "int32_t a[2][4] = {{0}};"],
        ["int8_t *a[2];", "int8_t *a[3];"],
        ["static int32_t a = 2;", "static int32_t a = 3;"],
        ["EW_PROBE(1);", "EW_PROBE(2);"],
        ["#define N 3", "#define N 4"],
        ["f(1.5f);", "f(2.5f);"],
        ["f(0x10);", "f(0x11);"],
        ["f(3000000000);", "f(3000000001);"],
        ["memcpy(x, y, 4 * n);", "memcpy(x, y, 8 * n);"],
        ["f(x * y);", "f(x + 5 * y);"],
        ["f(z - x - y);", "f(z - (x - y + 5));"],
        ["f(x + y);", "f(x - 5);"],
        ["f(x);", "g(x);"],
        ["f(x);", "f(x, 1);"],
    ],
)
def test_what_must_be_equal_stays_apart(texts):
    unit = a_unit()
    filling = "g(a, b, c, d, e, f, g, h, i, j, k, l, m, n);"
    expected = [line for text in texts for line in ("{", f"    {text}", f"    {filling}", "}")]
    assert roll(unit, [[text, filling] for text in texts], "tile") == expected
    assert not unit.tables


def test_numbers_off_the_line_are_looked_up():
    """Those that run in parallel share a table."""
    unit = a_unit()
    text = rolled(
        *(f"f({v}, {v + 3}, {4 * v}, {-v}, {w});" for v, w in ((1, 0), (2, 9), (4, 1), (7, 300))), unit=unit
    )
    assert text == "f(p_t0[tile] + 1, p_t0[tile] + 4, p_t0[tile] * 4 + 4, p_t0[tile] * -1 - 1, p_t1[tile]);"
    assert unit.tables == [
        "static const int8_t p_t0[4] = {0, 1, 3, 6};",
        "static const int16_t p_t1[4] = {0, 9, 1, 300};",
    ]


def test_tables_become_arrays_and_constants_pointers():
    unit = a_unit()
    words = [unit.table("ew_part", [0, 4, t, t + 2]) for t in range(3)]
    arrays = [unit.constants.add(np.arange(t + 1, dtype=np.int8), "") for t in range(3)]
    lines = [f"f(&{t}, {c});" for t, c in zip(words, arrays, strict=True)]
    assert rolled(*lines, unit=unit) == "f(&p_t3[tile], p_p4[tile]);"
    assert unit.tables[3:] == [
        "static const ew_part p_t3[3] = {\n    {0, 4, 0, 2},\n    {0, 4, 1, 3},\n    {0, 4, 2, 4},\n};",
        "static const int8_t *const p_p4[3] = {p_c0, p_c1, p_c2};",
    ]
    assert in_use(unit.tables, ["f(&p_t3[tile], p_p4[tile]);", "h(&p_t1);"]) == [unit.tables[i] for i in (1, 3, 4)]
    other = unit.table("ew_image", [1, 2, 3])
    assert (
        len(roll(unit, [[f"f(&{words[0]}, x, y, z);"], [f"f(&{other}, x, y, z);"]], "tile")) == 6
    )  # another type


def test_a_table_that_serves_several_parts_is_stored_once():
    unit = a_unit()
    first, inner, last = (unit.table("ew_part", [t]) for t in range(3))
    assert rolled(*(f"f(&{t});" for t in (first, inner, inner, last)), unit=unit) == "f(&p_t3[p_t4[tile]]);"
    assert unit.tables[3].count("{") == 4 and unit.tables[4] == "static const int8_t p_t4[4] = {0, 1, 1, 2};"


def test_loops_in_loops():
    """Arrays of the inner loops become arrays of arrays, numbers of the widest type."""
    unit = a_unit()
    outer = []
    for row in range(3):
        inner = []
        for column in range(3):
            part = unit.table("ew_part", [row, column])
            at = plus("x", 90 * row + 7 * column)
            inner.append([f"f(&{part}, {at}, {(100 * row + column) ** 2}, a, b, c, d, e, f, g, h);"])
        outer.append(roll(unit, inner, "tile1"))
    text = roll(unit, outer, "tile0")
    assert text[0].startswith("for (int32_t tile0 = 0") and text[1].startswith("    for (int32_t tile1 = 0")
    assert len(text) == 5
    assert "[tile0][tile1], x + (tile1 * 7 + tile0 * 90)," in text[2]
    kept = in_use(unit.tables, text)
    assert [re.sub(" =.*", "", t, flags=re.S) for t in kept] == [
        "static const ew_part p_t15[3][3]",
        "static const int32_t p_t16[3][3]",
    ]


def test_where_runs_begin_and_end():
    call = "f({}, a, b, c, d, e, f, g, h, i, j, k);"
    unit = a_unit()
    texts = [
        [call.format(0)],
        [call.format(1)],
        [],
        [call.format(2)],
        ["g();"],
        ["", "{", "    h();", "}"],
        ["g();"],
    ]
    assert roll(unit, texts, "tile") == [
        "for (int32_t tile = 0; tile < 2; tile++) {",
        f"    {call.format('tile')}",
        "}",
        *("{", f"    {call.format(2)}", "}"),
        *("{", "    g();", "}"),
        *("{", "", "    {", "        h();", "    }", "}"),
        *("{", "    g();", "}"),
    ]
    assert roll(unit, [], "tile") == []
    assert roll(unit, [["{", "    int32_t a = 1;", "}"]], "tile") == ["{", "    int32_t a = 1;", "}"]


def test_a_short_last_part_is_looked_up_where_that_is_smaller():
    call = "f({}, {}, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v);"
    text = roll(a_unit(), [[call.format(4 * t, min(4 * t + 4, 14))] for t in range(4)], "tile")
    assert len(text) == 3 and text[1].startswith("    f(tile * 4, p_t0[tile],")
    short = [[f"f({t + 1}, {t}, {2 * t + 7});"] for t in range(6)] + [["f(1, 77, 2);"]]
    assert roll(a_unit(), short, "tile")[3:] == ["{", "    f(1, 77, 2);", "}"]  # three tables would cost more


@given(st.lists(st.integers(-(2**31) + 1, 2**31 - 1), min_size=2, max_size=6).map(tuple), st.integers(-9, 9))
def test_series_of_one_shape(values, factor):
    scaled = tuple(value * factor + 3 for value in values)
    if factor and max(map(abs, scaled)) < 2**29:
        assert shape(values) == shape(scaled)
    if max(values) - min(values) < 2**31:
        assert shape(values)[0] == 0


@given(st.text(st.sampled_from("ax_09+-*/%()[]{},;=<>&|!.\"' #\\"), max_size=30))
def test_tokens_hold_the_whole_line(line):
    found = tokens(line.rstrip())
    assert "".join(token.space + token.text for token in found) == line.rstrip()


def test_signs_and_numbers():
    kinds = {
        token.text: token.kind for token in tokens("f(a - 1, -2, b[3] + 4u, (int8_t)-5, x * -6, 'c', 7 - 8);")
    }
    assert [kinds[text] for text in ("-", "1", "-2", "3", "-5", "-6", "7")] == [Kind.SIGN, *[Kind.NUMBER] * 6]
    assert kinds["4u"] is kinds["+"] is Kind.FIXED


CASES = 100
HEAD = """
#include <stdint.h>
#include <string.h>
#include "p_weights.h"
typedef struct { int32_t a, b; } ew_pair;
static int32_t *log_at;
static void note(int32_t value) { *log_at++ = value; }
static void note_pair(const ew_pair *pair) { note(pair->a); note(pair->b); }
static int32_t ew_max(int32_t a, int32_t b) { return a > b ? a : b; }
"""
CHECK = """
typedef int32_t (*function)(int32_t *, int32_t, int32_t);
static int32_t logs[2][4000];
static int differ(function one, function other)
{
    const int32_t n = one(logs[0], 17, -9), m = other(logs[1], 17, -9);
    return n != m || memcmp(logs[0], logs[1], (size_t)n * sizeof(int32_t)) != 0;
}
"""


@pytest.mark.slow
def test_random_texts_do_the_same_as_loops(tmp_path: Path):
    unit, functions, loops = a_unit(), [], 0
    for seed in range(CASES):
        bodies = nested(random.Random(seed), unit)
        loops += any("for (int32_t tile" in line for line in bodies[1])
        for name, body in zip(("straight", "rolled"), bodies, strict=True):
            functions += [f"int32_t {name}{seed}(int32_t *log, int32_t a, int32_t b);"]
            functions += [f"int32_t {name}{seed}(int32_t *log, int32_t a, int32_t b) {{", "log_at = log;", *body]
            functions += ["(void)a; (void)b;", "return (int32_t)(log_at - log);", "}"]
    assert loops > 0.7 * CASES
    checks = [f"if (differ(straight{seed}, rolled{seed})) return {seed + 1};" for seed in range(CASES)]
    main = [CHECK, "int main(void) {", *checks, "return 0;", "}"]
    program = "\n".join([HEAD, *in_use(unit.tables, functions), *functions, *main])
    for name, content in weight_files(unit.constants).items():
        (tmp_path / name).write_text(str(content))
    (tmp_path / "main.c").write_text(program)
    flags = [*WARNINGS, "-O0", "-fsanitize=undefined,address", "-fno-sanitize-recover=all"]
    sources = [str(tmp_path / name) for name in ("main.c", "p_weights.c")]
    subprocess.run(["gcc", *flags, *sources, "-o", str(tmp_path / "main")], check=True)
    assert subprocess.run([tmp_path / "main"]).returncode == 0


# What emitters write.


def layer(kind: str, dtype: str, seed: int = 0, size: tuple[int, int, int] = (12, 16, 16)) -> Network:
    """A convolution, a depthwise or a pointwise one."""
    rng, channels = np.random.default_rng(seed), size[2]
    groups, kernel = (channels if kind == "depthwise" else 1), (1, 1) if kind == "pointwise" else (3, 3)
    shape = (channels, *kernel, channels // groups)
    op = Conv2d(
        groups=groups, pads=(0, 0, 0, 0) if kind == "pointwise" else (1, 1, 1, 1), activation=Clamp(0.0, 6.0)
    )
    if dtype == "float32":
        b = Builder("net")
        x = b.input("x", (1, *size))
        w = b.constant("w", rng.normal(size=shape).astype(np.float32))
        return b.build([b.layer(op, [x, w], "y")])
    b = Builder("net", Arithmetic.TFLITE)
    x = b.input("x", (1, *size), DType.INT8, Quant.of(0.05, -10))
    scales = tuple(float(np.float32(s)) for s in rng.uniform(0.002, 0.01, channels))
    weights = rng.integers(-127, 128, shape).astype(np.int8)
    w = b.constant("w", weights, Quant(scales, (0,) * channels, 0))
    bias = b.constant("b", rng.integers(-3000, 3000, channels).astype(np.int32))
    return b.build([b.layer(op, [x, w, bias], "y", dtype=DType.INT8, quant=Quant.of(6 / 255, -128))])


def tiled(network: Network, axis: int, ends: Sequence[int]) -> Plan:
    """Each layer's output in these parts."""
    plan = make_plan(network, plain=True)
    stages = []
    for stage in plan.program.stages:
        name = network.by_name[stage.name].name
        step = Step(name, Region.whole(network.tensors[network.by_name[name].output].shape))
        stages.append(Stage(name, (Tiles(axis, tuple(ends), (step,), (name,)),)))
    return replace(plan, program=Program(network, tuple(stages)))


KINDS = ("conv", "depthwise", "pointwise")
CUTS = [
    (1, (4, 8, 12)),
    (-1, (5, 10, 15, 16)),
    (2, (5, 10, 15, 16)),
    (-1, (4, 8, 12, 16)),
    (1, (1, 12)),
    (2, (8, 16)),
]


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_layers_in_parts_are_loops_and_exact(dtype):
    kinds = [(kind, target) for kind in KINDS for target in ("host", "cortex-m4")]
    cases = [(*kinds[i % 6], CUTS[(i + i // 6) % 6]) for i in range(12)]
    networks = [layer(kind, dtype) for kind, _, _ in cases]
    plans = [tiled(network, *cut) for network, (_, _, cut) in zip(networks, cases, strict=True)]
    made = libraries(networks, [target for _, target, _ in cases], plans)
    for case, library in zip(cases, made, strict=True):
        assert len(case[2][1]) < 3 or "for (int32_t tile = 0" in str(library.files[f"{library.name}.c"]), case
    for network, native in zip(networks, build_together(made), strict=True):
        values = random_inputs(network, 1)
        agree(network, native.run(values, poison=0x55), execute(network, values))


@FEW
@given(st.data())
@pytest.mark.parametrize("quantised", [False, True])
def test_every_operator_in_parts(quantised, data):
    """Whatever an emitter writes: its parts as loops give what the whole gives, and no compiler complains."""
    networks, plans, inputs = [], [], []
    for kind in EMITTERS:
        network, values = data.draw(single_layers(kind, quantised))
        output = network.tensors[network.outputs[0]].shape
        if not output or network.outputs[0] not in {layer.output for layer in network.layers}:
            continue
        axis = data.draw(st.integers(0, len(output) - 1))
        size = data.draw(st.integers(1, max(1, output[axis] // 2)))
        ends = [*range(size, output[axis], size), output[axis]]
        networks.append(network)
        plans.append(tiled(network, axis, ends))
        inputs.append(dict(values))
    check_together(networks, plans=plans, inputs=inputs)


def test_clang_is_content_too():
    networks = [layer(kind, "int8") for kind in KINDS]
    plans = [tiled(network, -1, (5, 10, 15, 16)) for network in networks]
    build_together(libraries(networks, ["cortex-m4"], plans), cc="clang")


def test_loops_are_smaller_than_copies():
    """Lines of the schedule do not grow with the parts."""
    network = layer("conv", "float32")
    few, many = (
        emit(tiled(network, 2, range(step, 17, step)), TARGETS["cortex-m4"], network).files["net.c"]
        for step in (4, 1)
    )
    lines = [str(text).split("net_run_in")[1].count("\n") for text in (few, many)]
    assert lines[0] == lines[1]
