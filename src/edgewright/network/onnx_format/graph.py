"""Reads the nodes of an ONNX graph: looks up names, folds constants, inlines functions and branches, calls importers.

Nodes that cannot be read are collected and reported together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod

import numpy as np
import onnx
import onnx.defs
import onnx.helper

from ...errors import ModelError, Unsupported
from ..operators import Concat, Reshape, Select
from ..operators.custom import DESCRIBE, find_custom
from ..tensor import Array
from .context import Absent, AbsentInput, Computed, Constant, Context, NodeProblem, Value
from .custom import custom
from .fold import folded
from .node import OnnxNode
from .order import sorted_nodes
from .table import ADVICE, OPERATORS
from .tensors import read_tensor
from .wire import ByteSpan, Key

MOST_NODES = 1_000_000  # after inlining; nested calls can grow without bound
MOST_CALLS = 40  # nested
MOST_ROUNDS = 200  # of a loop, which become layers
BRANCHES = ("then_branch", "else_branch")  # of an If

FunctionKey = tuple[str, str, str]  # domain, name, overload


@dataclass
class Scope:
    """The names visible to one list of nodes, with their opsets and attributes."""

    opsets: Mapping[str, int]
    values: dict[str, Value] = field(default_factory=dict)
    initializers: dict[str, tuple[onnx.TensorProto, ByteSpan | None]] = field(default_factory=dict)
    parent: Scope | None = None
    prefix: str = ""
    attributes: Mapping[str, onnx.AttributeProto] | None = None  # of the call, inside a function
    left_out: frozenset[str] = frozenset()  # optional inputs of a function that the call omits
    calls: tuple[FunctionKey, ...] = ()
    extents: Mapping[Key, ByteSpan] = field(default_factory=dict)  # of large tensors among the nodes' attributes

    @property
    def is_main(self) -> bool:
        return not self.prefix


@dataclass(frozen=True, slots=True)
class NodeCall:
    """A node to read, with its inputs looked up, its attributes resolved, and its scope."""

    proto: onnx.NodeProto
    domain: str  # empty for the standard domain
    name: str
    inputs: tuple[Value | None, ...]  # None for omitted optional inputs
    attributes: dict[str, onnx.AttributeProto]
    scope: Scope
    extents: Mapping[str, ByteSpan]  # of large tensors among the attributes

    @property
    def opset(self) -> int:
        if self.domain in self.scope.opsets:
            return self.scope.opsets[self.domain]
        if self.domain:
            return 1
        raise ModelError("the model names no opset version; is the file complete?")

    def resolved(self) -> onnx.NodeProto:
        """The node with its attributes; inside a function, references are replaced by the call's attributes."""
        if not any(attribute.ref_attr_name for attribute in self.proto.attribute):
            return self.proto
        resolved = onnx.NodeProto()
        resolved.CopyFrom(self.proto)
        del resolved.attribute[:]
        resolved.attribute.extend(self.attributes.values())
        return resolved


@dataclass
class GraphReader:
    context: Context
    functions: Mapping[FunctionKey, onnx.FunctionProto]
    problems: dict[NodeProblem, None] = field(default_factory=dict)  # an ordered set
    nodes_read: int = 0
    names: Counter[str] = field(default_factory=Counter)  # of nodes; files may repeat them

    def read(self, nodes: Sequence[onnx.NodeProto], scope: Scope) -> None:
        """Adds the layers of all nodes and binds the names that they write."""
        known = _names(scope)
        for index, proto in sorted_nodes(nodes, known):
            self.nodes_read += 1
            if self.nodes_read > MOST_NODES:
                raise ModelError(f"the model has more than {MOST_NODES} nodes once its functions are inlined")
            name = scope.prefix + (proto.name or f"{proto.op_type}_{index}")
            self.names[name] += 1
            if self.names[name] > 1:
                name = f"{name}_{self.names[name]}"
            extents = {
                attribute.name: scope.extents[index, i]
                for i, attribute in enumerate(proto.attribute)
                if (index, i) in scope.extents
            }
            self._read_node(proto, name, scope, extents)

    def lookup(self, name: str, scope: Scope) -> Value:
        """The value of a name; initializers are read on first use."""
        around: Scope | None = scope
        while around is not None:
            if name in around.values:
                return around.values[name]
            if name in around.initializers:
                around.values[name] = value = self._initializer(name, *around.initializers[name])
                return value
            around = around.parent
        raise ModelError(f"tensor '{name}' is read, but nothing writes it")

    def _initializer(self, name: str, tensor: onnx.TensorProto, extent: ByteSpan | None) -> Value:
        try:
            return Constant(name, read_tensor(tensor, extent, self.context.source, f"tensor '{name}'"))
        except Unsupported as error:
            return Absent(NodeProblem("initializer", name, str(error)))

    def _read_node(self, proto: onnx.NodeProto, name: str, scope: Scope, extents: Mapping[str, ByteSpan]) -> None:
        domain = _plain_domain(proto.domain)
        title = proto.op_type if not domain else f"{domain}.{proto.op_type}"
        first_layer = len(self.context.builder.layers)
        results: Sequence[Value]
        try:
            inputs = tuple(self.lookup(i, scope) if i and i not in scope.left_out else None for i in proto.input)
            results = self._results(NodeCall(proto, domain, name, inputs, _attributes(proto, scope), scope, extents))
        except AbsentInput as error:
            results = [error.value] * len(proto.output)
        except Unsupported as error:
            problem = NodeProblem(title, name, str(error))
            self.problems.setdefault(problem)
            results = [Absent(problem)] * len(proto.output)
        except ModelError as error:
            error.add_note(f"while reading node '{name}' ({title})")
            raise
        except (ValueError, ArithmeticError, IndexError, TypeError) as error:
            raise ModelError(f"{title} '{name}' cannot be read: {error}") from error
        missing = (
            Absent(NodeProblem(title, name, f"output {i} ('{output}') is not supported"))
            for i, output in enumerate(proto.output[len(results) :], len(results) + 1)
        )
        self._bind(proto.output, (*results, *missing), scope, first_layer)

    def _results(self, call: NodeCall) -> Sequence[Value]:
        """The results of the node: computed, inlined, or written by layers."""
        kind = call.proto.op_type
        importer = OPERATORS.get(call.domain, {}).get(kind)
        function = self.functions.get((call.domain, kind, call.proto.overload))
        inline = {"If": self._branch, "Loop": self._loop}.get(kind) if not call.domain else None
        if absent := [value for value in call.inputs if isinstance(value, Absent)]:
            self.problems.setdefault(absent[0].problem)
            if importer or function or inline:
                raise AbsentInput(absent[0])
        if function is not None:
            return self._call(function, call)
        if inline is not None:
            return inline(call)
        if (known := self._fold(call)) is not None:
            return known
        described = f"{call.domain}.{kind}" if call.domain else kind
        if importer is None and find_custom(described):
            importer = partial(custom, name=described)
        if importer is None:
            function = self._schema_function(call)
            if function is None:
                raise Unsupported(DESCRIBE if call.domain not in OPERATORS else ADVICE.get(kind, ""))
            return self._call(function, call)
        outputs = tuple(call.proto.output)
        node = OnnxNode(kind, call.name, call.opset, call.inputs, outputs, call.attributes, self.context, call.extents)
        result = importer(node)
        node.require_all_asked()
        return result if isinstance(result, tuple) else (result,)

    def _bind(self, outputs: Sequence[str], results: tuple[Value, ...], scope: Scope, first_layer: int) -> None:
        """Binds the results to the file's names; outputs of this node's layers are renamed accordingly."""
        written = {layer.output for layer in self.context.builder.layers[first_layer:]}
        for i, output in enumerate(outputs):
            if not output:
                continue
            value = results[i]
            if isinstance(value, Computed) and value.tensor in written:
                wanted = output if scope.is_main else self.context.unused_name(scope.prefix + output)
                written.discard(value.tensor)
                if wanted != value.tensor:
                    self.context.rename(value.tensor, wanted, first_layer)
                    results = tuple(Computed(wanted) if other == value else other for other in results)
                value = Computed(wanted)
            scope.values[output] = value

    def _fold(self, call: NodeCall) -> list[Value] | None:
        """The results as constants, if all inputs are constant and small."""
        if call.domain or not all(value is None or isinstance(value, Constant) for value in call.inputs):
            return None
        data: list[Array | None] = [value.data if isinstance(value, Constant) else None for value in call.inputs]
        proto = call.resolved()
        arrays = folded(proto, call.opset, data, f"{proto.op_type} '{call.name}'")
        if arrays is None:
            return None
        return [Constant(output or call.name, array) for output, array in zip(proto.output, arrays, strict=False)]

    # Sub-graphs

    def _schema_function(self, call: NodeCall) -> onnx.FunctionProto | None:
        """The standard's definition of an operator by other operators, with default attributes filled in."""
        opset = call.opset
        try:
            schema = onnx.defs.get_schema(call.proto.op_type, opset, call.domain)
        except onnx.defs.SchemaError:
            return None
        for name, attribute in schema.attributes.items():
            if attribute.default_value.name:
                call.attributes.setdefault(name, attribute.default_value)
        if schema.has_function:
            version = _latest(schema.function_opset_versions, opset)
            body = schema.get_function_with_opset_version(version)
        elif schema.has_context_dependent_function:
            version = _latest(schema.context_dependent_function_opset_versions, opset)
            types = [b"" if value is None else self._type_of(value).SerializeToString() for value in call.inputs]
            node = call.resolved().SerializeToString()
            body = schema.get_context_dependent_function_with_opset_version(version, node, types)
        else:
            return None
        function = onnx.FunctionProto()
        function.ParseFromString(body)
        return function if function.node else None

    def _type_of(self, value: Value) -> onnx.TypeProto:
        tensor = self.context.tensor(value)
        return onnx.helper.make_tensor_type_proto(
            onnx.helper.np_dtype_to_tensor_dtype(tensor.dtype.numpy), tensor.shape
        )

    def _call(self, function: onnx.FunctionProto, call: NodeCall) -> list[Value]:
        """The outputs of a function of the model, inlined at the call."""
        scope, name = call.scope, call.name
        key = (_plain_domain(function.domain), function.name, function.overload)
        if key in scope.calls:
            raise ModelError(f"function '{function.name}' calls itself")
        if len(scope.calls) >= MOST_CALLS:
            raise ModelError(f"functions are nested more than {MOST_CALLS} deep at '{name}'")
        if len(call.inputs) > len(function.input):
            raise ModelError(
                f"'{name}' gives {len(call.inputs)} inputs to '{function.name}', which has {len(function.input)}"
            )
        given = {attribute.name: attribute for attribute in function.attribute_proto}
        values = dict(zip(function.input, call.inputs, strict=False))
        inner = Scope(
            opsets=opset_versions(function.opset_import) or scope.opsets,
            prefix=f"{name}/",
            values={formal: value for formal, value in values.items() if value is not None},
            attributes={**given, **call.attributes},
            left_out=frozenset(formal for formal in function.input if values.get(formal) is None),
            calls=(*scope.calls, key),
        )
        self.read(function.node, inner)
        return [self.lookup(output, inner) for output in function.output]

    def _branch(self, call: NodeCall) -> list[Value]:
        """The outputs of the branch selected by a constant condition; otherwise both are computed and one is
        selected.

        A branch that breaks a rule with the given sizes cannot be computed by any runtime: the other is taken.
        """
        condition = call.inputs[0] if call.inputs else None
        if condition is None or prod(self.context.shape(condition)) != 1:
            raise ModelError(f"the condition of If '{call.name}' is not one value")
        for branch in BRANCHES:
            if branch not in call.attributes or call.attributes[branch].type != onnx.AttributeProto.GRAPH:
                raise ModelError(f"If '{call.name}' has no {branch}")
        graphs = [call.attributes[branch].g for branch in BRANCHES]
        if isinstance(condition, Constant):
            graph = graphs[0] if condition.data.reshape(-1)[0] else graphs[1]
            return self._inner(graph, [], call.scope, call.name)
        both, broken = [], []
        for graph, branch in zip(graphs, BRANCHES, strict=True):
            try:
                both.append(self._inner(graph, [], call.scope, f"{call.name}/{branch}"))
            except Unsupported:
                raise
            except ModelError as error:
                self.context.builder.notes.append(f"If '{call.name}' does not take its {branch}: {error}")
                broken.append(error)
        if len(broken) == 2:
            raise broken[0]
        if broken:
            return both[0]
        if len(both[0]) != len(both[1]):
            raise ModelError(f"the branches of If '{call.name}' give {len(both[0])} and {len(both[1])} outputs")
        pairs = zip(*both, strict=True)
        return [self._either(condition, pair, f"{call.name}/output{i}") for i, pair in enumerate(pairs)]

    def _either(self, condition: Value, branches: tuple[Value, Value], name: str) -> Value:
        """The results of two branches that are both computed."""
        if absent := [value for value in branches if isinstance(value, Absent)]:
            return absent[0]
        one, other = map(self.context.tensor, branches)
        if one.shape != other.shape or one.dtype is not other.dtype or one.quant or other.quant:
            raise Unsupported(
                f"its condition is computed, and its branches give {one} and {other}: make the input that the "
                "condition depends on an initializer"
            )
        shape = (1,) * len(one.shape)
        if self.context.shape(condition) != shape:
            condition = self.context.layer(Reshape(shape), [condition], f"{name}/condition")
        return self.context.layer(Select(), [condition, *branches], name, dtype=one.dtype)

    def _loop(self, call: NodeCall) -> list[Value]:
        """The outputs of a loop with a known number of iterations, unrolled."""
        name = call.name
        if len(call.inputs) < 2:
            raise ModelError(f"Loop '{name}' has {len(call.inputs)} inputs; expected at least 2")
        most, condition, *state = call.inputs
        values = [value for value in state if value is not None]
        graph = call.attributes["body"].g if "body" in call.attributes else onnx.GraphProto()
        if len(graph.output) < len(values) + 1:
            raise ModelError(f"the body of Loop '{name}' has too few outputs for its {len(values)} values")
        rows: list[list[Value]] = [[] for _ in graph.output[len(values) + 1 :]]
        limit = _known(most)
        for number in range(MOST_ROUNDS + 1):
            if number == limit or (condition is not None and _known(condition) == 0):
                return [*values, *(self._stacked(row, f"{name}/stack{i}") for i, row in enumerate(rows))]
            count = Constant(f"{name}/number", np.array(number, np.int64))
            goes_on = condition or Constant(f"{name}/goes_on", np.array(True))
            results = self._inner(graph, [count, goes_on, *values], call.scope, f"{name}/round{number}")
            # A condition is irrelevant if it starts true and the body only passes it on.
            condition = None if condition is None else results[0]
            values = results[1 : len(values) + 1]
            for row, value in zip(rows, results[len(values) + 1 :], strict=True):
                row.append(value)
        raise Unsupported(f"goes through more than {MOST_ROUNDS} rounds")

    def _stacked(self, row: Sequence[Value], name: str) -> Value:
        """The results of all iterations, joined along a new first axis."""
        if not row:
            raise Unsupported("a loop without rounds gives an empty tensor")
        parts = []
        for i, value in enumerate(row):
            if isinstance(value, Absent):
                return value
            shape = (1, *self.context.shape(value))
            parts.append(self.context.layer(Reshape(shape), [value], f"{name}/row{i}"))
        return self.context.layer(Concat(0), parts, name)

    def _inner(self, graph: onnx.GraphProto, values: Sequence[Value], scope: Scope, name: str) -> list[Value]:
        """The outputs of a nested graph for the given inputs; it sees the names around it."""
        if len(graph.input) != len(values):
            raise ModelError(f"the graph inside '{name}' has {len(graph.input)} inputs; it is given {len(values)}")
        inner = Scope(
            opsets=scope.opsets,
            values=dict(zip((info.name for info in graph.input), values, strict=True)),
            initializers={tensor.name: (tensor, None) for tensor in graph.initializer},
            parent=scope,
            prefix=f"{name}/",
            attributes=scope.attributes,
            calls=scope.calls,
        )
        self.read(graph.node, inner)
        return [self.lookup(output.name, inner) for output in graph.output]


def _known(value: Value | None) -> int | None:
    """A number that a loop depends on; None if it is omitted."""
    if value is None:
        return None
    if not isinstance(value, Constant) or value.data.size != 1:
        raise Unsupported("how often it goes round must be constant; export the model with fixed shapes")
    return int(value.data.reshape(-1)[0])


def _latest(versions: Sequence[int], opset: int) -> int:
    """The version for an opset: the last one up to it, or the first of all."""
    return max((version for version in versions if version <= opset), default=min(versions))


def _names(scope: Scope) -> set[str]:
    around: Scope | None = scope
    names: set[str] = set()
    while around is not None:
        names.update(around.values, around.initializers, around.left_out)
        around = around.parent
    return names


def _attributes(proto: onnx.NodeProto, scope: Scope) -> dict[str, onnx.AttributeProto]:
    """The node's attributes; inside a function, references are replaced by the call's attributes."""
    attributes: dict[str, onnx.AttributeProto] = {}
    for attribute in proto.attribute:
        if not attribute.ref_attr_name:
            attributes[attribute.name] = attribute
        elif scope.attributes is not None and attribute.ref_attr_name in scope.attributes:
            copy = onnx.AttributeProto()
            copy.CopyFrom(scope.attributes[attribute.ref_attr_name])
            copy.name = attribute.name
            attributes[attribute.name] = copy
    return attributes


def opset_versions(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    return {_plain_domain(entry.domain): entry.version for entry in imports}


def function_table(functions: Iterable[onnx.FunctionProto]) -> dict[FunctionKey, onnx.FunctionProto]:
    return {(_plain_domain(f.domain), f.name, f.overload): f for f in functions}


def _plain_domain(domain: str) -> str:
    """The standard domain has two names."""
    return "" if domain == "ai.onnx" else domain
