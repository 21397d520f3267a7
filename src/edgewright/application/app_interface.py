"""What callers of an application's library must know of inputs and outputs: type, axes, place, who overwrites them."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import TopologicalSorter

from ..memory.joint.layout import JointLayout
from ..network import Network
from ..network.operators.window import AvgPool2d, Conv2d, ConvTranspose2d, MaxPool2d
from ..program.deployment import Deployment, Part

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


def overwriters(layout: JointLayout, deployment: Deployment, member: Part, tensor: str) -> tuple[str, ...]:
    """The other members, and buffers of the firmware, whose bytes overlap those of an input or output in the arena."""
    plan = deployment.plans[member.name]
    own = plan.buffer_named[plan.views[tensor].buffer]
    low = own.offset + plan.views[tensor].offset
    high = low + member.network.tensors[tensor].bytes

    def overlaps(at: int, size: int, memory: str) -> bool:
        return memory == own.memory and at < high and low < at + size

    names = [
        other.name
        for other in deployment.parts
        if other.name != member.name
        and any(
            overlaps(buffer.offset, buffer.size, buffer.memory)
            for buffer in deployment.plans[other.name].buffers
            if not _is_only_read(deployment, other, buffer.name)
        )
    ]
    for buffer in layout.buffers:
        if buffer.name != own.name and overlaps(layout.at(buffer.name), buffer.size, layout.home(buffer.name)):
            if buffer.fifo is not None:
                names.append(buffer.fifo.source)
            elif not buffer.uses:
                names.append(f"buffer {buffer.name}")
    return tuple(name for name in dict.fromkeys(names) if name != member.name)


def _is_only_read(deployment: Deployment, member: Part, buffer: str) -> bool:
    """Whether a member's buffer holds nothing but an input that another network hands over."""
    inside = [tensor for tensor, view in deployment.plans[member.name].views.items() if view.buffer == buffer]
    shared = [fifo for fifo in deployment.shared if member.name in fifo.reading and fifo.writer != member.name]
    return bool(inside) and {member.own(fifo) for fifo in shared} >= set(inside)


def call_order(deployment: Deployment) -> tuple[Part, ...]:
    """The members in an order in which one thread may run them: networks after those whose frames or outputs they read.

    Partitions of a pipeline follow each other: a frame on its way may hold other networks up.
    """
    before: dict[str, set[str]] = {network.name: set() for network in deployment.networks}
    for fifo in deployment.shared:
        for reader in fifo.reading:
            before[reader] |= ({fifo.writer} - {reader}) | deployment.read_before(fifo, reader)
    owners = TopologicalSorter(before).static_order()
    return tuple(part for owner in owners for part in deployment.parts_of(owner))


def handed_sentences(deployment: Deployment, member: Part) -> Iterator[str]:
    """What a member reads that others have brought or made."""
    for fifo in deployment.shared:
        if member.name in fifo.reading and fifo.writer != member.name:
            yield f"{member.own(fifo)} is {fifo.what.tensor} of {fifo.what.network}, where it lies"
    for fifo in deployment.queues:
        if member.name in fifo.reading:
            yield f"{member.own(fifo)} comes from {fifo.source}"
