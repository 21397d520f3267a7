"""Targets of boards, compilers for targets, and the reader of what they make."""

from __future__ import annotations

import shutil
import struct
import subprocess

import numpy as np
import pytest

from edgewright.board.elf import read_elf
from edgewright.board.toolchain import gcc_flags, toolchain, zig_flags
from edgewright.compiling import compile_model
from edgewright.emit import TARGETS, Family
from edgewright.emit.native import load
from edgewright.errors import BoardError, EdgewrightError
from edgewright.memory import plan
from edgewright.network import Builder, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.onnx_writer import write_onnx
from edgewright.network.operators import Softmax
from edgewright.platform import Board, catalogue, load_board
from edgewright.platform.target import Architecture, chosen_target, target_of

BARE = [t for t in TARGETS.values() if t.architecture in (Architecture.CORTEX_M, Architecture.RV32)]


def board(kind: str, *features: str) -> Board:
    processor = {"name": "core", "kind": kind, "clock": "1 MHz", "features": features}
    return Board.model_validate({"name": "b", "processor": [processor], "memory": [{"name": "ram", "size": 1024}]})


def test_every_board_of_the_catalogue_has_a_target():
    assert {target_of(known).name for known in catalogue()} <= TARGETS.keys()
    assert [known.name for known in catalogue() if target_of(known).is_portable] == ["esp32-s3-devkitc"]


def test_a_board_takes_what_its_processor_runs():
    m4, m33 = load_board("nucleo-f446re"), load_board("b-u585i-iot02a")
    assert chosen_target(m4) == chosen_target(m4, "cortex-m4") == TARGETS["cortex-m4"]
    assert chosen_target(None) is None and chosen_target(None, "rv32gc") == TARGETS["rv32gc"]
    assert chosen_target(m33, "cortex-m4") == TARGETS["cortex-m4"]
    for named in ("cortex-m0plus", "host", "portable"):
        assert chosen_target(m4, named) == TARGETS[named]
    for named in ("rv32imc", "cortex-m33", "cortex-m55", "aarch64"):
        with pytest.raises(BoardError, match=rf"nucleo-f446re.*cortex-m4f.*{named}.*leave --target out"):
            chosen_target(m4, named)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("nucleo-f446re", "cortex-m4"),
        ("nucleo-h743zi", "cortex-m7"),
        ("b-u585i-iot02a", "cortex-m33"),
        ("mps3-an547", "cortex-m55"),
        ("raspberry-pi-pico", "cortex-m0plus"),
        ("esp32-c3", "rv32imc"),
        ("jetson-tx2", "aarch64"),
        ("host", "host"),
    ],
)
def test_boards_run_their_processor(name, target):
    assert target_of(load_board(name)) == TARGETS[target]


def test_what_a_chip_leaves_out_is_left_out():
    plain = target_of(board("cortex-m33"))
    assert plain.family is Family.PORTABLE and not plain.has_fpu
    assert "-mcpu=cortex-m33+nodsp" in gcc_flags(plain) and "-mfloat-abi=soft" in gcc_flags(plain)
    assert target_of(board("cortex-m33", "dsp", "fpu")) == TARGETS["cortex-m33"]
    soft = target_of(board("cortex-m4"))
    assert soft.family is Family.DSP and not soft.has_fpu
    assert target_of(board("cortex-m55", "fpu")).family is Family.DSP
    assert target_of(board("cortex-m55", "fpu", "helium")) == TARGETS["cortex-m55"]
    assert target_of(board("cortex-m3")).cpu == "cortex-m3"


def test_a_board_without_a_compiler_here_gets_plain_c():
    assert target_of(board("xtensa-lx7", "fpu")) == TARGETS["portable"]
    assert not target_of(board("xtensa-lx7")).has_fpu
    with pytest.raises(BoardError, match="GPU"):
        target_of(board("gpu"))


LINUX = [known for known in catalogue() if not known.flash]
CORES = [
    ("raspberry-pi-zero-2-w", "cortex-a53", False),
    ("jetson-nano", "cortex-a57", False),
    ("raspberry-pi-4", "cortex-a72", False),
    ("raspberry-pi-5", "cortex-a76", True),
    ("jetson-orin-nano", "cortex-a78ae", True),
    ("jetson-tx2", "generic", False),
]


@pytest.mark.parametrize("zig", [False, True], ids=["gcc", "zig"])
@pytest.mark.parametrize(("name", "core", "has_dot"), CORES, ids=lambda value: str(value))
def test_application_processors_are_built_for_as_they_are(name, core, has_dot, zig, tmp_path):
    """The compiler knows the core, and dot products where it has them."""
    target = target_of(load_board(name))
    assert (target.name, target.cpu, target.has_dot) == ("aarch64", core, has_dot)
    try:
        tools = toolchain(target, zig)
    except EdgewrightError as error:
        pytest.skip(str(error))
    wanted = "" if has_dot else "!"
    (tmp_path / "x.c").write_text(f"#if !({wanted}defined(__ARM_FEATURE_DOTPROD))\n#error dot\n#endif\nint x;")
    tools.run(["-std=c99", "-c", "x.c", "-o", "x.o"], tmp_path)


@pytest.mark.parametrize("board", LINUX, ids=lambda board: board.name)
def test_every_board_without_flash_is_compiled_for(board, tmp_path):
    """No flash is not flash of size 0: weights are in the program."""
    assert board.flash_size is None
    b = Builder("small")  # and so is its code
    x = b.input("x", (1, 6))
    model = tmp_path / "model.onnx"
    write_onnx(b.build([b.layer(Softmax(), [x], "y")]), model)
    made = compile_model(model, tmp_path / "out", board=board)
    assert made.figures.verified and made.figures.board == board.name
    flags = (tmp_path / "out" / "Makefile").read_text()
    assert ("$(NATIVE)" if board.name == "host" else f"-mcpu={made.library.target.cpu}") in flags


VARIANTS = [
    *BARE,
    target_of(board("cortex-m33")),
    target_of(board("cortex-m4")),
    target_of(board("cortex-m55", "fpu")),
]
SOURCE = """
#include <stdint.h>
#include <stddef.h>
#if WANT_DSP != defined(__ARM_FEATURE_DSP)
#error the DSP extension
#endif
#if WANT_MVE != defined(__ARM_FEATURE_MVE)
#error Helium
#endif
int32_t scale(int32_t x, float f) { return (int32_t)((float)x * f) + (int32_t)sizeof(size_t); }
"""


@pytest.mark.parametrize("zig", [False, True], ids=["gcc", "zig"])
@pytest.mark.parametrize("target", VARIANTS, ids=lambda t: f"{t.cpu}-{'hard' if t.has_fpu else 'soft'}")
def test_compilers_take_their_flags(target, zig, tmp_path):
    try:
        tools = toolchain(target, zig)
    except EdgewrightError as error:
        pytest.skip(str(error))
    (tmp_path / "x.c").write_text(SOURCE)
    wanted = [
        f"-DWANT_DSP={int(target.family in (Family.DSP, Family.HELIUM))}",
        f"-DWANT_MVE={int(target.family is Family.HELIUM)}",
    ]
    tools.run(["-std=c99", "-Os", *wanted, "-c", "x.c", "-o", "x.o"], tmp_path)
    elf = read_elf(tmp_path / "x.o")
    assert "scale" in [name for _, _, name in elf.functions]
    # Without an FPU the product is a call.
    calls = {"__aeabi_fmul", "__mulsf3"} & set(elf.symbols)
    assert bool(calls) != target.has_fpu


def test_an_error_of_the_compiler_is_shown(tmp_path):
    (tmp_path / "x.c").write_text("int broken(void) { return oops; }")
    with pytest.raises(EdgewrightError, match="oops"):
        toolchain(TARGETS["host"]).run(["-c", "x.c", "-o", "x.o"], tmp_path)


def test_missing_compilers_are_named_with_their_packages(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr("edgewright.board.toolchain.find_spec", lambda name: None)
    for target, package in (("cortex-m4", "gcc-arm-none-eabi"), ("rv32imc", "gcc-riscv64-unknown-elf")):
        with pytest.raises(EdgewrightError, match=rf"{target}.*{package}.*edgewright\[board\]"):
            toolchain(TARGETS[target])
    with pytest.raises(EdgewrightError, match="no Zig compiler"):
        toolchain(TARGETS["cortex-m4"], zig=True)


def test_zig_steps_in_where_there_is_no_gcc(monkeypatch):
    pytest.importorskip("ziglang", reason="ziglang is not installed")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    tools = toolchain(TARGETS["cortex-m4"])
    assert tools.name.startswith("zig cc") and not tools.is_gcc
    assert set(zig_flags(TARGETS["cortex-m4"])) <= set(tools.flags)


def test_zig_builds_for_this_machine_too(monkeypatch):
    pytest.importorskip("ziglang", reason="ziglang is not installed")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    b = Builder("small")
    network = b.build([b.layer(Softmax(), [b.input("x", (1, 6))], "y")])
    inputs = random_inputs(network)
    np.testing.assert_allclose(load(plan(network)).run(inputs)["y"], execute(network, inputs)["y"], rtol=1e-6)


def test_sections_are_those_that_binutils_see(tmp_path):
    if not shutil.which("size"):
        pytest.skip("binutils are not installed")
    (tmp_path / "x.c").write_text(
        "const char text[100] = {1}; char zero[300]; int full[5] = {1}; int f(void) { return 1; }"
    )
    toolchain(TARGETS["host"]).run(["-c", "x.c", "-fno-common", "-o", "x.o"], tmp_path)
    elf = read_elf(tmp_path / "x.o")
    listed = subprocess.run(["size", "-A", tmp_path / "x.o"], capture_output=True, text=True, check=True).stdout
    table = {line.split()[0]: int(line.split()[1]) for line in listed.splitlines() if line.startswith(".")}
    for name in (".text", ".rodata", ".data", ".bss"):
        assert elf.size(name) == table[name] > 0
    assert elf.symbols["zero"][1] == 300 and elf.function_at(elf.symbols["f"][0]) == "f"


@pytest.mark.parametrize("data", [b"", b"MZ", b"\x7fELF\x01\x02" + bytes(60), b"\x7fELF\x02\x01" + bytes(3)])
def test_what_is_no_elf_is_refused(data, tmp_path):
    (tmp_path / "x.o").write_bytes(data)
    with pytest.raises(EdgewrightError, match="no little-endian ELF"):
        read_elf(tmp_path / "x.o")


def test_a_cut_elf_is_refused(tmp_path):
    (tmp_path / "x.c").write_text("int f(void) { return 1; }")
    toolchain(TARGETS["host"]).run(["-c", "x.c", "-o", "x.o"], tmp_path)
    whole = (tmp_path / "x.o").read_bytes()
    assert struct.unpack_from("<Q", whole, 40)[0] < len(whole)
    (tmp_path / "y.o").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(EdgewrightError, match=r"no little-endian ELF|cut short"):
        read_elf(tmp_path / "y.o")
