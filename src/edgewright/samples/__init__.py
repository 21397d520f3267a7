"""Sample models built by code: the papers' examples and well-known networks, with random weights."""

from .applications import application_names, describe_application, write_application
from .catalogue import build, describe, names, quantised, write
from .quantise import Form, example_inputs

__all__ = [
    "Form", "application_names", "build", "describe", "describe_application", "example_inputs", "names",
    "quantised", "write", "write_application",
]  # fmt: skip
