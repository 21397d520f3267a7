"""What a step finds where it runs, before anything is placed or as a plan has it; and the site that it then is."""

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
class Setting:
    """What a step finds where it runs."""

    room: int = AMPLE  # bytes of the arena that nobody holds
    is_bent: bool = False  # rows of its input or output lie in a rolling window
    is_shared: bool = False  # its output may lie over its input
    is_skewed: bool = False  # pixels of its input and output lie at different distances
    has_rows: bool = False  # the code has a kernel for single rows of depthwise layers, since others use it
    sweep: Sweep = Sweep.FORWARD


def site_in(facts: NetworkFacts, name: str, region: Region, setting: Setting, partial: Region | None = None) -> Site:
    """A part of a layer in a setting, wherever it may lie."""
    layer, network = facts.network.by_name[name], facts.network
    y = network.tensors[layer.output]
    ranges = (ChannelRange(region.bounds[-1], partial.bounds[-1] if partial else None),) if region.bounds else ()
    also = {ROWS_KERNEL: setting.has_rows, PAIRS_KERNEL: _has_convolution(facts)}
    inputs = tuple(_placed(facts, network.tensors[n], setting, at) for at, n in enumerate(layer.inputs))
    out = _placed(facts, y, setting, 0)
    if not setting.is_shared:
        out = replace(out, first=_FAR, last=_FAR + y.bytes)
    if setting.is_skewed and len(out.strides) > 1:
        out = replace(out, strides=(*(2 * stride for stride in out.strides[:-1]), out.strides[-1]))
    return Site(
        facts=facts.of(name),
        most=region.shape,
        bounds=tuple(map(_kept, region.bounds, y.shape)),
        ranges=ranges,
        sweep=setting.sweep,
        inputs=inputs,
        output=out,
        plane=y.size // max(1, y.shape[-1]) if y.shape and setting.sweep is Sweep.CHANNELS else 0,
        also=frozenset(kernel for kernel, is_there in also.items() if is_there),
        dynamic=None,
    )


def _kept(bounds: Interval, size: int) -> Interval | None:
    """The bounds where they are those of the whole axis, and so the same in every call; else None."""
    return bounds if bounds == (0, size) else None


def _placed(facts: NetworkFacts, tensor: Tensor, setting: Setting, at: int) -> StridedTensor:
    if tensor.name in facts.network.constants:
        return StridedTensor(tensor, dense_strides(tensor))
    window = (1, tensor.shape[1]) if setting.is_bent and len(tensor.shape) == 4 else None
    first = at * _FAR // 8
    return StridedTensor(tensor, dense_strides(tensor), window, "ram", first, first + tensor.bytes)


def _has_convolution(facts: NetworkFacts) -> bool:
    """Whether the code has the kernel of ordinary convolutions, whatever else it has."""
    layers = facts.network.layers
    first = facts.of(layers[0].name)
    return first.of_network("has pairs", lambda: any(isinstance(x.op, Conv2d) and x.op.groups == 1 for x in layers))


class Settings:
    """The settings of a plan's steps."""

    def __init__(self, plan: Plan, facts: NetworkFacts) -> None:
        self.sites = Sites(plan, facts)
        self._found: dict[tuple[int, str], Setting] = {}
        self._rooms: dict[int, int] = {}
        self._first_rows = self._first_of_few_rows()

    def of(self, stage: int, step: Step) -> Setting:
        key = (stage, step.layer)
        if key not in self._found:
            layer = self.sites.facts.network.by_name[step.layer]
            places = [self.sites.placement(name) for name in (*layer.inputs, layer.output)]
            x, y = places[0], places[-1]
            self._found[key] = Setting(
                self._room(stage),
                is_bent=any(place.window for place in places),
                is_shared=x.meets(y),
                is_skewed=not x.is_constant and x.strides[-2:-1] != y.strides[-2:-1],
                has_rows=stage > self._first_rows,
                sweep=step.sweep,
            )
        return self._found[key]

    def _room(self, stage: int) -> int:
        if stage not in self._rooms:
            self._rooms[stage] = self.sites.plan.hole(stage)[2]
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
