"""Crops and scaled images between networks: right in C, and refused where they do not fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgewright import samples
from edgewright.application.draft import Application, load_application
from edgewright.application.library import emit_application
from edgewright.application.search import JointSearch
from edgewright.emit.deployment.trial import LibraryTrial, TrialScript
from edgewright.errors import InputError
from edgewright.network import random_inputs
from edgewright.network.kernels import execute
from tests.helpers.onnx_session import onnx_session

NAMES = ("detect", "classify", "landmarks")


def application(folder: Path, *relations: str, names: tuple[str, ...] = NAMES) -> Application:
    samples.write_application("tiny_application", folder)
    entries = [f'[[network]]\nname = "{name}"\nfile = "{name}.onnx"\nplain = true\n' for name in names]
    (folder / "crops.toml").write_text("\n".join([*entries, *relations]))
    return load_application(folder / "crops.toml")


def relation(kind: str, first: str, second: str, more: str) -> str:
    return f'[[relation]]\nkind = "{kind}"\nnetworks = ["{first}", "{second}"]\n{more}\n'


def trained(folder: Path, name: str, image: np.ndarray) -> np.ndarray:
    """What onnxruntime computes with the file; the image is channels last."""
    session = onnx_session(folder / f"{name}.onnx")
    return session.run(None, {session.get_inputs()[0].name: image.transpose(0, 3, 1, 2)})[0]


@pytest.mark.parametrize("scaling", ["bilinear", "nearest"])
def test_a_crop_is_scaled_to_what_the_next_network_reads(scaling: str, tmp_path: Path) -> None:
    cut = f'crop = [4, 2, 8, 6]\nresize = [16, 16]\nscaling = "{scaling}"'
    app = application(
        tmp_path,
        relation("same input", "detect", "classify", cut),
        relation("after", "detect", "landmarks", f'crop = [0, 4, 4, 4]\nresize = [8, 8]\nscaling = "{scaling}"'),
    )
    assert app.networks["classify"].tensors["input"].shape == (1, 16, 16, 3)
    assert app.networks["landmarks"].tensors["input"].shape == (1, 8, 8, 4)
    frame = random_inputs(app.networks["classify"], 1)["input"]
    if scaling == "nearest":  # each row twice, each column as the middle of the pixel says
        columns = [int((i + 0.5) * 6 / 16) for i in range(16)]
        scaled = frame[:, 4:12, 2:8].repeat(2, axis=1)[:, :, columns]
        found = next(iter(execute(app.networks["classify"], {"input": frame}).values()))
        np.testing.assert_allclose(found, trained(tmp_path, "classify", scaled), rtol=1e-4, atol=1e-5)
    result = LibraryTrial(emit_application(app, JointSearch(app).fastest.layout)).run(TrialScript(12))
    assert result.runs > 20 and not result.wrong


def test_a_crop_alone_is_the_image_itself(tmp_path: Path) -> None:
    # landmarks wants 4 channels and the frame has 3: the sentence about unequal tensors
    with pytest.raises(InputError, match="only equal tensors lie in the same bytes"):
        application(tmp_path, relation("same input", "detect", "landmarks", "crop = [3, 5, 8, 8]"), names=NAMES[:3])
    cropped = application(tmp_path, relation("after", "detect", "landmarks", "crop = [0, 0, 8, 8]"))
    assert type(cropped.networks["landmarks"].layers[0].op).__name__ == "Slice"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            relation("after", "detect", "landmarks", "crop = [0, 0, 9, 4]"),
            "crop is [0, 0, 9, 4], and the image has 8",
        ),
        (relation("after", "detect", "landmarks", "crop = [0, 0, 4, 4]"), "expected resize = [8, 8]"),
        (relation("after", "detect", "landmarks", "resize = [4, 4]"), "expected resize = [8, 8]"),
        (relation("after", "detect", "landmarks", "crop = [0, 0, 0, 4]"), "relation[0].crop"),
        (relation("after", "detect", "landmarks", "crop = [0, 0, 4]"), "relation[0].crop"),
        (
            relation("parallel", "detect", "landmarks", "crop = [0, 0, 4, 4]"),
            "crop is for after and same input",
        ),
        (relation("after", "classify", "landmarks", "resize = [8, 8]"), "crop and resize are for images"),
    ],
)
def test_what_does_not_fit_is_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        application(tmp_path, text)
    assert said in str(error.value)


def test_eight_bit_images_are_cut_and_scaled_too(tmp_path: Path, corpus_folder: Path) -> None:
    """The frame of one person detector, and its middle for another."""
    file = corpus_folder.resolve() / "models" / "mlperf_vww96_int8.tflite"
    entries = "".join(f'[[network]]\nname = "{n}"\nfile = "{file}"\nplain = true\n' for n in ("whole", "middle"))
    cut = relation("same input", "whole", "middle", "crop = [16, 8, 60, 72]\nresize = [96, 96]")
    (tmp_path / "app.toml").write_text(entries + cut)
    app = load_application(tmp_path / "app.toml")
    result = LibraryTrial(emit_application(app, JointSearch(app).fastest.layout)).run(TrialScript(4))
    assert result.runs and not result.wrong
