"""Fits the bytes of code that layouts are estimated with: the same drivers, compiled with many layouts.

    python benchmarks/hal_costs.py [--targets rv32imc cortex-m0plus cortex-m4] [--drivers 12] [--write]

For each target, the examples and random drivers are laid out in many ways: a register for each field, the paper's
heuristic, and what the optimiser makes of each goal. The estimate is linear in its coefficients, so what a layout has
of each is the estimate with that coefficient 1 and all others 0. Coefficients are fitted to the bytes
that gcc -Os makes, each driver with a constant of its own; those that too few layouts tell anything of stay as they
were. Prints both fits, and writes them to src/edgewright/hal/layout/costs with --write.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from edgewright.hal import examples
from edgewright.hal.design import Analysis
from edgewright.hal.design_flow import analyse, designed, naive, real_joints
from edgewright.hal.generate import generate
from edgewright.hal.layout import cost as sizes_file
from edgewright.hal.layout.cost import WEIGHTS, CodeBytes, LayoutGoal, code_bytes, cost_of
from edgewright.hal.layout.optimal import lay_out_optimal
from edgewright.hal.layout.paper import lay_out_paper
from edgewright.hal.verify.build import build, free_window, target_named

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.hal.random_drivers import draw_program

EXAMPLES = Path(examples.__file__).parent
COSTS = Path(sizes_file.__file__).parent / "costs"
NAMES = [field.name for field in fields(CodeBytes)]
FEW = 6  # layouts that must tell something of a coefficient
HOOKS = ('HAL_ENTER_CRITICAL()=__asm__ volatile("")', 'HAL_EXIT_CRITICAL()=__asm__ volatile("")')
STEADY = ("critical",)  # what the hook takes is the user's


@dataclass(frozen=True, slots=True)
class Sample:
    driver: str
    parts: tuple[int, ...]  # how much of each coefficient the estimate has
    code: int  # bytes, compiled


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", nargs="+", default=["rv32imc", "cortex-m0plus", "cortex-m4"])
    parser.add_argument("--drivers", type=int, default=12, help="random ones, beside the examples")
    parser.add_argument("--write", action="store_true", help="write the coefficients")
    arguments = parser.parse_args()
    table = Table("target", "layouts", *NAMES, "error before, B", "after, B", title="bytes of code")
    for target in arguments.targets:
        samples = list(sampled(target, arguments.drivers))
        before = code_bytes(target)
        after = fitted(samples, before)
        errors = [f"{error(samples, known):.1f}" for known in (before, after)]
        table.add_row(target, str(len(samples)), *(str(value) for value in asdict(after).values()), *errors)
        if arguments.write:
            (COSTS / f"{target}.json").write_text(json.dumps(asdict(after), indent=1) + "\n")
    Console(width=170).print(table)


def sampled(target: str, drivers: int) -> Iterator[Sample]:
    """All drivers with all layouts that differ."""
    for name, analysis in _drivers(drivers):
        seen = set()
        for files, parts in _layouts(analysis):
            if parts not in seen:
                seen.add(parts)
                base = free_window(analysis.description.devices)
                yield Sample(name, parts, build(files, target_named(target), base, defines=HOOKS).code_bytes)


def _drivers(count: int) -> Iterator[tuple[str, Analysis]]:
    for name in ("gpio", "uart", "timer", "dma", "i2c", "rtc", "adc", "can", "pwm"):
        yield name, analyse([EXAMPLES / f"{name}.c"])
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(count):
            path = Path(folder) / f"random{seed}.c"
            path.write_text(str(draw_program(seed, 6)))
            yield path.stem, analyse([path])


def _layouts(analysis: Analysis) -> Iterator[tuple[dict[str, str], tuple[int, ...]]]:
    known = analysis.description, analysis.spaces
    designs = [
        naive(analysis),
        designed(analysis, lambda joints: lay_out_paper(*known, joints)),
        *(
            designed(analysis, lambda joints, w=w: lay_out_optimal(*known, joints, LayoutGoal(minimise=w), 0.2))
            for w in WEIGHTS
        ),
    ]
    for design in designs:
        joints = real_joints(design)
        parts = tuple(cost_of(*known, design.layout, joints, _unit(name)).code for name in NAMES)
        yield generate(design, "driver"), parts


def _unit(name: str) -> CodeBytes:
    return CodeBytes(**{other: int(other == name) for other in NAMES})


def _centred(samples: Sequence[Sample]) -> tuple[np.ndarray, np.ndarray]:
    """Parts and bytes, each less the mean of its driver."""
    parts = np.array([sample.parts for sample in samples], float)
    code = np.array([sample.code for sample in samples], float)
    for driver in {sample.driver for sample in samples}:
        own = [n for n, sample in enumerate(samples) if sample.driver == driver]
        parts[own] -= parts[own].mean(axis=0)
        code[own] -= code[own].mean()
    return parts, code


def fitted(samples: Sequence[Sample], before: CodeBytes) -> CodeBytes:
    """Least squares by coordinate descent, no coefficient below 1; rounded in the end."""
    parts, code = _centred(samples)
    values = np.array([float(value) for value in asdict(before).values()])
    free = [n for n, name in enumerate(NAMES) if name not in STEADY and np.count_nonzero(parts[:, n]) >= FEW]
    prior = values.copy()
    for _ in range(500):
        for n in free:
            rest = code - parts @ values + parts[:, n] * values[n]
            weight = parts[:, n] @ parts[:, n]
            pull = 0.1 * weight  # towards what was known: parts that go together are told apart by it
            values[n] = max(1.0, (parts[:, n] @ rest + pull * prior[n]) / (weight + pull))
    return CodeBytes(**{name: max(1, round(values[n])) for n, name in enumerate(NAMES)})


def error(samples: Sequence[Sample], sizes: CodeBytes) -> float:
    """The root of the mean square of what estimates of two layouts of a driver are off by."""
    parts, code = _centred(samples)
    off = code - parts @ np.array([float(value) for value in asdict(sizes).values()])
    return float(np.sqrt(np.mean(off**2)))


if __name__ == "__main__":
    main()
