"""A front of a few small int8 networks with random weights, as a search could have written it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx

from edgewright.search.architecture import CnnArchitecture, PlainBlock, SeparableBlock
from edgewright.search.front import DesignFront, DesignPoint, Measure
from edgewright.search.model import default_ranges, onnx_model

INPUT, CLASSES = (32, 1, 3), 4  # windows of 32 moments of an accelerometer


def architecture(channels: int, depth: int) -> CnnArchitecture:
    blocks = [PlainBlock(channels, (5, 1), pool=(2, 1))]
    blocks += [SeparableBlock(2 * channels, (3, 1), pool=(2, 1)) for _ in range(depth - 1)]
    return CnnArchitecture(INPUT, tuple(blocks), CLASSES)


SIZES = {"tiny": (4, 1, 0.7), "small": (6, 2, 0.8), "large": (16, 3, 0.9)}  # channels, depth, accuracy


def write_front(folder: Path, names: Sequence[str] = tuple(SIZES), board: str = "nucleo-f446re") -> DesignFront:
    """The front in the folder; its figures are guesses, which a flow replaces."""
    (folder / "models").mkdir(parents=True)
    points = []
    for name in names:
        channels, depth, accuracy = SIZES[name]
        made = architecture(channels, depth)
        onnx.save(onnx_model(made, ranges=default_ranges(made)), folder / f"models/{name}.onnx")
        points.append(
            DesignPoint(
                name=name,
                accuracy=accuracy,
                macro_f1=accuracy,
                ram_bytes=1000 * channels,
                flash_bytes=made.parameters,
                instructions=2 * made.macs,
                macs=made.macs,
                latency_s=made.macs / 1e8,
                throughput=1e8 / made.macs,
                architecture=made.text(),
                model=f"models/{name}.onnx",
                manner="whole",
                command=f"edgewright compile models/{name}.onnx --board {board} --plain",
            )
        )
    front = DesignFront(
        task="har",
        digest="0",
        seed=1,
        board=board,
        metric="accuracy",
        measures=(Measure.ACCURACY, Measure.RAM, Measure.INSTRUCTIONS),
        classes=("walk", "run", "sit", "stand"),
        points=tuple(points),
    )
    front.write(folder)
    return front
