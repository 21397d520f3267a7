"""Work of int8 depthwise convolutions: one channel at a time, row by row, from where it lies or through a ring."""

from __future__ import annotations

from ..emit.operators import depthwise as ring
from ..emit.target import Architecture, Family, Target
from ..network import DType, Layer, Network, Region
from ..network.operators import Conv2d
from ..program import Sweep
from .cost_geometry import Axis, Setting, axes, up
from .cost_scales import is_narrow, scaling

Amounts = dict[str, float]


def depthwise(
    network: Network, layer: Layer, region: Region, target: Target, setting: Setting
) -> tuple[str, Amounts]:
    """The kind of kernel for part of a depthwise convolution, and its amounts."""
    op, (shape, weights) = layer.op, network.shapes(layer)[:2]
    assert isinstance(op, Conv2d)
    down, across = axes(op, weights[1:3], shape)
    rows, columns, channels = region.shape[1:]
    is_signed = scaling(network, layer) == "signed"
    is_nine = weights[1:3] == (3, 3) and op.dilation == (1, 1) and not is_signed
    is_in_place = setting.sweep is Sweep.CHANNELS
    is_blocked = setting.is_shared and not is_in_place
    is_small = network.tensors[layer.inputs[0]].dtype is DType.INT8
    fits = is_nine and is_small and op.stride in ((1, 1), (2, 2)) and max(op.pads) <= 1
    settled = is_narrow(network, layer) or network.tensors[layer.output].dtype is DType.UINT8
    if (
        fits
        and target.family is Family.PORTABLE
        and target.architecture is not Architecture.CORTEX_M
        and not settled
    ):
        name = "direct"
    elif fits and target.family is not Family.PORTABLE and not is_in_place and not is_blocked and rows <= 2:
        name = "rows"
    else:
        name = "ring"
    bands = 1
    if is_blocked:
        bands = _bands(rows, columns, channels, down, across, setting.room)
    elif not setting.is_bent and rows > columns and name != "rows":
        down, across, rows, columns = across, down, columns, rows  # as if turned by a quarter: long rows cost less
    height = min(down.size, (rows // bands - 1) * down.stride + down.kernel) * bands if bands <= rows else bands
    width = min(across.size, (columns - 1) * across.stride + across.kernel)
    amounts: Amounts = {
        "calls": 1,
        "channels": channels * bands,
        "lines": channels * rows * max(1, bands / rows),
        "outputs": channels * rows * up(columns, 2 if name == "ring" else 1),
        "settled": region.size if settled else 0,
        "copied": region.size if is_blocked else 0,
        "copies": rows * columns if is_blocked else 0,
    }
    if name == "ring":
        amounts |= {"gathered": channels * height * width, "gathers": channels * height}
    if name == "ring" and not is_nine:
        amounts["signed"] = amounts["outputs"] if is_signed else 0
        amounts["taps"] = channels * rows * up(columns, 2) * down.kernel * up(across.kernel, 2)
        return "depthwise-any int8", amounts
    return f"depthwise-{name}-{across.stride} int8", amounts


def _bands(rows: int, columns: int, channels: int, down: Axis, across: Axis, room: int) -> int:
    """Bands of rows, or parts of a row, that are computed aside before they are written over the input."""
    bytes_ = max(room, ring.STACK_BYTES) - 2 * down.kernel * ((columns - 1) * across.stride + across.kernel)
    pixels = max(1, bytes_ // max(1, channels))
    return -(-rows // min(rows, pixels // columns)) if pixels >= columns else rows * -(-columns // pixels)
