"""Bounds on the stack, read off machine code: what instructions do, who calls whom, and that no run takes more."""

from __future__ import annotations

import shutil
import struct
from importlib.util import find_spec

import numpy as np
import pytest

from edgewright.board import rv32, thumb
from edgewright.board.elf import Elf, LoadSegment, Section
from edgewright.board.instruction import ControlFlow
from edgewright.board.stack import stack_bound
from edgewright.emit import TARGETS, emit
from edgewright.emit.firmware import Emulator, measure, measurement
from edgewright.errors import EdgewrightError
from edgewright.memory import plan
from edgewright.network import Arithmetic, Builder, DType, Quant, random_inputs
from edgewright.network.operators import Clamp, Dense
from edgewright.platform.target import Architecture
from tests.emit.board_cases import quantised

CODE = 0x1000

# As the GNU assembler encodes them.
THUMB = {
    "push {r4-r7, lr}": ("b5f0", ControlFlow.NEXT, 20),
    "push.w {r4-r11, lr}": ("e92d4ff0", ControlFlow.NEXT, 36),
    "vpush {d8-d15}": ("ed2d8b10", ControlFlow.NEXT, 64),
    "vpush {s16}": ("ed2d8a01", ControlFlow.NEXT, 4),
    "str lr, [sp, #-4]!": ("f84ded04", ControlFlow.NEXT, 4),
    "strd r0, r1, [sp, #-8]!": ("e96d0102", ControlFlow.NEXT, 8),
    "vstrw.32 q4, [sp, #-16]!": ("ed2d9f04", ControlFlow.NEXT, 16),
    "sub sp, #32": ("b088", ControlFlow.NEXT, 32),
    "sub.w sp, sp, #1024": ("f5ad6d80", ControlFlow.NEXT, 1024),
    "subw sp, sp, #1028": ("f2ad4d04", ControlFlow.NEXT, 1028),
    "add sp, #32": ("b008", ControlFlow.NEXT, -32),
    "add.w sp, sp, #1024": ("f50d6d80", ControlFlow.NEXT, -1024),
    "pop {r4, r5}": ("bc30", ControlFlow.NEXT, -8),
    "ldr r2, [sp], #4": ("f85d2b04", ControlFlow.NEXT, -4),
    "vpop {d8-d15}": ("ecbd8b10", ControlFlow.NEXT, -64),
    "pop {r4, pc}": ("bd10", ControlFlow.RETURN, -8),
    "pop.w {r4-r11, pc}": ("e8bd8ff0", ControlFlow.RETURN, -36),
    "ldr pc, [sp], #4": ("f85dfb04", ControlFlow.RETURN, -4),
    "bx lr": ("4770", ControlFlow.RETURN, 0),
    "bx r3": ("4718", ControlFlow.JUMP, 0),
    "blx r3": ("4798", ControlFlow.CALL, 0),
    "mov pc, r3": ("469f", ControlFlow.JUMP, 0),
    "tbb [pc, r0]": ("e8dff000", ControlFlow.JUMP, 0),
    "tbh [pc, r0, lsl #1]": ("e8dff010", ControlFlow.JUMP, 0),
    "str r0, [sp, #4]": ("9001", ControlFlow.NEXT, 0),
    "vstr s0, [sp, #8]": ("ed8d0a02", ControlFlow.NEXT, 0),
    "vstrw.32 q4, [r4, #-16]!": ("ed249f04", ControlFlow.NEXT, 0),
    "ldmia r0!, {r1, r2}": ("c806", ControlFlow.NEXT, 0),
    "add r0, sp, #8": ("a802", ControlFlow.NEXT, 0),
}
THUMB_TARGETS = {
    "bl +0x1000": ("f000fffe", ControlFlow.CALL, 0x1000),
    "b.w -0x2004": ("f7fdbffc", ControlFlow.JUMP, -0x2004),
    "beq +8": ("d002", ControlFlow.BRANCH, 8),
    "bne.w +0x800": ("f04083fe", ControlFlow.BRANCH, 0x800),
    "cbz r3, +20": ("b143", ControlFlow.BRANCH, 20),
    "b -16": ("e7f6", ControlFlow.JUMP, -16),
}
RV32 = {
    "c.addi sp, -16": ("1141", ControlFlow.NEXT, 16),
    "c.addi16sp sp, -64": ("7139", ControlFlow.NEXT, 64),
    "addi sp, sp, -2032": ("81010113", ControlFlow.NEXT, 2032),
    "c.addi16sp sp, 32": ("6105", ControlFlow.NEXT, -32),
    "andi sp, sp, -16": ("ff017113", ControlFlow.NEXT, 15),
    "ret": ("8082", ControlFlow.RETURN, 0),
    "c.jr a5": ("8782", ControlFlow.JUMP, 0),
    "c.jalr a5": ("9782", ControlFlow.CALL, 0),
    "c.swsp ra, 12(sp)": ("c606", ControlFlow.NEXT, 0),
    "c.addi4spn a0, sp, 16": ("0808", ControlFlow.NEXT, 0),
    "jalr zero, 4(t1)": ("00430067", ControlFlow.JUMP, 0),
}
RV32_TARGETS = {
    "jal ra, +0x1000": ("000010ef", ControlFlow.CALL, 0x1000),
    "c.j -64": ("b7c1", ControlFlow.JUMP, -64),
    "c.beqz a0, +32": ("c105", ControlFlow.BRANCH, 32),
    "bltu a0, a1, -2000": ("82b568e3", ControlFlow.BRANCH, -2000),
}


def arm(*instructions: str) -> bytes:
    """Thumb code; of instructions of 32 bits, the half that is written first comes first."""
    halves = [text[at : at + 4] for text in instructions for at in range(0, len(text), 4)]
    return b"".join(struct.pack("<H", int(half, 16)) for half in halves)


def riscv(*instructions: str) -> bytes:
    return b"".join(int(text, 16).to_bytes(len(text) // 2, "little") for text in instructions)


@pytest.mark.parametrize("text", [*THUMB, *THUMB_TARGETS])
def test_thumb(text):
    code, flow, number = (THUMB | THUMB_TARGETS)[text]
    found = thumb.decode(arm(code) + bytes(4), 0, CODE)
    assert (found.size, found.flow) == (len(code) // 2, flow)
    assert (found.push, found.target) == ((number, None) if text in THUMB else (0, CODE + number))


@pytest.mark.parametrize("text", [*RV32, *RV32_TARGETS])
def test_rv32(text):
    code, flow, number = (RV32 | RV32_TARGETS)[text]
    found = rv32.decode(riscv(code) + bytes(4), 0, CODE)
    assert (found.size, found.flow) == (len(code) // 2, flow)
    assert (found.push, found.target) == ((number, None) if text in RV32 else (0, CODE + number))


def image(functions: dict[str, bytes], data: tuple[int, ...] = (), marks: tuple[tuple[int, bool], ...] = ()) -> Elf:
    """A linked image of these functions, one after the other, and words of data behind them."""
    content, places = b"", []
    for name, code in functions.items():
        places.append((CODE + len(content), len(code), name))
        content += code + bytes(-len(code) % 4)
    content += struct.pack(f"<{len(data)}I", *data)
    section = Section(".library", 1, 6, CODE, 0, len(content))
    symbols = {name: (at, size) for at, size, name in places}
    return Elf(CODE, (section,), (LoadSegment(CODE, content),), symbols, tuple(places), marks)


def bl(distance: int) -> str:
    """A call of what lies so many bytes after it, as long as that is near."""
    return f"{0xF000 | distance - 4 >> 12 & 0x3FF:04x}{0xF800 | (distance - 4 & 0xFFF) >> 1:04x}"


def bound(functions: dict[str, bytes], **more) -> int | None:
    callbacks, given = more.pop("callbacks", ()), more.pop("given", ())
    return stack_bound(image(functions, **more), Architecture.CORTEX_M, "run", callbacks, given)


PUSH, POP = THUMB["push.w {r4-r11, lr}"][0], THUMB["pop.w {r4-r11, pc}"][0]


def test_naked_functions_count():
    """As assembler writes them: the compiler reports a frame of 0 bytes for `leaf`."""
    run = arm("b510", bl(6), "bd10")  # push {r4, lr}; bl leaf; pop {r4, pc}
    assert len(run) == 8
    assert bound({"run": run, "leaf": arm(PUSH, POP)}) == 8 + 36


def test_a_call_counts_where_it_stands():
    """Nothing is on the stack yet when the deep one is called, and nothing any more when the last is jumped to."""
    deep, shallow = arm(PUSH, "b0ff", POP), arm("b500", "bd00")  # 36 + 508, 4
    run = arm(bl(12), "b084", "b004", "e000")  # bl deep; sub sp, #16; add sp, #16; b over to deep
    assert len(run) == 10
    assert bound({"run": run, "deep": deep, "shallow": shallow}) == 544


def test_what_may_be_skipped():
    """IT; popeq {r4, pc}: the function goes on with all that it has pushed."""
    run = arm("b510", "bf08", "bd10", bl(6 + 2), "bd10")
    assert bound({"run": run, "leaf": arm(PUSH, POP)}) == 8 + 36


def test_branches_carry_the_depth_with_them():
    """cbz r0, over a frame that is made and taken down, to a push: 4 bytes, and 16 on the other way."""
    run = arm("b110", "b084", "b004", "4770", "b500", "bd00")
    assert bound({"run": run}) == 16


def test_constants_among_code_are_no_code():
    """ldr r4, [pc, #4]; add sp, r4; b over; .word -1024; add sp back; bx lr: frames of a Cortex-M0+."""
    run = arm("4c01", "44a5", "e001", "46c0") + struct.pack("<i", -1024) + arm("4770")
    assert bound({"run": run}, marks=((CODE, False), (CODE + 8, True), (CODE + 12, False))) == 1024
    unknown = arm("44a5", "4770")  # nobody knows what is in r4
    assert bound({"run": unknown}) is None


def test_code_goes_on_at_an_even_address_behind_a_table_of_bytes():
    """push {r4, lr}; tbb [pc, r0]; .byte 2, 2, 2; bl leaf; pop {r4, pc}: the assembler marks code at an odd address."""
    run = arm("b510", "e8dff000") + bytes((2, 2, 2, 0)) + arm(bl(6), "bd10")
    marks = ((CODE, False), (CODE + 6, True), (CODE + 9, False))
    assert bound({"run": run, "leaf": arm(PUSH, POP)}, marks=marks) == 8 + 36


def test_recursion_and_what_is_not_there_have_no_bound():
    itself = arm("b500", "f7fffffd", "bd00")  # bl run
    assert thumb.decode(itself, 2, CODE + 2).target == CODE
    assert bound({"run": itself}) is None
    assert bound({"other": arm("4770")}) is None


def test_a_pointer_leads_where_somebody_points():
    run, leaf, other = arm("b500", "4798", "bd00"), arm(PUSH, POP), arm(PUSH, "b0ff", POP)
    functions = {"run": run, "leaf": leaf, "other": other}
    assert bound(functions) is None  # to nobody knows where
    assert bound(functions, data=((CODE + 8) | 1,)) == 4 + 36
    assert bound(functions, data=((CODE + 16) | 1, (CODE + 8) | 1)) == 4 + 36 + 508
    # Functions of the caller are the caller's to count, unless they are known.
    assert bound(functions, callbacks=("run",)) == 4
    assert bound(functions, callbacks=("run",), given=("leaf",)) == 4 + 36


def test_jumps_by_a_table_stay_inside():
    """With something on the stack, a jump through a register cannot be the last call of a function."""
    run, leaf = arm("b500", "4718", "bd00"), arm(PUSH, POP)
    assert bound({"run": run, "leaf": leaf}, data=((CODE + 8) | 1,)) == 4
    assert bound({"run": arm("4718"), "leaf": leaf}, data=((CODE + 4) | 1,)) == 36
    assert bound({"run": arm("4718"), "leaf": leaf}) == 0


def test_a_return_through_another_register():
    """sub sp, #8; push {r4, lr}; pop {r4}; pop {r3}; add sp, #8; bx r3: as GCC ends functions with many arguments."""
    assert bound({"run": arm("b082", "b510", "bc10", "bc08", "b002", "4718")}) == 16


def test_riscv_calls_and_large_frames():
    leaf = riscv("7139", "6121", "8082")  # 64 bytes
    run = riscv("1141", "00a000ef", "0141", "8082")  # addi sp, -16; jal ra, +10; addi sp, 16; ret
    assert len(run) == 10
    elf = image({"run": run, "leaf": leaf})
    assert elf.symbols["leaf"][0] == CODE + 12
    assert stack_bound(elf, Architecture.RV32, "run") == 16 + 64
    large = riscv("72fd", "f0028293", "9116", "8082")  # lui t0, -1; addi t0, -256; add sp, t0
    assert stack_bound(image({"run": large}), Architecture.RV32, "run") == 4096 + 256


# Runs


def dense():
    """One fully connected layer of int8, whose kernel for the DSP family is written in assembler."""
    rng = np.random.default_rng(3)
    b = Builder("small", Arithmetic.TFLITE)
    x = b.input("x", (1, 32), DType.INT8, Quant.of(0.05, 3))
    w = b.constant("w", rng.integers(-127, 128, (12, 32)).astype(np.int8), Quant.of(0.01))
    bias = b.constant("b", rng.integers(-99, 99, 12).astype(np.int32), Quant.of(0.0005))
    y = b.layer(Dense(Clamp(0.0)), [x, w, bias], "y", dtype=DType.INT8, quant=Quant.of(0.1, -5))
    return b.build([y])


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("cortex-m0plus", "cortex-m55", "rv32gc")]


@pytest.mark.parametrize("zig", [False, True], ids=["gcc", "zig"])
@pytest.mark.parametrize("target", ["cortex-m4", "rv32imc", *SLOW])
def test_no_run_takes_more_than_the_bound(target, zig):
    """Nor is the bound far from what is taken: every pixel of these networks goes through the longest chain."""
    compiler = "riscv64-unknown-elf-gcc" if target.startswith("rv") else "arm-none-eabi-gcc"
    emulator = Emulator.QEMU if target == "cortex-m55" else Emulator.UNICORN
    there = shutil.which("qemu-system-arm") if emulator is Emulator.QEMU else find_spec("unicorn")
    if not there or not (find_spec("ziglang") if zig else shutil.which(compiler)):
        pytest.skip("a compiler or an emulator is not installed")
    for network in (dense(), quantised()):
        made = emit(plan(network, explain=False), TARGETS[target])
        found = measure(made, random_inputs(network, 0), zig=zig, emulator=emulator)
        assert 0 < found.stack_bytes <= found.stack_bound <= found.stack_bytes + 128


def test_a_run_that_takes_more_than_the_bound_fails(monkeypatch):
    if not (find_spec("ziglang") and find_spec("unicorn")):
        pytest.skip("ziglang and unicorn are not installed")
    monkeypatch.setattr(measurement, "stack_bound", lambda *_: 8)
    network = dense()
    made = emit(plan(network, explain=False), TARGETS["cortex-m4"])
    with pytest.raises(EdgewrightError, match=r"took \d+ bytes of stack, and 8 were found"):
        measure(made, random_inputs(network, 0), zig=True, emulator=Emulator.UNICORN)
