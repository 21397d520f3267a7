"""The graph that `edgewright csdf` analyses: read from a file, or converted from a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from ..dataflow.cnn.assignments import read_mapping, read_times
from ..dataflow.cnn.conversion import cnn_to_csdf, cnn_to_sdf
from ..dataflow.cnn.mapped import mapped_csdf
from ..dataflow.formats.reader import read_graph
from ..dataflow.graph import Graph
from ..files import read_file
from ..network import Network, Shape
from ..network.read import TFLITE_MARK
from .common import read_model, working

_GRAPHS, _MODELS = (".xml", ".json"), (".onnx", ".tflite")


@dataclass(frozen=True)
class Conversion:
    """How to convert a model to a graph; each field is named like its option."""

    sdf: bool = False
    rule: str | None = None
    elements: bool = False
    self_loops: bool = False
    mapping: Path | None = None
    times: Path | None = None
    shapes: Mapping[str, Shape] | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """The options that were given."""
        given = {
            "--sdf": self.sdf,
            "--rule": self.rule,
            "--elements": self.elements,
            "--self-loops": self.self_loops,
            "--mapping": self.mapping,
            "--times": self.times,
            "--shape": self.shapes,
        }
        return tuple(name for name, value in given.items() if value)

    def check(self) -> None:
        """Raises a usage error for options that contradict each other."""
        for alone in ("--sdf", "--mapping"):
            others = [one for one in self.options if one not in (alone, "--times", "--shape")]
            if alone in self.options and others:
                raise click.UsageError(f"{alone} says what the graph is like; it leaves nothing for {others[0]}")


@dataclass(frozen=True)
class Subject:
    """A graph, the unit of its times, and the assumptions made about the model."""

    graph: Graph
    unit: str = ""
    notes: tuple[str, ...] = ()


def subject(path: Path, conversion: Conversion) -> Subject:
    """The graph in a file, or the graph of the model in it."""
    conversion.check()
    if not is_graph(path):
        return _of_model(read_model(path, conversion.shapes or {}), conversion)
    if conversion.options:
        raise click.UsageError(f"{conversion.options[0]} is for models, and '{path}' is a graph already")
    with working("reading the graph"):
        return Subject(read_graph(path))


def is_graph(path: Path) -> bool:
    """Whether a file is a graph: by its suffix, else by its content (XML or JSON)."""
    suffix = path.suffix.lower()
    if suffix in (*_GRAPHS, *_MODELS):
        return suffix in _GRAPHS
    head = read_file(path, "give a model (.onnx, .tflite) or a graph (SDF3 XML, JSON)", most=1000)
    return head[4:8] != TFLITE_MARK and head.lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n\0")[:1] in (b"<", b"{", b"[")


def _of_model(network: Network, how: Conversion) -> Subject:
    times = read_times(how.times) if how.times else None
    with working("making the graph"):
        if how.mapping:
            graph = mapped_csdf(network, read_mapping(how.mapping), times=times)
        elif how.sdf:
            graph = cnn_to_sdf(network, serial=True, times=times)
        else:
            graph = cnn_to_csdf(
                network,
                reuse="self-loop" if how.self_loops else "window",
                tokens="elements" if how.elements else "rows",
                fold=how.rule == "B",
                times=times,
            )
    return Subject(graph, "" if times else "MACs", network.notes)
