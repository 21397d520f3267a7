"""Mappings as tables for people and as JSON."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from .. import text
from ..mapping.answer import MappingAnswer
from ..mapping.measurement import MeasuredMapping
from ..mapping.timed_graph import slot_bytes
from ..platform.profile import TimeOrigin
from ..program.deployment import OUTSIDE
from ..text import shortened
from .common import shown, table

MOST_ROWS = 40


def answer_to_dict(answer: MappingAnswer) -> dict[str, Any]:
    """The answer as `--json` prints it."""
    mapping = answer.mapping
    layers = mapping.problem.layers
    return {
        "model": mapping.problem.name,
        "board": mapping.problem.board,
        "times": mapping.problem.origin.value,
        "method": mapping.method,
        "throughput": answer.throughput,
        "bound": answer.bound,
        "gap": answer.gap,
        "latency_s": answer.latency,
        "memory_bytes": answer.memory_bytes,
        "optimal": mapping.optimal,
        "energy_j": answer.energy,
        "bottleneck": f"stage{mapping.stages.index(mapping.slowest) + 1}",
        "actors": [
            {
                "name": f"stage{number}",
                "processor": stage.execution.pool,
                "driver": stage.execution.driver,
                "executor": stage.execution.executor,
                "lanes": stage.execution.lanes,
                "replicas": stage.replicas,
                "phases": [[layers[layer] for layer in part] for part in stage.parts],
                "seconds": list(stage.seconds),
                "utilisation": share,
            }
            for number, (stage, share) in enumerate(zip(mapping.stages, answer.utilisation, strict=True), 1)
        ],
        "channels": [
            {
                "tensor": fifo.what.tensor,
                "source": _part_name(answer, fifo.source),
                "readers": [_part_name(answer, part) for part in fifo.reading],
                "slots": fifo.slots,
                "bytes": mapping.problem.bytes_of[fifo.what.tensor],
            }
            for fifo in answer.timing.fifos
        ],
    }


def stages_table(answer: MappingAnswer) -> Table:
    mapping = answer.mapping
    layers = mapping.problem.layers
    title, numbers = (
        f"{shown(mapping.problem.name)} on {shown(mapping.problem.board or 'its processors')}",
        (">lanes", ">replicas", ">ms a frame", ">busy"),
    )
    made = table(title, "stage", "processor", "executor", "layers", *numbers)
    for number, (stage, share) in enumerate(zip(mapping.stages, answer.utilisation, strict=True), 1):
        driver = f", driven by {stage.execution.driver}" if stage.execution.driver else ""
        runs = "; ".join(_range([layers[layer] for layer in part]) for part in stage.parts[:4])
        more = f"; … {len(stage.parts) - 4} more" if len(stage.parts) > 4 else ""
        made.add_row(
            f"{number} ←" if stage is mapping.slowest and len(mapping.stages) > 1 and not answer.waits else str(number),
            shown(stage.execution.pool + driver),
            shown(stage.execution.executor),
            shown(runs + more),
            str(stage.execution.lanes),
            str(stage.replicas),
            f"{sum(stage.seconds) * 1e3:.3f}",
            f"{share:.0%}",
        )
    return made


def channels_table(answer: MappingAnswer) -> Table:
    made = table("FIFOs", "tensor", "from", "to", ">slots", ">bytes a slot")
    for fifo in answer.timing.fifos[:MOST_ROWS]:
        source, *readers = (_part_name(answer, end) or "outside" for end in fifo.ends)
        size = text.count(slot_bytes(answer.mapping, fifo))
        made.add_row(shown(fifo.what.tensor), source, ", ".join(readers), str(fifo.slots), size)
    if len(answer.timing.fifos) > MOST_ROWS:
        made.add_row(f"… {len(answer.timing.fifos) - MOST_ROWS} more; --json gives all")
    return made


def front_table(front: tuple[MappingAnswer, ...]) -> Table:
    numbers = (">frames/s", ">latency, ms", ">memory, B", ">busy processors")
    made = table("throughput against latency and memory", *numbers, "stages")
    for answer in front:
        stages = " → ".join(
            f"{stage.execution.pool}"
            + (f"×{stage.replicas}" if stage.replicas > 1 else "")
            + (f"/{stage.execution.lanes} lanes" if stage.execution.lanes > 1 else "")
            for stage in answer.mapping.stages
        )
        busy = sum(answer.mapping.busy.values())
        made.add_row(
            f"{answer.throughput:.2f}",
            f"{answer.latency * 1e3:.2f}",
            text.count(answer.memory_bytes),
            str(busy),
            shown(stages),
        )
    return made


def verdict(answer: MappingAnswer) -> str:
    """The figures of the mapping in a sentence or two."""
    mapping = answer.mapping
    proof = "no pipeline is faster by these times; " if mapping.optimal else ""
    origin = "" if mapping.problem.origin is TimeOrigin.MEASURED else f" {mapping.problem.origin.value}"
    words = (
        f"{answer.throughput:.2f} frames/s{origin} ({proof}bound {answer.bound:.2f}, gap {answer.gap:.1%}), "
        f"latency {answer.latency * 1e3:.2f} ms, arenas and FIFOs about {text.rounded_size(answer.memory_bytes)}"
    )
    if answer.energy is not None:
        words += f", about {answer.energy:.3g} J a frame (estimate)"
    if answer.waits:
        words += (
            f"; parts of one worker wait for others: its slowest works {mapping.load_period * 1e3:.3f} ms a frame, "
            f"the period is {answer.timing.period * 1e3:.3f} ms"
        )
    return words


def run_lines(answer: MappingAnswer, measured: MeasuredMapping) -> tuple[str, ...]:
    """Measured throughput beside the prediction, and beside onnxruntime."""
    ours = measured.ours
    rate = f"measured: {ours.frames_per_s:.2f} frames/s ({ours.frames_per_s / answer.throughput - 1:+.1%})"
    late = (
        f"latency {ours.latency_s * 1e3:.2f} ms ({ours.latency_s / answer.latency - 1:+.1%})" if answer.latency else ""
    )
    theirs = measured.onnxruntime
    if theirs is None:
        return (f"{rate}, {late}",)
    times = ours.frames_per_s / theirs.frames_per_s
    return (
        f"{rate}, {late}",
        f"onnxruntime on as many threads: {theirs.frames_per_s:.2f} frames/s; ours is {times:.2f} ×",
    )


def _range(names: list[str]) -> str:
    first, last = shortened(names[0], 24), shortened(names[-1], 24)
    return first if len(names) == 1 else f"{first} … {last} ({len(names)})"


def _part_name(answer: MappingAnswer, part: str) -> str:
    return "" if part == OUTSIDE else f"stage{answer.mapping.label(part)}"
