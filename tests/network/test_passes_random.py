"""Any network computes the same after every pass, and images lie channels last at the end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgewright.network import Network, check, random_inputs
from edgewright.network.operators import (
    AvgPool2d,
    BatchNorm,
    BinaryKind,
    Cast,
    Clamp,
    Concat,
    Elu,
    HardSigmoid,
    LeakyRelu,
    MaxPool2d,
    Op,
    Pad,
    PRelu,
    Reduce,
    ReduceKind,
    Reshape,
    Resize,
    ResizeMode,
    Slice,
    Softmax,
    SpaceToDepth,
    Transpose,
    Unary,
    UnaryKind,
)
from edgewright.network.passes import PASSES, run
from edgewright.network.tensor import DType
from tests.network.passes_networks import RELU, Literal, assert_same, ops

slow = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))

ACTIVATIONS: list[Op] = [
    RELU,
    Clamp(0.0, 6.0),
    Clamp(),
    LeakyRelu(0.1),
    Elu(),
    HardSigmoid(1 / 6, 0.5),
    Unary(UnaryKind.TANH),
    Unary(UnaryKind.SOFTPLUS),
]


class Grow:
    """A network in NCHW that grows by one random layer at a time."""

    def __init__(self, draw: Callable[[st.SearchStrategy[object]], object]) -> None:
        self.draw = draw
        self.b = Literal(seed=self.int(0, 2**31))
        self.images: list[str] = []
        self.count = 0

    def int(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))  # type: ignore[return-value]

    def pick(self, choices):  # type: ignore[no-untyped-def]
        return self.draw(st.sampled_from(choices))

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def image(self) -> str:
        return self.pick(self.images[-3:])

    def grow(self) -> None:
        step = self.pick([
            self.conv, self.conv, self.norm, self.activation, self.activation, self.pool, self.two, self.channelwise,
            self.concat, self.pad, self.slice, self.gate, self.squeeze, self.softmax, self.reorder, self.resize,
            self.lines, self.hard_swish, self.shuffle, self.cast,
        ])  # fmt: skip
        before = len(self.images)
        step()
        for made in self.images[before:]:
            if np.prod(self.b.shape(made)) > 6000:
                self.images.remove(made)

    def conv(self) -> None:
        x = self.image()
        c = self.b.shape(x)[1]
        groups = self.pick([1, 1, c])
        pads = tuple(self.int(0, 1) for _ in range(4))
        kernel = self.int(1, 2) if min(self.b.shape(x)[2:]) > 1 else 1
        channels = groups * self.int(1, 3)
        self.images.append(
            self.b.conv(x, channels, self.name("conv"), kernel, self.pick([True, False]), groups=groups, pads=pads)
        )

    def norm(self) -> None:
        x, name = self.image(), self.name("norm")
        c = self.b.shape(x)[1]
        scale = self.b.constant(f"{name}_scale", self.b.floats(c))
        shift = self.b.constant(f"{name}_shift", self.b.floats(c))
        self.images.append(self.b.window(BatchNorm(), [x, scale, shift], name))

    def activation(self) -> None:
        x, name = self.image(), self.name("act")
        if self.int(0, 6) == 0:
            slope = self.b.constant(f"{name}_slope", self.b.floats(self.b.shape(x)[1], 1, 1))
            self.images.append(self.b.layer(PRelu(), [x, slope], name))
        else:
            self.images.append(self.b.layer(self.pick(ACTIVATIONS), [x], name))

    def pool(self) -> None:
        x = self.image()
        _, _, h, w = self.b.shape(x)
        kind = self.pick([MaxPool2d, AvgPool2d])
        self.images.append(self.b.window(kind((min(h, 2), min(w, 2)), (self.int(1, 2), 1)), [x], self.name("pool")))

    def two(self) -> None:
        a = self.image()
        others = [t for t in self.images if self.b.shape(t) == self.b.shape(a)]
        kind = self.pick([BinaryKind.ADD, BinaryKind.MUL, BinaryKind.SUB, BinaryKind.MAX])
        self.images.append(self.b.binary(kind, a, self.pick(others), self.name("two")))

    def channelwise(self) -> None:
        x = self.image()
        _, c, h, w = self.b.shape(x)
        value = self.b.floats(*self.pick([(1, c, 1, 1), (c, 1, 1), (1,), (), (h, w), (1, c, h, w), (w,)])) + 2
        kind = self.pick([BinaryKind.ADD, BinaryKind.MUL, BinaryKind.SUB, BinaryKind.DIV])
        name = self.name("channel")
        if self.int(0, 3):
            self.images.append(self.b.binary(kind, x, np.abs(value) + 0.5, name))
        else:
            constant = self.b.constant(f"{name}_c", value)
            self.images.append(self.b.layer(self.pick_binary(), [constant, x], name))

    def pick_binary(self) -> Op:
        from edgewright.network.operators import Binary

        return Binary(self.pick([BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL]))

    def concat(self) -> None:
        a = self.image()
        axis = self.pick([1, 1, 2])
        alike = [
            t
            for t in self.images
            if all(p == q for i, (p, q) in enumerate(zip(self.b.shape(t), self.b.shape(a), strict=True)) if i != axis)
        ]
        self.images.append(self.b.layer(Concat(axis), [a, self.pick(alike)], self.name("join")))

    def pad(self) -> None:
        x = self.image()
        before = (0, self.pick([0, 0, 1]), self.int(0, 2), self.int(0, 1))
        shape = self.b.shape(x)
        after = (0, 0, self.int(0, 1), -1 if shape[3] > 2 and self.int(0, 2) == 0 else 1)
        self.images.append(self.b.layer(Pad(before, after, value=self.pick([0.0, 0.0, 1.5])), [x], self.name("pad")))

    def slice(self) -> None:
        x = self.image()
        shape = self.b.shape(x)
        starts = tuple(self.int(0, size - 1) for size in shape)
        sizes = tuple(self.int(1, size - start) for start, size in zip(starts, shape, strict=True))
        self.images.append(self.b.layer(Slice(starts, sizes, (1, 1, 1, 1)), [x], self.name("slice")))

    def gate(self) -> None:
        """x * sigmoid(x), or x * sigmoid(mean(x)) as in squeeze-and-excitation."""
        x = self.image()
        gate = x
        if self.pick([True, False]):
            gate = self.b.layer(Reduce((2, 3)), [x], self.name("mean"))
        gate = self.b.layer(Unary(UnaryKind.SIGMOID), [gate], self.name("sigmoid"))
        self.images.append(self.b.binary(BinaryKind.MUL, *self.pick([(x, gate), (gate, x)]), self.name("gate")))
        if self.int(0, 4) == 0:
            self.images.append(gate) if len(self.b.shape(gate)) == 4 else None

    def squeeze(self) -> None:
        """A gate by way of vectors: mean without its axes, dense, back to (1, C, 1, 1)."""
        x = self.image()
        c = self.b.shape(x)[1]
        mean = self.b.layer(Reduce((2, 3), keep=False, kind=ReduceKind.MEAN), [x], self.name("mean"))
        vector = self.b.dense(mean, c, self.name("dense"))
        back = self.b.layer(Reshape((self.b.shape(x)[0], c, 1, 1)), [vector], self.name("back"))
        self.images.append(self.b.binary(BinaryKind.MUL, x, back, self.name("excite")))

    def softmax(self) -> None:
        self.images.append(self.b.layer(Softmax(self.pick([1, -1])), [self.image()], self.name("softmax")))

    def reorder(self) -> None:
        """A Transpose that the network itself asks for."""
        perm = self.pick([(0, 1, 3, 2), (0, 2, 3, 1), (0, 3, 1, 2), (0, 1, 2, 3)])
        self.images.append(self.b.layer(Transpose(perm), [self.image()], self.name("reorder")))

    def resize(self) -> None:
        x = self.image()
        _, _, h, w = self.b.shape(x)
        op = Resize((2 * h, w + 1), self.pick([ResizeMode.NEAREST, ResizeMode.LINEAR]))
        self.images.append(self.b.window(op, [x], self.name("resize")))

    def lines(self) -> None:
        """Rows and columns merged and split again, as attention and detection heads do."""
        x = self.image()
        n, c, h, w = self.b.shape(x)
        flat = self.b.layer(Reshape((n, c, h * w)), [x], self.name("lines"))
        turned = self.b.layer(Transpose((0, 2, 1)), [flat], self.name("turned"))
        soft = self.b.layer(Softmax(self.pick([1, 2])), [turned], self.name("soft"))
        back = self.b.layer(Transpose((0, 2, 1)), [soft], self.name("returned"))
        self.images.append(self.b.layer(Reshape((n, c, h, w)), [back], self.name("image")))

    def hard_swish(self) -> None:
        x, b = self.image(), self.b
        clip = b.layer(Clamp(0.0, 6.0), [b.binary(BinaryKind.ADD, x, 3.0, self.name("plus"))], self.name("clip"))
        if self.pick([True, False]):
            y = b.binary(BinaryKind.DIV, b.binary(BinaryKind.MUL, x, clip, self.name("by")), 6.0, self.name("sixth"))
        else:
            y = b.binary(BinaryKind.MUL, b.binary(BinaryKind.MUL, clip, 1 / 6, self.name("sixth")), x, self.name("by"))
        self.images.append(y)

    def shuffle(self) -> None:
        x, name = self.image(), self.name("shuffle")
        n, c, h, w = self.b.shape(x)
        if h % 2 or w % 2:
            return
        if self.pick([True, False]):
            self.images.append(self.b.window(SpaceToDepth(2), [x], name))
            return
        split = self.b.layer(Reshape((n, c, h // 2, 2, w // 2, 2)), [x], f"{name}_split")
        turned = self.b.layer(Transpose((0, 3, 5, 1, 2, 4)), [split], f"{name}_turned")
        self.images.append(self.b.layer(Reshape((n, 4 * c, h // 2, w // 2)), [turned], name))

    def cast(self) -> None:
        self.images.append(self.b.layer(Cast(DType.FLOAT32), [self.image()], self.name("cast")))

    def finish(self) -> Network:
        outputs = [self.images[-1]]
        for extra in self.images[1:-1]:
            if self.int(0, 5) == 0:
                outputs.append(extra)
        if self.pick([True, False]):
            x = self.images[-1]
            n = self.b.shape(x)[0]
            flat = self.b.layer(Reshape((n, int(np.prod(self.b.shape(x)[1:])))), [x], self.name("flat"))
            flat = self.b.layer(RELU, [flat], self.name("relu")) if self.pick([True, False]) else flat
            outputs[0] = self.b.dense(flat, 3, self.name("dense"))
        return self.b.build(list(dict.fromkeys(name for name in outputs if name not in self.b.inputs)))


@st.composite
def networks(draw) -> Network:  # type: ignore[no-untyped-def]
    grow = Grow(draw)
    shape = (grow.int(1, 2), grow.int(1, 3), grow.int(2, 5), grow.int(2, 5))
    grow.images.append(grow.b.input("x", shape))
    if grow.int(0, 3) == 0:
        grow.images.append(grow.b.input("x2", shape))
    while len(grow.images) < 2 + len(grow.b.inputs):
        grow.grow()
    for _ in range(grow.int(1, 7)):
        grow.grow()
    return grow.finish()


@given(networks())
@slow
def test_every_pass_keeps_the_numbers(network: Network) -> None:
    inputs = random_inputs(network)
    after = network
    for function in PASSES.values():
        after = check(function(after))
        assert_same(network, after, inputs)


@given(networks())
@slow
def test_passes_leave_their_input_alone(network: Network) -> None:
    layers, constants = network.layers, {name: value.copy() for name, value in network.constants.items()}
    run(network)
    assert network.layers == layers
    for name, value in constants.items():
        np.testing.assert_array_equal(network.constants[name], value)


@st.composite
def plain_images(draw) -> Network:  # type: ignore[no-untyped-def]
    """Networks whose layers all treat the image as an image: nothing in them asks for another order of axes."""
    grow = Grow(draw)
    grow.images.append(grow.b.input("x", (1, 3, 6, 6)))
    grow.conv()
    for _ in range(grow.int(1, 8)):
        grow.pick([grow.conv, grow.norm, grow.activation, grow.pool, grow.two, grow.pad, grow.gate, grow.squeeze])()
    return grow.finish()


@given(plain_images())
@slow
def test_images_need_no_transposes(network: Network) -> None:
    once = run(network)
    assert "Transpose" not in ops(once)
    assert len(run(once).layers) <= len(once.layers)
