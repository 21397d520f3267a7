"""int8 averages, means and largest elements of windows, for microcontrollers."""

from __future__ import annotations

from collections.abc import Sequence

from ...network import Arithmetic, DType
from ...network.kernels.scales import number
from ...network.kernels.tflite_lines import reduce_factor
from ...network.kernels.tflite_scales import activation_range, zero
from ...network.operators import AvgPool2d, Clamp, MaxPool2d, Reduce, ReduceKind
from ...platform.target import Family
from ..call import Call as Site
from ..printing.images import image, part_pointer
from ..printing.source import Expr, Source, braced


def avg_pool2d(site: Site, c: Source) -> bool:
    """TFLite's: stored values are averaged as they are."""
    op = site.op
    assert isinstance(op, AvgPool2d)
    if not _is_plain(site) or site.arithmetic is not Arithmetic.TFLITE or op.count_pads or op.dilation != (1, 1):
        return False
    _write(site, c, "average", _window(site, op), (1, 2))
    return True


def max_pool2d(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, MaxPool2d)
    is_known = op.activation is None or isinstance(op.activation, Clamp)
    if not _is_plain(site) or site.inputs[0].tensor.quant != site.result.quant or op.dilation != (1, 1):
        return False
    if is_known:
        _write(site, c, "max", _window(site, op), (1, 2))
    return is_known


def reduce(site: Site, c: Source) -> bool:
    """TFLite's mean over rows and columns: a window over the whole image."""
    op, x = site.op, site.inputs[0].tensor
    assert isinstance(op, Reduce)
    is_global = op.kind is ReduceKind.MEAN and len(x.shape) == 4 and {axis % 4 for axis in op.axes} == {1, 2}
    is_pixel = all(bounds == (0, 1) for bounds in site.region[:-1])
    if not is_global or not is_pixel or not _is_plain(site) or site.arithmetic is not Arithmetic.TFLITE:
        return False
    low, high = activation_range(None, site.result)
    factors = (zero(x), *reduce_factor(op, x, site.result), zero(site.result))
    _write(site, c, "mean", [*x.shape[1:3], *x.shape[1:3], 1, 1, 0, 0, low, high, *factors], None)
    return True


def _is_plain(site: Site) -> bool:
    """Whether one int8 image becomes another, both with channels side by side."""
    x, y = site.inputs[0], site.output
    return (
        site.target.family is not Family.SIMD
        and x.memory is not None
        and x.tensor.shape[0] == 1
        and site.region[0] == (0, 1)
        and x.tensor.dtype is y.tensor.dtype is DType.INT8
        and x.tensor.quant is not None
        and y.tensor.quant is not None
        and x.strides[-1] == y.strides[-1] == 1
        and all(place.window is None or place.window[0] == 1 for place in (x, y))
    )


def _window(site: Site, op: AvgPool2d | MaxPool2d) -> list[int]:
    """The fields of `ew_pool` behind the images."""
    sizes = [*site.shapes[0][1:3], *op.kernel, *op.stride, *op.pads[:2]]
    return [*sizes, *_range(site, op), 0, 0, 0, 0]


def _range(site: Site, op: AvgPool2d | MaxPool2d) -> tuple[int, int]:
    activation = op.activation
    if site.arithmetic is Arithmetic.TFLITE or not isinstance(activation, Clamp):
        return activation_range(activation, site.result)
    return int(number(activation.low, site.result)), int(number(activation.high, site.result))


def _write(site: Site, c: Source, kind: str, fields: Sequence[int], axes: tuple[int, int] | None) -> None:
    site.use("pool")
    places = (image(site.inputs[0]), image(site.output, axes) if axes else braced((0, 0, 0)))
    table = site.unit.table("ew_pool", [*places, *fields])
    bounds: list[Expr] = [bound for axis in axes for bound in site.region[axis]] if axes else [0, 1, 0, 1]
    first, last = site.region[-1]
    with c.block():
        part = part_pointer(site, c, bounds)
        pointers = f"{site.inputs[0].pointer}, {site.output.pointer}"
        c.line(f"ew_pool_{kind}(&{table}, {pointers}, {part}, {first}, {last}, {int(site.is_backward)});")
