"""What ends detectors: boxes about anchors, and which of those that overlap are kept, as LiteRT gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from edgewright.errors import ModelError, Unsupported
from edgewright.network import Network, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.passes import run as clean
from edgewright.network.reference import compare, reference
from edgewright.network.tflite import read_tflite
from tests.helpers.emitting import check_emitted
from tests.helpers.on_board import check_on_board
from tests.helpers.tflite_models import Node, Spec, constant, model, options, packed, run_litert, unpacked

OUTPUTS = ("boxes_out", "classes_out", "scores_out", "count_out")


def detector(seed: int, dtype: str, **changes: Any) -> bytes:
    """SSD's last layer; scores are those of a background, and of classes."""
    rng = np.random.default_rng(seed)
    number, classes, most = 40, int(rng.integers(1, 5)), int(rng.integers(3, 30))
    said = {
        "max_detections": most, "max_classes_per_detection": 1, "detections_per_class": 100, "use_regular_nms": False,
        "nms_score_threshold": float(rng.choice([0.4, 0.9])), "nms_iou_threshold": float(rng.choice([0.3, 0.6])),
        "num_classes": classes,
        "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0,
    }  # fmt: skip
    quant = {} if dtype == "float32" else {"scale": 0.03, "zero": 131}
    likely = {} if dtype == "float32" else {"scale": 1 / 256, "zero": 0}
    anchors = np.hstack([rng.random((number, 2)), rng.uniform(0.1, 0.4, (number, 2))])
    specs = [
        Spec("boxes", (1, number, 4), dtype, **quant),
        Spec("scores", (1, number, classes + 1), dtype, **likely),
        constant("anchors", anchors, "float32")
        if dtype == "float32"
        else constant("anchors", np.clip(anchors / 0.01, 0, 255), "uint8", scale=0.01),
        *(Spec(name, shape) for name, shape in zip(OUTPUTS, [(1, most, 4), (1, most), (1, most), (1,)], strict=True)),
    ]
    node = Node("custom TFLite_Detection_PostProcess", ("boxes", "scores", "anchors"), OUTPUTS)
    made = unpacked(model(specs, [node], ["boxes", "scores"], OUTPUTS))
    made.subgraphs[0].operators[0].customOptions = list(flexbuffers.Dumps(said | changes))
    return packed(made)


def read(content: bytes) -> Network:
    return clean(read_tflite(content))


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_detectors(dtype: str) -> None:
    kept = set()
    for seed in range(8):
        content = detector(seed, dtype)
        network = read(content)
        truth = reference(content, network)
        for number in range(3):
            values = random_inputs(network, number)
            expected, found = truth.run(values), execute(network, values)
            assert compare(network, found, expected).passes
            kept.add((int(found["count_out"][0]), found["scores_out"].shape[1]))
    assert {count < most for count, most in kept} == {True, False}  # some give less than is asked for


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_emitted(dtype: str) -> None:
    check_emitted(read(detector(1, dtype)), "cortex-m4")


@pytest.mark.parametrize("target", ["cortex-m4", "rv32gc"])
def test_on_the_board(target: str) -> None:
    check_on_board(read(suppression(4, 5)), target)


def suppression(seed: int, count: int) -> bytes:
    rng = np.random.default_rng(seed)
    corners = rng.random((20, 2))
    boxes = constant("boxes", np.hstack([corners, corners + rng.uniform(0.1, 0.5, (20, 2))]), "float32")
    numbers = [constant("n", count), constant("iou", 0.3, "float32"), constant("least", 0.1, "float32")]
    numbers += [constant("sigma", 0.0, "float32")] if seed % 2 else []
    outputs = [Spec("places", (count,), "int32"), Spec("number", (), "int32")]
    if seed % 2:
        outputs.insert(1, Spec("kept", (count,)))
    kind = "NON_MAX_SUPPRESSION_V5" if seed % 2 else "NON_MAX_SUPPRESSION_V4"
    made = options("NonMaxSuppressionV5" if seed % 2 else "NonMaxSuppressionV4")
    names = tuple(spec.name for spec in outputs)
    node = Node(kind, ("boxes", "scores", *(spec.name for spec in numbers)), names, made)
    return model([boxes, Spec("scores", (20,)), *numbers, *outputs], [node], ["scores"], names)


@pytest.mark.parametrize("seed", range(6))
def test_boxes_that_overlap(seed: int) -> None:
    content = suppression(seed, 3 + 3 * seed)
    network = read(content)
    values = random_inputs(network, seed)
    found = execute(network, values)
    for name, wanted in zip(network.outputs, run_litert(content, [values["scores"]]), strict=True):
        np.testing.assert_array_equal(found[name], wanted)


def test_what_is_not_handled() -> None:
    with pytest.raises(Unsupported, match="export the model with use_regular_nms=false"):
        read_tflite(detector(0, "float32", use_regular_nms=True))
    made = unpacked(detector(0, "float32"))
    made.subgraphs[0].operators[0].customOptions = [1, 2]
    with pytest.raises(ModelError, match=r"its options (cannot be read|are no numbers)"):
        read_tflite(packed(made))
