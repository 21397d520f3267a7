"""What selection and cost of a kernel call depend on besides its layer and region, assumed or as a plan has it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...network import Interval, Region, Tensor
from ...network.operators import Conv2d
from ...program import Plan, Step, Sweep
from ..site import ChannelRange, Site
from ..sites import NetworkFacts, Sites
from ..strided_tensor import StridedTensor, dense_strides
from .stages import representative_steps

AMPLE = 1 << 30
_FAR = 1 << 40  # an address that nothing else has
ROWS_KERNEL, PAIRS_KERNEL = "depthwise_rows", "dsp_conv"


@dataclass(frozen=True, slots=True)
class CallContext:
    """The surroundings of a kernel call that decide which kernel it gets and what it costs."""

    room: int = AMPLE  # free bytes of the arena
    is_circular: bool = False  # rows of its input or output lie in a rolling buffer
    is_shared: bool = False  # its output may lie over its input
    is_skewed: bool = False  # pixels of its input and output lie at different distances
    has_rows: bool = False  # the code has a kernel for single rows of depthwise layers, since others use it
    sweep: Sweep = Sweep.FORWARD


def site_in(
    facts: NetworkFacts, name: str, region: Region, context: CallContext, partial: Region | None = None
) -> Site:
    """The site of a part of a layer in this context, at addresses that stand for any other."""
    layer, network = facts.network.by_name[name], facts.network
    y = network.tensors[layer.output]
    ranges = (ChannelRange(region.bounds[-1], partial.bounds[-1] if partial else None),) if region.bounds else ()
    linked_kernels = {ROWS_KERNEL: context.has_rows, PAIRS_KERNEL: _has_convolution(facts)}
    inputs = tuple(_placed(facts, network.tensors[n], context, at) for at, n in enumerate(layer.inputs))
    out = _placed(facts, y, context, 0)
    if not context.is_shared:
        out = replace(out, first=_FAR, last=_FAR + y.bytes)
    if context.is_skewed and len(out.strides) > 1:
        out = replace(out, strides=(*(2 * stride for stride in out.strides[:-1]), out.strides[-1]))
    return Site(
        facts=facts.of(name),
        most=region.shape,
        bounds=tuple(map(_kept, region.bounds, y.shape)),
        ranges=ranges,
        sweep=context.sweep,
        inputs=inputs,
        output=out,
        plane=y.size // max(1, y.shape[-1]) if y.shape and context.sweep is Sweep.CHANNELS else 0,
        linked_kernels=frozenset(kernel for kernel, is_there in linked_kernels.items() if is_there),
        dynamic=None,
    )


def _kept(bounds: Interval, size: int) -> Interval | None:
    """The bounds where they are those of the whole axis, and so the same in every call; else None."""
    return bounds if bounds == (0, size) else None


def _placed(facts: NetworkFacts, tensor: Tensor, context: CallContext, at: int) -> StridedTensor:
    if tensor.name in facts.network.constants:
        return StridedTensor(tensor, dense_strides(tensor))
    window = (1, tensor.shape[1]) if context.is_circular and len(tensor.shape) == 4 else None
    first = at * _FAR // 8
    return StridedTensor(tensor, dense_strides(tensor), window, "ram", first, first + tensor.bytes)


def _has_convolution(facts: NetworkFacts) -> bool:
    """Whether the code has the kernel of ordinary convolutions, whatever else it has."""
    layers = facts.network.layers
    first = facts.of(layers[0].name)
    return first.of_network("has pairs", lambda: any(isinstance(x.op, Conv2d) and x.op.groups == 1 for x in layers))


class CallContexts:
    """Looks up the context of each step of a plan."""

    def __init__(self, plan: Plan, facts: NetworkFacts) -> None:
        self.sites = Sites(plan, facts)
        self._found: dict[tuple[int, str], CallContext] = {}
        self._rooms: dict[int, int] = {}
        self._first_rows = self._first_of_few_rows()

    def of(self, stage: int, step: Step) -> CallContext:
        key = (stage, step.layer)
        if key not in self._found:
            layer = self.sites.facts.network.by_name[step.layer]
            places = [self.sites.placement(name) for name in (*layer.inputs, layer.output)]
            x, y = places[0], places[-1]
            self._found[key] = CallContext(
                self._room(stage),
                is_circular=any(place.window for place in places),
                is_shared=x.meets(y),
                is_skewed=not x.is_constant and x.strides[-2:-1] != y.strides[-2:-1],
                has_rows=stage > self._first_rows,
                sweep=step.sweep,
            )
        return self._found[key]

    def _room(self, stage: int) -> int:
        if stage not in self._rooms:
            self._rooms[stage] = self.sites.plan.largest_gap(stage)[2]
        return self._rooms[stage]

    def _first_of_few_rows(self) -> int:
        """The first stage that computes a few rows of a depthwise layer at a time."""
        plan = self.sites.plan
        for index, stage in enumerate(plan.program.stages):
            if any(self._is_few(step) for step, _ in representative_steps(plan, stage)):
                return index
        return len(plan.program.stages)

    def _is_few(self, step: Step) -> bool:
        op = self.sites.facts.network.by_name[step.layer].op
        return isinstance(op, Conv2d) and op.groups > 1 and step.region.shape[1] <= 2
