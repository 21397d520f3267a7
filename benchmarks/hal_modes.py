"""The default layout against those that are best at one thing: is any of them no worse in everything?

    python benchmarks/hal_modes.py [--targets rv32imc cortex-m0plus cortex-m4] [--drivers 100] [--first SEED]

Examples and random drivers are laid out by default and with each of --minimise, and compiled at -Os. A layout dominates
the default when its code, its accesses in the code and its map are no larger, and one of them is smaller. Neither that
nor more accesses than with a register for each field may happen; the status is the number of times that it does.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

from rich.console import Console
from rich.table import Table

from edgewright.hal import examples
from edgewright.hal.design import Analysis, Design
from edgewright.hal.design_flow import analyse, naive
from edgewright.hal.layout.cost import WEIGHTS, LayoutGoal
from edgewright.hal.layout_choice import chosen_design, total_accesses
from edgewright.hal.verify import code_sizes_of

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.hal.random_drivers import draw_program

EXAMPLES = Path(examples.__file__).parent
NAMES = ("gpio", "spi", "uart", "timer", "dma", "i2c", "rtc", "adc", "can", "pwm")


@dataclass(frozen=True, slots=True)
class Figures:
    """What a layout comes to on a target."""

    code: int
    accesses: int
    map_bytes: int

    @classmethod
    def of(cls, made: Design, target: str) -> Figures:
        sizes = code_sizes_of(made, target)
        assert sizes is not None, f"no compiler for {target} takes the driver"
        return cls(sum(sizes.values()), total_accesses(made), made.layout.map_bytes(made.analysis.description))

    def dominates(self, other: Figures) -> bool:
        pairs = (
            (self.code, other.code),
            (self.accesses, other.accesses),
            (self.map_bytes, other.map_bytes),
        )
        return self != other and all(one <= two for one, two in pairs)


def faults(analysis: Analysis, target: str) -> tuple[Figures, Figures, list[str]]:
    """The figures with a register for each field and by default, and what is wrong with the default."""
    plain = Figures.of(naive(analysis), target)
    goal, measure = LayoutGoal(target=target), partial(code_sizes_of, target=target)
    best = Figures.of(chosen_design(analysis, goal=goal, measure=measure), target)
    found = [f"{best.accesses} accesses, {plain.accesses} before"] if best.accesses > plain.accesses else []
    for minimise in WEIGHTS:
        if minimise != goal.minimise:
            asked = replace(goal, minimise=minimise)
            other = Figures.of(chosen_design(analysis, goal=asked, measure=measure), target)
            found += [f"{minimise} has {other}, the default {best}"] if other.dominates(best) else []
    return plain, best, found


def drivers(count: int, first: int) -> Iterator[tuple[str, Analysis]]:
    if first == 0:
        for name in NAMES:
            yield name, analyse([EXAMPLES / f"{name}.c"])
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            path = Path(folder) / f"random{seed}.c"
            path.write_text(str(draw_program(seed, Random(seed).choice((2, 4, 8)))))
            yield path.stem, analyse([path])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", nargs="+", default=["rv32imc", "cortex-m0plus", "cortex-m4"])
    parser.add_argument("--drivers", type=int, default=100, help="random ones")
    parser.add_argument("--first", type=int, default=0, help="seed of the first; the examples come with 0")
    arguments = parser.parse_args()
    table = Table("target", "drivers", "code", "accesses", "map", "dominated", title="default against naive, sums")
    known = list(drivers(arguments.drivers, arguments.first))
    wrong = 0
    for target in arguments.targets:
        judged = [(name, *faults(analysis, target)) for name, analysis in known]
        for name, _, _, found in judged:
            for what in found:
                print(f"{target}, {name}: {what}", flush=True)
        ratios = [
            sum(getattr(best, what) for _, _, best, _ in judged)
            / sum(getattr(plain, what) for _, plain, _, _ in judged)
            for what in ("code", "accesses", "map_bytes")
        ]
        bad = sum(bool(found) for *_, found in judged)
        wrong += bad
        table.add_row(target, str(len(judged)), *(f"{ratio:.3f}" for ratio in ratios), str(bad))
    Console(width=100).print(table)
    sys.exit(min(wrong, 100))


if __name__ == "__main__":
    main()
