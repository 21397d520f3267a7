"""`shape` and `target` in the application file: open sizes are set or asked for, targets need no board."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from edgewright.application.draft import load_application
from edgewright.application.library import emit_application
from edgewright.application.search import JointSearch
from edgewright.emit.deployment.trial import LibraryTrial, TrialScript
from edgewright.errors import InputError, ModelError
from edgewright.samples.builder import ModelBuilder


def written(folder: Path, more: str = "", head: str = "") -> Path:
    """An application of one network that leaves height and width of its input open."""
    net = ModelBuilder("open")
    model = net.model(net.conv(net.input(1, 3, 8, 8, name="x"), 4, 3, 1, 1, name="y"))
    for value in (*model.graph.input, *model.graph.output):
        for axis, name in ((2, "height"), (3, "width")):
            value.type.tensor_type.shape.dim[axis].dim_param = name
    onnx.save(model, folder / "open.onnx")
    entry = f'[[network]]\nname = "open"\nfile = "open.onnx"\nplain = true\n{more}\n'
    (folder / "app.toml").write_text(f"{head}\n{entry}")
    return folder / "app.toml"


def test_sizes_that_the_model_leaves_open_are_set_by_the_file(tmp_path: Path) -> None:
    application = load_application(written(tmp_path, "shape = {x = [1, 3, 6, 10]}", 'target = "cortex-m4"'))
    assert application.networks["open"].tensors["x"].shape == (1, 6, 10, 3)
    assert application.target.name == "cortex-m4" and application.board is None
    result = LibraryTrial(emit_application(application, JointSearch(application).fastest.layout)).run(TrialScript(2))
    assert result.runs and not result.wrong


def test_open_sizes_are_asked_for_by_their_key(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as error:
        load_application(written(tmp_path))
    assert f'{tmp_path / "app.toml"}: network[0].shape = {{"x" = [1, 3, 224, 224]}}' in str(error.value)
    assert "--shape" not in str(error.value)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("shape = {x = [1, 3, 0, 8]}", "network[0].shape"),
        ("shape = {x = []}", "network[0].shape"),
        ("shape = [1, 3, 8, 8]", "expected a table of sizes"),
        ("shape = {z = [1, 3, 8, 8]}", "z"),
    ],
)
def test_wrong_sizes_are_refused(more: str, said: str, tmp_path: Path) -> None:
    with pytest.raises((InputError, ModelError)) as error:
        load_application(written(tmp_path, more))
    assert said in str(error.value)


def test_an_unknown_target_is_refused_with_those_there_are(tmp_path: Path) -> None:
    file = written(tmp_path, "shape = {x = [1, 3, 8, 8]}", 'target = "cortex-m5"')
    with pytest.raises(InputError, match=r'app.toml: target is "cortex-m5"; expected one of host.*cortex-m55'):
        load_application(file)
