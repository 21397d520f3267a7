"""What works after `pip install edgewright` alone, and how what is missing is named."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import edgewright
from edgewright import samples
from edgewright.memory import plan as plan_whole_layers
from edgewright.memory.ordering.solve import order
from edgewright.network.read import read

ROOT = Path(edgewright.__file__).parents[2]
EXTRAS = ("ortools", "pandas", "onnxruntime", "ai_edge_litert", "unicorn", "ziglang", "clang", "pymoo", "torch")
WITHOUT = f"import sys\nfor name in {EXTRAS}: sys.modules[name] = None\n"  # importing them fails, as if not installed


def called(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in an interpreter that has none of the extras."""
    program = f"{WITHOUT}from edgewright.cli import main\nmain({list(arguments)!r})"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


def test_the_package_alone_depends_on_little():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert not any(name in line for line in project["dependencies"] for name in EXTRAS)
    brought = {line.partition(">")[0] for lines in project["optional-dependencies"].values() for line in lines}
    assert {"ortools", "onnxruntime", "ai-edge-litert", "unicorn", "ziglang", "libclang"} <= brought


def test_models_are_planned_and_emitted_without_extras(tmp_path):
    model = samples.write("lenet5", tmp_path)
    done = called("compile", str(model), "--target", "cortex-m4", "--no-verify", "-o", str(tmp_path / "made"), "--json")
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "made").rglob("*.c"))
    assert edgewright.load_plan(tmp_path / "made" / "plan.json").peak_bytes == 19_052  # as with extras


@pytest.mark.parametrize(
    ("arguments", "package", "extra"),
    [
        (("sample", "resnet8_int8"), "onnxruntime", "reference"),
        (("map", "{model}", "--board", "raspberry-pi-4"), "OR-Tools", "solver"),
        (("hal", "{model}"), "libclang", "hal"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else value,
)
def test_missing_packages_are_named(arguments, package, extra, tmp_path):
    model = samples.write("lenet5", tmp_path)
    done = called(*(word.format(model=model) for word in arguments))
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert package in done.stderr and f"pip install 'edgewright[{extra}]'" in done.stderr


def test_without_the_solver_bounds_stay_true(monkeypatch):
    """Searches of our own prove less, and never claim what is not so."""
    network = read(samples.build("tiny_densenet"))
    with_solver = plan_whole_layers(network, explain=False)
    for module in ("layout.exact", "ordering.cuts", "ordering.model", "ordering.pivots"):
        monkeypatch.setattr(f"edgewright.memory.{module}.has_solver", lambda: False)
    order.cache_clear()
    without = plan_whole_layers(network, explain=False)
    order.cache_clear()
    assert with_solver.optimal and not without.optimal
    assert without.bound_bytes <= with_solver.peak_bytes <= without.peak_bytes


def test_a_mistyped_name_is_told_before_anything_is_loaded():
    program = (
        "import sys\nfrom edgewright.cli import main\n"
        "try: main(['plan', 'nosuch.onnx'])\n"
        "except SystemExit as end: print(end.code, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["1", "False"] and "there is no file 'nosuch.onnx'" in done.stderr
