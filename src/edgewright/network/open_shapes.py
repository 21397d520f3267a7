"""Error messages about open input sizes: all of them at once, with plausible sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..errors import OpenSizes

Size = int | str  # a number, or the name ('?' if it has none) of an open size


@dataclass(frozen=True, slots=True)
class ExampleSizes:
    """Plausible sizes of inputs: sides of an image, samples of a sound, steps of a series."""

    height: int
    width: int
    samples: int
    steps: int


# The first that a model takes is suggested: photographs, lines of text, small sounds, large images.
_EXAMPLES = (
    ExampleSizes(224, 224, 16000, 100),
    ExampleSizes(48, 320, 1280, 576),
    ExampleSizes(32, 320, 512, 1600),
    ExampleSizes(640, 640, 16000, 16000),
)
_CHANNELS, _SLICES = 3, 16
# What the name of a size suggests.
_NAMED: tuple[tuple[re.Pattern[str], Callable[[ExampleSizes], int]], ...] = (
    (re.compile(r"batch"), lambda _: 1),
    (re.compile(r"height|rows|^h$|image"), lambda sizes: sizes.height),
    (re.compile(r"width|cols|columns|^w$"), lambda sizes: sizes.width),
    (re.compile(r"channel|^c$"), lambda _: _CHANNELS),
    (re.compile(r"sample|audio|wave|pcm"), lambda sizes: sizes.samples),
    (re.compile(r"seq|time|frame|step|len|token|word|^t$|^l$"), lambda sizes: sizes.steps),
)
_SERIES = re.compile(r"sample|audio|wave|seq|time|frame|step|len|token|word|^t$|^l$")


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
    stated = ", ".join(f"'{entry.name}' is {_stated(entry)}" for entry in inputs)
    which = "an input" if len(inputs) == 1 else f"{len(inputs)} inputs"
    errors: dict[str, OpenSizes] = {}  # by what each suggests
    for example in _EXAMPLES:
        values: dict[str, int] = {}  # by the name of a size: equal names mean equal sizes
        shapes = {entry.name: _shape(entry, channels_last, values, example) for entry in inputs}
        options = " ".join(f"--shape {_quoted(f'{name}={_listed(sizes)}')}" for name, sizes in shapes.items())
        message = f"'{model}' leaves sizes of {which} open: {stated}. Set them, such as with {options}"
        if control:
            counted = ", ".join(f"{count} {operator}" for operator, count in control.items())
            message += (
                f". The file also has control flow ({counted}), of which If can be read, and loops of a known length"
            )
        errors.setdefault(options, OpenSizes(message, options, shapes))
    first, *others = errors.values()
    first.others = tuple(others)
    return first


def _listed(sizes: Sequence[int]) -> str:
    return ",".join(map(str, sizes))


def _stated(entry: OpenInput) -> str:
    if entry.sizes is None:
        return "of no stated shape"
    return "x".join(map(str, entry.sizes)) or "a number"


def _shape(entry: OpenInput, channels_last: bool, values: dict[str, int], example: ExampleSizes) -> tuple[int, ...]:
    """The sizes of an input, open ones as in the example; the same elsewhere, by name, as in `values`."""
    sizes = entry.known
    if sizes is None:
        sizes = ("?",) * 4
    shape = []
    for axis, stated in enumerate(sizes):
        size = stated
        if isinstance(stated, str):
            size = values.get(stated) or _filled(stated, axis, sizes, entry, channels_last, example)
            if stated.isidentifier():
                values[stated] = size
        shape.append(int(size))
    return tuple(shape)


def _filled(
    name: str, axis: int, sizes: Sequence[Size], entry: OpenInput, channels_last: bool, example: ExampleSizes
) -> int:
    """An example of an open size, suggested by its name or position."""
    if is_batch(name, axis):
        return 1
    hinted = (size(example) for pattern, size in _NAMED if pattern.search(name.lower()))
    return next(hinted, None) or _by_place(axis, sizes, entry, channels_last, example)


def _by_place(axis: int, sizes: Sequence[Size], entry: OpenInput, channels_last: bool, example: ExampleSizes) -> int:
    rank = len(sizes)
    if rank <= 2:
        return example.samples if entry.is_float else example.steps
    if rank == 3:
        is_state = axis == 1 and isinstance(sizes[0], int) and sizes[0] > 1  # layers x batch x elements
        return 1 if is_state else example.steps
    if rank > 4:
        return _SLICES
    is_last = channels_last or (isinstance(sizes[-1], int) and sizes[-1] <= 4 and isinstance(sizes[1], str))
    channel = rank - 1 if is_last else 1
    if axis == channel:
        return _CHANNELS
    others = [size for at, size in enumerate(sizes) if at not in (0, axis, channel)]
    if any(isinstance(size, int) for size in others):
        return example.steps  # a spectrogram has one open side
    return example.height if axis == (1 if is_last else 2) else example.width


def _quoted(text: str) -> str:
    return text if re.fullmatch(r"[\w.,:/=@-]+", text) else "'" + text.replace("'", "'\"'\"'") + "'"
