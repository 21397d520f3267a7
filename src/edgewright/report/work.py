"""What is really computed: for each layer its multiply-accumulates and elements, those computed again included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from ..network import Network
from ..network.operators.shares import share_axes, share_macs
from ..program import Plan, Program, Stage, Step


@dataclass(frozen=True, slots=True)
class LayerWork:
    """What a stage does for one layer, beside what computing its output once would take."""

    macs: int
    done: int  # elements computed; of what is summed up share by share, elements times the inputs of each
    whole: int  # the same, were everything computed once

    @property
    def again(self) -> float:
        """What is computed more than once, as a share of the whole."""
        return max(0, self.done - self.whole) / (self.whole or 1)


def layer_work(plan: Plan) -> Mapping[str, LayerWork]:
    """The work of each layer that a stage executes."""
    return {name: work for stage in plan.program.stages for name, work in stage_work(plan.program, stage).items()}


def stage_work(program: Program, stage: Stage) -> Mapping[str, LayerWork]:
    """The work of each layer of the stage."""
    macs: dict[str, int] = dict.fromkeys(stage.layers, 0)
    done, whole = dict(macs), dict(macs)
    for step in program.steps(stage):
        count, part, total = _step_work(program.network, step)
        macs[step.layer] += count
        done[step.layer] += part
        whole[step.layer] = total
    return {name: LayerWork(macs[name], done[name], whole[name]) for name in macs}


def _step_work(network: Network, step: Step) -> tuple[int, int, int]:
    """MACs of the step, what it computes, and what there is to compute."""
    layer = network.by_name[step.layer]
    shapes, total = network.shapes(layer), network.tensors[layer.output].size
    if step.share is None:
        return layer.op.macs(step.region, shapes), step.region.size, total
    axes = share_axes(layer.op, shapes)
    part = step.region.size * prod(step.share.shape[axis] for axis in axes)
    return (
        share_macs(layer.op, step.region, shapes, step.share),
        part,
        total * prod(shapes[0][axis] for axis in axes),
    )
