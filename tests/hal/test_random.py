"""Random drivers: what the tool makes of them does what their source says, access by access."""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter

import pytest

from edgewright.hal.analysis import conflicts
from edgewright.hal.design_flow import analyse, naive
from edgewright.hal.language.source import HEADER
from edgewright.hal.verify.machine import PAGE
from edgewright.hal.verify.verification import Fault
from tests.hal import host_machine
from tests.hal.random_check import check, methods_of, target_of, told
from tests.hal.random_code import STATEMENTS, WORDS
from tests.hal.random_drivers import draw_program, shrunk
from tests.hal.random_groups import FIRST_DEVICE
from tests.hal.random_text import Line, Nest, rendered
from tests.hal.runs import HOST, Outcome, differences, draw_calls, run_source
from tests.helpers.tools import needs

THOROUGH = bool(os.environ.get("EDGEWRIGHT_THOROUGH"))
FILES = 100 if THOROUGH else 4  # of twenty functions each
INCLUDE = HEADER.parent
# Values that overflow a field, comparisons that are always true and attributes that C ignores are there on purpose.
ON_PURPOSE = ("overflow", "int-in-bool-context", "tautological-compare", "bool-compare", "bool-operation", "attributes")


@pytest.mark.parametrize("seed", [pytest.param(n, marks=[pytest.mark.slow] * (n > 1)) for n in range(FILES)])
def test_generated_code_does_what_the_source_says(seed):
    failed = [v for v in check(draw_program(seed), methods_of(seed, THOROUGH), target_of(seed)) if v.story]
    assert not failed, told(failed[0])


def test_generated_code_does_what_the_source_says_on_this_machine():
    needs("gcc", "g++")
    (verdict,) = check(draw_program(1, 8), ("balanced",), HOST)
    assert not verdict.story


def test_a_wrong_analysis_is_seen_on_this_machine(monkeypatch):
    needs("gcc", "g++")
    monkeypatch.setattr(conflicts, "may_alias", lambda first, second: False)
    (verdict,) = check(draw_program(1), ("balanced",), HOST)
    assert any("instead of" in line for line in verdict.story)


def test_a_driver_that_does_not_end_is_told(monkeypatch):
    monkeypatch.setattr(host_machine, "MOST_SECONDS", 0.2)
    with pytest.raises(Fault, match="does not end"):
        host_machine.apart(lambda: time.sleep(9))
    with pytest.raises(Fault, match="crashes"):
        host_machine.apart(lambda: os._exit(1))


def test_registers_take_no_memory_that_is_in_use():
    """A Python at fixed addresses has its heap where some registers lie."""

    def twice():
        for _ in range(2):
            host_machine.map_zeros(FIRST_DEVICE, PAGE)

    with pytest.raises(Fault, match=f"no memory at {FIRST_DEVICE:#x} for registers"):
        host_machine.apart(twice)


@pytest.mark.parametrize("seed", range(8))
def test_compilers_accept_random_drivers(seed, tmp_path):
    (tmp_path / "driver.c").write_text(str(draw_program(seed)))
    allowed = [f"-Wno-{name}" for name in ON_PURPOSE]
    command = ["gcc", "-std=gnu11", "-fsyntax-only", "-Wall", "-Werror", *allowed, f"-I{INCLUDE}", "driver.c"]
    subprocess.run(command, cwd=tmp_path, check=True)


def test_a_seed_is_a_driver():
    assert str(draw_program(7)) == str(draw_program(7))
    assert str(draw_program(7)) != str(draw_program(8))


def test_every_kind_of_statement_is_drawn():
    kinds = sum((draw_program(seed).kinds for seed in range(20)), Counter[str]())
    assert not [kind for kind in STATEMENTS | WORDS if kinds[kind] < 5]


def test_plain_drivers_have_no_effects(tmp_path):
    """All values of fields come from the driver's own writes, and only unknown functions are called."""
    program = draw_program(3, functions=6, plain=True)
    (tmp_path / "driver.c").write_text(str(program))
    plain = naive(analyse([tmp_path / "driver.c"]))
    outcome = run_source(program, plain, draw_calls(program, 3), tmp_path)
    assert {kind for kind, *_ in outcome.events} <= {"call"}


def test_a_wrong_analysis_is_seen(monkeypatch):
    """Two names of one field taken for different ones: a random driver shows it."""
    monkeypatch.setattr(conflicts, "may_alias", lambda first, second: False)
    verdicts = (v for seed in range(8) for v in check(draw_program(seed, 8), ("paper",), "rv32imc"))
    story = next(verdict.story for verdict in verdicts if verdict.story)
    assert any("instead of" in line for line in story)


def test_a_driver_is_made_small():
    program = next(one for one in (draw_program(seed, 8) for seed in range(5, 30)) if "switch" in str(one))
    small = shrunk(program, lambda one: "switch" in str(one) and len(one.world.devices) > 0)
    assert len(small.functions) == 1
    assert len(str(small).splitlines()) < len(str(program).splitlines()) / 4


def test_differences_are_told():
    program = draw_program(1, functions=3)
    calls = [call for call in draw_calls(program, 1) if call.made.result != "void"][:1]
    right = Outcome([3], [("read", "dev0.data", 1, {})], [1], {"dev0.len": 4}, [b""])
    wrong = Outcome([2], [("read", "dev0.data", 5, {})], [1], {"dev0.len": 6}, [b"1"])
    assert not differences(calls, right, right)
    text = "\n".join(differences(calls, right, wrong))
    for part in (
        "read of dev0.data (5) instead of",
        "gives 2 instead of 3",
        "dev0.len is 6 instead of 4",
        "buffer",
    ):
        assert part in text


def test_rendering_nests():
    assert list(rendered((Nest("if (a)", (Line("b;"),)), Nest("do", (Line("c;"),), "while (d);")), 0)) == [
        "if (a) {",
        "    b;",
        "}",
        "do {",
        "    c;",
        "} while (d);",
    ]
