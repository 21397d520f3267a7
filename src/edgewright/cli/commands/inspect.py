"""The options of `edgewright inspect`."""

from __future__ import annotations

from typing import Any

import click

from ..options import json_option, model_argument, shape_option


@click.command()
@model_argument
@shape_option
@click.option("--all", "everything", is_flag=True, help="Show every layer, however many.")
@json_option
def command(**given: Any) -> None:
    """What is in MODEL (.onnx or .tflite): layers, shapes, weights, MACs, what dominates memory."""
    from ..inspect import inspect

    inspect(**given)
