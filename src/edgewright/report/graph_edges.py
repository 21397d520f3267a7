"""The routes of edges in a network's drawing: straight down if the way is free, else curved beside the nodes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from .graph_layout import GUTTER, GraphDrawing, NodeBox

LANE = 5.0  # px between edges that run side by side
BEND = 9.0  # px, the radius of a corner
NEAR = 3.0  # px that an edge keeps from a node


@dataclass(frozen=True, slots=True)
class EdgeRoute:
    path: str  # SVG path
    is_skip: bool  # passes other layers


@dataclass
class _Lanes:
    """Vertical lanes beside a column; an edge takes the first lane that is free at its height."""

    taken: list[list[tuple[float, float]]] = field(default_factory=list)

    def claim(self, top: float, bottom: float) -> int:
        top, bottom = min(top, bottom), max(top, bottom)
        for lane, used in enumerate(self.taken):
            if all(bottom < a or b < top for a, b in used):
                used.append((top, bottom))
                return lane
        self.taken.append([(top, bottom)])
        return len(self.taken) - 1


def routes(layout: GraphDrawing, edges: Iterable[tuple[str, str]]) -> Iterator[EdgeRoute]:
    """Every edge with its route; short edges are routed first, so that they run close to the nodes."""
    lanes: dict[int, _Lanes] = {gutter: _Lanes() for gutter in range(-1, len(layout.columns))}
    overhead = _Lanes()

    def span(edge: tuple[str, str]) -> tuple[int, float]:
        a, b = layout.nodes[edge[0]], layout.nodes[edge[1]]
        return b.column - a.column, abs(b.y - a.y)

    for source, target in sorted(edges, key=span):
        a, b = layout.nodes[source], layout.nodes[target]
        if a.column == b.column and _is_clear(layout, a, b):
            yield EdgeRoute(_down(a, b), False)
        elif a.column == b.column:
            yield EdgeRoute(_beside(layout, lanes, a, b), True)
        else:
            is_skip = a.bottom < layout.in_column[a.column][-1].y
            yield EdgeRoute(_over(layout, lanes, overhead, a, b), is_skip)


def _is_clear(layout: GraphDrawing, a: NodeBox, b: NodeBox) -> bool:
    """Whether no node lies between the bottom of one and the top of the other."""
    for box in _at_heights(layout, a.column, a.y, b.y):
        if box in (a, b) or box.bottom <= a.bottom or box.y >= b.y:
            continue
        low, high = sorted(_between(a, b, y) for y in (max(box.y, a.bottom), min(box.bottom, b.y)))
        if low < box.right + NEAR and high > box.x - NEAR:
            return False
    return True


def _between(a: NodeBox, b: NodeBox, y: float) -> float:
    share = (y - a.bottom) / ((b.y - a.bottom) or 1)
    return a.middle + share * (b.middle - a.middle)


def _down(a: NodeBox, b: NodeBox) -> str:
    if a.middle == b.middle:
        return f"M{a.middle:.0f} {a.bottom:.0f}V{b.y:.0f}"
    bend = (b.y - a.bottom) / 2
    return (
        f"M{a.middle:.0f} {a.bottom:.0f}C{a.middle:.0f} {a.bottom + bend:.0f} {b.middle:.0f} {b.y - bend:.0f} "
        f"{b.middle:.0f} {b.y:.0f}"
    )


def _beside(layout: GraphDrawing, lanes: dict[int, _Lanes], a: NodeBox, b: NodeBox) -> str:
    """A route that leaves and enters on the same side: the right one unless a neighbour is there."""
    top, bottom = a.y + a.height / 2, b.y + b.height / 2
    is_left = _has_neighbour(layout, a, b, 1) and not _has_neighbour(layout, a, b, -1)
    left, right = layout.columns[a.column]
    lane = lanes[a.column - is_left].claim(top, bottom)
    reach = NEAR + (lane * LANE) % (GUTTER - 2 * NEAR)
    x = left - reach if is_left else right + reach
    start, end = (a.x, b.x) if is_left else (a.right, b.right)
    return f"M{start:.0f} {top:.0f}{_corner(x, top, 1, start)}V{bottom - BEND:.0f}{_in(x, bottom, end)}"


def _has_neighbour(layout: GraphDrawing, a: NodeBox, b: NodeBox, side: int) -> bool:
    return any((box.x - end.x) * side > 0 for end in (a, b) for box in _at_heights(layout, end.column, end.y, end.y))


def _at_heights(layout: GraphDrawing, column: int, top: float, bottom: float) -> list[NodeBox]:
    """The nodes of a column that begin between these heights, inclusive."""
    boxes = layout.in_column[column]
    first, end = bisect_left(boxes, top, key=lambda box: box.y), bisect_right(boxes, bottom, key=lambda box: box.y)
    return boxes[first:end]


def _over(layout: GraphDrawing, lanes: dict[int, _Lanes], overhead: _Lanes, a: NodeBox, b: NodeBox) -> str:
    """A route through the gutter to the next column, or above the columns between."""
    start, end = a.y + a.height / 2, b.y + b.height / 2
    if b.column == a.column + 1:
        x = _gutter(layout, lanes, a.column, start, end)
        way = 1 if end > start else -1
        if abs(end - start) < 2 * BEND:
            return f"M{a.right:.0f} {start:.0f}C{x:.0f} {start:.0f} {x:.0f} {end:.0f} {b.x:.0f} {end:.0f}"
        return f"M{a.right:.0f} {start:.0f}{_corner(x, start, way, a.right)}V{end - way * BEND:.0f}{_in(x, end, b.x)}"
    first = _gutter(layout, lanes, a.column, 0, start)
    second = _gutter(layout, lanes, b.column - 1, 0, end)
    y = 4 + 4 * overhead.claim(first, second) % (GUTTER / 2)
    return (
        f"M{a.right:.0f} {start:.0f}{_corner(first, start, -1, a.right)}V{y + BEND:.0f}"
        f"Q{first:.0f} {y:.0f} {first + BEND:.0f} {y:.0f}H{second - BEND:.0f}"
        f"Q{second:.0f} {y:.0f} {second:.0f} {y + BEND:.0f}V{end - BEND:.0f}{_in(second, end, b.x)}"
    )


def _gutter(layout: GraphDrawing, lanes: dict[int, _Lanes], column: int, top: float, bottom: float) -> float:
    lane = lanes[column].claim(top, bottom)
    return layout.columns[column][1] + NEAR + (lane * LANE) % (GUTTER - 2 * NEAR)


def _corner(x: float, y: float, way: int, start: float) -> str:
    """From a node's side to a vertical lane, up or down."""
    side = 1 if x > start else -1
    return f"H{x - side * BEND:.0f}Q{x:.0f} {y:.0f} {x:.0f} {y + way * BEND:.0f}"


def _in(x: float, y: float, end: float) -> str:
    """From a vertical lane to a node's side."""
    side = 1 if end > x else -1
    return f"Q{x:.0f} {y:.0f} {x + side * BEND:.0f} {y:.0f}H{end:.0f}"
