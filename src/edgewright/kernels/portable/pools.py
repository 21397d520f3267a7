"""int8 averages, means and largest elements of windows, for microcontrollers."""

from __future__ import annotations

from collections.abc import Sequence

from ...network import Arithmetic, DType
from ...network.kernels.tflite_lines import reduce_factor
from ...network.kernels.tflite_scales import activation_range, zero
from ...network.operators import AvgPool2d, Clamp, MaxPool2d, Reduce, ReduceKind
from ..call import CCall, image, image_of, part_pointer
from ..cost.elements import pool_work
from ..kernel import SMALL, Kernel, Offer, of_region, where
from ..nests.finish import stored_range
from ..printing.source import CWriter, Expr, struct_fields
from ..site import Site


def _is_plain(site: Site) -> bool:
    """Whether one int8 image becomes another, both with channels side by side."""
    x, y = site.inputs[0], site.output
    return (
        not x.is_constant
        and x.tensor.shape[0] == 1
        and site.bounds[0] == (0, 1)
        and x.tensor.dtype is y.tensor.dtype is DType.INT8
        and x.tensor.quant is not None
        and y.tensor.quant is not None
        and x.strides[-1] == y.strides[-1] == 1
        and all(place.window is None or place.window[0] == 1 for place in (x, y))
    )


def suits_average(site: Site) -> bool:
    """TFLite's: stored values are averaged as they are."""
    op = site.op_as(AvgPool2d)
    is_known = site.arithmetic is Arithmetic.TFLITE and not op.count_pads and op.dilation == (1, 1)
    return is_known and _is_plain(site)


def write_average(call: CCall, _: Offer, c: CWriter) -> None:
    _write(call, c, "average", _window(call), (1, 2))


def suits_max(site: Site) -> bool:
    op = site.op_as(MaxPool2d)
    is_known = (op.activation is None or isinstance(op.activation, Clamp)) and op.dilation == (1, 1)
    return is_known and _is_plain(site) and site.inputs[0].tensor.quant == site.result.quant


def write_max(call: CCall, _: Offer, c: CWriter) -> None:
    _write(call, c, "max", _window(call), (1, 2))


def suits_mean(site: Site) -> bool:
    """TFLite's mean over rows and columns: a window over the whole image."""
    op, x = site.op_as(Reduce), site.inputs[0].tensor
    is_global = op.kind is ReduceKind.MEAN and len(x.shape) == 4 and {axis % 4 for axis in op.axes} == {1, 2}
    is_pixel = all(bounds == (0, 1) for bounds in site.bounds[:-1])
    return is_global and is_pixel and _is_plain(site) and site.arithmetic is Arithmetic.TFLITE


def write_mean(call: CCall, _: Offer, c: CWriter) -> None:
    op, x = call.op_as(Reduce), call.inputs[0].tensor
    low, high = activation_range(None, call.result)
    factors = (zero(x), *reduce_factor(op, x, call.result), zero(call.result))
    _write(call, c, "mean", [*x.shape[1:3], *x.shape[1:3], 1, 1, 0, 0, low, high, *factors], None)


def _window(site: Site) -> list[int]:
    """The fields of `ew_pool` behind the images."""
    op = site.op
    assert isinstance(op, AvgPool2d | MaxPool2d)
    sizes = [*site.shapes[0][1:3], *op.kernel, *op.stride, *op.pads[:2]]
    if site.arithmetic is Arithmetic.TFLITE or not isinstance(op.activation, Clamp):
        ends = activation_range(op.activation, site.result)
    else:
        ends = stored_range(site.result, op.activation)
    return [*sizes, *ends, 0, 0, 0, 0]


_FIELDS = (  # of ew_pool, behind the images
    *("height", "width", "kernel_h", "kernel_w", "stride_h", "stride_w", "pad_h", "pad_w", "low", "high"),
    *("zero", "multiplier", "shift", "offset"),
)


def _write(call: CCall, c: CWriter, kind: str, fields: Sequence[int], axes: tuple[int, int] | None) -> None:
    call.use("pool")
    places = {"x": image(call.inputs[0]), "y": image(call.output, axes) if axes else image_of(0, 0)}
    table = call.module.table("ew_pool", {**places, **struct_fields(_FIELDS, fields)})
    bounds: list[Expr] = [bound for axis in axes for bound in call.region[axis]] if axes else [0, 1, 0, 1]
    first, last = call.region[-1]
    with c.block():
        part = part_pointer(call, c, bounds)
        pointers = f"{call.inputs[0].pointer}, {call.output.pointer}"
        c.line(f"ew_pool_{kind}(&{table}, {pointers}, {part}, {first}, {last}, {int(call.is_backward)});")


AVERAGE_POOL = Kernel(
    "portable_average_pool", (AvgPool2d,), where(suits_average), write_average, SMALL, work=of_region(pool_work)
)
MAX_POOL = Kernel("portable_max_pool", (MaxPool2d,), where(suits_max), write_max, SMALL, work=of_region(pool_work))
MEAN = Kernel("portable_mean", (Reduce,), where(suits_mean), write_mean, SMALL, work=of_region(pool_work))
