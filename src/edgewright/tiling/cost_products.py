"""Work of int8 convolutions and dense layers: blocks of pixels and channels, and windows that are gathered for them."""

from __future__ import annotations

from math import prod

from ..kernels.dsp import conv as dsp_rows
from ..kernels.portable import blocked
from ..kernels.portable import products as portable
from ..network import Layer, Region
from ..network.operators import Conv2d
from ..platform.target import Architecture, Family, Target
from .cost_facts import Facts
from .cost_geometry import Setting, axes, up

Amounts = dict[str, float]


def convolution(facts: Facts, layer: Layer, region: Region, setting: Setting) -> tuple[str, Amounts]:
    """The kind of kernel for part of a convolution, and its amounts."""
    part = Part(facts, layer, region, setting.is_bent)
    match facts.target.family:
        case Family.DSP:
            return _dsp(part, setting.room)
        case Family.HELIUM:
            return _helium(part)
        case _:
            return _portable(part, setting.room, facts.target)


def product(facts: Facts, layer: Layer, region: Region) -> tuple[str, Amounts]:
    """The kind of kernel for part of a dense layer, and its amounts."""
    network, target, scaling = facts.network, facts.target, facts.scaling(layer)
    taps, channels, rows = network.shapes(layer)[1][-1], region.shape[-1], prod(region.shape[:-1])
    if target.family is Family.DSP and rows == 1 and facts.is_side_show(layer):
        amounts = {"calls": 1, "words": up(taps, 4) / 4, "macs": up(channels, 2) * up(taps, 4)}
        return "small-dense int8", amounts | {f"outputs {scaling}": up(channels, 2)}
    depth, width = (16, 1) if target.family is Family.HELIUM else (4, 4) if target.family is Family.DSP else (1, 1)
    done = rows * up(channels, width)
    amounts = {"calls": 1, "rows": rows, "macs": done * up(taps, depth), "taps": rows * taps}
    if target.family is Family.PORTABLE:
        amounts["odd macs"] = rows * (channels % portable.DENSE_BLOCKS[0]) * taps
    return "dense int8", amounts | {f"outputs {scaling}": done}


class Part:
    """Part of a convolution: how often kernels do what."""

    def __init__(
        self, facts: Facts, layer: Layer, region: Region, is_bent: bool, depth: int | None = None
    ) -> None:
        op, shapes = layer.op, facts.network.shapes(layer)
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
        self.is_row = self.is_pointwise and self.rows == 1 < facts.output(layer).shape[1]  # one of several
        down, across = axes(op, shapes[1][1:3], shapes[0])
        above, below = down.outside(region.bounds[1])
        self.inner_rows = self.rows - (above + below) * batch
        self.sides = across.outside(region.bounds[2])
        self.scaling, self.is_bent = facts.scaling(layer), is_bent

    def edges(self, block: int) -> int:
        """Pixels that are gathered with care, since the window of one of their block leaves the image."""
        sides = min(self.columns, sum(up(side, block) for side in self.sides))
        return self.inner_rows * sides + (self.rows - self.inner_rows) * self.columns

    def common(self, block: int, word: int) -> Amounts:
        """Amounts of gathering; `word` taps at a time."""
        edges = self.edges(block)
        inner, words = self.pixels - edges, self.runs * up(self.run, word) // word
        return {
            "calls": 1,
            "rows": self.rows,
            "pixels": self.pixels,
            "runs": inner * self.runs,
            "bent runs": inner * self.runs if self.is_bent else 0,
            "words": inner * words,
            "cut words": inner * self.runs if self.run % word else 0,
            "edge runs": edges * self.runs,
            "edge words": edges * words,
            "ragged words": edges * words if self.depth % word else 0,
        }


def _dsp(part: Part, room: int) -> tuple[str, Amounts]:
    """Two pixels and two channels at a time from columns, or, where memory is short, a pixel and four channels."""
    padded = part.runs * up(part.run, 4)
    if part.is_row and part.channels > 1 and 4 * padded <= max(room, dsp_rows.STACK):
        return _dsp_row(part, padded, room)
    if part.channels > 1 and 4 * padded <= max(room, dsp_rows.STACK):
        done = up(part.pixels, 2) * up(part.channels, 2)
        amounts = part.common(2, 4) | {"macs": done * padded, "odd": part.pixels * (part.channels % 2)}
        return "conv int8", amounts | {f"outputs {part.scaling}": done}
    done = part.pixels * up(part.channels, 4)
    taps = up(part.taps, 4)
    amounts = {"macs": done * taps, f"outputs {part.scaling}": done, "odd": part.pixels * bool(part.channels % 4)}
    if part.is_pointwise:
        amounts |= {"calls": 1, "rows": part.rows, "pixels": part.pixels}
        return "tight-pointwise int8", amounts
    edges = part.edges(1)
    amounts |= {"calls": 1, "rows": part.rows, "pixels": part.pixels, "runs": part.pixels * part.runs}
    amounts |= {"words": part.pixels * part.taps / 4, "edge runs": edges * part.runs}
    return "tight-conv int8", amounts


def _dsp_row(part: Part, taps: int, room: int) -> tuple[str, Amounts]:
    """A row of a pointwise layer: two pixels at a time, of an odd number the last three."""
    has_threes = (
        part.channels % 2 == 0 and part.scaling not in ("wide", "float") and 6 * taps <= max(room, dsp_rows.STACK)
    )
    threes = 3 * part.rows if has_threes and part.columns > 2 and part.columns % 2 else 0
    pairs = part.rows * up(part.columns, 2) if not threes else part.pixels - threes
    amounts = {
        "calls": 1,
        "pixels": pairs,
        "words": pairs * taps / 4,
        "cut words": part.pixels if part.depth % 4 else 0,
        "macs": pairs * up(part.channels, 2) * taps,
        "odd": part.pixels * (part.channels % 2),
        "threes": threes / 3,
        "threes words": threes * taps / 4,
        "threes macs": threes * part.channels * taps,
        f"threes outputs {part.scaling}": threes * part.channels,
    }
    return "conv-row int8", amounts | {f"outputs {part.scaling}": pairs * up(part.channels, 2)}


def _portable(part: Part, room: int, target: Target) -> tuple[str, Amounts]:
    """Four pixels and four channels at a time."""
    has_registers = target.architecture is not Architecture.CORTEX_M
    stack = portable.PAIR_STACK if has_registers else blocked.STACK
    if has_registers and part.channels % 4 == 0 and 8 * up(part.taps, 2) <= max(room, portable.PAIR_STACK):
        fours, rest = divmod(part.pixels, 4)
        fours, ones = fours + (rest == 3), 0 if rest == 3 else rest
        amounts = part.common(2, 1) | {
            "macs": 4 * fours * part.channels * up(part.taps, 2),
            "single macs": ones * part.channels * up(part.taps, 2),
            f"outputs {part.scaling}": (4 * fours + ones) * part.channels,
            "blocks": (fours + ones) * part.channels / 4,
        }
        return "conv-pairs int8", amounts
    name = "conv" if 4 * part.taps <= max(room, stack) else "tight-conv"
    fours, ones = divmod(part.pixels, 4) if name == "conv" else (0, part.pixels)
    wide, odd = divmod(part.channels, 4)
    amounts = part.common(1, 1) | {
        "macs": 16 * fours * wide * part.taps,
        "single macs": ones * part.channels * part.taps,
        "odd macs": 4 * fours * odd * part.taps,
        f"outputs {part.scaling}": part.pixels * part.channels,
        "blocks": (fours + ones) * (wide + odd),
    }
    return f"{name} int8", amounts


def _helium(part: Part) -> tuple[str, Amounts]:
    """Sixteen taps at a time."""
    done = part.pixels * part.channels
    amounts = part.common(1, 1) | {"macs": done * up(part.taps, 16), f"outputs {part.scaling}": done}
    if part.is_pointwise:
        amounts = {key: amounts[key] for key in ("calls", "rows", "pixels", "macs", f"outputs {part.scaling}")}
    return f"{'pointwise' if part.is_pointwise else 'conv'} int8", amounts
