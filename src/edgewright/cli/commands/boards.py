"""The options of `edgewright boards`."""

from __future__ import annotations

from typing import Any

import click

from ..options import json_option


@click.command()
@json_option
def command(**given: Any) -> None:
    """The boards that --board knows by name."""
    from ..boards import boards

    boards(**given)
