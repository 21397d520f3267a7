"""Five ordinary peripherals (I2C, RTC, ADC, CAN, PWM): clean conventional drivers against generated ones.

    python benchmarks/hal_five.py [--targets rv32imc cortex-m0plus cortex-m4] [--minimise MODE] [--same-map] [--zig]

The conventional drivers in hal_conventional have register maps as such peripherals have them: enable bits of channels
side by side, flags in a status register, time and date apart. Both run the calls in CALLS on the virtual prototype with
the models of the examples, and must give the same results. Code is what the linked image holds of the drivers'
functions at -Os; layouts are those that `edgewright hal` makes without further options.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from edgewright.hal import examples
from edgewright.hal.design import Design
from edgewright.hal.design_flow import analyse
from edgewright.hal.generate import generate
from edgewright.hal.layout.cost import LayoutGoal
from edgewright.hal.layout.layout import RegisterAt, elaborate
from edgewright.hal.layout_choice import chosen_design
from edgewright.hal.verify import code_sizes_of, load_model, measure
from edgewright.hal.verify.build import BUFFERS, free_window
from edgewright.hal.verify.twin_map import map_bytes_of, read_twin_map

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.hal.halstead import halstead

HERE = Path(__file__).parent / "hal_conventional"
EXAMPLES = Path(examples.__file__).parent
BARS = {"code": 0.83, "accesses": 0.88, "instructions": 0.84, "effort": 0.91, "map_bytes": 1.3}
BARS_SAME_MAP = {"code": 0.92, "accesses": 0.98, "instructions": 0.91, "effort": 0.91, "map_bytes": 1.0}
BUFFER = -1  # an argument: the address of memory that driver and caller share
Call = tuple[str, tuple[int, ...]]
CALLS: Mapping[str, Sequence[Call]] = {
    "i2c": [
        ("i2c_init", (250, 0)),
        ("i2c_probe", (0x50,)),
        ("i2c_probe", (0x7F,)),
        ("i2c_take_done", ()),
        ("i2c_write_register", (0x50, 0x10, 0xA5)),
        ("i2c_write", (0x50, BUFFER, 8)),
        ("i2c_read", (0x50, BUFFER, 8)),
        ("i2c_take_done", ()),
        ("i2c_off", ()),
    ],
    "rtc": [
        ("rtc_init", (-20 & 0xFFFFFFFF,)),
        ("rtc_set", (BUFFER,)),
        ("rtc_set_alarm", (7, 30, 0)),
        *[("rtc_get", (BUFFER,)), ("rtc_seconds_of_day", ()), ("rtc_take_alarm", ())] * 3,
        ("rtc_cancel_alarm", ()),
        ("rtc_take_alarm", ()),
    ],
    "adc": [
        ("adc_init", (2, 1, 0)),
        ("adc_set_limits", (0x100, 0xE00)),
        *[("adc_set_step", (n, 7 - n, n % 8)) for n in range(4)],
        ("adc_start", (3, 0)),
        ("adc_wait", ()),
        ("adc_results", (BUFFER, 4)),
        ("adc_take_done", ()),
        ("adc_take_outside", ()),
        *[("adc_convert", (n, 2)) for n in range(4)],
        ("adc_result", (0,)),
        ("adc_start", (7, 1)),
        ("adc_stop", ()),
    ],
    "can": [
        ("can_init", (5, 12, 1, 1)),
        ("can_use_interrupts", (1, 0, 1)),
        *[("can_set_filter", (n, 16 * n, 0x70 * n)) for n in range(4)],
        ("can_drop_filter", (3,)),
        *[("can_send", (BUFFER,)), ("can_send", (BUFFER,)), ("can_receive", (BUFFER,)), ("can_errors", ())] * 3,
        ("can_take_overrun", ()),
    ],
    "pwm": [
        ("pwm_init", (71, 999, 0)),
        *[("pwm_setup", (n, 100 * n, n % 2, 0)) for n in range(4)],
        *[("pwm_set_duty", (n, 0x4000)) for n in range(4)],
        ("pwm_use_interrupt", (2, 1)),
        ("pwm_count", ()),
        *[("pwm_take_match", (n,)) for n in range(4)],
        ("pwm_set_width", (1, 500)),
        ("pwm_width", (1,)),
        ("pwm_switch", (0, 0)),
        ("pwm_switch", (0, 1)),
        ("pwm_stop", ()),
    ],
}


@dataclass(frozen=True, slots=True)
class Figures:
    """A driver for one target."""

    code: int  # bytes
    accesses: int
    instructions: int
    effort: float  # Halstead's, of what a developer writes
    map_bytes: int
    results: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    target: str
    name: str
    conventional: Figures
    ours: Figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", nargs="+", default=["rv32imc", "cortex-m0plus", "cortex-m4"])
    parser.add_argument("--minimise", default="balanced", help="what layouts are to be best at")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--same-map", action="store_true", help="maps no larger than the conventional ones")
    parser.add_argument("--zig", action="store_true", help="compile with Zig though there is GCC")
    arguments = parser.parse_args()
    if arguments.zig:
        os.environ["PATH"] = ""  # where no other compiler is found, Zig is taken
    asked = arguments.minimise, arguments.same_map
    pairs = [measured(name, target, *asked) for target in arguments.targets for name in CALLS]
    Console(width=150).print(table_of(pairs, BARS_SAME_MAP if arguments.same_map else BARS))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(pair) for pair in pairs], indent=1) + "\n")


def measured(name: str, target: str, minimise: str = "balanced", same_map: bool = False) -> Pair:
    """Both drivers of a peripheral, compiled and run."""
    analysis = analyse([EXAMPLES / f"{name}.c"])
    description = analysis.description
    known = read_twin_map(HERE / f"{name}.toml", description)
    limit = map_bytes_of(known) if same_map else None
    goal, measure_code = LayoutGoal(limit, minimise, target), partial(code_sizes_of, target=target)
    design = chosen_design(analysis, goal=goal, measure=measure_code)
    fixed = {file: (HERE / file).read_text() for file in (f"{name}.c", f"{name}_registers.h", "register.h")}
    registers = elaborate(description, analysis.spaces, design.layout)
    conventional = _run(design, target, name, fixed, known, map_bytes_of(known))
    ours = _run(design, target, name, generate(design, name), registers, design.layout.map_bytes(description))
    return Pair(
        target,
        name,
        _with_effort(conventional, "\n".join(fixed.values())),
        _with_effort(ours, (EXAMPLES / f"{name}.c").read_text()),
    )


def _run(
    design: Design,
    target: str,
    name: str,
    files: Mapping[str, str],
    registers: tuple[RegisterAt, ...],
    map_bytes: int,
) -> Figures:
    description = design.analysis.description
    (model,) = load_model(EXAMPLES / f"{name}.py")
    buffer = free_window(description.devices) + BUFFERS
    calls = [(call, tuple(buffer if word == BUFFER else word for word in arguments)) for call, arguments in CALLS[name]]
    found = measure(files, description, registers, calls, target, {name: model}, seed=3)
    without = set(re.findall(r"^void (\w+)\(", (EXAMPLES / f"{name}.c").read_text(), re.MULTILINE))
    results = tuple(r for r, (call, _) in zip(found.results, calls, strict=True) if call not in without)
    return Figures(found.code_bytes, found.accesses, found.instructions, 0.0, map_bytes, results)


def _with_effort(figures: Figures, text: str) -> Figures:
    return Figures(*[{**asdict(figures), "effort": halstead(text).effort}[key] for key in asdict(figures)])


def summed(pairs: Sequence[Pair], target: str, what: str) -> tuple[float, float]:
    """What all drivers come to on a target, conventional and ours."""
    here = [pair for pair in pairs if pair.target == target]
    return sum(getattr(p.conventional, what) for p in here), sum(getattr(p.ours, what) for p in here)


def table_of(pairs: Sequence[Pair], bars: Mapping[str, float] = BARS) -> Table:
    table = Table(
        "target", "driver", title="conventional → ours, -Os; of the sums, the ratio and what is to be reached"
    )
    for what in (*bars, "results"):
        table.add_column(what.replace("_", " "), justify="right")
    for target in dict.fromkeys(pair.target for pair in pairs):
        for pair in (pair for pair in pairs if pair.target == target):
            cells = [f"{getattr(pair.conventional, w):,.0f} → {getattr(pair.ours, w):,.0f}" for w in bars]
            same = pair.conventional.results == pair.ours.results
            table.add_row(target, pair.name, *cells, "same" if same else "[red]differ[/]")
        ratios = {what: (ours / fixed) for what in bars for fixed, ours in [summed(pairs, target, what)]}
        judged = [f"[{'green' if ratios[w] <= bar else 'red'}]{ratios[w]:.2f}[/] ({bar:g})" for w, bar in bars.items()]
        table.add_row(target, "sum", *judged, "", end_section=True)
    return table


if __name__ == "__main__":
    main()
