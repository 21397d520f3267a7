"""Runs the untouched model file with its own runtime: the truth that everything is judged against."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..errors import EdgewrightError, InputError
from ..lazy import load_package
from .network import Arithmetic, Network
from .operators import Dequantize, NonMaxSuppression
from .tensor import Array

_PRECISION = "session.x64quantprecision"


class Runtime(Protocol):
    """A model loaded by its own runtime: tensors by name, in the file's layout."""

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]: ...

    def trace(self, inputs: Mapping[str, Array], tensors: Sequence[str | int]) -> dict[str | int, Array]:
        """These tensors, and the outputs, computed operator by operator without optimisations."""
        ...


@dataclass(frozen=True)
class Reference:
    """Runs the file on inputs in our layout, and returns outputs in our layout."""

    network: Network
    runtime: Runtime

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        return self._outputs(self.runtime.run(self._theirs(inputs)))

    def trace(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs and inner stored tensors (for TFLite all tensors), computed operator by operator."""
        origins = {name: self.network.origins[name] for name in self._traced()}
        traced = self.runtime.trace(self._theirs(inputs), [origin.tensor for origin in origins.values()])
        shapes = {name: self.network.tensors[name].shape for name in origins}
        between = {name: origin.of(traced[origin.tensor], shapes[name]) for name, origin in origins.items()}
        return {**between, **self._outputs({str(name): value for name, value in traced.items()})}

    def _traced(self) -> list[str]:
        names = [layer.output for layer in self.network.layers if layer.output in self.network.origins]
        if self.network.arithmetic is Arithmetic.TFLITE:
            return names
        return [name for name in names if self.network.tensors[name].quant is not None]

    def _theirs(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        theirs = {}
        for name in self.network.inputs:
            if name not in inputs:
                raise InputError(f"no value for input '{name}'; given are {sorted(inputs)}")
            theirs[name] = np.asarray(to_file_layout(self.network, name, inputs[name]), order="C")
        return theirs

    def _outputs(self, outputs: Mapping[str, Array]) -> dict[str, Array]:
        return {name: to_our_layout(self.network, name, outputs[name]) for name in self.network.outputs}


def reference(source: str | os.PathLike[str] | bytes, network: Network) -> Reference:
    """The reference for a network that was read from this file, or from its bytes.

    Open sizes of the file are those of the network.
    """
    load = _Litert if network.arithmetic is Arithmetic.TFLITE else _OnnxRuntime
    return Reference(network, load(source if isinstance(source, bytes) else str(source), network))


def exact_session(onnxruntime: Any, source: str | bytes, *, is_optimised: bool = True) -> Any:
    """A session with one thread that asks for exact 8-bit products.

    With them, onnxruntime has no kernels for integer operators of int8 alone; those are exact without.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    if not is_optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    # Pad_Fusion passes zeros around an image to MaxPool, whose own padding is less than every number.
    given = {"providers": ["CPUExecutionProvider"], "disabled_optimizers": {"Pad_Fusion"}}
    options.add_session_config_entry(_PRECISION, "1")
    try:
        return onnxruntime.InferenceSession(source, options, **given)
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        options.add_session_config_entry(_PRECISION, "0")
        return onnxruntime.InferenceSession(source, options, **given)


def to_file_layout(network: Network, name: str, value: Array) -> Array:
    layout = network.layouts.get(name)
    return value if layout is None else value.transpose(np.argsort(layout))


def to_our_layout(network: Network, name: str, value: Array) -> Array:
    layout = network.layouts.get(name)
    return value if layout is None else value.transpose(layout)


class _OnnxRuntime:
    """Uses one thread, so that sums are always added in the same order."""

    def __init__(self, source: str | bytes, network: Network) -> None:
        self.source = source
        self.session = self._session(self._as_we_compute())
        # Inputs that the network does not use must still be fed: zeros, or what chooses a branch that can be computed.
        spare: dict[str, Array] = {
            arg.name: np.zeros([d if isinstance(d, int) else 1 for d in arg.shape], _ORT_TYPES[arg.type])
            for arg in self.session.get_inputs()
            if arg.name not in network.inputs
        }
        from .onnx_format.branch_inputs import compared_values

        self.spares = [spare, {**spare, **compared_values(self._loaded().graph, spare)}] if spare else [spare]
        self._traced: tuple[tuple[str, ...], Any] | None = None  # names of tensors, and a session that returns them

    def _as_we_compute(self) -> str | bytes:
        """The file, changed where onnxruntime would compute less exactly than we do.

        Other float types become float32, spectra are computed in double, and int8 weights become uint8 where
        onnxruntime may saturate.
        """
        import onnx

        from .onnx_format.exact_products import has_inexact_products, make_products_exact
        from .onnx_format.float32 import compute_spectra_in_double, has_other_floats, has_spectra, make_float32
        from .onnx_format.tensors import ModelBytes
        from .onnx_format.wire import split

        path, data = (None, self.source) if isinstance(self.source, bytes) else (Path(self.source), None)
        try:
            graph = onnx.ModelProto.FromString(split(ModelBytes(path, data).model).data)
            if not has_other_floats(graph) and not has_spectra(graph) and not has_inexact_products(graph):
                return self.source
            model = self._loaded()
            make_float32(model)
            make_products_exact(model)
            compute_spectra_in_double(model)
            content: bytes = model.SerializeToString()
        except Exception as error:
            raise EdgewrightError(f"onnx cannot read {_name(self.source)}: {error}") from error
        return content

    def _loaded(self) -> Any:
        import onnx

        return onnx.load_from_string(self.source) if isinstance(self.source, bytes) else onnx.load(self.source)

    def _session(self, source: str | bytes, is_optimised: bool = True) -> Any:
        onnxruntime = load_package("onnxruntime", "reference")
        try:
            return exact_session(onnxruntime, source, is_optimised=is_optimised)
        except Exception as error:
            raise EdgewrightError(f"onnxruntime cannot run {_name(self.source)}: {error}") from error

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        return self._values(self.session, inputs)

    def trace(self, inputs: Mapping[str, Array], tensors: Sequence[str | int]) -> dict[str | int, Array]:
        wanted = tuple(dict.fromkeys(map(str, tensors)))
        if self._traced is None or self._traced[0] != wanted:
            self._traced = wanted, self._session(self._with_outputs(wanted), is_optimised=False)
        return self._values(self._traced[1], inputs)

    def _values(self, session: Any, inputs: Mapping[str, Array]) -> dict[Any, Array]:
        names = [arg.name for arg in session.get_outputs()]
        failures = []
        for spare in self.spares:
            try:
                types = {arg.name: _ORT_TYPES[arg.type] for arg in session.get_inputs()}
                given: dict[str, Array] = {name: value.astype(types[name]) for name, value in inputs.items()}
                return dict(zip(names, session.run(names, {**spare, **given}), strict=True))
            except Exception as error:
                failures.append(error)
        raise EdgewrightError(f"onnxruntime cannot run {_name(self.source)}: {failures[0]}") from failures[0]

    def _with_outputs(self, tensors: Sequence[str]) -> bytes:
        """The file with these tensors as additional outputs."""
        import onnx

        from .onnx_format.exact_products import make_products_exact
        from .onnx_format.float32 import make_float32

        try:
            model = self._loaded()
            make_float32(model)
            make_products_exact(model)
            there = {output.name for output in model.graph.output}
            model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in tensors if name not in there)
            content: bytes = model.SerializeToString()
        except Exception as error:
            raise EdgewrightError(f"the tensors of {_name(self.source)} cannot be shown: {error}") from error
        return content


# onnxruntime's names of element types.
_ORT_TYPES: dict[str, np.dtype[Any]] = {
    "tensor(float)": np.dtype(np.float32),
    "tensor(double)": np.dtype(np.float64),
    **{f"tensor({name})": np.dtype(name) for name in ("float16", "int8", "uint8", "int16", "int32", "int64", "bool")},
}


class _Litert:
    """LiteRT with its reference kernels, which ours match bit by bit.

    All tensors are kept: when it shares memory among them, inputs that are read late have been seen overwritten.
    """

    def __init__(self, source: str | bytes, network: Network) -> None:
        self.source, self.network = source, network
        self.befores = {name: network.origins[name] for name in network.states}
        self.afters = {name: network.origins[name] for name in network.states.values()}
        self.interpreter, self.inputs, self.outputs = self._loaded()

    def _loaded(self) -> tuple[Any, dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        """The interpreter, and its names of inputs and outputs."""
        litert = load_package("ai_edge_litert.interpreter", "reference")
        source = _with_given_states(self.source) if self.network.states else self.source
        try:
            made = litert.Interpreter(
                **({"model_content": source} if isinstance(source, bytes) else {"model_path": source}),
                experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF,
                experimental_preserve_all_tensors=True,
                num_threads=1,
            )
            names = [name for name in self.network.inputs if name not in self.befores]
            for name, detail in self._named(made.get_input_details(), names).items():
                shape = to_file_shape(self.network, name)
                if tuple(detail["shape"]) != shape:
                    made.resize_tensor_input(detail["index"], shape)
            made.allocate_tensors()
            inputs = self._named(made.get_input_details(), names)
            shown = [name for name in self.network.outputs if name not in self.afters]
            outputs = self._named(made.get_output_details(), shown)
        except (RuntimeError, ValueError, KeyError) as error:
            raise EdgewrightError(f"LiteRT cannot run {_name(self.source)}: {str(error)[:200]}") from error
        return made, inputs, outputs

    @staticmethod
    def _named(details: list[dict[str, Any]], names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The runtime's tensors under our names: by position, or by name if the network has fewer of them."""
        if len(details) == len(names):
            return dict(zip(names, details, strict=True))
        known = {detail["name"]: detail for detail in details}
        return {name: known[name] for name in names}

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        for name, detail in self.inputs.items():
            self.interpreter.set_tensor(detail["index"], inputs[name])
        if any(isinstance(layer.op, NonMaxSuppression) for layer in self.network.layers):
            for detail in self.outputs.values():  # without boxes LiteRT leaves the output unchanged
                self.interpreter.set_tensor(detail["index"], np.zeros(detail["shape"], detail["dtype"]))
        self.interpreter.reset_all_variables()
        for name, origin in self.befores.items():
            index = int(origin.tensor)
            self.interpreter.set_tensor(index, origin.back(inputs[name], self.interpreter.get_tensor(index).shape))
        try:
            self.interpreter.invoke()
        except RuntimeError as error:  # values that one of its kernels rejects
            raise EdgewrightError(f"LiteRT stopped while it ran {_name(self.source)}: {error}") from error
        states = {
            name: origin.of(self.interpreter.get_tensor(int(origin.tensor)), self.network.tensors[name].shape)
            for name, origin in self.afters.items()
        }
        return states | {name: self.interpreter.get_tensor(detail["index"]) for name, detail in self.outputs.items()}

    def trace(self, inputs: Mapping[str, Array], tensors: Sequence[str | int]) -> dict[str | int, Array]:
        outputs = self.run(inputs)
        return {index: self.interpreter.get_tensor(index) for index in tensors} | outputs


def _with_given_states(source: str | bytes) -> bytes:
    """The file with the variables that it reads as additional inputs, and without assignments.

    Variables of an interpreter cannot be set from outside; state tensors of layers can.
    """
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf(source if isinstance(source, bytes) else Path(source).read_bytes(), 0)
    codes, graph = [code.builtinCode for code in model.operatorCodes], model.subgraphs[0]
    names: dict[int, tuple[bytes, bytes]] = {}  # of variables, by the tensors that represent them
    now: dict[tuple[bytes, bytes], int] = {}  # the tensor that holds each one now
    renamed: dict[int, int] = {}
    kept = []
    kinds = schema.BuiltinOperator
    assigned = {
        operator.inputs[0] for operator in graph.operators if codes[operator.opcodeIndex] == kinds.ASSIGN_VARIABLE
    }
    for operator in graph.operators:
        operator.inputs = [renamed.get(int(index), int(index)) for index in operator.inputs]
        kind = codes[operator.opcodeIndex]
        if kind == kinds.SVDF and graph.tensors[operator.inputs[4]].type == schema.TensorType.INT8:
            raise EdgewrightError("LiteRT knows no SVDF with a state in 8 bits, and writes 16 bits into it; TFLM does")
        if kind == kinds.VAR_HANDLE:
            said = operator.builtinOptions
            names[operator.outputs[0]] = (said.container, said.sharedName) if said else (b"", b"")
        is_ours = kind in (kinds.READ_VARIABLE, kinds.ASSIGN_VARIABLE) and any(
            names.get(index) == names.get(operator.inputs[0]) for index in assigned
        )
        if not is_ours:
            kept.append(operator)
        elif kind == kinds.ASSIGN_VARIABLE:
            now[names[operator.inputs[0]]] = operator.inputs[1]
        elif names[operator.inputs[0]] in now:
            renamed[operator.outputs[0]] = now[names[operator.inputs[0]]]
        else:
            now[names[operator.inputs[0]]] = operator.outputs[0]
            graph.inputs = [*graph.inputs, operator.outputs[0]]
    graph.operators = kept
    graph.outputs = [renamed.get(int(index), int(index)) for index in graph.outputs]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _name(source: str | bytes) -> str:
    return "the model" if isinstance(source, bytes) else f"'{source}'"


def to_file_shape(network: Network, name: str) -> tuple[int, ...]:
    layout = network.layouts.get(name)
    shape = network.tensors[name].shape
    return shape if layout is None else tuple(shape[axis] for axis in np.argsort(layout))


@dataclass(frozen=True, slots=True)
class OutputDifference:
    """The difference of a network's outputs from the expected ones, and whether it is within the tolerance."""

    output: str  # of all outputs, the one with the largest difference relative to its tolerance
    largest: float  # real numbers; for integers, and numbers that were integers, steps of the scale
    allowed: float
    passes: bool
    unit: str = ""  # "steps" or empty

    def __str__(self) -> str:
        if self.largest == 0:
            return f"output '{self.output}': equal"
        unit = f" {self.unit}" if self.unit else ""
        return f"output '{self.output}': off by {self.largest:.3g}{unit} ({self.allowed:.3g} allowed)"


RELATIVE, ABSOLUTE = 1e-4, 1e-5  # float tolerance: sums of products may be reordered


def compare(network: Network, actual: Mapping[str, Array], expected: Mapping[str, Array]) -> OutputDifference:
    """The largest difference among the outputs, judged by the tolerance of the arithmetic.

    Integers: exact with TFLite's rounding, one step of the scale with ONNX's. Floats: a small share of the largest
    expected magnitude.
    """
    worst: OutputDifference | None = None
    for name in network.outputs:
        mine, theirs = np.asarray(actual[name]), np.asarray(expected[name])
        if mine.shape != theirs.shape:
            raise InputError(f"output '{name}' has shape {mine.shape}, expected {theirs.shape}")
        one = difference(network, name, mine, theirs)
        if worst is None or badness(one) > badness(worst):
            worst = one
    assert worst is not None, "a network has outputs"
    return worst


def difference(network: Network, name: str, mine: Array, theirs: Array) -> OutputDifference:
    """The difference of a tensor from the expected one, judged by the tolerance of the arithmetic."""
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
        return OutputDifference(name, largest, allowed, largest <= allowed)
    allowed = 1.0 if step is not None and network.arithmetic is not Arithmetic.TFLITE else 0.0
    if is_float and step is not None:
        largest = round(largest / step, 3)  # a float32 product of the scale is not an exact multiple of it
    return OutputDifference(name, largest, allowed, largest <= allowed, "steps")


def _step(network: Network, name: str) -> float | None:
    """The scale of an output that is stored, or was stored until its last layer; None if it never was."""
    quant = network.tensors[name].quant
    layer = network.producers.get(name)
    if quant is None and layer is not None and isinstance(layer.op, Dequantize):
        quant = network.tensors[layer.inputs[0]].quant
    return None if quant is None else max(quant.scale)


def badness(difference: OutputDifference) -> tuple[bool, float]:
    """A sort key: differences that do not pass come last, then those that are large relative to the tolerance."""
    return not difference.passes, difference.largest / max(difference.allowed, 1e-30)
