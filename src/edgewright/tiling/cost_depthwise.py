"""Work of int8 depthwise convolutions: one channel at a time, row by row, from where it lies or through a ring."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from ..kernels.helium import products as helium
from ..kernels.portable import depthwise as ring
from ..network import DType, Layer, Region
from ..network.operators import Conv2d
from ..platform.target import Architecture, Family
from ..program import Sweep
from .cost_facts import Facts
from .cost_geometry import Axis, Setting, axes, up

Amounts = dict[str, float]


@dataclass(frozen=True, slots=True)
class _Part:
    """Part of a depthwise convolution, and in which blocks it is computed."""

    rows: int
    columns: int
    channels: int
    down: Axis
    across: Axis
    is_signed: bool  # sums below zero are rounded otherwise
    is_settled: bool  # outputs are gone over once more
    block: tuple[int, int] | None = None  # rows and columns computed aside before the first is written

    @property
    def is_nine(self) -> bool:
        """Whether the kernels for 3x3 windows take it."""
        return self.down.kernel == self.across.kernel == 3 and self.across.stride in (1, 2) and not self.is_signed

    @property
    def turned(self) -> _Part:
        return replace(self, rows=self.columns, columns=self.rows, down=self.across, across=self.down)


def depthwise(facts: Facts, layer: Layer, region: Region, setting: Setting) -> tuple[str, Amounts]:
    """The kind of kernel for part of a depthwise convolution, and its amounts."""
    part, op, target = _part(facts, layer, region), layer.op, facts.target
    assert isinstance(op, Conv2d)
    if _by_vectors(facts, layer, setting):
        return _vectors(part, prod(facts.network.shapes(layer)[1][1:]))
    is_blocked = setting.is_shared and setting.sweep is not Sweep.CHANNELS
    fits = part.is_nine and op.stride[0] == op.stride[1] and op.dilation == (1, 1) and max(op.pads) <= 1
    fits = fits and facts.input(layer).dtype is DType.INT8
    name = "ring"
    if target.family is Family.PORTABLE:
        if fits and target.architecture is not Architecture.CORTEX_M and not part.is_settled:
            name = "direct"
    elif (
        fits
        and not is_blocked
        and not setting.is_skewed
        and setting.sweep is not Sweep.CHANNELS
        and _pays(part, setting)
    ):
        name = "rows"
    if is_blocked:
        part = replace(part, block=_block(part, setting.room))
    elif part.rows > part.columns and name != "rows" and not setting.is_bent:
        part = part.turned  # long rows cost less
    return _amounts(part, name)


def _by_vectors(facts: Facts, layer: Layer, setting: Setting) -> bool:
    """Whether vectors of channels take the layer, pixel by pixel, wherever it lies."""
    op, (x, w) = layer.op, facts.network.shapes(layer)[:2]
    assert isinstance(op, Conv2d)
    least = helium.LEAST_CHANNELS_STRIDED if max(op.stride) > 1 else helium.LEAST_CHANNELS
    return (
        facts.target.family is Family.HELIUM
        and setting.sweep is not Sweep.CHANNELS
        and facts.input(layer).dtype is DType.INT8
        and x[3] == w[0] >= least
        and w[1] * w[2] <= helium.MOST_TAPS
    )


def _vectors(part: _Part, taps: int) -> tuple[str, Amounts]:
    """Four channels in a vector, four vectors at a time."""
    pixels = part.rows * part.columns
    fours = up(part.channels, 4)
    sixteens, rest = divmod(fours, 16)
    amounts: Amounts = {
        "calls": 1,
        "lines": part.rows,
        "taps": pixels * taps,
        "blocks": pixels * (sixteens + bool(rest)),
        "block taps": pixels * (sixteens + bool(rest)) * taps,
        "outputs": pixels * fours,
        "macs": pixels * fours * taps,
    }
    return "depthwise-vectors int8", amounts


def _pays(part: _Part, setting: Setting) -> bool:
    """Whether the kernel for rows is taken: for few of them, or where it is there already and gains."""
    return part.rows <= 2 or (part.across.stride == 2 and setting.has_rows)


def _part(facts: Facts, layer: Layer, region: Region) -> _Part:
    shape, weights = facts.network.shapes(layer)[:2]
    assert isinstance(layer.op, Conv2d)
    down, across = (_spread(axis) for axis in axes(layer.op, weights[1:3], shape))
    settled = facts.is_narrow(layer) or facts.output(layer).dtype is DType.UINT8
    _, rows, columns, channels = region.shape
    return _Part(rows, columns, channels, down, across, facts.scaling(layer) == "signed", settled)


def _spread(axis: Axis) -> Axis:
    """The same with dilation written out, as the weights are."""
    if axis.dilation == 1:
        return axis
    return replace(axis, kernel=(axis.kernel - 1) * axis.dilation + 1, dilation=1)


def _amounts(part: _Part, name: str) -> tuple[str, Amounts]:
    tall, wide = part.block or (part.rows, part.columns)
    bands, strips = -(-part.rows // tall), -(-part.columns // wide)
    size = part.rows * part.columns * part.channels
    is_kept = part.block is not None and part.block != (1, 1)
    amounts: Amounts = {
        "calls": 1,
        "blocks": bands * strips if part.block else 0,
        "channels": part.channels * bands * strips,
        "lines": part.channels * part.rows * strips,
        "outputs": size,
        "settled": size if part.is_settled else 0,
        "copies": part.rows * part.columns if is_kept else 0,
        "copied": size if is_kept else 0,
    }
    if name != "ring":
        return f"depthwise-{name}-{part.across.stride} int8", amounts
    lines = part.channels * strips * bands * part.down.covered(tall)
    pairs = part.channels * part.rows * strips * up(wide, 2)
    amounts |= {"outputs": pairs, "gathers": lines, "gathered": lines * part.across.covered(wide)}
    if part.is_nine:
        return f"depthwise-ring-{part.across.stride} int8", amounts
    amounts["signed"] = pairs if part.is_signed else 0
    amounts["taps"] = pairs * part.down.kernel * up(part.across.kernel, 2)
    amounts["weights"] = part.channels * bands * strips * part.down.kernel * part.across.kernel
    amounts["tap lines"] = pairs * part.down.kernel
    return "depthwise-any int8", amounts


def _block(part: _Part, room: int) -> tuple[int, int]:
    """The largest block there is memory for: rows, part of a row, at last a pixel."""

    def held(rows: int, columns: int) -> int:
        pitch = up((up(columns, 2) - 1) * part.across.stride + up(part.across.kernel, 2), 2)
        taps = 0 if part.is_nine else part.down.kernel * up(part.across.kernel, 2)
        return 2 * (part.down.kernel * pitch + taps) + rows * columns * part.channels

    most = max(room, ring.STACK_BYTES)
    for rows in range(part.rows, 0, -1):
        if held(rows, part.columns) <= most:
            return rows, part.columns
    for columns in range(part.columns - 1, 1, -1):
        if held(1, columns) <= most:
            return 1, columns
    return 1, 1
