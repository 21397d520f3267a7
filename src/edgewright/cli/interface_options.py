"""Options about what goes in and comes out: integers as stored, or as the model file has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def interface_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Conversions at the model's ends that may be left to the caller."""
    for option in (
        click.option(
            "--quantised-output",
            is_flag=True,
            help="Give outputs as the integers that the model turns into real numbers at its end.",
        ),
        click.option(
            "--quantised-input",
            is_flag=True,
            help="Take inputs already quantised, where the model begins by quantising them.",
        ),
    ):
        command = option(command)
    return command
