"""What callers of an application's library must know of inputs and outputs: type, axes, place, who overwrites them."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import TopologicalSorter
from itertools import pairwise

from ..network import Network
from ..network.operators.window import AvgPool2d, Conv2d, ConvTranspose2d, MaxPool2d
from .joint import JointLayout
from .members import AppMember

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


def overwriters(layout: JointLayout, member: AppMember, tensor: str) -> tuple[str, ...]:
    """The other members, and buffers of the firmware, whose bytes overlap those of an input or output in the arena."""
    plan = layout.plans[member.name]
    own = plan.buffer_named[plan.views[tensor].buffer]
    low = own.offset + plan.views[tensor].offset
    high = low + member.network.tensors[tensor].bytes

    def overlaps(at: int, size: int, memory: str) -> bool:
        return memory == own.memory and at < high and low < at + size

    names = [
        other.name
        for other in layout.application.members
        if other.name != member.name
        and any(
            overlaps(buffer.offset, buffer.size, buffer.memory)
            for buffer in layout.plans[other.name].buffers
            if not _is_only_read(layout, other, buffer.name)
        )
    ]
    for buffer in layout.buffers:
        if buffer.name != own.name and overlaps(layout.at(buffer.name), buffer.size, layout.home(buffer.name)):
            if buffer.crossing is not None:
                names.append(buffer.crossing.source[0])
            elif not buffer.uses:
                names.append(f"buffer {buffer.name}")
    return tuple(name for name in dict.fromkeys(names) if name != member.name)


def _is_only_read(layout: JointLayout, member: AppMember, buffer: str) -> bool:
    """Whether a member's buffer holds nothing but an input that another network hands over."""
    inside = [tensor for tensor, view in layout.plans[member.name].views.items() if view.buffer == buffer]
    handed = layout.problem.relations.handed_over
    return bool(inside) and all((member.owner, tensor) in handed for tensor in inside)


def call_order(layout: JointLayout) -> tuple[AppMember, ...]:
    """The members in an order in which one thread may run them: networks after those whose frames or outputs they read.

    Partitions of a pipeline follow each other: a frame on its way may hold other networks up.
    """
    application, relations = layout.application, layout.problem.relations
    before: dict[str, set[str]] = {owner: set() for owner in application.networks}
    for (made, _), (reader, _) in relations.cascades:
        before[reader].add(made)
    for frame in relations.frames:
        for (first, _), (second, _) in pairwise(frame):
            before[second].add(first)
    owners = TopologicalSorter(before).static_order()
    return tuple(member for owner in owners for member in application.members_of(owner))


def handed_sentences(layout: JointLayout, member: AppMember) -> Iterator[str]:
    """What a member reads that others have brought or made."""
    for (made, output), (reader, given) in layout.problem.relations.cascades:
        if reader == member.owner:
            yield f"{given} is {output} of {made}, where it lies"
    for frame in layout.problem.relations.frames:
        for name, given in frame[1:]:
            if name == member.owner:
                yield f"{given} is {frame[0][1]} of {frame[0][0]}, where it lies"
    for crossing in layout.application.crossings:
        for name, given in crossing.readers:
            if name == member.name:
                yield f"{given} comes from {crossing.source[0]}"
