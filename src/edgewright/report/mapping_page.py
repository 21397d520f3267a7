"""The page of a mapping: utilisation, layers of each stage, and the distance to the upper bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from markupsafe import Markup

from .. import text
from ..dataflow.throughput.selftimed import Firing
from ..mapping.answer import MappingAnswer
from ..mapping.board_mapping import MappedStage
from ..mapping.timed_graph import frames_over_time, slot_bytes
from ..platform.profile import TimeOrigin
from ..program.deployment import OUTSIDE
from .charts import FOOT, LEFT, RIGHT, TOP, Axis, Card, ChartPoint, asset, dots, grid, html_page, opening
from .gantt import gantt_svg

FRAMES = 12  # in the Gantt chart
SHOWN = 3  # parts of a stage listed by name


@dataclass(frozen=True, slots=True)
class MappedStageRow:
    title: str
    executor: str
    layers: str
    milliseconds: str
    share: float  # of the time, 0..1
    measured: str
    is_bottleneck: bool


@dataclass(frozen=True, slots=True)
class FifoRow:
    tensor: str
    source: str
    readers: str
    slots: int
    slot_bytes: int


@dataclass(frozen=True, slots=True)
class LayerRow:
    layer: str
    stage: str
    milliseconds: str
    share: float  # of the longest layer, 0..1


def mapping_page(
    answer: MappingAnswer,
    front: Sequence[MappingAnswer] = (),
    measured: float | None = None,
    measured_shares: Sequence[float] = (),
) -> str:
    """A self-contained HTML document without a script; includes measurements if the mapping was run."""
    mapping = answer.mapping
    return html_page(
        "mapping.html",
        mapping.problem.name,
        asset("page.css") + asset("charts.css") + asset("dataflow.css"),
        about=" · ".join(
            (
                *((text.printable(mapping.problem.board),) if mapping.problem.board else ()),
                text.plural(len(mapping.stages), "stage"),
                text.plural(sum(mapping.busy.values()), "busy processor"),
                text.plural(len(mapping.problem.layers), "layer"),
            )
        ),
        cards=tuple(cards(answer, measured)),
        bottleneck=bottleneck(answer),
        notes=[text.printable(note) for note in mapping.problem.notes],
        gantt=Markup(_gantt(answer)),
        rows=tuple(_rows(answer, measured_shares)),
        is_measured=bool(measured_shares),
        layers=tuple(_layer_rows(answer)),
        times=mapping.problem.origin.value,
        fifos=tuple(_fifo_rows(answer)),
        front=front,
        plot=Markup("".join(_front_plot(front, answer))) if front else "",
    )


def cards(answer: MappingAnswer, measured: float | None) -> Iterator[Card]:
    origin, is_optimal = answer.mapping.problem.origin, answer.mapping.optimal
    is_measured = origin is TimeOrigin.MEASURED
    proof = "no pipeline is faster by these times" if is_optimal else "the best found"
    told = "predicted from measured times" if is_measured else origin.value
    yield Card("Throughput", f"{answer.throughput:.2f} frames/s", f"{told}; {proof}", is_optimal and is_measured)
    if measured is not None:
        difference = measured / answer.throughput - 1
        yield Card("Measured", f"{measured:.2f} frames/s", f"{difference:+.1%} of what was predicted")
    yield Card("Bound", f"{answer.bound:.2f} frames/s", f"by these times no mapping exceeds it; gap {answer.gap:.1%}")
    latency = "of a frame, when frames come without pause"
    told = "" if is_measured else f", {origin.value}"
    yield Card("Latency", f"{answer.latency * 1e3:.2f} ms", latency + told)
    yield Card("Memory", text.rounded_size(answer.memory_bytes), "arenas (estimated) and FIFOs, without weights")
    if answer.energy is not None:
        yield Card("Energy", f"{answer.energy:.3g} J", "a frame: an estimate from the board's power")


def bottleneck(answer: MappingAnswer) -> str:
    """The bottleneck of the pipeline, in a sentence."""
    mapping = answer.mapping
    stage = mapping.slowest
    if answer.waits:
        return (
            f"Parts of one worker wait for others: the busiest works {stage.period * 1e3:.2f} ms a frame, and a frame "
            f"comes every {answer.timing.period * 1e3:.2f} ms."
        )
    name = stage_title(mapping.stages.index(stage), stage)
    slow = max(stage.layers, key=lambda layer: stage.execution.seconds[layer])
    share = stage.execution.seconds[slow] / (sum(stage.seconds) or 1.0)
    layer = text.printable(mapping.problem.layers[slow])
    return f"{name} sets the pace, and in it layer '{layer}', which takes {share:.0%} of its time."


def stage_title(number: int, stage: MappedStage) -> str:
    """The title of a stage: its number and its processors."""
    times = f" ×{stage.replicas}" if stage.replicas > 1 else ""
    lanes = f", {stage.execution.lanes} lanes" if stage.execution.lanes > 1 else ""
    return text.printable(f"{number + 1} · {stage.execution.pool}{times}{lanes}")


def _executor(stage: MappedStage) -> str:
    driver = stage.execution.driver
    return stage.execution.executor + (f", driven by {driver}" if driver else "")


def _gantt(answer: MappingAnswer) -> str:
    mapping = answer.mapping
    graph, run, unit = frames_over_time(mapping, answer.timing, FRAMES)
    titles = {graph.actors[i].name: stage_title(i, stage) for i, stage in enumerate(mapping.stages)}
    actors = tuple(
        replace(actor, name=titles[actor.name], note=_layers(answer, mapping.stages[i]))
        for i, actor in enumerate(graph.actors)
    )
    named = replace(graph, actors=actors, channels=())
    scale, name = (1e6, "µs") if mapping.load_period < 0.05 else (1e3, "ms")
    firings = [
        Firing(titles[one.actor], one.index, _rounded(one.start, unit * scale), _rounded(one.end, unit * scale))
        for one in run.firings
    ]
    phases = {actor.name: actor.phases for actor in actors}
    return gantt_svg(named, firings, phases, unit=name, standalone=False)


def _rounded(value: Fraction, unit: float) -> Fraction:
    return Fraction(round(float(value) * unit))


def _layers(answer: MappingAnswer, stage: MappedStage) -> str:
    names = answer.mapping.problem.layers
    shown = [
        text.printable(names[part[0]] if len(part) == 1 else f"{names[part[0]]} … {names[part[-1]]} ({len(part)})")
        for part in stage.parts[:SHOWN]
    ]
    left = len(stage.parts) - len(shown)
    return " | ".join([*shown, f"… {text.plural(left, 'more part')}"] if left else shown)


def _fifo_rows(answer: MappingAnswer) -> Iterator[FifoRow]:
    for fifo in answer.timing.fifos:
        source, *readers = ("outside" if part == OUTSIDE else answer.mapping.label(part) for part in fifo.ends)
        tensor, size = text.printable(fifo.what.tensor), slot_bytes(answer.mapping, fifo)
        yield FifoRow(tensor, source, ", ".join(readers), fifo.slots, size)


def _layer_rows(answer: MappingAnswer) -> Iterator[LayerRow]:
    """All layers in network order, with the time of each in its stage."""
    names, homes = answer.mapping.problem.layers, dict[int, tuple[str, float]]()
    for number, stage in enumerate(answer.mapping.stages):
        homes |= {layer: (stage_title(number, stage), stage.execution.seconds[layer]) for layer in stage.layers}
    most = max((seconds for _, seconds in homes.values()), default=0.0) or 1.0
    for layer, (title, seconds) in sorted(homes.items()):
        yield LayerRow(text.printable(names[layer]), title, text.three_digits(1e3 * seconds), seconds / most)


def _rows(answer: MappingAnswer, measured: Sequence[float]) -> Iterator[MappedStageRow]:
    for number, (stage, share) in enumerate(zip(answer.mapping.stages, answer.utilisation, strict=True)):
        yield MappedStageRow(
            stage_title(number, stage),
            text.printable(_executor(stage)),
            _layers(answer, stage),
            f"{sum(stage.seconds) * 1e3:.3f}",
            share,
            f"{measured[number]:.0%}" if number < len(measured) else "",
            stage is answer.mapping.slowest and not answer.waits,
        )


def _front_plot(
    front: Sequence[MappingAnswer], chosen: MappingAnswer, width: int = 860, height: int = 400
) -> Iterator[str]:
    """Throughput over latency; larger points need more memory."""
    across = Axis(0.0, 1.06 * max(one.latency for one in front) * 1e3, LEFT, width - RIGHT)
    up = Axis(0.0, 1.08 * max(one.throughput for one in front), height - FOOT, TOP)
    most = max(one.memory_bytes for one in front) or 1
    yield from opening("front", width, height, "throughput against latency and memory", False)
    yield from grid(across, up, ("latency, ms", "frames a second"))
    points = (
        ChartPoint(
            across.at(one.latency * 1e3),
            up.at(one.throughput),
            f"{one.throughput:.2f} frames/s\n{one.latency * 1e3:.2f} ms\n{text.size(one.memory_bytes)}",
            style="point" if one.throughput == chosen.throughput else "point open",
            radius=3 + 6 * one.memory_bytes / most,
        )
        for one in front
    )
    yield from dots(points, across.end)
    yield "</svg>"
