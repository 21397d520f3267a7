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
    help="Input samples in arrays named like the inputs, or x; labels in y.",
)
@click.option("-o", "--output", type=OutFile(), help="The int8 model.  [default: MODEL's name with -int8.onnx]")
@click.option(
    "--samples",
    type=click.IntRange(1, 10**6),
    default=128,
    show_default=True,
    help="Maximum number of samples for value ranges; at most half of the data is used.",
)
@shape_option
@json_option
def quantise(**given: Any) -> None:
    """Quantise MODEL (.onnx or .tflite, float32) to int8, with value ranges from samples.

    Reports the accuracy before and after, on samples that were not used for the ranges.
    """
    from ..quantise import quantise

    quantise(**given)
