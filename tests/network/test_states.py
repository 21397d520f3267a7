"""Models that keep a state between calls: it enters as an input, leaves as an output, and runs go on as LiteRT's do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from edgewright.emit import TARGETS, emit
from edgewright.errors import EdgewrightError, Unsupported
from edgewright.memory import plan as make_plan
from edgewright.network import Network, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.passes import run as clean
from edgewright.network.reference import compare, reference
from edgewright.network.tflite import read_tflite
from edgewright.program.codec import plan_from_dict, plan_to_dict
from tests.helpers.emitting import check_emitted, native
from tests.helpers.on_board import check_on_board
from tests.helpers.tflite_models import Array, Node, Spec, constant, model, options, with_graphs


def svdf(seed: int, dtype: str, relu: bool = True, kept: str = "int16", step: float = 0.002) -> bytes:
    """Random weights; the state of stored numbers has this type and scale, and weights over time too if they fit."""
    rng = np.random.default_rng(seed)
    batch, depth, units, rank, length = (int(rng.integers(1, high)) for high in (3, 9, 5, 4, 7))
    filters, is_stored = units * rank, dtype != "float32"

    def weights(name: str, shape: tuple[int, ...], kind: str, scale: float) -> Spec:
        if not is_stored:
            return constant(name, rng.standard_normal(shape), dtype)
        most = {"int8": 127, "int16": 32767, "int32": 5000}[kind]
        values = rng.integers(-most, most + 1, shape)
        if kind == "int16" and step > 0.01:  # as 8 bits hold them
            values, kind, scale = values // 256, kept, scale * 256
        return constant(name, values, kind, scale=scale * rng.uniform(0.8, 1.2))

    def quant(scale: float, zero: int = 0) -> dict[str, Any]:
        return {"scale": scale, "zero": zero} if is_stored else {}

    specs = [
        Spec("x", (batch, depth), dtype, **quant(0.05, int(rng.integers(-20, 20)))),
        weights("features", (filters, depth), "int8", 0.01),
        weights("time", (filters, length), "int16", 0.00003),
        weights("bias", (units,), "int32", 0.001),
        Spec(
            "memory", (batch, filters * length), kept if is_stored else dtype, special={"isVariable": True},
            **quant(step * rng.uniform(0.8, 1.2)),
        ),
        Spec("y", (batch, units), dtype, **quant(0.02, -128)),
    ]  # fmt: skip
    names = ("x", "features", "time", "bias" if rng.random() < 0.7 else "", "memory")
    made = options("SVDF", rank=rank, fusedActivationFunction=1 if relu or is_stored else 0)
    return model(specs, [Node("SVDF", names, ("y",), made)], ["x"], ["y"])


def variables(begun: Array | None = None, twice: bool = False) -> bytes:
    """y is the mean of the last three inputs, kept in a variable; `twice`: it is read again once it is assigned."""
    handle = Spec("handle", (1,), "resource")
    var = options("VarHandle", sharedName="past", container="")
    nodes = [
        Node("CALL_ONCE", (), (), options("CallOnce", initSubgraphIndex=1)),
        Node("VAR_HANDLE", (), ("handle",), var),
        Node("READ_VARIABLE", ("handle",), ("before",), options("ReadVariable")),
        Node("STRIDED_SLICE", ("before", "begin", "end", "ones"), ("older",), options("StridedSlice")),
        Node("CONCATENATION", ("older", "x"), ("after",), options("Concatenation", axis=1)),
        Node("ASSIGN_VARIABLE", ("handle", "after"), (), options("AssignVariable")),
        Node("READ_VARIABLE", ("handle",), ("again",), options("ReadVariable")),
        Node("MEAN", ("again" if twice else "after", "axis"), ("y",), options("Reducer", keepDims=False)),
    ]
    shape = (1, 3, 4)
    specs = [handle, Spec("x", (1, 1, 4)), *(Spec(name, shape) for name in ("before", "after", "again"))]
    specs += [Spec("older", (1, 2, 4)), Spec("y", (1, 4)), constant("axis", [1])]
    specs += [constant("begin", [0, 1, 0]), constant("end", [1, 3, 4]), constant("ones", [1, 1, 1])]
    main = model(specs, nodes, ["x"], ["y"])
    value = constant("first", np.zeros(shape) if begun is None else begun, "float32")
    once = [Node("VAR_HANDLE", (), ("handle",), var)]
    once += [Node("ASSIGN_VARIABLE", ("handle", "first"), (), options("AssignVariable"))]
    return with_graphs(main, model([handle, value], once, [], []))


def in_turn(content: bytes, rounds: list[Array]) -> list[Array]:
    """The outputs of one interpreter that is called again and again."""
    resolver = OpResolverType.BUILTIN_REF
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=resolver, num_threads=1)
    interpreter.allocate_tensors()
    (x,), (y,) = interpreter.get_input_details(), interpreter.get_output_details()
    found = []
    for value in rounds:
        interpreter.set_tensor(x["index"], value)
        interpreter.invoke()
        found.append(interpreter.get_tensor(y["index"]).copy())
    return found


def check_calls(content: bytes, first: float = 0) -> None:
    """The C library, handed its states call after call, gives what LiteRT's interpreter gives."""
    network = clean(read_tflite(content))
    library = native(network)
    states = {
        name: np.full(network.tensors[name].shape, first, network.tensors[name].dtype.numpy) for name in network.states
    }
    given = [random_inputs(network, seed)["x"] for seed in range(9)]
    for x, wanted in zip(given, in_turn(content, given), strict=True):
        outputs = library.run({"x": x, **states})
        states = {name: outputs[after] for name, after in network.states.items()}
        np.testing.assert_allclose(outputs[network.outputs[0]], wanted, rtol=1e-5, atol=1e-5)
        if wanted.dtype == np.int8:
            np.testing.assert_array_equal(outputs[network.outputs[0]], wanted)


def agrees(content: bytes, count: int = 4) -> Network:
    """Our kernels give what LiteRT gives for whatever states, which leave as LiteRT leaves them."""
    network = clean(read_tflite(content))
    truth = reference(content, network)
    for seed in range(count):
        values = random_inputs(network, seed)
        assert compare(network, execute(network, values), truth.run(values)).passes
    return network


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_svdf_layers(dtype: str) -> None:
    for seed in range(12):
        network = agrees(svdf(seed, dtype, relu=seed % 2 == 0))
        assert network.states in ({"memory": "memory_next"}, {})  # nothing is kept where time has one step


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_svdf_calls_in_turn(dtype: str) -> None:
    check_calls(svdf(3, dtype))
    check_emitted(clean(read_tflite(svdf(4, dtype))), "cortex-m4")


def test_svdf_with_a_state_in_8_bits() -> None:
    """As with 16 bits, which LiteRT judges, while numbers stay within 8 bits. It knows no state in 8 bits."""
    for seed in range(6):
        narrow, wide = (clean(read_tflite(svdf(seed, "int8", kept=kept, step=0.2))) for kept in ("int8", "int16"))
        agrees(svdf(seed, "int8", kept="int16", step=0.2))
        for run in range(4):
            values = random_inputs(wide, run)
            values = {name: np.clip(value, -128, 127) for name, value in values.items()}
            small = {name: value.astype(narrow.tensors[name].dtype.numpy) for name, value in values.items()}
            found, wanted = execute(narrow, small), execute(wide, values)
            assert all(np.array_equal(found[name], np.clip(wanted[name], -128, 127)) for name in wide.outputs)
    with pytest.raises(EdgewrightError, match="8 bits"):
        reference(svdf(3, "int8", kept="int8", step=0.2), clean(read_tflite(svdf(3, "int8", kept="int8", step=0.2))))
    check_emitted(clean(read_tflite(svdf(4, "int8", kept="int8", step=0.2))), "cortex-m4")


@pytest.mark.parametrize("target", ["cortex-m4", "rv32imc"])
def test_svdf_on_the_board(target: str) -> None:
    check_on_board(clean(read_tflite(svdf(5, "int8"))), target)


@pytest.mark.parametrize("twice", [False, True])
def test_variables(twice: bool) -> None:
    content = variables(twice=twice)
    assert agrees(content).states == {"past": "past_next"}
    check_calls(content)


def test_what_variables_begin_with() -> None:
    content = variables(np.full((1, 3, 4), 2.5))
    assert "state 'past': begins with 2.5; hand output 'past_next'" in read_tflite(content).notes[0]
    check_calls(content, 2.5)
    with pytest.raises(Unsupported, match="the variable 'past' begins with numbers that differ"):
        read_tflite(variables(np.arange(12.0).reshape(1, 3, 4)))


def test_the_header_and_the_plan_say_which_inputs_are_states() -> None:
    network = clean(read_tflite(svdf(3, "int8")))
    plan = make_plan(network)
    assert "A state between calls, the same array for both: memory, memory_next." in str(
        emit(plan, TARGETS["host"], network).files["model.h"]
    )
    stored = plan_to_dict(plan)
    assert plan_from_dict(stored).network.states == network.states
    stored["network"]["states"] = {"x": "nowhere"}
    with pytest.raises(EdgewrightError, match="the state 'x' is no input, or 'nowhere' no output"):
        plan_from_dict(stored)
