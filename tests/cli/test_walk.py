"""Every verb with what is no model, no number and no name: one sentence and a status, never a trace, and in no time."""

import random
import shutil
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from edgewright import samples
from edgewright.cli import main
from edgewright.cli.main import VERBS, loaded
from edgewright.hal import examples

NUMBERS = ["", "0", "-1", "99999999999999999999999", "1e400", "nan", "inf", "-5%", "1000000%", "0K", "1T", "%"]
NAMES = [
    "abc",
    "=",
    "x=0",
    "x=-1,2",
    "input=1",
    "input=9,9,9,9,9",
    "\u202e",
    "\udcff",
    "n" * 300,
    ":::",
    "..:rows=1",
]
TILES = [
    "Conv1:rows=0",
    "Conv1:rows=99999999999",
    "Conv1:channels=2,rows=2",
    "Dense..Conv1:rows=2",
    "Conv1:stripes=3",
]
FILES = [
    "missing",
    "empty",
    "text.txt",
    "folder",
    "bytes",
    "list.json",
    "map.json",
    "good.toml",
    "bad.toml",
    "loop",
]
ARRAYS = ["zeros.npy", "objects.npy", "texts.npy", "many.npz", "/dev/null"]
VALUES = [*NUMBERS, *NAMES, *TILES, *FILES, *ARRAYS]


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """A folder with one good input for each verb, and many bad ones."""
    folder = tmp_path_factory.mktemp("given")
    samples.write("stahl_running_example", folder).rename(folder / "model.onnx")
    for path in Path(examples.__file__).parent.glob("gpio.[ch]"):
        shutil.copy(path, folder)
    texts = {
        "text.txt": "hello",
        "list.json": "[]",
        "map.json": '{"a": 1}',
        "good.toml": "a = 1",
        "bad.toml": "= [",
    }
    for name, text in {**texts, "empty": "", "buffers.csv": "id,lower,upper,size\na,0,3,4\n"}.items():
        (folder / name).write_text(text)
    (folder / "bytes").write_bytes(bytes(range(256)))
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to("loop")
    np.save(folder / "zeros.npy", np.zeros((1, 2), np.float32))
    np.save(folder / "objects.npy", np.array([{}], dtype=object))
    np.save(folder / "texts.npy", np.array(["a"]))
    np.savez(folder / "many.npz", a=np.zeros(3))
    return folder


GOOD = {"layout": ["buffers.csv"], "hal": ["gpio.c"], "boards": [], "sample": []}


def judge(arguments, given, folder, monkeypatch):
    """Runs the command in a copy of the folder."""
    shutil.copytree(given, folder, symlinks=True)
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(main, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), (arguments, result.exception)
    assert result.exit_code in (0, 1, 2) and "Traceback" not in result.output, arguments
    if result.exit_code:
        assert "Error: " in result.output, (arguments, result.output)
    assert not list(folder.glob(".edgewright-*")), arguments
    shutil.rmtree(folder)


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_no_input(verb, given, tmp_path, monkeypatch):
    for value in [*NAMES, *FILES, *ARRAYS, "model.onnx/inside"]:
        judge([verb, value], given, tmp_path / "w", monkeypatch)


def test_bad_values_of_options(given, tmp_path, monkeypatch):
    """Chosen by chance, the same ones every time. Nothing is compiled: that takes long, and comes after all checks."""
    chance = random.Random(3)
    verbs = [verb for verb in VERBS if verb not in ("run", "boards")]
    for _ in range(70):
        verb = chance.choice(verbs)
        takers = [p for p in loaded(verb).params if isinstance(p, click.Option) and not p.is_flag]
        arguments = [verb, *GOOD.get(verb, ["model.onnx"])]
        for option in chance.sample(takers, min(len(takers), chance.choice((1, 1, 2)))):
            arguments += [chance.choice(option.opts), chance.choice(VALUES)]
        judge([*arguments, *(["--no-verify"] if verb == "compile" else [])], given, tmp_path / "w", monkeypatch)
