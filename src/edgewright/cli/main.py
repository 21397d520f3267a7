"""The group of verbs, and the one place where our errors become a sentence and an exit status."""

from __future__ import annotations

import click

from ..errors import EdgewrightError
from .boards import boards
from .compile import compile_
from .csdf import csdf
from .hal import hal
from .inspect import inspect
from .layout import layout
from .plan import plan
from .run import run
from .sample import sample


class Friendly(click.Group):
    """Our own errors become one sentence on stderr and status 1; anything else is a bug and keeps its trace."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except EdgewrightError as error:
            notes: list[str] = getattr(error, "__notes__", [])
            raise click.ClickException(" ".join([str(error), *(f"({note})" for note in notes)])) from error


@click.group(cls=Friendly, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="edgewright")
def main() -> None:
    """Runs trained CNNs on small hardware in the least memory, with proof."""


for verb in (inspect, plan, compile_, run, csdf, layout, hal, boards, sample):
    main.add_command(verb)
