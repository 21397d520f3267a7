"""A front of a few networks for one task, as a search writes it, with the file of a design flow that begins there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources

import onnx

from .builder import ModelBuilder
from .quantise import quantise

BOARD = "nucleo-f446re"
# Channels of the first layer, layers, and an accuracy that is an example: nobody trained these networks.
SIZES = {"least": (4, 1, 0.71), "small": (6, 2, 0.84), "middle": (10, 3, 0.90), "large": (16, 4, 0.93)}


def activity_network(name: str) -> onnx.ModelProto:
    """A classifier of windows of 96 moments of an accelerometer, in int8."""
    channels, depth, _ = SIZES[name]
    net = ModelBuilder(f"activity_{name}")
    x = net.relu(net.conv(net.input(1, 3, 96, 1), channels, (5, 1), name="first"))
    for number in range(1, depth):
        x = net.relu(net.depthwise(x, (3, 1), (2, 1), name=f"depthwise{number}"))
        x = net.relu(net.conv(x, 2 * channels, name=f"pointwise{number}"))
    return quantise(net.model(net.classifier(x, 5, name="classes")))


def activity_flow() -> Mapping[str, str | bytes]:
    """A design flow from a front of four networks to a firmware that switches; int8."""
    models = {f"models/{name}.onnx": activity_network(name).SerializeToString(deterministic=True) for name in SIZES}
    flow = resources.files(__package__) / "app_files" / "activity_flow.toml"
    return {"flow.toml": flow.read_text(encoding="utf-8"), "front.json": _front(), **models}


def _front() -> str:
    """The front's file. A flow replaces the figures other than accuracies by those of its board."""
    points = [
        {
            "name": name,
            "accuracy": accuracy,
            "macro_f1": accuracy,
            "ram_bytes": 160 * channels,
            "flash_bytes": 500 * depth * channels,
            "instructions": 9000 * depth * channels,
            "macs": 1500 * depth * channels,
            "latency_s": 5e-5 * depth * channels,
            "throughput": 2e4 / (depth * channels),
            "model": f"models/{name}.onnx",
            "manner": "whole",
            "command": f"edgewright compile models/{name}.onnx --board {BOARD} --quantised-input --quantised-output",
        }
        for name, (channels, depth, accuracy) in SIZES.items()
    ]
    front = {
        "format": "edgewright-front-1",
        "task": "activity",
        "digest": "example",
        "seed": 1,
        "board": BOARD,
        "metric": "accuracy",
        "measures": ["accuracy", "ram_bytes", "latency_s"],
        "classes": ["lie", "sit", "stand", "walk", "run"],
        "points": points,
    }
    return json.dumps(front, indent=1) + "\n"
