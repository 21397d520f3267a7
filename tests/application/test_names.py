"""Names of networks, inputs and applications that mean something to C: the library links and runs, or says why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgewright.application.draft import load_application
from edgewright.application.library import AppLibrary, emit_application
from edgewright.application.search import JointSearch
from edgewright.emit.deployment.trial import LibraryTrial, TrialScript
from edgewright.errors import InputError
from edgewright.samples.builder import ModelBuilder

SYSTEM = ("signal", "time", "math", "c", "task")  # headers and archives of systems
OURS = ("arena", "wake_", "enter", "running", "mark", "in", "ew_x", "int")  # what the C calls its own things


def network(name: str, folder: Path, **entry: str) -> str:
    """An entry of the application file; the model has an input and an output of these names."""
    given, made = entry.get("input", "x"), entry.get("output", "y")
    net = ModelBuilder(name)
    y = net.conv(net.input(1, 2, 4, 4, name=given), 2, 3, name=made)
    (folder / f"{name}.onnx").write_bytes(net.model(y).SerializeToString())
    return f'[[network]]\nname = "{name}"\nfile = "{name}.onnx"\nplain = true\n'


def library(folder: Path, *entries: str, head: str = "") -> AppLibrary:
    (folder / "app.toml").write_text("\n".join([head, *entries]))
    return emit_application(app := load_application(folder / "app.toml"), JointSearch(app).fastest.layout)


def runs(made: AppLibrary) -> None:
    """Every network runs and gives the right result; the sources compile with their folder in the include path."""
    result = LibraryTrial(made).run(TrialScript(interleavings=10))
    assert result.runs and not result.wrong


def refusal(folder: Path, *entries: str, head: str = "") -> str:
    with pytest.raises(InputError) as error:
        library(folder, *entries, head=head)
    return str(error.value)


def test_networks_called_like_headers_and_like_our_own_things(tmp_path: Path) -> None:
    made = library(tmp_path, *(network(name, tmp_path) for name in (*SYSTEM, *OURS)))
    assert not {f"{name}.h" for name in SYSTEM} & made.files.keys()
    assert {"signal_model.h", "net_arena.h", "wake.h"} <= made.files.keys()
    runs(made)


QUICK = ("signal", "math", "task", "arena", "enter", "in", "int")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n not in QUICK)) for n in (*SYSTEM, *OURS)]
)
def test_applications_called_so(name: str, tmp_path: Path) -> None:
    buffers = f'[[buffer]]\nname = "{name}"\nsize = 40\n[[memory]]\nname = "{name}"\nsize = "64K"\n'
    relation = '[[relation]]\nkind = "preempts"\npoints = "rows"\nnetworks = ["a", "b"]\n'
    entries = [network("a", tmp_path), network("b", tmp_path), relation, buffers]
    made = library(tmp_path, *entries, head=f'name = "{name}"')
    assert f"{name}.h" not in made.files or name in ("enter", "running", "mark", "int")
    runs(made)


def test_inputs_and_outputs_called_like_variables_of_the_library(tmp_path: Path) -> None:
    pairs = [("status", "enter"), ("leave", "arena"), ("running", "excludes"), ("which", "done")]
    runs(library(tmp_path, *(network(f"n{n}", tmp_path, input=x, output=y) for n, (x, y) in enumerate(pairs))))


def test_accessors_of_two_networks_that_have_one_name(tmp_path: Path) -> None:
    said = refusal(tmp_path, network("a", tmp_path, input="b_c"), network("a_b", tmp_path, input="c"))
    assert said.startswith("network[1].prefix: ") and '"app_input_a_b_c" twice' in said and "network[0].prefix" in said
    mended = network("a_b", tmp_path, input="c") + 'prefix = "other"\n'
    runs(library(tmp_path, network("a", tmp_path, input="b_c"), mended))


@pytest.mark.parametrize(
    ("names", "clash"),
    [
        (("app_run", "run_in"), "app_run_run_in"),  # of the first's own library, and of the application's
        (("app", "a"), "the name of the application"),
        (("app_kernels", "a"), "a file of the application"),
        (("wake", "wake_"), 'expected another one, such as "net_wake"'),
        (("a", "a_input_x"), "A_INPUT_X_NAME"),
    ],
)
def test_networks_whose_names_meet(names: tuple[str, ...], clash: str, tmp_path: Path) -> None:
    said = refusal(tmp_path, *(network(name, tmp_path) for name in names))
    assert clash in said and ".prefix" in said


def test_an_application_whose_kernels_meet_its_own_functions(tmp_path: Path) -> None:
    """The kernel ew_row becomes is_row."""
    relation = '[[relation]]\nkind = "preempts"\npoints = "rows"\nnetworks = ["a", "b"]\n'
    entries = [network("a", tmp_path), network("b", tmp_path), relation]
    assert '"is_row" twice' in refusal(tmp_path, *entries, head='name = "is"')
