"""`edgewright csdf`: dataflow graphs of CNNs or from files, with their throughput and buffer sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from math import isnan
from pathlib import Path

import click

from .. import text
from ..dataflow.analysis import (
    QUICK,
    GraphAnalysis,
    analyse,
    analysis_to_dict,
    bounded_front,
    front_to_list,
    usual_weight,
)
from ..dataflow.buffers.schedule import Weight
from ..dataflow.checks.consistency import mismatch, repetitions
from ..dataflow.formats.dot import dot
from ..dataflow.formats.sdf3_text import sdf3
from ..dataflow.formats.text import to_json
from ..dataflow.graph import Graph, check_times
from ..dataflow.throughput.pareto import EFFORT, Pareto
from ..dataflow.throughput.selftimed import Firing, first_firings
from ..errors import EdgewrightError, ModelError, Unsupported
from ..files import write_together
from ..network import Shape
from ..report.dataflow_page import dataflow_page
from ..report.gantt import gantt_svg
from ..report.pareto_plot import pareto_svg
from .common import console, print_json, print_notes, print_written, shown, working
from .csdf_graph import Conversion, Subject, subject
from .csdf_tables import actors_table, channels_table, findings_table, front_line, front_table, graph_line

PER_SECOND = EFFORT // 60  # search effort per second, roughly


@dataclass(frozen=True, slots=True)
class CsdfOptions:
    """The options of `edgewright csdf`, as parsed."""

    source: Path
    asked: bool
    asked_front: bool
    sdf3_file: Path | None
    dot_file: Path | None
    page: Path | None
    gantt: Path | None
    plot: Path | None
    iterations: int
    in_bytes: bool | None
    limit: float | None
    shapes: dict[str, Shape]
    as_json: bool
    sdf: bool
    rule: str | None
    elements: bool
    self_loops: bool
    mapping: Path | None
    times: Path | None

    @property
    def conversion(self) -> Conversion:
        """How to convert a model to a graph."""
        return Conversion(self.sdf, self.rule, self.elements, self.self_loops, self.mapping, self.times, self.shapes)


def csdf(options: CsdfOptions) -> None:
    about = subject(options.source, options.conversion)
    weight: Weight = (
        usual_weight(about.graph) if options.in_bytes is None else "bytes" if options.in_bytes else "tokens"
    )
    wants_front = options.asked_front or options.plot is not None
    if wants_front:
        _check_times(about.graph)
    analysis = _analysed(about.graph, weight, options.limit) if options.asked or options.page or options.gantt else None
    is_stuck = analysis is not None and not analysis.is_live
    front = _front(about.graph, weight, options.limit) if wants_front and not is_stuck else None
    files: dict[Path, str | bytes] = {}

    @cache
    def drawn() -> tuple[Firing, ...]:
        assert analysis is not None
        return _firings(analysis, options.iterations)

    if options.sdf3_file:
        files[options.sdf3_file] = sdf3(about.graph)
    if options.dot_file:
        files[options.dot_file] = dot(about.graph)
    if options.gantt and analysis and analysis.is_live:
        files[options.gantt] = _gantt(analysis, drawn(), about.unit)
    if options.plot and front:
        files[options.plot] = pareto_svg(front, weight, unit=about.unit)
    if options.page and analysis:
        files[options.page] = _page(analysis, drawn, front, about.unit)
    write_together(files)
    results = _Results(about, weight, analysis if options.asked else None, front if options.asked_front else None)
    if options.as_json:
        results.print_json()
    else:
        results.print_tables(files)
    if analysis and analysis.trouble:
        raise ModelError(analysis.trouble)


@dataclass(frozen=True)
class _Results:
    """The results to print."""

    about: Subject
    weight: Weight
    analysis: GraphAnalysis | None
    front: Pareto | None

    def print_json(self) -> None:
        if self.analysis is None and self.front is None:
            print_json(_graph_json(self.about.graph))
            return
        points = front_to_list(self.front, self.weight) if self.front else None
        if self.analysis is None:
            print_json(points)
        else:
            more = {} if self.front is None else {"pareto": points, "pareto_complete": self.front.complete}
            print_json({**analysis_to_dict(self.analysis), "time_unit": self.about.unit or None, **more})
        if self.front and not self.front.complete:
            click.echo(front_line(self.front, self.weight), err=True)

    def print_tables(self, written: Iterable[Path]) -> None:
        graph, unit, analysis = self.about.graph, self.about.unit, self.analysis
        if analysis is not None and not analysis.is_live:
            return
        wrong = mismatch(graph)
        firings = {} if wrong else repetitions(graph)
        if analysis is not None or self.front is None:
            console.print(actors_table(graph, firings, unit))
            sizes = analysis.buffers.capacities if analysis and analysis.buffers else None
            console.print(channels_table(graph, sizes))
        console.print(graph_line(graph, firings))
        if wrong:
            console.print(shown(wrong), style="yellow")
        if analysis is not None:
            console.print(findings_table(analysis, unit))
        if self.front is not None:
            if self.front.points:
                console.print(front_table(self.front, unit))
            console.print(front_line(self.front, self.weight), style="green" if self.front.complete else "yellow")
        print_notes((*self._unit_note(), *self.about.notes, *(analysis.notes if analysis else ())))
        print_written(written)

    def _unit_note(self) -> Iterator[str]:
        if self.about.unit == "MACs":
            yield "time counts multiply-accumulates (elements where a layer multiplies nothing); --times brings others"


def _graph_json(graph: Graph) -> dict[str, object]:
    """The graph in the JSON format that can be read again, with its repetition vector."""
    firings = None if mismatch(graph) else dict(repetitions(graph))
    return {**to_json(graph), "kind": "sdf" if graph.is_sdf else "csdf", "repetitions": firings}


def _check_times(graph: Graph) -> None:
    try:
        check_times(graph)
    except ModelError as error:
        error.add_note("executionTime in SDF3, 'times' in JSON")
        raise


def _analysed(graph: Graph, weight: Weight, limit: float | None) -> GraphAnalysis:
    with working(f"analysing {text.printable(graph.name)}"):
        return analyse(graph, weight, _effort(limit, QUICK))


def _front(graph: Graph, weight: Weight, limit: float | None) -> Pareto:
    with working("looking for trade-offs between size and period"):
        return bounded_front(graph, weight, _effort(limit, EFFORT))


def _effort(limit: float | None, usual: int) -> int:
    return usual if limit is None or isnan(limit) else int(limit * PER_SECOND)


def _firings(analysis: GraphAnalysis, iterations: int) -> tuple[Firing, ...]:
    """The first firings within the smallest buffers; in graphs without times each firing takes one step."""
    if analysis.buffers is None:
        raise Unsupported(f"no firings to draw: {'; '.join(analysis.notes)}")
    with working("running the graph"):
        return first_firings(_timed(analysis.graph), analysis.buffers.capacities, iterations)


def _timed(graph: Graph) -> Graph:
    if graph.has_times:
        return graph
    actors = (replace(actor, times=(1,) * (actor.initial_phases + actor.phases)) for actor in graph.actors)
    return replace(graph, actors=tuple(actors))


def _gantt(analysis: GraphAnalysis, firings: tuple[Firing, ...], unit: str) -> str:
    return gantt_svg(analysis.graph, firings, analysis.repetitions, unit=unit if analysis.graph.has_times else "steps")


def _page(analysis: GraphAnalysis, drawn: Callable[[], tuple[Firing, ...]], front: Pareto | None, unit: str) -> str:
    firings: tuple[Firing, ...] = ()
    if analysis.is_live:
        try:
            firings = drawn()
        except EdgewrightError as error:  # write the page without this picture
            analysis = replace(analysis, notes=(*analysis.notes, str(error)))
    return dataflow_page(analysis, firings=firings, front=front, unit=unit)
