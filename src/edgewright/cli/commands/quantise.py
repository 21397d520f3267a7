"""The options of `edgewright quantise`."""

from __future__ import annotations

from typing import Any

import click

from ..options import IN_FILE, json_option, shape_option
from ..outputs import OutFile, Verb


@click.command(cls=Verb)
@click.argument("model", type=IN_FILE)
@click.option(
    "--data",
    type=IN_FILE,
    required=True,
    metavar="X.NPZ",
    help="Samples as the model takes them: arrays of the inputs' names, or x; labels as y.",
)
@click.option("-o", "--output", type=OutFile(), help="The int8 model.  [default: MODEL's name with -int8.onnx]")
@click.option(
    "--samples",
    type=click.IntRange(1, 10**6),
    default=128,
    show_default=True,
    help="The most samples that ranges are taken from; at most half of the data.",
)
@shape_option
@json_option
def quantise(**given: Any) -> None:
    """MODEL (.onnx or .tflite, float32) in int8, with ranges of its values from samples.

    Says the accuracy before and after, on samples that no range comes from.
    """
    from ..quantise import quantise

    quantise(**given)
