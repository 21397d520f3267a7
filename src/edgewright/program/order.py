"""Whether the inputs of each step are computed before it: counted in regions, independent of memory.

The planner asks this of every program it writes down; finished plans are judged byte by byte (`check`).
"""

from __future__ import annotations

from ..errors import ModelError
from ..network import Region
from .program import Program


def check_order(program: Program) -> Program:
    """The program itself, when each step finds what it reads computed before, and every output is complete.

    Layers that cost nothing (a reshape, a concat whose parts lie in place) are done as soon as their inputs are.
    Counting elements of boxes is exact for disjoint parts and for whole layers; parts that overlap (recomputed halos)
    are left to the interpreter.
    """
    network = program.network
    aliases = {*program.free, *program.copied}
    covered: dict[str, list[Region]] = {}

    def is_ready(tensor: str, region: Region) -> bool:
        if tensor in network.constants or tensor in network.inputs or region.is_empty:
            return True
        layer = network.producers[tensor]
        parts = covered.get(tensor, [])
        if any(region in part for part in parts):
            return True
        if layer.name in aliases:
            needed = layer.op.needs(region, network.shapes(layer))
            inputs = zip(layer.inputs, needed, strict=True)
            return all(
                is_ready(name, part) or any((region & done) == region for done in parts) for name, part in inputs
            )
        return sum((region & part).size for part in parts) >= region.size

    for stage in program.stages:
        for step in program.steps(stage):
            layer = network.by_name[step.layer]
            for name, needed in zip(layer.inputs, program.needs(step), strict=True):
                if not is_ready(name, needed):
                    raise ModelError(f"step '{step.layer}' {step.region} reads {needed} of '{name}' too early")
            if step.partial is None:
                _cover(covered.setdefault(layer.output, []), step.region)
        for name in program.partial(stage):
            output = network.by_name[name].output
            covered[output] = [Region.whole(network.tensors[output].shape)]
    for name in network.outputs:
        if not is_ready(name, Region.whole(network.tensors[name].shape)):
            raise ModelError(f"output '{name}' is never completed")
    return program


def _cover(parts: list[Region], region: Region) -> None:
    """Adds a region to the list, merged with the last one if it continues that along one axis, as rows do."""
    if parts:
        pairs = list(zip(parts[-1].bounds, region.bounds, strict=True))
        differing = [axis for axis, (a, b) in enumerate(pairs) if a != b]
        if len(differing) == 1 and pairs[differing[0]][0][1] == pairs[differing[0]][1][0]:
            axis = differing[0]
            _cover(parts, parts.pop().with_axis(axis, (pairs[axis][0][0], pairs[axis][1][1])))
            return
        if not differing:
            return
    parts.append(region)
