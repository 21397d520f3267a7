"""Stages of several networks that share code: what may differ, and that the shared C computes the same."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from edgewright.adaptive.compiled import check_linked
from edgewright.adaptive.deploying import SwitchingApplication, with_policy
from edgewright.emit.deployment.switch_trial import SwitchBoardTrial, SwitchScript, SwitchTrial
from edgewright.emit.files import kernel_files
from edgewright.emit.patterns import PrintedStage, StagePatterns, StageProbe, StageReader, definitions
from edgewright.kernels.printing.constants import Constants
from edgewright.network import Network
from edgewright.program.switching import SwitchPolicy
from tests.helpers import tools
from tests.helpers.nested_networks import narrowed, scenarios_of
from tests.program.test_nested_weights import WIDTHS, whole

FILL = """for (int32_t i = 0; i < {count}; i++) {{
    uint8_t *y = arena_ram + {to};
    y[i] = (uint8_t)(arena_ram[{at} + i] * {by} + {more}u / 3u + i % {step} + {prefix}_n0[i & 1] + {wide} / 4096);
}}"""
TABLES = ["static const int32_t {prefix}_n0[2] = {{{a}, {b}}};"]
NUMBERS = [
    {"count": 5, "to": 8, "at": 0, "wide": 80000, "by": 3, "more": 10, "step": 3, "a": 1, "b": 900},
    {"count": 10, "to": 300, "at": 4, "wide": 160004, "by": 70000, "more": 2000000000, "step": 3, "a": -4, "b": 5},
    {"count": 20, "to": 16, "at": 8, "wide": 120008, "by": 2, "more": 11, "step": 3, "a": 1, "b": 900},
    {"count": 40, "to": 16, "at": 8, "wide": 4, "by": -2, "more": 11, "step": 5, "a": 1, "b": 900},
]


def patterns_of(numbers: list[dict[str, int]], text: str = FILL) -> StagePatterns:
    """A network for each, of one stage."""
    stages = []
    for n, given in enumerate(numbers):
        values = {**given, "prefix": f"n{n}"}
        reader = StageReader(Constants("x"), definitions([line.format(**values) for line in TABLES]), {})
        stages.append((PrintedStage(f"n{n}", 0, f"stage {n}", text.format(**values)), reader))
    return StagePatterns("x", ["arena_ram"], stages, StageProbe(""))


def test_numbers_may_differ_but_not_divisors() -> None:
    patterns = patterns_of(NUMBERS)
    (pattern,) = patterns.patterns
    assert [stage.network for stage in pattern.stages] == ["n0", "n1", "n2"]
    assert not patterns.covers("n3", 0)
    types = {field.numbers: field.ctype for field in pattern.fields if field.is_number}
    assert types[(3, 70000, 2)] == "int32_t"
    assert types[(8, 300, 16)] == "int16_t"
    assert types[(80000, 160004, 120008)] == "uint16_t"  # a quarter of it
    declared = "\n".join(pattern.declarations())
    assert declared.count("_high;") == 2 and "int32_t" not in declared  # records of stages have no gaps
    assert patterns.arrays == {"int16_t": (-4, 5, 1, 900)}


def test_a_number_that_follows_from_another_is_no_field() -> None:
    text = "arena_ram[{count}] = arena_ram[{double}] + arena_ram[{next}] - arena_ram[{square}] * {other};"
    given = [
        {"count": n, "double": 2 * n, "next": n + 1, "square": n * n, "other": n % 4, "a": 0, "b": 1} for n in (3, 5, 6)
    ]
    (pattern,) = patterns_of(given, text).patterns
    assert {field.numbers for field in pattern.fields} == {(3, 5, 6), (3, 1, 2)}


@pytest.mark.parametrize("line", ["switch ({x}) {{ case {x}: break; }}", "arena_ram[0] = {x}.5f;", "f{x}();"])
def test_constants_of_c_and_names_stay(line: str) -> None:
    assert not patterns_of([{"x": n, "a": 0, "b": 1} for n in (1, 2)], line).patterns


def test_arrays_are_as_large_as_the_largest() -> None:
    given = [{"x": n, "a": 0, "b": 1} for n in (4, 9, 6)]
    text = "uint32_t columns[{x}];\nfill(columns, arena_ram + {x}, {x});"
    assert "uint32_t columns[9];" in patterns_of(given, text).files()["x_patterns.c"]


def test_shared_code_computes_the_same(tmp_path: Path) -> None:
    """The shared function with its records beside the stages as they were printed, both by the compiler of this
    machine."""
    patterns, straight, shared = patterns_of(NUMBERS), [], []
    for n, given in enumerate(NUMBERS[:3]):
        values = {**given, "prefix": f"n{n}"}
        straight += [*(line.format(**values) for line in TABLES), f"void straight_{n}(uint8_t *arena_ram) {{"]
        straight += [FILL.format(**values), "}"]
        shared += [line.replace("ew_", "x_") for line in patterns.records(f"n{n}", [0], f"n{n}_s")]
        shared += [
            f"void shared_{n}(uint8_t *arena_ram) {{ {patterns.call([0], f'n{n}_s', 0)}; }}".replace("ew_", "x_")
        ]
    files = {**patterns.files(), **kernel_files("x", ())}
    files["x_weights.h"] = ""
    files["main.c"] = "\n".join(['#include "x_patterns.h"', *straight, *shared])
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fPIC", "-shared", "-O1"]
    sources = [name for name in files if name.endswith(".c")]
    subprocess.run([*tools.command("gcc"), *flags, *sources, "-o", "x.so"], cwd=tmp_path, check=True)
    library = ctypes.CDLL(str(tmp_path / "x.so"))
    for n in range(3):
        both = []
        for way in ("straight", "shared"):
            arena = np.arange(512, dtype=np.uint8)
            library[f"{way}_{n}"](arena.ctypes.data_as(ctypes.c_void_p))
            both.append(arena)
        np.testing.assert_array_equal(*both)
        assert (both[0] != np.arange(512, dtype=np.uint8)).any()


def tried(networks: list[Network], folder: Path, policy: SwitchPolicy, plan: str) -> SwitchBoardTrial:
    """The scenarios as they ran on the virtual board; checked against the reference."""
    application = scenarios_of(networks, "cortex-m4", folder, plan)
    one = SwitchingApplication(with_policy(application, policy), policy)
    library = one.library(one.layout)
    found = SwitchTrial(library, one.writer(library, one.layout)).run_on_board(SwitchScript(24, 24))
    check_linked(library, found)
    assert not found.result.wrong and found.result.count
    assert "app_patterns.c" in library.files
    return found


@pytest.mark.parametrize(
    ("policy", "plan"),
    [
        (SwitchPolicy.ABORT, ""),
        pytest.param(SwitchPolicy.OVERTAKE, "phases = true", marks=pytest.mark.slow),
        pytest.param(SwitchPolicy.FINISH, "", marks=pytest.mark.slow),
        pytest.param(SwitchPolicy.OVERTAKE, "", marks=pytest.mark.slow),
        pytest.param(SwitchPolicy.ABORT, "phases = true", marks=pytest.mark.slow),
        pytest.param(SwitchPolicy.FINISH, "phases = true", marks=pytest.mark.slow),
    ],
)
def test_scenarios_that_share_code_are_exact(tmp_path: Path, policy: SwitchPolicy, plan: str) -> None:
    """Two more scenarios of a nested network add a third of the code of the largest, where each layer is a stage."""
    tools.needs_board("cortex-m4")
    networks = [narrowed(whole(), width) for width in WIDTHS]
    alone, all_ = (tried(ones, tmp_path, policy, plan).run for ones in ([networks[0]] * 2, networks))
    if plan:
        assert all_.weight_bytes < 1.1 * alone.weight_bytes
    else:
        assert all_.code_bytes < 1.35 * alone.code_bytes
