"""Tiles and windows on the feature maps of each fusion group: a small picture for each tensor, moved by a slider."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from markupsafe import Markup

from .. import text
from ..network import describe
from ..program import Plan, Stage
from ..program.techniques import Technique, technique
from .frames import NOTHING, Extent, Image, Map, Snapshot, animate, fusion_groups
from .graph import short_operator
from .occupancy import Occupancy

LARGEST = 112.0  # px, the longer side of the largest map of a group
SMALLEST = 26.0  # px, to which the longer side of a small one is enlarged
THINNEST = 8.0  # px, the shorter side
SHEETS = 8  # maximum number of sheets that represent the channels
SHIFT = 5.0  # px from sheet to sheet
MOST_GROUPS = 12
MOST_MAPS = 40


@dataclass(frozen=True, slots=True)
class FeatureMapView:
    """A feature map with its caption."""

    svg: Markup
    operator: str
    shape: str
    kept: str  # the part in memory at a time


@dataclass(frozen=True, slots=True)
class FusionGroupView:
    """The template's data for one group."""

    position: int
    name: str
    technique: Technique
    about: str
    maps: tuple[FeatureMapView, ...]
    captions: tuple[str, ...]  # one for each moment
    shown: int  # the moment shown initially
    left_out: int  # number of maps that are not drawn

    @property
    def moments(self) -> str:
        """The captions as JSON for the page's script."""
        return json.dumps(self.captions, ensure_ascii=False)


def fusion_group_views(occupancy: Occupancy) -> tuple[FusionGroupView, ...]:
    """A view of each stage that runs in parts; of many, those with the most live memory."""
    plan = occupancy.plan
    groups = sorted(fusion_groups(plan), key=lambda entry: -plan.live_bytes[entry[0]])[:MOST_GROUPS]
    return tuple(_view(occupancy, position, stage) for position, stage in sorted(groups, key=lambda entry: entry[0]))


def _view(occupancy: Occupancy, position: int, stage: Stage) -> FusionGroupView:
    plan = occupancy.plan
    animation, kind = animate(plan, stage), technique(plan, stage)
    shown = len(animation.captions) // 2
    scale = LARGEST / max(max(item.image[:2]) for item in animation.maps)
    return FusionGroupView(
        position,
        text.printable(stage.name),
        kind,
        text.plural(len(stage.layers), "layer"),
        tuple(_map_view(occupancy, item, scale, shown, kind) for item in animation.maps[:MOST_MAPS]),
        animation.captions,
        shown,
        max(0, len(animation.maps) - MOST_MAPS),
    )


def _map_view(occupancy: Occupancy, item: Map, scale: float, shown: int, kind: Technique) -> FeatureMapView:
    network = occupancy.plan.network
    return FeatureMapView(
        Markup(_map_svg(occupancy.plan, item, scale, shown, kind)),
        short_operator(network, item.layer).split(" → ")[0] if item.layer else "from outside",
        describe.shape(network.tensors[item.tensor].shape),
        _kept(occupancy, item),
    )


def _kept(occupancy: Occupancy, item: Map) -> str:
    """The part of the map that is in memory at a time."""
    shape, kept = occupancy.plan.network.tensors[item.tensor].shape, occupancy.kept_shape(item.tensor)
    if item.is_summed:
        return "running sums"
    return f"keeps {describe.shape(kept)}" if kept != shape else "keeps all"


@dataclass(frozen=True, slots=True)
class _Canvas:
    """The scale of a map's rows and columns."""

    image: Image
    scale: float
    sheets: int

    @property
    def width(self) -> float:
        return max(THINNEST, self.image[1] * self.scale)

    @property
    def height(self) -> float:
        return max(THINNEST, self.image[0] * self.scale)

    @property
    def depth(self) -> float:
        return (self.sheets - 1) * SHIFT

    def is_whole(self, box: Extent) -> bool:
        return box.rows == (0, self.image[0]) and box.columns == (0, self.image[1])

    def rect(self, rows: Sequence[int], columns: Sequence[int]) -> list[float]:
        """x, y, width, height on the front sheet; a box that is not empty stays visible."""
        if rows[1] <= rows[0] or columns[1] <= columns[0]:
            return [0, 0, 0, 0]
        down, across = self.height / self.image[0], self.width / self.image[1]
        high, wide = max(1.6, (rows[1] - rows[0]) * down), max(1.6, (columns[1] - columns[0]) * across)
        x, y = min(columns[0] * across, self.width - wide), min(rows[0] * down, self.height - high)
        return [round(value, 1) for value in (x + 1, y + self.depth + 1, wide, high)]

    def lit(self, channels: Sequence[int]) -> list[int]:
        """The sheets, from the front, that contain these channels."""
        total = max(1, self.image[2])
        first = channels[0] * self.sheets // total
        last = -(-channels[1] * self.sheets // total)
        return [first, max(last, first + (channels[1] > channels[0]))]


def _map_svg(plan: Plan, item: Map, scale: float, shown: int, kind: Technique) -> str:
    """One feature map with sheets for its channels, and its memory contents at the initial moment."""
    by_channels = kind is Technique.FDT
    sheets = min(SHEETS if by_channels else 3, item.image[2])
    canvas = _Canvas(item.image, max(scale, SMALLEST / max(item.image[:2])), max(1, sheets))
    frames = [_frame(canvas, snapshot, by_channels) for snapshot in item.snapshots]
    title = _title(plan, item)
    wide, high = canvas.width + canvas.depth + 2, canvas.height + canvas.depth + 2
    lines = [
        f'<svg class="feature-map" viewBox="0 0 {wide:.0f} {high:.0f}" width="{wide:.0f}" height="{high:.0f}" '
        f'role="img" aria-label="{escape(title)}" data-f="{escape(_packed(frames))}"><title>{escape(title)}</title>'
    ]
    lines += _sheets(canvas, frames[shown])
    lines += _marks(frames[shown])
    return "".join([*lines, "</svg>"])


def _sheets(canvas: _Canvas, frame: Sequence[Sequence[float]]) -> Iterator[str]:
    """The sheets from back to front."""
    first, stop = frame[-1]
    for sheet in reversed(range(canvas.sheets)):
        style = "sheet lit" if first <= sheet < stop else "sheet"
        yield (
            f'<rect class="{style}" x="{1 + sheet * SHIFT:.0f}" y="{1 + canvas.depth - sheet * SHIFT:.0f}" '
            f'width="{canvas.width:.1f}" height="{canvas.height:.1f}"/>'
        )


MARKS = ("kept", "now", "halo", "halo")


def _marks(frame: Sequence[Sequence[float]]) -> Iterator[str]:
    for style, (x, y, width, height) in zip(MARKS, frame, strict=False):
        yield f'<rect class="mark {style}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"/>'


def _frame(canvas: _Canvas, snapshot: Snapshot, by_channels: bool) -> list[list[float]]:
    """The boxes of one moment: kept, now, and up to two parts of the halo; and the highlighted sheets.

    Where whole sheets are computed, highlighting them is enough.
    """
    now, kept = snapshot.now, snapshot.kept
    lit: Sequence[int] = (0, 0)
    if by_channels:
        lit = canvas.lit((kept if now.is_empty else now).channels)
        kept, now = (NOTHING if canvas.is_whole(box) else box for box in (kept, now))
    top, side = _halo(now, snapshot.fresh)
    boxes = [canvas.rect(*box) for box in ((kept.rows, kept.columns), (now.rows, now.columns), top, side)]
    return [*boxes, [float(value) for value in lit]]


def _halo(
    now: Extent, fresh: Extent
) -> tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]:
    """The recomputed parts: above the new part over the full width, and beside it."""
    if now.is_empty:
        return ((0, 0), (0, 0)), ((0, 0), (0, 0))
    if fresh.is_empty:
        return (now.rows, now.columns), ((0, 0), (0, 0))
    top = ((now.rows[0], fresh.rows[0]), now.columns)
    side = (fresh.rows, (now.columns[0], fresh.columns[0]))
    return top, side


def _packed(frames: Sequence[Sequence[Sequence[float]]]) -> str:
    """The frames as JSON; a frame equal to the one before is written as 0."""
    short: list[object] = []
    for before, frame in zip([None, *frames[:-1]], frames, strict=True):
        short.append(0 if frame == before else [[int(v) if v == int(v) else v for v in box] for box in frame])
    return json.dumps(short, separators=(",", ":"))


def _title(plan: Plan, item: Map) -> str:
    """Tensor, layer and size: the visible caption and the text for screen readers."""
    tensor = plan.network.tensors[item.tensor]
    made = short_operator(plan.network, item.layer) if item.layer else "from outside"
    return text.printable(f"{item.tensor}: {made}, {describe.shape(tensor.shape)}, {text.size(tensor.bytes)}")
