"""The C between the test harness and a library: where inputs are read to, how it is called, where outputs lie."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ...kernels.printing.constants import C_TYPES
from ...kernels.printing.source import CWriter
from ..lanes import turn_count
from ..library import Library
from ..names import Parameters, parameters


@dataclass(frozen=True, slots=True)
class HarnessGlue:
    text: str
    buffer_bytes: int  # of the harness's own memory


@dataclass(frozen=True, slots=True)
class _HarnessPort:
    """An input or output: in the arena where it lies there densely, else in a buffer of the harness."""

    at: str  # C expression
    bytes: int
    arguments: tuple[str, ...]  # of the call
    declaration: tuple[str, ...] = ()


class Probes(Enum):
    """What the harness does at the beginning of each stage."""

    NONE = "none"
    STAMPS = "stamps"  # the time is noted
    MEMORY = "memory"  # the arenas are written to a file


def glue(library: Library, probes: Probes, brings_lanes: bool = False) -> HarnessGlue:
    """The C of the glue; with `brings_lanes`, the harness has cores for the library's lanes."""
    names = _names(library)
    inputs = [_port(library, "input", *item) for item in names.inputs.items()]
    outputs = [_port(library, "output", *item) for item in names.outputs.items()]
    stamps = len(library.stages) + 3 if probes is Probes.STAMPS else 0
    turns = 3 * turn_count(library.plan) if stamps and brings_lanes else 0
    c = CWriter()
    c.lines += ['#include "board.h"', f'#include "{library.name}.h"', "#include <string.h>", ""]
    for port in (*inputs, *outputs):
        c.lines += port.declaration
    _write_inputs(c, library, inputs)
    _write_stamps(c, library.name, stamps, turns)
    if brings_lanes:
        _write_lanes(c, library.name)
    if probes is Probes.MEMORY:
        _write_trace(c, library)
    with c.block("void board_run(void)"):
        if stamps:
            c.line(f"{library.name}_probe(-2);")
            c.line(f"{library.name}_probe(-1);")
        arguments = [argument for port in (*inputs, *outputs) for argument in port.arguments]
        c.line("board_stack_top = board_stack();")
        c.line(f"{library.name}_run({', '.join(arguments)});")
    with c.block("void board_outputs(void)"):
        for port in outputs:
            c.line(f"board_write({port.at}, {port.bytes}u);")
    buffers = sum(port.bytes + 16 for port in (*inputs, *outputs) if port.declaration)
    return HarnessGlue(c.text(), buffers + 8 * max(stamps + turns, 1))


def _names(library: Library) -> Parameters:
    return parameters(library.name, library.network, library.arenas, library.options.renamed)


def _port(library: Library, way: str, name: str, parameter: str) -> _HarnessPort:
    tensor = library.network.tensors[name]
    function = f"{library.name}_{way}_{parameter}"
    if f"{function}(void);" in str(library.files[f"{library.name}.h"]):
        return _HarnessPort(f"{function}()", tensor.bytes, ("0",))
    buffer = f"buffer_{way}_{parameter}"
    declared = [f"BOARD_MEMORY static uint8_t {buffer}[{tensor.bytes}];"]
    pointer = f"(void *){buffer}"
    if way == "input" and name in library.plan.pulled:
        row, ctype = tensor.strides[1], C_TYPES[tensor.dtype.value]
        declared += [
            f"static void pull_{parameter}(void *context, int32_t row, {ctype} *target)",
            "{",
            "    (void)context;",
            f"    memcpy(target, {buffer} + row * {row}, {row});",
            "}",
        ]
        return _HarnessPort(pointer, tensor.bytes, (f"pull_{parameter}", "0"), tuple(declared))
    return _HarnessPort(pointer, tensor.bytes, (pointer,), tuple(declared))


def _write_stamps(c: CWriter, name: str, count: int, turns: int) -> None:
    c.line(f"BOARD_MEMORY board_stamp board_probes[{max(count + turns, 1)}];")
    c.line(f"const uint32_t board_probe_count = {count};")
    if count:
        c.line(f"void {name}_probe(int32_t stage);")
        with c.block(f"void {name}_probe(int32_t stage)"):
            c.line("board_probes[stage + 2] = board_now();")


def _write_lanes(c: CWriter, name: str) -> None:
    with c.block(f"void {name}_lanes_run({name}_lane_work work, void *context)"):
        c.line("board_lanes_run(work, context);")
    with c.block(f"void {name}_lanes_meet(int32_t lane, int32_t lanes)"):
        c.line("board_lanes_meet(lane, lanes);")


def _write_trace(c: CWriter, library: Library) -> None:
    """Writes the C that stores all arenas, one after the other, after each stage."""
    names = _names(library).arenas
    c.line(f"void {library.name}_probe(int32_t stage);")
    with c.block(f"void {library.name}_probe(int32_t stage)"), c.block("if (stage > 0)"):
        for memory, size in library.arenas.items():
            c.line(f"board_trace(__arena_{names[memory]}, {size}u);")


def _write_inputs(c: CWriter, library: Library, inputs: list[_HarnessPort]) -> None:
    """Reads the inputs, once all arenas are filled with a pattern: code that relies on zeroed memory fails."""
    memories = _names(library).arenas.values()
    c.line("#ifndef BOARD_HOSTED")
    for memory in memories:
        c.line(f"extern uint32_t __arena_{memory}[], __arena_{memory}_end[];")
    c.line("#endif")
    with c.block("int32_t board_inputs(void)"):
        c.line("#ifndef BOARD_HOSTED")
        c.line("volatile uint32_t *p;")
        for memory in memories:
            c.line(f"for (p = __arena_{memory}; p + 1 <= __arena_{memory}_end; p++)")
            c.line("    *p = 0xA5A5A5A5u;")
        c.line("#endif")
        for port in inputs:
            with c.block(f"if (board_read({port.at}, {port.bytes}u))"):
                c.line("return 1;")
        c.line("return 0;")
