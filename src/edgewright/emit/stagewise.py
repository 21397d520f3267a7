"""Emitted code judged stage by stage: each stage from what the code itself has for its inputs.

End to end, real numbers that are stored may fall to either side of a tie, whatever is right about their last bits, and
the layers behind make more of it. What a stage makes of given numbers leaves nothing to chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..network import Arithmetic, Array, Layer, Network
from ..network.kernels import run_layer
from ..network.operators import DynamicQuantize, DynamicRange, Quantize
from ..network.reference import OutputDifference, difference
from ..program import Plan

NOISE = 2.0**-22  # of real numbers, relative: what the order of a few additions, or another exp, leaves to chance
TRIALS = 3
NOISE_MARGIN = 2.0  # a few trials do not find the worst


@dataclass(frozen=True)
class StageDifference:
    """A stage whose output is not what our kernels make of its inputs."""

    stage: str
    difference: OutputDifference


class Tracer:
    """Takes the tensors between stages out of the arenas, after each stage those that it completed."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.tensors: dict[str, Array] = {}
        self._completed = completed(plan)

    def take(self, stage: int, arenas: Mapping[str, Array]) -> None:
        """With the arenas as they are after this stage, by memory, as bytes."""
        for name in self._completed[stage]:
            tensor, view = self.plan.network.tensors[name], self.plan.views[name]
            buffer = self.plan.buffer_named[view.buffer]
            start = buffer.offset + view.offset
            there: Array = np.ndarray(tensor.shape, tensor.dtype.numpy, arenas[buffer.memory].data, start, view.strides)
            self.tensors[name] = there.copy()


def completed(plan: Plan) -> tuple[tuple[str, ...], ...]:
    """For each stage the tensors that lie whole in memory when it ends, and that are read after it or given out."""
    network, stages = plan.network, plan.program.stages
    made = {network.by_name[name].output: i for i, stage in enumerate(stages) for name in stage.layers}
    read: dict[str, int] = {}
    for name in network.outputs:
        _mark(plan, name, len(stages), read)
    for i, stage in enumerate(stages):
        for layer in stage.layers:
            for name in network.by_name[layer].inputs:
                _mark(plan, name, i, read)
    found: list[list[str]] = [[] for _ in stages]
    for name, i in made.items():
        if read.get(name, -1) > i and not _is_partial(plan, name):
            found[i].append(name)
    return tuple(map(tuple, found))


def _mark(plan: Plan, name: str, stage: int, read: dict[str, int]) -> None:
    """Notes that a stage reads the tensor, and with it whatever free layers lay into its memory."""
    read[name] = max(stage, read.get(name, -1))
    layer = plan.network.producers.get(name)
    if layer is not None and layer.name in plan.free:
        for inner in layer.inputs:
            _mark(plan, inner, stage, read)


def _is_partial(plan: Plan, name: str) -> bool:
    view = plan.views[name]
    return view.window is not None or bool(view.tiled)


def compare_stages(
    plan: Plan, network: Network, inputs: Mapping[str, Array], traced: Mapping[str, Array]
) -> StageDifference | None:
    """The first stage that differs from our kernels; `traced` are the tensors that the code has between stages.

    Integers must be equal, real numbers within their tolerance, and those that ONNX files store in 16 bits within a
    step, which is hardly more than the last bits of a float32. Where real numbers are stored inside a stage, so that
    they cannot be seen, noise in their last bits may move as much of its output as it moves in our kernels.
    """
    values: dict[str, Array] = {**network.constants, **inputs}
    last = {name: i for i, stage in enumerate(plan.program.stages) for name in stage.layers}
    place = {layer.name: i for i, layer in enumerate(network.layers)}
    for i, stage in enumerate(plan.program.stages):
        names = sorted((name for name in stage.layers if last[name] == i), key=place.__getitem__)
        layers = [network.by_name[name] for name in names]
        before = dict(values)
        for layer in _with_free(plan, network, layers, values):
            mine = run_layer(network, layer, values)
            theirs = traced.get(layer.output)
            values[layer.output] = mine if theirs is None else theirs
            if theirs is None:
                continue
            gap = difference(network, layer.output, mine, theirs)
            is_fine = network.arithmetic is Arithmetic.ONNX and network.tensors[layer.output].dtype.bytes == 2
            is_close = is_same(gap) or (is_fine and gap.passes)
            if not is_close and not _is_explained_by_noise(plan, network, layers, layer, before, traced, mine):
                return StageDifference(stage.name, gap)
    return None


def _with_free(plan: Plan, network: Network, layers: Sequence[Layer], known: Mapping[str, Array]) -> list[Layer]:
    """The layers in order, each behind the free ones that it reads through and that have not been computed."""
    ordered: dict[str, Layer] = {}

    def add(layer: Layer) -> None:
        for name in layer.inputs:
            inner = network.producers.get(name)
            if name not in known and inner is not None and inner.name in plan.free and inner.name not in ordered:
                add(inner)
        ordered[layer.name] = layer

    for layer in layers:
        add(layer)
    return list(ordered.values())


def is_same(gap: OutputDifference) -> bool:
    """Whether integers are equal, and real numbers within their tolerance."""
    return gap.largest == 0 or (gap.passes and not gap.unit)


def _is_explained_by_noise(
    plan: Plan,
    network: Network,
    layers: Sequence[Layer],
    layer: Layer,
    before: Mapping[str, Array],
    traced: Mapping[str, Array],
    mine: Array,
) -> bool:
    """Whether noise on what the stage stores unseen explains how far the layer's output is off, and how much of it."""
    made = {inner.output for inner in layers} - traced.keys()
    stored = {
        inner.inputs[0]
        for inner in layers
        if isinstance(inner.op, Quantize | DynamicRange | DynamicQuantize) and inner.inputs[0] in made
    }
    stored = {name for name in stored if network.tensors[name].dtype.is_float}
    if not stored:
        return False
    far, many = 0.0, 0
    for seed in range(TRIALS):
        rng = np.random.default_rng(seed)
        values = dict(before)
        for inner in _with_free(plan, network, layers, before):
            value = run_layer(network, inner, values)
            if inner.output in stored:
                value = value * (1 + NOISE * rng.uniform(-1, 1, value.shape)).astype(np.float32)
            elif inner.name == layer.name:
                far = max(far, difference(network, layer.output, value, mine).largest)
                many = max(many, int(np.count_nonzero(value != mine)))
            values[inner.output] = traced.get(inner.output, value)
    theirs = traced[layer.output]
    off = difference(network, layer.output, theirs, mine).largest
    return off <= NOISE_MARGIN * far and int(np.count_nonzero(theirs != mine)) <= NOISE_MARGIN * many
