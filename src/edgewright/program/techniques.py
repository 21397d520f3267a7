"""The technique by which each stage of a plan saves memory, derived from its schedule and views."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from .fusion import FusionSchedule, Split
from .plan import Plan
from .program import Stage


class Technique(Enum):
    """A memory-saving technique: its name for people, and its colour (Okabe & Ito, for the colour-blind too)."""

    WHOLE = ("whole layer", "#8a97a6")
    IN_PLACE = ("in place", "#009e73")
    ROWS = ("by rows", "#3f97d6")
    STRIPES = ("stripes by rows", "#8b7fd6")
    FFMT = ("FFMT tiles", "#e69f00")
    FDT = ("FDT", "#cc79a7")
    LANES = ("in lanes", "#56b4e9")
    FREE = ("free", "#c2c8cf")

    @property
    def label(self) -> str:
        return self.value[0]

    @property
    def colour(self) -> str:
        return self.value[1]


def techniques(plan: Plan) -> Mapping[str, Technique]:
    """The technique of each stage by its name, in the order in which stages run."""
    return {stage.name: technique(plan, stage) for stage in plan.program.stages}


def layer_techniques(plan: Plan) -> Mapping[str, Technique]:
    """The technique of each layer by its name; layers of no stage cost nothing."""
    techniques = {name: technique(plan, stage) for stage in plan.program.stages for name in stage.layers}
    return {layer.name: techniques.get(layer.name, Technique.FREE) for layer in plan.network.layers}


def technique(plan: Plan, stage: Stage) -> Technique:
    """The technique of a stage: from its schedule, or for whole layers whether the output overwrites an input."""
    match stage.schedule:
        case FusionSchedule(layers=(_,), splits=(Split(lanes=lanes),)) if lanes > 1:
            return Technique.LANES
        case FusionSchedule(splits=(Split(axis=-1), *_)):
            return Technique.FDT
        case FusionSchedule(splits=(_, *_), streamed=streamed):
            return Technique.STRIPES if streamed else Technique.FFMT
        case FusionSchedule(streamed=True):
            return Technique.ROWS
    return Technique.IN_PLACE if any(_is_in_place(plan, name) for name in stage.layers) else Technique.WHOLE


def _is_in_place(plan: Plan, name: str) -> bool:
    """Whether the layer's output takes over bytes of an input that dies with it."""
    layer = plan.network.by_name[name]
    return any(_share_bytes(plan, x, layer.output) for x in plan.network.activations(layer))


def _share_bytes(plan: Plan, x: str, y: str) -> bool:
    a, b = plan.views.get(x), plan.views.get(y)
    if a is None or b is None:
        return False
    if a.buffer == b.buffer:  # parts of one buffer may interleave; in place means at the very same bytes
        return a.offset == b.offset and a.strides == b.strides
    one, other = plan.buffer_named[a.buffer], plan.buffer_named[b.buffer]
    return one.memory == other.memory and one.offset < other.end and other.offset < one.end
