"""What is wrong with a TFLite file is said in one sentence that names the place; nothing else comes out."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.errors import EdgewrightError, InputError, ModelError, Unsupported
from edgewright.network.tflite import read_tflite
from tests.helpers.tflite_models import Node, Spec, constant, model, options, packed, unpacked

SPECS = [
    Spec("x", (1, 4, 4, 2), "int8", 0.5),
    constant("w", np.ones((3, 1, 1, 2)), "int8", scale=(0.1, 0.2, 0.3), zero=0),
    constant("b", [1, 2, 3], scale=(0.05, 0.1, 0.15), zero=0),
    Spec("y", (1, 4, 4, 3), "int8", 0.25),
]
NODES = [Node("CONV_2D", ("x", "w", "b"), ("y",), options("Conv2D", strideH=1, strideW=1))]


def sound() -> bytes:
    return model(SPECS, NODES, ["x"], ["y"])


def changed(change: Callable[[Any, Any], None]) -> bytes:
    """The sound model after a change to it or to its graph."""
    made = unpacked(sound())
    change(made, made.subgraphs[0])
    return packed(made)


def chain(*kinds: str, dtype: str = "float32", **quant: Any) -> bytes:
    specs = [Spec(f"t{i}", (2, 3), dtype, **quant) for i in range(len(kinds) + 1)]
    nodes = [Node(kind, (f"t{i}",), (f"t{i + 1}",)) for i, kind in enumerate(kinds)]
    return model(specs, nodes, ["t0"], [f"t{len(kinds)}"])


def test_the_sound_model_is_read() -> None:
    assert len(read_tflite(sound()).layers) == 1


@pytest.mark.parametrize("content", [b"", b"TFL3", b"\x1c\0\0\0TFL2" + bytes(64), b"\x08\0\0\0ONNX" + bytes(99)])
def test_no_tflite_file(content: bytes) -> None:
    with pytest.raises(ModelError, match="'model' is not a TFLite file"):
        read_tflite(content)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        read_tflite(tmp_path / "missing.tflite")
    (tmp_path / "empty.tflite").touch()
    with pytest.raises(ModelError, match="is empty"):
        read_tflite(tmp_path / "empty.tflite")


def test_every_truncation_is_refused() -> None:
    content = sound()
    for length in range(len(content)):
        with pytest.raises(EdgewrightError):
            read_tflite(content[:length])


@settings(max_examples=120)
@given(st.data())
def test_damage_is_survived(data: st.DataObject) -> None:
    content = bytearray(sound())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(8, len(content) // 4 - 1)) * 4
        value = data.draw(st.one_of(st.integers(0, len(content)), st.sampled_from([0xFFFFFFFF, 1 << 31, 1 << 28])))
        content[at : at + 4] = struct.pack("<I", value)
    with suppress(EdgewrightError):
        read_tflite(bytes(content))


def _set(target: str, **fields: Any) -> Callable[[Any, Any], None]:
    def change(made: Any, graph: Any) -> None:
        tensor = next(t for t in graph.tensors if t.name.decode() == target)
        for key, value in fields.items():
            setattr(tensor, key, value)

    return change


def _quant(target: str, **fields: Any) -> Callable[[Any, Any], None]:
    def change(made: Any, graph: Any) -> None:
        tensor = next(t for t in graph.tensors if t.name.decode() == target)
        for key, value in fields.items():
            setattr(tensor.quantization, key, value)

    return change


def _operator(**fields: Any) -> Callable[[Any, Any], None]:
    def change(made: Any, graph: Any) -> None:
        for key, value in fields.items():
            setattr(graph.operators[0], key, value)

    return change


def _stride(value: int) -> Callable[[Any, Any], None]:
    def change(made: Any, graph: Any) -> None:
        graph.operators[0].builtinOptions.strideH = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set("x", shape=[1 << 14, 1 << 14, 1 << 14, 2]), "tensor 'x' claims 8796093022208 elements"),
        (_set("x", shape=[1] * 9), "tensor 'x' has 9 axes"),
        (_set("x", shape=[1, -7, 4, 2]), r"tensor 'x' has the shape \(1, -7, 4, 2\)"),
        (_set("x", shape=[1, 0, 4, 2]), "tensor 'x' has no elements"),
        (_set("w", shape=[3, 1, 1, 9]), r"tensor 'w' has 6 bytes of values, but int8\[3, 1, 1, 9\] needs 27"),
        (_set("w", buffer=99), "'model' is damaged: tensor 'w' is kept in buffer 99"),
        (_quant("w", scale=[0.1, 0.0, 0.3]), "tensor 'w' has a scale that is not a positive number"),
        (_quant("x", scale=[float("nan")]), "tensor 'x' has a scale that is not a positive number"),
        (_quant("w", scale=[0.1, 0.2], zeroPoint=[0, 0]), "2 scales along axis 0, which do not match"),
        (_quant("w", zeroPoint=[0, 0]), "tensor 'w' has 3 scales but 2 zero points"),
        (_quant("x", zeroPoint=[1000]), "tensor 'x' has a zero point outside the range of int8"),
        (_set("x", quantization=None), "layer 'y': integers without a scale"),
        (_operator(inputs=[0, 1, 77]), "'model' is damaged: tensor 77 of 4 is named"),
        (
            _operator(inputs=[3, 1, 2]),
            r"the graph has a cycle, through or before these operators: 0 \(CONV_2D\)",
        ),
        (_operator(inputs=[0]), r"layer 'y' \(CONV_2D\) lacks its input 1"),
        (_operator(outputs=[0]), "operator 0 writes tensor 'x', which is an input or a constant"),
        (_operator(opcodeIndex=5), "'model' is damaged"),
        (_stride(0), r"layer 'y': the stride is \(0, 1\)"),
        (_stride(-3), r"layer 'y': the stride is \(-3, 1\)"),
        (lambda made, graph: setattr(graph, "outputs", []), "'model' has no outputs"),
        (lambda made, graph: setattr(graph, "inputs", []), "tensor 'x' is read but never written"),
        (lambda made, graph: setattr(made, "subgraphs", []), "'model' holds no graph"),
        (lambda made, graph: setattr(made, "subgraphs", [graph, graph]), "'model' holds 2 graphs"),
        (
            lambda made, graph: graph.operators.append(graph.operators[0]),
            "tensor 'y' is written by operators 0 and 1",
        ),
    ],
)
def test_what_is_wrong_is_named(change: Callable[[Any, Any], None], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        read_tflite(changed(change))


def test_a_bias_has_one_axis_whatever_the_file_says() -> None:
    """Some files give it the axis of its weights."""
    bias = read_tflite(changed(_quant("b", quantizedDimension=3))).tensors["b"].quant
    assert bias == read_tflite(sound()).tensors["b"].quant and bias.axis == 0


def test_open_sizes_must_be_set() -> None:
    content = changed(_set("x", shapeSignature=[-1, -1, 4, 2]))
    with pytest.raises(
        ModelError, match=r"'model' leaves sizes of an input open: 'x' is \?x\?x4x2\. Set .* --shape x=1,100,4,2$"
    ):
        read_tflite(content)
    assert read_tflite(content, shapes={"x": (1, 7, 4, 2)}).tensors["y"].shape == (1, 7, 4, 3)
    with pytest.raises(ModelError, match=r"a shape is given for \['z'\], but the model's inputs are \['x'\]"):
        read_tflite(content, shapes={"z": (1,)})
    with pytest.raises(ModelError, match="input 'x' has 4 axes"):
        read_tflite(content, shapes={"x": (1, 2)})
    with pytest.raises(ModelError, match="tensor 'x' has no elements"):
        read_tflite(content, shapes={"x": (0, 7, 4, 2)})


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_must_be_numbers(value: float) -> None:
    specs = [Spec("x", (1, 2)), constant("w", [[1, value], [2, 3]], "float32"), Spec("y", (1, 2))]
    content = model(specs, [Node("FULLY_CONNECTED", ("x", "w"), ("y",), options("FullyConnected"))], ["x"], ["y"])
    with pytest.raises(ModelError, match="the constant 'w' holds NaN or infinite values"):
        read_tflite(content)


def test_everything_unsupported_is_listed_at_once() -> None:
    kinds = ("RELU", "HASHTABLE_SIZE", "RELU", "custom Magic", "custom Magic", "SIN")
    with pytest.raises(Unsupported) as caught:
        read_tflite(chain(*kinds))
    assert str(caught.value) == (
        "'model' uses what is not handled:\n"
        "  2 x custom operator 'Magic': 't4', 't5'; describe it in a Python file, with its C beside it (--operators), "
        "or cut the model before it\n"
        "  1 x HASHTABLE_SIZE: 't2'\n"
        "Convert the model without it and compute it in the application."
    )


def test_a_loop_without_a_body() -> None:
    with pytest.raises(ModelError, match="layer 't1': graph 0 of 1 is named"):
        read_tflite(chain("WHILE"))


def test_quantised_layers_that_tflite_does_not_run() -> None:
    with pytest.raises(Unsupported, match="1 x SIN, where there is no kernel for quantised int8: 't1'"):
        read_tflite(chain("SIN", dtype="int8", scale=0.1))


def test_types_that_are_not_handled() -> None:
    with pytest.raises(Unsupported, match="tensor 't0' is FLOAT64, which is not handled"):
        read_tflite(chain("RELU", dtype="float64"))
    with pytest.raises(Unsupported, match="tensor 'x' is variable INT8"):
        read_tflite(changed(_set("x", isVariable=True)))


def test_a_shape_computed_at_run_time() -> None:
    specs = [Spec("x", (2, 3)), Spec("shape", (1,), "int32"), Spec("y", (6,))]
    content = model(specs, [Node("RESHAPE", ("x", "shape"), ("y",), options("Reshape"))], ["x", "shape"], ["y"])
    with pytest.raises(Unsupported, match=r"1 x RESHAPE, where the new shape \('shape'\) is computed at run time: 'y'"):
        read_tflite(content)


def test_results_that_no_machine_holds() -> None:
    specs = [Spec("x", (1, 4, 4, 1)), constant("size", [1 << 30, 1 << 30]), Spec("y", (1, 1, 1, 1))]
    made = options("ResizeNearestNeighbor")
    content = model(specs, [Node("RESIZE_NEAREST_NEIGHBOR", ("x", "size"), ("y",), made)], ["x"], ["y"])
    with pytest.raises(ModelError, match="1073741824 rows or columns, more than the 4194304 that are handled"):
        read_tflite(content)


def test_types_must_agree() -> None:
    specs = [Spec("x", (2, 3), "int8", 0.1), Spec("y", (2, 3))]
    with pytest.raises(ModelError, match=r"layer 'y' \(RELU\) turns quantised int8 'x' into float32 'y'"):
        read_tflite(model(specs, [Node("RELU", ("x",), ("y",))], ["x"], ["y"]))


def test_scales_that_tflite_does_not_convert() -> None:
    specs = [Spec("a", (2,), "int8", 0.1), Spec("b", (2,), "int8", 0.2), Spec("y", (4,), "int8", 0.1)]
    content = model(specs, [Node("CONCATENATION", ("a", "b"), ("y",), options("Concatenation"))], ["a", "b"], ["y"])
    with pytest.raises(Unsupported, match="the scales of inputs and output differ"):
        read_tflite(content)


@pytest.mark.parametrize(("scale", "beta"), [(0.0625, 0.0), (0.0625, 2.0**-22), (0.0625, -1.0), (1e-9, 1.0)])
def test_a_softmax_that_ends_the_process_of_litert(scale: float, beta: float) -> None:
    specs = [Spec("x", (2, 3), "int8", scale), Spec("y", (2, 3), "int8", 1 / 256, -128)]
    content = model(specs, [Node("SOFTMAX", ("x",), ("y",), options("Softmax", beta=beta))], ["x"], ["y"])
    with pytest.raises(ModelError, match=f"of 'x', which a softmax reads, is too small for its beta of {beta:g}"):
        read_tflite(content)


@pytest.mark.parametrize(
    ("kind", "block", "around"),
    [
        ("SPACE_TO_BATCH_ND", [3, 2], [[0, 0], [0, 0]]),
        ("SPACE_TO_BATCH_ND", [2, 0], [[0, 0], [0, 0]]),
        ("SPACE_TO_BATCH_ND", [2, 2], [[0, -2], [0, 0]]),
        ("SPACE_TO_BATCH_ND", [2, 2, 1, 1], [[0, 0]] * 4),
        ("BATCH_TO_SPACE_ND", [2, 3], [[0, 0], [0, 0]]),
        ("BATCH_TO_SPACE_ND", [2, 2], [[4, 4], [0, 0]]),
    ],
)
def test_blocks_that_do_not_fit(kind: str, block: list[int], around: list[list[int]]) -> None:
    specs = [Spec("x", (4, 4, 4, 1)), constant("block", block), constant("around", around), Spec("y", (1,))]
    made = options("SpaceToBatchND" if kind == "SPACE_TO_BATCH_ND" else "BatchToSpaceND")
    with pytest.raises(ModelError):
        read_tflite(model(specs, [Node(kind, ("x", "block", "around"), ("y",), made)], ["x"], ["y"]))


def test_constants_without_elements() -> None:
    specs = [
        constant("x", np.zeros((1, 0, 4, 1)), "int8", scale=0.1),
        constant("size", [3, 3]),
        Spec("y", (1, 3, 3, 1)),
    ]
    specs[2] = Spec("y", (1, 3, 3, 1), "int8", 0.1)
    content = model(specs, [Node("RESIZE_BILINEAR", ("x", "size"), ("y",), options("ResizeBilinear"))], [], ["y"])
    with pytest.raises(ModelError, match="RESIZE_BILINEAR"):
        read_tflite(content)


def test_activations_with_a_scale_per_channel() -> None:
    specs = [
        Spec("x", (1, 2), "int8", 0.1),
        constant("c", [[1, 2]], "int8", scale=(0.1, 0.2), zero=0, axis=1),
        Spec("y", (1, 2), "int8", 0.1),
    ]
    with pytest.raises(Unsupported, match="1 x ADD, where elements are quantised per channel"):
        read_tflite(model(specs, [Node("ADD", ("x", "c"), ("y",), options("Add"))], ["x"], ["y"]))
