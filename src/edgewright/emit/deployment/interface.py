"""What callers of a library must know: axes and types of ends, who overwrites them, and the order of calls."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import TopologicalSorter

from ...network import Network
from ...network.operators.window import AvgPool2d, Conv2d, ConvTranspose2d, MaxPool2d
from ...program.deployment import OUTSIDE, Part
from .c_deployment import CDeployment

IMAGES = (AvgPool2d, Conv2d, ConvTranspose2d, MaxPool2d)  # operators whose first input and output are NHWC


def described_end(network: Network, name: str) -> str:
    """Type, order of the axes and shape of an input or output, such as "float32, NHWC 1x96x96x3"."""
    tensor = network.tensors[name]
    around = [layer for layer in network.layers if name == layer.output or name in layer.inputs[:1]]
    is_image = len(tensor.shape) == 4 and (
        name in network.layouts or any(isinstance(layer.op, IMAGES) for layer in around)
    )
    order = "NHWC " if is_image else "channels last, " if name in network.layouts else ""
    text = f"{tensor.dtype.value}, {order}{'x'.join(map(str, tensor.shape)) or 'one number'}"
    if tensor.quant is not None and not tensor.quant.is_per_channel:
        text += f", real = {tensor.quant.scale[0]:.9g} * (stored - {tensor.quant.zero[0]})"
    return text


def overwriters(code: CDeployment, part: Part, tensor: str) -> tuple[str, ...]:
    """The other parts, and buffers of the firmware, whose bytes overlap those of an input or output in the arena."""
    memory, low = code.place(part, tensor)
    high = low + part.network.tensors[tensor].bytes
    there = (who for who, home, at, size in _written(code) if home == memory and at < high and low < at + size)
    return tuple(who for who in dict.fromkeys(there) if who != part.name)


def _written(code: CDeployment) -> Iterator[tuple[str, str, int, int]]:
    """Who writes where: the memory, its first byte, and how many bytes."""
    for part in code.parts:
        received = {part.own(x) for x in code.deployment.shared if part.name in x.reading and part.name != x.writer}
        plan = code.deployment.plans[part.name]
        for buffer in plan.buffers:
            inside = {tensor for tensor, view in plan.views.items() if view.buffer == buffer.name}
            if buffer.memory in code.arenas and not (inside and inside <= received):
                yield part.name, buffer.memory, code.base(part, buffer.memory) + buffer.offset, buffer.size
    for fifo in code.deployment.queues:
        for memory, at in code.slots(fifo):
            yield fifo.source, memory, at, code.deployment.slot_size(fifo)
    for own in code.deployment.buffers:
        for memory, layout in code.arenas.items():
            if own.name in layout.buffers:
                yield f"buffer {own.name}", memory, layout.buffers[own.name], own.bytes


def call_order(code: CDeployment) -> tuple[Part, ...]:
    """The parts in an order in which one thread may run them: networks after those whose frames or outputs they read.

    Parts of one network follow each other: a frame on its way may hold other networks up.
    """
    before: dict[str, dict[str, None]] = {network.name: {} for network in code.deployment.networks}
    owners = {part.name: part.owner for part in code.parts}
    for fifo in code.deployment.shared:
        for reader in fifo.reading:
            earlier = code.deployment.read_before(fifo, reader) | ({fifo.writer} - {reader, OUTSIDE})
            before[owners[reader]] |= dict.fromkeys(owners[name] for name in sorted(earlier))
    order = TopologicalSorter(before).static_order()
    return tuple(part for owner in order for part in code.deployment.parts_of(owner))
