"""Every code block of README and docs: run, compiled or read. One that cannot be says so on its page, and why."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from edgewright import plan, read_model, samples, save_plan
from edgewright.hal import examples
from tests.helpers import tflite_models as tfl
from tests.helpers.fronts import six_points
from tests.whole.doc_blocks import PAGES, ROOT, Block, Desk, blocks

MOST_NOT_RUN = 8


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """A folder with what pages take for granted: models, a driver, inputs."""
    folder = tmp_path_factory.mktemp("given")
    samples.write("lenet5", folder).rename(folder / "model.onnx")
    (folder / "model.tflite").write_bytes(small_tflite())
    for path in Path(examples.__file__).parent.glob("*.[ch]"):
        shutil.copy(path, folder)
    shutil.copy(folder / "gpio.c", folder / "driver.c")
    network = read_model(folder / "model.tflite")
    save_plan(plan(network), folder / "plan-12345.json")
    np.save(folder / "x.npy", np.zeros((1, 16, 16, 4), np.int8))
    np.save(folder / "image.npy", np.zeros((1, 3, 32, 32), np.float32))
    np.savez(folder / "x.npz", x=np.random.default_rng(0).standard_normal((9, 1, 28, 28), np.float32))
    layers = [layer.name for layer in read_model(folder / "model.onnx").layers]
    (folder / "mapping.toml").write_text("".join(f'"{n}" = "core{i // 5}"\n' for i, n in enumerate(layers)))
    (folder / "times.toml").write_text("".join(f'"{n}" = {i}\n' for i, n in enumerate(layers)))
    six_points().write(folder)
    (folder / "src").symlink_to(ROOT / "src")
    return folder


def small_tflite() -> bytes:
    """Two int8 convolutions on an image of 16x16."""
    image = {"scale": 0.1, "zero": 0}
    weights = np.random.default_rng(0).integers(-9, 9, (4, 3, 3, 4))
    specs = [
        tfl.Spec("x", (1, 16, 16, 4), "int8", **image),
        tfl.constant("w", weights, "int8", scale=0.1),
        tfl.constant("b", np.zeros(4), scale=0.01),
        tfl.Spec("m", (1, 16, 16, 4), "int8", **image),
        tfl.Spec("y", (1, 16, 16, 4), "int8", **image),
    ]
    conv = tfl.options("Conv2D", strideW=1, strideH=1, dilationWFactor=1, dilationHFactor=1)
    nodes = [tfl.Node("CONV_2D", ["x", "w", "b"], ["m"], conv), tfl.Node("CONV_2D", ["m", "w", "b"], ["y"], conv)]
    return tfl.model(specs, nodes, ["x"], ["y"])


def follow(page: Path, given: Path, folder: Path, monkeypatch, quick: bool) -> None:
    shutil.copytree(given, folder, dirs_exist_ok=True, symlinks=True)
    monkeypatch.chdir(folder)
    desk = Desk(folder, quick)
    for block in blocks(page):
        desk.follow(block)


# All pages are followed as they are written in `make check-all`. Otherwise compiled code is not run.
LONG = {"flow", "tutorial-flow", "tutorial-dataflow", "tutorial-cluster", "sample", "app", "tiling"}


@pytest.mark.parametrize(
    "page", [pytest.param(p, id=p.stem, marks=[pytest.mark.slow] * (p.stem in LONG)) for p in PAGES]
)
def test_pages_can_be_followed(page, given, tmp_path, monkeypatch):
    follow(page, given, tmp_path, monkeypatch, quick=True)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_can_be_followed_to_the_letter(page, given, tmp_path, monkeypatch):
    follow(page, given, tmp_path, monkeypatch, quick=False)


def test_few_blocks_are_not_run():
    every = [block for page in PAGES for block in blocks(page)]
    assert len(every) > 80
    assert sum(block.mark == "not run" for block in every) <= MOST_NOT_RUN
    assert sum(block.kind == "text" for block in every) <= MOST_NOT_RUN


@pytest.mark.parametrize(
    "block",
    [
        Block(ROOT / "x.md", 1, "", "anything\n"),
        Block(ROOT / "x.md", 1, "console", "$ edgewright inspect missing.onnx\n"),
        Block(ROOT / "x.md", 1, "console", "$ edgewright boards\nno such board\n"),
        Block(ROOT / "x.md", 1, "console", "$ pip install -e '.[nothing]'\n"),
        Block(ROOT / "x.md", 1, "c", '#include "missing.h"\n'),
        Block(ROOT / "x.md", 1, "c", "int x = y;\n"),
        Block(ROOT / "x.md", 1, "python", "assert False\n"),
        Block(ROOT / "x.md", 1, "python", "x = 1\n", "not run", ""),
        Block(ROOT / "x.md", 1, "c", "int x;\n", "part of", "driver.c"),
    ],
    ids=lambda block: f"{block.kind} {block.text.split()[0]}",
)
def test_what_is_wrong_in_a_block_is_seen(block, given, tmp_path, monkeypatch):
    shutil.copy(given / "driver.c", tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises((AssertionError, ModuleNotFoundError)):
        Desk(tmp_path).follow(block)
