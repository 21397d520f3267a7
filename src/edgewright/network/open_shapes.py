"""Error messages about open input sizes: all of them at once, with plausible sizes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import OpenSizes

Size = int | str  # a number, or the name ('?' if it has none) of an open size

# What the name of a size suggests, and an example of such a size.
_NAMED = (
    (re.compile(r"batch"), 1),
    (re.compile(r"height|width|rows|cols|columns|^h$|^w$|image"), 224),
    (re.compile(r"channel|^c$"), 3),
    (re.compile(r"sample|audio|wave|pcm"), 16000),
    (re.compile(r"seq|time|frame|step|len|token|word|^t$|^l$"), 100),
)
_SERIES = re.compile(r"sample|audio|wave|seq|time|frame|step|len|token|word|^t$|^l$")
_SAMPLES, _FRAMES, _CHANNELS, _SIDE, _SLICES = 16000, 100, 3, 224, 16  # for sizes whose name suggests nothing


def is_batch(size: str, axis: int) -> bool:
    """Whether an open size is the batch: the first one, or one with that name."""
    name = size.lower()
    return "batch" in name or (axis == 0 and not _SERIES.search(name))


@dataclass(frozen=True, slots=True)
class OpenInput:
    """An input for which the file leaves sizes other than the batch, or even their number, open."""

    name: str
    sizes: tuple[Size, ...] | None  # as in the file; None if it states none
    is_float: bool = True
    expected: tuple[Size, ...] | None = None  # as known from the layer that reads it: its rank, its channels

    @property
    def known(self) -> tuple[Size, ...] | None:
        """Sizes as the file states them, completed by those that the reading layer expects."""
        if self.sizes is None or self.expected is None or len(self.sizes) != len(self.expected):
            return self.sizes or self.expected
        return tuple(
            behind if isinstance(stated, str) and isinstance(behind, int) else stated
            for stated, behind in zip(self.sizes, self.expected, strict=True)
        )


def open_shapes_error(
    model: str, inputs: Sequence[OpenInput], *, channels_last: bool, control: Mapping[str, int] | None = None
) -> OpenSizes:
    """One sentence: the open inputs, and options that would set them all; `control` counts control-flow operators,
    which users should know about first."""
    values: dict[str, int] = {}  # by the name of a size: equal names mean equal sizes
    options = " ".join(f"--shape {_quoted(_option(entry, channels_last, values))}" for entry in inputs)
    stated = ", ".join(f"'{entry.name}' is {_stated(entry)}" for entry in inputs)
    which = "an input" if len(inputs) == 1 else f"{len(inputs)} inputs"
    message = f"'{model}' leaves sizes of {which} open: {stated}. Set them, such as with {options}"
    if control:
        counted = ", ".join(f"{count} {operator}" for operator, count in control.items())
        message += f". The file also has control flow ({counted}), of which If can be read, and loops of a known length"
    return OpenSizes(message, options)


def _stated(entry: OpenInput) -> str:
    if entry.sizes is None:
        return "of no stated shape"
    return "x".join(map(str, entry.sizes)) or "a number"


def _option(entry: OpenInput, channels_last: bool, values: dict[str, int]) -> str:
    sizes = entry.known
    if sizes is None:
        sizes = ("?",) * 4
    filled = [
        size if isinstance(size, int) else _filled(size, axis, sizes, entry, channels_last, values)
        for axis, size in enumerate(sizes)
    ]
    return f"{entry.name}={','.join(map(str, filled))}"


def _filled(
    name: str, axis: int, sizes: Sequence[Size], entry: OpenInput, channels_last: bool, values: dict[str, int]
) -> int:
    """An example of an open size: its value elsewhere, or one suggested by its name or position."""
    if name in values:
        return values[name]
    hinted = (size for pattern, size in _NAMED if pattern.search(name.lower()))
    guess = 1 if is_batch(name, axis) else next(hinted, None) or _by_place(axis, sizes, entry, channels_last)
    if name.isidentifier():
        values[name] = guess
    return guess


def _by_place(axis: int, sizes: Sequence[Size], entry: OpenInput, channels_last: bool) -> int:
    rank = len(sizes)
    if rank <= 2:
        return _SAMPLES if entry.is_float else _FRAMES
    if rank == 3:
        return _FRAMES
    if rank > 4:
        return _SLICES
    channel = rank - 1 if channels_last else 1
    if axis == channel:
        return _CHANNELS
    others = [size for at, size in enumerate(sizes) if at not in (0, axis, channel)]
    return _FRAMES if any(isinstance(size, int) for size in others) else _SIDE  # a spectrogram has one open side


def _quoted(text: str) -> str:
    return text if re.fullmatch(r"[\w.,:/=@-]+", text) else "'" + text.replace("'", "'\"'\"'") + "'"
