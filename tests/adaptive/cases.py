"""Small applications with scenarios that several tests of switching share."""

from __future__ import annotations

import ctypes
from hashlib import sha256
from pathlib import Path

import onnx
import pytest

from edgewright.adaptive import runtime
from edgewright.adaptive.deploying import SwitchingApplication, with_policy
from edgewright.adaptive.scenarios import load_adaptive
from edgewright.emit.deployment import DeploymentLibrary
from edgewright.program.switching import SwitchPolicy
from tests.adaptive.test_adaptive import classifier, written

RULES = """
[[rule]]
signal = "battery"
below = 0.25
until = 0.35
request = "eco"

[[rule]]
signal = "heat"
above = 70.0
until = 60.0
request = "mid"
"""
CASCADE = '[[rule]]\nscenario = "eco"\nmargin_below = 1e9\nrequest = "full"\n'  # every frame is handed on


_BUILT: dict[str, bytes] = {}


def quick_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the runtime compile the same library once, optimised a little: these tests are about switching."""
    build = runtime._loaded

    def loaded(library: DeploymentLibrary, folder: Path) -> ctypes.CDLL:
        key = sha256(repr(sorted(library.files.items())).encode()).hexdigest()
        if key not in _BUILT:
            first = build(library, folder)
            _BUILT[key] = Path(first._name).read_bytes()
            return first
        (folder / "again.so").write_bytes(_BUILT[key])  # a file of its own has state of its own
        return ctypes.CDLL(str(folder / "again.so"))

    monkeypatch.setattr(runtime, "FLAGS", [flag.replace("-O3", "-Og") for flag in runtime.FLAGS])
    monkeypatch.setattr(runtime, "_loaded", loaded)


def three(folder: Path, head: str = "", tail: str = "", processors: int = 2, dwell: str = "", size: int = 8) -> Path:
    """Three classifiers of different depth in one application."""
    adapt = f"[adapt]\nprocessors = {processors}\n" + (f'dwell = "{dwell}"\n' if dwell else "")
    models: dict[str, onnx.ModelProto] = {
        "eco": classifier("eco", (4,), size),
        "mid": classifier("mid", (4, 8), size),
        "full": classifier("full", (8, 8, 8), size),
    }
    return written(folder, head + adapt, tail, **models)


def switching(path: Path, policy: SwitchPolicy) -> SwitchingApplication:
    return SwitchingApplication(with_policy(load_adaptive(path), policy), policy)
