"""What a step asks of a core: the kind of kernel that computes it, and the amounts that decide its instructions.

The kinds follow the choices of the emitters: which kernel takes a step depends on the operator, on the family of the
target, and on what the plan leaves of memory. Amounts count what these kernels do: products in the blocks in which they
are computed, outputs that are scaled, elements that are gathered, rows and calls that are begun.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from ..network import Arithmetic, DType, Layer, Region, Shape
from ..network.operators import AvgPool2d, Binary, Conv2d, Dense, MaxPool2d, Reduce, ReduceKind, Unary
from .cost_depthwise import depthwise
from .cost_facts import Facts
from .cost_geometry import Axis, Setting, axes
from .cost_products import convolution, product
from .cost_shares import added, finished


@dataclass(frozen=True, slots=True)
class Work:
    kind: str
    amounts: Mapping[str, float]


def work_of(facts: Facts, layer: Layer, region: Region, setting: Setting, share: Region | None = None) -> Work:
    """The work of computing a region of a layer's output, or of adding a share to its running sums."""
    if share is not None:
        kind, amounts = added(facts, layer, region, share, setting)
        return Work(f"{kind} {_type(facts, layer)}", amounts)
    match layer.op:
        case Conv2d() | Dense():
            return _product(facts, layer, region, setting)
        case MaxPool2d() | AvgPool2d() as op:
            name = "max" if isinstance(op, MaxPool2d) else "average"
            return _pool(facts, layer, region, name, axes(op, op.kernel, facts.input(layer).shape), setting)
        case Reduce(kind=ReduceKind.MEAN) as op if _is_global(op, facts.input(layer).shape):
            rows, columns = (Axis(size, 1, 1, 0, size) for size in facts.input(layer).shape[1:3])
            pixel = Region(((0, 1), (0, 1), (0, 1), region.bounds[-1]))
            return _pool(facts, layer, pixel, "mean", (rows, columns), setting)
        case _:
            return _plain(facts, layer, region, setting)


def _is_global(op: Reduce, shape: Shape) -> bool:
    return len(shape) == 4 and {axis % 4 for axis in op.axes} == {1, 2}


def _product(facts: Facts, layer: Layer, region: Region, setting: Setting) -> Work:
    if not facts.is_small(layer) or facts.scaling(layer) == "loops":
        return _real(facts, layer, region, setting)
    if isinstance(layer.op, Dense):
        return Work(*product(facts, layer, region))
    weights = facts.network.shapes(layer)[1]
    assert isinstance(layer.op, Conv2d)
    if layer.op.groups == 1:
        return Work(*convolution(facts, layer, region, setting))
    if weights[3] == 1:
        return Work(*depthwise(facts, layer, region, setting))
    return _real(facts, layer, region, setting)


def general(work: Work) -> Work:
    """The same for a kind that was never measured: by the type of its elements alone."""
    wanted = ("calls", "lines", "outputs", "shared", "bent", "reads")
    return Work(f"other {work.kind.split()[-1]}", {key: work.amounts.get(key, 0) for key in wanted})


def _real(facts: Facts, layer: Layer, region: Region, setting: Setting) -> Work:
    """Products of real numbers, four channels at a time; and integers of unusual kinds, in plain loops."""
    shapes, op = facts.network.shapes(layer), layer.op
    taps, channels, pixels = prod(shapes[1][1:]), region.shape[-1], prod(region.shape[:-1])
    groups, kind, runs = 1, "dense", 1
    met: float = pixels * taps
    if isinstance(op, Conv2d):
        rows, columns = axes(op, shapes[1][1:3], shapes[0])
        met = rows.taps(region.bounds[1]) * columns.taps(region.bounds[2]) * shapes[1][3]
        groups, kind, runs = op.groups, "conv" if op.groups == 1 else "grouped", shapes[1][1]
    blocks = -(-channels // 4)
    macs = met * (blocks * 4 if groups == 1 else channels)
    scaled = f"outputs {_rounding(facts)}" if facts.is_small(layer) else "outputs"
    amounts = {
        "calls": 1,
        "pixels": pixels,
        "blocks": pixels * blocks,
        "runs": pixels * blocks * runs,
        "macs": macs,
        "bent": macs if setting.is_bent else 0,
        "bent runs": pixels * blocks * runs if setting.is_bent else 0,
        "taps": pixels * channels * prod(shapes[1][1:3]) if groups > 1 else 0,
        scaled: region.size,
    }
    return Work(f"{kind} {'bytes' if facts.is_small(layer) else _type(facts, layer)}", amounts)


def _pool(
    facts: Facts, layer: Layer, region: Region, name: str, window: tuple[Axis, Axis], setting: Setting
) -> Work:
    rows, columns = window
    _, height, width, channels = region.shape
    pixels, met = height * width, rows.taps(region.bounds[1]) * columns.taps(region.bounds[2])
    lanes, rest = divmod(channels, 4)
    lines = rows.taps(region.bounds[1]) * width  # rows of windows
    amounts = {
        "calls": 1,
        "pixels": pixels,
        "blocks": pixels * (lanes + bool(rest)),
        "lines": lines * (lanes + rest),
        "reads": met * lanes * 4,
        "odd reads": met * rest,
        "bent": met * channels if setting.is_bent else 0,
        "padded": met * channels if any(getattr(layer.op, "pads", ())) else 0,
        "outputs": region.size,
    }
    return Work(f"{name} {_type(facts, layer)}", amounts)


def _plain(facts: Facts, layer: Layer, region: Region, setting: Setting) -> Work:
    """Element by element, or moved, or along lines."""
    network = facts.network
    shapes = network.shapes(layer)
    needs = layer.op.needs(region, shapes)
    activations, lines = set(network.activations(layer)), prod(region.shape[:-1])
    reads = sum(part.size for name, part in zip(layer.inputs, needs, strict=True) if name in activations)
    amounts = {
        "calls": 1,
        "lines": lines,
        "pieces": lines if region.shape[-1:] < facts.output(layer).shape[-1:] else 0,
        "outputs": region.size,
        "shared": region.size if setting.is_shared else 0,
        "bent": region.size if setting.is_bent else 0,
        "reads": reads,
        "macs": layer.op.macs(region, shapes),
    }
    return Work(f"{_name(layer)} {_type(facts, layer)}", amounts)


def finish(facts: Facts, layer: Layer) -> Work:
    """What becomes of running sums: each is zeroed at first, and scaled and stored at last."""
    kind, amounts = finished(facts, layer)
    return Work(f"{kind} {_type(facts, layer)}", amounts)


def _name(layer: Layer) -> str:
    match layer.op:
        case Binary(kind=kind):
            return f"{kind.value}"
        case Unary(kind=kind):
            return f"{kind.value}"
        case Reduce(kind=kind):
            return f"reduce-{kind.value}"
        case op:
            return type(op).__name__.lower()


def _type(facts: Facts, layer: Layer) -> str:
    """Of the elements; two where they differ. Whose rounding is followed decides what quantised ones cost."""
    x, y = facts.input(layer).dtype, facts.output(layer).dtype
    kind = y.value if x is y else f"{x.value}-{y.value}"
    rounding = f"-{_rounding(facts)}" if DType.INT8 in (x, y) or DType.UINT8 in (x, y) else ""
    return kind + rounding


def _rounding(facts: Facts) -> str:
    """Whose rounding is priced: QLinear kernels cost about what the file's own layers do."""
    known = Arithmetic.TFLITE if facts.network.arithmetic is Arithmetic.TFLITE else Arithmetic.ONNX
    return known.value
