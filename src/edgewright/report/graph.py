"""The network as a graph in SVG, each layer coloured by how its stage saves memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape

from .. import text
from ..network import Layer, Network, describe
from ..program import Plan
from ..program.techniques import Technique, layer_techniques, techniques
from .charts import asset, escaped
from .graph_edges import routes
from .graph_layout import ROOMY, GraphDrawing, NodeBox, StageFrame, node_name, place, wiring
from .occupancy import LayerWork, layer_work

LETTER = 6.0  # px, mean width of a character, rounded up
BOLD = 6.8  # px, character of an operator
SMALL = 6.1  # px, character of a shape or name
MOST_SKIPS = 90  # edges beside the nodes; if there are more, as in DenseNets, they are drawn faintly
LEGEND = 20.0  # px for a line of the legend


def network_graph_svg(
    plan: Plan,
    *,
    width: int = 1160,
    standalone: bool = True,
    light: bool = False,
    work: Mapping[str, LayerWork] | None = None,
) -> str:
    """The graph as an SVG element, about `width` px wide unless one column is wider.

    `standalone` includes style and background, which a page already has; `light` leaves out details of layers. `work`
    is the result of `layer_work`, if known already.
    """
    return "".join(_lines(plan, work or layer_work(plan), width, standalone, light))


def technique_style() -> str:
    """CSS rules with the colour of each technique's class."""
    return "".join(f".t-{one.name.lower()}{{--t:{one.colour}}}" for one in Technique)


def technique_class(technique: Technique) -> str:
    return f"t-{technique.name.lower()}"


def _lines(plan: Plan, work: Mapping[str, LayerWork], width: int, standalone: bool, light: bool) -> Iterator[str]:
    layout = place(plan, 1.1 * width)  # browsers scale the picture down to fit
    used = layer_techniques(plan)
    across = max(layout.width, 420.0)
    legend = list(_legend(used, across, layout.height))
    height = layout.height + LEGEND * len(legend) + 4
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="network-graph" viewBox="0 0 {across:.0f} {height:.0f}" '
        f'width="{across:.0f}" height="{height:.0f}" role="group" aria-label="graph of {escaped(plan.network.name)}">'
    )
    yield ARROW
    if standalone:
        yield f"<style>{asset('graph.css')}{technique_style()}</style>"
        yield '<rect class="paper" width="100%" height="100%" rx="6"/>'
    yield from _frames(plan, layout)
    yield from _edges(plan.network, layout)
    yield from _nodes(plan, work, layout, used, light)
    yield from (line for lines in legend for line in lines)
    yield "</svg>"


ARROW = (
    '<defs><marker id="arrow" viewBox="0 0 6 6" refX="5.5" refY="3" markerWidth="6" markerHeight="6" '
    'orient="auto"><path class="arrow" d="M0 0.5L6 3L0 5.5z"/></marker></defs>'
)


def _frames(plan: Plan, layout: GraphDrawing) -> Iterator[str]:
    """A frame around each stage of several layers; it notes when the stage continues in the next column."""
    stages, kinds = plan.program.stages, techniques(plan)
    for frame in layout.frames:
        stage, box = stages[frame.stage], frame.box
        kind = kinds[stage.name]
        yield f'<g class="frame {technique_class(kind)}">'
        yield f"<title>{escaped(f'stage {frame.stage}: {stage.name}')}</title>"
        yield _box(box, 7)
        label = f"{frame.stage} · {kind.label} · {text.plural(len(stage.layers), 'layer')}"
        title = label if frame.opens else f"{frame.stage} · continued"
        yield f'<text class="stage" x="{box.x + 7:.0f}" y="{box.y + 11.5:.1f}">{escape(title)}</text></g>'
        yield from _open_edges(frame)


def _open_edges(frame: StageFrame) -> Iterator[str]:
    """Opens the frame at edges where the stage continues in another column."""
    box = frame.box
    for y, is_edge in ((box.y, frame.opens), (box.bottom, frame.closes)):
        if not is_edge:
            yield f'<path class="seam" d="M{box.x + 8:.0f} {y:.1f}H{box.right - 8:.0f}"/>'


def _edges(network: Network, layout: GraphDrawing) -> Iterator[str]:
    edges = list(routes(layout, wiring(network)))
    skip = "edge skip" if sum(route.is_skip for route in edges) <= MOST_SKIPS else "edge skip faint"
    for route in edges:
        yield f'<path class="{skip if route.is_skip else "edge"}" d="{route.path}"/>'


def _nodes(
    plan: Plan, work: Mapping[str, LayerWork], layout: GraphDrawing, used: Mapping[str, Technique], light: bool
) -> Iterator[str]:
    network, live = plan.network, plan.live_bytes
    fullest = plan.program.stages[live.index(max(live))].layers if plan.program.stages else ()
    number = {name: at for at, stage in enumerate(plan.program.stages) for name in stage.layers}
    roomy = layout.size is ROOMY
    for name in network.inputs:
        box, tensor = layout.nodes[node_name(name)], network.tensors[name]
        told = f"{name}\ninput {tensor.dtype.value} {describe.shape(tensor.shape)}, {text.size(tensor.bytes)}"
        yield _node(box, "given", told, text.shortened(name, 22), describe.shape(tensor.shape), roomy)
    for layer in network.layers:
        kind = f"{technique_class(used[layer.name])}{' fullest' if layer.name in fullest else ''}"
        tensor, mine = network.tensors[layer.output], work.get(layer.name)
        told = _light_names(plan, layer) if light else _tooltip(plan, layer, used[layer.name], mine, number)
        again = f"+{100 * mine.again:.0f} %" if mine and mine.again >= 0.005 else ""
        letters = int((layout.size.width - 12) / BOLD) - len(again) - bool(again)
        operator = short_operator(network, layer)
        if len(operator) > letters:  # the shape below repeats the channels
            operator = text.shortened(operator.split(" → ")[0], letters)
        shape = describe.shape(tensor.shape)
        yield _node(layout.nodes[layer.name], kind, told, operator, shape, roomy, again, layer.name)


def _node(
    box: NodeBox, kind: str, told: str, first: str, second: str, roomy: bool, again: str = "", layer: str = ""
) -> str:
    """A box with one or two lines, and the share of recomputation to its right."""
    lines = [f'<g class="node {kind}" role="img"><title>{escape(text.printable_lines(told))}</title>{_box(box, 5)}']
    base = box.y + (13.5 if roomy else 13)
    lines.append(f'<text class="op" x="{box.x + 8:.0f}" y="{base:.1f}">{escaped(first)}</text>')
    if again:
        lines.append(f'<text class="again" x="{box.right - 6:.0f}" y="{base:.1f}">{again}</text>')
    if roomy:
        name = text.shortened(text.printable(layer), max(0, int((box.width - 14) / SMALL) - len(second) - 1))
        label = f"{second} {escape(name)}" if len(name) > 3 else second
        lines.append(f'<text class="shape" x="{box.x + 8:.0f}" y="{box.y + 26:.1f}">{label}</text>')
    return "".join([*lines, "</g>"])


def _tooltip(plan: Plan, layer: Layer, kind: Technique, work: LayerWork | None, number: Mapping[str, int]) -> str:
    """The tooltip of the layer, one fact per line."""
    network = plan.network
    tensor = network.tensors[layer.output]
    lines = [
        layer.name,
        describe.operator(layer.op, network.shapes(layer)),
        f"{tensor.dtype.value} {describe.shape(tensor.shape)}, {text.size(tensor.bytes)}",
    ]
    if work is None:
        return "\n".join([*lines, "costs nothing: its output lies where its inputs do"])
    lines.append(f"stage {number[layer.name]}, {kind.label}")
    lines.append(f"{text.count(work.macs)} MACs")
    lines.append(f"{text.percent(work.again, 1)} computed again" if work.again else "nothing computed twice")
    return "\n".join(lines)


def _light_names(plan: Plan, layer: Layer) -> str:
    tensor = plan.network.tensors[layer.output]
    return f"{layer.name}\n{text.size(tensor.bytes)}"


def short_operator(network: Network, layer: Layer) -> str:
    """The operator without its activation, abbreviated."""
    told = (
        describe.operator(layer.op, network.shapes(layer))
        .split(", ")[0]
        .split(" axis")[0]
        .split(" over axes")[0]
        .split(" [")[0]
    )
    return told.replace("Conv2d depthwise", "Depthwise").replace("Conv2d", "Conv").replace("Pool2d", "Pool")


def _legend(used: Mapping[str, Technique], across: float, top: float) -> Iterator[list[str]]:
    """The techniques that occur and their number of layers, wrapped to several lines."""
    x, y = 12.0, top + 4
    line: list[str] = []
    for kind in Technique:
        count = sum(one is kind for one in used.values())
        if not count:
            continue
        label = f"{kind.label} ({count})"
        wide = 30 + len(label) * LETTER
        if line and x + wide > across:
            yield line
            x, y, line = 12.0, y + LEGEND, []
        line.append(
            f'<g class="legend {technique_class(kind)}"><rect x="{x:.0f}" y="{y:.0f}" width="12" height="12" rx="2"/>'
            f'<text x="{x + 17:.0f}" y="{y + 10:.0f}">{label}</text></g>'
        )
        x += wide
    yield line


def _box(box: NodeBox, radius: int) -> str:
    return f'<rect x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" rx="{radius}"/>'
