"""The virtual board: emitted code as firmware, its figures, and firmware that is broken."""

from __future__ import annotations

import math
import shutil
import subprocess
from ctypes import CDLL, c_float
from functools import cache
from importlib import resources
from importlib.util import find_spec
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewright.board.layout import lay_out
from edgewright.board.machine import AN386, AN505, machine_for
from edgewright.board.toolchain import toolchain
from edgewright.emit import TARGETS, emit
from edgewright.emit.firmware import Emulator, image, measure
from edgewright.emit.firmware.glue import Probes
from edgewright.emit.firmware.image import build_firmware
from edgewright.emit.firmware.measurement import packed, run_firmware
from edgewright.errors import EdgewrightError, Infeasible, InputError
from edgewright.memory import plan
from edgewright.network import Builder, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.operators import Dense
from edgewright.network.reference import compare
from edgewright.platform import parse_board
from edgewright.platform.target import Architecture
from tests.emit.board_cases import quantised, real, with_statement
from tests.helpers.parameters import each_once
from tests.helpers.tools import needs_board

BARE = [name for name, t in TARGETS.items() if t.architecture in (Architecture.CORTEX_M, Architecture.RV32)]

NETWORK, REAL = quantised(), real()
PLAN, REAL_PLAN = plan(NETWORK, explain=False), plan(REAL, explain=False)
INPUTS = random_inputs(NETWORK, 0)


@cache
def library(target: str):
    return emit(PLAN, TARGETS[target])


@cache
def measured_plainly(target: str):
    return measure(library(target), INPUTS)


@pytest.mark.parametrize("target", BARE)
def test_outputs_are_exact_and_memory_is_what_was_planned(target):
    needs_board(target)
    made, measured = library(target), measured_plainly(target)
    for name, expected in execute(NETWORK, INPUTS).items():
        if name in measured.outputs:
            np.testing.assert_array_equal(measured.outputs[name], expected)
    assert list(measured.outputs) == list(NETWORK.outputs)
    assert measured.ram_linked == PLAN.peak_bytes == sum(made.arenas.values())
    assert measured.flash_weights == made.weight_bytes
    assert 500 < measured.flash_code < 20_000
    assert measured.flash == measured.flash_weights + measured.flash_code + measured.flash_runtime
    # Every multiply-accumulate of this network costs some instruction.
    assert PLAN.macs / 8 < measured.instructions < PLAN.macs * 100
    assert 0 < measured.stack_bytes <= measured.stack_bound <= measured.stack_bytes + 256


SPIN = {
    Architecture.CORTEX_M: '__asm__ volatile("1: subs %0, %0, #1\\n bne 1b" : "+l"(n) : : "cc");',
    Architecture.RV32: '__asm__ volatile("1: addi %0, %0, -1\\n bnez %0, 1b" : "+r"(n));',
}


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m33", "cortex-m55", "rv32imc"])
def test_instructions_are_counted_exactly(target):
    """A loop of two instructions: a million turns are two million instructions, and a few to set it up."""
    needs_board(target)
    loop = f"{{ uint32_t n = 1000000; {SPIN[TARGETS[target].architecture]} }}"
    more = measure(with_statement(library(target), loop), INPUTS).instructions - measured_plainly(target).instructions
    assert 2_000_000 <= more <= 2_000_008


@pytest.mark.parametrize("target", ["cortex-m4", "rv32imc"])
def test_two_emulators_and_two_runs_count_alike(target, tmp_path):
    needs_board(target, Emulator.QEMU)
    needs_board(target, Emulator.UNICORN)
    made, machine = library(target), machine_for(TARGETS[target])
    firmware = build_firmware(made, machine, toolchain(made.target), tmp_path, probes=Probes.STAMPS)
    data = packed(NETWORK, INPUTS)
    emulators = (Emulator.QEMU, Emulator.QEMU, Emulator.UNICORN)
    first, *others = [run_firmware(made, firmware, machine, emulator, data, 60) for emulator in emulators]
    assert others == [first, first]
    assert len(first.stages) == len(made.stages)
    assert 0 <= first.instructions - sum(first.stages) < 400  # entry, exit and the probes themselves


def test_stages_are_told_when_asked_for():
    needs_board("cortex-m0plus")
    measured = measure(library("cortex-m0plus"), INPUTS, profile=True, optimise="-O2")
    assert list(measured.stages) == ["conv", "pool", "point"]
    assert measured.stages["conv"] > measured.stages["pool"] > 0
    assert measured.compiler.endswith("-O2") and not measured_plainly("cortex-m0plus").stages


@pytest.mark.parametrize(("target", "emulator"), each_once(["cortex-m0plus", "cortex-m7", "rv32gc"], [*Emulator]))
def test_floats_with_and_without_an_fpu(target, emulator):
    needs_board(target, emulator)
    inputs = random_inputs(REAL, 0)
    measured = measure(emit(REAL_PLAN, TARGETS[target]), inputs, emulator=emulator)
    verdict = compare(REAL, measured.outputs, execute(REAL, inputs))
    assert verdict.passes, verdict


def test_rows_are_pulled():
    needs_board("cortex-m4")
    pulled = emit(plan(NETWORK, pull_rows=True, explain=False), TARGETS["cortex-m4"])
    measured = measure(pulled, INPUTS)
    np.testing.assert_array_equal(measured.outputs["point"], execute(NETWORK, INPUTS)["point"])
    assert measured.ram_linked == sum(pulled.arenas.values())
    assert measured.stack_bound is not None  # without the stack of the callback


def test_without_any_system_tool():
    """Zig compiles and Unicorn runs: both come from PyPI."""
    if not (find_spec("ziglang") and find_spec("unicorn")):
        pytest.skip("ziglang and unicorn are not installed")
    measured = measure(library("cortex-m4"), INPUTS, zig=True, emulator=Emulator.UNICORN)
    np.testing.assert_array_equal(measured.outputs["point"], execute(NETWORK, INPUTS)["point"])
    assert measured.ram_linked == PLAN.peak_bytes and measured.flash_weights == library("cortex-m4").weight_bytes
    assert "zig" in measured.compiler and "unicorn" in measured.emulator
    assert 0 < measured.stack_bytes <= measured.stack_bound <= measured.stack_bytes + 256


def test_this_machine():
    measured = measure(library("host"), INPUTS)
    np.testing.assert_array_equal(measured.outputs["point"], execute(NETWORK, INPUTS)["point"])
    assert measured.instructions is None and not measured.stages
    assert measured.ram_linked == PLAN.peak_bytes


DEEP = "uint8_t big[{}]; uint8_t *volatile at = big; at[0] = at[{}] = 1;"
FAULTS = [
    (
        "cortex-m0plus",
        "volatile uintptr_t at = (uintptr_t)tiny_arena_ram + 1; *(volatile uint32_t *)at = 1;",
        "unaligned",
    ),
    ("cortex-m4", "*(volatile uint32_t *)0x70000000u = 1;", "not there at 0x70000000"),
    ("cortex-m4", '__asm__ volatile("udf #0");', "undefined instruction .* in tiny_run"),
    ("cortex-m4", DEEP.format(40000, 39999), "stack overflow"),
    ("cortex-m33", DEEP.format(40000, 39999), "stack overflow"),
    ("rv32imc", '__asm__ volatile(".word 0");', "illegal instruction .* in tiny_run"),
    ("rv32imc", DEEP.format(17000, 16999), "stack overflow"),
]


@pytest.mark.parametrize(("target", "statement", "message"), FAULTS)
def test_faults_say_where_and_why(target, statement, message):
    needs_board(target, Emulator.QEMU)
    with pytest.raises(EdgewrightError, match=message):
        measure(with_statement(library(target), statement), INPUTS, emulator=Emulator.QEMU)


@pytest.mark.parametrize(
    ("target", "statement"), [(target, statement) for target, statement, _ in FAULTS if target != "cortex-m0plus"]
)
def test_faults_say_where_under_unicorn_too(target, statement):
    """All but an unaligned access, which its processors allow."""
    needs_board(target, Emulator.UNICORN)
    with pytest.raises(EdgewrightError, match=r"faulted under Unicorn: .* in tiny_run"):
        measure(with_statement(library(target), statement), INPUTS, emulator=Emulator.UNICORN)


@pytest.mark.parametrize("emulator", Emulator)
def test_firmware_that_does_not_end(emulator):
    needs_board("cortex-m4", emulator)
    endless = with_statement(library("cortex-m4"), 'for (;;) { __asm__ volatile("nop"); }')
    with pytest.raises(EdgewrightError, match="did not end within 1 s"):
        measure(endless, INPUTS, emulator=emulator, timeout_s=1)


def test_unicorn_has_the_planned_memory_and_no_more():
    needs_board("cortex-m4", Emulator.UNICORN)
    wild = with_statement(library("cortex-m4"), "*(volatile uint8_t *)0x20100000u = 1;")  # RAM of the QEMU machine
    with pytest.raises(EdgewrightError, match=r"faulted under Unicorn.*UNMAPPED.*in tiny_run"):
        measure(wild, INPUTS, emulator=Emulator.UNICORN)


def test_writable_data_beside_the_arena_is_refused():
    """Without a board, RAM is as large as the plan says."""
    needs_board("cortex-m4")
    greedy = with_statement(library("cortex-m4"), "static volatile uint8_t more[99]; more[0] = 1;")
    with pytest.raises(Infeasible, match=r"memory 'ram' has .* bytes .*, and .* bytes more are needed"):
        measure(greedy, INPUTS)


def small_board(ram: int, flash: int):
    return parse_board(
        f"""
        name = "small"
        [[processor]]
        name = "core"
        kind = "cortex-m4f"
        clock = "1 MHz"
        [[memory]]
        name = "sram"
        size = {ram}
        [[memory]]
        name = "flash"
        size = {flash}
        read_only = true
        """,
        "small.toml",
    )


@pytest.mark.parametrize(
    ("ram", "flash", "message"), [(256, 65536, "memory 'ram' has 256 "), (4096, 512, "flash has 512 ")]
)
def test_a_board_that_is_too_small(ram, flash, message):
    needs_board("cortex-m4")
    board = small_board(ram, flash)
    with pytest.raises(Infeasible, match=f"does not fit board 'small': its {message}"):
        measure(library("cortex-m4"), INPUTS, board=board)


def test_weights_beyond_the_code_memory_count_as_flash_too():
    """4.3 MB of weights: as a binary file, in the machine's large memory, and still too much for 4 MB of flash."""
    needs_board("cortex-m4")
    b = Builder("wide")
    x = b.input("x", (1, 900))
    w = b.constant("w", np.random.default_rng(0).standard_normal((1200, 900)).astype(np.float32))
    network = b.build([b.layer(Dense(), [x, w], "dense")])
    wide = emit(plan(network, explain=False), TARGETS["cortex-m4"])
    inputs = random_inputs(network, 0)
    measured = measure(wide, inputs)
    assert measured.flash_weights == wide.weight_bytes == 900 * 1200 * 4
    assert compare(network, measured.outputs, execute(network, inputs)).passes
    board = small_board(1 << 16, 900 * 1200 * 4 + 50)
    with pytest.raises(Infeasible, match=r"its flash has 4320050 bytes .*, and \d+ bytes more are needed"):
        measure(wide, inputs, board=board)


def test_wrong_inputs():
    with pytest.raises(InputError, match="no value for input 'x'"):
        measure(library("cortex-m4"), {})
    with pytest.raises(InputError, match="must be int8 of shape"):
        measure(library("cortex-m4"), {"x": np.zeros(3, np.int8)})


def test_missing_emulators(monkeypatch):
    needs_board("cortex-m4")
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name.startswith("qemu") else which(name))
    with pytest.raises(EdgewrightError, match="apt install qemu-system-arm"):
        measure(library("cortex-m4"), INPUTS, emulator=Emulator.QEMU)
    monkeypatch.setattr("edgewright.board.unicorn.find_spec", lambda name: None)
    with pytest.raises(EdgewrightError, match=r"edgewright\[board\]"):
        measure(library("cortex-m4"), INPUTS, emulator=Emulator.UNICORN)


@given(
    st.lists(st.integers(1, 6 << 20), max_size=3),
    st.integers(0, 20 << 20),
    st.integers(1, 1 << 16),
    st.sampled_from([AN386, AN505]),
)
def test_regions_lie_inside_the_banks_and_apart(sizes, weights, harness, machine):
    try:
        arenas = {f"m{i}": size for i, size in enumerate(sizes)}
        layout = lay_out(machine, arenas, {name: name for name in arenas}, weights, 16384, harness, None)
    except Infeasible:
        too_large = sum(sizes) + weights > 4 << 20
        assert too_large
        return
    for region in layout.regions:
        banks = (machine.code, machine.ram, machine.spare)
        assert any(b.origin <= region.origin and region.origin + region.length <= b.origin + b.size for b in banks)
    for one, two in combinations(layout.regions, 2):
        assert one.origin + one.length <= two.origin or two.origin + two.length <= one.origin


def erf(values):
    return np.array([math.erf(v) for v in values])


FUNCTIONS = [
    ("expf", np.exp, -104, 89, 1.0),
    ("expm1f", np.expm1, -20, 89, 1.0),
    ("logf", np.log, 0, 10, 1.0),
    ("log1pf", np.log1p, -1, 10, 1.0),
    ("tanhf", np.tanh, -11, 11, 2.5),
    ("erff", erf, -5, 5, 1.5),
    ("sqrtf", np.sqrt, 0, 100, 0.5),
    ("sinf", np.sin, -1e5, 1e5, 2.0),
    ("cosf", np.cos, -1e5, 1e5, 2.0),
    ("floorf", np.floor, -9, 9, 0.0),
    ("ceilf", np.ceil, -9, 9, 0.0),
    ("rintf", np.rint, -9, 9, 0.0),
    ("truncf", np.trunc, -9, 9, 0.0),
]
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, -3e38, 0.5, 1.5, -2.5, 88.7, -103], "f4")


@pytest.fixture(scope="module")
def mathematics(tmp_path_factory):
    """The harness's own mathematics, built for this machine, under names that this machine's does not have."""
    folder = tmp_path_factory.mktemp("math")
    sources = resources.files("edgewright.emit.firmware") / "c"
    flags = [
        "-std=c99",
        "-O1",
        "-ffp-contract=off",
        "-fno-builtin",
        "-shared",
        "-fPIC",
        "-Wall",
        "-Wextra",
        "-Werror",
    ]
    names = [f"-D{name}=own_{name}" for name in (*(f[0] for f in FUNCTIONS), "powf", "fabsf", "copysignf")]
    target = folder / "libown.so"
    command = ["cc", *flags, *names, "-I", str(sources / "include"), str(sources / "math.c"), "-o", str(target)]
    subprocess.run(command, check=True)
    return CDLL(str(target))


def ulps(actual, expected):
    """Distance in units of the last place of float32."""
    near = np.maximum(np.abs(expected), np.float64(1e-45)).astype(np.float32)
    return np.abs(actual.astype(np.float64) - expected) / np.spacing(near).astype(np.float64)


@pytest.mark.parametrize(("name", "truth", "low", "high", "tolerance"), FUNCTIONS)
def test_mathematics_is_accurate(mathematics, name, truth, low, high, tolerance):
    function = mathematics[f"own_{name}"]
    function.restype, function.argtypes = c_float, [c_float]
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.uniform(low, high, 4000), rng.uniform(0, 1, 1000), np.arange(-9, 9, 0.5)]).astype("f4")
    if name not in ("sinf", "cosf"):  # whose arguments beyond 1e9 have no digits left
        values = np.concatenate([values, SPECIAL])
    with np.errstate(all="ignore"):
        expected = truth(values.astype(np.float64))
        single = expected.astype(np.float32)
    actual = np.array([function(float(v)) for v in values], np.float32)
    finite = np.isfinite(single)
    np.testing.assert_array_equal(actual[~finite], single[~finite])
    assert ulps(actual[finite], expected[finite]).max() <= tolerance


def test_powers_are_accurate(mathematics):
    function = mathematics["own_powf"]
    function.restype, function.argtypes = c_float, [c_float, c_float]
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(0, 10, 3000), np.repeat(SPECIAL, len(SPECIAL))]).astype("f4")
    y = np.concatenate([rng.uniform(-30, 30, 3000), np.tile(SPECIAL, len(SPECIAL))]).astype("f4")
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), y.astype(np.float64))
        single = expected.astype(np.float32)
    actual = np.array([function(float(a), float(b)) for a, b in zip(x, y, strict=True)], np.float32)
    finite = np.isfinite(single)
    np.testing.assert_array_equal(actual[~finite], single[~finite])
    assert ulps(actual[finite], expected[finite]).max() <= 1.0


def test_what_a_compiler_reads_is_found(tmp_path):
    """By these files objects are known again: what is included, also by what is included, and weights."""
    (tmp_path / "include").mkdir()
    texts = {
        "net.c": '#include "net.h"\n#  include <string.h>\n#include <stdint.h>\n',
        "net.h": '#include "base.h"\n',
        "net_weights.S": '.incbin "net_weights.bin", 0, 16\n',
        "net_weights.bin": '#include "other.h"\n',
        **dict.fromkeys(("base.h", "other.h", "include/string.h"), ""),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert set(image._read_by(tmp_path, "net.c")) == {"net.c", "net.h", "base.h", "include/string.h"}
    assert set(image._read_by(tmp_path, "net_weights.S")) == {"net_weights.S", "net_weights.bin"}
