"""The search space: which architectures there are, and how a search moves among them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from random import Random
from typing import Any, Protocol, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from ..platform.schema import Entry, Flag, Whole
from .architecture import (
    Block,
    CnnArchitecture,
    FinalPooling,
    InvertedBlock,
    Pair,
    PlainBlock,
    ResidualBlock,
    SeparableBlock,
    Shape3,
)

TRIALS = 64  # mutations that are drawn until one differs from what it was
CHANNELS_SHARE = 0.6  # of mutations that change the number of channels alone, as EPT's do


class SpaceKind(Enum):
    """The blocks of a space. The first block of each is a plain convolution."""

    RESIDUAL = "residual"
    SEPARABLE = "separable"
    INVERTED = "inverted"
    SENSOR = "sensor"  # in time alone, plain and separable blocks mixed


BLOCK_KINDS: dict[SpaceKind, tuple[type[Block], ...]] = {
    SpaceKind.RESIDUAL: (ResidualBlock,),
    SpaceKind.SEPARABLE: (SeparableBlock,),
    SpaceKind.INVERTED: (InvertedBlock,),
    SpaceKind.SENSOR: (PlainBlock, SeparableBlock),
}
RANGE = "two whole numbers, the least and the most"


class Chooser(Protocol):
    """Chooses between the options of a space: a random generator, or a sampler of optuna."""

    def integer(self, name: str, low: int, high: int, /) -> int: ...

    def option(self, name: str, options: Sequence[Any], /) -> Any: ...


class SearchSpace(Entry):
    """The [space] table of a task."""

    kind: SpaceKind = Field(description="one of " + ", ".join(kind.value for kind in SpaceKind))
    blocks: tuple[Whole, Whole] = Field(default=(2, 5), description=f"{RANGE}, such as [2, 5]")
    channels: tuple[Whole, Whole] = Field(default=(8, 64), description=f"{RANGE}, such as [8, 64]")
    channel_step: Whole = Field(
        default=4, ge=1, le=256, description="a whole number that all numbers of channels are multiples of, such as 4"
    )
    kernels: tuple[Whole, ...] = Field(default=(3, 5), description="a list of sizes, such as [3, 5]")
    strides: tuple[Whole, ...] = Field(default=(1, 2), description="a list of sizes, such as [1, 2]")
    pools: tuple[Whole, ...] = Field(
        default=(1,), description="a list of sizes of max pools after a block, such as [1, 2]; 1 is none"
    )
    expansions: tuple[Whole, ...] = Field(
        default=(1, 2, 4), description="a list of factors of inverted bottlenecks, such as [1, 4, 6]"
    )
    squeeze: tuple[Flag, ...] = Field(
        default=(False,), description="a list of true, false or both: whether inverted bottlenecks squeeze and excite"
    )
    dense: tuple[Whole, Whole] = Field(default=(0, 0), description=f"{RANGE} of hidden dense layers, such as [0, 1]")
    units: tuple[Whole, Whole] = Field(default=(16, 128), description=f"{RANGE} of units of these, such as [16, 128]")
    pooling: tuple[FinalPooling, ...] = Field(
        default=(FinalPooling.MEAN,), description='a list of "mean", "max" and "none", such as ["mean"]'
    )

    @model_validator(mode="after")
    def _keeps_the_rules(self) -> Self:
        for key, least, most in (("blocks", 1, 64), ("channels", 1, 4096), ("units", 1, 4096), ("dense", 0, 8)):
            low, high = getattr(self, key)
            if not least <= low <= high <= most:
                _refuse(key, f"is [{low}, {high}]; expected the least and the most, from {least} to {most}")
        for key in ("channels", "units"):
            low, high = getattr(self, key)
            if high // self.channel_step < max(1, math.ceil(low / self.channel_step)):
                _refuse(key, f"is [{low}, {high}], with no multiple of channel_step ({self.channel_step}) inside")
        for key in ("kernels", "strides", "pools", "expansions"):
            sizes = getattr(self, key)
            if not sizes or not all(1 <= size <= 64 for size in sizes):
                _refuse(key, f"is {list(sizes)}; expected at least one size from 1 to 64")
        for key in ("squeeze", "pooling"):
            if not getattr(self, key):
                _refuse(key, "is empty; expected at least one choice")
        return self

    # Architectures of the space

    def draw(self, random: Random, input: Shape3, classes: int) -> CnnArchitecture:
        """A random architecture."""
        return self.chosen(RandomChooser(random), input, classes)

    def suggest(self, trial: Any, input: Shape3, classes: int) -> CnnArchitecture:
        """The architecture that a trial of optuna chooses."""
        return self.chosen(TrialChooser(trial), input, classes)

    def chosen(self, chooser: Chooser, input: Shape3, classes: int) -> CnnArchitecture:
        """The architecture that follows from the chooser's decisions."""
        count = chooser.integer("blocks", *self.blocks)
        blocks = tuple(self._block(chooser, index) for index in range(count))
        units = tuple(
            self._channels(chooser, f"units{index}", self.units)
            for index in range(chooser.integer("dense", *self.dense))
        )
        pooling = FinalPooling(chooser.option("pooling", [pooling.value for pooling in self.pooling]))
        return CnnArchitecture(input, blocks, classes, units, pooling)

    def least(self, input: Shape3, classes: int) -> CnnArchitecture:
        """The smallest architecture: few channels, few blocks, small kernels, large strides and pools."""
        return self.chosen(_Least(), input, classes)

    def mutate(self, random: Random, architecture: CnnArchitecture, quantity: float) -> CnnArchitecture:
        """The architecture with one block changed: mostly its channels, by the share `quantity`, as EPT does."""
        for _ in range(TRIALS):
            if random.random() < CHANNELS_SHARE:
                found = self._other_channels(random, architecture, quantity)
            else:
                found = random.choice((self._other_block, self._inserted, self._deleted, self._other_end))(
                    random, architecture
                )
            if found != architecture:
                return found
        return architecture

    def recombine(
        self, random: Random, a: CnnArchitecture, b: CnnArchitecture
    ) -> tuple[CnnArchitecture, CnnArchitecture]:
        """Both architectures, with one block of the one in place of one of the other."""
        first = 0 if random.random() < 1 / max(len(a.blocks), len(b.blocks)) else 1
        first = min(first, len(a.blocks) - 1, len(b.blocks) - 1)
        last = len(a.blocks) - 1 if first else 0, len(b.blocks) - 1 if first else 0  # a stem is swapped for a stem
        i, j = random.randint(first, last[0]), random.randint(first, last[1])
        one = replace(a, blocks=(*a.blocks[:i], b.blocks[j], *a.blocks[i + 1 :]))
        two = replace(b, blocks=(*b.blocks[:j], a.blocks[i], *b.blocks[j + 1 :]))
        return one, two

    # Decisions

    def _block(self, chooser: Chooser, index: int) -> Block:
        """A block; the first one is plain."""
        kinds = BLOCK_KINDS[self.kind]
        names = [kind.__name__ for kind in kinds]
        kind = kinds[names.index(chooser.option(f"kind{index}", names))] if index and len(kinds) > 1 else kinds[0]
        kind = kind if index else PlainBlock
        values: dict[str, Any] = {
            "channels": self._channels(chooser, f"channels{index}", self.channels),
            "kernel": self._pair(chooser.option(f"kernel{index}", self.kernels)),
            "stride": self._pair(chooser.option(f"stride{index}", self.strides)),
        }
        if kind in (PlainBlock, SeparableBlock):
            values["pool"] = self._pair(chooser.option(f"pool{index}", self.pools))
        if kind is InvertedBlock:
            values["expansion"] = chooser.option(f"expansion{index}", self.expansions)
            values["squeeze"] = chooser.option(f"squeeze{index}", self.squeeze)
        return kind(**values)

    def _pair(self, size: int) -> Pair:
        """A size along both axes; along time alone for sensors."""
        return (size, 1) if self.kind is SpaceKind.SENSOR else (size, size)

    def _channels(self, chooser: Chooser, name: str, limits: tuple[int, int]) -> int:
        low, high = self._multiples(limits)
        return self.channel_step * chooser.integer(name, low, high)

    def _multiples(self, limits: tuple[int, int]) -> tuple[int, int]:
        """The least and most number of steps within the limits."""
        return max(1, math.ceil(limits[0] / self.channel_step)), limits[1] // self.channel_step

    # Mutations

    def _other_channels(self, random: Random, architecture: CnnArchitecture, quantity: float) -> CnnArchitecture:
        blocks, dense = architecture.blocks, architecture.dense
        which = random.randrange(len(blocks) + len(dense))
        if which < len(blocks):
            channels = self._changed(random, blocks[which].channels, quantity, self.channels)
            return _with_block(architecture, which, replace(blocks[which], channels=channels))
        at = which - len(blocks)
        units = self._changed(random, dense[at], quantity, self.units)
        return replace(architecture, dense=(*dense[:at], units, *dense[at + 1 :]))

    def _changed(self, random: Random, channels: int, quantity: float, limits: tuple[int, int]) -> int:
        """More or fewer channels, by the share `quantity`, at least by one step."""
        low, high = self._multiples(limits)
        steps = max(1, round(channels * quantity / self.channel_step))
        changed = round(channels / self.channel_step) + random.choice((-steps, steps))
        return self.channel_step * min(max(changed, low), high)

    def _other_block(self, random: Random, architecture: CnnArchitecture) -> CnnArchitecture:
        """One block with another kernel, stride, pool, expansion or squeeze-excite."""
        which = random.randrange(len(architecture.blocks))
        old = architecture.blocks[which]
        new = self._block(RandomChooser(random), which)
        names = [name for name in ("kernel", "stride", "pool", "expansion", "squeeze") if hasattr(old, name)]
        name = random.choice(names)
        if not hasattr(new, name):
            return architecture
        return _with_block(architecture, which, replace(old, **{name: getattr(new, name)}))

    def _inserted(self, random: Random, architecture: CnnArchitecture) -> CnnArchitecture:
        blocks = architecture.blocks
        if len(blocks) >= self.blocks[1]:
            return architecture
        at = random.randint(1, len(blocks))
        new = self._block(RandomChooser(random), at)
        return replace(architecture, blocks=(*blocks[:at], new, *blocks[at:]))

    def _deleted(self, random: Random, architecture: CnnArchitecture) -> CnnArchitecture:
        blocks = architecture.blocks
        if len(blocks) <= max(1, self.blocks[0]):
            return architecture
        at = random.randrange(1, len(blocks))
        return replace(architecture, blocks=(*blocks[:at], *blocks[at + 1 :]))

    def _other_end(self, random: Random, architecture: CnnArchitecture) -> CnnArchitecture:
        """Another final pooling, or one dense layer more or less."""
        dense, chooser = architecture.dense, RandomChooser(random)
        match random.randrange(3):
            case 0:
                return replace(architecture, pooling=random.choice(self.pooling))
            case 1 if len(dense) < self.dense[1]:
                return replace(architecture, dense=(*dense, self._channels(chooser, "units", self.units)))
            case 2 if len(dense) > self.dense[0]:
                at = random.randrange(len(dense))
                return replace(architecture, dense=(*dense[:at], *dense[at + 1 :]))
        return architecture


def _with_block(architecture: CnnArchitecture, which: int, block: Block) -> CnnArchitecture:
    blocks = architecture.blocks
    return replace(architecture, blocks=(*blocks[:which], block, *blocks[which + 1 :]))


def _refuse(key: str, problem: str) -> None:
    raise PydanticCustomError("rule", "{problem}", {"key": f"space.{key}", "problem": problem})


class RandomChooser:
    """Draws each option with the same probability, and whole numbers evenly on a logarithmic scale."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def integer(self, _name: str, low: int, high: int) -> int:
        if low < 1:
            return self._random.randint(low, high)
        # Between low and high + 1, so that each end is as likely as its neighbour.
        drawn = math.exp(self._random.uniform(math.log(low), math.log(high + 1)))
        return min(high, max(low, int(drawn)))

    def option(self, _name: str, options: Sequence[Any]) -> Any:
        return self._random.choice(list(options))


class TrialChooser:
    """Asks a trial of optuna."""

    def __init__(self, trial: Any) -> None:
        self._trial = trial

    def integer(self, name: str, low: int, high: int) -> int:
        return int(self._trial.suggest_int(name, low, high, log=low >= 1))

    def option(self, name: str, options: Sequence[Any]) -> Any:
        return self._trial.suggest_categorical(name, list(options))


class _Least:
    """Takes what needs least memory: the largest stride and pool, else the least of everything."""

    def integer(self, _name: str, low: int, _high: int) -> int:
        return low

    def option(self, name: str, options: Sequence[Any]) -> Any:
        if name.startswith(("stride", "pool")) and not isinstance(options[0], str):
            return max(options)
        if name == "pooling":
            return next((pooling for pooling in ("mean", "max") if pooling in options), options[0])
        return options[-1] if name.startswith("kind") else min(options)
