"""How each stage of a plan saves memory, read off its body and its views."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from .plan import Plan
from .steps import Item, Loop, Stage, Step, Stream, Tiles


class Technique(Enum):
    """A way to run layers: a word for people, and a colour that is told apart by all of them (Okabe & Ito)."""

    WHOLE = ("whole layer", "#8a97a6")
    IN_PLACE = ("in place", "#009e73")
    ROWS = ("by rows", "#3f97d6")
    STRIPES = ("stripes by rows", "#8b7fd6")
    FFMT = ("FFMT tiles", "#e69f00")
    FDT = ("FDT", "#cc79a7")
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
    found = {name: technique(plan, stage) for stage in plan.program.stages for name in stage.layers}
    return {layer.name: found.get(layer.name, Technique.FREE) for layer in plan.network.layers}


def technique(plan: Plan, stage: Stage) -> Technique:
    """What the stage's body says; of whole layers, whether the output is written over an input."""
    return next(filter(None, map(_of_item, stage.body)), None) or (
        Technique.IN_PLACE if any(_is_in_place(plan, name) for name in stage.layers) else Technique.WHOLE
    )


def _of_item(item: Item) -> Technique | None:
    match item:
        case Step():
            return None
        case Stream() | Loop():
            return Technique.ROWS
        case Tiles(axis=-1):
            return Technique.FDT
        case Tiles():
            return Technique.STRIPES if _has_stream(item) else Technique.FFMT


def _has_stream(tiles: Tiles) -> bool:
    return any(isinstance(item, Stream) or (isinstance(item, Tiles) and _has_stream(item)) for item in tiles.body)


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
    buffers = {buffer.name: buffer for buffer in plan.buffers}
    one, other = buffers[a.buffer], buffers[b.buffer]
    return one.memory == other.memory and one.offset < other.end and other.offset < one.end
