"""The C of scenarios that switch: no warnings, the text as reviewed, trials on this machine and on a Cortex-M4."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from edgewright.adaptive.compiled import check_linked, compile_switching
from edgewright.adaptive.runtime import Adaptive
from edgewright.emit.deployment.switch_timing import SWITCH, SwitchTiming
from edgewright.emit.deployment.switch_trial import SwitchScript, SwitchTrial
from edgewright.emit.native import aligned_array
from edgewright.program.switching import SwitchPolicy
from tests.adaptive.cases import CASCADE, RULES, quick_compiler, switching, three
from tests.adaptive.test_adaptive import two
from tests.helpers import tools
from tests.helpers.parameters import each_once

GOLDEN = Path(__file__).parent / "golden"
WARNINGS = ("-std=c99", "-Og", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-Isrc")
VARIANTS = {
    "plain": {},
    "rules": {"tail": RULES},
    "dwell": {"dwell": "1 s"},
    "both": {"tail": RULES, "dwell": "1 s"},
    "cascade": {"tail": CASCADE, "dwell": "1 s"},
}
FRAMES = 300
MOST_STATE = 64  # bytes beside the largest arena under `abort`


def trial_of(path: Path, policy: SwitchPolicy) -> SwitchTrial:
    one = switching(path, policy)
    library = one.library(one.layout)
    return SwitchTrial(library, one.writer(library, one.layout))


def unpacked(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


@pytest.mark.parametrize(("variant", "policy"), each_once([*VARIANTS], [*SwitchPolicy][::-1]))
def test_compilers_have_nothing_to_say(tmp_path: Path, policy: SwitchPolicy, variant: str):
    if variant == "cascade" and policy in (SwitchPolicy.OVERLAP, SwitchPolicy.OVERTAKE):
        pytest.skip("a frame that is computed again keeps no room for another")
    given = VARIANTS[variant]
    compiled = compile_switching(switching(three(tmp_path, **given), policy), verify=False)
    out = unpacked(tmp_path / "out", {**compiled.files})
    cc = tools.command("gcc") if policy is not SwitchPolicy.ABORT else tools.command("cc")
    own = [f"src/{compiled.library.name}.c", "examples/main.c"]
    subprocess.run([*cc, *WARNINGS, "-fsyntax-only", *own], cwd=out, check=True, capture_output=True)


@pytest.mark.parametrize("policy", [SwitchPolicy.ABORT, SwitchPolicy.OVERLAP])
def test_the_example_runs(tmp_path: Path, policy: SwitchPolicy):
    compiled = compile_switching(switching(two(tmp_path, "[adapt]\nprocessors = 2\n"), policy), verify=False)
    out = unpacked(tmp_path / "out", {**compiled.files})
    sources = sorted(str(path.relative_to(out)) for path in out.glob("src/*.c"))
    command = [*tools.command("gcc"), *WARNINGS, *sources, "examples/main.c", "-o", "main", "-lm", "-pthread"]
    subprocess.run(command, cwd=out, check=True, capture_output=True)
    said = subprocess.run(["./main"], cwd=out, check=True, capture_output=True, text=True, timeout=60).stdout
    assert "full takes over from eco" in said
    assert said.count("computes") == (8 if policy is SwitchPolicy.OVERLAP else 4)


def test_golden_text(tmp_path: Path, request: pytest.FixtureRequest):
    """app.h and app.c under `overtake`, with rules and dwell time, as a person has read them."""
    head = 'target = "cortex-m4"\n[adapt]\ndwell = "1 s"\n'
    rules = '[[rule]]\nsignal = "battery"\nbelow = 0.25\nuntil = 0.35\nrequest = "eco"\n'
    library = trial_of(two(tmp_path, head, rules), SwitchPolicy.OVERTAKE).library
    for end in ("h", "c"):
        golden, text = GOLDEN / f"switching.{end}", str(library.files[f"{library.name}.{end}"])
        if request.config.getoption("--update-golden"):
            golden.write_text(text)
        assert text == golden.read_text()


@pytest.mark.parametrize("policy", [SwitchPolicy.FINISH, SwitchPolicy.OVERTAKE, SwitchPolicy.ABORT])
def test_trials_on_this_machine(tmp_path: Path, policy: SwitchPolicy):
    cascade = CASCADE.replace("1e9", "0.3") if policy is SwitchPolicy.ABORT else ""
    trial = trial_of(three(tmp_path, tail=cascade), policy)
    result = trial.run(SwitchScript(FRAMES, share=60))
    assert not result.wrong and result.frames >= FRAMES and result.count > 10


@pytest.mark.parametrize("policy", [SwitchPolicy.OVERTAKE, SwitchPolicy.ABORT])
def test_trials_on_a_cortex_m4(tmp_path: Path, policy: SwitchPolicy):
    tools.needs_board("cortex-m4")
    trial = trial_of(three(tmp_path, head='target = "cortex-m4"\n'), policy)
    tried = trial.run_on_board(SwitchScript(FRAMES, share=60))
    assert not tried.result.wrong and tried.result.frames >= FRAMES and tried.result.count > 10
    check_linked(trial.library, tried)
    timing = SwitchTiming(tried)
    assert min(timing.waits.values()) > 0 and all(delay > timing.frames[new] for _, new, delay in timing.delays)
    if policy is SwitchPolicy.ABORT:
        alone = max(plan.peak_bytes for plan in trial.library.deployment.plans.values())
        assert tried.run.ram_linked <= alone + MOST_STATE
        assert timing.worst_excess <= SWITCH


@pytest.mark.parametrize("policy", [SwitchPolicy.FINISH, SwitchPolicy.ABORT])
def test_a_frame_of_a_cascade_is_in_memory_once(tmp_path: Path, policy: SwitchPolicy):
    """All scenarios read the caller's array; it stays as it is, or frames that are handed on would go wrong."""
    copying = trial_of(three(tmp_path), policy).library
    trial = trial_of(three(tmp_path, tail=CASCADE), policy)
    library = trial.library
    for part in library.code.parts:
        plan = library.deployment.plans[part.name]
        assert plan.outside == part.network.inputs and plan.buffer_named["input"].memory not in plan.arenas
    assert sum(library.arenas.values()) <= sum(copying.arenas.values())
    assert not trial.run(SwitchScript(60, share=60)).wrong


@pytest.mark.parametrize("tail", ["", CASCADE])
def test_a_frame_that_may_begin_again_needs_its_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tail: str):
    quick_compiler(monkeypatch)
    one = switching(three(tmp_path, tail=tail), SwitchPolicy.ABORT)
    arrays = [aligned_array(np.zeros(4096, np.uint8)) for _ in range(2)]
    x, y = (ctypes.c_void_p(array.ctypes.data) for array in arrays)
    with Adaptive(one, one.layout) as running:
        step = running._loaded[f"{running.library.name}_host_step"]
        assert step((ctypes.c_void_p * 2)(x, y)) >= 0
        assert step((ctypes.c_void_p * 2)(None, y)) == -2
        assert (step((ctypes.c_void_p * 2)(x, None)) == -2) == bool(tail)
