"""Damaged files of every kind: taken or refused with one sentence, never a traceback, soon and in little memory."""

from __future__ import annotations

import os
from importlib import import_module

import click
import pytest

from edgewright.text import abridged
from tests.whole import damage_trials
from tests.whole.damage_cases import KINDS, draw_case
from tests.whole.damage_trials import examine, tried

THOROUGH = bool(os.environ.get("EDGEWRIGHT_THOROUGH"))
FEW = (*KINDS, *("ONNX model", "TFLite model") * 3)

linux = pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="needs Linux, which tells the memory")


@linux
def test_damaged_files() -> None:
    drawn = [(seed, ()) for seed in range(3000)] if THOROUGH else [(seed, (kind,)) for seed, kind in enumerate(FEW)]
    verdicts = [examine(seed, kinds=kinds) for seed, kinds in drawn]
    assert [verdict for verdict in verdicts if verdict.trouble] == []
    assert {verdict.outcome for verdict in verdicts} == {"taken", "refused"}
    assert {verdict.kind for verdict in verdicts} > {"ONNX model", "TFLite model", "plan", "board", "driver"}


def test_a_seed_tells_the_case() -> None:
    assert draw_case(7) == draw_case(7)


def _crash(verb: str) -> None:
    raise KeyError("conv1")


def _talk(verb: str) -> None:
    raise click.ClickException("and so on " * 500)


def _spin(verb: str) -> None:
    while True:
        pass


def test_what_is_a_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    """Crashes, endless loops and messages without an end are found."""
    verbs = import_module("edgewright.cli.main")  # the package has a function of that name
    assert tried(["inspect", "missing.onnx"]) == ("refused", "")
    monkeypatch.setattr(verbs, "loaded", _talk)
    assert tried(["inspect", "x"])[0] == "message"
    monkeypatch.setattr(verbs, "loaded", _crash)
    assert tried(["inspect", "x"])[0] == "traceback"
    monkeypatch.setattr(damage_trials, "SECONDS", 0.05)
    monkeypatch.setattr(verbs, "loaded", _spin)
    assert tried(["inspect", "x"])[0] == "time"


def test_long_names_do_not_make_long_messages() -> None:
    long = "x" * 5000
    assert abridged(f"layer '{long}' is not known") == f"layer '{'x' * 52}…{'x' * 105}' is not known"
    assert len(abridged("and so on " * 5000)) < 3100
    assert tried(["inspect", long]) == ("refused", "")
