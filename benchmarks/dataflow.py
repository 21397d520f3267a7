"""Exact dataflow analysis: seconds for the least buffers with their schedule, and for the throughput.

    python benchmarks/dataflow.py [graphs or models ...] [--json FILE]

Without arguments: a residual chain of 391 actors with 512 phases each and, when $EDGEWRIGHT_CORPUS is set, the CSDF
graphs of DenseNet-121 and Inception v1 and every graph of data/csdf from there. SDF3 and Kiter, which do the same for
small graphs, are not packaged anywhere and so are not measured.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

import edgewright
from edgewright.dataflow import Actor, Channel, Graph, Rates, cnn_to_csdf, minimum_buffers, period, read_graph

BLOCKS, ROWS = 130, 512
MODELS = ("densenet121", "light_inception_v1")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    arguments = parser.parse_args()
    rows = [measure(graph) for graph in graphs(arguments.files)]
    Console(width=120).print(table(rows))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


def graphs(given: list[Path]) -> list[Graph]:
    files, corpus = list(given), os.environ.get("EDGEWRIGHT_CORPUS")
    if not given and corpus:
        files = [Path(corpus) / "models" / f"{name}.onnx" for name in MODELS]
        files += sorted((Path(corpus) / "data" / "csdf").glob("*.xml"))
    return [*([] if given else [residual_chain(BLOCKS, ROWS)]), *(read(file) for file in files)]


def read(file: Path) -> Graph:
    if file.suffix in (".onnx", ".tflite"):
        return cnn_to_csdf(edgewright.read_model(file))
    return read_graph(file)


def residual_chain(blocks: int, rows: int) -> Graph:
    """An input and blocks of two 3x3 convolutions and an add, row by row: 1 + 3 * blocks actors."""
    one = Rates((1,) * rows)
    window = Rates((2, *(1,) * (rows - 2), 0))
    actors, channels = [Actor("in", rows, (1,) * rows)], []

    def joined(source: str, target: str, taken: Rates) -> None:
        channels.append(Channel(f"{source}->{target}", source, target, one, taken))

    last = "in"
    for i in range(blocks):
        names = [f"{kind}{i}" for kind in ("a", "b", "add")]
        actors += [Actor(name, rows, (1,) * rows) for name in names]
        joined(last, names[0], window)
        joined(names[0], names[1], window)
        joined(names[1], names[2], one)
        joined(last, names[2], one)
        last = names[2]
    channels += [Channel(f"{a.name} alone", a.name, a.name, one, one, tokens=1, token_bytes=0) for a in actors]
    return Graph("residual chain", tuple(actors), tuple(channels))


def measure(graph: Graph) -> dict[str, object]:
    print(f"{graph.name} …", file=sys.stderr)
    start = time.perf_counter()
    weight = "bytes" if any(channel.token_bytes == 0 for channel in graph.channels) else "tokens"
    least = minimum_buffers(graph, weight)
    sized = time.perf_counter()
    speed = period(graph)
    timed = time.perf_counter()
    return {
        "graph": graph.name,
        "actors": len(graph.actors),
        "channels": len(graph.channels),
        "phases": sum(actor.phases for actor in graph.actors),
        "least": least.size_bytes if weight == "bytes" else least.tokens,
        "unit": weight,
        "proven": least.is_optimal,
        "period": str(speed),
        "seconds_buffers": round(sized - start, 3),
        "seconds_period": round(timed - sized, 3),
    }


def table(rows: list[dict[str, object]]) -> Table:
    result = Table(title="Least buffers with a schedule, and throughput", title_justify="left")
    for heading in ("graph", "actors", "channels", "phases", "least buffers", "", "", "period"):
        result.add_column(heading, justify="left" if heading in ("graph", "") else "right")
    result.add_column("seconds:\nbuffers, period", justify="right")
    for row in rows:
        result.add_row(
            *(f"{row[key]:,}" if isinstance(row[key], int) else row[key] for key in ("graph", "actors", "channels")),
            f"{row['phases']:,}",
            f"{row['least']:,}",
            row["unit"],
            "proven" if row["proven"] else "not proven",
            row["period"],
            f"{row['seconds_buffers']:.2f} {row['seconds_period']:.2f}",
        )
    return result


if __name__ == "__main__":
    main()
