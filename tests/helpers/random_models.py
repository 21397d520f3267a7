"""Random models in the file formats themselves: ONNX in float32 and QDQ, TFLite in float32, int8 and dynamic range.

`draw_model(kind, seed)` gives the bytes of a file. A sketch draws patterns that real networks are made of, and those
that planners trip over: constants as first operands, means that gate what they were made of, single numbers, outputs
that depend on no input, names that mean something to C. How each layer is written in a format is up to `random_onnx`
and `random_tflite`.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

KINDS = ("onnx float32", "onnx qdq", "tflite float32", "tflite int8", "tflite dynamic")
# Words of C and its library, of the emitted code, and characters that turn the direction of writing.
WORDS = (
    "memcpy",
    "expf",
    "int32_t",
    "linux",
    "main",
    "int",
    "ram",
    "arena",
    "px",
    "a\u202eb",
    "x*/y",
    "9",
    "\u00fc",
)
MOST = 3000  # elements of a tensor

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Value:
    """A tensor of the model being drawn: an image (rows, columns, channels), a vector (features,) or a number ()."""

    name: str
    shape: Shape
    scale: float = 0.0  # of stored integers
    zero: int = 0
    is_positive: bool = False  # never below zero
    is_small: bool = False  # within -1 and 1


class Format(Protocol):
    """How layers are written in one format. Images are channels last here, whatever the file has."""

    is_quantised: bool
    can_divide: bool  # what is stored, too

    def input(self, shape: Shape) -> Value: ...
    def constant(self, shape: Shape, least: float | None = None) -> Value: ...
    def conv(
        self, x: Value, out: int, kernel: Shape, stride: Shape, same: bool, depthwise: bool, relu: int
    ) -> Value: ...
    def deconv(self, x: Value, out: int, kernel: Shape, stride: int) -> Value: ...
    def pool(self, x: Value, kind: str, kernel: Shape, stride: Shape, same: bool) -> Value: ...
    def reduce(self, x: Value, kind: str, over: str) -> Value: ...
    def binary(self, kind: str, a: Value, b: Value, shape: Shape) -> Value: ...
    def unary(self, kind: str, x: Value) -> Value: ...
    def prelu(self, x: Value) -> Value: ...
    def larger(self, x: Value) -> Value: ...
    def concat(self, parts: Sequence[Value], axis: int) -> Value: ...
    def resize(self, x: Value, size: Shape, linear: bool) -> Value: ...
    def pad(self, x: Value, before: Shape, after: Shape) -> Value: ...
    def slice(self, x: Value, start: Shape, size: Shape) -> Value: ...
    def reshape(self, x: Value, shape: Shape) -> Value: ...
    def dense(self, x: Value, out: int) -> Value: ...
    def softmax(self, x: Value) -> Value: ...
    def alias(self, x: Value) -> Value: ...
    def file(self, outputs: Sequence[Value]) -> bytes: ...


class Sketch:
    """A model that grows by one random pattern at a time."""

    def __init__(self, rng: np.random.Generator, to: Format) -> None:
        self.rng, self.to = rng, to
        self.images: list[Value] = []
        self.numbers: list[Value] = []

    def int(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def image(self) -> Value:
        """Most often the newest one: networks are deeper than wide."""
        return self.images[-1] if self.chance(0.7) else self.pick(*self.images)

    def begin(self) -> None:
        shape = self.pick(
            (self.int(3, 12), self.int(3, 12), self.int(1, 5)),
            (self.int(3, 12), self.int(3, 12), self.int(1, 5)),
            (self.int(8, 40), 1, self.int(1, 4)),
            (1, self.int(8, 30), self.int(1, 4)),
        )
        self.images.append(self.to.input(shape))
        if self.chance(0.2):
            self.images.append(self.to.input(shape))

    def grow(self) -> None:
        patterns = [
            self.conv, self.conv, self.separable, self.inverted, self.residual, self.gate, self.pool, self.unary,
            self.two, self.concat, self.resize, self.pad, self.slice, self.turn, self.constant_first, self.one_minus,
            self.centred, self.mean, self.prelu, self.deconv, self.there_and_back, self.larger,
        ]  # fmt: skip
        made = self.pick(*patterns)()
        if np.prod(made.shape) <= MOST:
            self.images.append(made)

    # Patterns

    def conv(self) -> Value:
        return self._conv(self.image(), self.int(1, 8))

    def _conv(self, x: Value, out: int, keeps: bool = False) -> Value:
        kernel = tuple(min(size, self.int(1, 3)) for size in x.shape[:2])
        stride = (1, 1) if keeps else (self.int(1, 2), self.int(1, 2))
        return self.to.conv(x, out, kernel, stride, keeps or self.chance(0.6), False, self.int(0, 2))

    def depthwise(self, x: Value, keeps: bool = False) -> Value:
        kernel = tuple(min(size, self.pick(1, 2, 3, 3, 5)) for size in x.shape[:2])
        stride = (1, 1) if keeps else (self.int(1, 2),) * 2
        return self.to.conv(x, x.shape[2], kernel, stride, keeps or self.chance(0.7), True, self.int(0, 2))

    def pointwise(self, x: Value, out: int, relu: int = 0) -> Value:
        return self.to.conv(x, out, (1, 1), (1, 1), True, False, relu)

    def separable(self) -> Value:
        return self.pointwise(self.depthwise(self.image()), self.int(1, 8), self.int(0, 2))

    def inverted(self) -> Value:
        """An inverted residual: wider, depthwise, narrow again, and the sum."""
        x = self.image()
        wide = self.pointwise(x, x.shape[2] * self.int(1, 3), 2)
        return self.to.binary("add", x, self.pointwise(self.depthwise(wide, True), x.shape[2]), x.shape)

    def residual(self) -> Value:
        x = self.image()
        y = self._conv(self._conv(x, self.int(1, 6), True), x.shape[2], True)
        return self.to.binary("add", *((x, y) if self.chance(0.5) else (y, x)), x.shape)

    def gate(self) -> Value:
        """Squeeze and excite: the mean of an image gates it."""
        x = self.image()
        gate = self.to.reduce(x, "mean", "pixels")
        if self.chance(0.7):
            gate = self.pointwise(gate, x.shape[2])
        return self.to.binary("mul", x, self.to.unary("sigmoid", gate), x.shape)

    def mean(self) -> Value:
        return self.to.reduce(self.image(), self.pick("mean", "max"), "pixels")

    def prelu(self) -> Value:
        return self.to.prelu(self.image())

    def larger(self) -> Value:
        return self.to.larger(self.image())

    def deconv(self) -> Value:
        return self.to.deconv(self.image(), self.int(1, 5), (self.int(1, 3), self.int(1, 3)), self.int(1, 2))

    def there_and_back(self) -> Value:
        """As networks that segment: half the size, some layers, and back to the full size beside what was there."""
        x = self.image()
        y = self.to.conv(x, self.int(1, 6), (1, 1), (2, 2), True, False, 1)
        y = self.to.resize(self._conv(y, self.int(1, 6), True), x.shape[:2], self.chance(0.5))
        return self.to.concat([y, x] if self.chance(0.5) else [x, y], 2)

    def pool(self) -> Value:
        x = self.image()
        kernel = tuple(min(size, self.int(1, 3)) for size in x.shape[:2])
        stride = (self.int(1, 2), self.int(1, 2))
        return self.to.pool(x, self.pick("max", "average"), kernel, stride, self.chance(0.5))

    def unary(self) -> Value:
        return self.to.unary(self.pick("relu", "relu6", "sigmoid", "tanh", "hardswish", "leaky"), self.image())

    def two(self) -> Value:
        """A sum, difference or product of two images, one of them perhaps a single pixel."""
        x = self.image()
        alike = [v for v in self.images if v.shape in (x.shape, (1, 1, x.shape[2]))]
        return self.to.binary(self.pick("add", "sub", "mul"), x, self.pick(*alike), x.shape)

    def concat(self) -> Value:
        x, axis = self.image(), self.pick(0, 1, 2, 2)
        rest = [v for v in self.images if _without(v.shape, axis) == _without(x.shape, axis)]
        return self.to.concat([x, *(self.pick(*rest) for _ in range(self.int(1, 2)))], axis)

    def resize(self) -> Value:
        x = self.image()
        size = (min(16, x.shape[0] * 2), min(16, x.shape[1] * 2)) if self.chance(0.7) else (self.int(1, 9), 5)
        return self.to.resize(x, size, self.chance(0.5))

    def pad(self) -> Value:
        return self.to.pad(self.image(), (self.int(0, 1), 1, 0), (1, self.int(0, 2), 0))

    def slice(self) -> Value:
        x = self.image()
        start = [0, 0, 0]
        size = list(x.shape)
        axis = self.int(0, 2)
        start[axis] = self.int(0, x.shape[axis] - 1)
        size[axis] = self.int(1, x.shape[axis] - start[axis])
        return self.to.slice(x, tuple(start), tuple(size))

    def turn(self) -> Value:
        """The same elements in an image of another shape."""
        x = self.image()
        h, w, c = x.shape
        return self.to.reshape(x, self.pick((w, h, c), (h * w, 1, c), (1, w, h * c)))

    def constant_first(self) -> Value:
        """An operation whose first operand is a constant: a number, one for each channel, or a whole image."""
        x = self.image()
        c = self.to.constant(self.pick((), (x.shape[2],), (1, 1, x.shape[2]), x.shape))
        if self.to.can_divide and self.chance(0.4):
            above = self.to.binary("add", self.to.unary("relu6", x), self.to.constant((), 1.0), x.shape)
            return self.to.binary("div", c, above, x.shape)
        return self.to.binary(self.pick("sub", "sub", "add", "mul"), c, x, x.shape)

    def one_minus(self) -> Value:
        """x * (1 - sigmoid(x))."""
        x = self.image()
        rest = self.to.binary("sub", self.to.constant(()), self.to.unary("sigmoid", x), x.shape)
        return self.to.binary("mul", x, rest, x.shape)

    def centred(self) -> Value:
        """An image less its own mean, which is a single number."""
        x = self.image()
        number = self.to.reduce(x, self.pick("mean", "mean", "max"), "all")
        self.numbers.append(number)
        return self.to.binary(self.pick("sub", "add", "mul"), *self.pick((x, number), (number, x)), x.shape)

    # The end

    def outputs(self) -> list[Value]:
        found: list[Value] = [self.images[-1]]
        match self.int(0, 6):
            case 0:
                found = [self._head(self.to.reduce(self.images[-1], "mean", "pixels"))]
            case 1:
                found = [self._head(self.images[-1])]
            case 2:
                found = [self.to.reduce(self.images[-1], self.pick("mean", "max"), "all")]
            case 3:
                found = [self.to.reduce(self.images[-1], self.pick("mean", "max"), "image")]
        if self.chance(0.25):
            found.append(self.pick(*self.images))
        if self.numbers and self.chance(0.5):
            found.append(self.pick(*self.numbers))
        if self.chance(0.1):
            found.append(self._without_input())
        if self.chance(0.1):
            found.append(self.to.alias(self.pick(*found)))
        return [value for i, value in enumerate(found) if value not in found[:i]]

    def _without_input(self) -> Value:
        """A constant, or what layers make of constants alone, as detectors do with anchors."""
        shape = self.pick((), (3,), (2, 3, 4))
        fixed = self.to.constant(shape)
        if len(shape) != 1 and self.chance(0.5):
            fixed = self.to.binary(self.pick("add", "mul"), fixed, self.to.constant(()), shape)
        return fixed

    def _head(self, x: Value) -> Value:
        y = self.to.dense(self.to.reshape(x, (int(np.prod(x.shape)),)), self.int(1, 6))
        return self.to.softmax(y) if y.shape[0] > 1 and self.chance(0.5) else y


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])


def draw_model(kind: str, seed: int) -> bytes:
    """The bytes of a random model file of this kind."""
    from tests.helpers.random_onnx import Onnx
    from tests.helpers.random_tflite import Tflite

    rng = np.random.default_rng([seed, KINDS.index(kind)])
    file, _, numbers = kind.partition(" ")
    to: Format = Onnx(rng, numbers == "qdq") if file == "onnx" else Tflite(rng, numbers)
    sketch = Sketch(rng, to)
    sketch.begin()
    for _ in range(sketch.pick(1, 1, 2, 2, 3, 3, 5, 7)):  # most defects show in small ones
        sketch.grow()
    return to.file(sketch.outputs())


def drawn_scale(rng: np.random.Generator, reach: float) -> float:
    """A scale with which eight bits reach about this far, one in three a power of two."""
    scale = reach / 128 * float(rng.uniform(0.7, 1.4))
    return 2.0 ** round(np.log2(scale)) if rng.random() < 1 / 3 else float(np.float32(scale))


def drawn_name(rng: np.random.Generator, plain: str, taken: Container[str]) -> str:
    """The plain name, or now and then one that means something to a compiler or misleads a reader."""
    word = WORDS[int(rng.integers(len(WORDS)))] if rng.random() < 0.06 else plain
    return plain if word in taken else word


def windowed(size: Shape, kernel: Shape, stride: Shape, same: bool) -> tuple[Shape, tuple[Shape, Shape]]:
    """Rows and columns behind a window, and what is padded before and after, as TensorFlow pads."""
    if not same:
        return tuple((n - k) // s + 1 for n, k, s in zip(size, kernel, stride, strict=True)), ((0, 0), (0, 0))
    out = tuple(-(-n // s) for n, s in zip(size, stride, strict=True))
    total = [max(0, (o - 1) * s + k - n) for n, o, k, s in zip(size, out, kernel, stride, strict=True)]
    return out, (tuple(t // 2 for t in total), tuple(t - t // 2 for t in total))
