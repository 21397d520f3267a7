"""GPIO and SPI drivers: conventional against generated, beside what S table 6.2 says.

    python benchmarks/hal.py [--targets rv32imc cortex-m0plus cortex-m4] [--max-map 312] [--zig] [-o out] [--json FILE]

The workload is the paper's (S 6.6): hal_conventional/workload.c on the virtual prototype. Code is what the linked
image holds of the drivers' functions at -Os; instructions are those of the drivers, in brackets with the workload's
own, which are the same for all; Halstead's effort counts what a developer writes, groups or register macros included.

The conventional drivers are clean ones. What PULPino's volatile locals cost on top has a row of its own, and so has a
GPIO driver that shares one function between its registers. Writes hal_front.svg, the code and the accesses that each
size of the register map buys, into the folder of -o.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import lizard
from rich.console import Console
from rich.table import Table

import hal_fixed
from edgewright.hal import design_flow
from edgewright.hal.design import Analysis
from edgewright.hal.examples.gpio import Gpio
from edgewright.hal.examples.spi import Spi
from edgewright.hal.generate import generate
from edgewright.hal.layout.cost import LayoutGoal
from edgewright.hal.layout.front import layout_front
from edgewright.hal.layout.layout import Layout, RegisterAt, elaborate
from edgewright.hal.layout.optimal import lay_out_optimal
from edgewright.hal.layout.paper import lay_out_paper
from edgewright.hal.verify.build import BUFFERS, free_window
from edgewright.hal.verify.measurement import Measured, measure
from hal_plot import Point, front_svg

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.hal.halstead import halstead

WORKLOADS = ("workload_gpio", "workload_spi")
MODELS = {"gpio": Gpio, "spi": Spi}
Call = tuple[str, tuple[int, ...]]
# S table 6.2, original and optimised, and the ratio to reach against a clean driver.
PAPER = {
    "code": (1176, 916, 0.75),
    "accesses": (125, 80, 0.64),
    "instructions": (1196, 575, 0.50),  # the paper counts cycles
    "effort": (257, 158, 0.61),  # thousands
    "map": (104, 908, 3.0),
}


@dataclass(frozen=True, slots=True)
class Row:
    """A driver for one target."""

    target: str
    variant: str
    map_bytes: int
    code: int  # bytes
    instructions: int  # of the drivers alone
    with_workload: int
    accesses: int
    code_by: Mapping[str, int]  # GPIO, SPI
    instructions_by: Mapping[str, int]
    accesses_by: Mapping[str, int]
    results: tuple[int, ...]  # what the workload's functions return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", nargs="+", default=["rv32imc", "cortex-m0plus", "cortex-m4"])
    parser.add_argument("--max-map", type=int, default=3 * hal_fixed.MAP_BYTES, help="bytes of all registers")
    parser.add_argument("-o", "--out", type=Path, default=Path("out"), help="folder for hal_front.svg")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--zig", action="store_true", help="compile with Zig though there is GCC")
    arguments = parser.parse_args()
    if arguments.zig:
        os.environ["PATH"] = ""  # where no other compiler is found, Zig is taken
    analysis = design_flow.analyse([hal_fixed.EXAMPLES / name for name in ("gpio.c", "spi.c")])
    rows = [row for target in arguments.targets for row in measured(analysis, target, arguments.max_map)]
    console = Console(width=140)
    console.print(sizes(rows))
    console.print(ratios(rows))
    console.print(efforts())
    points = front(analysis, arguments.targets[0])
    console.print(front_table(points))
    arguments.out.mkdir(parents=True, exist_ok=True)
    fixed = next(row for row in rows if row.variant == "clean")
    conventional = Point(fixed.map_bytes, fixed.code, fixed.accesses)
    (arguments.out / "hal_front.svg").write_text(front_svg(points, conventional))
    if arguments.json:
        report = {"rows": [asdict(row) for row in rows], "effort": written(), "front": [asdict(p) for p in points]}
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


def measured(analysis: Analysis, target: str, max_map: int) -> Iterator[Row]:
    """The conventional drivers and the generated ones, on one target."""
    fixed = hal_fixed.registers(analysis.description)
    conventional = {
        "volatile locals": hal_fixed.with_volatile_locals(),
        "clean": hal_fixed.clean(),
        "clean, shared": hal_fixed.clean(shared=True),
    }
    for name, files in conventional.items():
        yield row_of(analysis, files, fixed, target, name, hal_fixed.MAP_BYTES)
    description, spaces, joints = analysis.description, analysis.spaces, analysis.joints
    yield generated(analysis, lay_out_paper(description, spaces, joints), target, "paper's heuristic")
    yield generated(analysis, lay_out_optimal(description, spaces, joints, LayoutGoal(max_map, "code")), target, "ours")


def generated(analysis: Analysis, layout: Layout, target: str, name: str) -> Row:
    files = hal_fixed.headers() | generate(design_flow.design(analysis, layout), "drivers")
    registers = elaborate(analysis.description, analysis.spaces, layout)
    return row_of(analysis, files, registers, target, name, layout.map_bytes(analysis.description))


def row_of(
    analysis: Analysis,
    files: Mapping[str, str],
    registers: tuple[RegisterAt, ...],
    target: str,
    name: str,
    map_bytes: int,
) -> Row:
    def run(calls: Sequence[Call]) -> Measured:
        return measure(files, analysis.description, registers, calls, target, MODELS)

    whole = run([(workload, ()) for workload in WORKLOADS])
    drivers = {name: run(calls) for name, calls in calls_of(free_window(analysis.description.devices)).items()}
    own = {name: size for name, size in whole.code.items() if name not in WORKLOADS}
    constants = whole.code_bytes - sum(whole.code.values())
    gpio = sum(size for name, size in own.items() if not name.startswith("spi"))
    return Row(
        target,
        name,
        map_bytes,
        sum(own.values()) + constants,
        sum(found.instructions for found in drivers.values()),
        whole.instructions,
        whole.accesses,
        {"GPIO": gpio, "SPI": sum(own.values()) + constants - gpio},
        {name: found.instructions for name, found in drivers.items()},
        {name: found.accesses for name, found in drivers.items()},
        whole.results,
    )


def calls_of(window: int) -> dict[str, list[Call]]:
    """The workload's calls one by one; a frame lies in the window of memory at that address."""
    frame = window + BUFFERS
    gpio: list[Call] = [("setup_gpio_pin", (pad, 1, 0x1F, 2, 1)) for pad in range(4)]
    for pad in range(4):
        gpio += [
            ("set_gpio_pin_value", (pad, 1)),
            ("get_gpio_pin_value", (pad,)),
            ("set_gpio_pin_value", (pad, 0)),
        ]
    spi: list[Call] = [
        ("spi_setup_master", (1,)),
        ("spi_set_clock_divider", (4,)),
        ("spi_setup_cmd_addr", (0x02, 8, 0x100, 24)),
        ("spi_set_datalen", (64,)),
        ("spi_write_fifo", (frame, 64)),
        ("spi_start_transaction", (1, 0)),
        ("spi_setup_cmd_addr", (0x0B, 8, 0x100, 24)),
        ("spi_setup_dummy", (8, 0)),
        ("spi_set_datalen", (64,)),
        ("spi_start_transaction", (0, 0)),
        ("spi_read_fifo", (frame, 64)),
        ("spi_get_status", ()),
    ]
    return {"GPIO": gpio, "SPI": spi}


def sizes(rows: list[Row]) -> Table:
    table = Table("target", "driver", title="GPIO + SPI, -Os")
    for head in ("map, bytes", "code, bytes", "instructions (with workload)", "bus accesses", "result"):
        table.add_column(head, justify="right")
    for row in rows:
        same = "same" if row.results == rows[0].results else "differs"
        parts = (row.code_by, row.instructions_by, row.accesses_by)
        code, instructions, accesses = (" + ".join(map(str, part.values())) for part in parts)
        ran = f"{instructions} = {row.instructions} ({row.with_workload})"
        cells = (f"{code} = {row.code}", ran, f"{accesses} = {row.accesses}", same)
        table.add_row(row.target, row.variant, str(row.map_bytes), *cells, end_section=row.variant == "ours")
    return table


def ratios(rows: list[Row]) -> Table:
    """Ours against the clean driver, and against the two others."""
    table = Table("target", "against", title="Ratios; in brackets what is to be reached")
    heads = ("code", "accesses", "instructions", "map")
    for head in heads:
        table.add_column(f"{head} ({PAPER[head][2]:g})", justify="right")
    table.add_column("instructions with workload", justify="right")
    for target in dict.fromkeys(row.target for row in rows):
        here = {row.variant: row for row in rows if row.target == target}
        for name in ("clean", "clean, shared", "volatile locals"):
            found = [_figure(here["ours"], head) / _figure(here[name], head) for head in heads]
            cells = [_judged(r, PAPER[h][2], name) for r, h in zip(found, heads, strict=True)]
            table.add_row(target, name, *cells, f"{here['ours'].with_workload / here[name].with_workload:.2f}")
    table.add_section()
    published = [PAPER[head][1] / PAPER[head][0] for head in heads]
    table.add_row("PULPino", "S table 6.2", *(f"{ratio:.2f}" for ratio in published))
    return table


def _figure(row: Row, head: str) -> int:
    figures = {"code": row.code, "accesses": row.accesses, "instructions": row.instructions, "map": row.map_bytes}
    return figures[head]


def _judged(ratio: float, bar: float, against: str) -> str:
    if against != "clean":
        return f"{ratio:.2f}"
    return f"[green]{ratio:.2f}[/]" if ratio <= bar else f"[red]{ratio:.2f}[/]"


def written() -> dict[str, dict[str, Any]]:
    """Halstead's effort of what a developer writes, by our counter; tokens and complexity by lizard."""
    shared = (hal_fixed.HERE / "register.h").read_text()
    found: dict[str, dict[str, Any]] = {}
    for driver in ("gpio", "spi"):
        macros = shared + (hal_fixed.HERE / f"{driver}_registers.h").read_text()
        conventional = macros + (hal_fixed.HERE / f"{driver}.c").read_text()
        ours = (hal_fixed.EXAMPLES / f"{driver}.c").read_text()
        found[driver.upper()] = {"clean": _written(conventional), "ours": _written(ours)}
    return found


def _written(text: str) -> dict[str, float]:
    functions = lizard.analyze_file.analyze_source_code("driver.c", text).function_list
    counted = halstead(text)
    return {
        "effort": counted.effort,
        "volume": counted.volume,
        "difficulty": counted.difficulty,
        "tokens": sum(function.token_count for function in functions),
        "complexity": sum(function.cyclomatic_complexity for function in functions),
    }


def efforts() -> Table:
    table = Table("driver", "written", title="What a developer writes")
    for head in ("Halstead effort", "volume", "difficulty", "tokens (lizard)", "complexity (lizard)"):
        table.add_column(head, justify="right")
    found, total = written(), {"clean": 0.0, "ours": 0.0}
    for driver, kinds in found.items():
        for kind, figures in kinds.items():
            total[kind] += figures["effort"]
            cells = [f"{figures[k]:,.0f}" for k in ("effort", "volume", "difficulty", "tokens", "complexity")]
            table.add_row(driver, kind, *cells)
    ratio = total["ours"] / total["clean"]
    table.add_section()
    table.add_row("both", "ours / clean", f"{_judged(ratio, PAPER['effort'][2], 'clean')} ({PAPER['effort'][2]:g})")
    return table


def front(analysis: Analysis, target: str) -> list[Point]:
    """Each layout of the front, compiled and run."""
    found = layout_front(analysis.description, analysis.spaces, analysis.joints)
    rows = [generated(analysis, point.layout, target, "front") for point in found]
    return sorted({Point(row.map_bytes, row.code, row.accesses) for row in rows})


def front_table(points: list[Point]) -> Table:
    table = Table(title="What a larger register map buys")
    for head in ("map, bytes", "code, bytes", "bus accesses"):
        table.add_column(head, justify="right")
    for point in points:
        table.add_row(str(point.map_bytes), str(point.code), str(point.accesses))
    return table


if __name__ == "__main__":
    main()
