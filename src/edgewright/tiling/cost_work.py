"""What a step asks of a core: the kind of kernel that computes it, and the amounts that decide its instructions.

The kinds follow the choices of the emitters: which kernel takes a step depends on the operator, on the family of the
target, and on what the plan leaves of memory. Amounts count what these kernels do: products in the blocks in which they
are computed, outputs that are scaled, elements that are gathered, rows and calls that are begun.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from ..emit.target import Target
from ..network import DType, Layer, Network, Region
from ..network.operators import AvgPool2d, Binary, Conv2d, Dense, MaxPool2d, Reduce, Unary
from ..network.operators.shares import share_macs, share_needs
from .cost_depthwise import depthwise
from .cost_geometry import Setting, axes
from .cost_products import convolution, product

_BYTES = (DType.INT8, DType.UINT8)


@dataclass(frozen=True, slots=True)
class Work:
    kind: str
    amounts: Mapping[str, float]


def work_of(
    network: Network, layer: Layer, region: Region, target: Target, setting: Setting, share: Region | None = None
) -> Work:
    """The work of computing a region of a layer's output, or of adding a share to its running sums."""
    if share is not None:
        return _summed(network, layer, region, share)
    x, y = network.tensors[layer.inputs[0]], network.tensors[layer.output]
    is_small = x.dtype in _BYTES and y.dtype in _BYTES
    match layer.op:
        case Conv2d(groups=1) if is_small:
            return Work(*convolution(network, layer, region, target, setting.room, setting.is_bent))
        case Conv2d() as op if is_small and op.groups == x.shape[3] and network.shapes(layer)[1][3] == 1:
            return Work(*depthwise(network, layer, region, target, setting))
        case Dense() if is_small:
            return Work(*product(network, layer, region, target))
        case Conv2d() | Dense():
            return _real(network, layer, region)
        case MaxPool2d() | AvgPool2d():
            return _pool(network, layer, region)
        case _:
            return _plain(network, layer, region, setting.is_shared)


def general(work: Work) -> Work:
    """The same for a kind that was never measured: by the type of its elements alone."""
    wanted = ("calls", "lines", "outputs", "shared", "reads")
    return Work(f"other {work.kind.split()[-1]}", {key: work.amounts.get(key, 0) for key in wanted})


def _real(network: Network, layer: Layer, region: Region) -> Work:
    """Products of real numbers, four channels at a time; and integers of unusual kinds, in plain loops."""
    shapes, op = network.shapes(layer), layer.op
    taps, channels, pixels = prod(shapes[1][1:]), region.shape[-1], prod(region.shape[:-1])
    groups, kind, runs = 1, "dense", 1
    met: float = pixels * taps
    if isinstance(op, Conv2d):
        rows, columns = axes(op, shapes[1][1:3], shapes[0])
        met = rows.taps(region.bounds[1]) * columns.taps(region.bounds[2]) * shapes[1][3]
        groups, kind, runs = op.groups, "conv" if op.groups == 1 else "grouped", shapes[1][1]
    blocks = -(-channels // 4)
    amounts = {
        "calls": 1,
        "pixels": pixels,
        "blocks": pixels * blocks,
        "runs": pixels * blocks * runs,
        "macs": met * (blocks * 4 if groups == 1 else channels),
        "taps": pixels * channels * prod(shapes[1][1:3]) if groups > 1 else 0,
        "outputs": region.size,
    }
    return Work(f"{kind} {_type(network, layer)}", amounts)


def _pool(network: Network, layer: Layer, region: Region) -> Work:
    op, shape = layer.op, network.shapes(layer)[0]
    assert isinstance(op, MaxPool2d | AvgPool2d)
    rows, columns = axes(op, op.kernel, shape)
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
        "outputs": region.size,
    }
    name = "max" if isinstance(op, MaxPool2d) else "average"
    return Work(f"{name} {_type(network, layer)}", amounts)


def _plain(network: Network, layer: Layer, region: Region, is_shared: bool) -> Work:
    """Element by element, or moved, or along lines."""
    shapes = network.shapes(layer)
    needs = layer.op.needs(region, shapes)
    activations = set(network.activations(layer))
    reads = sum(part.size for name, part in zip(layer.inputs, needs, strict=True) if name in activations)
    amounts = {
        "calls": 1,
        "lines": prod(region.shape[:-1]),
        "outputs": region.size,
        "shared": region.size if is_shared else 0,
        "reads": reads,
        "macs": layer.op.macs(region, shapes),
    }
    return Work(f"{_name(layer)} {_type(network, layer)}", amounts)


def _summed(network: Network, layer: Layer, region: Region, share: Region) -> Work:
    """A share of running sums: products without their scaling, sums that are read and written again."""
    shapes = network.shapes(layer)
    first = share_needs(layer.op, region, shapes, share)[0]
    amounts = {
        "calls": 1,
        "pixels": prod(region.shape[:-1]),
        "macs": share_macs(layer.op, region, shapes, share),
        "reads": first.size,
        "outputs": region.size,
    }
    return Work(f"sums {_name(layer)} {_type(network, layer)}", amounts)


def finish(network: Network, layer: Layer) -> Work:
    """What becomes of running sums at the end: each zeroed before, and scaled and stored once."""
    y = network.tensors[layer.output]
    return Work(f"finish {_type(network, layer)}", {"calls": 1, "outputs": y.size})


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


def _type(network: Network, layer: Layer) -> str:
    """Of the elements; two where they differ. Whose rounding is followed decides what quantised ones cost."""
    x, y = network.tensors[layer.inputs[0]].dtype, network.tensors[layer.output].dtype
    kind = y.value if x is y else f"{x.value}-{y.value}"
    rounding = f"-{network.arithmetic.value}" if DType.INT8 in (x, y) or DType.UINT8 in (x, y) else ""
    return kind + rounding
