"""The rows of the page's tables as plain text and numbers; the template formats them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from .. import text
from ..network import Layer, Shape, describe
from ..program import Buffer, Plan, Stage, View, sums_name
from .occupancy import LayerWork, Occupancy, Role


@dataclass(frozen=True, slots=True)
class SavingRow:
    technique: str
    peak: int
    share: float  # of the largest peak, 0..1
    saved: int  # compared with the row before; negative if the technique alone costs memory
    total: str  # against the first row


@dataclass(frozen=True, slots=True)
class CriticalRow:
    number: int  # of the buffer in the plan; links the row to its rectangle
    name: str
    what: str
    size: int
    offset: int
    stages: str
    share: str  # of the peak


@dataclass(frozen=True, slots=True)
class StageRow:
    position: int
    name: str
    operators: tuple[str, ...]  # one, or those of a fusion group
    shape: str
    dtype: str
    macs: int
    live: int
    load: float  # live bytes as a share of the peak, 0..1
    sweep: str
    shares: tuple[str, ...]  # how the bytes of its inputs are used


@dataclass(frozen=True, slots=True)
class TensorRow:
    number: int  # of the buffer in the plan
    name: str
    role: Role
    shape: str
    dtype: str
    quant: str
    size: int
    buffer: str
    memory: str
    address: int
    stages: str


def saving_rows(plan: Plan) -> tuple[SavingRow, ...]:
    peaks = [saving.peak_bytes for saving in plan.savings]
    most = max(peaks, default=0)
    return tuple(
        SavingRow(
            text.printable(saving.technique),
            saving.peak_bytes,
            saving.peak_bytes / most if most else 0.0,
            before - saving.peak_bytes,
            text.percent(saving.peak_bytes - peaks[0], peaks[0]).replace("-", "−") if i else "",
        )
        for i, (saving, before) in enumerate(zip(plan.savings, [*peaks[:1], *peaks], strict=False))
    )


def critical_rows(occupancy: Occupancy, critical: Sequence[str]) -> tuple[CriticalRow, ...]:
    """The critical buffers, the largest first (S 4.3.3)."""
    chosen = [occupancy.buffers[name] for name in occupancy.named(critical)]
    chosen.sort(key=lambda b: (-b.size, b.offset, b.name))
    return tuple(
        CriticalRow(
            occupancy.numbers[buffer.name],
            text.printable(buffer.name),
            _what(occupancy, buffer),
            buffer.size,
            buffer.offset,
            text.stage_range(buffer.first, buffer.last),
            text.percent(buffer.size, occupancy.plan.peak_bytes),
        )
        for buffer in chosen
    )


def stage_rows(occupancy: Occupancy) -> tuple[StageRow, ...]:
    return tuple(_stage_row(occupancy, *each) for each in enumerate(occupancy.plan.program.stages))


def tensor_rows(occupancy: Occupancy) -> tuple[TensorRow, ...]:
    """Every tensor in memory, in network order, followed by scratch."""
    plan, number = occupancy.plan, occupancy.numbers
    rows = []
    for name, tensor in plan.network.tensors.items():
        if name not in plan.views:
            continue
        view = plan.views[name]
        buffer = occupancy.buffers[view.buffer]
        kept = occupancy.kept_shape(name)
        note = "" if kept == tensor.shape else f" ({_some(view, kept)} kept)"
        rows.append(
            TensorRow(
                number[buffer.name],
                text.printable(name),
                _tensor_role(plan, name),
                describe.shape(tensor.shape) + note,
                tensor.dtype.value,
                describe.quantisation(tensor),
                prod(kept) * tensor.dtype.bytes,
                text.printable(buffer.name),
                buffer.memory,
                occupancy.address(name),
                text.stage_range(buffer.first, buffer.last),
            )
        )
    for buffer in plan.buffers:
        if not occupancy.tensors[buffer.name]:
            name, stages = text.printable(buffer.name), text.stage_range(buffer.first, buffer.last)
            place = (buffer.size, name, buffer.memory, buffer.offset, stages)
            rows.append(TensorRow(number[buffer.name], name, Role.SCRATCH, "", "", "", *place))
    return tuple(rows)


def _some(view: View, kept: Shape) -> str:
    """The rows or the part of a tile that are kept."""
    return describe.shape(kept) if view.tiled or view.window is None else str(kept[view.window[0]])


def _stage_row(occupancy: Occupancy, position: int, stage: Stage) -> StageRow:
    plan, network = occupancy.plan, occupancy.plan.network
    work = {name: occupancy.work[name] for name in stage.layers}
    layers = [network.by_name[name] for name in work]
    result = network.tensors[layers[-1].output]
    live = occupancy.plan.live_bytes[position]
    return StageRow(
        position,
        text.printable(stage.name),
        tuple(_operator(plan, layer, work[layer.name]) for layer in layers),
        describe.shape(result.shape),
        result.dtype.value,
        sum(part.macs for part in work.values()),
        live,
        live / plan.peak_bytes if plan.peak_bytes else 0.0,
        stage.sweep.value,
        tuple(told for layer in layers for told in _shares(occupancy, layer)),
    )


def _operator(plan: Plan, layer: Layer, work: LayerWork) -> str:
    """The operator, and the share of its output that is computed if it is not 100 %."""
    told = describe.operator(layer.op, plan.network.shapes(layer))
    if work.done < work.whole:
        return f"{told} ({text.percent(work.done, work.whole)} copied, the rest lies in place)"
    return f"{told} ({text.percent(work.again, 1)} computed again)" if work.again else told


def _shares(occupancy: Occupancy, layer: Layer) -> Iterator[str]:
    """For each input overlapped by the output, the share of its bytes."""
    network = occupancy.plan.network
    for name in network.activations(layer):
        shared = occupancy.shared_bytes(name, layer.output)
        if not shared:
            continue
        x, y = network.tensors[name].bytes, network.tensors[layer.output].bytes
        source, target = (occupancy.plan.views[tensor] for tensor in (name, layer.output))
        if source.window and source == target:
            yield f"in place of {text.printable(name)}, row by row"
        elif shared == x == y:
            yield f"in place of {text.printable(name)}"
        else:
            yield f"over {text.size(shared)} ({text.percent(shared, x)}) of {text.printable(name)}"


def _what(occupancy: Occupancy, buffer: Buffer) -> str:
    """The role of the buffer and the layers that write it."""
    role, network = occupancy.role(buffer.name), occupancy.plan.network
    if role is Role.SCRATCH and buffer.name in map(sums_name, network.by_name):
        return f"running sums of {text.printable(buffer.name.removesuffix(sums_name('')))}"
    if role is Role.SCRATCH:
        return f"scratch of {text.printable(occupancy.plan.order[buffer.first])}"
    made = [network.producers[name] for name in occupancy.tensors[buffer.name] if name in network.producers]
    if not made:
        return f"{role.value}{_window(occupancy, buffer)}"
    first = describe.operator(made[0].op, network.shapes(made[0]))
    more = f" and {text.plural(len(made) - 1, 'layer')} more" if len(made) > 1 else ""
    return f"{role.value}: {first}{more}{_window(occupancy, buffer)}"


def _window(occupancy: Occupancy, buffer: Buffer) -> str:
    """The share of its tensors that the buffer holds at a time, if not all."""
    name = occupancy.tensors[buffer.name][0]
    view, shape = occupancy.plan.views[name], occupancy.plan.network.tensors[name].shape
    if view.tiled:
        return f", {describe.shape(occupancy.kept_shape(name))} of {describe.shape(shape)} at a time"
    if view.window is None:
        return ""
    axis, kept = view.window
    return f", {kept} of {text.plural(shape[axis], 'row')} at a time"


def _tensor_role(plan: Plan, name: str) -> Role:
    if name in plan.network.inputs:
        return Role.INPUT
    return Role.OUTPUT if name in plan.network.outputs else Role.INTERMEDIATE
