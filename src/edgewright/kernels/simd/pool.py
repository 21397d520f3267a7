"""Maxima and averages of windows, float32, with vectors."""

from __future__ import annotations

from ...network.operators import AvgPool2d, MaxPool2d
from ..call import Call as Site
from ..printing.images import image
from ..printing.source import Source, braced
from .sites import ending, finish, is_ours, is_plain_image, pictures


def max_pool2d(site: Site, c: Source) -> bool:
    assert isinstance(site.op, MaxPool2d)
    return _pool(site, c, site.op, (0, 0, 0, 0))


def avg_pool2d(site: Site, c: Source) -> bool:
    """Divides by the taps inside the image, or inside the part of the padding that counts."""
    op = site.op
    assert isinstance(op, AvgPool2d)
    _, height, width, _ = site.shapes[0]
    counted = (0, height, 0, width)
    if op.count_pads:
        top, left, bottom, right = op.pads
        counted = (-top, height + bottom - op.uncounted[0], -left, width + right - op.uncounted[1])
    return _pool(site, c, op, counted)


def _pool(site: Site, c: Source, op: MaxPool2d | AvgPool2d, counted: tuple[int, int, int, int]) -> bool:
    if not is_ours(site, "float32") or not is_plain_image(site):
        return False
    site.use("simd_pool")
    end = ending(op.activation)
    images = (image(site.inputs[0]), image(site.output))
    sizes = (*site.shapes[0][1:], *op.kernel, *op.stride, *op.dilation, *op.pads[:2])
    flags = (int(site.is_backward), int(isinstance(op, MaxPool2d)))
    table = site.unit.table("ew_simd_pool", (*sizes, *images, *flags, braced(counted), *end.function))
    with pictures(site, c) as (x, y):
        c.line(f"ew_simd_pool_run(&{table}, {x}, {y}, part);")
    finish(site, c, end)
    return True
