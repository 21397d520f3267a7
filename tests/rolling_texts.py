"""Random texts of one skeleton each, whose numbers, tables and constants differ: straight, and as loops."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import numpy as np

from edgewright.emit.rolling import roll
from edgewright.kernels.printing.source import Expr, moved, plus, times
from edgewright.kernels.site import Unit


class Writer:
    """Texts of one skeleton: it asks for numbers, each of which is a series over the texts."""

    def __init__(self, rng: random.Random, values: random.Random, unit: Unit, count: int) -> None:
        self.rng, self.values, self.unit, self.count = rng, values, unit, count

    def series(self, low: int = -40, high: int = 60) -> list[int]:
        rng, n = self.values, self.count
        start, step = rng.randint(low, high), rng.randint(-7, 7)
        kinds: list[Callable[[int], int]] = [
            lambda t: start,
            lambda t: start + step * t,
            lambda t: step * t,
            lambda t: min(start + 5 * t, start + 5 * (n - 2)),
            lambda t: rng.choice((0, start, rng.randint(low, high))),
        ]
        kind = self.rng.choice(kinds)
        return [max(low, min(high, kind(t))) for t in range(n)]

    def expression(self, depth: int = 2) -> list[Expr]:
        """The same expression for each text."""
        rng = self.rng
        if depth == 0 or rng.random() < 0.2:
            return rng.choice([["a"] * self.count, ["b"] * self.count, list(self.series())])
        inner = self.expression(depth - 1)
        match rng.randrange(7):
            case 0 | 1:
                return [plus(x, v) for x, v in zip(inner, self.series(), strict=True)]
            case 2:
                factor = rng.randint(2, 5)
                return [times(x, factor) for x in inner]
            case 3:
                return [f"{x} - {y}" for x, y in zip(inner, self.operands(depth - 1), strict=True)]
            case 4:
                divisor = rng.choice("/%")
                return [f"({x}) {divisor} {v}" for x, v in zip(inner, self.series(3, 9), strict=True)]
            case 5:
                return [f"ew_max({x}, {v})" for x, v in zip(inner, self.series(), strict=True)]
        return [f"(int8_t)({x})" for x in inner]

    def operands(self, depth: int) -> list[str]:
        return [str(x) if re.fullmatch(r"\w+", str(x)) else f"({x})" for x in self.expression(depth)]

    def lines(self) -> list[list[str]]:
        """One or more lines for each text."""
        rng, unit = self.rng, self.unit
        match rng.randrange(6):
            case 0 | 1:
                return [[f"note({x});"] for x in self.expression(3)]
            case 2:
                parts = [
                    unit.table("ew_pair", values) for values in zip(self.series(), self.series(), strict=True)
                ]
                return [[f"note_pair(&{t});"] for t in parts]
            case 3:
                arrays = [unit.constants.add(np.array([v, 1], np.int16), "") for v in self.series()]
                sources = [moved(x, v) for x, v in zip(arrays, self.series(0, 1), strict=True)]
                return [[f"note(*({x}));"] for x in sources]
            case 4:
                sizes, ends = self.series(4, 9), self.series(1, 4)
                return [
                    ["{", f"    int32_t room[{size}] = {{{end}}};", "    int32_t copy[2] = {0};",
                     f"    memcpy(copy, room, {4 if end > 2 else 8});", "    note(copy[0]);", "}"]
                    for size, end in zip(sizes, ends, strict=True)
                ]  # fmt: skip
        lows, highs = self.series(0, 9), self.series(5, 20)
        return [
            [f"for (int32_t i = {low}; i < {high}; i++) {{", f"    note(i * {high} - {low});", "}"]
            for low, high in zip(lows, highs, strict=True)
        ]

    def texts(self) -> list[list[str]]:
        statements = [self.lines() for _ in range(self.rng.randint(1, 5))]
        return [[line for lines in statements for line in lines[t]] for t in range(self.count)]


def nested(rng: random.Random, unit: Unit) -> tuple[list[str], list[str]]:
    """Texts one after the other, and as loops; or the same twice around."""
    if rng.random() < 0.6:
        texts = Writer(rng, rng, unit, rng.randint(2, 7)).texts()
        return [line for text in texts for line in ("{", *text, "}")], roll(unit, texts, "tile0")
    skeleton = rng.random()
    rows = [Writer(random.Random(skeleton), rng, unit, 3).texts() for _ in range(3)]
    straight = [line for row in rows for text in row for line in ("{", *text, "}")]
    return straight, roll(unit, [roll(unit, row, "tile1") for row in rows], "tile0")
