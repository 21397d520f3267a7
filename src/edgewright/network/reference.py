"""The untouched model file, executed by the runtime it was made for: the truth that everything is judged against."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..errors import EdgewrightError, InputError
from .network import Arithmetic, Network
from .operators import Dequantize
from .tensor import Array


class Runtime(Protocol):
    """A model loaded by its own runtime: tensors by name, in the file's layout."""

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]: ...


@dataclass(frozen=True)
class Reference:
    """Runs the file on inputs in our layout, and gives outputs in our layout."""

    network: Network
    runtime: Runtime

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        theirs = {}
        for name in self.network.inputs:
            if name not in inputs:
                raise InputError(f"no value for input '{name}'; given are {sorted(inputs)}")
            theirs[name] = np.asarray(to_file_layout(self.network, name, inputs[name]), order="C")
        outputs = self.runtime.run(theirs)
        return {name: to_our_layout(self.network, name, outputs[name]) for name in self.network.outputs}


def reference(source: str | os.PathLike[str] | bytes, network: Network) -> Reference:
    """The reference for a network that was read from this file, or from its bytes.

    Sizes that the file leaves open are those of the network.
    """
    load = _Litert if network.arithmetic is Arithmetic.TFLITE else _OnnxRuntime
    return Reference(network, load(source if isinstance(source, bytes) else str(source), network))


def to_file_layout(network: Network, name: str, value: Array) -> Array:
    layout = network.layouts.get(name)
    return value if layout is None else value.transpose(np.argsort(layout))


def to_our_layout(network: Network, name: str, value: Array) -> Array:
    layout = network.layouts.get(name)
    return value if layout is None else value.transpose(layout)


class _OnnxRuntime:
    """One thread, so that sums come in the same order every time."""

    def __init__(self, source: str | bytes, network: Network) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # Without it, 8-bit products saturate at 16 bits on processors that lack VNNI.
        options.add_session_config_entry("session.x64quantprecision", "1")
        try:
            self.session = onnxruntime.InferenceSession(source, options, ["CPUExecutionProvider"])
        except Exception as error:
            raise EdgewrightError(f"onnxruntime cannot run {_name(source)}: {error}") from error
        # Inputs that the network does without still have to be fed.
        self.spare: dict[str, Array] = {
            arg.name: np.zeros([d if isinstance(d, int) else 1 for d in arg.shape], _ORT_TYPES[arg.type])
            for arg in self.session.get_inputs()
            if arg.name not in network.inputs
        }

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        names = [arg.name for arg in self.session.get_outputs()]
        values = self.session.run(names, {**self.spare, **inputs})
        return dict(zip(names, values, strict=True))


_ORT_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(int16)": np.int16,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
    "tensor(bool)": np.bool_,
}


class _Litert:
    """LiteRT with its reference kernels, whose rounding ours follow bit by bit."""

    def __init__(self, source: str | bytes, network: Network) -> None:
        try:
            from ai_edge_litert.interpreter import Interpreter, OpResolverType
        except ImportError as error:
            raise EdgewrightError(
                "running a TFLite file needs LiteRT; install it with: pip install edgewright[reference]"
            ) from error
        try:
            self.interpreter: Any = Interpreter(
                **({"model_content": source} if isinstance(source, bytes) else {"model_path": source}),
                experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
                num_threads=1,
            )
            self.inputs = self._named(self.interpreter.get_input_details(), network.inputs)
            for name, detail in self.inputs.items():
                shape = to_file_shape(network, name)
                if tuple(detail["shape"]) != shape:
                    self.interpreter.resize_tensor_input(detail["index"], shape)
            self.interpreter.allocate_tensors()
        except (RuntimeError, ValueError) as error:
            raise EdgewrightError(f"LiteRT cannot run {_name(source)}: {error}") from error
        self.outputs = self._named(self.interpreter.get_output_details(), network.outputs)

    @staticmethod
    def _named(details: list[dict[str, Any]], names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
        """The runtime's tensors under our names: by place, or by name where the network has fewer of them."""
        if len(details) == len(names):
            return dict(zip(names, details, strict=True))
        known = {detail["name"]: detail for detail in details}
        return {name: known[name] for name in names}

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        for name, detail in self.inputs.items():
            self.interpreter.set_tensor(detail["index"], inputs[name])
        self.interpreter.invoke()
        return {name: self.interpreter.get_tensor(detail["index"]) for name, detail in self.outputs.items()}


def _name(source: str | bytes) -> str:
    return "the model" if isinstance(source, bytes) else f"'{source}'"


def to_file_shape(network: Network, name: str) -> tuple[int, ...]:
    layout = network.layouts.get(name)
    shape = network.tensors[name].shape
    return shape if layout is None else tuple(shape[axis] for axis in np.argsort(layout))


@dataclass(frozen=True, slots=True)
class Difference:
    """How far a network's outputs lie from the expected ones, and whether that is near enough."""

    output: str  # where it lies: of all outputs, the one that is worst for what is allowed there
    largest: float  # real numbers; for integers, and for numbers that stood for integers, steps of the scale
    allowed: float
    passes: bool
    unit: str = ""  # "steps" or nothing

    def __str__(self) -> str:
        if self.largest == 0:
            return f"output '{self.output}': equal"
        unit = f" {self.unit}" if self.unit else ""
        return f"output '{self.output}': off by {self.largest:.3g}{unit} ({self.allowed:.3g} allowed)"


RELATIVE, ABSOLUTE = 1e-4, 1e-5  # float tolerance: sums of products may be reordered


def compare(network: Network, actual: Mapping[str, Array], expected: Mapping[str, Array]) -> Difference:
    """The largest difference among the outputs, judged by what the arithmetic promises.

    Integers: bit by bit with TFLite's rounding, one step of the scale with ONNX's. Floats: a small part of the
    largest expected magnitude.
    """
    worst: Difference | None = None
    for name in network.outputs:
        mine, theirs = np.asarray(actual[name]), np.asarray(expected[name])
        if mine.shape != theirs.shape:
            raise InputError(f"output '{name}' has shape {mine.shape}, expected {theirs.shape}")
        found = _difference(network, name, mine, theirs)
        if worst is None or _badness(found) > _badness(worst):
            worst = found
    assert worst is not None, "a network has outputs"
    return worst


def _difference(network: Network, name: str, mine: Array, theirs: Array) -> Difference:
    is_float = np.issubdtype(theirs.dtype, np.floating)
    step = _step(network, name)
    if not is_float:
        gap = np.abs(mine.astype(np.int64) - theirs.astype(np.int64))
        largest = float(gap.max(initial=0))
    else:
        a, b = mine.astype(np.float64), theirs.astype(np.float64)
        finite = np.isfinite(b)
        alike = np.array_equal(a[~finite], b[~finite], equal_nan=True) and np.isfinite(a[finite]).all()
        largest = float(np.abs(a[finite] - b[finite]).max(initial=0)) if alike else float("inf")
    if is_float and step is None:
        allowed = RELATIVE * float(np.abs(b[finite]).max(initial=0)) + ABSOLUTE
        return Difference(name, largest, allowed, largest <= allowed)
    allowed = 1.0 if step is not None and network.arithmetic is not Arithmetic.TFLITE else 0.0
    if is_float and step is not None:
        largest = round(largest / step, 3)  # a float32 product of the scale is no exact multiple of it
    return Difference(name, largest, allowed, largest <= allowed, "steps")


def _step(network: Network, name: str) -> float | None:
    """The scale of an output that is stored, or that was stored until its last layer; None if it never was."""
    quant = network.tensors[name].quant
    layer = network.producers.get(name)
    if quant is None and layer is not None and isinstance(layer.op, Dequantize):
        quant = network.tensors[layer.inputs[0]].quant
    return None if quant is None else max(quant.scale)


def _badness(difference: Difference) -> tuple[bool, float]:
    return not difference.passes, difference.largest / max(difference.allowed, 1e-30)
