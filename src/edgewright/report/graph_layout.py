"""The layout of a network's drawing: ranks from top to bottom, stages kept together, long drawings in columns.

Stages are ranked by their dependencies, and so are the layers inside a stage. Ranks are stacked; a full column
continues at the top of the next one. Drawing nodes and routing edges is left to others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from ..lazy import lazy_module
from ..network import Network
from ..program import Plan

nx = lazy_module("networkx")

GUTTER = 34.0  # px between columns, for edges that change columns and skip connections
FRAME = 9.0  # px from a stage's frame to its nodes
TITLE = 15.0  # px above the nodes of a frame, for its title


@dataclass(frozen=True, slots=True)
class NodeSize:
    """The size of nodes and the distances between them, in px."""

    width: float
    height: float
    across: float
    down: float


ROOMY = NodeSize(164, 32, 12, 14)
DENSE = NodeSize(128, 19, 7, 9)  # one line to a node
MOST_ROOMY = 72  # layers


@dataclass(frozen=True, slots=True)
class NodeBox:
    x: float
    y: float
    width: float
    height: float
    column: int

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height


@dataclass(frozen=True, slots=True)
class StageFrame:
    """The part of a stage that lies in one column."""

    stage: int
    box: NodeBox
    opens: bool  # the stage begins in this column
    closes: bool  # the stage ends in this column


@dataclass(frozen=True)
class GraphDrawing:
    size: NodeSize
    nodes: Mapping[str, NodeBox]  # layers and inputs by their names
    frames: tuple[StageFrame, ...]
    columns: tuple[tuple[float, float], ...]  # left and right edge, px
    width: float
    height: float

    @cached_property
    def in_column(self) -> Mapping[int, list[NodeBox]]:
        """The nodes of each column, from top to bottom."""
        boxes: dict[int, list[NodeBox]] = {}
        for box in sorted(self.nodes.values(), key=lambda box: box.y):
            boxes.setdefault(box.column, []).append(box)
        return boxes


@dataclass(frozen=True, slots=True)
class _Row:
    """Nodes side by side. A `tied` row stays in the column of the row above."""

    nodes: tuple[tuple[str, float], ...]  # with the offset of each from the middle of the row
    tied: bool
    above: float  # px kept free above
    below: float


def node_name(tensor: str) -> str:
    """The node of a network input, named so that no layer can have the same name."""
    return f"\0{tensor}"


def homes(plan: Plan) -> Mapping[str, int]:
    """The stage in which each layer is drawn; a free layer is drawn with the stage that surrounds it."""
    network = plan.network
    stages = {name: at for at, stage in enumerate(plan.program.stages) for name in stage.layers}
    ready: dict[str, int] = {}  # the stage after which each tensor is complete
    for layer in network.layers:
        before = max((ready.get(name, -1) for name in network.activations(layer)), default=-1)
        ready[layer.output] = stages.get(layer.name, before)
    wanted: dict[str, int] = {}  # the first stage that reads each tensor
    for layer in reversed(network.layers):
        at = stages.get(layer.name, wanted.get(layer.output, len(plan.program.stages)))
        for name in network.activations(layer):
            wanted[name] = min(wanted.get(name, at), at)
    for layer in network.layers:
        if layer.name not in stages and ready[layer.output] == wanted.get(layer.output):
            stages[layer.name] = ready[layer.output]
    return stages


def wiring(network: Network) -> Iterator[tuple[str, str]]:
    """The edges, from node to node."""
    for layer in network.layers:
        for name in network.activations(layer):
            maker = network.producers.get(name)
            yield (maker.name if maker else node_name(name)), layer.name


def place(plan: Plan, widest: float) -> GraphDrawing:
    """The drawing in columns of similar height that fit `widest` px."""
    size = ROOMY if len(plan.network.layers) <= MOST_ROOMY else DENSE
    stage_of = homes(plan)
    rows = list(_rows(plan.network, stage_of, size))
    tallest = 17 * (ROOMY.height + ROOMY.down)
    while True:
        layout = _stack(_columns(rows, size, tallest), stage_of, size)
        if layout.width <= widest or len(layout.columns) == 1:
            return layout
        tallest *= 1.15


def _rows(network: Network, stage_of: Mapping[str, int], size: NodeSize) -> Iterator[_Row]:
    """All nodes in rows from top to bottom: by the rank of their stage, then by their rank in it."""
    edges = list(wiring(network))
    nodes = [*map(node_name, network.inputs), *network.by_name]
    group = {node: f"stage {stage_of[node]}" if node in stage_of else node for node in nodes}
    members: dict[str, list[str]] = {}
    for node in nodes:
        members.setdefault(group[node], []).append(node)
    ranks = _ranks(members, ((group[a], group[b]) for a, b in edges))
    within: dict[str, list[tuple[str, str]]] = {name: [] for name in members}
    for a, b in edges:
        if group[a] == group[b]:
            within[group[a]].append((a, b))
    inner = {name: _ranks(part, within[name]) for name, part in members.items()}
    for rank in ranks:
        yield from _side_by_side([inner[name] for name in rank], size)


def _ranks(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """The nodes by their longest distance from a source; within a rank, in the given order."""
    graph = nx.DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from((a, b) for a, b in edges if a != b)
    place = {node: at for at, node in enumerate(graph)}
    return [sorted(rank, key=place.__getitem__) for rank in nx.topological_generations(graph)]


def _side_by_side(groups: Sequence[list[list[str]]], size: NodeSize) -> Iterator[_Row]:
    """The rows of groups that are placed side by side, with space above and below frames."""
    spans = [max(map(len, ranks)) * (size.width + size.across) + 2 * FRAME * _is_framed(ranks) for ranks in groups]
    framed = any(map(_is_framed, groups))
    height = max(map(len, groups))
    for level in range(height):
        nodes = []
        left = -sum(spans) / 2
        for ranks, span in zip(groups, spans, strict=True):
            names = ranks[level] if level < len(ranks) else []
            first = left + span / 2 - (len(names) - 1) / 2 * (size.width + size.across)
            nodes += [(name, first + i * (size.width + size.across)) for i, name in enumerate(names)]
            left += span
        above = TITLE + FRAME if framed and level == 0 else 0.0
        below = FRAME if framed and level == height - 1 else 0.0
        yield _Row(tuple(nodes), level > 0 and len(groups) > 1, above, below)


def _is_framed(ranks: Sequence[Sequence[str]]) -> bool:
    return sum(map(len, ranks)) > 1


def _columns(rows: Sequence[_Row], size: NodeSize, tallest: float) -> list[list[_Row]]:
    """Distributes the rows over columns of similar height, about `tallest` at most; tied rows stay together."""
    step = size.height + size.down
    total = sum(row.above + step + row.below for row in rows)
    target = total / max(1, -(-total // tallest))
    columns: list[list[_Row]] = [[]]
    filled = 0.0
    for row in rows:
        need = row.above + step + row.below
        if columns[-1] and filled + need / 2 > target * len(columns) and not row.tied:
            columns.append([])
        columns[-1].append(row)
        filled += need
    return columns


def _stack(columns: Sequence[Sequence[_Row]], stage_of: Mapping[str, int], size: NodeSize) -> GraphDrawing:
    """The position of every node, and the frames of the stages."""
    nodes: dict[str, NodeBox] = {}
    spans: list[tuple[float, float]] = []
    left, lowest = GUTTER, 0.0
    for at, rows in enumerate(columns):
        half = max((abs(x) for row in rows for _, x in row.nodes), default=0.0) + size.width / 2 + FRAME
        y = GUTTER / 2 + (TITLE + FRAME if at and rows and not rows[0].above else 0)
        for row in rows:
            y += row.above
            for name, x in row.nodes:
                nodes[name] = NodeBox(left + half + x - size.width / 2, y, size.width, size.height, at)
            y += size.height + size.down + row.below
        spans.append((left, left + 2 * half))
        left += 2 * half + GUTTER
        lowest = max(lowest, y)
    frames = tuple(_frames(nodes, stage_of))
    return GraphDrawing(size, nodes, frames, tuple(spans), left, lowest + GUTTER / 2)


def _frames(nodes: Mapping[str, NodeBox], stage_of: Mapping[str, int]) -> Iterator[StageFrame]:
    """One frame for each column that contains part of a stage of several layers."""
    mine = sorted((stage_of[name], box.column, name) for name, box in nodes.items() if name in stage_of)
    for stage, group in groupby(mine, key=lambda entry: entry[0]):
        names = [(column, name) for _, column, name in group]
        if len(names) == 1:
            continue
        columns = sorted({column for column, _ in names})
        for column in columns:
            boxes = [nodes[name] for at, name in names if at == column]
            x, y = min(box.x for box in boxes) - FRAME, min(box.y for box in boxes) - TITLE - FRAME / 2
            right, bottom = max(box.right for box in boxes) + FRAME, max(box.bottom for box in boxes) + FRAME
            box = NodeBox(x, y, right - x, bottom - y, column)
            yield StageFrame(stage, box, column == columns[0], column == columns[-1])
