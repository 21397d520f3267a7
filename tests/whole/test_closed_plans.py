"""Plans are closed before C is printed: deciding needs nothing of `emit`, and `emit` decides nothing."""

import ast
import subprocess
import sys
from pathlib import Path

import edgewright

ROOT = Path(edgewright.__file__).parent
DECIDING = ("fusion", "kernels.select", "kernels.cost.estimate", "complete_plan", "planning")

WITHOUT_EMIT = """
import sys
sys.modules["edgewright.emit"] = None  # an import of it fails

from edgewright.fusion.request import PlanRequest, find
from edgewright.kernels.cost.estimate import estimate
from edgewright.kernels.select import close_plan
from edgewright.network.read import read
from edgewright.platform.target import TARGETS
from edgewright.samples import build

network, target = read(build("ds_cnn_int8")), TARGETS["cortex-m4"]
plan = find(network, PlanRequest(), None, target).plan
closed = close_plan(plan, target)
assert closed.plan.selections and closed.plan.peak_bytes >= plan.peak_bytes
assert estimate(closed.plan, target).instructions > 0
"""


def module_path(name: str) -> Path | None:
    """The file of a module of ours, by its name without the package's."""
    base = ROOT.joinpath(*name.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.exists()), None)


def imported(path: Path) -> set[str]:
    """The modules of ours that a file imports when it is loaded or later, by relative imports as the house has them."""
    inside = path.relative_to(ROOT).parent.parts
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [*inside[: len(inside) - (node.level - 1)], *((node.module or "").split(".") if node.module else [])]
            for name in [".".join(base), *(".".join([*base, alias.name]) for alias in node.names)]:
                if name and module_path(name):
                    found.add(name)
    return found


def reached_from(room: str) -> set[str]:
    """All modules that those of a room import, directly or not."""
    waiting = list((ROOT / room).rglob("*.py"))
    found: set[str] = set()
    while waiting:
        for name in imported(waiting.pop()) - found:
            found.add(name)
            path = module_path(name)
            assert path is not None
            waiting.append(path)
    return found


def test_planning_selection_and_costs_work_without_emit():
    subprocess.run([sys.executable, "-c", WITHOUT_EMIT], check=True)


def test_nothing_that_emit_imports_selects_kernels_or_searches():
    reached = reached_from("emit")
    assert {"kernels.closed_plan", "program.lower"} <= reached
    assert [name for name in sorted(reached) if name.startswith(DECIDING)] == []
