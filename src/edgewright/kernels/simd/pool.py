"""Maxima and averages of windows, float32, with vectors."""

from __future__ import annotations

from ...network.operators import AvgPool2d, MaxPool2d
from ..call import CCall, image, part_of
from ..kernel import Kernel, Offer, where
from ..printing.source import CWriter, Fields, struct_fields
from ..site import ChannelRange, Site
from .epilogue import epilogue_of, write_second_pass
from .sites import SIMD, WINDOW, batch_items, first_channel, has_types, is_image_of_ranges


def suits(site: Site) -> bool:
    return has_types(site, "float32") and is_image_of_ranges(site)


def write(call: CCall, _: Offer, c: CWriter) -> None:
    op = call.op
    assert isinstance(op, MaxPool2d | AvgPool2d)
    call.use("simd_pool")
    end = epilogue_of(op.activation)
    height, width = call.shapes[0][1:3]

    def fields(channels: ChannelRange) -> Fields:
        return {
            "height": height,
            "width": width,
            "channels": channels.count,
            **struct_fields(WINDOW, (*op.kernel, *op.stride, *op.dilation, *op.pads[:2])),
            "in": image(call.inputs[0]),
            "out": image(call.output),
            "is_backward": int(call.is_backward),
            "is_max": int(isinstance(op, MaxPool2d)),
            "counted": part_of(_counted(call)),
            **end.function,
        }

    table = call.table("ew_simd_pool", fields)
    with batch_items(call, c) as pixels:
        x, y = (first_channel(call, pointer) for pointer in pixels)
        c.line(f"ew_simd_pool_run(&{table}, {x}, {y}, part);")
    write_second_pass(call, c, end)


def _counted(site: Site) -> tuple[int, int, int, int]:
    """Rows and columns whose taps an average is divided by: inside the image, or the padding that counts as well."""
    op, (_, height, width, _) = site.op, site.shapes[0]
    if isinstance(op, MaxPool2d):
        return 0, 0, 0, 0
    assert isinstance(op, AvgPool2d)
    if not op.count_pads:
        return 0, height, 0, width
    top, left, bottom, right = op.pads
    return -top, height + bottom - op.uncounted[0], -left, width + right - op.uncounted[1]


POOL = Kernel("simd_pool", (MaxPool2d, AvgPool2d), where(suits), write, SIMD)
