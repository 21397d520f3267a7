"""What `--help` and `import edgewright` load: next to nothing. Modules are counted, so no machine is too slow."""

import subprocess
import sys

import pytest

import edgewright
from edgewright.cli import options as choices
from edgewright.cli.main import VERBS, loaded
from edgewright.emit import TARGETS, Kernels, Optimise, Rounding
from edgewright.fusion.request import Method

HEAVY = {"numpy", "onnx", "onnxruntime", "ortools", "networkx", "pydantic", "jinja2", "rich", "clang", "pandas"}


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after running the code."""
    program = f"import sys\n{code}\nprint('|'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split("|"))


def called(*arguments: str) -> set[str]:
    return loaded_by(f"from edgewright.cli import main\nmain({list(arguments)!r}, standalone_mode=False)")


@pytest.mark.parametrize(
    "arguments", [("--help",), *((verb, "--help") for verb in VERBS), ("hal", "--include")], ids="-".join
)
def test_help_loads_little(arguments):
    modules = called(*arguments)
    assert not HEAVY & modules
    assert len(modules) < 250  # Python itself and click are 110 to 130


def test_importing_the_package_loads_little():
    modules = loaded_by("import edgewright") - loaded_by("pass")
    assert not HEAVY & modules
    assert len(modules) < 60


def test_every_public_name_is_there():
    assert all(getattr(edgewright, name) is not None for name in edgewright.__all__)
    assert set(edgewright.__all__) <= set(dir(edgewright))
    with pytest.raises(AttributeError, match="nothing_like_this"):
        _ = edgewright.nothing_like_this


def test_choices_are_what_the_code_knows():
    assert list(choices.TARGETS) == list(TARGETS)
    for values, kind in (
        (choices.KERNELS, Kernels),
        (choices.ROUNDINGS, Rounding),
        (choices.OPTIMISE, Optimise),
        (choices.METHODS, Method),
    ):
        assert list(values) == [member.value for member in kind]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_can_be_loaded_and_is_described(verb):
    command = loaded(verb)
    assert command.help and len(VERBS[verb]) <= 67  # one line of a terminal of 80 columns


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "edgewright", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("edgewright, version")
