"""Importers of control flow that is known while reading: loops are unrolled, branches selected.

Keras writes LSTM, GRU and RNN layers as loops over a counter. All iterations share the weights of the body.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import tflite

from ...errors import Unsupported
from ..operators import Reshape, Select
from .import_state import ImportState, LayerImport

MOST_ROUNDS = 200  # each adds a dozen layers, and planning time grows faster than linearly
_TAGS = {"then": True, "else": False}
MOST_TENSORS = 50_000  # of all loops, which may be nested


def while_(layer: LayerImport) -> None:
    options = layer.options(tflite.WhileOptions)
    condition, body = (
        _InlinedGraph(layer, index) for index in (options.CondSubgraphIndex(), options.BodySubgraphIndex())
    )
    values = [layer.input(i) for i in range(len(layer.operator.inputs))]
    for number in range(MOST_ROUNDS + 1):
        if not _is_true(layer, condition.outputs(values, f"while_{number}")):
            return _emit_all(layer, values)
        values = body.outputs(values, f"round_{number}")
    raise Unsupported(f"it goes through more than {MOST_ROUNDS} rounds; shorten the sequence")


def if_(layer: LayerImport) -> None:
    """The branch selected by a constant condition; otherwise both are computed and one output is selected."""
    options = layer.options(tflite.IfOptions)
    condition, *values = (layer.input(i) for i in range(len(layer.operator.inputs)))
    indices = {True: options.ThenSubgraphIndex(), False: options.ElseSubgraphIndex()}
    if (known := layer.state.builder.constants.get(condition)) is not None:
        return _emit_all(layer, _InlinedGraph(layer, indices[bool(known.all())]).outputs(values, "branch"))
    held = dict(layer.state.variables.values)
    both = [_InlinedGraph(layer, indices[is_true]).outputs(values, tag) for tag, is_true in _TAGS.items()]
    if layer.state.variables.values != held:
        raise Unsupported("the condition is computed at run time, and a branch assigns a variable")
    tensors = layer.state.builder.tensors
    if len(both[0]) != len(layer.outputs) or len(both[1]) != len(layer.outputs):
        raise layer.error(f"{len(both[0])} and {len(both[1])} values for {len(layer.outputs)} outputs")
    for i, (a, b) in enumerate(zip(*both, strict=True)):
        if tensors[a].shape != tensors[b].shape:
            shapes = f"{tensors[a].shape} and {tensors[b].shape}"
            raise Unsupported(f"the condition is computed at run time, and its branches give {shapes}")
        one = (1,) * len(tensors[a].shape)
        chosen = layer.inner(Reshape(one), [condition], f"condition{i}")
        layer.emit(Select(), [chosen, a, b], i)


def call_once(layer: LayerImport) -> None:
    """Assignments before the first call: the initial values of variables."""
    variables, options = layer.state.variables, layer.options(tflite.CallOnceOptions)
    before, variables.values = variables.values, {}
    _InlinedGraph(layer, options.InitSubgraphIndex()).outputs([], "once")
    known = layer.state.builder.constants
    if computed := [name for name, tensor in variables.values.items() if tensor not in known]:
        raise Unsupported(f"the variables {computed} begin with what is computed at run time")
    variables.begun.update({name: known[tensor] for name, tensor in variables.values.items()})
    variables.values = before


def _is_true(layer: LayerImport, condition: Sequence[str]) -> bool:
    known = layer.state.builder.constants
    if len(condition) != 1 or condition[0] not in known:
        raise Unsupported("the condition is computed at run time; unroll it when exporting (unroll=True in Keras)")
    return bool(known[condition[0]].all())


def _emit_all(layer: LayerImport, values: Sequence[str]) -> None:
    if len(values) != len(layer.outputs):
        raise layer.error(f"{len(values)} values for {len(layer.outputs)} outputs")
    for i, value in enumerate(values):
        layer.emit(Reshape(layer.state.builder.shape(value)), [value], i)


class _InlinedGraph:
    """A graph that an operator runs, inlined at each of its uses."""

    def __init__(self, layer: LayerImport, index: int) -> None:
        graphs = layer.state.file.subgraphs
        if not 1 <= index <= len(graphs):
            raise layer.error(f"graph {index} of {len(graphs) + 1} is named")
        if layer.state.depth > 2:
            raise Unsupported("loops and branches are nested more than three deep")
        self.layer = layer
        self.graph = replace(graphs[index - 1], subgraphs=graphs)
        self.first: ImportState | None = None

    def outputs(self, inputs: Sequence[str], tag: str) -> list[str]:
        """The outputs of the graph for these inputs."""
        layer, outer = self.layer, self.layer.state
        named = tuple(replace(tensor, name=f"{layer.label}/{tag}/{tensor.name}") for tensor in self.graph.tensors)
        graph = replace(self.graph, tensors=named)
        state = ImportState(graph, outer.builder, outer.read, outer)
        if self.first is None:
            self.first = state
        else:
            state.take_constants(self.first)
        if len(inputs) != len(self.graph.inputs):
            raise layer.error(f"{len(inputs)} values for {len(self.graph.inputs)} inputs")
        for index, name in zip(self.graph.inputs, inputs, strict=True):
            given, wanted = outer.builder.tensors[name], self.graph.tensors[index]
            if given.dtype is not wanted.dtype or given.quant != wanted.quant:
                raise Unsupported(f"{given} enters as {wanted.type_name} of another scale")
            state.names[index] = name
        if problems := outer.read(state):
            raise Unsupported(f"inside it, {'; '.join(problems)}")
        if len(outer.builder.tensors) > MOST_TENSORS:
            raise Unsupported(f"its rounds come to more than {MOST_TENSORS:,} tensors")
        return [state.name_of(index) for index in self.graph.outputs]
