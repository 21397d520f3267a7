"""What a call asks of a core: the kind of work, and the amounts that decide its instructions.

Amounts count what kernels do: products in the blocks in which they are computed, outputs that are scaled, elements that
are gathered, rows and calls that are begun. Kernels say them of themselves; here is what they have in common, and the
work of running sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ...network import Arithmetic, DType, Region
from ...network.kernels.scales import number
from ...network.kernels.tflite_scales import activation_range
from ...network.operators import (
    ACTIVATIONS,
    Clamp,
    Conv2d,
    Unary,
)
from ..requantise.sums import requantised
from ..site import Site
from ..window import axes, round_up

Amounts = dict[str, float]
ACTIVATION = "activation "  # begins the amounts that cost the same wherever they occur: functions of a real number
SHORT = 4  # rounds of a loop that some compilers write out
BYTES = {DType.INT8: (-128, 127), DType.UINT8: (0, 255)}


@dataclass(frozen=True, slots=True)
class KernelWork:
    kind: str  # coefficients are kept by it
    amounts: Mapping[str, float]

    def terms(self) -> Iterator[tuple[str, str, float]]:
        """Kind, amount by name, and amount: those of activations are of a kind of their own."""
        for key, amount in self.amounts.items():
            yield ("activations" if key.startswith(ACTIVATION) else self.kind), key, amount


def general(work: KernelWork) -> KernelWork:
    """The work as one of a kind that every target has coefficients for: what it does to elements of its type."""
    wanted = ("calls", "lines", "outputs", "shared", "circular", "reads")
    kept = {key: amount for key, amount in work.amounts.items() if key.startswith(ACTIVATION)}
    return KernelWork(f"other {work.kind.split()[-1]}", {key: work.amounts.get(key, 0) for key in wanted} | kept)


def is_small(site: Site) -> bool:
    """Whether inputs and outputs are both of eight bits."""
    return site.inputs[0].tensor.dtype in BYTES and site.result.dtype in BYTES


def is_circular(site: Site) -> bool:
    """Whether rows of an input or of the output lie in a rolling window."""
    return any(place.window for place in (*site.inputs, site.output))


def scaling(site: Site) -> str:
    """How sums become bytes: "signed" ones round sums below zero otherwise, as TFLite's convolutions do."""
    sums = requantised(site)
    return "signed" if sums is not None and sums.drop_bits is not None else "plain"


def is_narrow(site: Site) -> bool:
    """Whether the activation keeps outputs to less than the range of their eight bits."""
    return site.facts.once("limits", lambda: _limits(site)) != BYTES[site.result.dtype]


def _limits(site: Site) -> tuple[int, int]:
    """The stored values between which the activation keeps the output."""
    y = site.result
    low, high = BYTES[y.dtype]
    activation = getattr(site.op, "activation", None)
    if not isinstance(activation, Clamp) or y.quant is None:
        return low, high
    if site.arithmetic is Arithmetic.TFLITE:
        return activation_range(activation, y)
    first, last = (int(np.clip(number(v, y), low, high)) for v in (activation.low, activation.high))
    return first, last


def type_of(site: Site) -> str:
    """The element types that coefficients are kept by, and for bytes whose rounding is followed: `int8-tflite`."""
    found = unrounded_type(site)
    return found + (f"-{rounding(site)}" if "int8" in found.split("-") else "")


def unrounded_type(site: Site) -> str:
    """The element types alone. Bytes cost the same with and without a sign."""
    types = [tensor.dtype for tensor in (site.inputs[0].tensor, site.result)]
    x, y = ("int8" if dtype in BYTES else dtype.value for dtype in types)
    return y if x == y else f"{x}-{y}"


def rounding(site: Site) -> str:
    """Whose rounding is priced: QLinear kernels cost about what the file's own layers do."""
    known = Arithmetic.TFLITE if site.arithmetic is Arithmetic.TFLITE else Arithmetic.ONNX
    return known.value


class ConvPart:
    """Part of a convolution: how often kernels do what."""

    def __init__(self, site: Site, region: Region, depth: int | None = None) -> None:
        op, shapes = site.op, site.shapes
        assert isinstance(op, Conv2d)
        _, height, width, whole = shapes[1]
        self.depth = whole if depth is None else depth  # channels of the input that are summed over
        self.window = height * width
        is_joined = width == 1 or op.dilation[1] == 1
        self.run, self.runs = (width * self.depth, height) if is_joined else (self.depth, height * width)
        self.taps = self.run * self.runs
        self.is_pointwise = height == width == 1 and not any(op.pads)
        batch, self.rows, self.columns, self.channels = region.shape
        self.rows *= batch
        self.pixels = self.rows * self.columns
        self.batch, self.bounds = batch, region.bounds
        self.down, self.across = axes(op, shapes[1][1:3], shapes[0])
        above, below = self.down.outside(region.bounds[1])
        self.inner_rows = self.rows - (above + below) * batch
        self.sides = self.across.outside(region.bounds[2])
        self.is_circular = is_circular(site)

    def edges(self, block: int) -> int:
        """Pixels with checks of bounds: their window, or that of another pixel of their block, leaves the image."""
        sides = min(self.columns, sum(round_up(side, block) for side in self.sides))
        return self.inner_rows * sides + (self.rows - self.inner_rows) * self.columns

    def gathering(self, edges: float, word: int, windows: int) -> Amounts:
        """Amounts of gathering so many windows, `word` taps at a time; `edges` of them with checks of bounds."""
        runs, (words, rest) = (windows - edges) * self.runs, divmod(self.run, word)
        short = 0 if words else runs  # without a whole word
        return {
            "calls": 1,
            "rows": self.rows,
            "pixels": self.pixels,
            "runs": runs - short,
            "circular runs": runs if self.is_circular else 0,
            "words": runs * words,
            "cut words": runs - short if rest else 0,
            "short runs": short,
            "short taps": short * rest,
            "edge runs": edges * self.runs,
            "edge words": edges * self.runs * (round_up(self.run, word) // word),
        }


def activation_work(site: Site, region: Region) -> Amounts:
    """What an activation that is more than a clamp adds for each output.

    Bytes lie all over their range, real numbers near zero, where some functions take fewer instructions.
    """
    op = site.op
    activation = op if isinstance(op, ACTIVATIONS) else getattr(op, "activation", None)
    if activation is None or isinstance(activation, Clamp):
        return {}
    name = activation.kind.value if isinstance(activation, Unary) else type(activation).__name__.lower()
    name = "abs" if name == "neg" else name  # both change a sign
    stored = " of bytes" if site.inputs[0].tensor.dtype in BYTES else ""
    return {f"{ACTIVATION}{name}{stored}": region.size}
