"""Sample models built by code: the papers' examples and well-known networks, with random weights."""

from edgewright.samples.catalogue import build, describe, names, quantised, write
from edgewright.samples.quantise import Form, example_inputs

__all__ = ["Form", "build", "describe", "example_inputs", "names", "quantised", "write"]
