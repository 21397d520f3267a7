"""The command group, and the one place where errors become a sentence and an exit status."""

from __future__ import annotations

import re
from errno import EPIPE
from importlib import import_module
from typing import Any

import click

from ..errors import EdgewrightError
from ..interrupts import Discarded, redeliver_interrupts
from ..text import abridged, printable_lines

ARGUMENTS = "edgewright.arguments"  # key of the click context that holds the whole command line

# American spellings of verbs, options and values are accepted; the help shows the British ones.
_WORD = re.compile(r"[A-Za-z]+")
_SAME = re.compile(r"(re|over|under|down|up|max|min)?siz(e|ed|er|es|ing)|prize|seize|capsize|error|vector|factor")
# American endings and the British ones, in words with at least three letters before the ending.
_ENDINGS = (
    (re.compile(r"(?<=\w{3})iz(?=(e|ed|er|ers|es|ing|ation|ations)$)"), "is"),
    (re.compile(r"(?<=\w{3})yz(?=(e|ed|er|ers|es|ing)$)"), "ys"),
    (re.compile(r"^(behavi|col|fav|neighb|lab|hon|flav|harb)or(?=(s|ed|ing|hood)?$)"), r"\1our"),
    (re.compile(r"^(cent|met|fib|lit)er(?=s?$)"), r"\1re"),
    (re.compile(r"^(label|model|cancel|travel|signal|level)(?=(ed|ing|er|ers)$)"), r"\1l"),
    (re.compile(r"^(catal|anal|dial)og(?=s?$)"), r"\1ogue"),
    (re.compile(r"^gray(?=(s|scale)?$)"), "grey"),
    (re.compile(r"^(lic|def|off)ense(?=s?$)"), r"\1ence"),
)


def british(token: str) -> str:
    """The token with every word of it in British spelling: `quantized-input` becomes `quantised-input`.

    >>> british("minimize"), british("analyze"), british("size")
    ('minimise', 'analyse', 'size')
    """
    return _WORD.sub(lambda match: _respelled(match[0]), token)


def _respelled(word: str) -> str:
    if _SAME.fullmatch(word):
        return word
    for ending, ours in _ENDINGS:
        word = ending.sub(ours, word)
    return word


# Each verb with its line in the list of verbs. Its code is loaded when it is called.
VERBS = {
    "adapt": "Plan scenarios that switch at run time, from APP.TOML.",
    "app": "Plan several networks in one memory, from APP.TOML.",
    "boards": "List the boards that --board knows by name.",
    "cluster": "Divide MODEL among several devices: memory, traffic, throughput.",
    "compile": "Compile MODEL to a C library with build files and a report.",
    "csdf": "Analyse the dataflow graph of a model or a file.",
    "flow": "Run the design flow from data or a model to verified firmware.",
    "hal": "Derive registers, a HAL and a driver from driver code.",
    "inspect": "Show what is in MODEL (.onnx or .tflite): layers, weights, MACs.",
    "layout": "Compute addresses for the buffers of a CSV file.",
    "map": "Map layers to processors: pipeline, replicas, lanes.",
    "plan": "Plan MODEL in the least RAM: order, addresses, proof or gap.",
    "profile": "Measure the time of each layer of MODEL on each kind of core.",
    "quantise": "Quantise MODEL to int8; report accuracy before and after.",
    "run": "Compile MODEL and run it once: outputs, instructions, RAM.",
    "sample": "Write a bundled model as an ONNX file, or list them.",
    "search": "Search networks for a board, from TASK.TOML.",
    "select": "Select the point of a front that best serves requirements.",
}
HOMES = {  # modules of the options, where named differently
    **dict.fromkeys(("compile", "csdf", "inspect", "plan", "profile", "run"), "models"),
    **dict.fromkeys(("boards", "layout", "sample"), "lists"),
}


class Interrupted(click.ClickException):
    """Ctrl-C, reported with the shells' exit status for it."""

    exit_code = 130


class Verbs(click.Group):
    """Verbs that are loaded when they are called; the list of verbs needs only a line for each.

    Our own errors become one sentence on stderr and status 1; anything else is a bug and keeps its trace.
    """

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        whole = tuple(args)
        context = super().make_context(info_name, args, parent, **extra)
        context.meta[ARGUMENTS] = whole
        return context

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return name, loaded(name) if name in VERBS else command, rest

    def invoke(self, ctx: click.Context) -> object:
        try:
            with redeliver_interrupts():
                return super().invoke(ctx)
        except EdgewrightError as error:
            notes: list[str] = getattr(error, "__notes__", [])
            sentence = " ".join([str(error), *(f"({note})" for note in notes)])
            raise click.ClickException(abridged(printable_lines(sentence))) from error
        except KeyboardInterrupt as interrupt:
            what = "; ".join(["interrupted", *getattr(interrupt, "__notes__", []), "nothing unfinished was written"])
            raise Interrupted(what) from None
        except Discarded:
            raise Interrupted("discarded; nothing unfinished was written") from None
        except OSError as error:  # errors of the operating system are not bugs; click handles closed pipes
            if error.errno in (None, EPIPE):
                raise
            what = "cannot go on" if error.filename is None else f"cannot use '{error.filename}'"
            raise click.ClickException(printable_lines(f"{what}: {error.strerror}")) from error


def loaded(verb: str) -> click.Command:
    """The verb with its options."""
    there = vars(import_module(f".commands.{HOMES.get(verb, verb)}", __package__)).values()
    return next(command for command in there if isinstance(command, click.Command) and command.name == verb)


@click.group(
    cls=Verbs,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "token_normalize_func": british,
    },
)
@click.version_option(package_name="edgewright")
def main() -> None:
    """Run trained CNNs on small hardware in the least memory, with proof."""


for name, help_text in VERBS.items():
    main.add_command(click.Command(name, short_help=help_text))
