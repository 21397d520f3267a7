"""HAL functions compiled for the host and run on plain memory, against a model in Python that shares no code."""

from __future__ import annotations

import ctypes
import random
import re
import shutil
import subprocess
from dataclasses import dataclass, replace

import pytest

from edgewright.hal.analysis.accesses import Kind
from edgewright.hal.analysis.spaces import Slot, Space
from edgewright.hal.generate.calls import Call
from edgewright.hal.generate.read_functions import read_function
from edgewright.hal.generate.space_registers import SpaceRegisters
from edgewright.hal.generate.write_functions import write_function
from edgewright.hal.language.description import Bus, Description, Device, Field, Group, Mode, Place
from edgewright.hal.layout.layout import Piece, Register, SpaceLayout

HERE = Place("random.c", 1)
NATURES = [{}, {}, {}, {"mode": Mode.RO}, {"w1c": True}, {"w1s": True}]
SPACES = 24


@dataclass
class Case:
    """A space with a random layout, and calls for some of its slots."""

    name: str
    ground: SpaceRegisters
    calls: list[tuple[str, Call]]


def random_case(number: int) -> Case:
    rng = random.Random(number)
    slots: list[Slot] = []
    registers: list[Register] = []
    offset = 0
    for _ in range(rng.randint(2, 5)):
        make = rng.choice([_shared, _shared, _lanes, _split])
        new, made = make(rng, len(slots))
        for register in made:
            registers.append(replace(register, offset=offset))
            offset = (registers[-1].end + 7) // 8 * 8
        slots += new
    name = f"S{number}"
    group = Group(name, tuple(slot.field for slot in slots), HERE)
    description = Description({name: group}, (Device("d", name, 0, HERE, Bus(32, 8)),))
    slots = [replace(slot, group=name) for slot in slots]
    ground = SpaceRegisters(Space(name, tuple(slots)), SpaceLayout(name, tuple(registers), (), offset), description)
    return Case(name, ground, _calls(rng, name, ground))


def _slot(rng: random.Random, number: int, bits: int, counts: tuple[int, ...] = (), **more: object) -> Slot:
    field = Field(f"f{number}", bits, HERE, counts[0] if counts else None, **more)  # type: ignore[arg-type]
    return Slot(field.name, ((field.name, -1 if counts else None),), "", field, counts)


def _shared(rng: random.Random, first: int) -> tuple[list[Slot], list[Register]]:
    """A register, or an array of them, with some fields and gaps."""
    width = rng.choice([8, 16, 32, 32])
    counts = rng.choice([(), (), (3,)])
    slots: list[Slot] = []
    pieces: list[Piece] = []
    bit = rng.choice([0, 0, rng.randrange(width)])
    while bit < width and len(slots) < 5:
        bits = rng.randint(1, min(width - bit, rng.choice([1, 4, 32])))
        slots.append(_slot(rng, first + len(slots), bits, counts, **rng.choice(NATURES)))  # type: ignore[arg-type]
        pieces.append(Piece(slots[-1].name, bit, bits))
        bit += bits + rng.choice([0, 0, 3])
    rng.shuffle(pieces)
    return slots, [Register(0, width, tuple(pieces), counts, (rng.choice([width // 8, 8]),) * len(counts))]


def _lanes(rng: random.Random, first: int) -> tuple[list[Slot], list[Register]]:
    """Several elements of an array in each register."""
    width = rng.choice([8, 16, 32])
    lanes = rng.choice([2, 4, 8])
    bits = rng.randint(1, width // lanes)
    slot = _slot(rng, first, bits, (lanes + 3,), **rng.choice([{}, {"w1c": True}]))  # type: ignore[arg-type]
    count = -(-(lanes + 3) // lanes)
    low = rng.randint(0, width - lanes * bits)
    piece = Piece(slot.name, low, bits, 0, lanes)
    return [slot], [Register(0, width, (piece,), (count,), (width // 8,))]


def _split(rng: random.Random, first: int) -> tuple[list[Slot], list[Register]]:
    """A field wider than the bus, its top part beside another field."""
    bits = rng.choice([33, 40, 63, 64])
    wide = _slot(rng, first, bits, split=True)
    low = Register(0, 32, (Piece(wide.name, 0, 32),))
    if bits > 60:
        return [wide], [low, Register(0, 32, (Piece(wide.name, 0, bits - 32, 32),))]
    other = _slot(rng, first + 1, 4)
    return [wide, other], [low, Register(0, 32, (Piece(wide.name, 0, bits - 32, 32), Piece(other.name, 28, 4)))]


def _calls(rng: random.Random, name: str, ground: SpaceRegisters) -> list[tuple[str, Call]]:
    """Every slot alone, and one combination of each register."""
    groups = [(slot.name,) for slot in ground.space.slots]
    for register in ground.layout.registers:
        several = [piece.slot for piece in register.pieces]
        groups += [tuple(rng.sample(several, rng.randint(2, len(several))))] if len(several) > 1 else []
    found = []
    for slots in groups:
        for kind in Kind:
            if kind is Kind.READ or all(ground.nature(slot).writable for slot in slots):
                found.append((f"{name}_{len(found)}", Call(kind, name, slots)))
    return found


def wrapper(ground: SpaceRegisters, name: str, call: Call) -> list[str]:
    """One signature for all: memory, index, values in or out."""
    index = "i, " if ground.indices(call) else ""
    types = [f"uint{next(w for w in (8, 16, 32, 64) if s.field.bits <= w)}_t" for s in ground.slots(call.slots)]
    head = f"uint64_t run_{name}(void *memory, uint32_t i, uint64_t *v) {{ (void)i; "
    target = f"{name}((struct {call.space} *)memory, {index}"
    if call.kind is Kind.WRITE:
        values = ", ".join(f"({kind})v[{n}]" for n, kind in enumerate(types))
        result = "return " if len(types) == 1 else ""
        return [f"{head}{result}{target}{values}); {'' if result else 'return 0; '}}}"]
    if len(types) == 1:
        return [f"{head}return v[0] = {target[:-2]}); }}"]
    types = [kind if len(types) == 2 or kind == "uint64_t" else "uint32_t" for kind in types]  # many are words
    locals_ = " ".join(f"{kind} x{n} = 0;" for n, kind in enumerate(types))
    stores = " ".join(f"v[{n}] = x{n};" for n in range(len(types)))
    return [f"{head}{locals_} {target}{', '.join(f'&x{n}' for n in range(len(types)))}); {stores} return 0; }}"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Case], ctypes.CDLL]:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    folder = tmp_path_factory.mktemp("functions")
    cases = [random_case(number) for number in range(SPACES)]
    promise = "#define EDGEWRIGHT_ASSUME(condition) ((condition) ? (void)0 : __builtin_trap())"
    lines = ["#include <stdint.h>", promise]
    for case in cases:
        lines.append(f"struct {case.name};")
        for name, call in case.calls:
            make = write_function if call.kind is Kind.WRITE else read_function
            lines += [*make(case.ground, call, name), *wrapper(case.ground, name, call)]
    (folder / "all.c").write_text("\n".join(lines) + "\n")
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wcast-align", "-Werror", "-O1", "-shared", "-fPIC"]
    subprocess.run(["gcc", *strict, "-o", "all.so", "all.c"], cwd=folder, check=True)
    return cases, ctypes.CDLL(str(folder / "all.so"))


Memory = dict[tuple[int, str, int, int], int]  # register, slot, element, low bit: value


def cells(ground: SpaceRegisters) -> list[tuple[tuple[int, str, int, int], int, int, int, int]]:
    """Key, byte, access width, bit and size of every piece of every element, worked out the slow way."""
    found = []
    for number, register in enumerate(ground.layout.registers):
        for row in range(register.counts[0] if register.counts else 1):
            byte = register.offset + (row * register.strides[0] if register.counts else 0)
            for piece in register.pieces:
                for lane in range(piece.lanes):
                    key = (number, piece.slot, row * piece.lanes + lane, piece.low)
                    found.append((key, byte, register.width, piece.bit + lane * piece.size, piece.size))
    return found


def peek(memory: ctypes.Array[ctypes.c_char], ground: SpaceRegisters) -> Memory:
    state = {}
    for key, byte, width, bit, size in cells(ground):
        word = int.from_bytes(memory.raw[byte : byte + width // 8], "little")
        state[key] = word >> bit & (1 << size) - 1
    return state


def poke(memory: ctypes.Array[ctypes.c_char], ground: SpaceRegisters, state: Memory) -> None:
    """The state in memory, and 0 in all bits that hold no field, as hardware has it."""
    words: dict[tuple[int, int], int] = {}
    for key, byte, width, bit, _ in cells(ground):
        words[byte, width] = words.get((byte, width), 0) | state[key] << bit
    ctypes.memset(memory, 0, len(memory))
    for (byte, width), word in words.items():
        memory[byte : byte + width // 8] = word.to_bytes(width // 8, "little")  # type: ignore[index]


def random_state(rng: random.Random, ground: SpaceRegisters) -> Memory:
    return {key: rng.getrandbits(size) for key, _, _, _, size in cells(ground)}


def value_of(state: Memory, slot: str, element: int) -> int:
    return sum(value << low for (_, name, at, low), value in state.items() if (name, at) == (slot, element))


def expected_after(ground: SpaceRegisters, state: Memory, call: Call, element: int, values: list[int]) -> Memory:
    """The state after a write: its fields, 0 for those that 0 leaves as they are, all else as it was."""
    after = dict(state)
    lanes = {n: register.lanes for n, register in enumerate(ground.layout.registers)}
    touched = {(n, element // lanes[n]) for n, slot, at, _ in state if slot in call.slots and at == element}
    sizes = {key: size for key, _, _, _, size in cells(ground)}
    for key in state:
        number, slot, at, low = key
        if (number, at // lanes[number]) not in touched:
            continue
        if slot in call.slots and at == element:
            after[key] = values[call.slots.index(slot)] >> low & (1 << sizes[key]) - 1
        elif ground.nature(slot).neutral:
            after[key] = 0
    return after


def writable_part(ground: SpaceRegisters, state: Memory) -> Memory:
    return {key: value for key, value in state.items() if ground.nature(key[1]).writable}


@pytest.mark.parametrize("number", range(SPACES))
def test_functions_do_what_the_layout_says(number: int, built: tuple[list[Case], ctypes.CDLL]) -> None:
    cases, library = built
    case, rng = cases[number], random.Random(number)
    ground = case.ground
    memory = ctypes.create_string_buffer(ground.layout.size + 16)
    for name, call in case.calls:
        run = library[f"run_{name}"]
        run.restype, run.argtypes = ctypes.c_uint64, [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p]
        counts = ground.space.slot(call.slots[0]).counts
        for element in range(counts[0] if counts else 1):
            state = random_state(rng, ground)
            poke(memory, ground, state)
            values = [rng.getrandbits(64) for _ in call.slots]
            passed = (ctypes.c_uint64 * len(values))(*values)
            result = run(memory, element, passed)
            if call.kind is Kind.READ:
                assert list(passed) == [value_of(state, slot, element) for slot in call.slots], name
                assert peek(memory, ground) == state
                continue
            after = expected_after(ground, state, call, element, values)
            assert writable_part(ground, peek(memory, ground)) == writable_part(ground, after), name
            if len(values) == 1:
                assert result == value_of(after, call.slots[0], element)


def test_reads_once_and_writes_once_with_one_read_where_something_is_kept() -> None:
    for number in range(SPACES):
        case = random_case(number)
        for name, call in case.calls:
            make = write_function if call.kind is Kind.WRITE else read_function
            text = "\n".join(make(case.ground, call, name))
            registers = case.ground.registers(call)
            loads = len(re.findall(r"= \*\(const volatile|\(\*p &", text))
            stores = len(re.findall(r"^ *\*(p|\(volatile [^=]*) = ", text, re.MULTILINE))
            kept = [register for register in registers if _keeps(case.ground, call, register)]
            assert loads == (len(registers) if call.kind is Kind.READ else len(kept)), text
            assert stores == (0 if call.kind is Kind.READ else len(registers)), text


def _keeps(ground: SpaceRegisters, call: Call, register: Register) -> bool:
    others = [piece.slot for piece in register.pieces if piece.lanes > 1 or piece.slot not in call.slots]
    return any(ground.nature(slot).restorable for slot in others)
